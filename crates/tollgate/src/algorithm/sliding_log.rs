//! The sliding log: every admitted call counts until it is one window old.

use core::time::Duration;
use std::collections::VecDeque;

use super::{Algorithm, Refunded, count_may_be, positive, read_window, window_ns, with_debt};
use crate::time::duration;
use crate::wire::{Reader, Wire, Writer};
use crate::{BuildError, ChangeError, Decision, RestoreError, Tokens};

/// The most entries that a client's log may come to hold.
const MOST_ENTRIES: u64 = 65_536;

/// At most `limit` tokens in *every* stretch of one window: each admitted call is remembered until
/// it is exactly `window` old. Exact, and paid for in memory: up to 32 bytes a client for each
/// admitted call in the window, hence a limit of at most 65,536; and a refusal looks at as many
/// calls as have to leave first.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, SlidingLog, Timestamp};
///
/// let limiter = Limiter::builder(SlidingLog::new(1, Duration::from_nanos(10))).build()?;
/// assert!(limiter.try_acquire_at(1, Timestamp::from_nanos(5))?.is_allowed());
/// assert!(!limiter.try_acquire_at(1, Timestamp::from_nanos(14))?.is_allowed());
/// assert!(limiter.try_acquire_at(1, Timestamp::from_nanos(15))?.is_allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingLog {
    limit: u64,
    window: Duration,
}

impl SlidingLog {
    /// At most `limit` tokens (from 1 to 65,536) in every stretch of `window`. Both are checked
    /// where a limiter is built.
    #[must_use]
    pub const fn new(limit: u64, window: Duration) -> Self {
        Self { limit, window }
    }

    pub(crate) fn validated(self, debt: u64) -> Result<SlidingLogs, BuildError> {
        let limit = positive(self.limit)?;
        if limit > MOST_ENTRIES {
            return Err(BuildError::LimitTooLarge {
                limit,
                most: MOST_ENTRIES,
            });
        }
        Ok(SlidingLogs {
            limit,
            most: with_debt(limit, debt, MOST_ENTRIES)?,
            window_ns: window_ns(self.window)?,
        })
    }
}

/// A validated sliding log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlidingLogs {
    limit: u64,
    /// The limit and the largest debt.
    most: u64,
    window_ns: u64,
}

/// A client's log.
#[derive(Clone, Debug, Default)]
pub struct SlidingLogState {
    /// (time, tokens) of admitted calls, the oldest first; calls of one instant share an entry, so
    /// there are at most as many entries as tokens, and tokens never exceed the limit and the
    /// largest debt, of this limit or of one before it.
    entries: VecDeque<(u64, u64)>,
    /// The tokens of all entries.
    used: u64,
    last_attempt: u64,
}

impl SlidingLogs {
    fn counts(&self, admitted_at: u64, now: u64) -> bool {
        now.saturating_sub(admitted_at) < self.window_ns
    }

    /// Nanoseconds until a call admitted at `admitted_at` has left.
    fn leaves_after(&self, admitted_at: u64, now: u64) -> u64 {
        self.window_ns
            .saturating_sub(now.saturating_sub(admitted_at))
    }

    /// The entries that no longer count: a client's next attempt drops them.
    fn left<'a>(
        &self,
        state: &'a SlidingLogState,
        now: u64,
    ) -> impl Iterator<Item = &'a (u64, u64)> {
        state
            .entries
            .iter()
            .take_while(move |entry| !self.counts(entry.0, now))
    }

    /// Notes tokens taken at `now`, the last attempt.
    fn note(state: &mut SlidingLogState, tokens: u64, now: u64) {
        state.used = state.used.saturating_add(tokens);
        match state.entries.back_mut().filter(|entry| entry.0 == now) {
            Some((_, noted)) => *noted = noted.saturating_add(tokens),
            None => state.entries.push_back((now, tokens)),
        }
    }

    fn used(&self, state: &SlidingLogState, now: u64) -> u64 {
        let left = self.left(state, now).map(|entry| entry.1).sum();
        state.used.saturating_sub(left)
    }
}

impl Algorithm for SlidingLogs {
    type State = SlidingLogState;

    fn burst(&self) -> u64 {
        self.limit
    }

    fn settles_after(&self) -> Option<u64> {
        Some(self.window_ns)
    }

    fn fresh(&self, now: u64) -> SlidingLogState {
        SlidingLogState {
            entries: VecDeque::new(),
            used: 0,
            last_attempt: now,
        }
    }

    fn last_attempt(state: &SlidingLogState) -> u64 {
        state.last_attempt
    }

    fn settled_at(&self, state: &SlidingLogState) -> u64 {
        let newest = state.entries.back();
        let leaves_at = newest.map_or(0, |entry| entry.0.saturating_add(self.window_ns));
        // Of a banned client, and of a window that was longer, it may have left before.
        leaves_at.max(state.last_attempt)
    }

    fn touch(&self, state: &mut SlidingLogState, now: u64) {
        state.last_attempt = now;
        while let Some((_, tokens)) = state
            .entries
            .pop_front_if(|entry| !self.counts(entry.0, now))
        {
            state.used = state.used.saturating_sub(tokens);
        }
    }

