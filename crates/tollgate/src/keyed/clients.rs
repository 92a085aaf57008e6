//! One shard's clients: who they are, what they have left, and who may be forgotten. Knows nothing
//! of threads.

use std::sync::Arc;

use super::expiry::Expiry;
use super::key::{Key, Tag};
use super::rules::Rules;
use super::table::{Found, LEAST, Table};
use crate::algorithm::Algorithm;
use crate::statistics::Counts;

/// The position of nobody: later than everybody's.
pub(crate) const NOBODY: u64 = u64::MAX;

/// Who a client is to its shard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who {
    pub(crate) key: Key,
    /// The hash that the shard's table goes by.
    pub(crate) hash: u32,
}

/// How a call for a client ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome<R> {
    Judged(R),
    /// Nothing was done: the client is banned for so many nanoseconds more.
    Banned(u64),
    /// Nothing was done: the limit lets no call take as much.
    TooLarge {
        burst: u64,
    },
    /// Nothing was done: the client is new, and as many as may be are tracked.
    Full,
}

/// Why a newcomer was not taken in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Refused {
    Full,
    TooLarge { burst: u64 },
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
///
/// In the order given: with a lock of 8 bytes before it, all that an admitted call of a known
/// client reads or writes here is on the first line of 64 bytes, which the table's and `admitted`'s
/// short counts are for.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Clients<A: Algorithm> {
    table: Table<A::State>,
    rules: Arc<Rules<A>>,
    /// The latest time decided at in this shard. Time in here never runs back.
    latest: u64,
    /// Nobody here comes up before this.
    due: u64,
    /// Calls admitted, but for those that are in `counts` already.
    admitted: u32,
    /// `work` is of this hold of the lock, and not nothing.
    worked: bool,
    /// Or nobody here goes idle.
    forgets: bool,
    /// Holds every client that can go idle.
    expiry: Expiry,
    /// No position here is earlier; [`NOBODY`] if nobody is here.
    earliest: u64,
    /// No client's last attempt is later than this or `latest`: the end of a ban may be.
    latest_ban: u64,
    counts: Counts,
    /// Done since time last advanced, which is since the lock was taken; and the most ever done.
    work: LongestHold,
    most_work: LongestHold,
}

impl<A: Algorithm> Clients<A> {
    pub(crate) fn new(rules: Arc<Rules<A>>) -> Self {
        Self {
            table: Table::new(),
            rules,
            latest: 0,
            due: NOBODY,
            admitted: 0,
            worked: false,
            forgets: true,
            expiry: Expiry::default(),
            earliest: NOBODY,
            latest_ban: 0,
            counts: Counts::default(),
            work: LongestHold::default(),
            most_work: LongestHold::default(),
        }
    }

    /// Clients who never go idle.
    pub(crate) fn kept(rules: Arc<Rules<A>>) -> Self {
        Self {
            forgets: false,
            ..Self::new(rules)
        }
    }

    #[inline]
    pub(crate) fn rules(&self) -> &Rules<A> {
        &self.rules
    }

    pub(crate) fn counts(&mut self) -> &mut Counts {
        let admitted = core::mem::take(&mut self.admitted);
        self.counts.allowed(u64::from(admitted));
        &mut self.counts
    }

    /// Counts a call that was admitted or not.
    #[inline]
    fn count_judged(&mut self, admitted: bool) {
        if !admitted {
            return self.counts.limited();
        }
        let (admitted, is_full) = self.admitted.overflowing_add(1);
        self.admitted = admitted;
        if is_full {
            self.counts.allowed(1 << 32);
        }
    }

    /// The later of `now` and the latest time seen here, which it becomes. Comes first whenever
    /// the lock is taken.
    #[inline]
    pub(crate) fn advance(&mut self, now: u64) -> u64 {
        // Written only if something was done, which is seldom: what is written under the lock has
        // to be out before the lock is.
        if self.worked {
            self.worked = false;
            self.work = LongestHold::default();
        }
        self.latest = self.latest.max(now);
        self.latest
    }

    /// No position here is earlier; [`NOBODY`] if nobody is here who can go idle.
    #[inline]
    pub(crate) fn earliest(&self) -> u64 {
        self.earliest
    }

    /// Nobody here comes up before this, or is idle.
    #[inline]
    pub(crate) fn due(&self) -> u64 {
        self.due
    }

    /// After the expiry queue or the rules changed.
    fn note_earliest(&mut self) {
        let earliest = self.expiry.earliest();
        self.earliest = earliest.map_or(NOBODY, |(position, _)| position);
        self.due = earliest.map_or(NOBODY, |(position, _)| self.rules.idling().due(position));
    }

