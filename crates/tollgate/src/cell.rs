//! One bucket shared by threads: the same state and arithmetic as a client's, under one lock.

use core::fmt::Debug;
use core::time::Duration;

use crate::algorithm::bucket::{AnyWidth, Bucket, Wide};
use crate::algorithm::fixed_window::FixedWindows;
use crate::algorithm::sliding_log::SlidingLogs;
use crate::algorithm::sliding_window_counter::SlidingWindowCounters;
use crate::algorithm::{Algorithm, Refunded};
use crate::charge::unique;
use crate::keyed::store::{Debited, banned, debited};
use crate::limit::AnyValid;
use crate::statistics::{Counts, Statistics};
use crate::sync::{Mutex, lock};
use crate::together::{Ask, Lock, Others, Party, Verdict, shortest_delay};
use crate::wire::{Reader, Wire, Writer};
use crate::{ChangeError, Decision, RestoreError, Tokens};

/// One bucket.
pub trait Cell: Debug + Send + Sync {
    /// A limit that this bucket can be held to.
    type Valid;
    /// The most that one call can take.
    fn burst(&self) -> u64;
    /// Takes one token.
    fn allow(&self, now: u64) -> bool;
    /// Takes `cost` tokens, or looks at 0.
    #[inline]
    fn acquire(&self, cost: u64, now: u64) -> Decision {
        let (decision, _) = self.charge(cost, now);
        decision
    }
    /// Takes as many tokens as there are, up to `most`, which is at least 1; returns how many.
    fn acquire_up_to(&self, most: u64, now: u64) -> u64;
    /// The same as `acquire`, and the time at which it was decided.
    fn charge(&self, cost: u64, now: u64) -> (Decision, u64);
    /// Takes tokens (at least 1) whether they are there or not.
    fn debit(&self, tokens: u64, now: u64) -> Debited;
    /// Refuses all until then, or until the ban ends if that is later.
    fn ban(&self, until: u64, now: u64);
    /// Starts afresh, ban and all.
    fn reset(&self);
    /// Gives back tokens that were taken at `taken_at`, or of the latest ones.
    fn refund(&self, tokens: u64, of: Refunded, now: u64);
    /// Holds the bucket to another limit.
    fn change(&self, limit: Self::Valid, tokens: Tokens, now: u64) -> Result<(), ChangeError>;
    /// The same bucket, as one of several that are asked in one call.
    fn party(&self) -> &dyn Party;
    /// Writes the bucket down.
    fn write(&self, now: u64, to: &mut Writer);
    /// Takes over a bucket that was written down, into one that was just built.
    fn read(&self, from: &mut Reader<'_>, now: u64) -> Result<(), RestoreError>;
    /// How often each answer was given.
    fn statistics(&self) -> Statistics;
}

/// One bucket of one algorithm.
#[derive(Debug)]
pub struct SharedCell<A: Algorithm> {
    /// No other limiter's.
    number: u64,
    bucket: Mutex<Shared<A>>,
}

#[derive(Debug)]
struct Shared<A: Algorithm> {
    limit: A,
    /// `None` before the first call, whose time it starts at.
    state: Option<A::State>,
    /// The latest time decided at: time in here never runs back.
    latest: u64,
    counts: Counts,
}

impl<A: Algorithm> Shared<A> {
    /// Acts on the bucket's state at the call's time: `now`, or the latest decided at.
    #[inline]
    fn act<R>(&mut self, now: u64, act: impl FnOnce(&A, &mut A::State, u64) -> R) -> R {
        let now = self.latest.max(now);
        self.latest = now;
        let limit = &self.limit;
        act(
            limit,
            self.state.get_or_insert_with(|| limit.fresh(now)),
            now,
        )
    }

    /// An attempt, unless the bucket is banned; else for how many nanoseconds more it is.
    #[inline]
    fn attempt<R>(
        &mut self,
        now: u64,
        act: impl FnOnce(&A, &mut A::State, u64) -> (R, bool),
    ) -> Result<R, u64> {
        let now = self.latest.max(now);
        self.latest = now;
        let limit = &self.limit;
        let state = self.state.get_or_insert_with(|| limit.fresh(now));
        let last_attempt = A::last_attempt(state);
        if last_attempt > now {
            return Err(self.banned_for(last_attempt.wrapping_sub(now)));
        }
        let (answer, admitted) = act(limit, state, now);
        self.counts.judged(admitted);
        Ok(answer)
    }

