//! The arithmetic that the token bucket and the leaky bucket share.
//!
//! With p/q the rate in lowest terms per nanosecond, a level counts 1/q tokens: each nanosecond
//! earns p of them and a token is q of them, both whole, so no rate drifts and nothing is lost
//! however often a bucket is asked.

use core::fmt::Debug;
use core::time::Duration;

use super::{Algorithm, Refunded};
use crate::time::{div_ceil, div_floor, duration};
use crate::wire::{Reader, Wire, Writer};
use crate::{BuildError, ChangeError, Decision, Quota, RestoreError, Tokens};

/// A level in 1/q tokens, in as many bits as the quota needs.
///
/// Signed: a level below zero is a debt, which refunds and debits leave room for.
pub trait Level: Copy + Debug + Default + PartialEq + Send + Sync {
    /// The level after `elapsed` nanoseconds at p each: at most the capacity.
    fn earn(self, elapsed: u64, p: u64, capacity: Self) -> Self;

    /// `cost x q`, for a cost of at most the burst and the largest debt.
    fn of(cost: u64, q: Self) -> Self;

    /// `self - taken` if that is not below zero.
    fn take(self, taken: Self) -> Option<Self>;

    /// `self + given`, which stays at most the capacity.
    fn give(self, given: Self) -> Self;

    /// `self - taken`, which stays at least the floor.
    fn less(self, taken: Self) -> Self;

    /// The level as one number.
    fn wide(self) -> i128;

    /// The level from one number, which is one of this width.
    fn narrow(level: i128) -> Self;

    /// `self + given`, but at most the capacity.
    fn give_up_to(self, given: Self, capacity: Self) -> Self;

    /// Whole tokens, rounded down; 0 for a debt.
    fn whole(self, q: Self) -> u64;

    /// `target - self`, or 0 if that is less.
    fn short_of(self, target: Self) -> u128;
}