    /// Holds everybody here to other rules from now on; returns the latest position of anybody
    /// here. If a limiter that never forgot comes to, its clients are looked at once.
    pub(crate) fn adopt(&mut self, rules: Arc<Rules<A>>) -> u64 {
        let forgot = self.rules.idling().forgets();
        self.rules = rules;
        if !forgot && self.rules.idling().forgets() {
            self.rebuild_expiry();
        }
        self.note_earliest();
        self.latest.max(self.latest_ban)
    }

    #[cfg(any(test, loom))]
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    #[inline]
    pub(crate) fn find(&self, who: Who) -> Option<usize> {
        self.find_under(who, 0).map(|(at, _)| at)
    }

    /// Has the memory fetched where a client is, if it is here.
    #[inline]
    pub(crate) fn touch(&self, who: Who) -> u64 {
        self.table.touch(who.hash)
    }

    /// Where a client is, and whether its state has to be brought under that plan's present limit
    /// first.
    #[inline]
    pub(crate) fn find_under(&self, who: Who, plan: u8) -> Option<(usize, bool)> {
        let key = who.key.with_tag(self.rules.tag(plan));
        match self.table.find(self.rules.places(), key, who.hash) {
            Found::At(at) => Some((at, false)),
            Found::Otherwise(at) => Some((at, true)),
            Found::Missing(_) => None,
        }
    }

    /// Where a client is, once its state is under that plan's present limit.
    pub(crate) fn find_and_bring(&mut self, who: Who, plan: u8, now: u64) -> Option<usize> {
        let (at, otherwise) = self.find_under(who, plan)?;
        if otherwise {
            self.bring(at, plan, now);
        }
        Some(at)
    }

    /// Whether a client of that state is idle, and as good as forgotten.
    #[inline]
    fn is_idle(&self, tag: Tag, state: &A::State, now: u64) -> bool {
        self.forgets
            && now >= self.due
            && self
                .rules
                .idling()
                .is_due(self.rules.position(tag, state), now)
    }

    /// Looks at a known client's state under a plan's limit, or its own plan's. `None` if it has
    /// gone idle.
    pub(crate) fn look<R>(
        &self,
        at: usize,
        plan: Option<u8>,
        now: u64,
        answer: impl FnOnce(&A, &A::State, u64) -> R,
    ) -> Option<Outcome<R>> {
        let (tag, state) = self.table.tagged(at)?;
        let last_attempt = A::last_attempt(state);
        if self.is_idle(tag, state, now) {
            return None;
        }
        if last_attempt > now {
            return Some(Outcome::Banned(last_attempt.wrapping_sub(now)));
        }
        let plan = plan.unwrap_or_else(|| Rules::<A>::plan_of(tag));
        let limit = self.rules.limit(plan);
        Some(Outcome::Judged(if tag == self.rules.tag(plan) {
            answer(limit, state, now)
        } else {
            answer(limit, &self.rules.brought(tag, state, plan, now), now)
        }))
    }

    /// Whether the client at `at` is tracked and has not gone idle.
    pub(crate) fn is_active(&self, at: usize, now: u64) -> bool {
        let state = self.table.tagged(at);
        state.is_some_and(|(tag, state)| !self.is_idle(tag, state, now))
    }

    /// Brings everybody over to the limits that hold under `rules`, and holds them to `next`, which
    /// are the same, with or without what came before. Clients who are idle stay so; where their
    /// positions would be those of other limits they are forgotten. Returns how many were.
    pub(crate) fn convert(&mut self, rules: &Rules<A>, next: Arc<Rules<A>>, now: u64) -> usize {
        let forgotten = if next.is_eager() {
            self.forget_due(now, usize::MAX)
        } else {
            0
        };
        for at in 0..self.table.slots() {
            let Some((_, (tag, state))) = self.table.key(at).zip(self.table.tagged(at)) else {
                continue;
            };
            let plan = Rules::<A>::plan_of(tag);
            if tag != rules.tag(plan) && !self.is_idle(tag, state, now) {
                let state = rules.brought(tag, state, plan, now);
                self.table.retag(at, rules.tag(plan), state);
            }
        }
        let last_attempts = self.table.iter().map(|(_, state)| A::last_attempt(state));
        self.latest_ban = last_attempts.max().unwrap_or(0);
        self.rules = next;
        if self.rules.is_eager() {
            self.rebuild_expiry();
        }
        self.note_earliest();
        forgotten
    }

