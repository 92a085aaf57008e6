//! How limits are put to use.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::request::Parts;
use tollgate::{BuildError, Clock, MonotonicClock, Store};
use tollgate_policy::gate::ReloadError;
use tollgate_policy::limit::LimitError;
use tollgate_policy::policy::PolicyError;
use tollgate_policy::proxies::Peer;
use tollgate_policy::{Gate, Policy};

use super::backend::{Backend, Local, Shared};
use super::{Limits, Settings};
use crate::fields::Headers;
use crate::head::Head;
use crate::refusal::RefusalStatuses;

/// Requests that are held back at a time at most, unless told otherwise.
pub const MAX_HELD: usize = 1_024;
/// How long a store may take to answer, unless told otherwise.
pub const STORE_DEADLINE: Duration = Duration::from_millis(20);

/// How a gate is built.
type Made = Box<dyn FnOnce(Policy) -> Result<Arc<dyn Local>, BuildError> + Send>;

/// How to put a policy to use.
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<H: ?Sized = Parts> {
    policy: Policy,
    settings: Settings<H>,
    gate: Made,
    store: Option<Arc<dyn Store>>,
    deadline: Duration,
    max_held: usize,
}

impl<H: Head + ?Sized> Builder<H> {
    pub(crate) fn new(policy: Policy) -> Self {
        Self {
            policy,
            settings: Settings {
                descriptors: Vec::new(),
                costs: Vec::new(),
                skips: None,
                peer: None,
                headers: Headers::new(),
                statuses: RefusalStatuses::default(),
            },
            max_held: MAX_HELD,
            gate: on(MonotonicClock::new()),
            store: None,
            deadline: STORE_DEADLINE,
        }
    }

    /// Tells of each request what keys and plans call `descriptor:NAME`: the tenant of a log-in,
    /// the plan of an API key. `None` and an empty value are a missing one.
    pub fn descriptor<V: Into<Vec<u8>>>(
        mut self,
        name: &str,
        says: impl Fn(&H) -> Option<V> + Send + Sync + 'static,
    ) -> Self {
        let says = move |head: &H| says(head).map(Into::into);
        let name = name.to_owned();
        self.settings.descriptors.push((name, Arc::new(says)));
        self
    }

    /// Tells how many tokens of each limit a request costs, at least 1; that goes before what the
    /// policy says.
    pub fn cost(mut self, says: impl Fn(&H) -> u64 + Send + Sync + 'static) -> Self {
        self.settings.costs.push((None, Arc::new(says)));
        self
    }

    /// The same for one limit, which goes before what is said for all.
    pub fn cost_of(
        mut self,
        limit: &str,
        says: impl Fn(&H) -> u64 + Send + Sync + 'static,
    ) -> Self {
        let limit = Some(limit.to_owned());
        self.settings.costs.push((limit, Arc::new(says)));
        self
    }

    /// Asks no limit about such requests: health checks, say, or a browser's preflights. Their
    /// answers are left as they are.
    pub fn skip(mut self, skips: impl Fn(&H) -> bool + Send + Sync + 'static) -> Self {
        self.settings.skips = Some(Arc::new(skips));
        self
    }

    /// Tells who is at the other end of the connection, where this crate does not find it: it looks
    /// for a [`Peer`] among the request's extensions, and, with the features of these names, for
    /// the
    /// `ConnectInfo<SocketAddr>` of axum and for tonic's connections without TLS.
    pub fn peer(mut self, says: impl Fn(&H) -> Option<Peer> + Send + Sync + 'static) -> Self {
        self.settings.peer = Some(Arc::new(says));
        self
    }

    /// What the header of an answer is to say.
    pub fn headers(mut self, headers: Headers) -> Self {
        self.settings.headers = headers;
        self
    }

    /// Answers with that status for want of a place for a new client; 429 by default.
    pub fn client_limit_status(mut self, status: StatusCode) -> Self {
        self.settings.statuses.client_limit = status;
        self
    }

    /// Answers with that status to a request that lacks a part of a key, where the limit refuses
    /// such; 400 by default.
    pub fn unidentified_status(mut self, status: StatusCode) -> Self {
        self.settings.statuses.unidentified = status;
        self
    }

    /// Holds back at most so many requests at a time, for the delays of leaky buckets; 1,024 by
    /// default. Further ones are refused, with the wait after which they need not be held back.
    pub fn max_held(mut self, requests: usize) -> Self {
        self.max_held = requests;
        self
    }

