//! Another limit for a limiter that is in use.

use core::fmt;

use crate::BuildError;

/// What happens to the tokens of known clients when a limiter is given another limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tokens {
    /// A client keeps the tokens it has, up to the new burst. A fraction of a token that the new
    /// rate cannot count exactly rounds down. Of a window, what was used stays used.
    #[default]
    Kept,
    /// A bucket that was half full is half full, rounded down. Windows have no such thing: they
    /// refuse it.
    Proportional,
    /// Every client starts afresh.
    Reset,
}

/// Why a limiter was not given another limit: nothing was changed.
///
/// ```
/// use tollgate::{ChangeError, KeyedLimiter, Rate, Tokens};
///
/// let limiter = KeyedLimiter::new(Rate::per_second(5).burst(5), 100)?;
/// let error = limiter.set_quota(Rate::per_second(5).burst(0), Tokens::Kept).unwrap_err();
/// assert_eq!(error.to_string(), "burst is 0; the least is 1 token");
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeError {
    /// A number of the new limit is out of bounds, or the idle time would forget debts under it.
    Invalid(BuildError),
    /// As many earlier limits as are remembered still matter to some client.
    HistoryFull {
        /// How many are remembered.
        most: usize,
    },
    /// Another algorithm, a token bucket where there was a leaky one, or windows aligned where they
    /// were not: what a client has done cannot be told in the other's terms.
    OtherAlgorithm,
    /// The new quota needs levels of 128 bits, and the limiter was built with 64.
    NeedsMoreBits,
    /// Windows have no part of a bucket to keep.
    NotProportional,
    /// A plan that the limiter was not built with.
    NoSuchPlan,
}

impl From<BuildError> for ChangeError {
    fn from(error: BuildError) -> Self {
        Self::Invalid(error)
    }
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(error) => error.fmt(f),
            Self::HistoryFull { most } => write!(
                f,
                "clients may still be under {most} earlier limits; call settle to bring them over"
            ),
            Self::OtherAlgorithm => f.write_str("another algorithm needs another limiter"),
            Self::NeedsMoreBits => {
                f.write_str("the quota needs 128 bits; the limiter was built for one that needs 64")
            }
            Self::NotProportional => {
                f.write_str("a window has no proportional part; keep its count or reset it")
            }
            Self::NoSuchPlan => f.write_str("the limiter was built without that plan"),
        }
    }
}

impl core::error::Error for ChangeError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Invalid(error) => Some(error),
            Self::HistoryFull { .. }
            | Self::OtherAlgorithm
            | Self::NeedsMoreBits
            | Self::NotProportional
            | Self::NoSuchPlan => None,
        }
    }
}
