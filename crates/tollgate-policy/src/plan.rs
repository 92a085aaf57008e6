//! Limits for some of a limit's clients: plans, as customers buy them.

use std::fmt;

use crate::key::{Part, is_of_token};
use crate::rule::Rule;

/// The most plans of one limit.
pub const MOST_PLANS: usize = 63;
/// The longest name of a plan, in bytes.
pub const LONGEST_PLAN_NAME: usize = 64;

/// What other numbers some clients of a limit are held to.
///
/// ```
/// use tollgate::Rate;
/// use tollgate_policy::plan::{Plan, PlanBy, Plans};
/// use tollgate_policy::{Limit, Rule};
///
/// let rule = |tokens| Rule::TokenBucket(Rate::per_second(tokens).burst(2 * tokens));
/// let plans = Plans::new(
///     PlanBy::Descriptor("plan".into()),
///     vec![Plan::of("pro", rule(50)), Plan::unlimited("internal")],
/// );
/// let limit = Limit::new("per-key", rule(5))?.with_plans(plans?)?;
/// assert_eq!(limit.plans().iter().count(), 2);
///
/// let twice = vec![Plan::unlimited("pro"), Plan::unlimited("pro")];
/// assert!(Plans::new(PlanBy::Descriptor("plan".into()), twice).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plans {
    by: Option<PlanBy>,
    plans: Vec<Plan>,
}

/// What says of which plan a request is. One that says nothing, several things, or the name of no
/// plan, is held to the limit of those without one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanBy {
    /// A header, in a request from a trusted proxy.
    Header(String),
    /// The service itself, under that name.
    Descriptor(String),
}

impl PlanBy {
    /// The part of a request that says it.
    pub(crate) fn part(&self) -> Part {
        match self {
            Self::Header(name) => Part::Header(name.clone()),
            Self::Descriptor(name) => Part::Descriptor(name.clone()),
        }
    }
}

impl fmt::Display for PlanBy {
    /// As in `header:x-plan`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.part().fmt(f)
    }
}

/// One plan: a name, and what its clients are held to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    name: String,
    rule: Option<Rule>,
}

impl Plan {
    /// Held to that.
    #[must_use]
    pub fn of(name: &str, rule: Rule) -> Self {
        let (name, rule) = (name.to_owned(), Some(rule));
        Self { name, rule }
    }

    /// Held to nothing.
    #[must_use]
    pub fn unlimited(name: &str) -> Self {
        let (name, rule) = (name.to_owned(), None);
        Self { name, rule }
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What its clients are held to; `None` is nothing.
    #[must_use]
    pub fn rule(&self) -> Option<Rule> {
        self.rule
    }
}

impl Plans {
    /// Those plans.
    ///
    /// # Errors
    ///
    /// More than 63, two of one name, or a name that is none (1 to 64 letters, digits and
    /// punctuation of a token).
    pub fn new(by: PlanBy, plans: Vec<Plan>) -> Result<Self, PlanError> {
        if plans.len() > MOST_PLANS {
            return Err(PlanError::TooMany { plans: plans.len() });
        }
        for (at, plan) in plans.iter().enumerate() {
            let name = plan.name();
            if !(1..=LONGEST_PLAN_NAME).contains(&name.len()) || !name.bytes().all(is_of_token) {
                return Err(PlanError::Name);
            }
            if plans.iter().take(at).any(|other| other.name == plan.name) {
                let name = name.to_owned();
                return Err(PlanError::Twice { name });
            }
        }
        let by: Part = by
            .part()
            .to_string()
            .parse()
            .map_err(|_| PlanError::Chooser)?;
        let by = match by {
            Part::Header(name) => PlanBy::Header(name),
            Part::Descriptor(name) => PlanBy::Descriptor(name),
            Part::Ip | Part::Path | Part::Method | Part::Cookie(_) | Part::Query(_) => {
                return Err(PlanError::Chooser);
            }
        };
        let by = Some(by);
        Ok(Self { by, plans })
    }

    /// What says of which plan a request is; `None` if there are no plans.
    #[must_use]
    pub fn by(&self) -> Option<&PlanBy> {
        self.by.as_ref()
    }

    /// Each.
    pub fn iter(&self) -> impl Iterator<Item = &Plan> {
        self.plans.iter()
    }

    /// The plan at that place.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<&Plan> {
        self.plans.get(at)
    }

    /// The place of the plan of that name.
    pub(crate) fn named(&self, name: &[u8]) -> Option<usize> {
        let is = |plan: &Plan| plan.name.as_bytes() == name;
        self.plans.iter().position(is)
    }
}

/// What are no plans.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// More than 63.
    TooMany {
        /// How many.
        plans: usize,
    },
    /// A name that is none.
    Name,
    /// Two of one name.
    Twice {
        /// The name.
        name: String,
    },
    /// A header or descriptor of a name that none has.
    Chooser,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany { plans } => {
                write!(f, "{plans} plans; a limit has {MOST_PLANS} at most")
            }
            Self::Name => write!(
                f,
                "a plan's name is 1 to {LONGEST_PLAN_NAME} letters, digits and such as \"-\""
            ),
            Self::Twice { name } => write!(f, "two plans are called {name:?}"),
            Self::Chooser => {
                f.write_str("a plan is told by \"header:NAME\" or \"descriptor:NAME\"")
            }
        }
    }
}

impl std::error::Error for PlanError {}