    /// Keeps buckets in this process by that clock: [`ManualClock`](tollgate::ManualClock) in
    /// tests. It does not hold requests back, which is the runtime's clock's.
    pub fn clock(self, clock: impl Clock + Clone + 'static) -> Self {
        let gate = on(clock);
        Self { gate, ..self }
    }

    /// Keeps buckets in a shared store.
    pub fn store(self, store: Arc<dyn Store>) -> Self {
        let store = Some(store);
        Self { store, ..self }
    }

    /// How long the store may take to answer, 20 ms by default: then it has failed, and each
    /// limit's [`on_error`](tollgate_policy::Limit::on_error) says what becomes of the request.
    pub fn store_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// The limits.
    ///
    /// # Errors
    ///
    /// A descriptor that the policy goes by and nothing tells; a cost told for a limit that there
    /// is not; a status that is no refusal; an idle time of 0, or no client.
    pub fn build(self) -> Result<Limits<H>, LimitsError> {
        self.settings.check(&self.policy)?;
        let statuses = self.settings.statuses;
        for status in [statuses.client_limit, statuses.unidentified] {
            if !status.is_client_error() && !status.is_server_error() {
                return Err(LimitsError::Status { status });
            }
        }
        let backend = match self.store {
            Some(store) => Backend::Shared(Shared::new(self.policy, store, self.deadline)),
            None => Backend::Local((self.gate)(self.policy).map_err(LimitsError::Build)?),
        };
        Ok(Limits::of(backend, self.settings, self.max_held))
    }
}

impl<H: ?Sized> Settings<H> {
    /// Whether everything is there that a policy goes by, or these speak of.
    pub(super) fn check(&self, policy: &Policy) -> Result<(), LimitsError> {
        let told: Vec<String> = self
            .descriptors
            .iter()
            .map(|(own, _)| own.clone())
            .collect();
        if let Some(name) = policy.descriptors().find(|name| !told.contains(name)) {
            return Err(LimitsError::Descriptor { name, told });
        }
        let is_there = |name: &String| policy.limits().iter().any(|limit| limit.name() == name);
        let mut named = self.costs.iter().filter_map(|(limit, _)| limit.as_ref());
        match named.find(|name| !is_there(name)) {
            Some(name) => Err(LimitsError::NoSuchLimit { name: name.clone() }),
            None => Ok(()),
        }
    }
}

/// How a gate is built on that clock.
fn on(clock: impl Clock + Clone + 'static) -> Made {
    Box::new(move |policy| Ok(Arc::new(Gate::new(policy, clock)?)))
}

impl<H: ?Sized> fmt::Debug for Builder<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

/// Why limits cannot be put to use.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitsError {
    /// A number that the library refuses.
    Build(BuildError),
    /// What is no limit.
    Limit(LimitError),
    /// What is no policy.
    Policy(PolicyError),
    /// A limit that another policy's clients cannot be brought into.
    Reload(ReloadError),
    /// A key or a plan goes by a descriptor that nothing tells.
    Descriptor {
        /// Its name.
        name: String,
        /// Those that are told.
        told: Vec<String>,
    },
    /// A cost is told for a limit that there is not.
    NoSuchLimit {
        /// Its name.
        name: String,
    },
    /// A status that is no refusal.
    Status {
        /// It.
        status: StatusCode,
    },
}

impl From<ReloadError> for LimitsError {
    fn from(error: ReloadError) -> Self {
        Self::Reload(error)
    }
}

impl fmt::Display for LimitsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Build(error) => error.fmt(f),
            Self::Limit(error) => error.fmt(f),
            Self::Policy(error) => error.fmt(f),
            Self::Reload(error) => error.fmt(f),
            Self::Descriptor { name, told } => {
                write!(
                    f,
                    "the policy goes by descriptor {name:?}, and nothing tells it"
                )?;
                match told.as_slice() {
                    [] => Ok(()),
                    told => write!(f, "; told are {}", told.join(", ")),
                }
            }
            Self::NoSuchLimit { name } => {
                write!(
                    f,
                    "a cost is told for limit {name:?}, and the policy has none of that name"
                )
            }
            Self::Status { status } => write!(
                f,
                "requests are to be refused with status {}; one from 400 to 599 refuses",
                status.as_u16()
            ),
        }
    }
}

impl std::error::Error for LimitsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Build(error) => Some(error),
            Self::Limit(error) => Some(error),
            Self::Policy(error) => Some(error),
            Self::Reload(error) => Some(error),
            Self::Descriptor { .. } | Self::NoSuchLimit { .. } | Self::Status { .. } => None,
        }
    }
}
