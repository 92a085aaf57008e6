//! A request before the limits of a policy: who is asked, and what comes of the answers.

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use tollgate::Timestamp;

use crate::key::Client;
use crate::limit::Limit;
use crate::policy::{Answer, Call, Policy};
use crate::verdict::{Outcome, Said, Verdict};

/// What a request asks, sorted by what its answers are for.
pub(crate) struct Hearing<'c> {
    pub(crate) verdict: Verdict,
    /// Limits that refuse: they are asked together.
    pub(crate) enforced: Claims<'c>,
    /// Limits that only count: they are asked about what the others let pass, each for itself.
    pub(crate) counting: Claims<'c>,
}

/// What is asked of several limits: most requests ask few.
pub(crate) type Claims<'c> = SmallVec<[Claim<'c>; 1]>;

/// What is asked of one limit.
#[derive(Clone, Copy)]
pub(crate) struct Claim<'c> {
    /// By place in the verdict.
    pub(crate) place: usize,
    /// By place in the policy.
    pub(crate) limit: usize,
    pub(crate) client: &'c Client,
    pub(crate) cost: u64,
    pub(crate) plan: Option<usize>,
}

impl<'c> Hearing<'c> {
    /// A call of a limit that the policy has not is passed over.
    pub(crate) fn new(policy: Arc<Policy>, calls: &'c [Call]) -> Self {
        let mut hearing = Self {
            verdict: Verdict::new(policy),
            enforced: Claims::new(),
            counting: Claims::new(),
        };
        hearing.verdict.0.said.reserve(calls.len());
        for call in calls {
            hearing.call(call);
        }
        hearing
    }

    fn call(&mut self, call: &'c Call) {
        let verdict = &mut self.verdict;
        let Some(limit) = verdict.0.policy.limits().get(call.limit) else {
            return;
        };
        if call.lacks_key {
            verdict.0.lacking.push(call.limit);
        }
        let place = verdict.0.said.len();
        let mut said = Said {
            limit: call.limit,
            is_shadow: limit.is_shadow(),
            cost: 0,
            plan: None,
            outcome: Outcome::NotAsked,
            max_delay: Duration::MAX,
            again_after: None,
            at: Timestamp::from_nanos(0),
        };
        match &call.answer {
            Answer::Takes { client, cost, plan } => {
                (said.cost, said.plan) = (*cost, *plan);
                let claim = Claim {
                    place,
                    limit: call.limit,
                    client,
                    cost: *cost,
                    plan: *plan,
                };
                if said.is_shadow {
                    self.counting.push(claim);
                } else {
                    self.enforced.push(claim);
                }
            }
            Answer::Unidentified => {
                said.outcome = Outcome::Unidentified;
                if !said.is_shadow {
                    verdict.0.refused_by.get_or_insert(place);
                }
            }
            Answer::Passes => return,
        }
        verdict.0.said.push(said);
    }

    /// Whether it is refused already, before anybody is asked.
    pub(crate) fn is_decided(&self) -> bool {
        !self.verdict.is_allowed()
    }

    /// The limit that a claim is on.
    pub(crate) fn limit(&self, claim: &Claim<'_>) -> Option<&Limit> {
        self.verdict.0.policy.limits().get(claim.limit)
    }
}
