//! All limits of a service, and how its clients are told.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashSet};
use std::fmt;

use smallvec::SmallVec;

use crate::address::{Network, Prefixes};
use crate::key::{Client, Key, Part, Value};
use crate::limit::{Cost, Limit, MissingKey};
use crate::path::Path;
use crate::plan::{PlanBy, Plans};
use crate::proxies::{Origin, Proxies};
use crate::request::Request;
use crate::rule::Rule;

/// The most limits of a policy: all of them may be asked at once.
pub const MOST_LIMITS: usize = 64;
/// The most different parts that all keys and plans of a policy go by. A request is looked through
/// once for each.
pub const MOST_INPUTS: usize = 64;

/// Some limits, and how clients are told.
///
/// ```
/// use tollgate::Rate;
/// use tollgate_policy::{Limit, Policy, Rule};
///
/// let rule = Rule::TokenBucket(Rate::per_second(5).burst(10));
/// let policy = Policy::new(vec![Limit::new("per-address", rule)?])?;
/// let twice = vec![Limit::new("a", rule)?, Limit::new("a", rule)?];
/// assert_eq!(Policy::new(twice).unwrap_err().to_string(), "two limits are called \"a\"");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    limits: Vec<Limit>,
    proxies: Proxies,
    prefixes: Prefixes,
    ignores_case: bool,
}

impl Policy {
    /// Those limits, all of which hold at the same time. No proxies are trusted.
    ///
    /// # Errors
    ///
    /// More than 64, two of one name, or keys and plans of more than 64 different parts.
    pub fn new(limits: Vec<Limit>) -> Result<Self, PolicyError> {
        if limits.len() > MOST_LIMITS {
            let limits = limits.len();
            return Err(PolicyError::TooManyLimits { limits });
        }
        let mut names = HashSet::new();
        if let Some(twice) = limits.iter().find(|limit| !names.insert(limit.name())) {
            let name = twice.name().to_owned();
            return Err(PolicyError::Twice { name });
        }
        let inputs = inputs(&limits).collect::<HashSet<Part>>().len();
        if inputs > MOST_INPUTS {
            return Err(PolicyError::TooManyInputs { inputs });
        }
        Ok(Self {
            limits,
            ..Self::default()
        })
    }

    /// Believes those proxies.
    #[must_use]
    pub fn with_proxies(self, proxies: Proxies) -> Self {
        Self { proxies, ..self }
    }

    /// Tells clients apart by so much of their addresses.
    #[must_use]
    pub fn with_prefixes(self, prefixes: Prefixes) -> Self {
        Self { prefixes, ..self }
    }

    /// Takes ASCII letters of paths and patterns as small ones.
    #[must_use]
    pub fn ignoring_case(mut self) -> Self {
        self.ignores_case = true;
        for limit in &mut self.limits {
            limit.requests.in_small_letters();
            if let Some(except) = &mut limit.except {
                except.in_small_letters();
            }
        }
        self
    }

    /// Its limits.
    #[must_use]
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// Whom it believes about where requests come from.
    #[must_use]
    pub fn proxies(&self) -> &Proxies {
        &self.proxies
    }

    /// By how much of their addresses it tells clients apart.
    #[must_use]
    pub fn prefixes(&self) -> Prefixes {
        self.prefixes
    }

    /// Whether ASCII letters of paths are taken as small ones.
    #[must_use]
    pub fn ignores_case(&self) -> bool {
        self.ignores_case
    }

    /// The names under which [`Request::descriptor`] is asked for values.
    pub fn descriptors(&self) -> impl Iterator<Item = String> {
        let names = inputs(&self.limits).filter_map(|part| match part {
            Part::Descriptor(name) => Some(name),
            Part::Ip | Part::Path | Part::Method => None,
            Part::Header(_) | Part::Cookie(_) | Part::Query(_) => None,
        });
        let names: BTreeSet<String> = names.collect();
        names.into_iter()
    }

    /// Whether any of the limits that are asked may have a request held back.
    #[must_use]
    pub fn may_hold(&self, calls: &[Call]) -> bool {
        let limits = calls.iter().filter_map(|call| self.limits.get(call.limit));
        let mut rules = limits.map(Limit::rule);
        rules.any(|rule| matches!(rule, Rule::LeakyBucket(_)))
    }

    /// The same policy with one key for all its limits.
    #[must_use]
    pub fn with_one_key(mut self, key: &Key) -> Self {
        for limit in &mut self.limits {
            limit.key = key.clone();
        }
        self
    }

