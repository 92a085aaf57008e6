//! Limits put to use: a policy, its buckets, and how its answers are worded.

mod backend;
mod builder;
mod notices;
mod places;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tollgate::Statistics;
use tollgate_policy::gate::Reloaded;
use tollgate_policy::proxies::{Peer, Proxies};
use tollgate_policy::{Key, Policy, Verdict};

use crate::fields::{self, Header, Headers};
use crate::head::{Described, Head};
use crate::refusal::{Refusal, RefusalStatuses};
use backend::Backend;
use notices::Notices;
use places::Places;

pub(crate) use places::Held;

pub use builder::{Builder, LimitsError, MAX_HELD, STORE_DEADLINE};

/// Limits put to use: what the middlewares of this crate are made of. A clone is the same limits.
///
/// `H` is a request's head in the framework's terms: [`http::request::Parts`] for tower and what
/// runs on it, `ServiceRequest` for actix-web.
///
/// ```
/// use tollgate_http::{Key, Limit, Limits, Policy, Rate, RateLimitLayer};
///
/// let limit = Limit::new("per-tenant", Rate::per_second(5).burst(10))?;
/// let policy = Policy::new(vec![limit.with_key(Key::descriptor("tenant"))])?;
/// let forgotten = Limits::builder(policy.clone()).build();
/// assert_eq!(
///     forgotten.unwrap_err().to_string(),
///     "the policy goes by descriptor \"tenant\", and nothing tells it",
/// );
///
/// // As a log-in put it there. (What is borrowed from the head is to be copied.)
/// let limits = Limits::builder(policy)
///     .descriptor("tenant", |head| head.extensions.get::<String>().cloned())
///     .build()?;
/// let layer = RateLimitLayer::from(limits.clone());
/// // While the service runs:
/// let other = Limit::new("per-tenant", Rate::per_second(9).burst(9))?;
/// let other = Policy::new(vec![other.with_key(Key::descriptor("tenant"))])?;
/// assert!(limits.reload(other)?.afresh.is_empty(), "the same limit, with other numbers");
/// # let _ = layer;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Limits<H: ?Sized = http::request::Parts>(Arc<Inner<H>>);

struct Inner<H: ?Sized> {
    backend: Backend,
    settings: Settings<H>,
    places: Places,
    notices: Notices,
}

/// All that is no part of the policy.
pub(crate) struct Settings<H: ?Sized> {
    pub(crate) descriptors: Vec<(String, Says<H, Descriptor>)>,
    /// Of the limit of that name, or of all.
    pub(crate) costs: Vec<(Option<String>, Says<H, u64>)>,
    pub(crate) skips: Option<Says<H, bool>>,
    pub(crate) peer: Option<Says<H, Option<Peer>>>,
    pub(crate) headers: Headers,
    pub(crate) statuses: RefusalStatuses,
}

/// What the service says about a request.
pub(crate) type Says<H, T> = Arc<dyn Fn(&H) -> T + Send + Sync>;

/// A descriptor's value.
pub(crate) type Descriptor = Option<Vec<u8>>;

/// What will have been said.
pub(crate) type Later = Pin<Box<dyn Future<Output = Verdict> + Send>>;

/// What is known of a request before its service is asked.
pub(crate) enum Ruling {
    /// No limit is asked about it.
    Skipped,
    /// The limits were.
    Decided(Verdict, Option<Held>),
    /// A store is being asked.
    Asking(Later, Option<Held>),
}

impl Limits {
    /// How to put a policy to use on tower; for actix-web there is `actix::limits`.
    pub fn builder(policy: Policy) -> Builder {
        Builder::new(policy)
    }
}

impl<H: Head + ?Sized> Limits<H> {
    /// The policy that holds.
    #[must_use]
    pub fn policy(&self) -> Arc<Policy> {
        self.0.backend.policy()
    }

    /// Holds requests to another policy from now on: whole or not at all, and with clients' tokens
    /// kept where the limit is the same. See [`Gate::reload`](tollgate_policy::Gate::reload). Of
    /// large limits with another `max_clients` it may take a while: not on a thread that serves.
    ///
    /// # Errors
    ///
    /// A descriptor or a limit that the policy goes by or the settings speak of and that is not
    /// there, and what the gate finds. Nothing was changed then.
    pub fn reload(&self, policy: Policy) -> Result<Reloaded, LimitsError> {
        self.0.settings.check(&policy)?;
        let reloaded = self.0.backend.reload(policy)?;
        self.0.notices.forget_keys();
        Ok(reloaded)
    }