    #[cold]
    #[inline(never)]
    fn banned_for(&mut self, left: u64) -> u64 {
        self.counts.banned = self.counts.banned.wrapping_add(1);
        left
    }
}

impl<A: Algorithm> Shared<A> {
    /// The answer to a cost, without anything being taken.
    fn judge(&mut self, cost: u64, max_delay: Duration, now: u64) -> Decision {
        let burst = self.limit.burst();
        if cost > burst {
            return Decision::TooLarge { burst };
        }
        self.act(now, |limit, state, now| {
            match A::last_attempt(state).checked_sub(now) {
                None | Some(0) => limit.foretell(state, cost, max_delay, now),
                Some(left) => banned(left),
            }
        })
    }

    /// Holds the bucket to another limit from `now` on.
    fn change(&mut self, next: A, tokens: Tokens, now: u64) -> Result<(), ChangeError> {
        self.limit.may_become(&next, tokens)?;
        self.act(now, |limit, state, now| {
            let at = now.max(A::last_attempt(state));
            limit.touch(state, at);
            *state = next.converted(limit, state, tokens, at);
        });
        self.limit = next;
        Ok(())
    }

    /// Notes an attempt that took nothing, as it was judged.
    fn note(&mut self, decision: Decision, now: u64) {
        match decision {
            Decision::TooLarge { .. } => {
                self.counts.too_large = self.counts.too_large.wrapping_add(1);
            }
            Decision::Banned { .. } => {
                self.banned_for(0);
            }
            Decision::Limited { .. } => self.counts.limited(),
            Decision::Allowed { .. } | Decision::ClientLimit => {}
        }
        if matches!(
            decision,
            Decision::Allowed { .. } | Decision::Limited { .. }
        ) {
            self.act(now, |limit, state, now| limit.touch(state, now));
        }
    }
}

impl<A: Algorithm> SharedCell<A> {
    pub(crate) fn new(limit: A) -> Self {
        Self {
            number: unique(),
            bucket: Mutex::new(Shared {
                limit,
                state: None,
                latest: 0,
                counts: Counts::default(),
            }),
        }
    }
}

impl<A: Wire> Cell for SharedCell<A> {
    type Valid = A;

    fn burst(&self) -> u64 {
        lock(&self.bucket).limit.burst()
    }

    #[inline]
    fn allow(&self, now: u64) -> bool {
        let admitted = lock(&self.bucket).attempt(now, |limit, state, now| {
            let admitted = limit.attempt(state, 1, now);
            (admitted, admitted)
        });
        admitted.unwrap_or(false)
    }

    #[inline]
    fn charge(&self, cost: u64, now: u64) -> (Decision, u64) {
        let mut bucket = lock(&self.bucket);
        let burst = bucket.limit.burst();
        if cost > burst {
            bucket.counts.too_large = bucket.counts.too_large.wrapping_add(1);
            return (Decision::TooLarge { burst }, now);
        }
        if cost == 0 {
            return (bucket.judge(0, Duration::MAX, now), now);
        }
        let answer = bucket.attempt(now, |limit, state, now| {
            let admitted = limit.attempt(state, cost, now);
            ((limit.report(state, cost, now, admitted), now), admitted)
        });
        answer.unwrap_or_else(|left| (banned(left), now))
    }

    fn acquire_up_to(&self, most: u64, now: u64) -> u64 {
        let taken = lock(&self.bucket).attempt(now, |limit, state, now| {
            let taken = limit.attempt_up_to(state, most, now);
            (taken, taken > 0)
        });
        taken.unwrap_or(0)
    }

    fn debit(&self, tokens: u64, now: u64) -> Debited {
        lock(&self.bucket).act(now, |limit, state, now| debited(limit, state, tokens, now))
    }

    fn ban(&self, until: u64, now: u64) {
        lock(&self.bucket).act(now, |limit, state, now| {
            limit.touch(state, until.max(now).max(A::last_attempt(state)));
        });
    }

