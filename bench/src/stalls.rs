//! How long a single call can take: a flood of newcomers (P9), and a crowd that leaves (P10).

use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use governor::clock::{DefaultClock, FakeRelativeClock};
use hdrhistogram::Histogram;
use tollgate::{Clock, KeyedLimiter, LongestHold, ManualClock, Rate, TokenBucket};

use crate::cpu;
use crate::error::Error;
use crate::keys::Name;
use crate::memory::resident_bytes;
use crate::peers::governor::{a_second, with_clock};
use crate::peers::textbook::Textbook;
use crate::peers::{GENEROUS_A_SECOND, GENEROUS_BURST, Load};
use crate::row::{Answer, Dist, Limiter, Measure, Row, Sample};

/// Newcomers of the flood; half as many in a quick run.
pub(crate) const FLOOD: u32 = 10_000_000;
/// Clients that may be tracked in the flood.
const CAP: u32 = 1_000_000;
/// Clients that go idle at once.
pub(crate) const CROWD: u32 = 1_000_000;
/// Clients that go on calling.
const LIVE: u32 = 1_000;
/// Calls to find out what the machine itself adds to the longest.
const CALLS_ALONE: usize = 500_000;

/// Times single calls. Two readings of the processor's counter and a histogram: about 25 ns a
/// call, which the baseline shows, and which brings the limiters' figures closer together.
struct Stopwatch {
    clock: quanta::Clock,
    histogram: Histogram<u64>,
}

impl Stopwatch {
    fn new() -> Result<Self, Error> {
        // Up to a minute, to three digits.
        let histogram = Histogram::new_with_bounds(1, 60_000_000_000, 3)
            .map_err(|error| Error::new(error.to_string()))?;
        let clock = quanta::Clock::new();
        Ok(Self { clock, histogram })
    }

    #[inline]
    fn time(&mut self, call: impl FnOnce() -> bool) -> bool {
        let start = self.clock.raw();
        let answer = black_box(call());
        let ns = self.clock.delta_as_nanos(start, self.clock.raw());
        self.histogram.saturating_record(ns);
        answer
    }

    fn longest(&self) -> f64 {
        self.histogram.max() as f64
    }

    fn p999(&self) -> f64 {
        self.histogram.value_at_quantile(0.999) as f64
    }
}

fn sample(row: Row, name: Limiter, measure: Measure, figure: f64) -> Sample {
    let row = Row { measure, ..row };
    let figures = vec![figure];
    Sample { row, name, figures }
}

/// What our counters say of the longest that any lock was held.
fn holds(row: Row, longest: LongestHold) -> [Sample; 2] {
    let count = |count| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    [
        (Measure::Positions, longest.positions),
        (Measure::Rebuilds, longest.rebuilds),
    ]
    .map(|(measure, longest)| sample(row, Limiter::Tollgate, measure, count(longest)))
}

/// P9: every call comes from a client not seen before.
pub(crate) fn flood(row: Row, name: Limiter) -> Result<Vec<Sample>, Error> {
    let cap = usize::try_from(CAP).unwrap_or(usize::MAX);
    match (name, row.dist) {
        // The peers have no cap: every newcomer is taken in, and both rows are set beside that.
        (Limiter::Governor, _) => governors_flood(row, name, RandomState::new()),
        (Limiter::GovernorAhash, _) => governors_flood(row, name, ahash::RandomState::new()),
        (Limiter::Textbook, _) => {
            let limiter = Textbook::new(Load::Generous);
            both(row, name, |row| {
                newcomers(row, row.keys, |name| limiter.allow(name))
            })
        }
        (Limiter::Baseline, _) => both(row, name, |row| {
            newcomers(row, row.keys, |name| !name.as_str().is_empty())
        }),
        (Limiter::Tollgate, Dist::Churn) => {
            // A bucket fills in a second, and a second is as many calls as there are places: each
            // newcomer finds that exactly one client has just gone idle.
            let clock = ManualClock::default();
            let builder = KeyedLimiter::builder(Rate::per_second(1).burst(1), cap);
            let limiter = builder.clock(clock.clone()).build()?;
            let a_call = Duration::from_secs(1) / CAP;
            let mut samples = newcomers(row, row.keys, |name| {
                clock.advance(a_call);
                limiter.allow(name.as_str())
            })?;
            samples.extend(holds(row, limiter.longest_hold()));
            tracks(&limiter, cap)?;
            Ok(samples)
        }
        (Limiter::Tollgate, _) => {
            let limiter = KeyedLimiter::new(Rate::per_second(10_000).burst(1_000_000), cap)?;
            let mut samples = newcomers(row, CAP, |name| limiter.allow(name.as_str()))?;
            samples.extend(holds(row, limiter.longest_hold()));
            tracks(&limiter, cap)?;
            Ok(samples)
        }
        (
            Limiter::Sweep
            | Limiter::RateNet
            | Limiter::Ratelimit
            | Limiter::Throttlecrab
            | Limiter::Limitador
            | Limiter::TowerGovernor
            | Limiter::TowerGovernorHeaders,
            _,
        ) => Err(Error::new(format!("P9: {name:?} is not measured"))),
    }
}

