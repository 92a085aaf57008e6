//! Another policy for a gate that is in use: whole or not at all, and with its clients' tokens.

use std::fmt;
use std::mem::discriminant;
use std::sync::{Arc, PoisonError};

use tollgate::{Clock, RestoreError};

use super::table::Table;
use super::{Gate, Rules};
use crate::key::Part;
use crate::limit::Limit;
use crate::policy::Policy;

/// What a reload started and ended, by name; all other limits go on with their clients' tokens.
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
    /// one as before.
    ///
    /// A limit is the same if it has the name, key and algorithm of one before (and the policy the
    /// prefixes of addresses or the case of paths that the key has to do with): its clients keep
    /// their tokens, as far as its burst goes ([`Tokens::Kept`](tollgate::Tokens::Kept)). Another
    /// `max_clients`, `idle` or `when_full`, and plans that are new, need another table: everybody
    /// is copied over, but for the bucket that newcomers share, which starts afresh. Nobody is held
    /// up for it; so what such a limit takes while it is copied, some 0.3 s for a million clients,
    /// does not count afterwards.
    ///
    /// Nor is anything given back to such a limit that was taken before. With more than 63 plans,
    /// those that are no more among them, its clients start afresh. A request that is judged in the
    /// meantime is judged by one policy's limits, keys and costs; of limits that go on it may be
    /// held to the numbers of the other.
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
        let mut tables = Vec::with_capacity(policy.limits().len());
        for limit in policy.limits() {
            let same = before.same(limit);
            let same = same.filter(|_| names_alike(&before.policy, &policy, limit));
            let kept = same.and_then(|(old, table)| table.renumbered(old, limit));
            let is_kept = kept.is_some();
            let copied =
                || same.and_then(|(old, table)| table.copied(old, limit, self.clock.clone()));
            let table = match kept {
                Some(table) => table,
                None => match copied() {
                    Some(copied) => copied.map_err(|problem| ReloadError::of(limit, problem))?,
                    None => {
                        reloaded.afresh.push(limit.name().to_owned());
                        let made = Table::new(limit, self.clock.clone());
                        made.map_err(|problem| ReloadError::of(limit, problem))?
                    }
                },
            };
            tables.push((table, is_kept));
        }
        let has = |name: &str| policy.limits().iter().any(|limit| limit.name() == name);
        let gone = before.policy.limits().iter().map(Limit::name);
        reloaded.gone = gone.filter(|name| !has(name)).map(str::to_owned).collect();
        // From here on nothing goes wrong that did not when it was tried.
        for (limit, (table, is_kept)) in policy.limits().iter().zip(&tables) {
            if *is_kept {
                let held = table.hold_to(limit);
                held.map_err(|problem| ReloadError::of(limit, problem))?;
            }
        }
        let rules = Arc::new(Rules {
            policy: Arc::new(policy),
            tables: tables.into_iter().map(|(table, _)| table).collect(),
        });
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = rules;
        Ok(reloaded)
    }
}

impl<C: Clock + 'static> Rules<C> {
    /// The limit that another one is the same as, and its buckets.
    fn same(&self, limit: &Limit) -> Option<(&Limit, &Table<C>)> {
        let mut both = self.policy.limits().iter().zip(&self.tables);
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
