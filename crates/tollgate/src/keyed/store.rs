//! One face for every kind of store: which algorithm, and in how many bits.

use core::fmt::Debug;

use super::batch::TOGETHER;
use super::clients::{LongestHold, Outcome};
use super::key::{Key, Places};
use super::rules::{Idle, Plans, Rules};
use super::shards::Shards;
use crate::algorithm::bucket::{AnyWidth, Bucket, Wide};
use crate::algorithm::fixed_window::FixedWindows;
use crate::algorithm::sliding_log::SlidingLogs;
use crate::algorithm::sliding_window_counter::SlidingWindowCounters;
use crate::algorithm::{Algorithm, Refunded};
use crate::limit::AnyValid;
use crate::statistics::Statistics;
use crate::time::duration;
use crate::together::Party;
use crate::wire::{Reader, Wire, Writer};
use crate::{BuildError, ChangeError, Decision, RestoreError, Tokens};

/// How to build a store, but for the limits themselves.
#[derive(Clone, Copy, Debug)]
pub struct StorePlan {
    pub(crate) places: Places,
    pub(crate) max_clients: u64,
    pub(crate) idle: Idle,
    /// Newcomers to a full table share a bucket.
    pub(crate) overflow: bool,
    /// Clients may come to owe tokens.
    pub(crate) owes: bool,
}

/// What a debit took, and what a call for one token would be answered afterwards.
pub(crate) type Debited = (u64, Decision);

/// Clients by key, and the limits they are held to.
///
/// Plans are numbered from 0, that of clients without one.
pub trait Store: Debug + Send + Sync {
    /// A limit that this store's clients can be held to.
    type Valid;
    /// The most that one call can take.
    fn burst(&self) -> u64;
    /// Takes one token.
    fn allow(&self, key: Key, now: u64) -> bool;
    /// Takes `cost` tokens, or looks at 0.
    #[inline]
    fn acquire(&self, key: Key, cost: u64, now: u64) -> Decision {
        let (decision, _) = self.charge(key, 0, cost, now);
        decision
    }
    /// Takes as many tokens as there are, up to `most`, which is at least 1; returns how many.
    fn acquire_up_to(&self, key: Key, most: u64, now: u64) -> u64;
    /// The same as `acquire` under a plan's limit, and the time at which it was decided.
    fn charge(&self, key: Key, plan: u8, cost: u64, now: u64) -> (Decision, u64);
    /// Makes up to [`TOGETHER`](super::batch::TOGETHER) calls, each as `acquire` does, at one time;
    /// the answers are added to `decisions`.
    fn acquire_each(&self, calls: &[(Key, u64)], now: u64, decisions: &mut Vec<Decision>);
    /// Looks at a client under a plan's limit; under its own plan's if it is the first that is
    /// asked for.
    fn look(&self, key: Key, plan: u8, now: u64) -> Decision;
    /// Takes tokens (at least 1) whether they are there or not. `None` is the client limit.
    fn debit(&self, key: Key, tokens: u64, now: u64) -> Option<Debited>;
    /// Refuses a client all until then, or until its ban ends if that is later. Returns whether it
    /// is; not is the client limit.
    fn ban(&self, key: Key, until: u64, now: u64) -> bool;
    /// Gives back tokens that were taken at `taken_at`, or of the latest ones.
    fn refund(&self, key: Key, tokens: u64, of: Refunded, now: u64);
    /// Forgets one client.
    fn remove(&self, key: Key, now: u64) -> bool;
    /// Forgets who is idle.
    fn forget_idle(&self, now: u64) -> u64;
    /// Clients tracked once who is idle was forgotten.
    fn len(&self, now: u64) -> u64;
    /// Holds clients of a plan to another limit.
    fn change(
        &self,
        plan: u8,
        limit: Self::Valid,
        tokens: Tokens,
        now: u64,
    ) -> Result<(), ChangeError>;
    /// Brings everybody over to the present limits.
    fn settle(&self, now: u64) -> usize;
    /// The same clients, as one of several limiters asked in one call.
    fn party(&self) -> &dyn Party;
    /// Writes all clients down.
    fn write(&self, now: u64, to: &mut Writer);
    /// Takes in all clients that were written down, into a store that was just built.
    fn read(&self, from: &mut Reader<'_>, now: u64) -> Result<(), RestoreError>;
    /// How often each answer was given.
    fn statistics(&self) -> Statistics;
    /// The most that was ever done under one lock.
    fn longest_hold(&self) -> LongestHold;
    /// The clients that fit before any table grows.
    fn capacity(&self) -> usize;
    /// Bytes on the heap.
    fn memory_bytes(&self) -> usize;
    /// The same with so many clients.
    fn memory_bytes_for(&self, clients: usize) -> usize;
    /// Panics unless the store is in order.
    #[cfg(any(test, loom))]
    fn validate(&self);
}

impl StorePlan {
    pub(crate) fn build<A: Algorithm>(
        self,
        first: A,
        others: Box<[A]>,
    ) -> Result<Shards<A>, BuildError> {
        let plans = Plans::new(first, others);
        let rules = Rules::new(plans, (self.idle, self.owes), self.places)?;
        Ok(Shards::new(rules, self))
    }
}

/// The answer to an attempt or a look, and when it was given.
pub(crate) fn answered(outcome: Outcome<(Decision, u64)>, now: u64) -> (Decision, u64) {
    match outcome {
        Outcome::Judged(answer) => answer,
        Outcome::Banned(left) => (banned(left), now),
        Outcome::TooLarge { burst } => (Decision::TooLarge { burst }, now),
        Outcome::Full => (Decision::ClientLimit, now),
    }
}

/// The answer to who is banned for so many nanoseconds more.
pub(crate) fn banned(left: u64) -> Decision {
    let retry_after = duration(u128::from(left));
    Decision::Banned { retry_after }
}

/// Takes tokens whether they are there or not, from a state that is banned or not.
pub(crate) fn debited<A: Algorithm>(
    limit: &A,
    state: &mut A::State,
    tokens: u64,
    now: u64,
) -> Debited {
    let free = A::last_attempt(state).max(now);
    let taken = limit.debit(state, tokens, free);
    let next = if free > now {
        banned(free.saturating_sub(now))
    } else if limit.remaining(state, now) > 0 {
        limit.report(state, 0, now, true)
    } else {
        limit.report(state, 1, now, false)
    };
    (taken, next)
}

impl<A: Wire> Store for Shards<A> {
    type Valid = A;

