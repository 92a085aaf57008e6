//! Another policy for a gate that is in use: whole or not at all, and with its clients' tokens.

use std::fmt;
use std::mem::discriminant;
use std::sync::{Arc, PoisonError};

use tollgate::{AnyLimit, ChangeError, Clock, KeyedLimiter, ManualClock, RestoreError, Tokens};

use super::{Gate, Keyed, Rules};
use crate::key::Part;
use crate::limit::Limit;
use crate::policy::Policy;

/// What became of the buckets of limits that are in both policies, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reloaded {
    /// Limits whose clients start afresh, since their key or their algorithm is another; and those
    /// that are new.
    pub afresh: Vec<String>,
    /// Limits that are no more.
    pub gone: Vec<String>,
}

impl<C: Clock + Clone + 'static> Gate<C> {
    /// Holds requests to another policy from now on: to all of it, or, on an error, to the present
    /// one as before. A request that is being judged is judged under one of them alone.
    ///
    /// A limit is the same if it has the name, key and algorithm of one before (and the policy the
    /// prefixes of addresses or the case of paths that the key has to do with): its clients keep
    /// their tokens, as far as its burst goes ([`Tokens::Kept`]). Another `max_clients`, `idle` or
    /// `when_full`, or other plans, need other tables: everybody is copied over, without anybody
    /// being held up, and what such a limit takes in that moment is not counted.
    ///
    /// # Errors
    ///
    /// Numbers that the library refuses, or more clients than a smaller `max_clients` has room for.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    ///
    /// ```
    /// use tollgate::{ManualClock, Rate};
    /// use tollgate_policy::{Gate, Limit, Policy, Rule};
    ///
    /// let policy = |key, burst| -> Result<_, Box<dyn std::error::Error>> {
    ///     let rule = Rule::TokenBucket(Rate::per_hour(1).burst(burst));
    ///     Ok(Policy::new(vec![Limit::new("a", rule)?.with_key(key)])?)
    /// };
    /// use tollgate_policy::Key;
    /// let gate = Gate::new(policy(Key::ip(), 5)?, ManualClock::default())?;
    /// assert!(gate.reload(policy(Key::ip(), 8)?)?.afresh.is_empty());
    /// assert_eq!(gate.reload(policy(Key::path(), 8)?)?.afresh, ["a"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reload(&self, policy: Policy) -> Result<Reloaded, ReloadError> {
        // One after the other; requests are judged all the while.
        let _alone = self
            .reloading
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let before = self.rules();
        let mut reloaded = Reloaded::default();
        let mut limiters = Vec::with_capacity(policy.limits().len());
        let mut changes = Vec::new();
        for limit in policy.limits() {
            let same = before
                .same(limit)
                .filter(|_| names_alike(&before.policy, &policy, limit));
            let made = match same {
                Some((old, limiter)) if has_same_tables(old, limit) => {
                    changes.push((limiter.clone(), limit.clone()));
                    limiter.clone()
                }
                Some((_, limiter)) => {
                    let restored = limit.restored(self.clock.clone(), &limiter.snapshot());
                    Arc::new(restored.map_err(|problem| ReloadError::of(limit, problem))?)
                }
                None => {
                    reloaded.afresh.push(limit.name().to_owned());
                    let made = limit.limiter(self.clock.clone());
                    Arc::new(made.map_err(|problem| ReloadError::of(limit, problem))?)
                }
            };
            limiters.push(made);
        }
        let has = |name: &str| policy.limits().iter().any(|limit| limit.name() == name);
        let gone = before.policy.limits().iter().map(Limit::name);
        reloaded.gone = gone.filter(|name| !has(name)).map(str::to_owned).collect();
        for (limiter, limit) in changes {
            let held = hold_to(&limiter, &limit);
            held.map_err(|problem| ReloadError::of(&limit, problem))?;
        }
        let rules = Arc::new(Rules {
            policy: Arc::new(policy),
            limiters,
        });
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = rules;
        Ok(reloaded)
    }
}

impl<C: Clock + 'static> Rules<C> {
    /// The limit that another one is the same as, and its limiter.
    fn same(&self, limit: &Limit) -> Option<(&Limit, &Keyed<C>)> {
        let mut both = self.policy.limits().iter().zip(&self.limiters);
        both.find(|(old, _)| {
            old.name() == limit.name()
                && old.key() == limit.key()
                && discriminant(&old.rule()) == discriminant(&limit.rule())
        })
    }
}

/// Whether a client of that limit has the same name under both policies.
fn names_alike(one: &Policy, other: &Policy, limit: &Limit) -> bool {
    let has = |part| limit.key().parts().contains(&part);
    (one.prefixes() == other.prefixes() || !has(Part::Ip))
        && (one.ignores_case() == other.ignores_case() || !has(Part::Path))
}

/// Whether only numbers of the same limits differ.
fn has_same_tables(old: &Limit, new: &Limit) -> bool {
    let shape = |limit: &Limit| {
        let plans = limit.plans().iter();
        let plans = plans.map(|plan| (plan.name().to_owned(), plan.rule().is_some()));
        (
            limit.max_clients(),
            limit.idle(),
            limit.when_full(),
            plans.collect::<Vec<_>>(),
        )
    };
    // Whether a limiter of the one can be held to the other is tried on one that nobody uses.
    let scratch = old.clone().with_max_clients(1);
    let scratch = scratch.limiter(ManualClock::default());
    shape(old) == shape(new) && scratch.is_ok_and(|scratch| hold_to(&scratch, new).is_ok())
}

/// Holds a limiter's clients to the numbers of a limit with the same tables.
fn hold_to<C: Clock>(
    limiter: &KeyedLimiter<AnyLimit, C>,
    limit: &Limit,
) -> Result<(), ChangeError> {
    let plans = limit.plans();
    let of_plans = plans.iter().enumerate();
    let of_plans = of_plans.filter_map(|(at, plan)| Some((Some(at), plan.rule()?)));
    for (plan, rule) in std::iter::once((None, limit.rule())).chain(of_plans) {
        let set = || limiter.set_plan(plans.in_library(plan), rule.limit(), Tokens::Kept);
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

/// Why a gate was not given another policy: nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReloadError {
    limit: String,
    problem: RestoreError,
}

impl ReloadError {
    fn of(limit: &Limit, problem: impl Into<RestoreError>) -> Self {
        let (limit, problem) = (limit.name().to_owned(), problem.into());
        Self { limit, problem }
    }

    /// The name of the limit that could not be brought in.
    #[must_use]
    pub fn limit(&self) -> &str {
        &self.limit
    }
}

impl fmt::Display for ReloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "limit {:?}: {}", self.limit, self.problem)
    }
}

impl std::error::Error for ReloadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.problem)
    }
}
