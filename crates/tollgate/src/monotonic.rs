//! A fast clock that keeps to the system's monotonic clock and never goes back.
//!
//! The processor's counter is turned into nanoseconds by a line: so much at an anchor, so much more
//! a tick. About once a second one reader compares the line with the system's monotonic clock and
//! publishes the next line, which starts on the old one and runs a little faster or slower until
//! the two agree. Where two lines meet, readers of either stand still for a moment: those of the
//! old one until the new one is published, those of the new one until the counter is there. So no
//! reading is past a later one, however long whoever draws a line is kept from publishing it.

use core::fmt;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Mutex, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::time::product;

/// How long a line is followed.
const LINE_NS: u64 = 1_000_000_000;
/// What one line takes off the distance to the system's clock.
const CATCH_UP_NS: u64 = LINE_NS >> 10;
/// A distance beyond this is no error of the counter's. A lead: it ran on while the system's clock
/// stood still (a suspended machine), and so did the world; it is kept. A lag: the counter was
/// set back; it is made up in one step.
const ERROR_NS: u64 = LINE_NS;
/// How far ahead of the counter a line starts, in ticks: some ten microseconds, in which whoever
/// draws it can say so.
const AHEAD: u64 = 1 << 15;
/// How often to try that before it is left to another reader.
const TRIES: usize = 8;
/// The lines kept: one in force, and the ones that a reader may still be looking at. That a reader
/// was overtaken by all of them it sees by their number.
const LINES: usize = 4;

/// Nanoseconds as a function of the counter. Read and written piecemeal: see [`Monotonic::line`].
#[derive(Default)]
struct Line {
    /// The counter at the anchor.
    anchor: AtomicU64,
    /// The time at the anchor.
    anchor_ns: AtomicU64,
    /// Nanoseconds a tick, times 2^32: bent towards the system's clock.
    slope: AtomicU64,
    /// Ticks for which the line is followed.
    ticks: AtomicU64,
    /// The slope beyond them, until somebody draws the next line.
    after: AtomicU64,
}

/// A line's numbers.
#[derive(Clone, Copy)]
struct Numbers {
    anchor: u64,
    anchor_ns: u64,
    slope: u64,
    ticks: u64,
    after: u64,
}

impl Numbers {
    /// The time at `counter`; that of the anchor before it.
    #[inline]
    fn at(self, counter: u64) -> u64 {
        let ticks = counter.saturating_sub(self.anchor);
        let mut units = product(ticks.min(self.ticks), self.slope);
        if ticks > self.ticks {
            let beyond = ticks.saturating_sub(self.ticks);
            units = units.saturating_add(product(beyond, self.after));
        }
        // What is past 2^64 ns is past the clock's range.
        let nanos = u64::try_from(units >> 32).unwrap_or(u64::MAX);
        self.anchor_ns.saturating_add(nanos)
    }
}

/// The process's clock.
pub(crate) struct Monotonic {
    counter: quanta::Clock,
    start: Instant,
    /// The number of the line in force.
    number: AtomicU64,
    lines: [Line; LINES],
    /// While the next line is drawn, the counter at its anchor: readers of the old line stand
    /// still there, or one who was kept from publishing for a while would send them back.
    limit: AtomicU64,
    /// Held by the one who publishes the next line.
    last: Mutex<Comparison>,
}

/// The counter beside the system's monotonic clock.
#[derive(Clone, Copy)]
struct Comparison {
    counter: u64,
    /// Since the process's start.
    elapsed_ns: u64,
    /// What to add to that for nanoseconds since the Unix epoch.
    offset_ns: u64,
    /// Nanoseconds a tick, times 2^32, as the last comparison showed it.
    slope: u64,
}

