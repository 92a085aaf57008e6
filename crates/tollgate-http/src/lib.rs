//! Rate limits for services on tower, axum, hyper, tonic and actix-web.
//!
//! * [`RateLimitLayer`] is a limit in five lines; [`Limits`] puts a whole [`Policy`] to use:
//!   several limits, some for some requests, plans, costs, what is not counted, and buckets in a
//!   [store](tollgate::Store).
//! * **Whose bucket** is the connection's address, a header, a cookie, the path, what the service
//!   says, or several of these ([`Key`]). Nothing that proxies write is believed, unless they are
//!   listed ([`proxies`]). Where a key is missing, the policy says what becomes of the request, and
//!   a warning is logged once a limit.
//! * **An answer** has `RateLimit-Policy` and `RateLimit`
//!   (draft-ietf-httpapi-ratelimit-headers-10), besides those that the service sends; a refusal is
//!   429 with `Retry-After` in whole seconds, rounded up, and a problem (RFC 9457). What `r` counts
//!   is requests like the one that was answered: of a cost above 1, which `tollgate-cost` tells
//!   then, so many as still fit. Who makes `r` of them within `t` seconds, or waits as long as
//!   `Retry-After` says, is not refused, unless others spend from the same bucket, or the client
//!   was forgotten and its place taken meanwhile.
//! * **A request that is refused** takes nothing from any limit, and its service is not asked.
//!
//! Of several layers around one service the outer ones have charged a request before the inner ones
//! refuse it: put limits that belong together into one policy.

#[cfg(feature = "actix-web")]
pub mod actix;
mod fields;
#[cfg(feature = "tonic")]
mod grpc;
mod head;
mod limits;
mod refusal;
pub mod tower;

pub use fields::{Headers, MOST_POLICIES, Reset};
pub use head::Head;
pub use limits::{Builder, Limits, LimitsError, MAX_HELD, STORE_DEADLINE};
pub use tollgate_policy::{
    Cost, Idle, Key, Limit, MissingKey, OnError, Policy, Requests, Rule, WhenFull, limit, plan,
    proxies, statuses,
};
pub use tower::{RateLimit, RateLimitLayer};
