//! All clients of one limiter, shared by threads: shards, each under a lock of its own, and what
//! they agree on: how many clients there are, and since when nobody can have gone idle.
//!
//! Two shard locks are held at once only by calls that ask for several clients, in the order of the
//! shards. A known client's call touches its own shard and nothing
//! else. What makes the cap exact:
//!
//! - `total` is raised only by compare-and-swap from below the cap, under the lock of the shard
//!   that then takes the newcomer in, and lowered under the lock of the shard that forgot someone.
//! - Each shard publishes a lower bound of its clients' positions, which are times at which they
//!   were last seen (`earliest`), true whenever its lock is free; `floor` holds a lower bound of
//!   those. A newcomer that undercuts either lowers both *before* it raises `total`: the first of
//!   an empty shard, or of one where everybody is banned until later. A known client's position
//!   falls only under its shard's lock, which lowers both before it is released.
//! - A refusal reads the floor and finds that nobody can be idle, then reads that `total` is at the
//!   cap, then finds that the floor was not lowered in between: at the second reading, as many
//!   clients as may be were there, and none was idle.

use std::sync::Arc;

use super::changes::Changes;
use super::clients::{Clients, LongestHold, NOBODY, Outcome, Refused, Who};
use super::floor::Floor;
use super::key::{Key, Places};
use super::rules::{Latest, Rules};
use super::store::StorePlan;
use super::total::Total;
use crate::algorithm::{Algorithm, Refunded};
use crate::charge::unique;
use crate::statistics::Statistics;
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, lock};

/// The positions that every call looks at on its way: one that it may have made stale, and one
/// more, so that stale positions never pile up.
const POSITIONS_A_CALL: usize = 2;

/// On cache lines of its own. 128 bytes: processors fetch lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Apart<T>(pub(super) T);

/// One shard, by what of it is where.
#[derive(Debug)]
pub(super) struct Shard<'a, A: Algorithm> {
    pub(super) clients: &'a Mutex<Clients<A>>,
    /// A lower bound of everybody's position here, [`NOBODY`]'s if nobody can go idle; true
    /// whenever the lock is free, and written only under it.
    pub(super) earliest: &'a AtomicU64,
}

impl<A: Algorithm> Clone for Shard<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: Algorithm> Copy for Shard<'_, A> {}

/// Where a client's state is, its lock held.
struct Place<'a, A: Algorithm> {
    clients: MutexGuard<'a, Clients<A>>,
    at: usize,
    /// The call's time.
    now: u64,
    kind: Kind,
}

/// Whose state that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A client's of that shard.
    Known,
    /// The same, only just taken in: it has no position yet.
    Newcomer,
    /// That of all newcomers to a full table, which is in no shard.
    Shared,
}

impl<'a, A: Algorithm> Place<'a, A> {
    #[inline]
    fn known(clients: MutexGuard<'a, Clients<A>>, at: usize, now: u64) -> Self {
        Self {
            clients,
            at,
            now,
            kind: Kind::Known,
        }
    }
}

/// All clients of one limiter.
#[derive(Debug)]
pub struct Shards<A: Algorithm> {
    /// No other limiter's.
    pub(super) number: u64,
    pub(super) places: Places,
    pub(super) max_clients: u64,
    pub(super) clients: Box<[Apart<Mutex<Clients<A>>>]>,
    /// What each shard publishes, side by side: who searches reads all of them, and who only
    /// decides reads none.
    pub(super) earliest: Box<[AtomicU64]>,
    /// The one bucket of all newcomers to a full table, if they have one.
    pub(super) overflow: Option<Apart<Mutex<Clients<A>>>>,
    pub(super) total: Apart<Total>,
    pub(super) floor: Apart<Floor>,
    /// Where the next search for room starts, so that no shard is always the first.
    pub(super) next_search: Apart<AtomicU64>,
    /// Held while the limit is changed, from before the first shard's lock until after the last's.
    pub(super) changes: Apart<Mutex<Changes<A>>>,
}

impl<A: Algorithm> Shards<A> {
    /// As many shards as in the plan's places.
    pub(crate) fn new(rules: Rules<A>, plan: StorePlan) -> Self {
        let (places, rules) = (*rules.places(), Arc::new(rules));
        let clients = || Apart(Mutex::new(Clients::new(rules.clone())));
        Self {
            number: unique(),
            places,
            max_clients: plan.max_clients,
            clients: (0..places.shards()).map(|_| clients()).collect(),
            earliest: (0..places.shards())
                .map(|_| AtomicU64::new(NOBODY))
                .collect(),
            overflow: plan
                .overflow
                .then(|| Apart(Mutex::new(Clients::kept(rules.clone())))),
            total: Apart(Total::new()),
            floor: Apart(Floor::new()),
            next_search: Apart(AtomicU64::new(0)),
            changes: Apart(Mutex::new(Changes {
                rules,
                latest: Latest::default(),
            })),
        }
    }

