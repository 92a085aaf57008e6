//! A policy and the limiters that keep its buckets in this process.

mod reload;
mod table;

use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use smallvec::SmallVec;
use tollgate::{
    AnyLimit, Ask, BuildError, Clock, ClockWentBackwards, KeyedLimiter, Statistics, StoreAnswer,
    Timestamp, acquire_all,
};

use crate::hearing::{Claim, Hearing};
use crate::key::Key;
use crate::policy::{Call, Policy};
use crate::proxies::Proxies;
use crate::request::Request;
use crate::verdict::{Taken, Verdict};

use table::Table;

pub use reload::{ReloadError, Reloaded};

/// A policy put to use: it answers requests.
///
/// ```
/// use tollgate::{ManualClock, Rate};
/// use tollgate_policy::{Gate, Limit, Policy, Rule};
/// # use tollgate_policy::proxies::Peer;
/// # use tollgate_policy::request::Request;
/// # struct Get;
/// # impl Request for Get {
/// #     fn method(&self) -> &[u8] { b"GET" }
/// #     fn target(&self) -> &[u8] { b"/" }
/// #     fn peer(&self) -> Peer { Peer::Address([192, 0, 2, 1].into()) }
/// #     fn header(&self, _: &str, _: &mut dyn FnMut(&[u8])) {}
/// # }
///
/// let limit = Limit::new("per-address", Rule::TokenBucket(Rate::per_hour(1).burst(1)))?;
/// let gate = Gate::new(Policy::new(vec![limit])?, ManualClock::default())?;
/// assert!(gate.admit(&Get).is_allowed());
/// let refused = gate.admit(&Get);
/// assert_eq!(refused.refused_by().map(|said| said.limit), Some(0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Gate<C: Clock> {
    rules: RwLock<Arc<Rules<C>>>,
    /// Held by whoever brings in another policy.
    reloading: Mutex<()>,
    clock: C,
}

/// The policy that holds, whole.
struct Rules<C: Clock> {
    policy: Arc<Policy>,
    /// By place, those of the policy's limits.
    tables: Vec<Table<C>>,
}

impl<C: Clock + Clone + 'static> Gate<C> {
    /// A limiter for each limit, with a clock of that kind.
    ///
    /// # Errors
    ///
    /// An idle time of 0, or no client.
    pub fn new(policy: Policy, clock: C) -> Result<Self, BuildError> {
        Ok(Self::of(Rules::new(policy, &clock)?, clock))
    }

    /// The same limits, whose clients are told apart by one key; with buckets of its own.
    #[must_use]
    pub fn with_one_key(&self, key: &Key) -> Self {
        self.with(|policy| policy.with_one_key(key))
    }

    /// The same limits where those proxies are believed; with buckets of its own.
    #[must_use]
    pub fn with_proxies(&self, proxies: Proxies) -> Self {
        self.with(|policy| policy.with_proxies(proxies))
    }

    fn with(&self, change: impl FnOnce(Policy) -> Policy) -> Self {
        let rules = self.rules();
        let policy = change((*rules.policy).clone());
        let both = policy.limits().iter().zip(&rules.tables);
        let tables = both.map(|(limit, table)| {
            let made = Table::new(limit, self.clock.clone());
            // Numbers of which a limiter was made make another.
            made.unwrap_or_else(|_| table.clone())
        });
        let tables = tables.collect();
        let policy = Arc::new(policy);
        Self::of(Rules { policy, tables }, self.clock.clone())
    }
}

impl<C: Clock + Clone + 'static> Rules<C> {
    fn new(policy: Policy, clock: &C) -> Result<Self, BuildError> {
        let limits = policy.limits().iter();
        let tables = limits.map(|limit| Table::new(limit, clock.clone()));
        let tables = tables.collect::<Result<_, _>>()?;
        let policy = Arc::new(policy);
        Ok(Self { policy, tables })
    }
}

