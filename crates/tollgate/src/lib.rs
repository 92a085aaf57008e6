//! May this caller proceed right now? An exact, bounded rate limiter.
//!
//! [`KeyedLimiter`] is a bucket a client, [`Limiter`] one bucket. A refusal is an answer
//! ([`Decision`]), never an error; it takes nothing, and says how long to wait.
//!
//! ```
//! use tollgate::{Decision, KeyedLimiter, Rate};
//!
//! // Five a second, ten at once, for at most 100,000 clients at a time.
//! let limiter = KeyedLimiter::new(Rate::per_second(5).burst(10), 100_000)?;
//! for _ in 0..10 {
//!     assert!(limiter.allow("alice"));
//! }
//! match limiter.try_acquire("alice", 3) {
//!     Decision::Allowed { remaining, .. } => println!("200, {remaining} left"),
//!     refused => println!("429, retry after {:?}", refused.retry_after()), // None: never
//! }
//! # Ok::<(), tollgate::BuildError>(())
//! ```
//!
//! * **Which verb.** [`allow`](KeyedLimiter::allow) takes one token and says yes or no;
//!   [`try_acquire`](KeyedLimiter::try_acquire) takes any number and says what remains, or how
//!   long to wait; [`try_acquire_at`](KeyedLimiter::try_acquire_at) is told the time, for tests,
//!   logs and batches; [`peek`](KeyedLimiter::peek) takes nothing.
//! * **Which limit.** The token bucket, unless you know better: see [`Limit`] for the others.
//! * **Exact.** Levels are whole numbers of 1/q tokens, where p/q is the rate in lowest terms per
//!   nanosecond: no rate drifts, and a refusal loses no fraction. `retry_after` suffices, and one
//!   nanosecond less does not.
//! * **Bounded.** At most `max_clients` clients, a few dozen bytes each. Nobody is forgotten early
//!   to make room.
//!
//! No async runtime, no background thread, no unsafe code.

#![cfg_attr(docsrs, feature(doc_cfg))]
// Exactness. Tests may divide and convert as they like: what they check is on the other side.
#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        clippy::as_conversions,
        clippy::cast_lossless,
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        clippy::float_arithmetic,
        clippy::integer_division
    )
)]

pub(crate) mod algorithm;
mod cell;
mod change;
mod charge;
mod clock;
mod decision;
mod error;
mod keyed;
mod limit;
mod limiter;
mod monotonic;
mod observe;
mod quota;
mod rate;
mod snapshot;
mod statistics;
mod store;
mod sync;
mod time;
mod together;
mod wire;

pub use algorithm::fixed_window::FixedWindow;
pub use algorithm::leaky_bucket::LeakyBucket;
pub use algorithm::sliding_log::SlidingLog;
pub use algorithm::sliding_window_counter::SlidingWindowCounter;
pub use algorithm::token_bucket::TokenBucket;
pub use change::{ChangeError, Tokens};
pub use charge::{Charge, Debit};
pub use clock::{Clock, ManualClock, MonotonicClock};
pub use decision::{ClockWentBackwards, Decision};
pub use error::BuildError;
pub use keyed::{KeyedLimiter, KeyedLimiterBuilder, LongestHold, Plan};
pub use limit::{AnyLimit, IntoLimit, Limit};
pub use limiter::{Limiter, LimiterBuilder};
pub use quota::Quota;
pub use rate::{Rate, RateError};
pub use snapshot::RestoreError;
pub use statistics::Statistics;
pub use store::{Store, StoreAnswer, StoreAsk, StoreError, StoreFuture};
pub use time::Timestamp;
pub use together::{Ask, Together, acquire_all};

/// The examples of the semantics hold.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/semantics.md")]
mod semantics {}

/// And those of how to choose.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/choosing.md")]
mod choosing {}
