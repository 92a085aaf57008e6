//! The arithmetic that the token bucket and the leaky bucket share.
//!
//! With p/q the rate in lowest terms per nanosecond, a level counts 1/q tokens: each nanosecond
//! earns p of them and a token is q of them, both whole, so no rate drifts and nothing is lost
//! however often a bucket is asked.

use core::fmt::Debug;
use core::time::Duration;

use super::Algorithm;
use crate::time::{div_ceil, div_floor, duration};
use crate::{BuildError, Decision, Quota};

/// A level in 1/q tokens, in as many bits as the quota needs.
///
/// Signed: a level below zero is a debt, which refunds and debits leave room for.
pub trait Level: Copy + Debug + Default + Send + Sync {
    /// The level after `elapsed` nanoseconds at p each: at most the capacity.
    fn earn(self, elapsed: u64, p: u64, capacity: Self) -> Self;

    /// `cost x q`, for a cost of at most the burst.
    fn of(cost: u64, q: Self) -> Self;

    /// `self - taken` if that is not below zero.
    fn take(self, taken: Self) -> Option<Self>;

    /// `self + given`, which stays at most the capacity.
    fn give(self, given: Self) -> Self;

    /// `self + given`, but at most the capacity.
    fn give_up_to(self, given: Self, capacity: Self) -> Self;

    /// Whole tokens, rounded down; 0 for a debt.
    fn whole(self, q: Self) -> u64;

    /// `target - self`, or 0 if that is less.
    fn short_of(self, target: Self) -> u128;
}

/// 64 bits: enough while burst x q + p < 2^63.
impl Level for i64 {
    #[inline]
    fn earn(self, elapsed: u64, p: u64, capacity: Self) -> Self {
        // The difference of two i64 fits a u64, whatever their signs.
        let room = capacity.wrapping_sub(self).cast_unsigned();
        match elapsed.checked_mul(p) {
            Some(earned) if earned < room => self.wrapping_add_unsigned(earned),
            _ => capacity,
        }
    }

    #[inline]
    fn of(cost: u64, q: Self) -> Self {
        // At most burst x q, which fits.
        cost.wrapping_mul(q.cast_unsigned()).cast_signed()
    }

    #[inline]
    fn take(self, taken: Self) -> Option<Self> {
        let left = self.wrapping_sub(taken);
        (left >= 0).then_some(left)
    }

    #[inline]
    fn give(self, given: Self) -> Self {
        self.wrapping_add(given)
    }

    fn give_up_to(self, given: Self, capacity: Self) -> Self {
        // Both are at most the capacity, and debts are no less than its negative.
        let room = capacity.wrapping_sub(self);
        if given < room {
            self.wrapping_add(given)
        } else {
            capacity
        }
    }

    #[inline]
    fn whole(self, q: Self) -> u64 {
        let level = u64::try_from(self).unwrap_or(0);
        level.checked_div(q.cast_unsigned()).unwrap_or(0)
    }

    #[inline]
    fn short_of(self, target: Self) -> u128 {
        // The difference of two i64 fits a u64, whatever their signs.
        let short = target.wrapping_sub(self).cast_unsigned();
        u128::from(if target > self { short } else { 0 })
    }
}

/// 128 bits as two words, which keeps a client's state at 24 bytes instead of 32.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wide {
    high: i64,
    low: u64,
}

impl Wide {
    /// The level as one number.
    #[inline]
    fn wide(self) -> i128 {
        (i128::from(self.high) << 64) | i128::from(self.low)
    }

    /// The level from one number. Callers stay between zero, or a debt, and the capacity.
    #[inline]
    fn narrow(level: i128) -> Self {
        let low = u64::try_from(level & i128::from(u64::MAX)).unwrap_or(u64::MAX);
        Self {
            high: i64::try_from(level >> 64).unwrap_or(i64::MAX),
            low,
        }
    }
}

impl Level for Wide {
    #[inline]
    fn earn(self, elapsed: u64, p: u64, capacity: Self) -> Self {
        let room = capacity.wide().wrapping_sub(self.wide()).cast_unsigned();
        // Two factors of 64 bits never leave 128.
        let earned = u128::from(elapsed).wrapping_mul(u128::from(p));
        if earned < room {
            Self::narrow(self.wide().wrapping_add_unsigned(earned))
        } else {
            capacity
        }
    }

    #[inline]
    fn of(cost: u64, q: Self) -> Self {
        Self::narrow(i128::from(cost).wrapping_mul(q.wide()))
    }

    #[inline]
    fn take(self, taken: Self) -> Option<Self> {
        let left = self.wide().wrapping_sub(taken.wide());
        (left >= 0).then(|| Self::narrow(left))
    }

    #[inline]
    fn give(self, given: Self) -> Self {
        Self::narrow(self.wide().wrapping_add(given.wide()))
    }

    fn give_up_to(self, given: Self, capacity: Self) -> Self {
        let room = capacity.wide().wrapping_sub(self.wide());
        if given.wide() < room {
            self.give(given)
        } else {
            capacity
        }
    }

    fn whole(self, q: Self) -> u64 {
        let level = u128::try_from(self.wide()).unwrap_or(0);
        // At most the burst, which is a u64.
        u64::try_from(div_floor(level, q.wide().cast_unsigned())).unwrap_or(u64::MAX)
    }

    fn short_of(self, target: Self) -> u128 {
        u128::try_from(target.wide().wrapping_sub(self.wide())).unwrap_or(0)
    }
}