    fn burst(&self) -> u64 {
        self.ask_rules(|rules| rules.limit(0).burst())
            .unwrap_or_default()
    }

    #[inline]
    fn allow(&self, key: Key, now: u64) -> bool {
        let outcome = self.attempt(key, (0, 0), now, |limit, state, now| {
            let admitted = limit.attempt(state, 1, now);
            (admitted, admitted)
        });
        matches!(outcome, Outcome::Judged(true))
    }

    #[inline]
    fn charge(&self, key: Key, plan: u8, cost: u64, now: u64) -> (Decision, u64) {
        if cost == 0 {
            return (Store::look(self, key, plan, now), now);
        }
        // Written in place: the answer is too large to be handed from hand to hand.
        let mut answer = (Decision::ClientLimit, now);
        let outcome = self.attempt(key, (plan, cost), now, |limit, state, now| {
            let admitted = limit.attempt(state, cost, now);
            answer = (limit.report(state, cost, now, admitted), now);
            ((), admitted)
        });
        match outcome {
            Outcome::Judged(()) | Outcome::Full => answer,
            Outcome::Banned(left) => (banned(left), now),
            Outcome::TooLarge { burst } => (Decision::TooLarge { burst }, now),
        }
    }

    fn acquire_each(&self, calls: &[(Key, u64)], now: u64, decisions: &mut Vec<Decision>) {
        let mut decided = [None; TOGETHER];
        self.acquire_together(calls, now, &mut decided);
        let each = calls.iter().zip(decided);
        decisions.extend(each.map(|((key, cost), decision)| {
            decision.unwrap_or_else(|| self.acquire(*key, *cost, now))
        }));
    }

    fn look(&self, key: Key, plan: u8, now: u64) -> Decision {
        let plan = Some(plan).filter(|plan| *plan > 0);
        let seen = Self::look(self, key, plan, now, |limit, state, now| {
            (limit.report(state, 0, now, true), now)
        });
        let (decision, _) = answered(seen.unwrap_or(Outcome::Full), now);
        decision
    }

