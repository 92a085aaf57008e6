//! A bucket a client as one of several limiters that are asked in one call.

use core::cell::Cell;
use core::time::Duration;

use super::clients::{Clients, Outcome, Who};
use super::key::Key;
use super::shards::{Shard, Shards};
use super::store::banned;
use crate::Decision;
use crate::algorithm::Algorithm;
use crate::sync::{MutexGuard, lock};
use crate::together::{Ask, Lock, Others, Party, Room, Verdict, shortest_delay};

impl<A: Algorithm> Party for Shards<A> {
    fn lock_of(&self, ask: &Ask<'_>) -> Lock {
        let shared = self.overflow().is_some() && ask.full;
        let (_, shard) = self.whereabouts(ask.key);
        Lock {
            limiter: self.number(),
            number: if shared { usize::MAX } else { shard },
        }
    }

    fn hold(&self, asks: &mut [Ask<'_>], others: &mut Others<'_>) -> Verdict {
        let Some(first) = asks.first() else {
            return others(false, None);
        };
        let now = asks.iter().map(|ask| ask.now).max().unwrap_or(0);
        let shared = self.overflow().filter(|_| first.full);
        if let Some(overflow) = shared {
            let mut clients = lock(overflow);
            let now = clients.advance(now);
            let held = Held::new(self, None, clients, now);
            return held.judge(asks, others);
        }
        let (_, number) = self.whereabouts(first.key);
        let Some(shard) = self.shard(number) else {
            return others(false, None);
        };
        let (clients, now) = self.enter(shard, now);
        Held::new(self, Some(shard), clients, now).judge(asks, others)
    }

    fn alone(&self, ask: &mut Ask<'_>) -> bool {
        // Of a bucket that is shared it is not told whose the tokens were.
        if ask.cost == 0 || self.overflow().is_some() {
            return false;
        }
        let (cost, max_delay) = (ask.cost, ask.max_delay);
        let mut judged = (Decision::ClientLimit, Duration::ZERO, ask.now);
        let outcome = self.attempt(ask.key, (ask.plan, cost), ask.now, |limit, state, now| {
            let (decision, again_after, admitted) =
                limit.attempt_within(state, cost, max_delay, now);
            judged = (decision, again_after, now);
            ((), admitted)
        });
        let (decision, again_after, now) = match outcome {
            Outcome::Judged(()) | Outcome::Full => judged,
            Outcome::Banned(left) => (banned(left), Duration::ZERO, ask.now),
            Outcome::TooLarge { burst } => (Decision::TooLarge { burst }, Duration::ZERO, ask.now),
        };
        ask.now = now;
        ask.charged(decision, again_after);
        true
    }

    fn make_room(&self, places: u64, now: u64) -> bool {
        let Some(idling) = self.ask_rules(|rules| *rules.idling()) else {
            return false;
        };
        let full = self.is_full_of_active(&idling, places, now);
        if !full {
            Self::make_room(self, &idling, now);
        }
        !full
    }
}

/// One shard, its lock held, or the bucket that newcomers share.
struct Held<'a, A: Algorithm> {
    shards: &'a Shards<A>,
    /// `None` is the bucket that newcomers share.
    shard: Option<Shard<'a, A>>,
    clients: MutexGuard<'a, Clients<A>>,
    now: u64,
    /// Newcomers in need of a place.
    newcomers: u64,
    undercuts: Cell<bool>,
}

impl<'a, A: Algorithm> Held<'a, A> {
    fn new(
        shards: &'a Shards<A>,
        shard: Option<Shard<'a, A>>,
        clients: MutexGuard<'a, Clients<A>>,
        now: u64,
    ) -> Self {
        Self {
            shards,
            shard,
            clients,
            now,
            newcomers: 0,
            undercuts: Cell::new(false),
        }
    }