fn governors_flood<S>(row: Row, name: Limiter, hasher: S) -> Result<Vec<Sample>, Error>
where
    S: BuildHasher + Clone,
{
    let quota = a_second(GENEROUS_A_SECOND, GENEROUS_BURST);
    let limiter = with_clock(quota, hasher, DefaultClock::default());
    let decide = |name: &Name| limiter.check_key(name.as_string()).is_ok();
    both(row, name, |row| newcomers(row, row.keys, decide))
}

fn tracks<C: Clock>(limiter: &KeyedLimiter<TokenBucket, C>, clients: usize) -> Result<(), Error> {
    let tracked = limiter.len();
    if tracked == clients {
        return Ok(());
    }
    Err(Error::new(format!(
        "{tracked} clients are tracked, not {clients}"
    )))
}

/// Measured once, reported in both of P9's rows.
fn both(
    row: Row,
    name: Limiter,
    measure: impl FnOnce(Row) -> Result<Vec<Sample>, Error>,
) -> Result<Vec<Sample>, Error> {
    let samples = measure(row)?;
    let in_row = |(dist, answer)| {
        let moved = move |sample: &Sample| Sample {
            row: Row {
                dist,
                answer,
                ..sample.row
            },
            name,
            figures: sample.figures.clone(),
        };
        samples.iter().map(moved).collect::<Vec<_>>()
    };
    let rows = [
        (Dist::Full, Answer::ClientLimit),
        (Dist::Churn, Answer::Admitted),
    ];
    Ok(rows.map(in_row).concat())
}

/// The flood itself, of which `taken_in` are to be admitted.
fn newcomers(
    row: Row,
    taken_in: u32,
    decide: impl Fn(&Name) -> bool,
) -> Result<Vec<Sample>, Error> {
    let mut name = Name::new(row.name_len);
    let mut stopwatch = Stopwatch::new()?;
    let before = resident_bytes()?;
    let (mut admitted, mut at_cap) = (0_u32, 0.0);
    let start = cpu::thread_ns();
    for client in 0..row.keys {
        if client == CAP {
            at_cap = resident_bytes()? - before;
        }
        name.set(client);
        admitted += u32::from(stopwatch.time(|| decide(&name)));
    }
    let ns = cpu::thread_ns() - start;
    let at_end = resident_bytes()? - before;
    if admitted != taken_in {
        let what = format!("P9: {admitted} newcomers were admitted, not {taken_in}");
        return Err(Error::new(what));
    }
    let figures = [
        (Measure::Mean, ns / f64::from(row.keys)),
        (Measure::Longest, stopwatch.longest()),
        (Measure::P999, stopwatch.p999()),
        (Measure::BytesAtCap, at_cap),
        (Measure::BytesAtEnd, at_end),
    ];
    let ours = |(measure, figure)| sample(row, Limiter::Tollgate, measure, figure);
    Ok(figures.map(ours).to_vec())
}

