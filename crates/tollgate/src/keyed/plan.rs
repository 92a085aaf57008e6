//! Which of a limiter's limits a client is held to.

use core::time::Duration;

use crate::Decision;

/// Which of a limiter's limits a client is held to: that of clients without a plan, or one of
/// those that [`KeyedLimiterBuilder::plan`](crate::KeyedLimiterBuilder::plan) added.
///
/// ```
/// use tollgate::{KeyedLimiter, Plan, Rate};
///
/// const PRO: Plan = Plan::nth(1);
/// let limiter = KeyedLimiter::builder(Rate::per_hour(1).burst(1), 100)
///     .plan(Rate::per_hour(100).burst(100))
///     .build()?;
/// assert!(limiter.try_acquire_as("alice", 50, PRO).is_allowed());
/// assert!(!limiter.try_acquire_as("bob", 50, Plan::DEFAULT).is_allowed());
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan(Named);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Named {
    Nth(u8),
    Unlimited,
    DenyAll,
}

impl Default for Plan {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Plan {
    /// That of clients without a plan: the limit that the limiter was built from.
    pub const DEFAULT: Self = Self(Named::Nth(0));

    /// No limit at all: only a ban refuses. Takes nothing, and tracks nobody.
    pub const UNLIMITED: Self = Self(Named::Unlimited);

    /// Nothing at all: every cost is too large for a burst of 0. Tracks nobody.
    pub const DENY_ALL: Self = Self(Named::DenyAll);

    /// The plan that was added as the `number`th, counted from 1. A limiter that has fewer holds
    /// its clients to the limit of those without a plan.
    #[must_use]
    pub const fn nth(number: u8) -> Self {
        Self(Named::Nth(number))
    }

    /// The number of its limit, or what it says instead of one.
    pub(crate) const fn limit(self) -> Result<u8, Limitless> {
        match self.0 {
            Named::Nth(number) => Ok(number),
            Named::Unlimited => Err(Limitless { allows: true }),
            Named::DenyAll => Err(Limitless { allows: false }),
        }
    }
}

/// A plan that asks no bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limitless {
    /// Or denies all.
    allows: bool,
}

impl Limitless {
    /// The answer to a client that a look `seen` was given.
    pub(crate) fn answer(self, seen: Decision, cost: u64) -> Decision {
        if !self.allows && cost > 0 {
            Decision::TooLarge { burst: 0 }
        } else if matches!(seen, Decision::Banned { .. }) {
            seen
        } else {
            Decision::Allowed {
                remaining: if self.allows { u64::MAX } else { 0 },
                delay: Duration::ZERO,
                reset_after: Duration::ZERO,
            }
        }
    }
}
