//! A rate and a burst.

use core::fmt;

use crate::Rate;

/// A rate and a burst: what one bucket is allowed.
///
/// A bucket starts full at `burst` tokens, earns [`Rate`] and holds at most `burst`; in any
/// stretch of time t it admits at most `burst + rate x t`. A call for more than `burst` tokens can
/// never pass and is told so ([`Decision::TooLarge`](crate::Decision::TooLarge)).
///
/// ```
/// use tollgate::{KeyedLimiter, Quota, Rate};
///
/// const PER_KEY: Quota = Rate::per_second(5).burst(10);
/// let limiter = KeyedLimiter::new(PER_KEY, 100_000)?;
/// assert!(!limiter.try_acquire("alice", 11).is_allowed());
/// assert_eq!(PER_KEY.to_string(), "5/s burst 10");
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quota {
    rate: Rate,
    burst: u64,
}

impl Quota {
    /// A rate and the most tokens a bucket holds. A burst of 0 is refused where a limiter is
    /// built.
    #[must_use]
    pub const fn new(rate: Rate, burst: u64) -> Self {
        Self { rate, burst }
    }

    /// Tokens earned per period.
    #[must_use]
    pub const fn rate(self) -> Rate {
        self.rate
    }

    /// The most tokens a bucket holds.
    #[must_use]
    pub const fn burst(self) -> u64 {
        self.burst
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} burst {}", self.rate, self.burst)
    }
}
