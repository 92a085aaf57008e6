//! Many clients in one call.
//!
//! With a million clients a decision is mostly a wait for memory: the client's slot. Up to sixteen
//! shards are locked, in the order in which everybody locks them; then all slots are read, with no
//! branch in between that would make the processor wait for one of them; and then searched for and
//! decided, when they have arrived.

use core::hint::black_box;

use super::clients::{Clients, Outcome, Who};
use super::key::Key;
use super::shards::Shards;
use super::store::answered;
use crate::Decision;
use crate::algorithm::Algorithm;
use crate::sync::MutexGuard;

/// So many clients are looked up together: more misses than this no processor has under way.
pub(crate) const TOGETHER: usize = 16;

/// One of the calls, and where its client is.
#[derive(Clone, Copy)]
struct Lookup {
    who: Who,
    shard: usize,
    /// Which of the calls it is.
    ordinal: usize,
    /// Which of the locks is its shard's.
    lock: usize,
    /// Its client's place, if its state can be judged as it is.
    at: Option<usize>,
}

impl<A: Algorithm> Shards<A> {
    /// Decides up to [`TOGETHER`] calls at one time, each as if it were alone, and writes the
    /// answers into `decisions`, of which there are as many. Those that are left as they were have
    /// to be made one by one, in order: all calls of newcomers, of whoever was under another limit,
    /// and those that ask for too much.
    pub(crate) fn acquire_together(
        &self,
        calls: &[(Key, u64)],
        now: u64,
        decisions: &mut [Option<Decision>],
    ) {
        let (who, _) = self.whereabouts(Key::VACANT);
        let mut lookups = [Lookup {
            who,
            shard: 0,
            ordinal: 0,
            lock: 0,
            at: None,
        }; TOGETHER];
        let used = calls.len().min(TOGETHER);
        let Some(lookups) = lookups.get_mut(..used) else {
            return;
        };
        for ((ordinal, (key, _)), lookup) in calls.iter().enumerate().zip(lookups.iter_mut()) {
            lookup.ordinal = ordinal;
            (lookup.who, lookup.shard) = self.whereabouts(*key);
        }
        // Also by their order, which calls of one client keep.
        lookups.sort_unstable_by_key(|lookup| (lookup.shard, lookup.ordinal));
        let mut locks: [Option<(MutexGuard<'_, Clients<A>>, u64)>; TOGETHER] =
            [const { None }; TOGETHER];
        let (mut latest, mut held) = (usize::MAX, 0_usize);
        for lookup in lookups.iter_mut() {
            if lookup.shard != latest {
                latest = lookup.shard;
                if let (Some(shard), Some(lock)) = (self.shard(latest), locks.get_mut(held)) {
                    *lock = Some(self.enter(shard, now));
                }
                held = held.saturating_add(1);
            }
            lookup.lock = held.saturating_sub(1);
        }
        let mut read = 0;
        for lookup in lookups.iter() {
            if let Some(Some((clients, _))) = locks.get(lookup.lock) {
                read ^= clients.touch(lookup.who);
            }
        }
        black_box(read);
        for lookup in lookups.iter_mut() {
            if let Some(Some((clients, _))) = locks.get(lookup.lock) {
                let found = clients.find_under(lookup.who, 0);
                lookup.at = found.and_then(|(at, otherwise)| (!otherwise).then_some(at));
            }
        }
        for lookup in lookups {
            let (Some(Some((clients, now))), Some((_, cost)), Some(decision)) = (
                locks.get_mut(lookup.lock),
                calls.get(lookup.ordinal),
                decisions.get_mut(lookup.ordinal),
            ) else {
                continue;
            };
            let Some(at) = lookup.at else {
                continue;
            };
            let (now, cost) = (*now, *cost);
            if cost == 0 {
                let report =
                    |limit: &A, state: &A::State, now| (limit.report(state, 0, now, true), now);
                let seen = clients.look(at, None, now, report).unwrap_or_else(|| {
                    let limit = clients.rules().limit(0);
                    Outcome::Judged(report(limit, &limit.fresh(now), now))
                });
                *decision = Some(answered(seen, now).0);
            } else if cost <= clients.rules().limit(0).burst() {
                let outcome = clients.attempt(at, 0, now, |limit, state, now| {
                    let admitted = limit.attempt(state, cost, now);
                    ((limit.report(state, cost, now, admitted), now), admitted)
                });
                *decision = Some(answered(outcome, now).0);
            }
        }
    }
}