    /// All shards, from the one with that number round to the one before it.
    pub(super) fn shards_from(&self, first: usize) -> impl Iterator<Item = Shard<'_, A>> {
        let all = self.clients.iter().zip(&self.earliest);
        let (behind, ahead) = (all.clone().take(first), all.skip(first));
        ahead.chain(behind).map(|(clients, earliest)| Shard {
            clients: &clients.0,
            earliest,
        })
    }

    /// Makes an attempt. A cost that no bucket may hold is `TooLarge`, one of 0 never is. `act`
    /// brings a client's state to the call's time, which is `now` or the latest that its shard has
    /// seen, if that is later, and says whether it was admitted.
    #[inline]
    pub(crate) fn attempt<R>(
        &self,
        key: Key,
        (plan, cost): (u8, u64),
        now: u64,
        act: impl FnOnce(&A, &mut A::State, u64) -> (R, bool),
    ) -> Outcome<R> {
        let (who, shard) = self.whereabouts(key);
        let Some(shard) = self.shard(shard) else {
            return Outcome::Full;
        };
        let (mut clients, mut now) = self.enter(shard, now);
        if let Err(Refused::TooLarge { burst }) = clients.check(plan, cost) {
            return Outcome::TooLarge { burst };
        }
        let mut kind = Kind::Known;
        let at = match clients.find_under(who, plan) {
            Some((at, false)) => at,
            Some((at, true)) => {
                clients.bring(at, plan, now);
                self.publish(shard, &clients, 0);
                at
            }
            None => match self.take_in(shard, clients, (who, plan, now), Some(cost)) {
                Ok(place) => {
                    (clients, now, kind) = (place.clients, place.now, place.kind);
                    place.at
                }
                Err(Refused::Full) => return Outcome::Full,
                Err(Refused::TooLarge { burst }) => return Outcome::TooLarge { burst },
            },
        };
        let outcome = clients.attempt(at, plan, now, act);
        if kind == Kind::Newcomer {
            self.settle_in(shard, &mut clients, at);
        }
        outcome
    }

    /// Does something to a client's state other than an attempt for tokens. Who is not tracked is
    /// taken in first; `None` is the client limit. `shares` says whether it may be done to the
    /// bucket of all newcomers to a full table.
    pub(crate) fn act<R>(
        &self,
        key: Key,
        shares: bool,
        now: u64,
        act: impl FnOnce(&A, &mut A::State, u64) -> R,
    ) -> Option<R> {
        let (who, shard) = self.whereabouts(key);
        let shard = self.shard(shard)?;
        let (clients, now) = self.enter(shard, now);
        let mut place = match clients.find(who) {
            Some(at) => Place::known(clients, at, now),
            None => {
                let shares = shares.then_some(0);
                self.take_in(shard, clients, (who, 0, now), shares).ok()?
            }
        };
        let done = place.clients.act(place.at, place.now, act);
        match place.kind {
            Kind::Known => self.publish(shard, &place.clients, 0),
            Kind::Newcomer => self.settle_in(shard, &mut place.clients, place.at),
            Kind::Shared => {}
        }
        done
    }

    /// Looks at a client, which changes nothing for it and tracks nobody.
    pub(crate) fn look<R>(
        &self,
        key: Key,
        plan: Option<u8>,
        now: u64,
        answer: impl Fn(&A, &A::State, u64) -> R,
    ) -> Option<Outcome<R>> {
        let (who, shard) = self.whereabouts(key);
        let (clients, now) = self.enter(self.shard(shard)?, now);
        let known = clients.find(who);
        let seen = known.and_then(|at| clients.look(at, plan, now, &answer));
        Some(seen.unwrap_or_else(|| {
            let limit = clients.rules().limit(plan.unwrap_or(0));
            Outcome::Judged(answer(limit, &limit.fresh(now), now))
        }))
    }

    #[inline]
    pub(super) fn shard(&self, number: usize) -> Option<Shard<'_, A>> {
        let (clients, earliest) = (self.clients.get(number)?, self.earliest.get(number)?);
        Some(Shard {
            clients: &clients.0,
            earliest,
        })
    }

    /// Locks a shard and takes care of what is due in it. Returns the call's time too.
    #[inline]
    pub(super) fn enter<'a>(
        &self,
        shard: Shard<'a, A>,
        now: u64,
    ) -> (MutexGuard<'a, Clients<A>>, u64) {
        let mut clients = lock(shard.clients);
        let now = clients.advance(now);
        if now >= clients.due() {
            self.tend(shard, &mut clients, now);
        }
        (clients, now)
    }

    /// Takes in a client that is not in its shard, once the shard was entered. It may get the
    /// bucket that newcomers share if it says what it asks for, which is held against the limit
    /// wherever a lock is taken: another may hold by then.
    #[cold]
    #[inline(never)]
    fn take_in<'a>(
        &'a self,
        shard: Shard<'a, A>,
        mut clients: MutexGuard<'a, Clients<A>>,
        (who, plan, mut now): (Who, u8, u64),
        cost: Option<u64>,
    ) -> Result<Place<'a, A>, Refused> {
        let overflow = self.overflow.as_ref().filter(|_| cost.is_some());
        let cost = cost.unwrap_or(0);
        loop {
            clients.check(plan, cost)?;
            if let Some(at) = clients.find_and_bring(who, plan, now) {
                // Another thread brought it in while this one searched for room.
                self.publish(shard, &clients, 0);
                return Ok(Place::known(clients, at, now));
            }
            if self.claim_place(shard, &clients, now) {
                let at = clients.insert(who, plan, now).ok_or(Refused::Full)?;
                return Ok(Place {
                    kind: Kind::Newcomer,
                    ..Place::known(clients, at, now)
                });
            }
            let idling = *clients.rules().idling();
            // Counted where the lock is held, for the answer that it usually comes to.
            let counted = u64::from(overflow.is_none());
            let refused = clients.counts().client_limit;
            clients.counts().client_limit = refused.wrapping_add(counted);
            drop(clients);
            if self.is_full_of_active(&idling, 1, now) {
                let overflow = overflow.ok_or(Refused::Full)?;
                return self.in_overflow(&overflow.0, (plan, cost), now);
            }
            self.make_room(&idling, now);
            (clients, now) = self.enter(shard, now);
            let refused = clients.counts().client_limit;
            clients.counts().client_limit = refused.wrapping_sub(counted);
        }
    }

    /// The bucket that newcomers to a full table share.
    fn in_overflow<'a>(
        &'a self,
        overflow: &'a Mutex<Clients<A>>,
        (plan, cost): (u8, u64),
        now: u64,
    ) -> Result<Place<'a, A>, Refused> {
        let (who, _) = self.whereabouts(Key::OVERFLOW);
        let mut clients = lock(overflow);
        let now = clients.advance(now);
        clients.check(plan, cost)?;
        let at = match clients.find_and_bring(who, plan, now) {
            Some(at) => at,
            None => clients.insert(who, plan, now).ok_or(Refused::Full)?,
        };
        Ok(Place {
            kind: Kind::Shared,
            ..Place::known(clients, at, now)
        })
    }

    /// Gives a newcomer its position, once its state is what it is to be.
    #[cold]
    #[inline(never)]
    fn settle_in(&self, shard: Shard<'_, A>, clients: &mut Clients<A>, at: usize) {
        clients.enqueue(at);
        self.publish(shard, clients, 0);
    }

    /// Looks at a few due positions, whoever's call this is, so that forgetting is paid for in
    /// small change: an attempt makes at most one position stale.
    #[cold]
    #[inline(never)]
    fn tend(&self, shard: Shard<'_, A>, clients: &mut Clients<A>, now: u64) {
        let forgotten = clients.forget_due(now, POSITIONS_A_CALL);
        if forgotten > 0 {
            // A table that is mostly empty does not grow in the same call.
            clients.shrink(false);
        }
        self.publish(shard, clients, forgotten);
    }

    /// Under the shard's lock, after its clients or their order changed. First the count, then the
    /// bound: whoever learns from the bound that nobody here is idle any more must not find the
    /// places of those who were still taken.
    pub(super) fn publish(&self, shard: Shard<'_, A>, clients: &Clients<A>, forgotten: usize) {
        if forgotten > 0 {
            self.total.0.release(forgotten);
        }
        // Written only when it changed, which who searches will be glad of.
        let published = shard.earliest.load(Ordering::Relaxed);
        if published != clients.earliest() {
            shard.earliest.store(clients.earliest(), Ordering::Release);
        }
        if clients.earliest() < published {
            self.floor.0.lower(clients.earliest());
        }
    }

    /// Every shard's clients.
    pub(super) fn all(&self) -> impl Iterator<Item = &Mutex<Clients<A>>> {
        self.clients.iter().map(|clients| &clients.0)
    }

    pub(super) fn max_clients(&self) -> u64 {
        self.max_clients
    }

    /// Takes in a client with all that it has done by `at`, if it is not here and there is room.
    pub(super) fn put(&self, key: Key, plan: u8, state: A::State, at: u64) -> bool {
        let (who, shard) = self.whereabouts(key);
        let Some(shard) = self.shard(shard) else {
            return false;
        };
        let mut clients = lock(shard.clients);
        clients.advance(at);
        let is_new = clients.insert_as(who, plan, state) && self.total.0.claim(self.max_clients);
        self.publish(shard, &clients, 0);
        is_new
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn total(&self) -> &Total {
        &self.total.0
    }

    /// The bucket that newcomers to a full table share, if they do.
    pub(super) fn overflow(&self) -> Option<&Mutex<Clients<A>>> {
        self.overflow.as_ref().map(|overflow| &overflow.0)
    }

    /// Gives tokens back to a client that is tracked and not idle. For anybody else there is
    /// nothing to give back: it has all its tokens.
    pub(crate) fn refund(&self, key: Key, tokens: u64, of: Refunded, now: u64) {
        let (who, shard) = self.whereabouts(key);
        let Some(shard) = self.shard(shard) else {
            return;
        };
        let mut clients = lock(shard.clients);
        let now = clients.advance(now);
        if let Some(at) = clients.find(who) {
            clients.change(at, now, |limit, state, now| {
                let now = now.max(A::last_attempt(state));
                limit.refund(state, tokens, of, now);
            });
            self.publish(shard, &clients, 0);
        }
    }

    #[inline]
    pub(super) fn whereabouts(&self, key: Key) -> (Who, usize) {
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
        let was_active = clients.is_active(at, now);
        clients.remove(at);
        self.publish(shard, &clients, 1);
        was_active
    }

    /// How often each answer was given.
    pub(crate) fn statistics(&self) -> Statistics {
        let mut statistics = Statistics::default();
        for shard in self.shards_from(0) {
            lock(shard.clients).counts().add_to(&mut statistics);
        }
        if let Some(overflow) = &self.overflow {
            let mut clients = lock(&overflow.0);
            clients.counts().add_overflow_to(&mut statistics);
        }
        statistics
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

    /// The clients that fit before any table grows, if they are spread evenly.
    pub(crate) fn capacity(&self) -> usize {
        let own = |shard: Shard<'_, A>| lock(shard.clients).capacity();
        self.shards_from(0).map(own).fold(0, usize::saturating_add)
    }

    /// Bytes on the heap, but for what states hold on it themselves.
    pub(crate) fn memory_bytes(&self) -> usize {
        let held = |clients: &Mutex<Clients<A>>| lock(clients).memory_bytes();
        let all = self.all().chain(self.overflow()).map(held);
        all.fold(self.bytes_of_none(), usize::saturating_add)
    }

    /// The same with so many clients, none of which was ever forgotten, as if every shard had as
    /// many as the fullest may: four standard deviations above its share.
    pub(crate) fn memory_bytes_for(&self, clients: usize) -> usize {
        let shards = self.clients.len();
        let share = clients.div_ceil(shards.max(1));
        let more = if shards > 1 {
            share.isqrt().saturating_mul(4)
        } else {
            0
        };
        let own = share.saturating_add(more).min(clients);
        let held = self.ask_rules(|rules| Clients::memory_bytes_for(rules, own));
        let held = held.unwrap_or_default().saturating_mul(shards);
        self.bytes_of_none().saturating_add(held)
    }

    /// Without a client.
    fn bytes_of_none(&self) -> usize {
        let shard = size_of::<Apart<Mutex<Clients<A>>>>().saturating_add(size_of::<AtomicU64>());
        self.clients.len().saturating_mul(shard)
    }

    /// Panics unless everything that holds whenever no call is under way does hold.
    #[cfg(any(test, loom))]
    pub(crate) fn validate(&self) {
        let mut total = 0;
        let floor = self.floor.0.position.load(Ordering::Acquire);
        for shard in self.shards_from(0) {
            let clients = lock(shard.clients);
            clients.validate();
            total += u64::try_from(clients.len()).unwrap_or(u64::MAX);
            assert_eq!(shard.earliest.load(Ordering::Acquire), clients.earliest());
            assert!(floor <= clients.earliest());
        }
        assert_eq!(total, self.total.0.tracked(), "a place was lost");
        assert!(!self.total.0.is_promised(), "a promise was kept open");
        assert!(total <= self.max_clients, "above the cap");
    }
}