    fn reset(&self) {
        lock(&self.bucket).state = None;
    }

    fn refund(&self, tokens: u64, of: Refunded, now: u64) {
        lock(&self.bucket).act(now, |limit, state, now| {
            let now = now.max(A::last_attempt(state));
            limit.refund(state, tokens, of, now);
        });
    }

    fn change(&self, next: A, tokens: Tokens, now: u64) -> Result<(), ChangeError> {
        lock(&self.bucket).change(next, tokens, now)
    }

    fn party(&self) -> &dyn Party {
        self
    }

    /// The algorithm, the limit, the time, and the state if there is one yet.
    fn write(&self, now: u64, to: &mut Writer) {
        to.u8(A::KIND);
        let mut bucket = lock(&self.bucket);
        bucket.latest = bucket.latest.max(now);
        bucket.limit.write(to);
        to.u64(bucket.latest);
        to.u8(u8::from(bucket.state.is_some()));
        if let Some(state) = &bucket.state {
            A::write_state(state, to);
        }
    }

    fn read(&self, from: &mut Reader<'_>, now: u64) -> Result<(), RestoreError> {
        if from.u8()? != A::KIND {
            return Err(RestoreError::OtherAlgorithm);
        }
        let before = A::read(from)?;
        let written_at = from.u64()?;
        let back = written_at.saturating_sub(now);
        let mut state = match from.bool()? {
            true => Some(before.read_state(from)?),
            false => None,
        };
        from.end()?;
        if let Some(state) = state.as_mut().filter(|_| back > 0) {
            let at = written_at.max(A::last_attempt(state));
            before.touch(state, at);
            A::set_back(state, back);
        }
        let mut bucket = lock(&self.bucket);
        let limit = core::mem::replace(&mut bucket.limit, before);
        bucket.state = state;
        let at = written_at.saturating_sub(back);
        bucket.change(limit, Tokens::Kept, at)?;
        bucket.latest = at;
        Ok(())
    }

    fn statistics(&self) -> Statistics {
        let mut statistics = Statistics::default();
        lock(&self.bucket).counts.add_to(&mut statistics);
        statistics
    }
}

impl<A: Algorithm> Party for SharedCell<A> {
    fn lock_of(&self, _: &Ask<'_>) -> Lock {
        Lock {
            limiter: self.number,
            number: 0,
        }
    }