impl Monotonic {
    pub(crate) fn of_the_process() -> &'static Self {
        static PROCESS: OnceLock<Monotonic> = OnceLock::new();
        PROCESS.get_or_init(Self::new)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the system's clocks"
    )]
    fn new() -> Self {
        let counter = quanta::Clock::new();
        // Nanoseconds a tick times 2^32, as calibrated.
        let slope = counter.delta_as_nanos(0, 1 << 32).max(1);
        // A wall clock before 1970 reads as 1970; one beyond 2554, as that.
        let unix = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let offset_ns = u64::try_from(unix.as_nanos()).unwrap_or(u64::MAX);
        let start = Instant::now();
        let first = Comparison {
            counter: counter.raw(),
            elapsed_ns: 0,
            offset_ns,
            slope,
        };
        let clock = Self {
            counter,
            start,
            number: AtomicU64::new(0),
            lines: Default::default(),
            limit: AtomicU64::new(u64::MAX),
            last: Mutex::new(first),
        };
        clock.publish(0, Numbers::new(first.counter, offset_ns, slope, slope));
        clock
    }

    /// Nanoseconds since the Unix epoch.
    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        loop {
            let number = self.number.load(Ordering::Acquire);
            let line = self.line(number).read();
            // Read while the line is in force, so that no later line starts before it.
            let counter = self.counter.raw();
            let limited = counter.min(self.limit.load(Ordering::Acquire));
            fence(Ordering::Acquire);
            if self.number.load(Ordering::Relaxed) != number {
                // At most once a second.
                continue;
            }
            // A counter that was set back is far from the anchor too; one that was read a few
            // instructions before it is not.
            let ahead = counter.wrapping_sub(line.anchor);
            if ahead > line.ticks && ahead.wrapping_neg() > line.ticks {
                self.follow_the_system(number, line);
            }
            return line.at(limited);
        }
    }

    #[inline]
    fn line(&self, number: u64) -> &Line {
        let [first, ..] = &self.lines;
        // Two bits, of four lines: always there.
        let at = usize::try_from(number & 3).unwrap_or(0);
        self.lines.get(at).unwrap_or(first)
    }

    /// Compares and publishes the line after `number`, unless somebody else is at it.
    #[cold]
    fn follow_the_system(&self, number: u64, line: Numbers) {
        if let Ok(mut last) = self.last.try_lock()
            && self.number.load(Ordering::Acquire) == number
        {
            match self.draw(&mut last, line) {
                Some(next) => self.publish(number.wrapping_add(1), next),
                None => self.limit.store(u64::MAX, Ordering::Release),
            }
        }
    }

    /// The line after `line`. It starts a little ahead, where readers of `line` stand still until
    /// it is published, and its own until the counter is there. `None` if this thread was kept from
    /// saying so in time, several times over.
    fn draw(&self, last: &mut Comparison, line: Numbers) -> Option<Numbers> {
        let start = (0..TRIES).find_map(|_| {
            let start = self.counter.raw().saturating_add(AHEAD);
            self.limit.store(start, Ordering::Relaxed);
            // A reader that has not seen the limit has read the counter by now.
            fence(Ordering::SeqCst);
            (self.counter.raw() <= start).then_some(start)
        })?;
        // The system's clock first: delayed between the two, it is found to lag, and a lag of the
        // system's is never made up by a step.
        let elapsed_ns = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let now = Comparison {
            counter: self.counter.raw(),
            elapsed_ns,
            ..*last
        };
        let (now, next) = next_line(line, *last, now, start);
        *last = now;
        Some(next)
    }

    fn publish(&self, number: u64, line: Numbers) {
        // Ordered after the store that made the line before this one official, so that whoever
        // reads what is written here finds a later number too, and tries again.
        fence(Ordering::Release);
        self.line(number).write(line);
        self.number.store(number, Ordering::Release);
        // Whoever sees this sees the number, too.
        self.limit.store(u64::MAX, Ordering::Release);
    }
}

