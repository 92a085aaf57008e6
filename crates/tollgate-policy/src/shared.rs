//! A policy whose buckets are kept elsewhere.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, PoisonError, RwLock};
use std::task::Poll;
use std::time::Duration;

use tollgate::{Decision, Store, StoreAnswer, StoreAsk, StoreError, Timestamp};

use crate::gate::Reloaded;
use crate::hearing::{Claim, Hearing};
use crate::key::Client;
use crate::limit::{Limit, OnError};
use crate::policy::{Call, Policy};
use crate::rule::Rule;
use crate::verdict::{StoreState, Verdict};

/// A policy whose buckets are in a shared store: it answers requests, if the store does; if not, by
/// its limits' [`on_error`](crate::Limit::on_error).
#[derive(Debug)]
pub struct SharedGate {
    policy: RwLock<Arc<Policy>>,
    store: Arc<dyn Store>,
}

/// Tokens that a store took and may be asked to give back.
#[derive(Debug)]
pub(crate) struct Lent {
    /// By place in the verdict.
    pub(crate) place: usize,
    limit: String,
    rule: Rule,
    client: Client,
    cost: u64,
    taken_at: Timestamp,
}

/// One claim on the store.
struct Asked<'c> {
    claim: Claim<'c>,
    limit: String,
    rule: Rule,
    max_delay: Duration,
    on_error: OnError,
}

impl Asked<'_> {
    fn ask(&self) -> StoreAsk<'_> {
        let client = self.claim.client.as_bytes();
        let mut ask = StoreAsk::new(&self.limit, self.rule.limit(), client, self.claim.cost);
        ask.max_delay = self.max_delay;
        ask
    }
}

impl SharedGate {
    /// A policy, and where its buckets are.
    #[must_use]
    pub fn new(policy: Policy, store: Arc<dyn Store>) -> Self {
        let policy = RwLock::new(Arc::new(policy));
        Self { policy, store }
    }

