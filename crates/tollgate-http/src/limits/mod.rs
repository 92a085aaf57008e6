//! Limits put to use: a policy, its buckets, and how its answers are worded.

mod backend;
mod builder;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tollgate::Statistics;
use tollgate_policy::gate::Reloaded;
use tollgate_policy::limit::OnError;
use tollgate_policy::proxies::{Peer, Proxies};
use tollgate_policy::{Key, Policy, Verdict};

use crate::fields::{self, Field, Headers};
use crate::head::{Head, Told};
use crate::refusal::{Refusal, RefusalStatuses};
use backend::Backend;

pub use builder::{Builder, LimitsError, MAX_HELD, STORE_DEADLINE};

/// Limits put to use: what the middlewares of this crate are made of. A clone is the same limits.
///
/// `H` is a request's head in the framework's terms: [`http::request::Parts`] for tower and what
/// runs on it, `ServiceRequest` for actix-web.
///
/// ```
/// use tollgate::Rate;
/// use tollgate_http::{Key, Limit, Limits, Policy, RateLimitLayer, Rule};
///
/// let rule = Rule::TokenBucket(Rate::per_second(5).burst(10));
/// let policy = Policy::new(vec![Limit::new("per-tenant",
/// rule)?.with_key(Key::descriptor("tenant"))])?; let forgotten =
/// Limits::<http::request::Parts>::builder(policy.clone()).build(); assert_eq!(
///     forgotten.unwrap_err().to_string(),
///     "the policy goes by descriptor \"tenant\", and nothing tells it",
/// );
/// let limits = Limits::builder(policy)
///     .descriptor("tenant", |head: &http::request::Parts| {
///         head.extensions.get::<String>().cloned() // as a log-in put it there
///     })
///     .build()?;
/// let layer = RateLimitLayer::from(limits);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Limits<H: ?Sized = http::request::Parts>(Arc<Inner<H>>);

struct Inner<H: ?Sized> {
    backend: Backend,
    settings: Settings<H>,
    /// Requests that are held back, or may come to be.
    held: Arc<AtomicUsize>,
    /// By place in the policy, the limits for which a lacking key was told of.
    told: AtomicU64,
    /// The store did not answer the last time.
    is_failing: AtomicBool,
}

/// All that is no part of the policy.
pub(crate) struct Settings<H: ?Sized> {
    pub(crate) descriptors: Vec<(String, Says<H, Described>)>,
    /// Of the limit of that name, or of all.
    pub(crate) costs: Vec<(Option<String>, Says<H, u64>)>,
    pub(crate) skips: Option<Says<H, bool>>,
    pub(crate) peer: Option<Says<H, Option<Peer>>>,
    pub(crate) headers: Headers,
    pub(crate) statuses: RefusalStatuses,
    pub(crate) max_held: usize,
}

/// What the service says about a request.
pub(crate) type Says<H, T> = Arc<dyn Fn(&H) -> T + Send + Sync>;

/// A descriptor's value.
pub(crate) type Described = Option<Vec<u8>>;

/// What will have been said.
pub(crate) type Later = Pin<Box<dyn Future<Output = Box<Verdict>> + Send>>;

/// What is known of a request before its service is asked.
pub(crate) enum Ruling {
    /// No limit is asked about it.
    Skipped,
    /// The limits were.
    Decided(Box<Verdict>, Option<Held>),
    /// A store is being asked.
    Asking(Later, Option<Held>),
}