    /// What a request asks of each limit that holds for it, in the order of the limits.
    ///
    /// ```
    /// use tollgate::Rate;
    /// use tollgate_policy::{Answer, Key, Limit, MissingKey, Policy, Rule};
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
    /// let rule = Rule::TokenBucket(Rate::per_second(5).burst(10));
    /// let limit = Limit::new("per-key", rule)?
    ///     .with_key(Key::header("x-api-key"))
    ///     .with_missing_key(MissingKey::Refuse);
    /// let policy = Policy::new(vec![limit])?;
    /// let calls = policy.calls(&Get); // without that header
    /// assert_eq!(calls[0].answer, Answer::Unidentified);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn calls<R: Request + ?Sized>(&self, request: &R) -> Vec<Call> {
        self.few_calls(request).into_vec()
    }

    /// The same, without an allocation for one call.
    pub(crate) fn few_calls<R: Request + ?Sized>(&self, request: &R) -> SmallVec<[Call; 1]> {
        let mut facts = Facts::new(self, request);
        let mut calls = SmallVec::new();
        for (at, limit) in self.limits.iter().enumerate() {
            // Read only where somebody goes by it.
            let path = if limit.goes_by_path() {
                facts.path()
            } else {
                None
            };
            if limit.holds_for(path, request.method()) {
                let (answer, lacks_key) = facts.answer(limit);
                calls.push(Call {
                    limit: at,
                    answer,
                    lacks_key,
                });
            }
        }
        calls
    }

    /// What a request has of each part of a limit's key: for people, not for telling clients apart.
    pub fn seen<'l, R: Request + ?Sized>(
        &self,
        limit: &'l Limit,
        request: &R,
    ) -> Vec<(&'l Part, Seen)> {
        let facts = Facts::new(self, request);
        let text = |bytes: &[u8]| Seen::Is(String::from_utf8_lossy(bytes).into_owned());
        let seen = |part: &Part| match (part, facts.read(part)) {
            (_, Value::Absent) => Seen::Missing,
            (_, Value::Ambiguous) => Seen::Ambiguous,
            // Its bytes are for no eyes.
            (Part::Ip, Value::Is(_)) => match self.whose(request) {
                Some(Whose::Network(network)) => Seen::Is(network.to_string()),
                Some(Whose::Name(name)) => text(name),
                None => Seen::Missing,
            },
            (_, Value::Is(bytes)) => text(&bytes),
        };
        let parts = limit.key().parts().iter();
        parts.map(|part| (part, seen(part))).collect()
    }

    /// Whose request it is, as far as the key's part `ip` tells.
    fn whose<'r, R: Request + ?Sized>(&self, request: &'r R) -> Option<Whose<'r>> {
        let Some(client) = request.client() else {
            let address = self.origin(request).address?;
            return Some(Whose::Network(self.prefixes.network(address)));
        };
        let text = std::str::from_utf8(client).ok();
        Some(match text.and_then(|text| text.parse().ok()) {
            Some(address) => Whose::Network(self.prefixes.network(address)),
            None => Whose::Name(client),
        })
    }

    /// Where a request comes from.
    pub fn origin<R: Request + ?Sized>(&self, request: &R) -> Origin {
        let mut held: SmallVec<[Vec<u8>; 2]> = SmallVec::new();
        if self.proxies.trusts(request.peer()) {
            let name = self.proxies.header().name();
            request.header(name, &mut |line| held.push(line.to_vec()));
        }
        let lines: SmallVec<[&[u8]; 2]> = held.iter().map(Vec::as_slice).collect();
        self.proxies.origin(request.peer(), &lines)
    }
}

/// All that the keys and plans of some limits are made of.
fn inputs(limits: &[Limit]) -> impl Iterator<Item = Part> {
    limits.iter().flat_map(|limit| {
        let plan = limit.plans().by().map(PlanBy::part);
        limit.key().parts().iter().cloned().chain(plan)
    })
}

/// What a request asks of one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// Which limit, by its place in [`Policy::limits`].
    pub limit: usize,
    /// What it asks.
    pub answer: Answer,
    /// Whether the request lacks a part of the key, or says different things for one.
    pub lacks_key: bool,
}

impl Call {
    /// Of the limit at that place.
    #[must_use]
    pub fn new(limit: usize, answer: Answer) -> Self {
        let lacks_key = false;
        Self {
            limit,
            answer,
            lacks_key,
        }
    }
}

/// What a request asks of a limit that holds for it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// Tokens of a bucket.
    Takes {
        /// Whose.
        client: Client,
        /// How many, at least 1.
        cost: u64,
        /// Of which plan the client is, by its place among the limit's; `None` is that of clients
        /// without one.
        plan: Option<usize>,
    },
    /// Nothing, since it lacks a part of the key: it is to be refused, but by a limit that only
    /// counts.
    Unidentified,
    /// Nothing, since it lacks a part of the key: it passes this limit by.
    Passes,
}

/// What a request has of a part of a key, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Seen {
    /// A value; what is no UTF-8 is replaced.
    Is(String),
    /// None.
    Missing,
    /// Several, or one that cannot be read.
    Ambiguous,
}

/// Whose request it is.
enum Whose<'r> {
    Network(Network),
    /// A name that is no address, as some logs have.
    Name(&'r [u8]),
}