/// The line after `line`, from the counter `start` on, given the last comparison and a new one; and
/// the new one completed.
fn next_line(
    line: Numbers,
    last: Comparison,
    now: Comparison,
    start: u64,
) -> (Comparison, Numbers) {
    let start_ns = line.at(start);
    let ticks = u128::from(now.counter.saturating_sub(last.counter));
    let nanos = u128::from(now.elapsed_ns.saturating_sub(last.elapsed_ns));
    // Rounded down; a 2^-32 of a nanosecond a tick is a second in a century.
    let measured = (nanos << 32)
        .checked_div(ticks)
        .and_then(|slope| u64::try_from(slope).ok());
    // One of the two stood still or was set, or they were compared a moment ago, so that an error
    // of a microsecond would be many in a second: the last slope is the better guess.
    let long_enough = nanos >= u128::from(LINE_NS >> 1);
    let plausible = |slope: &u64| long_enough && slope.abs_diff(last.slope) <= last.slope >> 7;
    let slope = measured.filter(plausible).unwrap_or(last.slope);

    let here_ns = line.at(now.counter);
    let system_ns = now.elapsed_ns.saturating_add(now.offset_ns);
    if here_ns.abs_diff(system_ns) > ERROR_NS {
        let offset_ns = now
            .offset_ns
            .saturating_add(here_ns.saturating_sub(system_ns));
        let next = Numbers::new(start, start_ns.max(system_ns), slope, slope);
        return (
            Comparison {
                offset_ns,
                slope,
                ..now
            },
            next,
        );
    }
    // slope x catch-up / line, rounded down.
    let catch_up_ns = here_ns.abs_diff(system_ns).min(CATCH_UP_NS);
    let change = product(slope, catch_up_ns);
    let change = u64::try_from(change.checked_div(u128::from(LINE_NS)).unwrap_or(0)).unwrap_or(0);
    let corrected = if here_ns < system_ns {
        slope.saturating_add(change)
    } else {
        slope.saturating_sub(change).max(1)
    };
    (
        Comparison { slope, ..now },
        Numbers::new(start, start_ns, corrected, slope),
    )
}

impl Numbers {
    /// A line followed for [`LINE_NS`] of the system's time.
    fn new(anchor: u64, anchor_ns: u64, slope: u64, after: u64) -> Self {
        let ticks = (u128::from(LINE_NS) << 32).checked_div(u128::from(after));
        let ticks = ticks
            .and_then(|ticks| u64::try_from(ticks).ok())
            .unwrap_or(u64::MAX);
        Self {
            anchor,
            anchor_ns,
            slope,
            ticks,
            after,
        }
    }
}

impl Line {
    #[inline]
    fn read(&self) -> Numbers {
        Numbers {
            anchor: self.anchor.load(Ordering::Relaxed),
            anchor_ns: self.anchor_ns.load(Ordering::Relaxed),
            slope: self.slope.load(Ordering::Relaxed),
            ticks: self.ticks.load(Ordering::Relaxed),
            after: self.after.load(Ordering::Relaxed),
        }
    }

    fn write(&self, line: Numbers) {
        self.anchor.store(line.anchor, Ordering::Relaxed);
        self.anchor_ns.store(line.anchor_ns, Ordering::Relaxed);
        self.slope.store(line.slope, Ordering::Relaxed);
        self.ticks.store(line.ticks, Ordering::Relaxed);
        self.after.store(line.after, Ordering::Relaxed);
    }
}

