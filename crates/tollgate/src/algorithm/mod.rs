//! The algorithms: state and arithmetic, with time as an argument. No clock, no lock, no atomics,
//! no I/O. Whoever holds a state, one limiter or a shard of clients, calls the same functions.

pub(crate) mod bucket;
pub(crate) mod fixed_window;
pub(crate) mod leaky_bucket;
pub(crate) mod sliding_log;
pub(crate) mod sliding_window_counter;
pub(crate) mod token_bucket;

use core::fmt::Debug;
use core::time::Duration;

use crate::wire::Reader;
use crate::{BuildError, ChangeError, Decision, RestoreError, Tokens};

/// Of what tokens are given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refunded {
    /// Of the latest calls.
    Latest,
    /// Of one call, as if it had been made and taken back just now.
    Call(u64),
    /// Of one call, as if it had never been made: without what would have spilled meanwhile.
    Aged(u64),
}

impl Refunded {
    /// When the call was admitted.
    pub(crate) fn taken_at(self) -> Option<u64> {
        match self {
            Self::Latest => None,
            Self::Call(taken_at) | Self::Aged(taken_at) => Some(taken_at),
        }
    }
}

/// One validated limit, and how it judges calls against a client's state.
///
/// Times handed to one state never run back: whoever holds it sees to that.
pub trait Algorithm: Clone + Debug + PartialEq + Send + Sync {
    /// What is kept for a client. The default fills vacant places and means nothing.
    type State: Clone + Debug + Default + Send;

    /// The most that one call can take.
    fn burst(&self) -> u64;

    /// Whether an admitted call has to wait for those ahead of it. The time until a client is as
    /// new is the delay of its next call then.
    fn queues(&self) -> bool {
        false
    }

    /// Nanoseconds after a client's last attempt by which no past call counts any more, so that
    /// forgetting it then changes no answer. `None` if that is longer than time can run.
    fn settles_after(&self) -> Option<u64>;

    /// A client first seen at `now`.
    fn fresh(&self, now: u64) -> Self::State;

    /// The time of the client's last attempt.
    fn last_attempt(state: &Self::State) -> u64;

    /// The first instant at which nothing tells the client from a new one, if it makes no more
    /// attempts.
    fn settled_at(&self, state: &Self::State) -> u64;

    /// An attempt that takes nothing: brings the state to `now`, which becomes the last attempt.
    fn touch(&self, state: &mut Self::State, now: u64);

    /// Takes `cost` (from 1 to the burst) if that many tokens are there, else nothing; either way
    /// `now` becomes the last attempt.
    fn attempt(&self, state: &mut Self::State, cost: u64, now: u64) -> bool;

    /// Whole tokens that a call at `now` could take, rounded down.
    fn remaining(&self, state: &Self::State, now: u64) -> u64;

    /// Takes as many tokens as there are, up to `most` (at least 1); returns how many. An attempt
    /// also if there are none.
    fn attempt_up_to(&self, state: &mut Self::State, most: u64, now: u64) -> u64 {
        let cost = self.remaining(state, now).min(most).max(1);
        if self.attempt(state, cost, now) {
            cost
        } else {
            0
        }
    }

    /// Takes `tokens` (at least 1) whether they are there or not, but no more than leaves the
    /// largest debt; returns how many. An attempt.
    fn debit(&self, state: &mut Self::State, tokens: u64, now: u64) -> u64;

    /// Whether what clients have done under this limit can be told in terms of another.
    fn may_become(&self, next: &Self, tokens: Tokens) -> Result<(), ChangeError>;

    /// What a client's state under `before`, just touched at `at`, is under this limit.
    fn converted(&self, before: &Self, state: &Self::State, tokens: Tokens, at: u64)
    -> Self::State;

    /// Gives back `tokens`, as far as they still count at `now`: at most until nothing counts. No
    /// attempt: the client goes idle when it would have.
    fn refund(&self, state: &mut Self::State, tokens: u64, of: Refunded, now: u64);