    /// Writes a known client's state down under a plan's present limit.
    #[cold]
    #[inline(never)]
    pub(crate) fn bring(&mut self, at: usize, plan: u8, now: u64) {
        let Some((tag, state)) = self.table.tagged(at) else {
            return;
        };
        let (position, wanted) = (self.rules.position(tag, state), self.rules.tag(plan));
        let state = if self.is_idle(tag, state, now) {
            self.rules.limit(plan).fresh(now)
        } else {
            self.rules.brought(tag, state, plan, now)
        };
        self.table.retag(at, wanted, state);
        self.note_fall(at, position);
    }

    /// An attempt by a known client whose state is under that plan's present limit. It starts
    /// afresh if it has gone idle. Its entry in the expiry queue stays where it is: a lower bound.
    #[inline]
    pub(crate) fn attempt<R>(
        &mut self,
        at: usize,
        plan: u8,
        now: u64,
        act: impl FnOnce(&A, &mut A::State, u64) -> (R, bool),
    ) -> Outcome<R> {
        let Some(state) = self.table.state_mut(at) else {
            return Outcome::Full;
        };
        let last_attempt = A::last_attempt(state);
        // One branch, seldom taken, for two things that are seldom so.
        if (last_attempt > now) | (now >= self.due)
            && let Some(left) = self.refuse_or_refresh(at, plan, now)
        {
            return Outcome::Banned(left);
        }
        let Some(state) = self.table.state_mut(at) else {
            return Outcome::Full;
        };
        let (answer, admitted) = act(self.rules.limit(plan), state, now);
        self.count_judged(admitted);
        Outcome::Judged(answer)
    }

    /// Counts and refuses a cost that no bucket of that plan holds.
    #[inline]
    pub(crate) fn check(&mut self, plan: u8, cost: u64) -> Result<(), Refused> {
        let burst = self.rules.limit(plan).burst();
        if cost <= burst {
            return Ok(());
        }
        self.counts.too_large = self.counts.too_large.wrapping_add(1);
        Err(Refused::TooLarge { burst })
    }

    /// How many nanoseconds more the client is banned, if it is; a client that is idle starts
    /// afresh.
    #[cold]
    #[inline(never)]
    fn refuse_or_refresh(&mut self, at: usize, plan: u8, now: u64) -> Option<u64> {
        let (tag, state) = self.table.tagged(at)?;
        let last_attempt = A::last_attempt(state);
        if last_attempt > now {
            self.counts.banned = self.counts.banned.wrapping_add(1);
            return Some(last_attempt.wrapping_sub(now));
        }
        if self.is_idle(tag, state, now) {
            self.refresh(at, plan, now);
        }
        None
    }

    /// Changes a known client's state other than by an attempt for tokens. A banned client's time
    /// is the end of its ban. `None` if it has gone idle.
    pub(crate) fn change<R>(
        &mut self,
        at: usize,
        now: u64,
        act: impl FnOnce(&A, &mut A::State, u64) -> R,
    ) -> Option<R> {
        let (tag, state) = self.table.tagged(at)?;
        if self.is_idle(tag, state, now) {
            return None;
        }
        self.change_active(at, now, act)
    }

    /// The same of a client that is known not to be idle.
    fn change_active<R>(
        &mut self,
        at: usize,
        now: u64,
        act: impl FnOnce(&A, &mut A::State, u64) -> R,
    ) -> Option<R> {
        let (tag, _) = self.table.tagged(at)?;
        let plan = Rules::<A>::plan_of(tag);
        if tag != self.rules.tag(plan) {
            self.bring(at, plan, now);
        }
        let (tag, state) = self.table.tagged(at)?;
        let position = self.rules.position(tag, state);
        let state = self.table.state_mut(at)?;
        let done = act(self.rules.limit(plan), state, now);
        self.latest_ban = self.latest_ban.max(A::last_attempt(state));
        self.note_fall(at, position);
        Some(done)
    }

    /// The same for a client that starts afresh if it has gone idle.
    pub(crate) fn act<R>(
        &mut self,
        at: usize,
        now: u64,
        act: impl FnOnce(&A, &mut A::State, u64) -> R,
    ) -> Option<R> {
        if !self.is_active(at, now) {
            // As if it had been forgotten: with no plan.
            self.refresh(at, 0, now);
        }
        self.change_active(at, now, act)
    }

    /// Has a client that is idle start afresh, under a plan's present limit. Its entry in the
    /// expiry queue is due, so it is no later than whatever comes of this.
    pub(crate) fn refresh(&mut self, at: usize, plan: u8, now: u64) {
        let (tag, fresh) = (self.rules.tag(plan), self.rules.limit(plan).fresh(now));
        self.table.retag(at, tag, fresh);
    }

