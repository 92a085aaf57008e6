//! A point in time, and how exact counts of nanoseconds become a [`Duration`].

use core::fmt;
use core::time::Duration;

/// A point in time: whole nanoseconds since the zero of whichever [`Clock`](crate::Clock) it came
/// from.
///
/// [`MonotonicClock`](crate::MonotonicClock) counts from the Unix epoch, a
/// [`ManualClock`](crate::ManualClock) from wherever you set it. All that a limiter asks of a time
/// is that it does not run back. The range ends 584 years after its zero.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, Rate, Timestamp};
///
/// let limiter = Limiter::new(Rate::per_second(1).burst(1))?;
/// let start = Timestamp::from_nanos(0);
/// let later = start.checked_add(Duration::from_millis(1_000)).ok_or("out of range")?;
/// assert!(limiter.try_acquire_at(1, start)?.is_allowed());
/// assert!(!limiter.try_acquire_at(1, Timestamp::from_nanos(999_999_999))?.is_allowed());
/// assert!(limiter.try_acquire_at(1, later)?.is_allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The zero of the clock.
    pub const ZERO: Self = Self(0);
    /// The last representable time: 2^64 - 1 nanoseconds.
    pub const MAX: Self = Self(u64::MAX);

    /// The time that many nanoseconds after zero.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since zero.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time `duration` later, or `None` beyond [`Timestamp::MAX`].
    #[must_use]
    pub fn checked_add(self, duration: Duration) -> Option<Self> {
        let nanos = u64::try_from(duration.as_nanos()).ok()?;
        self.0.checked_add(nanos).map(Self)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns", self.0)
    }
}

/// Nanoseconds as a `Duration`. What lies beyond the longest `Duration` reads as that: it is
/// 5.8 x 10^11 years, and [`Timestamp`] itself ends after 584.
#[inline]
pub(crate) fn duration(nanos: u128) -> Duration {
    if let Ok(nanos) = u64::try_from(nanos) {
        return Duration::from_nanos(nanos);
    }
    const NANOS_PER_SEC: u128 = 1_000_000_000;
    let secs = div_floor(nanos, NANOS_PER_SEC);
    let rest = u32::try_from(nanos.wrapping_sub(secs.wrapping_mul(NANOS_PER_SEC)));
    match (u64::try_from(secs), rest) {
        (Ok(secs), Ok(rest)) => Duration::new(secs, rest),
        _ => Duration::MAX,
    }
}

/// Two factors of 64 bits never leave 128.
#[inline]
pub(crate) fn product(a: u64, b: u64) -> u128 {
    u128::from(a).wrapping_mul(u128::from(b))
}

/// `n / d`, rounded down; a division by zero, which no validated limit asks for, is 0.
///
/// Most quotients fit 64 bits, where the processor divides several times faster.
#[inline]
pub(crate) fn div_floor(n: u128, d: u128) -> u128 {
    match (u64::try_from(n), u64::try_from(d)) {
        (Ok(n), Ok(d)) => u128::from(n.checked_div(d).unwrap_or(0)),
        _ => n.checked_div(d).unwrap_or(0),
    }
}

/// `n / d`, rounded up.
#[inline]
pub(crate) fn div_ceil(n: u128, d: u128) -> u128 {
    // A rate of one token per so many nanoseconds is the common case, and its divisor is 1.
    if d == 1 {
        return n;
    }
    let floor = div_floor(n, d);
    floor.wrapping_add(u128::from(floor.wrapping_mul(d) != n))
}