    /// How often each limit gave each answer, by name: also those that only count, which is how one
    /// sees whom they would have refused (a `debug` event of `tracing` says so of each, too).
    /// Nothing, where the buckets are in a store.
    #[must_use]
    pub fn statistics(&self) -> Vec<(String, Statistics)> {
        self.0.backend.statistics()
    }

    /// The same limits under other settings, with what is counted here afresh.
    pub(crate) fn with(&self, change: impl FnOnce(&mut Settings<H>)) -> Self {
        let mut settings = self.0.settings.clone();
        change(&mut settings);
        Self::of(self.0.backend.clone(), settings, self.0.places.most())
    }

    pub(crate) fn with_one_key(&self, key: &Key) -> Self {
        let backend = self.0.backend.with_one_key(key);
        Self::of(backend, self.0.settings.clone(), self.0.places.most())
    }

    pub(crate) fn with_proxies(&self, proxies: &Proxies) -> Self {
        let backend = self.0.backend.with_proxies(proxies);
        Self::of(backend, self.0.settings.clone(), self.0.places.most())
    }

    fn of(backend: Backend, settings: Settings<H>, max_held: usize) -> Self {
        Self(Arc::new(Inner {
            backend,
            settings,
            places: Places::new(max_held),
            notices: Notices::default(),
        }))
    }

    /// Asks the limits about a request.
    pub(crate) fn rule(&self, head: &H) -> Ruling {
        let settings = &self.0.settings;
        if settings.skips.as_ref().is_some_and(|skips| skips(head)) {
            return Ruling::Skipped;
        }
        let request = Described { head, settings };
        match &self.0.backend {
            Backend::Local(gate) => {
                let mut held = None;
                let verdict = gate.admit(&request, &self.0.places, &mut held);
                let lacking = verdict.lacking().iter().copied();
                self.0.notices.keys(lacking, verdict.policy(), &request);
                Notices::shadows(&verdict);
                Ruling::Decided(verdict, held)
            }
            Backend::Shared(shared) => {
                let policy = self.0.backend.policy();
                let calls = policy.calls(&request);
                let held = self.0.places.take_for(&policy, &calls);
                let max_delay = Held::longest_delay(held.as_ref());
                let lacking = calls.iter().filter(|call| call.lacks_key);
                let lacking = lacking.map(|call| call.limit);
                self.0.notices.keys(lacking, &policy, &request);
                Ruling::Asking(shared.clone().ask(policy, calls, max_delay), held)
            }
        }
    }

    /// Takes note of whether the store answered.
    pub(crate) fn note(&self, verdict: &Verdict) {
        self.0.notices.store(verdict.store());
        Notices::shadows(verdict);
    }

    /// Tells the limits with which status a request was answered; the verdict may have to wait for
    /// a store then.
    pub(crate) fn answered(&self, mut verdict: Verdict, status: u16) -> Result<Verdict, Later> {
        match &self.0.backend {
            Backend::Shared(shared) if verdict.owes(status) => {
                Err(shared.clone().answered(verdict, status))
            }
            Backend::Shared(_) | Backend::Local(_) => {
                verdict.answered(status);
                Ok(verdict)
            }
        }
    }

    /// Writes what the header of the answer is to say beside what it says.
    pub(crate) fn write(&self, verdict: &Verdict, header: &mut impl Header) {
        fields::write(verdict, self.0.settings.headers, header);
    }

    /// What a refused request is answered with.
    pub(crate) fn refusal(&self, verdict: &Verdict) -> Refusal {
        Refusal::of(verdict, self.0.settings.statuses)
    }
}

impl<H: ?Sized> Clone for Settings<H> {
    fn clone(&self) -> Self {
        Self {
            descriptors: self.descriptors.clone(),
            costs: self.costs.clone(),
            skips: self.skips.clone(),
            peer: self.peer.clone(),
            ..*self
        }
    }
}

impl<H: ?Sized> Clone for Limits<H> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<H: ?Sized> fmt::Debug for Limits<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limits")
            .field("policy", &self.0.backend.policy())
            .finish_non_exhaustive()
    }
}
