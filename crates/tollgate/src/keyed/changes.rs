//! Other limits for all clients at once.

use std::sync::Arc;

use super::rules::{Latest, Rules};
use super::shards::Shards;
use crate::algorithm::Algorithm;
use crate::sync::lock;
use crate::{ChangeError, Tokens};

/// The rules as they are, and what changing them has to know.
#[derive(Debug)]
pub(super) struct Changes<A: Algorithm> {
    pub(super) rules: Arc<Rules<A>>,
    pub(super) latest: Latest,
}

impl<A: Algorithm> Shards<A> {
    /// Asks the rules as the first shard has them: not those behind the lock of changes, which is
    /// held as long as a snapshot is written. Never ask under a shard's lock.
    pub(crate) fn ask_rules<R>(&self, ask: impl FnOnce(&Rules<A>) -> R) -> Option<R> {
        self.all().next().map(|clients| ask(lock(clients).rules()))
    }

    /// Holds clients of one plan to another limit from now on.
    ///
    /// Takes every shard's lock twice, and looks at no client (but where positions are known only
    /// under the present limit, or where nobody was forgotten before): each is brought over when it
    /// is next seen. Calls that race with it are judged by either limit.
    pub(crate) fn change(
        &self,
        plan: u8,
        limit: A,
        tokens: Tokens,
        now: u64,
    ) -> Result<(), ChangeError> {
        let mut changes = lock(&self.changes.0);
        // Not before any time that a shard has seen.
        let latest = self.all().map(|clients| lock(clients).advance(now));
        let now = latest.max().unwrap_or(now);
        let changed = changes
            .rules
            .changed((plan, limit), tokens, now, &changes.latest)?;
        match changed {
            Some(rules) if rules.is_eager() => changes.rules = self.convert(&rules, now),
            Some(rules) => {
                let rules = Arc::new(rules);
                let latest = self.adopt(&rules, now);
                rules.note_latest(&mut changes.latest, latest);
                changes.rules = rules;
            }
            None => {}
        }
        Ok(())
    }

    /// Hands every shard its rules; returns the latest position of anybody.
    fn adopt(&self, rules: &Arc<Rules<A>>, now: u64) -> u64 {
        let mut latest = now;
        for shard in self.shards_from(0) {
            let mut clients = lock(shard.clients);
            clients.advance(now);
            latest = latest.max(clients.adopt(rules.clone()));
            self.publish(shard, &clients, 0);
        }
        // The client that newcomers share never goes idle, and is one: it is brought over at once,
        // so it is never under a limit that is forgotten.
        self.convert_overflow(rules, rules, now);
        latest
    }

    /// Brings everybody over to the present limits, so that none before them matters any more.
    /// Looks at every client, one shard after the other. Returns how many earlier limits did.
    pub(crate) fn settle(&self, now: u64) -> usize {
        let mut changes = lock(&self.changes.0);
        let remembered = changes.rules.remembers();
        if remembered > 0 {
            changes.rules = self.convert(&changes.rules, now);
        }
        remembered
    }

    /// Brings everybody over to the limits that hold under `rules`; returns the same with nothing
    /// before them, which all shards have from then on.
    fn convert(&self, rules: &Rules<A>, now: u64) -> Arc<Rules<A>> {
        let settled = Arc::new(rules.settled());
        for shard in self.shards_from(0) {
            let mut clients = lock(shard.clients);
            let now = clients.advance(now);
            let forgotten = clients.convert(rules, settled.clone(), now);
            self.publish(shard, &clients, forgotten);
        }
        self.convert_overflow(rules, &settled, now);
        settled
    }

    /// The same for the bucket that newcomers share, if they do.
    fn convert_overflow(&self, rules: &Rules<A>, next: &Arc<Rules<A>>, now: u64) {
        if let Some(overflow) = &self.overflow {
            let mut clients = lock(&overflow.0);
            let now = clients.advance(now);
            clients.convert(rules, next.clone(), now);
        }
    }
}
