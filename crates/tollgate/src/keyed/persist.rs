//! All clients of a limiter as bytes, and back.
//!
//! The algorithm; the limits of all plans, the first one's first; then for each shard how many
//! clients follow, and of each its key, its plan and its state, under the limit that holds; how
//! many clients there are; and when it was written. The number of shards is the writer's: the
//! reader has its own.

use super::clients::Clients;
use super::key::Key;
use super::rules::MOST_PLANS;
use super::shards::Shards;
use crate::sync::lock;
use crate::wire::{Reader, Wire, Writer};
use crate::{RestoreError, Tokens};

impl<A: Wire> Shards<A> {
    /// Writes all clients who are not idle down, one shard after the other.
    pub(crate) fn write(&self, now: u64, to: &mut Writer) {
        to.u8(A::KIND);
        // Held until the last client is written: all of them are under these limits.
        let changes = lock(&self.changes.0);
        let rules = &changes.rules;
        to.usize(rules.plans().count());
        rules.plans().for_each(|limit| limit.write(to));
        to.usize(self.all().count());
        let (mut total, mut latest) = (0_u64, now);
        for clients in self.all() {
            let mut clients = lock(clients);
            latest = latest.max(clients.advance(now));
            total = total.saturating_add(clients.write(to));
        }
        to.u64(total);
        to.u64(latest);
    }

    /// Takes in all clients that were written down, into a store that nobody else sees yet.
    ///
    /// The time in between counts, but not as less than none: if it is earlier now, by this clock,
    /// than when they were written down, it is as late as then.
    pub(crate) fn read(&self, from: &mut Reader<'_>, now: u64) -> Result<(), RestoreError> {
        if from.u8()? != A::KIND {
            return Err(RestoreError::OtherAlgorithm);
        }
        let plans = usize::try_from(from.u64()?).unwrap_or(usize::MAX);
        if plans == 0 || plans > MOST_PLANS {
            return Err(RestoreError::Damaged);
        }
        let plans = (0..plans).map(|_| A::read(from));
        let plans = plans.collect::<Result<Vec<A>, RestoreError>>()?;
        let (written_at, total) = (from.last_u64()?, from.last_u64()?);
        let back = written_at.saturating_sub(now);
        let at = written_at.saturating_sub(back);
        let rules = lock(&self.changes.0).rules.clone();
        for (plan, before) in (0_u8..).zip(&plans) {
            before.may_become(rules.limit(plan), Tokens::Kept)?;
        }
        let (mut read, mut put) = (0_u64, 0_u64);
        for _ in 0..from.u64()? {
            for _ in 0..from.u64()? {
                let key = Key::from_words([from.u64()?, from.u64()?]);
                let plan = from.u8()?;
                let limit = rules.limit(plan);
                let before = plans.get(usize::from(plan)).or(plans.first());
                let (Some(key), Some(before)) = (key, before) else {
                    return Err(RestoreError::Damaged);
                };
                let mut state = before.read_state(from)?;
                read = read.saturating_add(1);
                // Shards were written one after the other: who has gone idle meanwhile may have
                // left its place to somebody in a later one. Under another limit it is told by
                // nothing who had.
                let position = if rules.is_eager() {
                    before.settled_at(&state)
                } else {
                    A::last_attempt(&state)
                };
                if before == limit && rules.idling().is_due(position, written_at) {
                    continue;
                }
                if back > 0 {
                    // What was earned until then is noted: its time may be before the clock's zero.
                    let at = written_at.max(A::last_attempt(&state));
                    before.touch(&mut state, at);
                    A::set_back(&mut state, back);
                }
                if before != limit {
                    let at = at.max(A::last_attempt(&state));
                    before.touch(&mut state, at);
                    state = limit.converted(before, &state, Tokens::Kept, at);
                }
                if put == self.max_clients() {
                    let (clients, most) = (total, put);
                    return Err(RestoreError::TooManyClients { clients, most });
                }
                put = put.saturating_add(1);
                if !self.put(key, plan, state, at) {
                    return Err(RestoreError::Damaged);
                }
            }
        }
        if read != total {
            return Err(RestoreError::Damaged);
        }
        from.end()
    }
}

impl<A: Wire> Clients<A> {
    /// Writes everybody down who is not idle; returns how many they are.
    fn write(&self, to: &mut Writer) -> u64 {
        to.usize(self.active().count());
        let mut written = 0_u64;
        for (key, plan, state) in self.active() {
            let [low, high] = key.words();
            to.u64(low);
            to.u64(high);
            to.u8(plan);
            A::write_state(&state, to);
            written = written.saturating_add(1);
        }
        written
    }
}
