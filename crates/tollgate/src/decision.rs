//! What a limiter answers.

use core::fmt;
use core::time::Duration;

use crate::Timestamp;

/// What a limiter answers to one call. A refusal is an answer, never an error.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Decision, Limiter, ManualClock, Rate};
///
/// let limiter = Limiter::builder(Rate::per_second(5).burst(10))
///     .clock(ManualClock::default())
///     .build()?;
/// assert_eq!(limiter.try_acquire(10).remaining(), 0);
/// let refused = limiter.try_acquire(1);
/// assert!(matches!(refused, Decision::Limited { .. }));
/// assert_eq!(refused.retry_after(), Some(Duration::from_millis(200)));
/// assert_eq!(limiter.try_acquire(11), Decision::TooLarge { burst: 10 });
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a decision that is not looked at limits nobody"]
#[non_exhaustive]
pub enum Decision {
    /// The tokens were taken: proceed, after `delay`.
    Allowed {
        /// Whole tokens left, rounded down.
        remaining: u64,
        /// When to proceed: zero but for a leaky bucket, where those ahead must drain first.
        delay: Duration,
        /// The least time after which the client would be as new.
        reset_after: Duration,
    },
    /// Not enough tokens now. Nothing was taken.
    Limited {
        /// Whole tokens there are, rounded down: fewer than were asked for.
        remaining: u64,
        /// The least time after which the same call would be admitted if nothing else happened.
        retry_after: Duration,
        /// The least time after which the client would be as new.
        reset_after: Duration,
    },
    /// The client is banned. Nothing was taken, and the ban ends no later for it.
    Banned {
        /// The time until the ban ends.
        retry_after: Duration,
    },
    /// A new client, and as many as may be are tracked. It was not tracked, and nobody was
    /// forgotten for it. A place frees when someone goes idle: back off.
    ClientLimit,
    /// The call asked for more than a bucket ever holds. Never retry it as it is.
    TooLarge {
        /// The most that one call can take.
        burst: u64,
    },
}

impl Decision {
    /// Whether the call may proceed (after its delay, in a leaky bucket).
    #[must_use]
    pub const fn is_allowed(self) -> bool {
        matches!(self, Self::Allowed { .. })
    }

    /// Whole tokens left, rounded down; 0 where no bucket was looked at
    /// ([`Banned`](Self::Banned), [`ClientLimit`](Self::ClientLimit),
    /// [`TooLarge`](Self::TooLarge)).
    #[must_use]
    pub const fn remaining(self) -> u64 {
        match self {
            Self::Allowed { remaining, .. } | Self::Limited { remaining, .. } => remaining,
            Self::Banned { .. } | Self::ClientLimit | Self::TooLarge { .. } => 0,
        }
    }

    /// How long to wait before the same call is worth making again: zero when it was admitted,
    /// `None` when no wait can be promised to suffice (`TooLarge`: never; `ClientLimit`: when
    /// another client goes idle).
    #[must_use]
    pub const fn retry_after(self) -> Option<Duration> {
        match self {
            Self::Allowed { .. } => Some(Duration::ZERO),
            Self::Limited { retry_after, .. } | Self::Banned { retry_after } => Some(retry_after),
            Self::ClientLimit | Self::TooLarge { .. } => None,
        }
    }

    /// The least time after which the client would be as new; zero where no bucket was looked at.
    #[must_use]
    pub const fn reset_after(self) -> Duration {
        match self {
            Self::Allowed { reset_after, .. } | Self::Limited { reset_after, .. } => reset_after,
            Self::Banned { .. } | Self::ClientLimit | Self::TooLarge { .. } => Duration::ZERO,
        }
    }

    /// Whether this refusal lasts longer than another answer: one that no wait ends lasts longest,
    /// then one of which nobody knows when it ends.
    ///
    /// ```
    /// use tollgate::Decision;
    ///
    /// let too_large = Decision::TooLarge { burst: 5 };
    /// assert!(too_large.outlasts(Decision::ClientLimit));
    /// assert!(!Decision::ClientLimit.outlasts(too_large));
    /// ```
    #[must_use]
    pub fn outlasts(self, other: Self) -> bool {
        let lasts = |decision: Self| match decision {
            Self::TooLarge { .. } => (3, Duration::ZERO),
            Self::ClientLimit => (2, Duration::ZERO),
            Self::Limited { retry_after, .. } | Self::Banned { retry_after } => (1, retry_after),
            Self::Allowed { .. } => (0, Duration::ZERO),
        };
        lasts(self) > lasts(other)
    }

    /// How long an admitted call of a leaky bucket has to wait before it proceeds; zero otherwise.
    #[must_use]
    pub const fn delay(self) -> Duration {
        match self {
            Self::Allowed { delay, .. } => delay,
            Self::Limited { .. }
            | Self::Banned { .. }
            | Self::ClientLimit
            | Self::TooLarge { .. } => Duration::ZERO,
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Allowed {
                remaining,
                delay: Duration::ZERO,
                ..
            } => {
                write!(f, "allowed, {remaining} left")
            }
            Self::Allowed {
                remaining, delay, ..
            } => {
                write!(f, "allowed after {delay:?}, {remaining} left")
            }
            Self::Limited {
                remaining,
                retry_after,
                ..
            } => {
                write!(f, "limited, {remaining} left, retry after {retry_after:?}")
            }
            Self::Banned { retry_after } => write!(f, "banned, retry after {retry_after:?}"),
            Self::ClientLimit => f.write_str("refused: as many clients as may be are tracked"),
            Self::TooLarge { burst } => write!(f, "refused: more than the burst of {burst}"),
        }
    }
}

/// An injected time lower than one this limiter has already seen. Nothing was changed.
///
/// ```
/// use tollgate::{Limiter, Rate, Timestamp};
///
/// let limiter = Limiter::new(Rate::per_second(5).burst(10))?;
/// let _ = limiter.try_acquire_at(1, Timestamp::from_nanos(20))?;
/// let error = limiter.try_acquire_at(1, Timestamp::from_nanos(19)).unwrap_err();
/// assert_eq!(error.to_string(), "the clock went backwards: 19 ns after 20 ns");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockWentBackwards {
    pub(crate) now: Timestamp,
    pub(crate) latest: Timestamp,
}

impl ClockWentBackwards {
    /// The time that was passed.
    #[must_use]
    pub const fn now(self) -> Timestamp {
        self.now
    }

    /// The latest time this limiter had seen.
    #[must_use]
    pub const fn latest(self) -> Timestamp {
        self.latest
    }
}

impl fmt::Display for ClockWentBackwards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the clock went backwards: {} after {}",
            self.now, self.latest
        )
    }
}

impl core::error::Error for ClockWentBackwards {}
