//! How many tokens a period earns, as an exact fraction.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use crate::Quota;

/// Tokens per period, kept as the exact fraction it was given as.
///
/// A `Rate` is a plain pair of numbers: making one never fails. Its bounds are checked once, where
/// a limiter is built, with an error that names the number.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, Rate};
///
/// let rate: Rate = "10/3s".parse()?;
/// assert_eq!(rate, Rate::new(10, Duration::from_secs(3)));
/// assert_eq!(rate.to_string(), "10/3s");
/// // "2 per second" is two a second, not one every two seconds; 0 is refused, not "unlimited".
/// assert_eq!("2/s".parse(), Ok(Rate::per_second(2)));
/// assert!(Limiter::new(Rate::per_second(0).burst(1)).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Two rates are equal when they were written alike: `60/min` and `1/s` limit alike, but are not
/// `==`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    tokens: u64,
    period: Duration,
}

impl Rate {
    /// `tokens` every second.
    #[must_use]
    pub const fn per_second(tokens: u64) -> Self {
        Self::new(tokens, Duration::from_secs(1))
    }

    /// `tokens` every minute. Not `per_second` of a sixtieth with a burst of its own: the burst is
    /// always written out.
    #[must_use]
    pub const fn per_minute(tokens: u64) -> Self {
        Self::new(tokens, Duration::from_secs(60))
    }

    /// `tokens` every hour.
    #[must_use]
    pub const fn per_hour(tokens: u64) -> Self {
        Self::new(tokens, Duration::from_secs(3_600))
    }

    /// `tokens` every 24 hours.
    #[must_use]
    pub const fn per_day(tokens: u64) -> Self {
        Self::new(tokens, Duration::from_secs(86_400))
    }

    /// `tokens` every `period`. Zero of either is refused where a limiter is built.
    #[must_use]
    pub const fn new(tokens: u64, period: Duration) -> Self {
        Self { tokens, period }
    }

    /// This rate with the most tokens a bucket holds, hence the most that one call can take.
    #[must_use]
    pub const fn burst(self, burst: u64) -> Quota {
        Quota::new(self, burst)
    }

    /// Tokens earned in each [`period`](Self::period).
    #[must_use]
    pub const fn tokens(self) -> u64 {
        self.tokens
    }

    /// The period in which [`tokens`](Self::tokens) are earned.
    #[must_use]
    pub const fn period(self) -> Duration {
        self.period
    }

    /// The rate as (p, q) in lowest terms: p tokens every q nanoseconds; (0, 1) and (1, 0) for
    /// rates without tokens or without a period.
    pub(crate) fn per_nanosecond(self) -> (u64, u128) {
        let (tokens, period_ns) = (u128::from(self.tokens), self.period.as_nanos());
        let divisor = greatest_common_divisor(tokens, period_ns);
        let exact = |n: u128| n.checked_div(divisor).unwrap_or(0);
        (
            u64::try_from(exact(tokens)).unwrap_or(self.tokens),
            exact(period_ns),
        )
    }

    /// Tokens and period from a decimal number of tokens and a period.
    fn from_decimal(digits: &str, exponent: i32, period: Duration) -> Option<Self> {
        let mut tokens: u128 = digits.parse().ok()?;
        let mut exponent = exponent;
        while exponent < 0 && tokens != 0 && tokens.is_multiple_of(10) {
            tokens = tokens.checked_div(10)?;
            exponent = exponent.checked_add(1)?;
        }
        let scale = 10u128.checked_pow(exponent.unsigned_abs())?;
        let (tokens, period_ns) = if exponent < 0 {
            (tokens, period.as_nanos().checked_mul(scale)?)
        } else {
            (tokens.checked_mul(scale)?, period.as_nanos())
        };
        let period = crate::time::duration(period_ns);
        if period.as_nanos() != period_ns {
            return None;
        }
        Some(Self::new(u64::try_from(tokens).ok()?, period))
    }
}

/// Euclid's algorithm: at most 185 steps for numbers of 128 bits.
fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a.checked_rem(b).unwrap_or(0));
    }
    a
}