/// A request, looked at once for each part that some key needs.
struct Facts<'a, R: ?Sized> {
    policy: &'a Policy,
    request: &'a R,
    /// Once somebody asked for it.
    path: OnceCell<Option<Path<'a>>>,
    /// What was asked for already.
    values: SmallVec<[(&'a Part, Value); 1]>,
}

impl<'a, R: Request + ?Sized> Facts<'a, R> {
    fn new(policy: &'a Policy, request: &'a R) -> Self {
        Self {
            policy,
            request,
            path: OnceCell::new(),
            values: SmallVec::new(),
        }
    }

    fn path(&self) -> Option<&Path<'a>> {
        let read = || Path::new(self.request.target(), self.policy.ignores_case);
        self.path.get_or_init(read).as_ref()
    }

    /// What it asks of a limit, and whether it lacks a part of the key.
    fn answer(&mut self, limit: &'a Limit) -> (Answer, bool) {
        let values: SmallVec<[Value; 1]> = limit
            .key()
            .parts()
            .iter()
            .map(|part| self.value(part))
            .collect();
        let is_ambiguous = values.contains(&Value::Ambiguous);
        let takes = || Answer::Takes {
            client: Client::new(&values),
            cost: self.cost(limit),
            plan: self.plan(limit.plans()),
        };
        if !is_ambiguous && !values.contains(&Value::Absent) {
            return (takes(), false);
        }
        let answer = match limit.missing_key() {
            MissingKey::Pass if !is_ambiguous => Answer::Passes,
            MissingKey::Share | MissingKey::Pass => takes(),
            MissingKey::Refuse => Answer::Unidentified,
        };
        (answer, true)
    }

    fn value(&mut self, part: &'a Part) -> Value {
        let seen = self.values.iter().find(|(own, _)| *own == part);
        if let Some((_, value)) = seen {
            return value.clone();
        }
        let value = self.read(part);
        self.values.push((part, value.clone()));
        value
    }

    fn read(&self, part: &Part) -> Value {
        match part {
            Part::Ip => match self.policy.whose(self.request) {
                Some(Whose::Network(network)) => Value::of_network(network),
                Some(Whose::Name(name)) => Value::of_name(name),
                None => Value::Absent,
            },
            Part::Path => Value::of_path(self.path()),
            Part::Method => Value::of_method(self.request.method()),
            Part::Header(name) => {
                let mut value = Value::Absent;
                self.request
                    .header(name, &mut |line| value.add_header(name, line));
                value
            }
            Part::Cookie(name) => {
                let mut value = Value::Absent;
                self.request
                    .header("cookie", &mut |line| value.add_cookies(name, line));
                value
            }
            Part::Query(name) => Value::of_query(name, self.request.target()),
            Part::Descriptor(name) => match self.request.descriptor(name) {
                Some(value) => Value::Is((&*value).into()),
                None => Value::Absent,
            },
        }
    }

    /// Of which plan its client is. A header says it only from a proxy that is trusted.
    fn plan(&self, plans: &Plans) -> Option<usize> {
        let by = plans.by()?;
        let is_believed = match by {
            PlanBy::Header(_) => self.policy.proxies.trusts(self.request.peer()),
            PlanBy::Descriptor(_) => true,
        };
        match self.read(&by.part()) {
            Value::Is(name) if is_believed => plans.named(&name),
            Value::Is(_) | Value::Absent | Value::Ambiguous => None,
        }
    }

    fn cost(&self, limit: &Limit) -> u64 {
        if let Some(cost) = self.request.cost(limit.name()) {
            return cost.max(1);
        }
        let name = match limit.cost() {
            Cost::Fixed(tokens) => return (*tokens).max(1),
            Cost::Header(name) => name,
        };
        if !self.policy.proxies.trusts(self.request.peer()) {
            return 1;
        }
        // The largest, if there are several.
        let mut most = 1;
        self.request.header(name, &mut |line| {
            let line = line.trim_ascii();
            if !line.is_empty() && line.iter().all(u8::is_ascii_digit) {
                let digits = std::str::from_utf8(line).unwrap_or_default();
                most = most.max(digits.parse().unwrap_or(u64::MAX));
            }
        });
        most
    }
}

/// What is no policy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyError {
    /// More than 64 limits.
    TooManyLimits {
        /// How many.
        limits: usize,
    },
    /// Two limits of one name.
    Twice {
        /// The name.
        name: String,
    },
    /// Keys and plans of more than 64 different parts.
    TooManyInputs {
        /// How many.
        inputs: usize,
    },
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyLimits { limits } => {
                write!(f, "{limits} limits; a policy has {MOST_LIMITS} at most")
            }
            Self::Twice { name } => write!(f, "two limits are called {name:?}"),
            Self::TooManyInputs { inputs } => write!(
                f,
                "keys and plans go by {inputs} different parts; the most are {MOST_INPUTS}"
            ),
        }
    }
}

impl std::error::Error for PolicyError {}