/// A client's bucket.
#[derive(Clone, Copy, Debug, Default)]
pub struct BucketState<V> {
    /// Level at `last_attempt`, from 0 (or a debt) to the capacity.
    level: V,
    /// Nanoseconds on the limiter's clock.
    last_attempt: u64,
}

/// A validated quota, as the numbers that its decisions are made of.
#[derive(Clone, Copy, Debug)]
pub struct Bucket<V> {
    /// Earned each nanosecond, in 1/q tokens.
    p: u64,
    /// One token.
    q: V,
    /// burst x q.
    capacity: V,
    burst: u64,
    /// A leaky bucket: an admitted call leaves when those ahead of it have drained.
    queue: bool,
}

/// A validated quota in the least width that holds it.
#[derive(Clone, Copy, Debug)]
pub enum AnyWidth {
    /// burst x q + p < 2^63: 16 bytes a client.
    Narrow(Bucket<i64>),
    /// burst x q + p < 2^127: 24 bytes a client.
    Wide(Bucket<Wide>),
}

impl AnyWidth {
    /// Checks every bound of a quota.
    pub fn new(quota: Quota, queue: bool) -> Result<Self, BuildError> {
        let (rate, burst) = (quota.rate(), quota.burst());
        let (p, q) = rate.per_nanosecond();
        if rate.tokens() == 0 {
            return Err(BuildError::RateIsZero { rate });
        }
        if rate.period().is_zero() {
            return Err(BuildError::PeriodIsZero { rate });
        }
        if burst == 0 {
            return Err(BuildError::BurstIsZero);
        }
        let fits = |capacity: &u128| {
            capacity
                .checked_add(u128::from(p))
                .is_some_and(|sum| sum < 1 << 127)
        };
        let capacity = u128::from(burst).checked_mul(q).filter(fits);
        let (Some(capacity), Ok(q)) = (capacity, i128::try_from(q)) else {
            return Err(BuildError::QuotaTooLarge { quota });
        };
        let capacity = capacity.cast_signed();
        let fits_64_bits = capacity.wrapping_add(i128::from(p)) < 1 << 63;
        Ok(match (i64::try_from(q), i64::try_from(capacity)) {
            (Ok(q), Ok(capacity)) if fits_64_bits => Self::Narrow(Bucket {
                p,
                q,
                capacity,
                burst,
                queue,
            }),
            _ => Self::Wide(Bucket {
                p,
                q: Wide::narrow(q),
                capacity: Wide::narrow(capacity),
                burst,
                queue,
            }),
        })
    }
}

impl<V: Level> Bucket<V> {
    #[inline]
    fn level_at(&self, state: &BucketState<V>, now: u64) -> V {
        state.level.earn(
            now.saturating_sub(state.last_attempt),
            self.p,
            self.capacity,
        )
    }

    /// The least whole nanoseconds in which `units` of 1/q tokens are earned.
    #[inline]
    fn time_to_earn(&self, units: u128) -> u128 {
        div_ceil(units, u128::from(self.p))
    }
}

impl<V: Level> Algorithm for Bucket<V> {
    type State = BucketState<V>;

    #[inline]
    fn burst(&self) -> u64 {
        self.burst
    }

    fn settles_after(&self) -> Option<u64> {
        u64::try_from(self.time_to_earn(V::default().short_of(self.capacity))).ok()
    }

    #[inline]
    fn fresh(&self, now: u64) -> BucketState<V> {
        BucketState {
            level: self.capacity,
            last_attempt: now,
        }
    }

    #[inline]
    fn last_attempt(state: &BucketState<V>) -> u64 {
        state.last_attempt
    }

    #[inline]
    fn attempt(&self, state: &mut BucketState<V>, cost: u64, now: u64) -> bool {
        let level = self.level_at(state, now);
        let taken = level.take(V::of(cost, self.q));
        *state = BucketState {
            level: taken.unwrap_or(level),
            last_attempt: now,
        };
        taken.is_some()
    }

    #[inline]
    fn remaining(&self, state: &BucketState<V>, now: u64) -> u64 {
        self.level_at(state, now).whole(self.q)
    }

    /// What is added at the last attempt is there at any later time, and what the bucket cannot
    /// hold is lost at either.
    fn refund(&self, state: &mut BucketState<V>, tokens: u64, _: Option<u64>, _: u64) {
        let given = V::of(tokens.min(self.burst), self.q);
        state.level = state.level.give_up_to(given, self.capacity);
    }

    #[inline]
    fn report(&self, state: &BucketState<V>, cost: u64, now: u64, admitted: bool) -> Decision {
        let level = self.level_at(state, now);
        let remaining = level.whole(self.q);
        let reset_after = duration(self.time_to_earn(level.short_of(self.capacity)));
        if admitted {
            let delay = if self.queue && cost > 0 {
                // Those ahead are what was there before this call's cost.
                let before = level.give(V::of(cost, self.q));
                duration(self.time_to_earn(before.short_of(self.capacity)))
            } else {
                Duration::ZERO
            };
            Decision::Allowed {
                remaining,
                delay,
                reset_after,
            }
        } else {
            let short = level.short_of(V::of(cost, self.q));
            let retry_after = duration(self.time_to_earn(short));
            Decision::Limited {
                remaining,
                retry_after,
                reset_after,
            }
        }
    }
}
