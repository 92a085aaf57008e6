//! What a limit admits, as it is written down.

use std::fmt;
use std::time::Duration;

use tollgate::{
    AnyLimit, BuildError, FixedWindow, KeyedLimiter, LeakyBucket, Quota, Rate, SlidingLog,
    SlidingWindowCounter,
};

/// An algorithm and its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// A token bucket.
    TokenBucket(Quota),
    /// A leaky bucket: what is admitted leaves at an even pace, each call after its delay.
    LeakyBucket(Quota),
    /// So many tokens in a window that the first call opens.
    FixedWindow(u64, Duration),
    /// The same in windows counted from the Unix epoch.
    AlignedWindow(u64, Duration),
    /// So many tokens in any window.
    SlidingLog(u64, Duration),
    /// About so many in any window: the one before counts by how much of it is left.
    SlidingWindowCounter(u64, Duration),
}

impl Rule {
    /// The library's limit.
    #[must_use]
    pub fn limit(self) -> AnyLimit {
        match self {
            Self::TokenBucket(quota) => quota.into(),
            Self::LeakyBucket(quota) => LeakyBucket::new(quota).into(),
            Self::FixedWindow(limit, window) => FixedWindow::new(limit, window).into(),
            Self::AlignedWindow(limit, window) => FixedWindow::new(limit, window).aligned().into(),
            Self::SlidingLog(limit, window) => SlidingLog::new(limit, window).into(),
            Self::SlidingWindowCounter(limit, window) => {
                SlidingWindowCounter::new(limit, window).into()
            }
        }
    }

    /// Its name in a policy file.
    #[must_use]
    pub fn algorithm(self) -> &'static str {
        match self {
            Self::TokenBucket(_) => "token-bucket",
            Self::LeakyBucket(_) => "leaky-bucket",
            Self::FixedWindow(..) | Self::AlignedWindow(..) => "fixed-window",
            Self::SlidingLog(..) => "sliding-log",
            Self::SlidingWindowCounter(..) => "sliding-window-counter",
        }
    }

    /// The most that one call can take.
    #[must_use]
    pub fn burst(self) -> u64 {
        match self {
            Self::TokenBucket(quota) | Self::LeakyBucket(quota) => quota.burst(),
            Self::FixedWindow(limit, _)
            | Self::AlignedWindow(limit, _)
            | Self::SlidingLog(limit, _)
            | Self::SlidingWindowCounter(limit, _) => limit,
        }
    }

    /// Whether the library takes these numbers.
    ///
    /// # Errors
    ///
    /// As where a limiter is built.
    pub fn check(self) -> Result<(), BuildError> {
        KeyedLimiter::builder(self.limit(), 1).build().map(drop)
    }

    /// The time after which a client that did nothing is as good as new: an empty bucket's until it
    /// is full, rounded up to the nanosecond; the time by which no call counts in a window.
    #[must_use]
    pub fn time_to_fill(self) -> Duration {
        let nanoseconds = match self {
            Self::TokenBucket(quota) | Self::LeakyBucket(quota) => {
                let (burst, period) = (u128::from(quota.burst()), quota.rate().period());
                let tokens = u128::from(quota.rate().tokens()).max(1);
                burst.saturating_mul(period.as_nanos()).div_ceil(tokens)
            }
            Self::FixedWindow(_, window)
            | Self::AlignedWindow(_, window)
            | Self::SlidingLog(_, window) => window.as_nanos(),
            Self::SlidingWindowCounter(_, window) => window.as_nanos().saturating_mul(2),
        };
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }

    /// The most tokens that one client can get in any stretch of so much time, its end left out.
    ///
    /// A bucket's is burst + rate x time, rounded down, and at most u64's largest number. A stretch
    /// of fixed windows may cut one at either end, so it sees the limit twice within any time at
    /// all; a counter's grows from the limit by limit / window.
    #[must_use]
    pub fn most_within(self, time: Duration) -> u64 {
        let windows = |window: Duration| time.as_nanos().div_ceil(window.as_nanos().max(1));
        let tokens = match self {
            Self::TokenBucket(quota) | Self::LeakyBucket(quota) => {
                let rate = quota.rate();
                let earned = time.as_nanos().saturating_mul(u128::from(rate.tokens()));
                let earned = earned.checked_div(rate.period().as_nanos());
                u128::from(quota.burst()).saturating_add(earned.unwrap_or(0))
            }
            Self::SlidingLog(limit, window) => {
                u128::from(limit).saturating_mul(windows(window).max(1))
            }
            Self::SlidingWindowCounter(limit, window) => {
                let grown = u128::from(limit).saturating_mul(time.as_nanos());
                let grown = grown.checked_div(window.as_nanos()).unwrap_or(0);
                u128::from(limit).saturating_add(grown)
            }
            Self::FixedWindow(limit, window) | Self::AlignedWindow(limit, window) => {
                let touched = windows(window).saturating_add(1);
                u128::from(limit).saturating_mul(if time.is_zero() { 1 } else { touched })
            }
        };
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }
}

impl From<Quota> for Rule {
    fn from(quota: Quota) -> Self {
        Self::TokenBucket(quota)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TokenBucket(quota) => quota.fmt(f),
            Self::LeakyBucket(quota) => write!(f, "{quota}, leaky"),
            Self::FixedWindow(limit, window) => write!(f, "{limit} in a window of {window:?}"),
            Self::AlignedWindow(limit, window) => {
                write!(f, "{limit} in a window of {window:?} from the Unix epoch")
            }
            Self::SlidingLog(limit, window) => write!(f, "{limit} in any {window:?}"),
            Self::SlidingWindowCounter(limit, window) => {
                write!(f, "{limit} in about any {window:?}")
            }
        }
    }
}

/// The burst of a rate that was written without one: its tokens where the text has whole ones;
/// where it has a fraction, those of the fraction in lowest terms. A fraction is kept as tenths,
/// hundredths and so on in as many periods, and how it was spelt is not to decide how much a client
/// may save up.
///
/// ```
/// use tollgate_policy::rule::default_burst;
///
/// for (text, burst) in [("5/s", 5), ("1/10s", 1), ("0.25/s", 1), ("2.5/s", 5)] {
///     assert_eq!(default_burst(text.parse()?, text), burst);
/// }
/// # Ok::<(), tollgate::RateError>(())
/// ```
#[must_use]
pub fn default_burst(rate: Rate, text: &str) -> u64 {
    // One token in the period as it was written, to see how many of them the rate is kept in.
    let period = text.split_once('/').map_or("", |(_, period)| period);
    let written: Option<Rate> = format!("1/{period}").parse().ok();
    let periods = written.and_then(|one| {
        let period_ns = rate.period().as_nanos();
        period_ns.checked_div(one.period().as_nanos())
    });
    let (mut a, mut b) = (u128::from(rate.tokens()), periods.unwrap_or(1));
    // Euclid's algorithm: at most 185 steps for numbers of 128 bits.
    while b != 0 {
        (a, b) = (b, a.checked_rem(b).unwrap_or(0));
    }
    let lowest = u128::from(rate.tokens()).checked_div(a);
    lowest
        .and_then(|tokens| u64::try_from(tokens).ok())
        .unwrap_or(rate.tokens())
}