impl fmt::Debug for Monotonic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Monotonic")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    /// Half a nanosecond a tick.
    const SLOPE: u64 = 1 << 31;

    fn compared(counter: u64, elapsed_ns: u64) -> Comparison {
        Comparison {
            counter,
            elapsed_ns,
            offset_ns: 1_000 * SECOND,
            slope: SLOPE,
        }
    }

    fn line() -> Numbers {
        Numbers::new(0, 1_000 * SECOND, SLOPE, SLOPE)
    }

    #[test]
    fn a_small_distance_is_gone_after_one_line() {
        for (compared_ns, after_ns) in [
            (SECOND - 50_000, 2 * SECOND - 100_000),
            (SECOND, 2 * SECOND),
            (SECOND + 50_000, 2 * SECOND + 100_000),
        ] {
            let (_, next) = next_line(
                line(),
                compared(0, 0),
                compared(2 * SECOND, compared_ns),
                2 * SECOND,
            );
            assert_eq!(next.at(2 * SECOND), 1_001 * SECOND, "no step");
            // The slope is learnt, and the distance taken off within as many ticks again.
            let after = next.at(4 * SECOND);
            assert!(
                after.abs_diff(1_000 * SECOND + after_ns) <= 20,
                "{after} and {after_ns}"
            );
        }
    }

    #[test]
    fn a_large_distance_is_taken_off_a_little_at_a_time() {
        for compared_ns in [SECOND / 2, 3 * SECOND / 2] {
            let (_, next) = next_line(
                line(),
                compared(0, 0),
                compared(2 * SECOND, compared_ns),
                2 * SECOND,
            );
            let gained = next.at(4 * SECOND) - next.at(2 * SECOND);
            assert!(gained.abs_diff(SECOND) <= SECOND / 1_024 + 1, "{gained}");
            assert!(gained.abs_diff(SECOND) >= SECOND / 1_024 - 1, "{gained}");
        }
    }

    /// Nobody asked for the time for an hour: what was to be taken off within a second is not taken
    /// off an hour long.
    #[test]
    fn a_line_is_bent_for_a_second_only() {
        let half = SECOND / 2;
        let (_, next) = next_line(
            line(),
            compared(0, 0),
            compared(2 * SECOND, half),
            2 * SECOND,
        );
        let hour = 3_600 * SECOND;
        let gained = next.at(2 * SECOND + 2 * hour) - next.at(2 * SECOND);
        assert!(gained.abs_diff(hour) <= SECOND / 1_024 + 1, "{gained}");
    }

    #[test]
    fn a_suspended_machine_keeps_the_counters_time() {
        let hour = 3_600 * SECOND;
        let (now, next) = next_line(line(), compared(0, 0), compared(2 * hour, SECOND), 2 * hour);
        assert_eq!(next.at(2 * hour), 1_000 * SECOND + hour);
        assert_eq!(
            next.slope, SLOPE,
            "an hour that only one of them saw teaches nothing"
        );
        assert_eq!(now.offset_ns + now.elapsed_ns, 1_000 * SECOND + hour);
    }

    #[test]
    fn a_counter_that_starts_again_follows_the_system() {
        let last = compared(5 * SECOND, 2 * SECOND);
        let line = Numbers::new(5 * SECOND, 1_002 * SECOND, SLOPE, SLOPE);
        assert_eq!(line.at(7), 1_002 * SECOND, "stands still until compared");
        let (_, next) = next_line(line, last, compared(7, 4 * SECOND), 7);
        assert_eq!((next.anchor, next.at(7)), (7, 1_004 * SECOND));
    }

    #[test]
    fn readings_of_a_thread_do_not_go_back_while_lines_change() {
        let clock = Monotonic::new();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let clock = &clock;
                scope.spawn(move || {
                    let mut latest = 0;
                    for round in 0..50_000 {
                        if round % 100 == thread {
                            let number = clock.number.load(Ordering::Acquire);
                            clock.follow_the_system(number, clock.line(number).read());
                        }
                        let now = clock.now_ns();
                        assert!(now >= latest, "{now} after {latest}");
                        latest = now;
                    }
                });
            }
        });
        // Whatever happens between the readings, the clock is between them.
        let system_ns = || {
            let last = clock.last.lock().unwrap();
            last.offset_ns + u64::try_from(clock.start.elapsed().as_nanos()).unwrap()
        };
        let (before, now, after) = (system_ns(), clock.now_ns(), system_ns());
        let error = 10_000_000;
        assert!(
            before <= now + error && now <= after + error,
            "keeps to the system's clock: {before}, {now}, {after}"
        );
    }

    /// Whoever draws a line that runs slower may be kept from publishing it: nobody passes where
    /// it starts meanwhile.
    #[test]
    fn readers_stand_still_until_the_next_line_is_published() {
        let clock = Monotonic::new();
        let mut last = *clock.last.lock().unwrap();
        let next = clock.draw(&mut last, clock.line(0).read()).unwrap();
        let until = clock.counter.raw() + 1_000_000;
        while clock.counter.raw() < until {
            std::hint::spin_loop();
        }
        let now = clock.now_ns();
        assert!(now <= next.anchor_ns, "{now} is past {}", next.anchor_ns);
        clock.publish(1, next);
        assert!(clock.now_ns() > next.anchor_ns);
    }
}