impl<C: Clock + 'static> Gate<C> {
    fn of(rules: Rules<C>, clock: C) -> Self {
        Self {
            rules: RwLock::new(Arc::new(rules)),
            reloading: Mutex::new(()),
            clock,
        }
    }

    /// What holds now: all that is asked in one call is asked of this.
    fn rules(&self) -> Arc<Rules<C>> {
        // What is behind it is swapped whole, so no panic leaves half of anything.
        self.rules
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> Arc<Policy> {
        self.rules().policy.clone()
    }

    /// The limiter of the limit at that place.
    #[must_use]
    pub fn limiter(&self, limit: usize) -> Option<Arc<KeyedLimiter<AnyLimit, C>>> {
        let rules = self.rules();
        let table = rules.tables.get(limit);
        table.map(|table| table.limiter.clone())
    }

    /// How often each limit gave each answer, by name.
    #[must_use]
    pub fn statistics(&self) -> Vec<(String, Statistics)> {
        let rules = self.rules();
        let limits = rules.policy.limits().iter().zip(&rules.tables);
        let figures = limits.map(|(limit, table)| {
            let figures = table.limiter.statistics();
            (limit.name().to_owned(), figures)
        });
        figures.collect()
    }

    /// Whether a request may proceed.
    ///
    /// All limits that hold for it are asked at once: they let it pass and take its cost, or none
    /// takes anything. One that it lacks a key for refuses it before any is asked. Limits that only
    /// count are asked about what the others let pass, each for itself; their refusals change
    /// nothing.
    ///
    /// A leaky bucket refuses what it would delay for longer than its
    /// [`max_delay`](crate::Limit::max_delay); what it admits is to be held back for the verdict's
    /// [delay](Verdict::delay).
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    pub fn admit<R: Request + ?Sized>(&self, request: &R) -> Verdict {
        self.admit_within(request, |_, _| Duration::MAX)
    }

    /// The same where nothing is held back for longer than `max_delay` says of the policy that
    /// holds, whatever its limits say: what would be is refused, with the wait after which it would
    /// not.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    pub fn admit_within<R: Request + ?Sized>(
        &self,
        request: &R,
        max_delay: impl FnOnce(&Policy, &[Call]) -> Duration,
    ) -> Verdict {
        let rules = self.rules();
        let calls = rules.policy.few_calls(request);
        let max_delay = max_delay(&rules.policy, &calls);
        rules.decide(&calls, max_delay)
    }

    /// The same for what a request asks of this gate's policy; a call of a limit that it has not is
    /// passed over.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    pub fn decide(&self, calls: &[Call]) -> Verdict {
        self.rules().decide(calls, Duration::MAX)
    }

    /// The same at a time that the caller brings.
    ///
    /// # Errors
    ///
    /// [`ClockWentBackwards`] if a later time was seen before; nothing was taken then.
    pub fn decide_at(&self, calls: &[Call], now: Timestamp) -> Result<Verdict, ClockWentBackwards> {
        self.rules().judge(calls, Duration::MAX, |limiter, claim| {
            limiter.ask_at(claim.client, claim.cost, now)
        })
    }
}

impl<C: Clock + 'static> Rules<C> {
    fn decide(&self, calls: &[Call], max_delay: Duration) -> Verdict {
        let verdict = self.judge(calls, max_delay, |limiter, claim| {
            Ok::<_, Infallible>(limiter.ask(claim.client, claim.cost))
        });
        match verdict {
            Ok(verdict) => verdict,
            Err(never) => match never {},
        }
    }

    fn judge<'g, E>(
        &'g self,
        calls: &[Call],
        max_delay: Duration,
        ask: impl Fn(&'g KeyedLimiter<AnyLimit, C>, &Claim<'_>) -> Result<Ask<'g>, E>,
    ) -> Result<Verdict, E> {
        let mut hearing = Hearing::new(self.policy.clone(), calls);
        if hearing.is_decided() {
            return Ok(hearing.verdict);
        }
        let ask = |claim: &Claim<'_>| {
            let table = self.tables.get(claim.limit);
            let (Some(table), Some(limit)) = (table, self.policy.limits().get(claim.limit)) else {
                return Ok(None);
            };
            let max_delay = limit.max_delay().min(max_delay);
            let ask = ask(&table.limiter, claim)?;
            let ask = ask.plan(table.plan(claim.plan)).within(max_delay);
            Ok(Some((ask, max_delay)))
        };
        let mut asks = SmallVec::<[Ask<'_>; 1]>::new();
        let mut asked = SmallVec::<[(Claim<'_>, Duration); 1]>::new();
        for claim in &hearing.enforced {
            if let Some((ask, max_delay)) = ask(claim)? {
                asks.push(ask);
                asked.push((*claim, max_delay));
            }
        }
        // Limits that count are asked at the same instant: made now, judged later.
        let mut counting = Vec::new();
        for claim in &hearing.counting {
            if let Some((ask, max_delay)) = ask(claim)? {
                counting.push((*claim, max_delay, ask));
            }
        }
        let together = acquire_all(&mut asks);
        let refused_by = together.refused_by().and_then(|at| asked.get(at));
        hearing.verdict.0.refused_by = refused_by.map(|(claim, _)| claim.place);
        for ((claim, max_delay), ask) in asked.into_iter().zip(asks) {
            self.take_down(&mut hearing.verdict, &claim, max_delay, ask);
        }
        if !hearing.is_decided() {
            for (claim, max_delay, ask) in counting {
                let mut alone = [ask];
                let _ = acquire_all(&mut alone);
                let [ask] = alone;
                self.take_down(&mut hearing.verdict, &claim, max_delay, ask);
            }
        }
        Ok(hearing.verdict)
    }

    /// What was answered to an ask, and what may be given back of it.
    fn take_down(
        &self,
        verdict: &mut Verdict,
        claim: &Claim<'_>,
        max_delay: Duration,
        ask: Ask<'_>,
    ) {
        verdict.take_down(claim.place, StoreAnswer::from(&ask), max_delay);
        let limit = self.policy.limits().get(claim.limit);
        let gives_back = limit.is_some_and(|limit| !limit.refund_status().is_empty());
        if gives_back
            && let Some(table) = self.tables.get(claim.limit)
            && let Some(charge) = ask.into_charge()
        {
            verdict.0.taken.push(Taken {
                place: claim.place,
                client: claim.client.clone(),
                plan: table.plan(claim.plan),
                charge,
                from: table.limiter.clone(),
            });
        }
    }
}

impl<C: Clock + 'static> fmt::Debug for Gate<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("policy", &self.rules().policy)
            .finish_non_exhaustive()
    }
}