/// 64 bits: enough while (burst + largest debt) x q + p < 2^63.
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
        // At most (burst + largest debt) x q, which fits.
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

    #[inline]
    fn less(self, taken: Self) -> Self {
        self.wrapping_sub(taken)
    }

    fn wide(self) -> i128 {
        i128::from(self)
    }

    fn narrow(level: i128) -> Self {
        Self::try_from(level).unwrap_or(if level < 0 { Self::MIN } else { Self::MAX })
    }

    fn give_up_to(self, given: Self, capacity: Self) -> Self {
        // From the floor to the capacity is less than 2^63.
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
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wide {
    high: i64,
    low: u64,
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

    fn less(self, taken: Self) -> Self {
        Self::narrow(self.wide().wrapping_sub(taken.wide()))
    }

    #[inline]
    fn wide(self) -> i128 {
        (i128::from(self.high) << 64) | i128::from(self.low)
    }

    #[inline]
    fn narrow(level: i128) -> Self {
        let low = u64::try_from(level & i128::from(u64::MAX)).unwrap_or(u64::MAX);
        Self {
            high: i64::try_from(level >> 64).unwrap_or(i64::MAX),
            low,
        }
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
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket<V> {
    /// Earned each nanosecond, in 1/q tokens.
    p: u64,
    /// One token.
    q: V,
    /// burst x q.
    capacity: V,
    /// The level of the largest debt: -debt x q.
    floor: V,
    /// What a new client starts with.
    initial: V,
    burst: u64,
    /// A leaky bucket: an admitted call leaves when those ahead of it have drained.
    queue: bool,
}

/// A validated quota in the least width that holds it.
#[derive(Clone, Copy, Debug)]
pub enum AnyWidth {
    /// (burst + largest debt) x q + p < 2^63: 16 bytes a client.
    Narrow(Bucket<i64>),
    /// (burst + largest debt) x q + p < 2^127: 24 bytes a client.
    Wide(Bucket<Wide>),
}

/// A bucket as its user asked for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) quota: Quota,
    /// Tokens that a new client starts with, if not the burst.
    pub(crate) initial: Option<u64>,
    pub(crate) debt: u64,
    /// A leaky bucket.
    pub(crate) queue: bool,
}

impl AnyWidth {
    /// Checks every bound of a quota.
    pub(crate) fn new(asked: Asked) -> Result<Self, BuildError> {
        let quota = asked.quota;
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
        let initial = asked.initial.unwrap_or(burst);
        if initial > burst {
            return Err(BuildError::InitialAboveBurst { initial, burst });
        }
        // What is left of 127 bits, in tokens.
        let most = div_floor(((1 << 127) - 1_u128).saturating_sub(u128::from(p)), q);
        let Some(most_debt) = most.checked_sub(u128::from(burst)) else {
            return Err(BuildError::QuotaTooLarge { quota });
        };
        if u128::from(asked.debt) > most_debt {
            let most = u64::try_from(most_debt).unwrap_or(u64::MAX);
            let debt = asked.debt;
            return Err(BuildError::DebtTooLarge { debt, most });
        }
        // All of these are below 2^127 by what was just found.
        let q = q.cast_signed();
        let units = |tokens: u64| i128::from(tokens).wrapping_mul(q);
        let span = units(burst).wrapping_add(units(asked.debt));
        let numbers = Numbers {
            p,
            q,
            capacity: units(burst),
            floor: units(asked.debt).wrapping_neg(),
            initial: units(initial),
        };
        Ok(if span.wrapping_add(i128::from(p)) < 1 << 63 {
            Self::Narrow(Bucket::new(&numbers, burst, asked.queue))
        } else {
            Self::Wide(Bucket::new(&numbers, burst, asked.queue))
        })
    }

    /// The bucket, if 64 bits will do.
    pub(crate) fn narrow(self) -> Option<Bucket<i64>> {
        match self {
            Self::Narrow(bucket) => Some(bucket),
            Self::Wide(_) => None,
        }
    }

    /// The bucket in 128 bits.
    pub(crate) fn wide(self) -> Bucket<Wide> {
        match self {
            Self::Narrow(bucket) => bucket.widened(),
            Self::Wide(bucket) => bucket,
        }
    }
}

/// The numbers of a bucket in 1/q tokens, of any width.
struct Numbers {
    p: u64,
    q: i128,
    capacity: i128,
    floor: i128,
    initial: i128,
}

impl<V: Level> Bucket<V> {
    fn new(numbers: &Numbers, burst: u64, queue: bool) -> Self {
        Self {
            p: numbers.p,
            q: V::narrow(numbers.q),
            capacity: V::narrow(numbers.capacity),
            floor: V::narrow(numbers.floor),
            initial: V::narrow(numbers.initial),
            burst,
            queue,
        }
    }

    /// The same bucket with levels of another width, which holds them.
    pub(crate) fn widened<W: Level>(&self) -> Bucket<W> {
        let numbers = Numbers {
            p: self.p,
            q: self.q.wide(),
            capacity: self.capacity.wide(),
            floor: self.floor.wide(),
            initial: self.initial.wide(),
        };
        Bucket::new(&numbers, self.burst, self.queue)
    }

    /// `level` of a bucket that counted in other units, at most as far down as this one goes.
    fn level_from(&self, before: &Self, level: V, tokens: Tokens) -> V {
        let (level, capacity, floor) = (level.wide(), self.capacity.wide(), self.floor.wide());
        let converted = match tokens {
            Tokens::Kept => scaled(level, self.q.wide(), before.q.wide()),
            Tokens::Proportional => scaled(level, capacity, before.capacity.wide()),
            Tokens::Reset => Some(self.initial.wide()),
        };
        // What is beyond 127 bits is beyond either bound.
        let beyond = if level < 0 { floor } else { capacity };
        V::narrow(converted.unwrap_or(beyond).clamp(floor, capacity))
    }

    #[inline]
    fn level_at(&self, state: &BucketState<V>, now: u64) -> V {
        state.level.earn(
            now.saturating_sub(state.last_attempt),
            self.p,
            self.capacity,
        )
    }

    /// Who was told to wait for a full bucket must not have been forgotten, and so have its initial
    /// tokens again, at the very instant at which it returns.
    fn grace(&self) -> u128 {
        u128::from(self.initial != self.capacity)
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

    fn queues(&self) -> bool {
        self.queue
    }

    fn settles_after(&self) -> Option<u64> {
        let fills_after = self.time_to_earn(self.floor.short_of(self.capacity));
        u64::try_from(fills_after.saturating_add(self.grace())).ok()
    }

    #[inline]
    fn fresh(&self, now: u64) -> BucketState<V> {
        BucketState {
            level: self.initial,
            last_attempt: now,
        }
    }

    #[inline]
    fn last_attempt(state: &BucketState<V>) -> u64 {
        state.last_attempt
    }

    fn settled_at(&self, state: &BucketState<V>) -> u64 {
        let settles_in = self.time_to_earn(state.level.short_of(self.capacity));
        let settles_in = u64::try_from(settles_in.saturating_add(self.grace())).unwrap_or(u64::MAX);
        state.last_attempt.saturating_add(settles_in)
    }

    fn touch(&self, state: &mut BucketState<V>, now: u64) {
        *state = BucketState {
            level: self.level_at(state, now),
            last_attempt: now,
        };
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

    fn debit(&self, state: &mut BucketState<V>, tokens: u64, now: u64) -> u64 {
        self.touch(state, now);
        let room = state.level.less(self.floor).whole(self.q);
        let taken = tokens.min(room);
        state.level = state.level.less(V::of(taken, self.q));
        taken
    }

    fn may_become(&self, next: &Self, _: Tokens) -> Result<(), ChangeError> {
        if self.queue == next.queue {
            Ok(())
        } else {
            Err(ChangeError::OtherAlgorithm)
        }
    }

    fn converted(
        &self,
        before: &Self,
        state: &BucketState<V>,
        tokens: Tokens,
        _: u64,
    ) -> BucketState<V> {
        BucketState {
            level: self.level_from(before, state.level, tokens),
            last_attempt: state.last_attempt,
        }
    }

    /// What is added at the last attempt is there at any later time, and what the bucket cannot
    /// hold is lost at either.
    fn refund(&self, state: &mut BucketState<V>, tokens: u64, of: Refunded, now: u64) {
        // No more than lies between the largest debt and a full bucket.
        let most = self.capacity.less(self.floor).whole(self.q);
        let mut given = V::of(tokens.min(most), self.q);
        if let Refunded::Aged(taken_at) = of {
            // What such a bucket lacks still of being full, that lacked as much then.
            let lacked = self.capacity.less(given);
            let lacks = lacked.earn(now.saturating_sub(taken_at), self.p, self.capacity);
            given = self.capacity.less(lacks);
        }
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

impl<V: Level> Wire for Bucket<V> {
    /// In either width: which one is the reader's.
    const KIND: u8 = 1;

    fn write(&self, to: &mut Writer) {
        to.u64(self.p);
        to.u64(self.burst);
        to.u8(u8::from(self.queue));
        for level in [self.q, self.capacity, self.floor, self.initial] {
            to.i128(level.wide());
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, RestoreError> {
        let (p, burst, queue) = (from.u64()?, from.u64()?, from.bool()?);
        let numbers = Numbers {
            p,
            q: from.i128()?,
            capacity: from.i128()?,
            floor: from.i128()?,
            initial: from.i128()?,
        };
        let Numbers {
            q,
            capacity,
            floor,
            initial,
            ..
        } = numbers;
        let is_whole = |level: i128, of: u64| {
            q.checked_mul(i128::from(of)) == Some(level) && p > 0 && q > 0 && burst > 0
        };
        let in_order = floor <= 0 && (0..=capacity).contains(&initial);
        let span = capacity.checked_sub(floor).filter(|_| in_order);
        let span = span.and_then(|span| span.checked_add(i128::from(p)));
        if !is_whole(capacity, burst) || span.is_none() {
            return Err(RestoreError::Damaged);
        }
        let fits = |level: i128| V::narrow(level).wide() == level;
        if !span.is_some_and(fits) || ![q, capacity, floor].into_iter().all(fits) {
            return Err(ChangeError::NeedsMoreBits.into());
        }
        Ok(Self::new(&numbers, burst, queue))
    }

    fn write_state(state: &BucketState<V>, to: &mut Writer) {
        to.u64(state.last_attempt);
        to.i128(state.level.wide());
    }

    fn read_state(&self, from: &mut Reader<'_>) -> Result<BucketState<V>, RestoreError> {
        let last_attempt = from.u64()?;
        let level = from.i128()?;
        let (floor, capacity) = (self.floor.wide(), self.capacity.wide());
        if !(floor..=capacity).contains(&level) {
            return Err(RestoreError::Damaged);
        }
        let level = V::narrow(level);
        Ok(BucketState {
            level,
            last_attempt,
        })
    }

    fn set_back(state: &mut BucketState<V>, by: u64) {
        state.last_attempt = state.last_attempt.saturating_sub(by);
    }
}

/// `level x to / from`, rounded down (a debt away from zero); `None` beyond 127 bits.
///
/// `to` and `from` are positive.
fn scaled(level: i128, to: i128, from: i128) -> Option<i128> {
    let whole = level.checked_div_euclid(from)?;
    let rest = level.checked_rem_euclid(from)?;
    let part = mul_div_floor(
        rest.cast_unsigned(),
        to.cast_unsigned(),
        from.cast_unsigned(),
    );
    whole.checked_mul(to)?.checked_add_unsigned(part)
}

/// `a x b / d`, rounded down, for an `a` below `d`: bit by bit of `b`, since the product may take
/// 256 bits.
fn mul_div_floor(a: u128, b: u128, d: u128) -> u128 {
    // Of `a` times the bits of `b` so far: how many times d, and what is left, below d.
    let (mut quotient, mut rest) = (0_u128, 0_u128);
    for bit in (0..u128::BITS.wrapping_sub(b.leading_zeros())).rev() {
        quotient = quotient.wrapping_mul(2);
        for more in [rest, if (b >> bit) & 1 == 1 { a } else { 0 }] {
            // rest + more might not fit: compared, and subtracted, the other way round.
            let room = d.wrapping_sub(rest);
            if more >= room {
                quotient = quotient.wrapping_add(1);
                rest = more.wrapping_sub(room);
            } else {
                rest = rest.wrapping_add(more);
            }
        }
    }
    quotient
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_of_256_bits_is_divided_exactly() {
        assert_eq!(mul_div_floor(0, 7, 5), 0);
        assert_eq!(mul_div_floor(4, 7, 5), 5);
        assert_eq!(mul_div_floor(4, 0, 5), 0);
        let large = (1_u128 << 126) + 12_345;
        assert_eq!(mul_div_floor(large - 1, large, large), large - 1);
        assert_eq!(mul_div_floor(large / 3, 3, large), 3 * (large / 3) / large);
        // (2^126 - 1)(2^126 - 3) / (2^126 - 2) is a shade less than 2^126 - 2.
        let d = (1_u128 << 126) - 2;
        assert_eq!(mul_div_floor(d - 1, d + 1, d), d - 1);
        for a in 0..20 {
            for b in 0..50 {
                for d in a + 1..30 {
                    assert_eq!(mul_div_floor(a, b, d), a * b / d, "{a} x {b} / {d}");
                }
            }
        }
    }

    #[test]
    fn a_scaled_debt_rounds_away_from_zero() {
        assert_eq!(scaled(7, 1, 2), Some(3));
        assert_eq!(scaled(-7, 1, 2), Some(-4));
        assert_eq!(scaled(-7, 1, 7), Some(-1));
        assert_eq!(scaled(i128::MAX, 3, 1), None);
    }
}