    fn acquire_up_to(&self, key: Key, most: u64, now: u64) -> u64 {
        let outcome = self.attempt(key, (0, 0), now, |limit, state, now| {
            let taken = limit.attempt_up_to(state, most, now);
            (taken, taken > 0)
        });
        match outcome {
            Outcome::Judged(taken) => taken,
            Outcome::Banned(_) | Outcome::TooLarge { .. } | Outcome::Full => 0,
        }
    }

    fn debit(&self, key: Key, tokens: u64, now: u64) -> Option<Debited> {
        self.act(key, true, now, |limit, state, now| {
            debited(limit, state, tokens, now)
        })
    }

    fn ban(&self, key: Key, until: u64, now: u64) -> bool {
        let banned = self.act(key, false, now, |limit, state, now| {
            limit.touch(state, until.max(now).max(A::last_attempt(state)));
        });
        banned.is_some()
    }

    fn refund(&self, key: Key, tokens: u64, of: Refunded, now: u64) {
        Self::refund(self, key, tokens, of, now);
    }

    fn remove(&self, key: Key, now: u64) -> bool {
        Self::remove(self, key, now)
    }

    fn forget_idle(&self, now: u64) -> u64 {
        Self::forget_idle(self, now)
    }

    fn len(&self, now: u64) -> u64 {
        Self::len(self, now)
    }

    fn change(&self, plan: u8, limit: A, tokens: Tokens, now: u64) -> Result<(), ChangeError> {
        Self::change(self, plan, limit, tokens, now)
    }

    fn settle(&self, now: u64) -> usize {
        Self::settle(self, now)
    }

    fn party(&self) -> &dyn Party {
        self
    }

    fn write(&self, now: u64, to: &mut Writer) {
        Self::write(self, now, to);
    }

    fn read(&self, from: &mut Reader<'_>, now: u64) -> Result<(), RestoreError> {
        Self::read(self, from, now)
    }

    fn statistics(&self) -> Statistics {
        Self::statistics(self)
    }

    fn longest_hold(&self) -> LongestHold {
        Self::longest_hold(self)
    }

    fn capacity(&self) -> usize {
        Self::capacity(self)
    }

    fn memory_bytes(&self) -> usize {
        Self::memory_bytes(self)
    }

    fn memory_bytes_for(&self, clients: usize) -> usize {
        Self::memory_bytes_for(self, clients)
    }

