//! The token bucket: up to a burst at once, the rate in the long run.

use super::bucket::AnyWidth;
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
}

impl TokenBucket {
    /// A token bucket of this quota, checked where a limiter is built.
    #[must_use]
    pub const fn new(quota: Quota) -> Self {
        Self { quota }
    }

    pub(crate) fn validated(self) -> Result<AnyWidth, BuildError> {
        AnyWidth::new(self.quota, false)
    }
}
