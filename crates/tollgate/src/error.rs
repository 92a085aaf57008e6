//! Why a limiter was not built.

use core::fmt;
use core::time::Duration;

use crate::time::div_floor;
use crate::{Quota, Rate};

/// Why a limiter was not built: each names the number, its value and its bound.
///
/// ```
/// use tollgate::{KeyedLimiter, Rate};
///
/// let error = KeyedLimiter::new(Rate::per_second(5).burst(0), 100).unwrap_err();
/// assert_eq!(error.to_string(), "burst is 0; the least is 1 token");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// The rate earns no tokens.
    RateIsZero {
        /// The rate as given.
        rate: Rate,
    },
    /// The rate's period is zero.
    PeriodIsZero {
        /// The rate as given.
        rate: Rate,
    },
    /// The burst is zero: every call would be refused for ever.
    BurstIsZero,
    /// With p/q the rate in lowest terms per nanosecond, burst x q + p is 2^127 or more.
    QuotaTooLarge {
        /// The quota as given.
        quota: Quota,
    },
    /// A client would start with more than its bucket holds.
    InitialAboveBurst {
        /// The initial tokens as given.
        initial: u64,
        /// The burst of the same bucket.
        burst: u64,
    },
    /// The largest debt leaves the numbers no room, or a log no entries.
    DebtTooLarge {
        /// The largest debt as given.
        debt: u64,
        /// The largest that this limit has room for.
        most: u64,
    },
    /// The limit of a window is zero.
    LimitIsZero,
    /// A sliding log of more entries than it may hold.
    LimitTooLarge {
        /// The limit as given.
        limit: u64,
        /// The largest that is accepted.
        most: u64,
    },
    /// A window of no length.
    WindowIsZero,
    /// A window that no [`Timestamp`](crate::Timestamp) reaches the end of.
    WindowTooLong {
        /// The window as given.
        window: Duration,
        /// The longest that is accepted.
        longest: Duration,
    },
    /// A plan whose limit is another algorithm than that of clients without one.
    PlanOfOtherAlgorithm,
    /// More plans than are told apart.
    TooManyPlans {
        /// The plans as given.
        plans: usize,
        /// The most that are accepted.
        most: usize,
    },
    /// No client may be tracked.
    MaxClientsIsZero,
    /// Clients would be forgotten as soon as they are seen.
    IdleIsZero,
    /// Clients who owe tokens would be forgotten.
    IdleForgetsDebts {
        /// The idle time as given.
        idle: Duration,
        /// The least with this largest debt: the time in which a bucket fills from there. `None` if
        /// that is longer than time can run.
        least: Option<Duration>,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::RateIsZero { rate } => {
                write!(f, "rate is {rate}; the least is 1 token in a period")
            }
            Self::PeriodIsZero { rate } => {
                write!(f, "period of rate {rate} is 0; the least is 1 ns")
            }
            Self::BurstIsZero => f.write_str("burst is 0; the least is 1 token"),
            Self::QuotaTooLarge { quota } => {
                let (rate, most) = (quota.rate(), largest_burst(quota.rate()));
                let burst = quota.burst();
                write!(
                    f,
                    "burst is {burst}; at a rate of {rate} the most is {most} tokens"
                )
            }
            Self::InitialAboveBurst { initial, burst } => {
                write!(f, "initial tokens are {initial}; the burst is {burst}")
            }
            Self::DebtTooLarge { debt, most } => {
                write!(
                    f,
                    "largest debt is {debt}; this limit has room for {most} tokens"
                )
            }
            Self::LimitIsZero => f.write_str("limit is 0; the least is 1 token a window"),
            Self::LimitTooLarge { limit, most } => {
                write!(
                    f,
                    "limit is {limit}; a sliding log holds at most {most} tokens a window"
                )
            }
            Self::WindowIsZero => f.write_str("window is 0; the least is 1 ns"),
            Self::WindowTooLong { window, longest } => {
                write!(f, "window is {window:?}; the longest is {longest:?}")
            }
            Self::PlanOfOtherAlgorithm => {
                f.write_str("a plan is another algorithm than the limiter; give it the same")
            }
            Self::TooManyPlans { plans, most } => {
                write!(f, "there are {plans} plans; the most is {most}")
            }
            Self::MaxClientsIsZero => f.write_str("max_clients is 0; the least is 1 client"),
            Self::IdleIsZero => f.write_str("idle is 0; the least is 1 ns"),
            Self::IdleForgetsDebts { idle, least } => match least {
                Some(least) => write!(f, "idle is {idle:?}; with this debt the least is {least:?}"),
                None => write!(
                    f,
                    "idle is {idle:?}; with this debt clients are never forgotten"
                ),
            },
        }
    }
}

/// The most tokens that are still exact at a rate: with p/q the rate in lowest terms per
/// nanosecond, burst x q + p stays below 2^127.
fn largest_burst(rate: Rate) -> u128 {
    let (p, q) = rate.per_nanosecond();
    div_floor(((1 << 127) - 1_u128).saturating_sub(u128::from(p)), q)
}

impl core::error::Error for BuildError {}
