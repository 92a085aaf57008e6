//! One limit: for which requests it holds, whose bucket they take from, and how much.

use std::fmt;
use std::mem::discriminant;
use std::time::Duration;

use tollgate::{AnyLimit, BuildError, Clock, KeyedLimiter, KeyedLimiterBuilder};

use crate::key::{Key, known_method};
use crate::path::Path;
use crate::pattern::Pattern;
use crate::plan::{Plan, Plans};
use crate::rule::Rule;
use crate::statuses::Statuses;

/// The longest name of a limit, in bytes.
pub const LONGEST_LIMIT_NAME: usize = 64;
/// The most patterns of paths that one limit goes by.
pub const MOST_PATTERNS: usize = 64;
/// The clients that a limit tracks at most, unless told otherwise.
pub const MAX_CLIENTS: usize = 1_000_000;
/// More than any memory holds.
pub const MOST_CLIENTS: u64 = (1 << 40) - 1;
/// How long a request is held back at most for a leaky bucket, unless told otherwise.
pub const MAX_DELAY: Duration = Duration::from_secs(1);

/// What becomes of a request that lacks a part of a limit's key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingKey {
    /// All that lack the same parts, and are alike in the others, share a bucket.
    #[default]
    Share,
    /// It is refused, and takes nothing.
    Refuse,
    /// The limit does not hold for it. Whoever can leave the part out is not limited.
    Pass,
}

/// When a limit forgets a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Idle {
    /// When nobody can tell any more: after the time to fill.
    #[default]
    Full,
    /// So long after its last attempt.
    After(Duration),
    /// Never.
    Never,
}

/// What a limit does for newcomers when it tracks as many clients as it may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenFull {
    /// Refuses them, until somebody goes idle.
    #[default]
    Refuse,
    /// Forgets whoever has all its tokens, which nobody can tell; refuses them if that is nobody.
    /// Clients are forgotten as soon as that then, whatever the idle time.
    ForgetSettled,
    /// Gives them one bucket together.
    Share,
}

/// How many tokens a request takes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cost {
    /// Always so many, at least 1.
    Fixed(u64),
    /// As many as a header says, in a request from a trusted proxy; 1 if it says nothing or
    /// nothing readable, or 0. More than fits 64 bits is the most that does.
    Header(String),
}

impl Default for Cost {
    fn default() -> Self {
        Self::Fixed(1)
    }
}

/// What becomes of a request when a shared store fails to answer for the limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnError {
    /// It passes: the limit holds nobody back while the store is away.
    #[default]
    Allow,
    /// It is refused (503 in HTTP).
    Deny,
}

/// Some requests, by path and method.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    paths: Vec<Pattern>,
    methods: Vec<String>,
}

impl Requests {
    /// All of them.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// Those whose path looks like one of the patterns.
    ///
    /// # Errors
    ///
    /// More than 64.
    pub fn paths(mut self, paths: impl IntoIterator<Item = Pattern>) -> Result<Self, LimitError> {
        self.paths.extend(paths);
        if self.paths.len() > MOST_PATTERNS {
            return Err(LimitError::TooManyPatterns {
                patterns: self.paths.len(),
            });
        }
        Ok(self)
    }

