//! One shard's clients: who they are, what they have left, and who may be forgotten. Knows nothing
//! of threads.

use super::expiry::Expiry;
use super::key::{Key, Places};
use super::table::{Found, LEAST, Table};
use crate::algorithm::Algorithm;

/// The position of nobody: later than everybody's.
pub(crate) const NOBODY: u64 = u64::MAX;

/// What is the same for all clients of a limiter.
#[derive(Clone, Debug)]
pub(crate) struct Rules<A> {
    pub(crate) algorithm: A,
    /// Nanoseconds since a client's last attempt after which it is forgotten; at least 1.
    idle_ns: u64,
    /// Or never.
    forgets: bool,
}

impl<A> Rules<A> {
    pub(crate) fn new(algorithm: A, idle_ns: Option<u64>) -> Self {
        Self {
            algorithm,
            idle_ns: idle_ns.unwrap_or(u64::MAX),
            forgets: idle_ns.is_some(),
        }
    }

    /// Whether someone last seen at `position` is to be forgotten at `now`. Nobody never is.
    #[inline]
    pub(crate) fn is_idle(&self, position: u64, now: u64) -> bool {
        now.saturating_sub(position) >= self.idle_ns && self.forgets
    }

    /// Whether clients are forgotten at all.
    pub(crate) fn forgets(&self) -> bool {
        self.forgets
    }
}

/// Who a client is to its shard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who {
    pub(crate) key: Key,
    /// The hash that the shard's table goes by.
    pub(crate) hash: u32,
}

/// What was done under one shard's lock in one go: see
/// [`KeyedLimiter::longest_hold`](crate::KeyedLimiter::longest_hold).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LongestHold {
    /// Positions of the expiry queue that were looked at.
    pub positions: usize,
    /// Times that the shard's table and queue were made anew: larger, smaller, or the queue alone
    /// without the positions of clients who were removed.
    pub rebuilds: usize,
}

/// The clients of one shard.
#[derive(Debug)]
pub(crate) struct Clients<A: Algorithm> {
    table: Table<A::State>,
    /// Holds every client that can go idle; empty if none ever does.
    expiry: Expiry,
    /// The latest time decided at in this shard. Time in here never runs back.
    latest: u64,
    /// Nobody here was last seen before this; [`NOBODY`] if nobody can go idle.
    earliest: u64,
    /// Done since time last advanced, which is since the lock was taken; and the most ever done.
    work: LongestHold,
    most_work: LongestHold,
}

impl<A: Algorithm> Clients<A> {
    pub(crate) fn new(places: Places) -> Self {
        Self {
            table: Table::new(places),
            expiry: Expiry::default(),
            latest: 0,
            earliest: NOBODY,
            work: LongestHold::default(),
            most_work: LongestHold::default(),
        }
    }

    /// The later of `now` and the latest time seen here, which it becomes. Comes first whenever
    /// the lock is taken.
    #[inline]
    pub(crate) fn advance(&mut self, now: u64) -> u64 {
        self.work = LongestHold::default();
        self.latest = self.latest.max(now);
        self.latest
    }

    /// Nobody here was last seen before this; never later than the latest time seen here, but for
    /// [`NOBODY`].
    #[inline]
    pub(crate) fn earliest(&self) -> u64 {
        self.earliest
    }

    /// After the expiry queue changed.
    fn note_earliest(&mut self) {
        self.earliest = self
            .expiry
            .earliest()
            .map_or(NOBODY, |(position, _)| position);
    }

    #[cfg(any(test, loom))]
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    #[inline]
    pub(crate) fn find(&self, who: Who) -> Option<usize> {
        match self.table.find(who.key, who.hash) {
            Found::At(at) => Some(at),
            Found::Missing(_) => None,
        }
    }

    /// The state of a known client, unless it has gone idle.
    pub(crate) fn state_at(&self, rules: &Rules<A>, at: usize, now: u64) -> Option<&A::State> {
        let state = self.table.state(at)?;
        (!rules.is_idle(A::last_attempt(state), now)).then_some(state)
    }

    /// The same, to be changed other than by an attempt.
    pub(crate) fn state_mut_at(
        &mut self,
        rules: &Rules<A>,
        at: usize,
        now: u64,
    ) -> Option<&mut A::State> {
        let state = self.table.state_mut(at)?;
        (!rules.is_idle(A::last_attempt(state), now)).then_some(state)
    }

    /// An attempt by a known client, which starts afresh if it has gone idle. Its entry in the
    /// expiry queue stays where it is: a lower bound.
    #[inline]
    pub(crate) fn attempt<R>(
        &mut self,
        rules: &Rules<A>,
        at: usize,
        now: u64,
        act: impl Fn(&A, &mut A::State, u64) -> R,
    ) -> Option<R> {
        let state = self.table.state_mut(at)?;
        if rules.is_idle(A::last_attempt(state), now) {
            *state = rules.algorithm.fresh(now);
        }
        Some(act(&rules.algorithm, state, now))
    }

