//! The sliding window counter: two counters that stand in for a log.

use core::time::Duration;

use super::{Algorithm, Refunded, count_may_be, positive, read_window, window_ns, with_debt};
use crate::time::{div_ceil, div_floor, duration, product};
use crate::wire::{Reader, Wire, Writer};
use crate::{BuildError, ChangeError, Decision, RestoreError, Tokens};

/// At most `limit` tokens in about every stretch of one window, from two counters: the aligned
/// window that `now` falls in, and the one before it, weighed by the share of it that a window
/// ending now still overlaps. The weighing is compared exactly, never rounded; what is approximate
/// is its assumption that the last window's calls were spread evenly. 24 bytes a client.
///
/// Source: Cloudflare, "How we built rate limiting capable of scaling to millions of domains",
/// 2017.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, SlidingWindowCounter, Timestamp};
///
/// let counter = SlidingWindowCounter::new(1, Duration::from_nanos(10));
/// let limiter = Limiter::builder(counter).build()?;
/// assert!(limiter.try_acquire_at(1, Timestamp::from_nanos(0))?.is_allowed());
/// // Half of the last window still counts: 0.5 + 1 is more than 1.
/// assert!(!limiter.try_acquire_at(1, Timestamp::from_nanos(15))?.is_allowed());
/// assert!(limiter.try_acquire_at(1, Timestamp::from_nanos(20))?.is_allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingWindowCounter {
    limit: u64,
    window: Duration,
}

impl SlidingWindowCounter {
    /// At most `limit` tokens in about every stretch of `window`. Both are checked where a limiter
    /// is built.
    #[must_use]
    pub const fn new(limit: u64, window: Duration) -> Self {
        Self { limit, window }
    }

    pub(crate) fn validated(self, debt: u64) -> Result<SlidingWindowCounters, BuildError> {
        let limit = positive(self.limit)?;
        Ok(SlidingWindowCounters {
            limit,
            most: with_debt(limit, debt, u64::MAX)?,
            window_ns: window_ns(self.window)?,
        })
    }
}

/// A validated sliding window counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlidingWindowCounters {
    limit: u64,
    /// The limit and the largest debt.
    most: u64,
    window_ns: u64,
}

/// A client's counters, as of the window that its last attempt fell in.
#[derive(Clone, Copy, Debug, Default)]
pub struct SlidingWindowCounterState {
    /// At most the limit and the largest debt, of this limit or of one before it.
    previous: u64,
    /// As `previous`.
    current: u64,
    last_attempt: u64,
}

/// The counters as seen from some instant.
struct Seen {
    previous: u64,
    current: u64,
    /// Nanoseconds until the current window closes; at least 1.
    closes_in: u64,
}

impl SlidingWindowCounters {
    fn seen_at(&self, state: &SlidingWindowCounterState, now: u64) -> Seen {
        let window_of = |time: u64| time.checked_div(self.window_ns).unwrap_or(0);
        let into = now.checked_rem(self.window_ns).unwrap_or(0);
        let (previous, current) = match window_of(now).wrapping_sub(window_of(state.last_attempt)) {
            0 => (state.previous, state.current),
            1 => (state.current, 0),
            _ => (0, 0),
        };
        Seen {
            previous,
            current,
            closes_in: self.window_ns.saturating_sub(into),
        }
    }

    /// `previous x closes_in / window + current + cost <= limit`, without dividing.
    fn admits(&self, seen: &Seen, cost: u64) -> bool {
        let left = self.limit.saturating_sub(seen.current).checked_sub(cost);
        left.is_some_and(|left| {
            product(seen.previous, seen.closes_in) <= product(left, self.window_ns)
        })
    }

    /// Whole tokens used, rounded up, so that what is left rounds down.
    fn used(&self, seen: &Seen) -> u64 {
        let window_ns = u128::from(self.window_ns);
        let weighed = div_ceil(product(seen.previous, seen.closes_in), window_ns);
        let weighed = u64::try_from(weighed).unwrap_or(u64::MAX);
        seen.current.saturating_add(weighed)
    }

    /// Whole tokens left.
    fn left(&self, seen: &Seen) -> u64 {
        self.limit.saturating_sub(self.used(seen))
    }

    /// The counters as seen now, the last attempt, with so many more tokens taken.
    fn with_taken(seen: &Seen, tokens: u64, now: u64) -> SlidingWindowCounterState {
        SlidingWindowCounterState {
            previous: seen.previous,
            current: seen.current.saturating_add(tokens),
            last_attempt: now,
        }
    }

    /// Nanoseconds until nothing counts any more.
    fn settles_in(&self, seen: &Seen) -> u128 {
        let closes_in = u128::from(seen.closes_in);
        match (seen.current, seen.previous) {
            (0, 0) => 0,
            (0, _) => closes_in,
            _ => closes_in.saturating_add(u128::from(self.window_ns)),
        }
    }

    /// The largest time to the current window's end at which `counted` calls of the window before
    /// it weigh at most `left`.
    fn overlap_for(&self, counted: u64, left: u64) -> u64 {
        if counted <= left {
            return self.window_ns;
        }
        // Rounded down: a longer overlap would weigh more. Below the window, since left < counted.
        let overlap = div_floor(product(left, self.window_ns), u128::from(counted));
        u64::try_from(overlap).unwrap_or(self.window_ns)
    }

