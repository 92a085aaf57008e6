//! What the limits of a policy said to a request.

use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use tollgate::{
    AnyLimit, Charge, Clock, Decision, KeyedLimiter, Plan, StoreAnswer, Timestamp, acquire_all,
};

use crate::key::Client;
use crate::limit::{Limit, OnError};
use crate::policy::Policy;
use crate::rule::Rule;
use crate::shared::Lent;

/// What the limits of a policy said to a request.
///
/// Dropped, what was taken stays taken: also of a request whose answer nobody waited for.
#[derive(Debug)]
#[must_use = "a verdict that is not looked at limits nobody"]
pub struct Verdict(pub(crate) Box<Findings>);

/// What a verdict is made of: in a place of its own, since it goes from hand to hand.
#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) policy: Arc<Policy>,
    pub(crate) said: SmallVec<[Said; 1]>,
    /// By place in `said`.
    pub(crate) refused_by: Option<usize>,
    /// What may be given back, for how the request is answered.
    pub(crate) taken: Vec<Taken>,
    /// The same of what a store took.
    pub(crate) lent: Vec<Lent>,
    pub(crate) store: StoreState,
    /// By place in the policy.
    pub(crate) lacking: Vec<usize>,
}

/// What one limit said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Said {
    /// Which, by its place in [`Policy::limits`].
    pub limit: usize,
    /// Whether it only counts.
    pub is_shadow: bool,
    /// How many tokens it was asked for.
    pub cost: u64,
    /// Of which plan the client is, by its place among the limit's.
    pub plan: Option<usize>,
    /// What it answered.
    pub outcome: Outcome,
    /// For how long it might have been held back: less than the limit's longest delay where there
    /// was no place for it.
    pub max_delay: Duration,
    /// How long after that the same request would be allowed by it: zero if at once, `None` if no
    /// wait can be promised to suffice.
    pub again_after: Option<Duration>,
    /// When it answered.
    pub at: Timestamp,
}

/// What a limit answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// As its limiter did.
    Decided(Decision),
    /// The request lacks a part of its key.
    Unidentified,
    /// Nothing: another limit had refused already, or its store failed.
    NotAsked,
}

impl Outcome {
    /// Whether it is a refusal.
    #[must_use]
    pub fn refuses(self) -> bool {
        match self {
            Self::Decided(decision) => !decision.is_allowed(),
            Self::Unidentified => true,
            Self::NotAsked => false,
        }
    }
}

/// Whether a shared store was asked, and answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreState {
    /// It was not: there is none, or nothing to ask.
    NotAsked,
    /// It was, and did.
    Answered,
    /// It was, and did not; and what the limits that were asked make of that.
    Failed(OnError),
}

/// Tokens that one limit took and may give back.
#[derive(Debug)]
pub(crate) struct Taken {
    /// By place in `said`.
    pub(crate) place: usize,
    pub(crate) client: Client,
    pub(crate) plan: Plan,
    pub(crate) charge: Charge,
    pub(crate) from: Arc<dyn Gives>,
}

/// What tokens were taken from.
pub(crate) trait Gives: Send + Sync + fmt::Debug {
    /// Gives them back; returns what a look then says.
    fn give_back(&self, charge: Charge, client: &Client, plan: Plan) -> StoreAnswer;
}

impl<C: Clock> Gives for KeyedLimiter<AnyLimit, C> {
    fn give_back(&self, charge: Charge, client: &Client, plan: Plan) -> StoreAnswer {
        self.cancel_aged(charge);
        let mut look = [self.ask(client, 0).plan(plan)];
        let _ = acquire_all(&mut look);
        let [look] = look;
        StoreAnswer::from(&look)
    }
}

/// One limit's figures, as a client may be told them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shown<'v> {
    /// The limit.
    pub limit: &'v Limit,
    /// What it held the client to.
    pub rule: Rule,
    /// How many tokens it was asked for.
    pub cost: u64,
    /// What it answered.
    pub decision: Decision,
    /// For how long it might have been held back, as in [`Said`].
    pub max_delay: Duration,
    /// How long after that the same request would be allowed by it, as in [`Said`].
    pub again_after: Option<Duration>,
    /// When it answered.
    pub at: Timestamp,
}