/// P10: a million clients have gone idle, and are forgotten while another thread decides.
///
/// Time is moved by hand, for us and for governor.
pub(crate) fn crowd_leaves(row: Row, name: Limiter) -> Result<Vec<Sample>, Error> {
    let (a_second_of_tokens, away) = (1_000_000, Duration::from_secs(2));
    match name {
        Limiter::Tollgate => {
            let clock = ManualClock::default();
            let tokens = u64::from(a_second_of_tokens);
            let builder = KeyedLimiter::builder(Rate::per_second(tokens).burst(tokens), 2_000_000);
            let limiter = builder.clock(clock.clone()).build()?;
            let crowd = Crowd {
                decide: |name: &Name| limiter.allow(name.as_str()),
                leave: || clock.advance(away),
                forget: || {
                    limiter.forget_idle();
                },
                tracked: || limiter.len(),
            };
            let mut samples = crowd.samples(row, name)?;
            samples.extend(holds(row, limiter.longest_hold()));
            Ok(samples)
        }
        Limiter::Governor => {
            let clock = FakeRelativeClock::default();
            let quota = a_second(a_second_of_tokens, a_second_of_tokens);
            let limiter = with_clock(quota, RandomState::new(), clock.clone());
            let crowd = Crowd {
                decide: |name: &Name| limiter.check_key(name.as_string()).is_ok(),
                leave: || clock.advance(away),
                // What forgets. Giving memory back is another call of its, which we do not time.
                forget: || limiter.retain_recent(),
                tracked: || limiter.len(),
            };
            crowd.samples(row, name)
        }
        Limiter::GovernorAhash
        | Limiter::RateNet
        | Limiter::Ratelimit
        | Limiter::Throttlecrab
        | Limiter::Limitador
        | Limiter::TowerGovernor
        | Limiter::TowerGovernorHeaders
        | Limiter::Textbook
        | Limiter::Sweep
        | Limiter::Baseline => Err(Error::new(format!("P10: {name:?} is not measured"))),
    }
}

/// A limiter whose clients come, leave, and are forgotten.
struct Crowd<D, L, F, T> {
    decide: D,
    leave: L,
    forget: F,
    tracked: T,
}

impl<D, L, F, T> Crowd<D, L, F, T>
where
    D: Fn(&Name) -> bool + Sync,
    L: Fn() + Sync,
    F: Fn() + Sync,
    T: Fn() -> usize + Sync,
{
    fn samples(&self, row: Row, name: Limiter) -> Result<Vec<Sample>, Error> {
        let mut client = Name::new(row.name_len);
        for one in 0..CROWD {
            client.set(one);
            black_box((self.decide)(&client));
        }
        let mut alone = Stopwatch::new()?;
        let mut calls = 0;
        self.live_clients_call(row.name_len, &mut alone, || {
            calls += 1;
            calls > CALLS_ALONE
        });
        (self.leave)();
        let mut beside = Stopwatch::new()?;
        let total = self.forget_beside(row.name_len, &mut beside);
        let live = usize::try_from(LIVE).unwrap_or(usize::MAX);
        let tracked = (self.tracked)();
        if tracked > live {
            let what = format!("P10: {name:?} tracks {tracked} clients, not {live} at most");
            return Err(Error::new(what));
        }
        let figures = [
            (Measure::Longest, beside.longest()),
            (Measure::P999, beside.p999()),
            (Measure::LongestAlone, alone.longest()),
            (Measure::Total, total),
        ];
        let own = |(measure, figure)| sample(row, name, measure, figure);
        Ok(figures.map(own).to_vec())
    }

    /// Nanoseconds that forgetting takes while another thread decides, whose calls are timed.
    fn forget_beside(&self, name_len: usize, stopwatch: &mut Stopwatch) -> f64 {
        let (barrier, forgotten) = (Barrier::new(2), AtomicBool::new(false));
        thread::scope(|scope| {
            let decider = || {
                barrier.wait();
                let is_over = || forgotten.load(Ordering::Relaxed);
                self.live_clients_call(name_len, stopwatch, is_over);
            };
            scope.spawn(decider);
            barrier.wait();
            let start = cpu::wall();
            (self.forget)();
            let total = start.elapsed();
            forgotten.store(true, Ordering::Relaxed);
            total.as_secs_f64() * 1e9
        })
    }

    fn live_clients_call(
        &self,
        name_len: usize,
        stopwatch: &mut Stopwatch,
        mut is_over: impl FnMut() -> bool,
    ) {
        let mut client = Name::new(name_len);
        for one in (CROWD..CROWD + LIVE).cycle() {
            client.set(one);
            stopwatch.time(|| (self.decide)(&client));
            if is_over() {
                break;
            }
        }
    }
}
