//! Which limits hold for a request, whose bucket it takes from, and what it costs.
//!
//! A [`Policy`] is some [`Limit`]s, each for some requests, with a [`Key`] that tells its clients
//! apart. It is made in code, or read from a policy file (feature `file`). It knows no sockets, no
//! HTTP types and no clock: whoever brings a [`Request`] is told what that asks
//! of each limit ([`Policy::calls`]), and asks them ([`Gate`], where buckets are in this process).
//!
//! What a client sends does not choose its bucket, but by the parts of the key:
//!
//! * **Addresses** are the socket's peer, or what a listed proxy says ([`proxies`]), as networks
//!   ([`address`]).
//! * **Paths** are matched however they are spelled ([`path`]).
//! * **Keys** are typed and length-prefixed: no two lists of values are one ([`key::Client`]). What
//!   is sent twice with two values is nobody's.

pub mod address;
#[cfg(feature = "file")]
pub mod file;
pub mod gate;
mod hearing;
mod hops;
pub mod key;
pub mod limit;
pub mod path;
pub mod pattern;
pub mod plan;
pub mod policy;
pub mod proxies;
pub mod request;
pub mod rule;
pub mod shared;
pub mod statuses;
pub mod verdict;

pub use gate::Gate;
pub use key::Key;
pub use limit::{Cost, Idle, Limit, MissingKey, OnError, Requests, WhenFull};
pub use policy::{Answer, Call, Policy};
pub use request::Request;
pub use rule::Rule;
pub use shared::SharedGate;
pub use verdict::{Outcome, Verdict};

/// The examples of the policy file's page hold.
#[cfg(all(doctest, feature = "file"))]
#[doc = include_str!("../../../docs/policy.md")]
mod page {}