    /// Takes in a client that is not here, as new; [`enqueue`](Self::enqueue) comes next, under the
    /// same lock. Returns where it is.
    pub(crate) fn insert(&mut self, who: Who, plan: u8, now: u64) -> Option<usize> {
        let key = who.key.with_tag(self.rules.tag(plan));
        let fresh = self.rules.limit(plan).fresh(now);
        let grown = self.table.insert(self.rules.places(), key, who.hash, fresh);
        self.count(0, usize::from(grown));
        if grown && self.rules.idling().forgets() {
            self.expiry.fit(self.table.most());
        }
        self.find(who)
    }

    /// Takes in a client with all that it has done, unless it is here.
    pub(crate) fn insert_as(&mut self, who: Who, plan: u8, state: A::State) -> bool {
        if self.find(who).is_some() {
            return false;
        }
        let at = self.insert(who, plan, self.latest);
        if let Some(at) = at {
            self.table.retag(at, self.rules.tag(plan), state);
            self.enqueue(at);
        }
        at.is_some()
    }

    /// Everybody who is not idle: who it is, its plan, and its state under the limit that holds.
    pub(crate) fn active(&self) -> impl Iterator<Item = (Key, u8, A::State)> {
        let now = self.latest;
        let active = self
            .table
            .iter()
            .filter(move |(key, state)| !self.is_idle(key.tag(), state, now));
        active.map(move |(key, state)| {
            let plan = Rules::<A>::plan_of(key.tag());
            let state = self.rules.brought(key.tag(), state, plan, now);
            (key.without_tag(), plan, state)
        })
    }

    /// Gives a client its place in the expiry queue, which it has none in yet.
    pub(crate) fn enqueue(&mut self, at: usize) {
        let Some((key, (tag, state))) = self.table.key(at).zip(self.table.tagged(at)) else {
            return;
        };
        self.latest_ban = self.latest_ban.max(A::last_attempt(state));
        if self.rules.idling().forgets() {
            let position = self.rules.position(tag, state);
            self.expiry.push(position, self.rules.places().hash_of(key));
            self.note_earliest();
        }
    }

    /// The position of the client at `at` was `before`: if it has fallen, its entry is no lower
    /// bound any more, and it is given another. The old one goes when it comes up, or with all the
    /// others that have become needless.
    fn note_fall(&mut self, at: usize, before: u64) {
        let Some((key, (tag, state))) = self.table.key(at).zip(self.table.tagged(at)) else {
            return;
        };
        let position = self.rules.position(tag, state);
        if position >= before || !self.rules.idling().forgets() || !self.forgets {
            return;
        }
        let hash = self.rules.places().hash_of(key);
        if self.is_mostly_stale() {
            self.rebuild_expiry();
        } else {
            self.expiry.push(position, hash);
        }
        self.note_earliest();
    }

    /// Whether needless entries of the expiry queue are a quarter of its clients or more.
    fn is_mostly_stale(&self) -> bool {
        let clients = self.table.len();
        let bound = clients.saturating_add(clients >> 2).saturating_add(64);
        self.expiry.len() > bound
    }

    /// Gives every client an entry at its own position, if they go idle.
    fn rebuild_expiry(&mut self) {
        if !self.forgets {
            return;
        }
        let rules = &self.rules;
        let clients = self.table.iter();
        self.expiry.rebuild(clients.map(|(key, state)| {
            let hash = rules.places().hash_of(key);
            (rules.position(key.tag(), state), hash)
        }));
        self.count(0, 1);
    }

    /// Forgets the client at `at`, whether idle or not. Its entry stays until it comes up, or
    /// until such entries outnumber the clients.
    pub(crate) fn remove(&mut self, at: usize) {
        self.table.remove(self.rules.places(), at);
        if self.table.len() == 0 || self.is_mostly_stale() {
            self.rebuild_expiry();
            self.note_earliest();
        } else {
            self.shrink(false);
        }
    }