    /// Those with one of the methods. `GET` is `HEAD` too, which services answer in the same way.
    #[must_use]
    pub fn methods<'m>(mut self, methods: impl IntoIterator<Item = &'m str>) -> Self {
        let upper = methods.into_iter().map(str::to_ascii_uppercase);
        self.methods.extend(upper);
        self
    }

    /// Whether a request is one of them, in any reading of its path; one without a path (`*`) is,
    /// if all paths are.
    #[must_use]
    pub fn have(&self, path: Option<&Path<'_>>, method: &[u8]) -> bool {
        let matches = |own: &Pattern| path.map_or(own.is_everything(), |path| own.matches(path));
        (self.paths.is_empty() || self.paths.iter().any(matches)) && self.has_method(method)
    }

    /// Whether it surely is, in every reading: a request is not left out for its spelling.
    #[must_use]
    pub fn surely_have(&self, path: Option<&Path<'_>>, method: &[u8]) -> bool {
        let surely = |path: &Path<'_>| self.paths.iter().any(|own| own.matches_surely(path));
        (self.paths.is_empty() || path.is_some_and(surely)) && self.has_method(method)
    }

    fn has_method(&self, method: &[u8]) -> bool {
        let is = |own: &String| {
            let same = known_method(method).map_or(method, str::as_bytes);
            own.as_bytes().eq_ignore_ascii_case(method) || own.as_bytes() == same
        };
        self.methods.is_empty() || self.methods.iter().any(is)
    }

    /// For paths in small ASCII letters.
    pub(crate) fn in_small_letters(&mut self) {
        let paths = std::mem::take(&mut self.paths);
        self.paths = paths.into_iter().map(Pattern::in_small_letters).collect();
    }
}

impl fmt::Display for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.methods.is_empty() && self.paths.is_empty() {
            return f.write_str("every request");
        }
        f.write_str(&self.methods.join(", "))?;
        for (at, path) in self.paths.iter().enumerate() {
            let before = match (at, self.methods.is_empty()) {
                (0, true) => "",
                (0, false) => " ",
                _ => ", ",
            };
            write!(f, "{before}{path}")?;
        }
        Ok(())
    }
}

/// One limit of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    pub(crate) name: String,
    pub(crate) rule: Rule,
    pub(crate) requests: Requests,
    pub(crate) except: Option<Requests>,
    pub(crate) key: Key,
    pub(crate) max_clients: usize,
    pub(crate) idle: Idle,
    pub(crate) when_full: WhenFull,
    pub(crate) missing_key: MissingKey,
    pub(crate) cost: Cost,
    pub(crate) is_shadow: bool,
    pub(crate) max_delay: Duration,
    pub(crate) plans: Plans,
    pub(crate) refund_status: Statuses,
    pub(crate) on_error: OnError,
}

/// Steps that build a limit, and what it then says of itself.
macro_rules! settings {
    ($($(#[$doc:meta])* $set:ident, $get:ident: $type:ty;)+) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $set(self, $get: $type) -> Self {
            Self { $get, ..self }
        }
    )+};
}

