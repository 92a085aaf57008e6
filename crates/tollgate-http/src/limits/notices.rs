//! What an operator is told of, once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tollgate_policy::key::Part;
use tollgate_policy::limit::OnError;
use tollgate_policy::proxies::Peer;
use tollgate_policy::verdict::{Said, StoreState};
use tollgate_policy::{MissingKey, Policy, Request, Verdict};

/// What was told of already.
#[derive(Debug, Default)]
pub(super) struct Notices {
    /// By place in the policy, of which there are 64, the limits that a request lacked a key for.
    keys: AtomicU64,
    /// The store did not answer the last time that it was asked.
    is_failing: AtomicBool,
}

impl Notices {
    /// Tells of limits that a request lacks a part of the key for.
    pub(super) fn keys(
        &self,
        limits: impl Iterator<Item = usize>,
        policy: &Policy,
        request: &impl Request,
    ) {
        for place in limits {
            let bit = u32::try_from(place)
                .ok()
                .and_then(|place| 1_u64.checked_shl(place));
            let bit = bit.unwrap_or(0);
            if self.keys.fetch_or(bit, Ordering::Relaxed) & bit != 0 {
                continue;
            }
            let Some(limit) = policy.limits().get(place) else {
                continue;
            };
            let becomes = match limit.missing_key() {
                MissingKey::Share => "all such requests share one bucket",
                MissingKey::Refuse => "such requests are refused",
                MissingKey::Pass => "such requests are not limited",
                _ => "",
            };
            let goes_by_ip = limit.key().parts().contains(&Part::Ip);
            if goes_by_ip && request.peer() == Peer::Unknown {
                tracing::warn!(
                    limit = limit.name(),
                    becomes,
                    "nobody says from which address requests come: in axum, enable this crate's \
                     feature axum and serve with into_make_service_with_connect_info; elsewhere, \
                     see Builder::peer (not said again)",
                );
            } else {
                tracing::warn!(
                    limit = limit.name(),
                    key = %limit.key(),
                    becomes,
                    "a request lacks a part of the limit's key (not said again)",
                );
            }
        }
    }

    /// Keys are told of again: of another policy, or of one that was mended.
    pub(super) fn forget_keys(&self) {
        self.keys.store(0, Ordering::Relaxed);
    }

    /// Tells of limits that only count, and would have refused.
    pub(super) fn shadows(verdict: &Verdict) {
        let would = |said: &&Said| said.is_shadow && said.outcome.refuses();
        for said in verdict.said().iter().filter(would) {
            let limit = verdict.policy().limits().get(said.limit);
            if let Some(limit) = limit {
                tracing::debug!(limit = limit.name(), "would have been refused");
            }
        }
    }

    /// Tells of a store that begins to fail, or to answer. A request that it was not asked about
    /// says nothing about it.
    pub(super) fn store(&self, state: StoreState) {
        let is_failing = match state {
            StoreState::Failed(_) => true,
            StoreState::Answered => false,
            StoreState::NotAsked | _ => return,
        };
        if self.is_failing.swap(is_failing, Ordering::Relaxed) == is_failing {
            return;
        }
        match state {
            StoreState::Failed(OnError::Deny) => {
                tracing::warn!("the limits' store fails; requests are refused");
            }
            StoreState::Failed(_) => tracing::warn!("the limits' store fails; requests pass"),
            StoreState::NotAsked | StoreState::Answered | _ => {
                tracing::info!("the limits' store answers again");
            }
        }
    }
}