    fn hold(&self, asks: &mut [Ask<'_>], others: &mut Others<'_>) -> Verdict {
        let now = asks.iter().map(|ask| ask.now).max().unwrap_or(0);
        let cost = asks
            .iter()
            .fold(0, |cost, ask| ask.cost.saturating_add(cost));
        let mut bucket = lock(&self.bucket);
        let decision = bucket.judge(cost, shortest_delay(asks), now);
        let now = bucket.latest.max(now);
        let mut refuses = false;
        for ask in asks.iter_mut() {
            ask.now = now;
            refuses |= ask.decide(decision);
        }
        let verdict = others(refuses, None);
        match verdict {
            Verdict::Charged if cost > 0 => {
                let max_delay = shortest_delay(asks);
                let charged = bucket.attempt(now, |limit, state, now| {
                    let (decision, again_after, admitted) =
                        limit.attempt_within(state, cost, max_delay, now);
                    ((decision, again_after), admitted)
                });
                let (decision, again_after) = charged.unwrap_or((decision, Duration::ZERO));
                for ask in asks {
                    ask.charged(decision, again_after);
                }
            }
            Verdict::Refused if cost > 0 => bucket.note(decision, now),
            Verdict::Charged | Verdict::Refused | Verdict::Full { .. } => {}
        }
        verdict
    }

    fn make_room(&self, _: u64, _: u64) -> bool {
        true
    }
}

/// A bucket, token or leaky, in the width that its quota needs.
#[derive(Debug)]
pub enum BucketCell {
    /// A level of 64 bits.
    Narrow(SharedCell<Bucket<i64>>),
    /// A level of 128 bits.
    Wide(SharedCell<Bucket<Wide>>),
}

/// One bucket of the algorithm chosen at run time.
#[derive(Debug)]
pub enum AnyCell {
    /// A token or leaky bucket.
    Bucket(BucketCell),
    /// A fixed window.
    FixedWindow(SharedCell<FixedWindows>),
    /// A sliding log.
    SlidingLog(SharedCell<SlidingLogs>),
    /// A sliding window counter.
    SlidingWindowCounter(SharedCell<SlidingWindowCounters>),
}

/// Hands every call to the variant at hand; `$change` finds the variant for a new limit.
macro_rules! delegate {
    ($cell:ty, $valid:ty, $change:expr, { $($variant:ident),+ }) => {
        impl Cell for $cell {
            type Valid = $valid;

            fn burst(&self) -> u64 {
                match self { $(Self::$variant(cell) => cell.burst()),+ }
            }

            #[inline]
            fn allow(&self, now: u64) -> bool {
                match self { $(Self::$variant(cell) => cell.allow(now)),+ }
            }

            fn acquire_up_to(&self, most: u64, now: u64) -> u64 {
                match self { $(Self::$variant(cell) => cell.acquire_up_to(most, now)),+ }
            }

            #[inline]
            fn charge(&self, cost: u64, now: u64) -> (Decision, u64) {
                match self { $(Self::$variant(cell) => cell.charge(cost, now)),+ }
            }

            fn debit(&self, tokens: u64, now: u64) -> Debited {
                match self { $(Self::$variant(cell) => cell.debit(tokens, now)),+ }
            }

            fn ban(&self, until: u64, now: u64) {
                match self { $(Self::$variant(cell) => cell.ban(until, now)),+ }
            }

            fn reset(&self) {
                match self { $(Self::$variant(cell) => cell.reset()),+ }
            }

            fn refund(&self, tokens: u64, of: Refunded, now: u64) {
                match self { $(Self::$variant(cell) => cell.refund(tokens, of, now)),+ }
            }

            fn change(&self, limit: $valid, tokens: Tokens, now: u64) -> Result<(), ChangeError> {
                $change(self, limit, tokens, now)
            }

            fn party(&self) -> &dyn Party {
                match self { $(Self::$variant(cell) => cell.party()),+ }
            }

            fn write(&self, now: u64, to: &mut Writer) {
                match self { $(Self::$variant(cell) => cell.write(now, to)),+ }
            }

            fn read(&self, from: &mut Reader<'_>, now: u64) -> Result<(), RestoreError> {
                match self { $(Self::$variant(cell) => cell.read(from, now)),+ }
            }

            fn statistics(&self) -> Statistics {
                match self { $(Self::$variant(cell) => cell.statistics()),+ }
            }
        }
    };
}

/// A quota that needs fewer bits than the bucket has will do.
fn change_bucket(
    cell: &BucketCell,
    limit: AnyWidth,
    tokens: Tokens,
    now: u64,
) -> Result<(), ChangeError> {
    match (cell, limit) {
        (BucketCell::Narrow(cell), AnyWidth::Narrow(limit)) => cell.change(limit, tokens, now),
        (BucketCell::Narrow(_), AnyWidth::Wide(_)) => Err(ChangeError::NeedsMoreBits),
        (BucketCell::Wide(cell), limit) => cell.change(limit.wide(), tokens, now),
    }
}

fn change_any(
    cell: &AnyCell,
    limit: AnyValid,
    tokens: Tokens,
    now: u64,
) -> Result<(), ChangeError> {
    match (cell, limit) {
        (AnyCell::Bucket(cell), AnyValid::Bucket(limit)) => change_bucket(cell, limit, tokens, now),
        (AnyCell::FixedWindow(cell), AnyValid::FixedWindow(limit)) => {
            cell.change(limit, tokens, now)
        }
        (AnyCell::SlidingLog(cell), AnyValid::SlidingLog(limit)) => cell.change(limit, tokens, now),
        (AnyCell::SlidingWindowCounter(cell), AnyValid::SlidingWindowCounter(limit)) => {
            cell.change(limit, tokens, now)
        }
        _ => Err(ChangeError::OtherAlgorithm),
    }
}

delegate!(BucketCell, AnyWidth, change_bucket, { Narrow, Wide });
delegate!(AnyCell, AnyValid, change_any, {
    Bucket,
    FixedWindow,
    SlidingLog,
    SlidingWindowCounter
});
