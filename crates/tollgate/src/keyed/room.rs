//! Room for newcomers: places claimed, and clients who are idle forgotten for them.

use super::clients::{Clients, NOBODY};
use super::idling::Idling;
use super::shards::{Shard, Shards};
use crate::algorithm::Algorithm;
use crate::sync::{Ordering, lock, pause};

/// The most positions of an expiry queue looked at while a shard's lock is held.
const POSITIONS_A_LOCK: usize = 64;

impl<A: Algorithm> Shards<A> {
    /// Lowers the bounds for newcomers of that position, before their places are claimed; returns
    /// whether they undercut them.
    pub(super) fn undercut(
        &self,
        shard: Shard<'_, A>,
        clients: &Clients<A>,
        position: u64,
    ) -> bool {
        let undercuts = position < clients.earliest() && clients.rules().idling().forgets();
        if undercuts {
            shard.earliest.store(position, Ordering::Release);
            self.floor.0.lower(position);
        }
        undercuts
    }

    /// Takes a newcomer's place in `total`, if there is one; the caller then takes it in under the
    /// same lock.
    pub(super) fn claim_place(
        &self,
        shard: Shard<'_, A>,
        clients: &Clients<A>,
        position: u64,
    ) -> bool {
        if !self.has_room(1) {
            return false;
        }
        // The bounds first, then the count: see the top of this file.
        let undercuts = self.undercut(shard, clients, position);
        let claimed = self.total.0.claim(self.max_clients);
        if undercuts && !claimed {
            self.restore(shard, clients);
        }
        claimed
    }

    /// Publishes again what was, after newcomers who would have undercut it were not taken in.
    pub(super) fn restore(&self, shard: Shard<'_, A>, clients: &Clients<A>) {
        shard.earliest.store(clients.earliest(), Ordering::Release);
    }

    /// Whether a claim of so many places may succeed.
    pub(super) fn has_room(&self, places: u64) -> bool {
        self.total.0.has_room(places, self.max_clients)
    }

    /// Promises places to newcomers, all or none.
    pub(super) fn promise(&self, places: u64) -> bool {
        self.total.0.promise(places, self.max_clients)
    }

    /// Whether at some instant of this call there was no room for so many newcomers beside the
    /// clients that were tracked, and none of them came up at `now`.
    pub(super) fn is_full_of_active(&self, idling: &Idling, places: u64, now: u64) -> bool {
        let floor = &self.floor.0;
        let version = floor.version.load(Ordering::Acquire);
        !idling.is_due(floor.position.load(Ordering::Acquire), now)
            && self.total.0.tracked().saturating_add(places) > self.max_clients
            && floor.version.load(Ordering::Acquire) == version
    }

    /// Forgets some who are idle at `now`, or finds out that nobody is and raises the floor; or
    /// corrects up to 64 positions of each shard, and is to be called again.
    ///
    /// Each call that forgets nobody leaves fewer positions that are due: with n clients at most
    /// n/64 + 1 of them, and in all of them together each position is looked at once.
    #[cold]
    #[inline(never)]
    pub(super) fn make_room(&self, idling: &Idling, now: u64) {
        if self.total.0.is_promised() {
            pause();
        }
        let version = self.floor.0.version.load(Ordering::Acquire);
        let start = self.next_search.0.fetch_add(1, Ordering::Relaxed);
        let start = usize::try_from(start).unwrap_or(0) & self.clients.len().saturating_sub(1);
        let mut earliest = NOBODY;
        for shard in self.shards_from(start) {
            let due = idling.is_due(shard.earliest.load(Ordering::Acquire), now);
            if due && self.forget_some(shard, now) > 0 {
                return;
            }
            earliest = earliest.min(shard.earliest.load(Ordering::Acquire));
        }
        self.floor.0.raise(version, earliest);
    }

    /// Looks at up to 64 due positions of one shard.
    fn forget_some(&self, shard: Shard<'_, A>, now: u64) -> usize {
        let mut clients = lock(shard.clients);
        let now = clients.advance(now);
        let forgotten = clients.forget_due(now, POSITIONS_A_LOCK);
        self.publish(shard, &clients, forgotten);
        forgotten
    }

    /// Forgets everybody who is idle at `now`; returns how many. At most 64 positions, or one
    /// smaller table, under each lock; and then on to the next shard, since a lock that is taken
    /// again at once lets nobody else in.
    pub(crate) fn forget_idle(&self, now: u64) -> u64 {
        let floor = &self.floor.0;
        let mut forgotten = 0_usize;
        let mut swept = false;
        // Anew each time: a change meanwhile may have put off what was due.
        while let Some(idling) = self.ask_rules(|rules| *rules.idling()) {
            if !idling.is_due(floor.position.load(Ordering::Acquire), now) {
                break;
            }
            let version = floor.version.load(Ordering::Acquire);
            let mut earliest = NOBODY;
            for shard in self.shards_from(0) {
                if idling.is_due(shard.earliest.load(Ordering::Acquire), now) {
                    forgotten = forgotten.saturating_add(self.forget_some(shard, now));
                }
                earliest = earliest.min(shard.earliest.load(Ordering::Acquire));
            }
            floor.raise(version, earliest);
            swept = true;
        }
        for shard in self.shards_from(0).filter(|_| swept) {
            let mut clients = lock(shard.clients);
            clients.advance(now);
            clients.shrink(true);
        }
        u64::try_from(forgotten).unwrap_or(u64::MAX)
    }

    /// Clients tracked once everybody who is idle at `now` was forgotten.
    pub(crate) fn len(&self, now: u64) -> u64 {
        self.forget_idle(now);
        self.total.0.tracked()
    }
}