impl Shown<'_> {
    /// The most tokens that it admits at once: the burst, or as many as a leaky bucket delays by no
    /// more than it may.
    #[must_use]
    pub fn burst(&self) -> u64 {
        let all = self.rule.burst();
        all.min(self.within_delay(Duration::ZERO, 1))
    }

    /// How many more tokens it admits at once, one by one: whole ones, and of a leaky bucket those
    /// that it delays by no more than it may. Never more than a burst's, if another burst holds
    /// meanwhile.
    #[must_use]
    pub fn tokens_left(&self) -> u64 {
        let tokens = self.decision.remaining().min(self.rule.burst());
        tokens.min(self.within_delay(self.decision.reset_after(), 1))
    }

    /// How many more requests like this one it admits at once.
    #[must_use]
    pub fn requests_left(&self) -> u64 {
        let tokens = self.decision.remaining().min(self.rule.burst());
        let left = tokens.checked_div(self.cost).unwrap_or(tokens);
        left.min(self.within_delay(self.decision.reset_after(), self.cost))
    }

    /// How many requests of that cost a leaky bucket that is empty after `reset_after` admits in a
    /// row: the nth is delayed by that, and the time that those before it drain in. Rounded down.
    fn within_delay(&self, reset_after: Duration, cost: u64) -> u64 {
        let Rule::LeakyBucket(quota) = self.rule else {
            return u64::MAX;
        };
        let Some(more) = self.max_delay.checked_sub(reset_after) else {
            return 0;
        };
        let rate = quota.rate();
        let drains = u128::from(cost.max(1)).saturating_mul(rate.period().as_nanos());
        let tokens = more.as_nanos().saturating_mul(u128::from(rate.tokens()));
        let behind = tokens.checked_div(drains).unwrap_or(0);
        u64::try_from(behind).unwrap_or(u64::MAX).saturating_add(1)
    }
}

impl Verdict {
    pub(crate) fn new(policy: Arc<Policy>) -> Self {
        Self(Box::new(Findings {
            policy,
            said: SmallVec::new(),
            refused_by: None,
            taken: Vec::new(),
            lent: Vec::new(),
            store: StoreState::NotAsked,
            lacking: Vec::new(),
        }))
    }