    /// The same store under another policy that is made of this one.
    #[must_use]
    pub fn with(&self, change: impl FnOnce(Policy) -> Policy) -> Self {
        Self::new(change((*self.policy()).clone()), self.store.clone())
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> Arc<Policy> {
        let policy = self.policy.read();
        policy.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Holds requests to another policy from now on. Its limits' buckets are those of the same
    /// name, key and algorithm.
    pub fn reload(&self, policy: Policy) -> Reloaded {
        let mut held = self.policy.write().unwrap_or_else(PoisonError::into_inner);
        // Those of the one whose buckets are not those of any of the other.
        let without = |one: &Policy, other: &Policy| {
            let known: Vec<String> = other.limits().iter().map(identity).collect();
            let others = one.limits().iter();
            let others = others.filter(|limit| !known.contains(&identity(limit)));
            others.map(|limit| limit.name().to_owned()).collect()
        };
        let reloaded = Reloaded {
            afresh: without(&policy, &held),
            gone: without(&held, &policy),
        };
        *held = Arc::new(policy);
        reloaded
    }

    /// What comes of a request that asks `calls` of `policy`, which is this gate's, and nothing of
    /// which is held back for longer than `max_delay`. As
    /// [`Gate::admit_within`](crate::Gate::admit_within), but that limits that only count are asked
    /// in a call of their own.
    ///
    /// The store has until `deadline` is ready; then it has failed.
    pub async fn decide(
        &self,
        policy: Arc<Policy>,
        calls: &[Call],
        max_delay: Duration,
        deadline: impl Future<Output = ()> + Send,
    ) -> Verdict {
        let deadline = pin!(deadline);
        let mut deadline = Deadline::new(deadline);
        let mut hearing = Hearing::new(policy, calls);
        if hearing.is_decided() {
            return hearing.verdict;
        }
        let enforced = std::mem::take(&mut hearing.enforced);
        let asked = self.asked(&mut hearing, &enforced, max_delay);
        let Ok(answers) = self.ask(&mut hearing, &asked, &mut deadline).await else {
            let on_error = asked.iter().map(|asked| asked.on_error);
            let denies = on_error
                .into_iter()
                .any(|on_error| on_error == OnError::Deny);
            let on_error = if denies {
                OnError::Deny
            } else {
                OnError::Allow
            };
            hearing.verdict.0.store = StoreState::Failed(on_error);
            return hearing.verdict;
        };
        let mut longest: Option<(usize, Decision)> = None;
        for (place, answer) in answers {
            let refusal = answer.decision;
            let outlasts = longest.is_none_or(|(_, other)| refusal.outlasts(other));
            if !refusal.is_allowed() && outlasts {
                longest = Some((place, refusal));
            }
        }
        hearing.verdict.0.refused_by = longest.map(|(place, _)| place);
        if !hearing.is_decided() {
            let counting = std::mem::take(&mut hearing.counting);
            for asked in self.asked(&mut hearing, &counting, max_delay) {
                // Each for itself; whatever comes of it changes nothing for the request.
                let answered = self.ask(&mut hearing, &[asked], &mut deadline).await;
                if answered.is_err() && hearing.verdict.0.store == StoreState::NotAsked {
                    hearing.verdict.0.store = StoreState::Failed(OnError::Allow);
                }
            }
        }
        hearing.verdict
    }

    /// What is asked of the store for some claims.
    fn asked<'c>(
        &self,
        hearing: &mut Hearing<'_>,
        claims: &[Claim<'c>],
        max_delay: Duration,
    ) -> Vec<Asked<'c>> {
        let mut asked = Vec::with_capacity(claims.len());
        for claim in claims {
            let Some(limit) = hearing.limit(claim) else {
                continue;
            };
            let max_delay = limit.max_delay().min(max_delay);
            match limit.rule_of(claim.plan) {
                Some(rule) => asked.push(Asked {
                    claim: *claim,
                    limit: identity(limit),
                    rule,
                    max_delay,
                    on_error: limit.on_error(),
                }),
                // Of a plan that is held to nothing.
                None => hearing
                    .verdict
                    .take_down(claim.place, unlimited(), max_delay),
            }
        }
        asked
    }

    /// Asks the store, and takes down what it answers, by place.
    async fn ask(
        &self,
        hearing: &mut Hearing<'_>,
        asked: &[Asked<'_>],
        deadline: &mut Deadline<'_, impl Future<Output = ()> + Send>,
    ) -> Result<Vec<(usize, StoreAnswer)>, StoreError> {
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        let asks: Vec<StoreAsk<'_>> = asked.iter().map(Asked::ask).collect();
        let answers = deadline.before(self.store.acquire_all(&asks)).await?;
        if answers.len() != asks.len() {
            let (answers, asks) = (answers.len(), asks.len());
            let reason = format!("{answers} answers to {asks} questions");
            return Err(StoreError::Nonsense { reason });
        }
        hearing.verdict.0.store = StoreState::Answered;
        let is_charged = answers.iter().all(|answer| answer.decision.is_allowed());
        let mut told = Vec::with_capacity(answers.len());
        for (asked, answer) in asked.iter().zip(answers) {
            let place = asked.claim.place;
            told.push((place, answer));
            hearing.verdict.take_down(place, answer, asked.max_delay);
            if is_charged && let Some(lent) = lent(hearing, asked, answer) {
                hearing.verdict.0.lent.push(lent);
            }
        }
        Ok(told)
    }

    /// Has the store give back what limits took for a request that they do not count, being
    /// answered with that status: see [`Verdict::answered`]. What it does not do before `deadline`
    /// is ready stays taken.
    pub async fn answered(
        &self,
        verdict: &mut Verdict,
        status: u16,
        deadline: impl Future<Output = ()> + Send,
    ) {
        let deadline = pin!(deadline);
        let mut deadline = Deadline::new(deadline);
        for lent in std::mem::take(&mut verdict.0.lent) {
            if !verdict.gives_back(lent.place, status) {
                continue;
            }
            let client = lent.client.as_bytes();
            let ask = StoreAsk::new(&lent.limit, lent.rule.limit(), client, lent.cost);
            let cancel = self.store.cancel(&ask, lent.taken_at);
            if let Ok(look) = deadline.before(cancel).await {
                verdict.given_back(lent.place, look);
            }
        }
    }
}

/// What may be given back of a claim that was charged.
fn lent(hearing: &Hearing<'_>, asked: &Asked<'_>, answer: StoreAnswer) -> Option<Lent> {
    let limit = hearing.limit(&asked.claim)?;
    (!limit.refund_status().is_empty()).then(|| Lent {
        place: asked.claim.place,
        limit: asked.limit.clone(),
        rule: asked.rule,
        client: asked.claim.client.clone(),
        cost: asked.claim.cost,
        taken_at: answer.at,
    })
}

/// The name under which a store keeps a limit's buckets: another key or algorithm is another limit.
fn identity(limit: &Limit) -> String {
    format!(
        "{} {} {}",
        limit.name(),
        limit.rule().algorithm(),
        limit.key()
    )
}

/// The answer to a client whose plan is held to nothing.
fn unlimited() -> StoreAnswer {
    let decision = Decision::Allowed {
        remaining: u64::MAX,
        delay: Duration::ZERO,
        reset_after: Duration::ZERO,
    };
    StoreAnswer::new(decision, Some(Duration::ZERO), Timestamp::from_nanos(0))
}

/// A time by which a store has to have answered, over several questions.
struct Deadline<'f, F> {
    /// `None` once it is over: a future that was ready is not to be asked again.
    time: Option<Pin<&'f mut F>>,
}

impl<'f, F: Future<Output = ()>> Deadline<'f, F> {
    fn new(time: Pin<&'f mut F>) -> Self {
        let time = Some(time);
        Self { time }
    }

    /// What a store answers before it is over.
    async fn before<T>(
        &mut self,
        mut answer: impl Future<Output = Result<T, StoreError>> + Unpin,
    ) -> Result<T, StoreError> {
        poll_fn(|context| {
            if let Poll::Ready(answer) = Pin::new(&mut answer).poll(context) {
                return Poll::Ready(answer);
            }
            let time = self.time.as_mut().map(|time| time.as_mut().poll(context));
            match time {
                Some(Poll::Pending) => Poll::Pending,
                Some(Poll::Ready(())) | None => {
                    self.time = None;
                    Poll::Ready(Err(StoreError::TimedOut))
                }
            }
        })
        .await
    }
}
