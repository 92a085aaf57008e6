//! The leaky bucket as a queue: admitted calls leave at the rate.

use super::bucket::{AnyWidth, Asked};
use crate::{BuildError, Quota};

/// The leaky bucket as a queue of `burst` places that drains at the rate: it admits what the token
/// bucket of the same quota admits, but an admitted call leaves only when those ahead of it have
/// drained, and the answer says when
/// ([`Decision::Allowed::delay`](crate::Decision::Allowed)). Waiting that long is the caller's
/// part. 16 bytes a client (24 for extreme quotas).
///
/// Source: J. Turner, "New directions in communications", IEEE Communications Magazine, 1986; the
/// queueing variant, as in nginx's `limit_req`.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{LeakyBucket, Limiter, ManualClock, Rate};
///
/// let queue = LeakyBucket::new(Rate::per_second(2).burst(2));
/// let limiter = Limiter::builder(queue).clock(ManualClock::default()).build()?;
/// assert_eq!(limiter.try_acquire(1).delay(), Duration::ZERO);
/// assert_eq!(limiter.try_acquire(1).delay(), Duration::from_millis(500));
/// assert_eq!(limiter.try_acquire(1).retry_after(), Some(Duration::from_millis(500)));
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeakyBucket {
    quota: Quota,
    initial: Option<u64>,
}

impl LeakyBucket {
    /// A queue of `burst` places that drains at the quota's rate, checked where a limiter is
    /// built.
    #[must_use]
    pub const fn new(quota: Quota) -> Self {
        Self {
            quota,
            initial: None,
        }
    }

    /// The same, but that so many tokens (at most the burst) are left to a new client: a queue that
    /// starts with the rest of its places taken.
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
            queue: true,
        })
    }
}