    /// Gives back what limits took for a request that they do not count, being answered with that
    /// status ([`Limit::refund_status`]). The figures are those after it.
    ///
    /// Nothing is given back to a window that is over.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    ///
    /// ```
    /// use tollgate::{ManualClock, Rate};
    /// use tollgate_policy::statuses::Statuses;
    /// use tollgate_policy::{Gate, Limit, Policy, Rule};
    /// # use tollgate_policy::proxies::Peer;
    /// # use tollgate_policy::request::Request;
    /// # struct Post;
    /// # impl Request for Post {
    /// #     fn method(&self) -> &[u8] { b"POST" }
    /// #     fn target(&self) -> &[u8] { b"/login" }
    /// #     fn peer(&self) -> Peer { Peer::Address([192, 0, 2, 1].into()) }
    /// #     fn header(&self, _: &str, _: &mut dyn FnMut(&[u8])) {}
    /// # }
    ///
    /// // Log-ins that fail count; those that do not, do not.
    /// let limit = Limit::new("log-in", Rule::TokenBucket(Rate::per_hour(1).burst(1)))?
    ///     .with_refund_status(Statuses::of(["2xx"])?);
    /// let gate = Gate::new(Policy::new(vec![limit])?, ManualClock::default())?;
    /// for status in [200, 200, 401] {
    ///     let mut verdict = gate.admit(&Post);
    ///     assert!(verdict.is_allowed());
    ///     verdict.answered(status);
    /// }
    /// assert!(!gate.admit(&Post).is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn answered(&mut self, status: u16) {
        for taken in std::mem::take(&mut self.0.taken) {
            if self.gives_back(taken.place, status) {
                let (from, client) = (taken.from, taken.client);
                let look = from.give_back(taken.charge, &client, taken.plan);
                self.given_back(taken.place, look);
            }
        }
    }

    /// Whether the limit at that place in `said` does not count an answer with that status.
    pub(crate) fn gives_back(&self, place: usize, status: u16) -> bool {
        let said = self.0.said.get(place);
        let limit = said.and_then(|said| self.0.policy.limits().get(said.limit));
        limit.is_some_and(|limit| limit.refund_status().contains(status))
    }

    /// Notes what a look says after tokens were given back.
    pub(crate) fn given_back(&mut self, place: usize, look: StoreAnswer) {
        let Some(said) = self.0.said.get_mut(place) else {
            return;
        };
        let limit = self.0.policy.limits().get(said.limit);
        let rule = limit.and_then(|limit| limit.rule_of(said.plan));
        let decision = look.decision;
        let reset_after = decision.reset_after();
        // A look tells no wait, but of a ban. Of a call that fits, only a leaky bucket's delay may
        // be too long; where it does not fit still, the longest wait that there is.
        said.again_after = match (decision, rule) {
            (Decision::Allowed { .. }, Some(Rule::LeakyBucket(_)))
                if decision.remaining() >= said.cost =>
            {
                Some(reset_after.saturating_sub(said.max_delay))
            }
            (Decision::Allowed { .. }, _) if decision.remaining() >= said.cost => {
                Some(Duration::ZERO)
            }
            (Decision::Allowed { .. }, _) => Some(reset_after),
            _ => look.again_after,
        };
        (said.outcome, said.at) = (Outcome::Decided(decision), look.at);
    }

    /// Notes what was answered at that place in `said`.
    pub(crate) fn take_down(&mut self, place: usize, answer: StoreAnswer, max_delay: Duration) {
        if let Some(said) = self.0.said.get_mut(place) {
            said.outcome = Outcome::Decided(answer.decision);
            said.max_delay = max_delay;
            (said.again_after, said.at) = (answer.again_after, answer.at);
        }
    }

    /// The policy whose limits these are.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.0.policy
    }

    /// Whether the request may proceed.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.0.refused_by.is_none() && self.0.store != StoreState::Failed(OnError::Deny)
    }

    /// Which limit refused: of several the one whose refusal lasts longest, and any that lacks a
    /// key before those. `None` also if it was the store that failed.
    #[must_use]
    pub fn refused_by(&self) -> Option<&Said> {
        self.0.refused_by.and_then(|place| self.0.said.get(place))
    }

    /// Whether a shared store was asked, and answered.
    #[must_use]
    pub fn store(&self) -> StoreState {
        self.0.store
    }

    /// The limits, by their places in the policy, for which the request lacked a part of the key,
    /// or said different things: those it passes by among them.
    #[must_use]
    pub fn lacking(&self) -> &[usize] {
        &self.0.lacking
    }

    /// Whether a store is to be asked to give something back for a request that was answered with
    /// that status: [`SharedGate::answered`](crate::SharedGate::answered) does.
    #[must_use]
    pub fn owes(&self, status: u16) -> bool {
        self.0
            .lent
            .iter()
            .any(|lent| self.gives_back(lent.place, status))
    }

    /// What each limit said that holds for the request, but for those that it passes by.
    #[must_use]
    pub fn said(&self) -> &[Said] {
        &self.0.said
    }

    /// How long a request that may proceed is to be held back.
    #[must_use]
    pub fn delay(&self) -> Duration {
        let delays = self.told().map(|shown| shown.decision.delay());
        delays.max().unwrap_or_default()
    }

    /// The one limit whose figures a client is shown: the one that refused, or the one under which
    /// the fewest more such requests pass; of equals the one under which the next one passes last,
    /// then the one that takes longest to be as new, then the first. `None` if no limiter was
    /// asked, or none that refuses.
    #[must_use]
    pub fn shown(&self) -> Option<Shown<'_>> {
        if let Some(said) = self.refused_by() {
            return self.figures(said);
        }
        let more = |shown: &Shown<'_>| {
            let again_after = shown.again_after.unwrap_or(Duration::MAX);
            let reset_after = shown.decision.reset_after();
            (shown.requests_left(), Reverse((again_after, reset_after)))
        };
        self.told().min_by_key(more)
    }

    /// The figures of all limits that refuse and were asked, in the order of the policy; not of
    /// clients whose plan is held to nothing.
    pub fn told(&self) -> impl Iterator<Item = Shown<'_>> {
        let enforced = self.0.said.iter().filter(|said| !said.is_shadow);
        enforced.filter_map(|said| self.figures(said))
    }

    fn figures(&self, said: &Said) -> Option<Shown<'_>> {
        let limit = self.0.policy.limits().get(said.limit)?;
        let Outcome::Decided(decision) = said.outcome else {
            return None;
        };
        let (rule, cost) = (limit.rule_of(said.plan)?, said.cost);
        Some(Shown {
            limit,
            rule,
            cost,
            decision,
            max_delay: said.max_delay,
            again_after: said.again_after,
            at: said.at,
        })
    }
}