    /// Looks at up to `most` positions that are due: forgets who is idle, corrects the others.
    /// Returns how many were forgotten.
    pub(crate) fn forget_due(&mut self, now: u64, most: usize) -> usize {
        let before = self.table.len();
        let (rules, table, expiry) = (&self.rules, &mut self.table, &mut self.expiry);
        let idling = rules.idling();
        let mut looked_at = 0_usize;
        while looked_at < most {
            let Some((position, hash)) = expiry.earliest() else {
                break;
            };
            if !idling.is_due(position, now) {
                break;
            }
            looked_at = looked_at.saturating_add(1);
            let seen = |at| {
                let (tag, state) = table.tagged(at)?;
                Some((rules.position(tag, state), at))
            };
            match table.with_hash(rules.places(), hash).filter_map(seen).min() {
                Some((position, at)) if idling.is_due(position, now) => {
                    table.remove(rules.places(), at);
                    expiry.pop();
                }
                // Later than its entry, which was due: so this makes progress.
                Some((position, _)) => expiry.correct(position),
                None => expiry.pop(),
            }
        }
        self.count(looked_at, 0);
        self.note_earliest();
        let forgotten = before.saturating_sub(self.table.len());
        self.counts.forgot(forgotten);
        forgotten
    }

    /// Gives memory back if most of it is unused; all of it if nobody is here and `all` is set.
    pub(crate) fn shrink(&mut self, all: bool) {
        let least = if all { 0 } else { LEAST };
        if self.table.shrink(self.rules.places(), least) {
            self.expiry.fit(self.table.most());
            self.count(0, 1);
        }
    }

    fn count(&mut self, positions: usize, rebuilds: usize) {
        self.worked |= positions | rebuilds > 0;
        let (work, most) = (&mut self.work, &mut self.most_work);
        work.positions = work.positions.saturating_add(positions);
        work.rebuilds = work.rebuilds.saturating_add(rebuilds);
        most.positions = most.positions.max(work.positions);
        most.rebuilds = most.rebuilds.max(work.rebuilds);
    }

    pub(crate) fn longest_hold(&self) -> LongestHold {
        self.most_work
    }

    /// The clients that fit before the table grows.
    pub(crate) fn capacity(&self) -> usize {
        self.table.most()
    }

    /// The same of a shard that takes in so many clients, one after the other.
    pub(crate) fn memory_bytes_for(rules: &Rules<A>, clients: usize) -> usize {
        let (table, most) = Table::<A::State>::grown_for(clients);
        let queue = if rules.idling().forgets() {
            Expiry::bytes_for(most)
        } else {
            0
        };
        table.saturating_add(queue)
    }

    /// Bytes on the heap, but for what states hold on it themselves.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.table
            .memory_bytes()
            .saturating_add(self.expiry.memory_bytes())
    }

    /// Panics unless the table is in order and the clients can be given entries of their own.
    #[cfg(any(test, loom))]
    pub(crate) fn validate(&self) {
        self.table.validate(self.rules.places());
        if !self.rules.idling().forgets() {
            return;
        }
        let mut entries: Vec<(u32, u64)> =
            self.expiry.iter().map(|(at, hash)| (hash, at)).collect();
        let seen = |(key, state): (Key, &A::State)| {
            let hash = self.rules.places().hash_of(key);
            (hash, self.rules.position(key.tag(), state))
        };
        let mut clients: Vec<(u32, u64)> = self.table.iter().map(seen).collect();
        entries.sort_unstable();
        clients.sort_unstable();
        // Of each hash, the nth oldest client takes the nth earliest entry.
        let mut entries = entries.into_iter().peekable();
        for (hash, seen) in clients {
            while entries.next_if(|entry| entry.0 < hash).is_some() {}
            let (entry_hash, position) = entries.next().expect("an entry for each client");
            assert_eq!(entry_hash, hash);
            assert!(position <= seen, "{position} is no lower bound of {seen}");
        }
        let earliest = self.expiry.earliest();
        assert_eq!(self.earliest, earliest.map_or(NOBODY, |entry| entry.0));
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::algorithm::bucket::Bucket;
    use crate::keyed::key::Secrets;
    use crate::keyed::tests::rules;
    use crate::statistics::Statistics;

    /// Elsewhere a lock is larger.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_decision_needs_one_line_of_a_shard() {
        use crate::sync::Mutex;
        let lock = size_of::<Mutex<u64>>() - size_of::<u64>();
        let last = core::mem::offset_of!(Clients<Bucket<i64>>, forgets);
        assert!(lock + last < 64, "{lock} + {last} bytes");
    }

    #[test]
    fn admitted_calls_are_counted_beyond_what_is_counted_first() {
        let mut clients: Clients<Bucket<i64>> = Clients::new(rules(1_000, &Secrets::random(0)));
        clients.admitted = u32::MAX - 1;
        for _ in 0..3 {
            clients.count_judged(true);
        }
        assert_eq!(clients.admitted, 1);
        let mut statistics = Statistics::default();
        clients.counts().add_to(&mut statistics);
        clients.counts().add_to(&mut statistics);
        assert_eq!(statistics.allowed, 2 * ((1 << 32) + 1));
    }
}