    /// The answer to an attempt of `cost` just made at `now`, or, with a cost of 0, to a look.
    fn report(&self, state: &Self::State, cost: u64, now: u64, admitted: bool) -> Decision;

    /// An attempt of `cost` that is to be delayed by at most `max_delay`: its answer, how long
    /// after it the same one would be allowed if it was, and whether it was.
    #[inline]
    fn attempt_within(
        &self,
        state: &mut Self::State,
        cost: u64,
        max_delay: Duration,
        now: u64,
    ) -> (Decision, Duration, bool) {
        if self.queues() {
            let told = self.foretell(state, cost, max_delay, now);
            if !told.is_allowed() {
                self.touch(state, now);
                return (told, Duration::ZERO, false);
            }
        }
        let admitted = self.attempt(state, cost, now);
        let decision = self.report(state, cost, now, admitted);
        let passes_again = !self.queues() && decision.remaining() >= cost;
        let again_after = if admitted && !passes_again {
            let next = self.foretell(state, cost, max_delay, now);
            next.retry_after().unwrap_or_default()
        } else {
            Duration::ZERO
        };
        (decision, again_after, admitted)
    }

    /// What an attempt of `cost` would be told that is to be delayed by at most `max_delay`,
    /// without anything being taken: what there is, or its refusal.
    fn foretell(&self, state: &Self::State, cost: u64, max_delay: Duration, now: u64) -> Decision {
        let decision = if self.remaining(state, now) >= cost {
            self.report(state, 0, now, true)
        } else {
            self.report(state, cost, now, false)
        };
        let reset_after = decision.reset_after();
        let too_long = reset_after.saturating_sub(max_delay);
        if !self.queues() || cost == 0 || too_long.is_zero() {
            return decision;
        }
        // Each nanosecond takes one off the delay, however large the cost.
        Decision::Limited {
            remaining: 0,
            retry_after: too_long.max(decision.retry_after().unwrap_or_default()),
            reset_after,
        }
    }
}

/// The window's length in nanoseconds, if it is one that time can reach the end of.
pub(crate) fn window_ns(window: Duration) -> Result<u64, BuildError> {
    let longest = Duration::from_nanos(u64::MAX);
    match u64::try_from(window.as_nanos()) {
        Ok(0) => Err(BuildError::WindowIsZero),
        Ok(window_ns) => Ok(window_ns),
        Err(_) => Err(BuildError::WindowTooLong { window, longest }),
    }
}

/// The limit, if it admits anything.
pub(crate) fn positive(limit: u64) -> Result<u64, BuildError> {
    if limit == 0 {
        Err(BuildError::LimitIsZero)
    } else {
        Ok(limit)
    }
}

/// The most that may be counted: the limit and the largest debt, if that is within `bound`.
pub(crate) fn with_debt(limit: u64, debt: u64, bound: u64) -> Result<u64, BuildError> {
    let most = bound.saturating_sub(limit);
    if debt > most {
        return Err(BuildError::DebtTooLarge { debt, most });
    }
    Ok(limit.saturating_add(debt))
}

/// Windows keep their count or lose it; they have no part of a bucket to keep.
pub(crate) fn count_may_be(tokens: Tokens) -> Result<(), ChangeError> {
    match tokens {
        Tokens::Kept | Tokens::Reset => Ok(()),
        Tokens::Proportional => Err(ChangeError::NotProportional),
    }
}

/// The limit, the most with the largest debt, and the length of a window, if they are possible.
pub(crate) fn read_window(from: &mut Reader<'_>) -> Result<(u64, u64, u64), RestoreError> {
    let (limit, most, window_ns) = (from.u64()?, from.u64()?, from.u64()?);
    if limit == 0 || most < limit || window_ns == 0 {
        return Err(RestoreError::Damaged);
    }
    Ok((limit, most, window_ns))
}