    fn attempt(&self, state: &mut SlidingLogState, cost: u64, now: u64) -> bool {
        self.touch(state, now);
        let admitted = cost <= self.limit.saturating_sub(state.used);
        if admitted {
            Self::note(state, cost, now);
        }
        admitted
    }

    fn debit(&self, state: &mut SlidingLogState, tokens: u64, now: u64) -> u64 {
        self.touch(state, now);
        let taken = tokens.min(self.most.saturating_sub(state.used));
        if taken > 0 {
            Self::note(state, taken, now);
        }
        taken
    }

    fn may_become(&self, _: &Self, tokens: Tokens) -> Result<(), ChangeError> {
        count_may_be(tokens)
    }

    /// Entries that still count stay, also beyond the limit, and leave when the new window says so.
    fn converted(
        &self,
        _: &Self,
        state: &SlidingLogState,
        tokens: Tokens,
        _: u64,
    ) -> SlidingLogState {
        match tokens {
            Tokens::Reset => self.fresh(state.last_attempt),
            Tokens::Kept | Tokens::Proportional => state.clone(),
        }
    }

    fn remaining(&self, state: &SlidingLogState, now: u64) -> u64 {
        self.limit.saturating_sub(self.used(state, now))
    }

    /// An entry of which nothing is left goes, so entries stay at most as many as tokens.
    fn refund(&self, state: &mut SlidingLogState, tokens: u64, of: Refunded, now: u64) {
        let of_the_call = |taken_at| {
            let at = state
                .entries
                .binary_search_by_key(&taken_at, |entry| entry.0);
            at.map_or(0..0, |at| at..at.saturating_add(1))
        };
        let range = of.taken_at().map_or(0..state.entries.len(), of_the_call);
        let mut owed = tokens;
        let counted = |at: &u64| self.counts(*at, now);
        for (_, taken) in state
            .entries
            .range_mut(range)
            .rev()
            .take_while(|entry| counted(&entry.0))
        {
            let given = owed.min(*taken);
            *taken = taken.saturating_sub(given);
            owed = owed.saturating_sub(given);
            state.used = state.used.saturating_sub(given);
            if owed == 0 {
                break;
            }
        }
        state.entries.retain(|entry| entry.1 > 0);
    }

    fn report(&self, state: &SlidingLogState, cost: u64, now: u64, admitted: bool) -> Decision {
        let remaining = self.remaining(state, now);
        let newest = state
            .entries
            .back()
            .filter(|entry| self.counts(entry.0, now));
        let reset_after = newest.map_or(0, |entry| self.leaves_after(entry.0, now));
        let reset_after = duration(u128::from(reset_after));
        if admitted {
            return Decision::Allowed {
                remaining,
                delay: Duration::ZERO,
                reset_after,
            };
        }
        // The oldest leave first: wait for the one with which enough has left.
        let used = self.used(state, now);
        let mut owed = used.saturating_sub(self.limit.saturating_sub(cost));
        let enough = state
            .entries
            .iter()
            .skip(self.left(state, now).count())
            .find(|entry| {
                owed = owed.saturating_sub(entry.1);
                owed == 0
            });
        let retry_after = enough.map_or(0, |entry| self.leaves_after(entry.0, now));
        Decision::Limited {
            remaining,
            retry_after: duration(u128::from(retry_after)),
            reset_after,
        }
    }
}

impl Wire for SlidingLogs {
    const KIND: u8 = 3;

    fn write(&self, to: &mut Writer) {
        to.u64(self.limit);
        to.u64(self.most);
        to.u64(self.window_ns);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, RestoreError> {
        let (limit, most, window_ns) = read_window(from)?;
        if most > MOST_ENTRIES {
            return Err(RestoreError::Damaged);
        }
        Ok(Self {
            limit,
            most,
            window_ns,
        })
    }

    fn write_state(state: &SlidingLogState, to: &mut Writer) {
        to.u64(state.last_attempt);
        to.usize(state.entries.len());
        for (taken_at, tokens) in &state.entries {
            to.u64(*taken_at);
            to.u64(*tokens);
        }
    }

    fn read_state(&self, from: &mut Reader<'_>) -> Result<SlidingLogState, RestoreError> {
        let last_attempt = from.u64()?;
        let entries = from.u64()?;
        if entries > MOST_ENTRIES {
            return Err(RestoreError::Damaged);
        }
        let mut state = self.fresh(last_attempt);
        for _ in 0..entries {
            let taken_at = from.u64()?;
            let tokens = from.u64()?;
            let is_next = state
                .entries
                .back()
                .is_none_or(|latest| latest.0 <= taken_at)
                && taken_at <= last_attempt;
            if !is_next || tokens == 0 || tokens > MOST_ENTRIES {
                return Err(RestoreError::Damaged);
            }
            Self::note(&mut state, tokens, taken_at);
        }
        Ok(state)
    }

    fn set_back(state: &mut SlidingLogState, by: u64) {
        state.last_attempt = state.last_attempt.saturating_sub(by);
        for (taken_at, _) in &mut state.entries {
            *taken_at = taken_at.saturating_sub(by);
        }
    }
}
