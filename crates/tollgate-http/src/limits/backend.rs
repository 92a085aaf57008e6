//! Where the buckets are.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Sleep;
use tollgate::{Clock, Statistics, Store};
use tollgate_policy::gate::{ReloadError, Reloaded};
use tollgate_policy::policy::Call;
use tollgate_policy::proxies::Proxies;
use tollgate_policy::{Gate, Key, Policy, Request, SharedGate, Verdict};

use super::Later;
use super::places::{Held, Places};

/// Where the buckets are.
#[derive(Clone, Debug)]
pub(super) enum Backend {
    /// In this process.
    Local(Arc<dyn Local>),
    /// In a store.
    Shared(Shared),
}

/// A gate, whatever its clock.
pub(super) trait Local: fmt::Debug + Send + Sync {
    fn policy(&self) -> Arc<Policy>;
    fn admit(&self, request: &dyn Request, places: &Places, held: &mut Option<Held>) -> Verdict;
    fn reload(&self, policy: Policy) -> Result<Reloaded, ReloadError>;
    fn statistics(&self) -> Vec<(String, Statistics)>;
    fn with_one_key(&self, key: &Key) -> Arc<dyn Local>;
    fn with_proxies(&self, proxies: &Proxies) -> Arc<dyn Local>;
}

impl<C: Clock + Clone + 'static> Local for Gate<C> {
    fn policy(&self) -> Arc<Policy> {
        self.policy()
    }

    fn admit(&self, request: &dyn Request, places: &Places, held: &mut Option<Held>) -> Verdict {
        self.admit_within(request, |policy, calls| {
            *held = places.take_for(policy, calls);
            Held::longest_delay(held.as_ref())
        })
    }

    fn reload(&self, policy: Policy) -> Result<Reloaded, ReloadError> {
        self.reload(policy)
    }

    fn statistics(&self) -> Vec<(String, Statistics)> {
        self.statistics()
    }

    fn with_one_key(&self, key: &Key) -> Arc<dyn Local> {
        Arc::new(self.with_one_key(key))
    }

    fn with_proxies(&self, proxies: &Proxies) -> Arc<dyn Local> {
        Arc::new(self.with_proxies(proxies.clone()))
    }
}

/// A gate whose buckets are in a store, and how long that may take to answer.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    gate: Arc<SharedGate>,
    deadline: Duration,
}

impl Shared {
    pub(super) fn new(policy: Policy, store: Arc<dyn Store>, deadline: Duration) -> Self {
        let gate = Arc::new(SharedGate::new(policy, store));
        Self { gate, deadline }
    }

    /// When the store has failed, asked now.
    fn over(&self) -> Sleep {
        tokio::time::sleep(self.deadline)
    }

    pub(super) fn ask(self, policy: Arc<Policy>, calls: Vec<Call>, max_delay: Duration) -> Later {
        Box::pin(async move {
            let verdict = self.gate.decide(policy, &calls, max_delay, self.over());
            verdict.await
        })
    }

    pub(super) fn answered(self, mut verdict: Verdict, status: u16) -> Later {
        Box::pin(async move {
            let answered = self.gate.answered(&mut verdict, status, self.over());
            answered.await;
            verdict
        })
    }

    fn with(&self, change: impl FnOnce(Policy) -> Policy) -> Backend {
        let gate = Arc::new(self.gate.with(change));
        let deadline = self.deadline;
        Backend::Shared(Self { gate, deadline })
    }
}

impl Backend {
    pub(super) fn policy(&self) -> Arc<Policy> {
        match self {
            Self::Local(gate) => gate.policy(),
            Self::Shared(shared) => shared.gate.policy(),
        }
    }

    pub(super) fn reload(&self, policy: Policy) -> Result<Reloaded, ReloadError> {
        match self {
            Self::Local(gate) => gate.reload(policy),
            Self::Shared(shared) => Ok(shared.gate.reload(policy)),
        }
    }

    pub(super) fn statistics(&self) -> Vec<(String, Statistics)> {
        match self {
            Self::Local(gate) => gate.statistics(),
            Self::Shared(_) => Vec::new(),
        }
    }

    pub(super) fn with_one_key(&self, key: &Key) -> Self {
        match self {
            Self::Local(gate) => Self::Local(gate.with_one_key(key)),
            Self::Shared(shared) => shared.with(|policy| policy.with_one_key(key)),
        }
    }

    pub(super) fn with_proxies(&self, proxies: &Proxies) -> Self {
        match self {
            Self::Local(gate) => Self::Local(gate.with_proxies(proxies)),
            Self::Shared(shared) => shared.with(|policy| policy.with_proxies(proxies.clone())),
        }
    }
}
