//! Rate limits for services on tower, axum, hyper, tonic and actix-web.
//!
//! * [`RateLimitLayer`] is a limit in five lines; [`Limits`] puts a whole [`Policy`] to use:
//!   several limits, some for some requests, plans, costs, what is not counted, and buckets in a
//!   [store](tollgate::Store).
//! * **Whose bucket**: see [below](#whose-bucket).
//! * **An answer** has `RateLimit-Policy` and `RateLimit`
//!   (draft-ietf-httpapi-ratelimit-headers-10), besides those that the service sends; a refusal is
//!   429 with `Retry-After` in whole seconds, rounded up, and a problem (RFC 9457). What `r` counts
//!   is requests like the one that was answered: of a cost above 1, which `tollgate-cost` tells
//!   then, so many as still fit. Who makes `r` of them within `t` seconds, or waits as long as
//!   `Retry-After` says, is not refused, unless others spend from the same bucket, or the client
//!   was forgotten and its place taken meanwhile.
//! * **A request that is refused** takes nothing from any limit, and its service is not asked.
//!
//! | feature | |
//! |---|---|
//! | `axum` | knows the addresses of axum's connections, and paths that nested routers cut off |
//! | `tonic` | answers gRPC in its own terms; knows the addresses of tonic's connections |
//! | `actix-web` | [`actix`](https://docs.rs/tollgate-http): the same limits in actix-web |
//! | `file` | reads policy files: `Policy::from_toml` |
//!
//! # Whose bucket
//!
//! The connection's address, a header, a cookie, the path, what the service says, or several of
//! these: a [`Key`]. Nothing that proxies write is believed, unless they are listed ([`proxies`]).
//!
//! A connection's address is found where the server tells it: in axum with
//! `into_make_service_with_connect_info::<SocketAddr>()` and the feature `axum`, in tonic without
//! TLS with the feature `tonic`, in actix-web always; a [`Peer`](proxies::Peer) among the request's
//! extensions goes before these, and [`Builder::peer`] before that. Where a part of a key is
//! missing, the [policy](MissingKey) says what becomes of the request (all share one bucket, unless
//! told otherwise), and a warning is logged once a limit.
//!
//! # Layers
//!
//! Of several layers around one service the outer ones have charged a request before the inner ones
//! refuse it: put limits that belong together into one policy.

/// The examples of the page hold.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/http.md")]
mod page {}

/// So do those of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}

#[cfg(feature = "actix-web")]
pub mod actix;
mod fields;
#[cfg(feature = "tonic")]
mod grpc;
mod head;
mod limits;
mod refusal;
mod tower;

pub use fields::{Headers, MOST_POLICIES, Reset};
pub use head::Head;
pub use limits::{Builder, Limits, LimitsError, MAX_HELD, STORE_DEADLINE};
pub use tollgate::{ManualClock, Quota, Rate};
#[cfg(feature = "file")]
pub use tollgate_policy::file;
pub use tollgate_policy::gate::{ReloadError, Reloaded};
pub use tollgate_policy::{
    Cost, Idle, Key, Limit, MissingKey, OnError, Policy, Requests, Rule, WhenFull, address, limit,
    pattern, plan, policy, proxies, statuses,
};
pub use tower::{RateLimit, RateLimitLayer, ResponseBody, ResponseFuture};