    /// Takes in a client that is not here, last seen now.
    pub(crate) fn insert(&mut self, rules: &Rules<A>, who: Who, state: A::State) {
        let grown = self.table.insert(who.key, who.hash, state);
        self.count(0, usize::from(grown));
        if rules.forgets() {
            if grown {
                self.expiry.fit(self.table.most());
            }
            // The latest time here is the largest position: it needs no sifting.
            self.expiry.push(self.latest, who.hash);
            self.note_earliest();
        }
    }

    /// Forgets the client at `at`, whether idle or not. Its entry stays until it comes up, or
    /// until such entries outnumber the clients.
    pub(crate) fn remove(&mut self, at: usize) {
        self.table.remove(at);
        let stale = self.expiry.len().saturating_sub(self.table.len());
        if self.table.len() == 0 || stale > self.table.len().saturating_add(64) {
            let clients = self.table.iter();
            self.expiry
                .rebuild(clients.map(|(hash, state)| (A::last_attempt(state), hash)));
            self.note_earliest();
            self.count(0, 1);
        } else {
            self.shrink(false);
        }
    }

    /// Looks at up to `most` positions that are due: forgets who is idle, corrects the others.
    /// Returns how many were forgotten.
    pub(crate) fn forget_due(&mut self, rules: &Rules<A>, now: u64, most: usize) -> usize {
        let before = self.table.len();
        for _ in 0..most {
            let Some((position, hash)) = self.expiry.earliest() else {
                break;
            };
            if !rules.is_idle(position, now) {
                break;
            }
            self.count(1, 0);
            let seen = |at| Some((A::last_attempt(self.table.state(at)?), at));
            match self.table.with_hash(hash).filter_map(seen).min() {
                Some((last_attempt, at)) if rules.is_idle(last_attempt, now) => {
                    self.table.remove(at);
                    self.expiry.pop();
                }
                // Later than its position, which was due: so this makes progress.
                Some((last_attempt, _)) => self.expiry.correct(last_attempt),
                None => self.expiry.pop(),
            }
        }
        self.note_earliest();
        before.saturating_sub(self.table.len())
    }

    /// Gives memory back if most of it is unused; all of it if nobody is here and `all` is set.
    pub(crate) fn shrink(&mut self, all: bool) {
        if self.table.shrink(if all { 0 } else { LEAST }) {
            self.expiry.fit(self.table.most());
            self.count(0, 1);
        }
    }

    fn count(&mut self, positions: usize, rebuilds: usize) {
        let (work, most) = (&mut self.work, &mut self.most_work);
        work.positions = work.positions.saturating_add(positions);
        work.rebuilds = work.rebuilds.saturating_add(rebuilds);
        most.positions = most.positions.max(work.positions);
        most.rebuilds = most.rebuilds.max(work.rebuilds);
    }

    pub(crate) fn longest_hold(&self) -> LongestHold {
        self.most_work
    }

    /// Bytes on the heap, but for what states hold on it themselves.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.table
            .memory_bytes()
            .saturating_add(self.expiry.memory_bytes())
    }

    /// Panics unless the table is in order and the clients can be given entries of their own.
    #[cfg(any(test, loom))]
    pub(crate) fn validate(&self, rules: &Rules<A>) {
        self.table.validate();
        if !rules.forgets() {
            assert_eq!(self.expiry.len(), 0);
            return;
        }
        let mut entries: Vec<(u32, u64)> =
            self.expiry.iter().map(|(at, hash)| (hash, at)).collect();
        let last = |(hash, state)| (hash, A::last_attempt(state));
        let mut clients: Vec<(u32, u64)> = self.table.iter().map(last).collect();
        entries.sort_unstable();
        clients.sort_unstable();
        // Of each hash, the nth oldest client takes the nth earliest entry.
        let mut entries = entries.into_iter().peekable();
        for (hash, last_attempt) in clients {
            while entries.next_if(|entry| entry.0 < hash).is_some() {}
            let (entry_hash, position) = entries.next().expect("an entry for each client");
            assert_eq!(entry_hash, hash);
            assert!(
                position <= last_attempt,
                "{position} is no lower bound of {last_attempt}"
            );
        }
        let earliest = self
            .expiry
            .earliest()
            .map_or(NOBODY, |(position, _)| position);
        assert_eq!(self.earliest, earliest);
        assert!(earliest == NOBODY || earliest <= self.latest);
    }
}
