//! The token bucket: up to a burst at once, the rate in the long run.

use super::bucket::{AnyWidth, Asked};
use crate::{BuildError, Quota};

/// The token bucket, the default: a bucket starts full, earns its rate and holds at most its
/// burst; a call takes its cost if that much is there. In any stretch of time t at most
/// `burst + rate x t` is admitted. 16 bytes a client (24 for extreme quotas).
///
/// [`Limiter::new`](crate::Limiter::new) and [`KeyedLimiter::new`](crate::KeyedLimiter::new) take
/// the quota itself; this name is for the type parameter.
///
/// Source: J. Turner, "New directions in communications", IEEE Communications Magazine, 1986; RFC
/// 2697 and 2698 use the same meter.
///
/// ```
/// use tollgate::{Limiter, ManualClock, Rate, TokenBucket};
///
/// let bucket = TokenBucket::new(Rate::per_second(1).burst(2));
/// let limiter = Limiter::builder(bucket).clock(ManualClock::default()).build()?;
/// assert!(limiter.allow() && limiter.allow());
/// assert!(!limiter.allow());
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    quota: Quota,
    initial: Option<u64>,
}

impl TokenBucket {
    /// A token bucket of this quota, checked where a limiter is built.
    #[must_use]
    pub const fn new(quota: Quota) -> Self {
        Self {
            quota,
            initial: None,
        }
    }

    /// The same, but that a new client starts with so many tokens (at most the burst) instead of a
    /// full bucket.
    ///
    /// A client that was forgotten is new again. By default that is once its bucket is full, so
    /// that it may lose what it saved up: give a limiter a longer
    /// [`idle`](crate::KeyedLimiterBuilder::idle) where that matters.
    ///
    /// ```
    /// use tollgate::{Limiter, ManualClock, Rate, TokenBucket};
    ///
    /// let bucket = TokenBucket::new(Rate::per_second(1).burst(10)).initial_tokens(1);
    /// let limiter = Limiter::builder(bucket).clock(ManualClock::default()).build()?;
    /// assert!(limiter.allow());
    /// assert!(!limiter.allow());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub const fn initial_tokens(self, tokens: u64) -> Self {
        Self {
            initial: Some(tokens),
            ..self
        }
    }

    pub(crate) fn validated(self, debt: u64) -> Result<AnyWidth, BuildError> {
        AnyWidth::new(Asked {
            quota: self.quota,
            initial: self.initial,
            debt,
            queue: false,
        })
    }
}