impl Limit {
    /// A limit for every request, one bucket a client address, for at most 1,000,000 clients.
    ///
    /// # Errors
    ///
    /// A name that is none (1 to 64 letters, digits, `_`, `.` or `-`), or numbers that the library
    /// refuses.
    ///
    /// ```
    /// use tollgate::Rate;
    /// use tollgate_policy::{Key, Limit, Rule};
    ///
    /// let rule = Rule::TokenBucket(Rate::per_second(5).burst(10));
    /// let limit = Limit::new("per-key", rule)?.with_key(Key::header("x-api-key"));
    /// assert_eq!(limit.name(), "per-key");
    /// assert!(Limit::new("per key", rule).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(name: &str, rule: impl Into<Rule>) -> Result<Self, LimitError> {
        let rule = rule.into();
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        if !(1..=LONGEST_LIMIT_NAME).contains(&name.len()) || !name.bytes().all(is_of_name) {
            return Err(LimitError::Name);
        }
        rule.check().map_err(LimitError::Number)?;
        Ok(Self {
            name: name.to_owned(),
            rule,
            requests: Requests::all(),
            except: None,
            key: Key::ip(),
            max_clients: MAX_CLIENTS,
            idle: Idle::default(),
            when_full: WhenFull::default(),
            missing_key: MissingKey::default(),
            cost: Cost::default(),
            is_shadow: false,
            max_delay: MAX_DELAY,
            plans: Plans::default(),
            refund_status: Statuses::none(),
            on_error: OnError::default(),
        })
    }

    settings! {
        /// Holds for those requests alone.
        for_requests, requests: Requests;
        /// Tells its clients apart so.
        with_key, key: Key;
        /// Tracks at most so many clients at a time.
        with_max_clients, max_clients: usize;
        /// Forgets a client then.
        with_idle, idle: Idle;
        /// Does that for newcomers when it is full.
        with_when_full, when_full: WhenFull;
        /// Does that with requests that lack a part of the key.
        with_missing_key, missing_key: MissingKey;
        /// Only counts what it would have refused, if it is set.
        with_shadow, is_shadow: bool;
        /// Holds a request back for at most so long, for the delay that a leaky bucket gives it;
        /// one that would have to wait longer is refused.
        with_max_delay, max_delay: Duration;
        /// Gives the tokens of a request back that is answered with such a status: what it does not
        /// count. Until then they are taken.
        with_refund_status, refund_status: Statuses;
        /// Does that when a shared store fails.
        with_on_error, on_error: OnError;
    }

    /// Holds clients of those plans to other numbers.
    ///
    /// # Errors
    ///
    /// A plan of another algorithm than the limit's, or numbers that the library refuses.
    pub fn with_plans(self, plans: Plans) -> Result<Self, LimitError> {
        for rule in plans.iter().filter_map(Plan::rule) {
            if discriminant(&rule) != discriminant(&self.rule) {
                return Err(LimitError::PlanOfOtherAlgorithm);
            }
            rule.check().map_err(LimitError::Number)?;
        }
        Ok(Self { plans, ..self })
    }

    /// Takes so much for a request.
    #[must_use]
    pub fn with_cost(self, cost: Cost) -> Self {
        let cost = match cost {
            Cost::Header(name) => Cost::Header(name.to_ascii_lowercase()),
            fixed @ Cost::Fixed(_) => fixed,
        };
        Self { cost, ..self }
    }

    /// Does not hold for those, which otherwise it would. A path counts as one of them only if it
    /// is in every reading.
    #[must_use]
    pub fn except(self, requests: Requests) -> Self {
        let except = Some(requests);
        Self { except, ..self }
    }

    /// What it is called: 1 to 64 letters, digits, `_`, `.` or `-`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it admits.
    #[must_use]
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// For which requests it holds, but for [those left out](Self::left_out).
    #[must_use]
    pub fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Those that it leaves out.
    #[must_use]
    pub fn left_out(&self) -> Option<&Requests> {
        self.except.as_ref()
    }

    /// What tells its clients apart.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The most clients that it tracks at a time: one, if its key tells nobody apart.
    #[must_use]
    pub fn max_clients(&self) -> usize {
        if self.key.parts().is_empty() {
            1
        } else {
            self.max_clients
        }
    }

    /// When it forgets a client.
    #[must_use]
    pub fn idle(&self) -> Idle {
        self.idle
    }

    /// What it does for newcomers when it is full.
    #[must_use]
    pub fn when_full(&self) -> WhenFull {
        self.when_full
    }

    /// What it does with requests that lack a part of the key.
    #[must_use]
    pub fn missing_key(&self) -> MissingKey {
        self.missing_key
    }

    /// How much it takes for a request.
    #[must_use]
    pub fn cost(&self) -> &Cost {
        &self.cost
    }

    /// Whether it only counts what it would have refused.
    #[must_use]
    pub fn is_shadow(&self) -> bool {
        self.is_shadow
    }

    /// How long a request is to be held back at most.
    #[must_use]
    pub fn max_delay(&self) -> Duration {
        self.max_delay
    }

    /// The plans of some of its clients.
    #[must_use]
    pub fn plans(&self) -> &Plans {
        &self.plans
    }

    /// What clients of the plan at that place are held to, or those without one; `None` is nothing.
    #[must_use]
    pub fn rule_of(&self, plan: Option<usize>) -> Option<Rule> {
        match plan.and_then(|plan| self.plans.get(plan)) {
            Some(plan) => plan.rule(),
            None => Some(self.rule),
        }
    }

    /// With which statuses of an answer a request gets its tokens back.
    #[must_use]
    pub fn refund_status(&self) -> &Statuses {
        &self.refund_status
    }

    /// What it does when a shared store fails.
    #[must_use]
    pub fn on_error(&self) -> OnError {
        self.on_error
    }

    /// The same with other numbers, of the same algorithm.
    pub(crate) fn with_rule(self, rule: Rule) -> Self {
        Self { rule, ..self }
    }

    /// Whether it asks for a request's path to know whether it holds for it.
    pub(crate) fn goes_by_path(&self) -> bool {
        let left_out = self.except.as_ref();
        !self.requests.paths.is_empty() || left_out.is_some_and(|except| !except.paths.is_empty())
    }

    /// Whether it holds for a request with that path and method.
    #[must_use]
    pub fn holds_for(&self, path: Option<&Path<'_>>, method: &[u8]) -> bool {
        let left_out = self.except.as_ref();
        self.requests.have(path, method)
            && !left_out.is_some_and(|except| except.surely_have(path, method))
    }

    /// The time after which a client of any plan that did nothing is as good as new.
    #[must_use]
    pub fn time_to_fill(&self) -> Duration {
        let of_plans = self.plans.iter().filter_map(Plan::rule);
        let fills = of_plans.map(Rule::time_to_fill);
        fills.fold(self.rule.time_to_fill(), Duration::max)
    }

    /// The most tokens that one client without a plan can get in any stretch of so much time: see
    /// [`Rule::most_within`]. With an idle time below the time to fill, it gets a full bucket more
    /// each time that it stays away so long.
    #[must_use]
    pub fn most_within(&self, time: Duration) -> u64 {
        let most = self.rule.most_within(time);
        match (self.idle, self.when_full) {
            (Idle::After(idle), WhenFull::Refuse | WhenFull::Share)
                if idle < self.time_to_fill() && !time.is_zero() =>
            {
                let fresh = time.as_nanos().div_ceil(idle.as_nanos().max(1));
                let more = fresh
                    .saturating_sub(1)
                    .saturating_mul(self.rule.burst().into());
                most.saturating_add(u64::try_from(more).unwrap_or(u64::MAX))
            }
            _ => most,
        }
    }

    /// The limiter that keeps its buckets in this process.
    ///
    /// # Errors
    ///
    /// No client, or an idle time of 0.
    pub fn limiter<C: Clock>(&self, clock: C) -> Result<KeyedLimiter<AnyLimit, C>, BuildError> {
        let plans = self.plans.iter().filter_map(Plan::rule);
        self.builder(clock, plans).build()
    }

    /// The same, to be built, with those plans.
    pub(crate) fn builder<C: Clock>(
        &self,
        clock: C,
        plans: impl IntoIterator<Item = Rule>,
    ) -> KeyedLimiterBuilder<AnyLimit, C> {
        let builder = KeyedLimiter::builder(self.rule.limit(), self.max_clients());
        let builder = match self.idle {
            Idle::Full => builder,
            Idle::After(idle) => builder.idle(idle),
            Idle::Never => builder.never_forget(),
        };
        let builder = match self.when_full {
            WhenFull::Refuse => builder,
            WhenFull::ForgetSettled => builder.forget_settled(),
            WhenFull::Share => builder.share_overflow(),
        };
        let plans = plans.into_iter();
        let builder = plans.fold(builder, |builder, rule| builder.plan(rule.limit()));
        builder.clock(clock)
    }
}

/// What is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitError {
    /// A name that is none.
    Name,
    /// More than 64 patterns of paths.
    TooManyPatterns {
        /// How many.
        patterns: usize,
    },
    /// A number that the library refuses.
    Number(BuildError),
    /// A plan of another algorithm.
    PlanOfOtherAlgorithm,
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => {
                f.write_str("a limit's name is 1 to 64 letters, digits, \"_\", \".\" or \"-\"")
            }
            Self::TooManyPatterns { patterns } => {
                write!(f, "{patterns} paths; a limit has {MOST_PATTERNS} at most")
            }
            Self::Number(error) => error.fmt(f),
            Self::PlanOfOtherAlgorithm => f.write_str("a plan has its limit's algorithm"),
        }
    }
}

impl std::error::Error for LimitError {}
