//! All clients of one limiter, shared by threads: shards, each under a lock of its own, and what
//! they agree on: how many clients there are, and since when nobody can have gone idle.
//!
//! Two shard locks are never held at once. A known client's call touches its own shard and nothing
//! else. What makes the cap exact:
//!
//! - `total` is raised only by compare-and-swap from below the cap, under the lock of the shard
//!   that then takes the newcomer in, and lowered under the lock of the shard that forgot someone.
//! - Each shard publishes a lower bound of its clients' last attempts (`earliest`), true whenever
//!   its lock is free; `floor` holds a lower bound of those. Only a newcomer to a shard that holds
//!   nobody can undercut either: it lowers both *before* it raises `total`. Into any other shard
//!   people come at its latest time, which is no earlier than what it has published.
//! - A refusal reads the floor and finds that nobody can be idle, then reads that `total` is at the
//!   cap, then finds that the floor was not lowered in between: at the second reading, as many
//!   clients as may be were there, and none was idle.

use super::clients::{Clients, LongestHold, NOBODY, Rules, Who};
use super::key::{Key, Places};
use crate::algorithm::Algorithm;
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, lock};

/// The most positions of an expiry queue looked at while a shard's lock is held.
pub(crate) const POSITIONS_A_LOCK: usize = 64;

/// The positions that every call looks at on its way: one that it may have made stale, and one
/// more, so that stale positions never pile up.
const POSITIONS_A_CALL: usize = 2;

/// On cache lines of its own. 128 bytes: processors fetch lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Apart<T>(T);

/// One shard, by what of it is where.
#[derive(Debug)]
struct Shard<'a, A: Algorithm> {
    clients: &'a Mutex<Clients<A>>,
    /// A lower bound of everybody's last attempt here, [`NOBODY`]'s if nobody can go idle; true
    /// whenever the lock is free, and written only under it.
    earliest: &'a AtomicU64,
}

impl<A: Algorithm> Clone for Shard<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: Algorithm> Copy for Shard<'_, A> {}

/// A lower bound of every shard's `earliest`, at all times.
#[derive(Debug)]
struct Floor {
    writer: Mutex<()>,
    /// How often the bound was lowered. Written after `position`, so that who reads a version reads
    /// no bound from before it.
    version: AtomicU64,
    position: AtomicU64,
}

impl Floor {
    fn new() -> Self {
        Self {
            writer: Mutex::new(()),
            version: AtomicU64::new(0),
            position: AtomicU64::new(NOBODY),
        }
    }

    /// Someone last seen at `position` comes to a shard that held nobody.
    fn lower(&self, position: u64) {
        let _writer = lock(&self.writer);
        let lowest = self.position.load(Ordering::Relaxed).min(position);
        self.position.store(lowest, Ordering::Release);
        let version = self.version.load(Ordering::Relaxed);
        self.version
            .store(version.wrapping_add(1), Ordering::Release);
    }

    /// Every shard was asked since `version` was read, and `position` is the earliest found. Void
    /// if someone undercut it meanwhile.
    fn raise(&self, version: u64, position: u64) {
        let _writer = lock(&self.writer);
        if self.version.load(Ordering::Relaxed) == version {
            let highest = self.position.load(Ordering::Relaxed).max(position);
            self.position.store(highest, Ordering::Release);
        }
    }
}

/// All clients of one limiter.
#[derive(Debug)]
pub struct Shards<A: Algorithm> {
    rules: Rules<A>,
    places: Places,
    max_clients: u64,
    clients: Box<[Apart<Mutex<Clients<A>>>]>,
    /// What each shard publishes, side by side: who searches reads all of them, and who only
    /// decides reads none.
    earliest: Box<[AtomicU64]>,
    total: Apart<AtomicU64>,
    floor: Apart<Floor>,
    /// Where the next search for room starts, so that no shard is always the first.
    next_search: Apart<AtomicU64>,
}

impl<A: Algorithm> Shards<A> {
    /// 2^`shard_bits` shards, as in `places`.
    pub(crate) fn new(rules: Rules<A>, places: Places, max_clients: u64) -> Self {
        Self {
            rules,
            places,
            max_clients,
            clients: (0..places.shards())
                .map(|_| Apart(Mutex::new(Clients::new(places))))
                .collect(),
            earliest: (0..places.shards())
                .map(|_| AtomicU64::new(NOBODY))
                .collect(),
            total: Apart(AtomicU64::new(0)),
            floor: Apart(Floor::new()),
            next_search: Apart(AtomicU64::new(0)),
        }
    }