    /// The least wait after which `cost` (at most the limit) passes.
    fn retry_after_ns(&self, seen: &Seen, cost: u64) -> u128 {
        let closes_in = u128::from(seen.closes_in);
        if let Some(left) = self.limit.saturating_sub(seen.current).checked_sub(cost) {
            // The last window loses weight until it fits; with nothing left, at this one's end,
            // where the current calls become the last window's and fit for the same reason.
            return closes_in.saturating_sub(u128::from(self.overlap_for(seen.previous, left)));
        }
        let left = self.limit.saturating_sub(cost);
        let overlap = self.overlap_for(seen.current, left);
        closes_in.saturating_add(u128::from(self.window_ns.saturating_sub(overlap)))
    }
}

impl Algorithm for SlidingWindowCounters {
    type State = SlidingWindowCounterState;

    fn burst(&self) -> u64 {
        self.limit
    }

    fn settles_after(&self) -> Option<u64> {
        self.window_ns.checked_mul(2)
    }

    fn fresh(&self, now: u64) -> SlidingWindowCounterState {
        SlidingWindowCounterState {
            previous: 0,
            current: 0,
            last_attempt: now,
        }
    }

    fn last_attempt(state: &SlidingWindowCounterState) -> u64 {
        state.last_attempt
    }

    fn settled_at(&self, state: &SlidingWindowCounterState) -> u64 {
        let settles_in = self.settles_in(&self.seen_at(state, state.last_attempt));
        let settles_in = u64::try_from(settles_in).unwrap_or(u64::MAX);
        state.last_attempt.saturating_add(settles_in)
    }

    fn touch(&self, state: &mut SlidingWindowCounterState, now: u64) {
        *state = Self::with_taken(&self.seen_at(state, now), 0, now);
    }

    fn attempt(&self, state: &mut SlidingWindowCounterState, cost: u64, now: u64) -> bool {
        let seen = self.seen_at(state, now);
        let admitted = self.admits(&seen, cost);
        *state = Self::with_taken(&seen, if admitted { cost } else { 0 }, now);
        admitted
    }

    fn debit(&self, state: &mut SlidingWindowCounterState, tokens: u64, now: u64) -> u64 {
        let seen = self.seen_at(state, now);
        let taken = tokens.min(self.most.saturating_sub(self.used(&seen)));
        *state = Self::with_taken(&seen, taken, now);
        taken
    }

    fn may_become(&self, _: &Self, tokens: Tokens) -> Result<(), ChangeError> {
        count_may_be(tokens)
    }

    /// The counters stay. Of windows of another length, all that counts is put in the one that
    /// `at` falls in.
    fn converted(
        &self,
        before: &Self,
        state: &SlidingWindowCounterState,
        tokens: Tokens,
        at: u64,
    ) -> SlidingWindowCounterState {
        if tokens == Tokens::Reset {
            return self.fresh(state.last_attempt);
        }
        let (previous, current) = if before.window_ns == self.window_ns {
            (state.previous, state.current)
        } else {
            (0, before.used(&before.seen_at(state, at)))
        };
        SlidingWindowCounterState {
            previous,
            current,
            last_attempt: state.last_attempt,
        }
    }

    fn remaining(&self, state: &SlidingWindowCounterState, now: u64) -> u64 {
        self.left(&self.seen_at(state, now))
    }

    fn refund(&self, state: &mut SlidingWindowCounterState, tokens: u64, of: Refunded, now: u64) {
        // Counted from the last attempt, which is no earlier than any call that was admitted.
        let window_of = |time: u64| time.checked_div(self.window_ns).unwrap_or(0);
        let taken_in = window_of(of.taken_at().unwrap_or(now));
        match window_of(state.last_attempt).checked_sub(taken_in) {
            Some(0) => state.current = state.current.saturating_sub(tokens),
            Some(1) => state.previous = state.previous.saturating_sub(tokens),
            _ => {}
        }
    }

    fn report(
        &self,
        state: &SlidingWindowCounterState,
        cost: u64,
        now: u64,
        admitted: bool,
    ) -> Decision {
        let seen = self.seen_at(state, now);
        let remaining = self.left(&seen);
        let reset_after = duration(self.settles_in(&seen));
        if admitted {
            Decision::Allowed {
                remaining,
                delay: Duration::ZERO,
                reset_after,
            }
        } else {
            let retry_after = duration(self.retry_after_ns(&seen, cost));
            Decision::Limited {
                remaining,
                retry_after,
                reset_after,
            }
        }
    }
}

impl Wire for SlidingWindowCounters {
    const KIND: u8 = 4;

    fn write(&self, to: &mut Writer) {
        to.u64(self.limit);
        to.u64(self.most);
        to.u64(self.window_ns);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, RestoreError> {
        let (limit, most, window_ns) = read_window(from)?;
        Ok(Self {
            limit,
            most,
            window_ns,
        })
    }

    fn write_state(state: &SlidingWindowCounterState, to: &mut Writer) {
        to.u64(state.last_attempt);
        to.u64(state.previous);
        to.u64(state.current);
    }

    fn read_state(&self, from: &mut Reader<'_>) -> Result<SlidingWindowCounterState, RestoreError> {
        Ok(SlidingWindowCounterState {
            last_attempt: from.u64()?,
            previous: from.u64()?,
            current: from.u64()?,
        })
    }

    fn set_back(state: &mut SlidingWindowCounterState, by: u64) {
        state.last_attempt = state.last_attempt.saturating_sub(by);
    }
}
