//! The buckets of one limit, in this process.

use std::sync::Arc;

use tollgate::{
    AnyLimit, BuildError, ChangeError, Clock, KeyedLimiter, ManualClock, Plan, RestoreError, Tokens,
};

use crate::limit::Limit;
use crate::plan::MOST_PLANS;
use crate::rule::Rule;

/// The buckets of one limit, and the numbers under which its plans' clients are written down there.
pub(super) struct Table<C: Clock> {
    pub(super) limiter: Arc<KeyedLimiter<AnyLimit, C>>,
    /// By number, counted from 1, names of plans: those that are no more keep theirs, so that
    /// nobody's tokens are taken for another plan's.
    slots: Vec<String>,
    /// By place among the limit's plans, what the limiter calls them.
    plans: Vec<Plan>,
}

impl<C: Clock> Clone for Table<C> {
    fn clone(&self) -> Self {
        Self {
            limiter: self.limiter.clone(),
            slots: self.slots.clone(),
            plans: self.plans.clone(),
        }
    }
}

impl<C: Clock> Table<C> {
    /// One in which nobody is tracked yet.
    pub(super) fn new(limit: &Limit, clock: C) -> Result<Self, BuildError> {
        let slots = names(limit).collect::<Vec<_>>();
        let limiter = limit.builder(clock, rules(limit, &slots)).build()?;
        Ok(Self::of(limiter, limit, slots))
    }

    /// One of other size with all clients of this one, who were held to `old`; `None` if there are
    /// too many plans, with those that are no more.
    pub(super) fn copied(
        &self,
        old: &Limit,
        limit: &Limit,
        clock: C,
    ) -> Option<Result<Self, RestoreError>>
    where
        C: Clone,
    {
        let slots = self.slots_with(limit);
        if slots.len() > MOST_PLANS {
            return None;
        }
        let snapshot = self.limiter.snapshot();
        let builder = limit.builder(clock.clone(), rules(limit, &slots));
        let limiter = match builder.restore(&snapshot) {
            // Levels that need more bits than the other limit's numbers do are read under their
            // own, and brought over then.
            Err(RestoreError::Change(ChangeError::NeedsMoreBits)) => {
                let alike = limit.clone().with_rule(old.rule());
                let limiter = alike.builder(clock, rules(old, &slots)).restore(&snapshot);
                limiter.and_then(|limiter| {
                    hold_to(&limiter, limit, &slots)?;
                    Ok(limiter)
                })
            }
            other => other,
        };
        Some(limiter.map(|limiter| Self::of(limiter, limit, slots)))
    }

    /// The same one under another limit's numbers, once it is held to them; `None` if it cannot be.
    pub(super) fn renumbered(&self, old: &Limit, new: &Limit) -> Option<Self> {
        let shape = |limit: &Limit| (limit.max_clients(), limit.idle(), limit.when_full());
        let slots = self.slots.clone();
        if shape(old) != shape(new) || self.slots_with(new).len() > slots.len() {
            return None;
        }
        // Tried on one that nobody uses.
        let scratch = old.clone().with_max_clients(1);
        let scratch = scratch
            .builder(ManualClock::default(), rules(old, &slots))
            .build();
        hold_to(&scratch.ok()?, new, &slots).ok()?;
        Some(Self {
            limiter: self.limiter.clone(),
            plans: plans(new, &slots),
            slots,
        })
    }

    /// Holds its clients to that limit's numbers.
    pub(super) fn hold_to(&self, limit: &Limit) -> Result<(), ChangeError> {
        hold_to(&self.limiter, limit, &self.slots)
    }

    /// What the limiter calls the plan at that place.
    pub(super) fn plan(&self, at: Option<usize>) -> Plan {
        let plan = at.and_then(|at| self.plans.get(at));
        plan.copied().unwrap_or(Plan::DEFAULT)
    }

    fn of(limiter: KeyedLimiter<AnyLimit, C>, limit: &Limit, slots: Vec<String>) -> Self {
        Self {
            limiter: Arc::new(limiter),
            plans: plans(limit, &slots),
            slots,
        }
    }

    /// Its numbers, and more for plans that are new.
    fn slots_with(&self, limit: &Limit) -> Vec<String> {
        let mut slots = self.slots.clone();
        let new = names(limit).filter(|name| !self.slots.contains(name));
        slots.extend(new);
        slots
    }
}

/// The names of the plans that are held to something.
fn names(limit: &Limit) -> impl Iterator<Item = String> {
    let plans = limit.plans().iter().filter(|plan| plan.rule().is_some());
    plans.map(|plan| plan.name().to_owned())
}

/// What clients under each number are held to: of a plan that is no more, or held to nothing now,
/// what those without one are.
fn rules(limit: &Limit, slots: &[String]) -> Vec<Rule> {
    let rule = |name: &String| {
        let plan = limit.plans().iter().find(|plan| plan.name() == name);
        plan.and_then(crate::plan::Plan::rule)
            .unwrap_or(limit.rule())
    };
    slots.iter().map(rule).collect()
}

fn plans(limit: &Limit, slots: &[String]) -> Vec<Plan> {
    let plans = limit.plans().iter().map(|plan| {
        if plan.rule().is_none() {
            return Plan::UNLIMITED;
        }
        let at = slots.iter().position(|name| name == plan.name());
        let number = at.and_then(|at| u8::try_from(at.saturating_add(1)).ok());
        number.map_or(Plan::DEFAULT, Plan::nth)
    });
    plans.collect()
}

fn hold_to<C: Clock>(
    limiter: &KeyedLimiter<AnyLimit, C>,
    limit: &Limit,
    slots: &[String],
) -> Result<(), ChangeError> {
    // Whoever is held to nothing now is judged under the numbers before until all is done.
    let is_free = |name: &&String| {
        let mut plans = limit.plans().iter();
        plans.any(|plan| plan.name() == *name && plan.rule().is_none())
    };
    let numbered = (1_u8..).map(Plan::nth).zip(slots);
    let of_slots = numbered.zip(rules(limit, slots));
    let of_slots = of_slots.filter(|((_, name), _)| !is_free(name));
    let of_slots = of_slots.map(|((plan, _), rule)| (plan, rule));
    for (plan, rule) in std::iter::once((Plan::DEFAULT, limit.rule())).chain(of_slots) {
        let set = || limiter.set_plan(plan, rule.limit(), Tokens::Kept);
        match set() {
            Err(ChangeError::HistoryFull { .. }) => {
                limiter.settle();
                set()?;
            }
            other => other?,
        }
    }
    Ok(())
}