    /// All shards, from the one with that number round to the one before it.
    fn shards_from(&self, first: usize) -> impl Iterator<Item = Shard<'_, A>> {
        let all = self.clients.iter().zip(&self.earliest);
        let (behind, ahead) = (all.clone().take(first), all.skip(first));
        ahead.chain(behind).map(|(clients, earliest)| Shard {
            clients: &clients.0,
            earliest,
        })
    }

    pub(crate) fn algorithm(&self) -> &A {
        &self.rules.algorithm
    }

    /// Makes an attempt: `act` brings a client's state to the call's time, which is `now` or the
    /// latest that its shard has seen, if that is later. `None` is the client limit.
    #[inline]
    pub(crate) fn attempt<R>(
        &self,
        key: Key,
        now: u64,
        act: impl Fn(&A, &mut A::State, u64) -> R,
    ) -> Option<R> {
        let (who, shard) = self.whereabouts(key);
        let shard = self.shard(shard)?;
        let (mut clients, now) = self.enter(shard, now);
        match clients.find(who) {
            Some(at) => clients.attempt(&self.rules, at, now, act),
            None => self.attempt_of_a_newcomer(shard, clients, (who, now), act),
        }
    }

    /// Looks at a client, which changes nothing for it and tracks nobody.
    pub(crate) fn look<R>(
        &self,
        key: Key,
        now: u64,
        answer: impl Fn(&A, &A::State, u64) -> R,
    ) -> Option<R> {
        let (who, shard) = self.whereabouts(key);
        let (clients, now) = self.enter(self.shard(shard)?, now);
        let algorithm = &self.rules.algorithm;
        let known = clients.find(who);
        Some(
            match known.and_then(|at| clients.state_at(&self.rules, at, now)) {
                Some(state) => answer(algorithm, state, now),
                None => answer(algorithm, &algorithm.fresh(now), now),
            },
        )
    }

    #[inline]
    fn shard(&self, number: usize) -> Option<Shard<'_, A>> {
        let (clients, earliest) = (self.clients.get(number)?, self.earliest.get(number)?);
        Some(Shard {
            clients: &clients.0,
            earliest,
        })
    }

    /// Locks a shard and takes care of what is due in it. Returns the call's time too.
    #[inline]
    fn enter<'a>(&self, shard: Shard<'a, A>, now: u64) -> (MutexGuard<'a, Clients<A>>, u64) {
        let mut clients = lock(shard.clients);
        let now = clients.advance(now);
        if self.rules.is_idle(clients.earliest(), now) {
            self.tend(shard, &mut clients, now);
        }
        (clients, now)
    }

    /// An attempt by a client that is not in its shard, once the shard was entered.
    #[inline(never)]
    fn attempt_of_a_newcomer<'a, R>(
        &'a self,
        shard: Shard<'a, A>,
        mut clients: MutexGuard<'a, Clients<A>>,
        (who, mut now): (Who, u64),
        act: impl Fn(&A, &mut A::State, u64) -> R,
    ) -> Option<R> {
        let algorithm = &self.rules.algorithm;
        loop {
            if let Some(at) = clients.find(who) {
                // Another thread brought it in while this one searched for room.
                return clients.attempt(&self.rules, at, now, act);
            }
            if self.claim_place(shard, &clients, now) {
                let mut state = algorithm.fresh(now);
                let answer = act(algorithm, &mut state, now);
                clients.insert(&self.rules, who, state);
                self.publish(shard, &clients, 0);
                return Some(answer);
            }
            drop(clients);
            if self.is_full_of_active(now) {
                return None;
            }
            self.make_room(now);
            (clients, now) = self.enter(shard, now);
        }
    }

    /// Looks at a few due positions, whoever's call this is, so that forgetting is paid for in
    /// small change: an attempt makes at most one position stale.
    #[cold]
    #[inline(never)]
    fn tend(&self, shard: Shard<'_, A>, clients: &mut Clients<A>, now: u64) {
        let forgotten = clients.forget_due(&self.rules, now, POSITIONS_A_CALL);
        if forgotten > 0 {
            // A table that is mostly empty does not grow in the same call.
            clients.shrink(false);
        }
        self.publish(shard, clients, forgotten);
    }

    /// Under the shard's lock, after its clients or their order changed. First the count, then the
    /// bound: whoever learns from the bound that nobody here is idle any more must not find the
    /// places of those who were still taken.
    fn publish(&self, shard: Shard<'_, A>, clients: &Clients<A>, forgotten: usize) {
        if forgotten > 0 {
            let forgotten = u64::try_from(forgotten).unwrap_or(0);
            self.total.0.fetch_sub(forgotten, Ordering::AcqRel);
        }
        // Written only when it changed, which who searches will be glad of.
        if shard.earliest.load(Ordering::Relaxed) != clients.earliest() {
            shard.earliest.store(clients.earliest(), Ordering::Release);
        }
    }

    /// Takes a newcomer's place in `total`, if there is one; the caller then takes it in under the
    /// same lock.
    fn claim_place(&self, shard: Shard<'_, A>, clients: &Clients<A>, now: u64) -> bool {
        if self.total.0.load(Ordering::Acquire) >= self.max_clients {
            return false;
        }
        // The bounds first, then the count: see the top of this file.
        let undercuts = self.rules.forgets() && clients.earliest() == NOBODY;
        if undercuts {
            shard.earliest.store(now, Ordering::Release);
            self.floor.0.lower(now);
        }
        let raised = |total: u64| (total < self.max_clients).then(|| total.saturating_add(1));
        let total = &self.total.0;
        let claimed = total
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, raised)
            .is_ok();
        #[cfg(loom)]
        assert!(total.load(Ordering::Acquire) <= self.max_clients);
        if undercuts && !claimed {
            shard.earliest.store(NOBODY, Ordering::Release);
        }
        claimed
    }

    /// Whether at some instant of this call as many clients as may be were tracked, and none of
    /// them was idle at `now`.
    fn is_full_of_active(&self, now: u64) -> bool {
        let floor = &self.floor.0;
        let version = floor.version.load(Ordering::Acquire);
        !self
            .rules
            .is_idle(floor.position.load(Ordering::Acquire), now)
            && self.total.0.load(Ordering::Acquire) >= self.max_clients
            && floor.version.load(Ordering::Acquire) == version
    }

    /// Forgets some who are idle at `now`, or finds out that nobody is and raises the floor; or
    /// corrects up to 64 positions of each shard, and is to be called again.
    ///
    /// Each call that forgets nobody leaves fewer positions that are due: with n clients at most
    /// n/64 + 1 of them, and in all of them together each position is looked at once.
    #[cold]
    #[inline(never)]
    fn make_room(&self, now: u64) {
        let version = self.floor.0.version.load(Ordering::Acquire);
        let start = self.next_search.0.fetch_add(1, Ordering::Relaxed);
        let start = usize::try_from(start).unwrap_or(0) & self.clients.len().saturating_sub(1);
        let mut earliest = NOBODY;
        for shard in self.shards_from(start) {
            let due = self
                .rules
                .is_idle(shard.earliest.load(Ordering::Acquire), now);
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
        let forgotten = clients.forget_due(&self.rules, now, POSITIONS_A_LOCK);
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
        while self
            .rules
            .is_idle(floor.position.load(Ordering::Acquire), now)
        {
            let version = floor.version.load(Ordering::Acquire);
            let mut earliest = NOBODY;
            for shard in self.shards_from(0) {
                if self
                    .rules
                    .is_idle(shard.earliest.load(Ordering::Acquire), now)
                {
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
        self.total.0.load(Ordering::Acquire)
    }

    /// Gives tokens back to a client that is tracked and not idle. For anybody else there is
    /// nothing to give back: it has all its tokens.
    pub(crate) fn refund(&self, key: Key, tokens: u64, taken_at: Option<u64>, now: u64) {
        let (who, shard) = self.whereabouts(key);
        let Some(shard) = self.shard(shard) else {
            return;
        };
        let mut clients = lock(shard.clients);
        let now = clients.advance(now);
        if let Some(at) = clients.find(who)
            && let Some(state) = clients.state_mut_at(&self.rules, at, now)
        {
            self.rules.algorithm.refund(state, tokens, taken_at, now);
        }
    }

    #[inline]
    fn whereabouts(&self, key: Key) -> (Who, usize) {
        let hash = self.places.hash(key);
        let who = Who {
            key,
            hash: self.places.in_shard(hash),
        };
        (who, self.places.shard(hash))
    }

    /// Forgets one client; returns whether it was tracked, and not idle.
    pub(crate) fn remove(&self, key: Key, now: u64) -> bool {
        let (who, shard) = self.whereabouts(key);
        let Some(shard) = self.shard(shard) else {
            return false;
        };
        let mut clients = lock(shard.clients);
        let now = clients.advance(now);
        let Some(at) = clients.find(who) else {
            return false;
        };
        let was_active = clients.state_at(&self.rules, at, now).is_some();
        clients.remove(at);
        self.publish(shard, &clients, 1);
        was_active
    }

    /// The most that was ever done under one lock.
    pub(crate) fn longest_hold(&self) -> LongestHold {
        let mut most = LongestHold::default();
        for shard in self.shards_from(0) {
            let work = lock(shard.clients).longest_hold();
            most.positions = most.positions.max(work.positions);
            most.rebuilds = most.rebuilds.max(work.rebuilds);
        }
        most
    }

    /// Bytes on the heap, but for what states hold on it themselves.
    pub(crate) fn memory_bytes(&self) -> usize {
        let shard = size_of::<Apart<Mutex<Clients<A>>>>().saturating_add(size_of::<AtomicU64>());
        let shards = self.clients.len().saturating_mul(shard);
        let held = |shard: Shard<'_, A>| lock(shard.clients).memory_bytes();
        self.shards_from(0)
            .map(held)
            .fold(shards, usize::saturating_add)
    }

    /// Panics unless everything that holds whenever no call is under way does hold.
    #[cfg(any(test, loom))]
    pub(crate) fn validate(&self) {
        let mut total = 0;
        let floor = self.floor.0.position.load(Ordering::Acquire);
        for shard in self.shards_from(0) {
            let clients = lock(shard.clients);
            clients.validate(&self.rules);
            total += u64::try_from(clients.len()).unwrap_or(u64::MAX);
            assert_eq!(shard.earliest.load(Ordering::Acquire), clients.earliest());
            assert!(floor <= clients.earliest());
        }
        assert_eq!(
            total,
            self.total.0.load(Ordering::Acquire),
            "a place was lost"
        );
        assert!(total <= self.max_clients, "above the cap");
    }
}
