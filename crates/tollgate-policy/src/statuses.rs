//! Statuses of HTTP answers.

use std::fmt;
use std::str::FromStr;

/// The most statuses and classes that one limit names.
pub const MOST_STATUSES: usize = 32;

/// Some statuses of HTTP answers: single ones, and whole classes.
///
/// ```
/// use tollgate_policy::statuses::Statuses;
///
/// let fine = Statuses::of(["2xx", "304"])?;
/// assert!(fine.contains(204) && fine.contains(304));
/// assert!(!fine.contains(401));
/// assert!(Statuses::of(["20x"]).is_err());
/// # Ok::<(), tollgate_policy::statuses::StatusError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statuses(Vec<Span>);

/// From the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span(u16, u16);

impl Statuses {
    /// None.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Those: `200` to `599`, or a class such as `2xx`.
    ///
    /// # Errors
    ///
    /// What is neither, or more than 32.
    pub fn of<'t>(texts: impl IntoIterator<Item = &'t str>) -> Result<Self, StatusError> {
        let spans = texts.into_iter().map(str::parse);
        let spans: Vec<Span> = spans.collect::<Result<_, _>>()?;
        if spans.len() > MOST_STATUSES {
            let statuses = spans.len();
            return Err(StatusError::TooMany { statuses });
        }
        Ok(Self(spans))
    }

    /// Whether a status is one of them.
    #[must_use]
    pub fn contains(&self, status: u16) -> bool {
        let has = |Span(first, last): &Span| (*first..=*last).contains(&status);
        self.0.iter().any(has)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromStr for Span {
    type Err = StatusError;

    fn from_str(text: &str) -> Result<Self, StatusError> {
        let digits = |text: &str| {
            let all = text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<u16>().ok().filter(|_| all)
        };
        let (first, last) = match text.strip_suffix("xx").filter(|class| class.len() == 1) {
            Some(class) => {
                let first = digits(class).map(|class| class.saturating_mul(100));
                (first, first.map(|first| first.saturating_add(99)))
            }
            None => (digits(text), digits(text)),
        };
        match (first, last) {
            (Some(first @ 200..=599), Some(last)) => Ok(Self(first, last)),
            _ => Err(StatusError::Unreadable),
        }
    }
}

impl fmt::Display for Statuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Span(first, last)) in self.0.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            if first == last {
                write!(f, "{comma}{first}")?;
            } else {
                write!(f, "{comma}{}xx", first.checked_div(100).unwrap_or(0))?;
            }
        }
        Ok(())
    }
}

/// What are no statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StatusError {
    /// Neither a status nor a class.
    Unreadable,
    /// More than 32.
    TooMany {
        /// How many.
        statuses: usize,
    },
}

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable => f.write_str("a status is \"200\" to \"599\", or a class: \"2xx\""),
            Self::TooMany { statuses } => {
                write!(
                    f,
                    "{statuses} statuses; a limit names {MOST_STATUSES} at most"
                )
            }
        }
    }
}

impl std::error::Error for StatusError {}