/// A place among the requests that may be held back at a time.
pub(crate) struct Held(Arc<AtomicUsize>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<H: Head + ?Sized> Limits<H> {
    /// How to put a policy to use.
    pub fn builder(policy: Policy) -> Builder<H> {
        Builder::new(policy)
    }

    /// The policy that holds.
    #[must_use]
    pub fn policy(&self) -> Arc<Policy> {
        self.0.backend.policy()
    }

    /// Holds requests to another policy from now on: whole or not at all, and with clients' tokens
    /// kept where the limit is the same. See [`Gate::reload`](tollgate_policy::Gate::reload).
    ///
    /// # Errors
    ///
    /// A descriptor or a limit that the policy goes by or the settings speak of and that is not
    /// there, and what the gate finds. Nothing was changed then.
    pub fn reload(&self, policy: Policy) -> Result<Reloaded, LimitsError> {
        self.0.settings.check(&policy)?;
        let reloaded = self.0.backend.reload(policy)?;
        self.0.told.store(0, Ordering::Relaxed);
        Ok(reloaded)
    }

    /// How often each limit gave each answer, by name: also those that only count, which is how one
    /// sees whom they would have refused. Nothing, where the buckets are in a store.
    #[must_use]
    pub fn statistics(&self) -> Vec<(String, Statistics)> {
        self.0.backend.statistics()
    }

    /// The same limits under other settings, with what is counted here afresh.
    pub(crate) fn with(&self, change: impl FnOnce(&mut Settings<H>)) -> Self {
        let mut settings = self.0.settings.clone();
        change(&mut settings);
        Self::of(self.0.backend.clone(), settings)
    }

    pub(crate) fn with_one_key(&self, key: &Key) -> Self {
        let backend = self.0.backend.with_one_key(key);
        Self::of(backend, self.0.settings.clone())
    }

    pub(crate) fn with_proxies(&self, proxies: &Proxies) -> Self {
        let backend = self.0.backend.with_proxies(proxies);
        Self::of(backend, self.0.settings.clone())
    }

    fn of(backend: Backend, settings: Settings<H>) -> Self {
        Self(Arc::new(Inner {
            backend,
            settings,
            held: Arc::new(AtomicUsize::new(0)),
            told: AtomicU64::new(0),
            is_failing: AtomicBool::new(false),
        }))
    }

    /// Asks the limits about a request.
    pub(crate) fn rule(&self, head: &H) -> Ruling {
        let settings = &self.0.settings;
        if settings.skips.as_ref().is_some_and(|skips| skips(head)) {
            return Ruling::Skipped;
        }
        let told = Told { head, settings };
        let policy = self.0.backend.policy();
        // Without a place nothing is held back: what would be is refused until it need not be.
        let held = if policy.may_hold() { self.hold() } else { None };
        let max_delay = held.as_ref().map_or(Duration::ZERO, |_| Duration::MAX);
        match &self.0.backend {
            Backend::Local(gate) => {
                let verdict = Box::new(gate.admit(&told, max_delay));
                self.note(&verdict);
                Ruling::Decided(verdict, held)
            }
            Backend::Shared(shared) => {
                let calls = policy.calls(&told);
                Ruling::Asking(shared.clone().ask(policy, calls, max_delay), held)
            }
        }
    }

    /// A place among those that may be held back.
    fn hold(&self) -> Option<Held> {
        let held = &self.0.held;
        if held.fetch_add(1, Ordering::Relaxed) < self.0.settings.max_held {
            return Some(Held(held.clone()));
        }
        held.fetch_sub(1, Ordering::Relaxed);
        None
    }

    /// Says of a verdict what its operator is to know, once.
    pub(crate) fn note(&self, verdict: &Verdict) {
        for place in verdict.lacking() {
            let bit = u32::try_from(*place)
                .ok()
                .and_then(|place| 1_u64.checked_shl(place));
            let bit = bit.unwrap_or(0);
            if self.0.told.fetch_or(bit, Ordering::Relaxed) & bit == 0
                && let Some(limit) = verdict.policy().limits().get(*place)
            {
                tracing::warn!(
                    limit = limit.name(),
                    key = %limit.key(),
                    missing_key = ?limit.missing_key(),
                    "a request lacks a part of the limit's key; this is not said again",
                );
            }
        }
        if !self.0.backend.is_shared() {
            return;
        }
        let failed = verdict.failed();
        if self.0.is_failing.swap(failed.is_some(), Ordering::Relaxed) == failed.is_some() {
            return;
        }
        match failed {
            Some(OnError::Deny) => tracing::warn!("the limits' store fails; requests are refused"),
            Some(_) => tracing::warn!("the limits' store fails; requests pass"),
            None => tracing::info!("the limits' store answers again"),
        }
    }

    /// Tells the limits with which status a request was answered; the verdict may have to wait for
    /// a store then.
    pub(crate) fn answered(
        &self,
        mut verdict: Box<Verdict>,
        status: u16,
    ) -> Result<Box<Verdict>, Later> {
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

    /// What the header of the answer says.
    pub(crate) fn fields(&self, verdict: &Verdict) -> Vec<Field> {
        fields::of(verdict, self.0.settings.headers)
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
