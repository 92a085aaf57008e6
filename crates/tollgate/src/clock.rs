//! Where time comes from.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use crate::monotonic::Monotonic;
use crate::{ClockWentBackwards, Timestamp};

/// A source of time for a limiter.
///
/// A clock is read before any lock is taken, and may be read from many threads at once.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Clock, Limiter, Rate, Timestamp};
///
/// struct Stopped;
///
/// impl Clock for Stopped {
///     fn now(&self) -> Timestamp {
///         Timestamp::ZERO
///     }
/// }
///
/// let limiter = Limiter::builder(Rate::per_second(1).burst(1)).clock(Stopped).build()?;
/// assert!(limiter.allow());
/// assert!(!limiter.allow());
/// # Ok::<(), tollgate::BuildError>(())
/// ```
pub trait Clock: Send + Sync {
    /// Whether this clock is known never to go back. Then limiters do not hold it against their
    /// latest time; a limiter whose clock is not known to be monotonic panics when it catches it
    /// going back.
    const MONOTONIC: bool = false;

    /// The time now.
    fn now(&self) -> Timestamp;
}

impl<C: Clock> Clock for &C {
    const MONOTONIC: bool = C::MONOTONIC;

    fn now(&self) -> Timestamp {
        (**self).now()
    }
}

/// The default clock: nanoseconds since the Unix epoch as the system told it once, at first use in
/// this process, and from there only forwards.
///
/// It reads the processor's time-stamp counter where that is steady (about a third of the cost of
/// the standard library's `Instant`) and otherwise the system's monotonic clock. Once a second the
/// counter is compared with the system's monotonic clock, and the distance taken off over the next
/// seconds by running up to a thousandth faster or slower, never by a step. So it stays within a
/// few tens of microseconds of the system's monotonic clock while it is read at least once a
/// second (it may stand still that long, where one second's line meets the next); after
/// a pause the first readings are off by the counter's own error, under 1 ms an hour. Steps of the
/// wall clock do not show: aligned windows are UTC's as far as the system's wall clock was right
/// at start and its monotonic clock keeps time.
///
/// Readings of one thread never go back. The counter is read without a fence, so two threads within
/// the same few dozen instructions may see each other's readings in either order; limiters decide
/// at the latest time that their bucket has seen.
///
/// The first use in a process measures the counter: about a millisecond, at most a fifth of a
/// second on a busy machine.
///
/// ```
/// use tollgate::{Clock, MonotonicClock};
///
/// let clock = MonotonicClock::new();
/// let first = clock.now();
/// assert!(clock.now() >= first);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock {
    monotonic: &'static Monotonic,
}

impl MonotonicClock {
    /// The process's clock.
    #[must_use]
    pub fn new() -> Self {
        Self {
            monotonic: Monotonic::of_the_process(),
        }
    }
}

impl Default for MonotonicClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for MonotonicClock {
    const MONOTONIC: bool = true;

    #[inline]
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.monotonic.now_ns())
    }
}

/// A clock that stands still until it is moved: for tests. Clones share one time.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{KeyedLimiter, ManualClock, Rate};
///
/// let clock = ManualClock::default();
/// let limiter = KeyedLimiter::builder(Rate::per_second(1).burst(1), 100)
///     .clock(clock.clone())
///     .build()?;
/// assert!(limiter.allow("alice"));
/// clock.advance(Duration::from_nanos(999_999_999));
/// assert!(!limiter.allow("alice"));
/// clock.advance(Duration::from_nanos(1));
/// assert!(limiter.allow("alice"));
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Clone, Default)]
pub struct ManualClock {
    nanos: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock that stands at `now`.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self {
            nanos: Arc::new(AtomicU64::new(now.as_nanos())),
        }
    }

    /// Moves the clock forwards; at most to [`Timestamp::MAX`].
    pub fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        self.nanos
            .update(Ordering::AcqRel, Ordering::Acquire, |now| {
                now.saturating_add(by)
            });
    }

    /// Puts the clock to `now`, be it forwards or back. A limiter panics at its next call if the
    /// clock went back.
    pub fn set(&self, now: Timestamp) {
        self.nanos.store(now.as_nanos(), Ordering::Release);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.nanos.load(Ordering::Acquire))
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ManualClock").field(&self.now()).finish()
    }
}

/// A limiter's clock and its mark: the latest time injected, or read from a clock not known to be
/// monotonic.
///
/// The mark has a cache line pair of its own: calls that are handed their time write it.
#[repr(align(128))]
pub(crate) struct Timeline<C> {
    mark: AtomicU64,
    clock: C,
}

impl<C: Clock> Timeline<C> {
    pub(crate) fn new(clock: C) -> Self {
        Self {
            mark: AtomicU64::new(0),
            clock,
        }
    }

    /// Reads the clock.
    ///
    /// # Panics
    ///
    /// When a clock not known to be monotonic went back.
    #[inline]
    #[expect(
        clippy::panic,
        reason = "a clock that goes back is the embedding program's bug"
    )]
    pub(crate) fn read(&self) -> u64 {
        if C::MONOTONIC {
            return self.clock.now().as_nanos();
        }
        // The mark first: a thread that reads the clock later may then only see later times.
        let latest = Timestamp::from_nanos(self.mark.load(Ordering::Acquire));
        let now = self.clock.now();
        if now < latest {
            panic!("{}", ClockWentBackwards { now, latest });
        }
        self.mark.fetch_max(now.as_nanos(), Ordering::AcqRel);
        now.as_nanos()
    }

    /// Takes the time that a caller brought.
    #[inline]
    pub(crate) fn inject(&self, now: Timestamp) -> Result<u64, ClockWentBackwards> {
        let latest = self.mark.fetch_max(now.as_nanos(), Ordering::AcqRel);
        if latest > now.as_nanos() {
            return Err(ClockWentBackwards {
                now,
                latest: Timestamp::from_nanos(latest),
            });
        }
        Ok(now.as_nanos())
    }
}

impl<C> fmt::Debug for Timeline<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let latest = Timestamp::from_nanos(self.mark.load(Ordering::Acquire));
        f.debug_struct("Timeline")
            .field("latest", &latest)
            .finish_non_exhaustive()
    }
}