    #[cfg(any(test, loom))]
    fn validate(&self) {
        Self::validate(self);
    }
}

/// Buckets, token or leaky, in the width that their quota needs.
#[derive(Debug)]
pub enum BucketStore {
    /// 16 bytes a client.
    Narrow(Shards<Bucket<i64>>),
    /// 24 bytes a client.
    Wide(Shards<Bucket<Wide>>),
}

/// A store of the algorithm chosen at run time.
#[derive(Debug)]
pub enum AnyStore {
    /// Token or leaky buckets.
    Bucket(BucketStore),
    /// Fixed windows.
    FixedWindow(Shards<FixedWindows>),
    /// Sliding logs.
    SlidingLog(Shards<SlidingLogs>),
    /// Sliding window counters.
    SlidingWindowCounter(Shards<SlidingWindowCounters>),
}

/// Hands every call to the variant at hand; `$change` finds the variant for a new limit.
macro_rules! delegate {
    ($store:ty, $valid:ty, $change:expr, { $($variant:ident),+ }) => {
        impl Store for $store {
            type Valid = $valid;

            fn burst(&self) -> u64 {
                match self { $(Self::$variant(store) => store.burst()),+ }
            }

            #[inline]
            fn allow(&self, key: Key, now: u64) -> bool {
                match self { $(Self::$variant(store) => store.allow(key, now)),+ }
            }

            #[inline]
            fn charge(&self, key: Key, plan: u8, cost: u64, now: u64) -> (Decision, u64) {
                match self { $(Self::$variant(store) => store.charge(key, plan, cost, now)),+ }
            }

            fn acquire_each(&self, calls: &[(Key, u64)], now: u64, decisions: &mut Vec<Decision>) {
                match self {
                    $(Self::$variant(store) => store.acquire_each(calls, now, decisions)),+
                }
            }

            fn look(&self, key: Key, plan: u8, now: u64) -> Decision {
                match self { $(Self::$variant(store) => Store::look(store, key, plan, now)),+ }
            }

            fn acquire_up_to(&self, key: Key, most: u64, now: u64) -> u64 {
                match self { $(Self::$variant(store) => store.acquire_up_to(key, most, now)),+ }
            }

            fn debit(&self, key: Key, tokens: u64, now: u64) -> Option<Debited> {
                match self { $(Self::$variant(store) => store.debit(key, tokens, now)),+ }
            }

            fn ban(&self, key: Key, until: u64, now: u64) -> bool {
                match self { $(Self::$variant(store) => store.ban(key, until, now)),+ }
            }

            fn refund(&self, key: Key, tokens: u64, of: Refunded, now: u64) {
                match self {
                    $(Self::$variant(store) => store.refund(key, tokens, of, now)),+
                }
            }

            fn remove(&self, key: Key, now: u64) -> bool {
                match self { $(Self::$variant(store) => store.remove(key, now)),+ }
            }

            fn forget_idle(&self, now: u64) -> u64 {
                match self { $(Self::$variant(store) => store.forget_idle(now)),+ }
            }

            fn len(&self, now: u64) -> u64 {
                match self { $(Self::$variant(store) => store.len(now)),+ }
            }

            fn change(
                &self,
                plan: u8,
                limit: $valid,
                tokens: Tokens,
                now: u64,
            ) -> Result<(), ChangeError> {
                $change(self, plan, limit, tokens, now)
            }

            fn settle(&self, now: u64) -> usize {
                match self { $(Self::$variant(store) => store.settle(now)),+ }
            }

            fn party(&self) -> &dyn Party {
                match self { $(Self::$variant(store) => store.party()),+ }
            }

            fn write(&self, now: u64, to: &mut Writer) {
                match self { $(Self::$variant(store) => store.write(now, to)),+ }
            }

            fn read(&self, from: &mut Reader<'_>, now: u64) -> Result<(), RestoreError> {
                match self { $(Self::$variant(store) => store.read(from, now)),+ }
            }

            fn statistics(&self) -> Statistics {
                match self { $(Self::$variant(store) => store.statistics()),+ }
            }

            fn longest_hold(&self) -> LongestHold {
                match self { $(Self::$variant(store) => store.longest_hold()),+ }
            }

            fn capacity(&self) -> usize {
                match self { $(Self::$variant(store) => store.capacity()),+ }
            }

            fn memory_bytes(&self) -> usize {
                match self { $(Self::$variant(store) => store.memory_bytes()),+ }
            }

            fn memory_bytes_for(&self, clients: usize) -> usize {
                match self { $(Self::$variant(store) => store.memory_bytes_for(clients)),+ }
            }

            #[cfg(any(test, loom))]
            fn validate(&self) {
                match self { $(Self::$variant(store) => store.validate()),+ }
            }
        }
    };
}

/// A quota that needs fewer bits than the store has will do.
fn change_bucket(
    store: &BucketStore,
    plan: u8,
    limit: AnyWidth,
    tokens: Tokens,
    now: u64,
) -> Result<(), ChangeError> {
    match (store, limit) {
        (BucketStore::Narrow(store), AnyWidth::Narrow(limit)) => {
            store.change(plan, limit, tokens, now)
        }
        (BucketStore::Narrow(_), AnyWidth::Wide(_)) => Err(ChangeError::NeedsMoreBits),
        (BucketStore::Wide(store), limit) => store.change(plan, limit.wide(), tokens, now),
    }
}

fn change_any(
    store: &AnyStore,
    plan: u8,
    limit: AnyValid,
    tokens: Tokens,
    now: u64,
) -> Result<(), ChangeError> {
    match (store, limit) {
        (AnyStore::Bucket(store), AnyValid::Bucket(limit)) => {
            change_bucket(store, plan, limit, tokens, now)
        }
        (AnyStore::FixedWindow(store), AnyValid::FixedWindow(limit)) => {
            store.change(plan, limit, tokens, now)
        }
        (AnyStore::SlidingLog(store), AnyValid::SlidingLog(limit)) => {
            store.change(plan, limit, tokens, now)
        }
        (AnyStore::SlidingWindowCounter(store), AnyValid::SlidingWindowCounter(limit)) => {
            store.change(plan, limit, tokens, now)
        }
        _ => Err(ChangeError::OtherAlgorithm),
    }
}

delegate!(BucketStore, AnyWidth, change_bucket, { Narrow, Wide });
delegate!(AnyStore, AnyValid, change_any, {
    Bucket,
    FixedWindow,
    SlidingLog,
    SlidingWindowCounter
});