    fn judge(mut self, asks: &mut [Ask<'_>], others: &mut Others<'_>) -> Verdict {
        let mut refuses = false;
        let shared = self.shard.is_none();
        for client in asks.chunk_by_mut(|ask, next| shared || ask.key == next.key) {
            refuses |= self.judge_client(client);
        }
        let places: Option<&dyn Room> = if self.newcomers > 0 {
            Some(&self)
        } else {
            None
        };
        let verdict = others(refuses, places);
        match verdict {
            Verdict::Charged => self.charge(asks),
            Verdict::Refused => self.note(asks),
            Verdict::Full { .. } => {}
        }
        verdict
    }

    /// All that is asked of one client: the cost, the plan, and who it is.
    fn whole(&self, asks: &[Ask<'_>]) -> (u64, u8, Who) {
        let add = |cost: u64, ask: &Ask<'_>| cost.saturating_add(ask.cost);
        let first = asks.first();
        let key = first.filter(|_| self.shard.is_some()).map(|ask| ask.key);
        let (who, _) = self.shards.whereabouts(key.unwrap_or(Key::OVERFLOW));
        (
            asks.iter().fold(0, add),
            asks.iter()
                .find(|ask| ask.cost > 0)
                .or(first)
                .map_or(0, |ask| ask.plan),
            who,
        )
    }

    /// Judges all that is asked of one client, without changing anything; returns whether any of it
    /// is refused.
    fn judge_client(&mut self, asks: &mut [Ask<'_>]) -> bool {
        let (cost, plan, who) = self.whole(asks);
        let full = asks.iter().any(|ask| ask.full);
        let (clients, now) = (&self.clients, self.now);
        let at = clients.find(who);
        let max_delay = shortest_delay(asks);
        let judge = |limit: &A, state: &A::State, now| limit.foretell(state, cost, max_delay, now);
        let limit = clients.rules().limit(plan);
        let burst = limit.burst();
        // A look that names no plan is under the client's own, as a look alone.
        let judged_under = Some(plan).filter(|plan| cost > 0 || *plan > 0);
        let known = at.and_then(|at| clients.look(at, judged_under, now, judge));
        let needs_place = at.is_none() && cost > 0 && self.shard.is_some();
        let decision = match known {
            _ if cost > burst => Decision::TooLarge { burst },
            Some(Outcome::Banned(left)) => banned(left),
            Some(Outcome::Judged(decision)) => decision,
            Some(Outcome::TooLarge { .. } | Outcome::Full) | None => {
                if needs_place && full {
                    Decision::ClientLimit
                } else {
                    judge(limit, &limit.fresh(now), now)
                }
            }
        };
        // Also if it is refused for having too few initial tokens: it is to earn from now on.
        let new =
            needs_place && !matches!(decision, Decision::TooLarge { .. } | Decision::ClientLimit);
        self.newcomers = self.newcomers.saturating_add(u64::from(new));
        let mut refuses = false;
        for (place, ask) in asks.iter_mut().enumerate() {
            ask.now = now;
            ask.new = new && place == 0;
            refuses |= ask.decide(decision);
        }
        refuses
    }

    /// Charges everybody, as was judged.
    fn charge(mut self, asks: &mut [Ask<'_>]) {
        let (now, shared) = (self.now, self.shard.is_none());
        for client in asks.chunk_by_mut(|ask, next| shared || ask.key == next.key) {
            let (cost, plan, who) = self.whole(client);
            if cost == 0 {
                continue;
            }
            let clients = &mut self.clients;
            let (at, new) = match clients.find_and_bring(who, plan, now) {
                Some(at) => (Some(at), false),
                None => (clients.insert(who, plan, now), self.shard.is_some()),
            };
            let Some(at) = at else {
                continue;
            };
            let max_delay = shortest_delay(client);
            let outcome = clients.attempt(at, plan, now, |limit, state, now| {
                let (decision, again_after, admitted) =
                    limit.attempt_within(state, cost, max_delay, now);
                ((decision, again_after), admitted)
            });
            if new {
                clients.enqueue(at);
            }
            if let Outcome::Judged((decision, again_after)) = outcome {
                for ask in client {
                    ask.charged(decision, again_after);
                }
            }
        }
        self.publish();
        self.shards.total().keep(self.newcomers);
    }

    /// Notes that an attempt was made by everybody who is known, and who refused.
    fn note(mut self, asks: &mut [Ask<'_>]) {
        let (now, shared) = (self.now, self.shard.is_none());
        for client in asks.chunk_by(|ask, next| shared || ask.key == next.key) {
            let (cost, plan, who) = self.whole(client);
            let mut decisions = client.iter().map(Ask::decision).filter(|_| cost > 0);
            let first = decisions.next();
            let refusal = first.filter(|first| !first.is_allowed());
            let refusal = refusal.or_else(|| decisions.find(|decision| !decision.is_allowed()));
            let Some(decision) = refusal.or(first) else {
                continue;
            };
            let counts = self.clients.counts();
            let count = match decision {
                Decision::TooLarge { .. } => Some(&mut counts.too_large),
                Decision::Banned { .. } => Some(&mut counts.banned),
                Decision::ClientLimit => Some(&mut counts.client_limit),
                Decision::Limited { .. } => {
                    counts.limited();
                    None
                }
                Decision::Allowed { .. } => None,
            };
            if let Some(count) = count {
                *count = count.wrapping_add(1);
            }
            let attempted = matches!(
                decision,
                Decision::Allowed { .. } | Decision::Limited { .. }
            );
            if !attempted {
                continue;
            }
            if let Some(at) = self.clients.find(who) {
                let touch = |limit: &A, state: &mut A::State, now| limit.touch(state, now);
                let is_known = self.clients.change(at, now, touch).is_some();
                if !is_known && !decision.is_allowed() {
                    self.clients.refresh(at, plan, now);
                }
            } else if !decision.is_allowed() {
                // New with fewer tokens than it asks for: it earns them from now on.
                self.take_in(who, plan);
            }
        }
        self.publish();
    }

    /// Takes in a newcomer that was refused, if there is room.
    fn take_in(&mut self, who: Who, plan: u8) {
        let Some(shard) = self.shard else {
            return;
        };
        if self.shards.claim_place(shard, &self.clients, self.now)
            && let Some(at) = self.clients.insert(who, plan, self.now)
        {
            self.clients.enqueue(at);
        }
    }

    fn publish(&self) {
        if let Some(shard) = self.shard {
            self.shards.publish(shard, &self.clients, 0);
        }
    }
}

impl<A: Algorithm> Room for Held<'_, A> {
    fn promise(&self) -> bool {
        let Some(shard) = self.shard else {
            return true;
        };
        if !self.shards.has_room(self.newcomers) {
            return false;
        }
        // The bounds first, then the count, as for any newcomer.
        let undercuts = self.shards.undercut(shard, &self.clients, self.now);
        self.undercuts.set(undercuts);
        let promised = self.shards.promise(self.newcomers);
        if !promised {
            self.restore();
        }
        promised
    }

    fn withdraw(&self) {
        self.shards.total().withdraw(self.newcomers);
        self.restore();
    }
}

impl<A: Algorithm> Held<'_, A> {
    /// What the shard published before newcomers' places were asked for.
    fn restore(&self) {
        if let Some(shard) = self.shard.filter(|_| self.undercuts.get()) {
            self.shards.restore(shard, &self.clients);
        }
    }
}