/// Names by which a period is read, the first of each length being the one it is printed with.
const UNITS: [(&str, u128); 24] = [
    ("day", 86_400_000_000_000),
    ("days", 86_400_000_000_000),
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("hour", 3_600_000_000_000),
    ("hours", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("minute", 60_000_000_000),
    ("minutes", 60_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("sec", 1_000_000_000),
    ("second", 1_000_000_000),
    ("seconds", 1_000_000_000),
    ("ms", 1_000_000),
    ("millisecond", 1_000_000),
    ("milliseconds", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("microsecond", 1_000),
    ("microseconds", 1_000),
    ("ns", 1),
    ("nanosecond", 1),
    ("nanoseconds", 1),
];

impl fmt::Display for Rate {
    /// `5/s`, `100/min`, `10/3s`: what [`FromStr`] reads back to an equal rate.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let period_ns = self.period.as_nanos();
        let fits = |unit: &&(&str, u128)| period_ns != 0 && period_ns.is_multiple_of(unit.1);
        let (name, unit_ns) = UNITS.iter().find(fits).copied().unwrap_or(("ns", 1));
        match period_ns.checked_div(unit_ns) {
            Some(1) => write!(f, "{}/{name}", self.tokens),
            count => write!(f, "{}/{}{name}", self.tokens, count.unwrap_or(0)),
        }
    }
}

impl FromStr for Rate {
    type Err = RateError;

    /// Reads `TOKENS/PERIOD`: tokens as plain decimal digits with or without a fraction (`0.1` is
    /// exactly one tenth), the period as a unit with or without a whole number before it (`s`,
    /// `min`, `h`, `day`, `ms`, `us`, `ns` and their long names).
    fn from_str(text: &str) -> Result<Self, RateError> {
        let malformed = || RateError::Malformed { value: text.into() };
        let (tokens, period) = text.split_once('/').ok_or_else(malformed)?;
        let (tokens, period) = (tokens.trim(), period.trim());
        let digits = period
            .len()
            .saturating_sub(period.trim_start_matches(is_digit).len());
        let (count, unit) = period.split_at_checked(digits).ok_or_else(malformed)?;
        let unit_ns = UNITS
            .iter()
            .find(|(name, _)| *name == unit.trim())
            .ok_or_else(malformed)?
            .1;
        let (sign, tokens) = match tokens.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, tokens),
        };
        let (whole, fraction) = tokens.split_once('.').unwrap_or((tokens, "0"));
        let all_digits = |part: &str| !part.is_empty() && part.chars().all(is_digit);
        if !all_digits(whole) || !all_digits(fraction) {
            return Err(malformed());
        }
        let not_positive = || RateError::NotPositive { value: text.into() };
        let only_zeros = |part: &str| part.trim_matches('0').is_empty();
        if sign || (only_zeros(whole) && only_zeros(fraction)) {
            return Err(not_positive());
        }
        if !count.is_empty() && only_zeros(count) {
            return Err(not_positive());
        }
        // Zeros at the end say nothing, and many of them would not fit a number.
        let fraction = fraction.trim_end_matches('0');
        let exact = || {
            let count: u128 = if count.is_empty() {
                1
            } else {
                count.parse().ok()?
            };
            let period_ns = count.checked_mul(unit_ns)?;
            let period = crate::time::duration(period_ns);
            let exponent = i32::try_from(fraction.len()).ok()?.checked_neg()?;
            let fits = period.as_nanos() == period_ns;
            fits.then(|| Self::from_decimal(&format!("{whole}{fraction}"), exponent, period))?
        };
        exact().ok_or_else(|| RateError::OutOfRange { value: text.into() })
    }
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

impl TryFrom<f64> for Rate {
    type Error = RateError;

    /// Tokens per second from a float, taken to mean the shortest decimal that prints as it: 0.1
    /// is exactly one token every ten seconds.
    ///
    /// # Errors
    ///
    /// NaN, infinities, zero, negatives, and what no pair of a `u64` and a [`Duration`] holds.
    fn try_from(per_second: f64) -> Result<Self, RateError> {
        let value = || format!("{per_second:?}/s").into_boxed_str();
        if !(per_second.is_finite() && per_second > 0.0) {
            return Err(RateError::NotPositive { value: value() });
        }
        // The shortest decimal that reads back as the same float, as digits and an exponent.
        let text = format!("{per_second:e}");
        let exact = || {
            let (mantissa, exponent) = text.split_once('e')?;
            let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
            let shift = i32::try_from(fraction.len()).ok()?;
            let exponent = exponent.parse::<i32>().ok()?.checked_sub(shift)?;
            Self::from_decimal(
                &format!("{whole}{fraction}"),
                exponent,
                Duration::from_secs(1),
            )
        };
        exact().ok_or_else(|| RateError::OutOfRange { value: value() })
    }
}

/// A text or float that is no rate. The text of the error repeats the value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RateError {
    /// Not of the form `TOKENS/PERIOD`.
    Malformed {
        /// What was read.
        value: Box<str>,
    },
    /// NaN, infinite, zero or negative, or a period of zero.
    NotPositive {
        /// What was read.
        value: Box<str>,
    },
    /// A positive rate that a `u64` of tokens in a [`Duration`] does not hold exactly.
    OutOfRange {
        /// What was read.
        value: Box<str>,
    },
}

impl fmt::Display for RateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { value } => {
                write!(
                    f,
                    "rate {value:?} is not TOKENS/PERIOD, like 5/s, 100/min or 10/3s"
                )
            }
            Self::NotPositive { value } => {
                write!(
                    f,
                    "rate {value:?} is not a positive, finite number of tokens per period"
                )
            }
            Self::OutOfRange { value } => write!(
                f,
                "rate {value:?} is out of range: at most 2^64 - 1 tokens in a period of 1 ns to \
                 2^64 s, exactly"
            ),
        }
    }
}

impl core::error::Error for RateError {}
