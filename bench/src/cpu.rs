//! Clocks: CPU time for what a call costs, the wall for how long a caller waited.

use std::time::{Instant, SystemTime};

use rustix::time::{ClockId, clock_gettime};

/// CPU time of the calling thread in nanoseconds: what others on the same core take is not in it.
/// Nor is waiting for a lock, which favours limiters that make callers wait.
pub(crate) fn thread_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// The wall clock.
#[expect(
    clippy::disallowed_methods,
    reason = "measuring time is this program's purpose"
)]
pub(crate) fn wall() -> Instant {
    Instant::now()
}

/// The calendar's clock, for a limiter that is told the time by it.
#[expect(
    clippy::disallowed_methods,
    reason = "measuring time is this program's purpose"
)]
pub(crate) fn calendar() -> SystemTime {
    SystemTime::now()
}
