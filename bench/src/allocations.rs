//! Counts allocations (P13).
//!
//! A global allocator is the one place where every allocation of a program passes, and its trait
//! is unsafe: hence the only unsafe code here. It hands everything on to the system's allocator and
//! counts in a variable of the thread's own, which costs every limiter's allocations about a
//! nanosecond.

#![allow(
    unsafe_code,
    reason = "the trait of global allocators is unsafe; no other hook sees every allocation"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::time::Duration;

use governor::clock::FakeRelativeClock;
use tollgate::{
    AnyLimit, FixedWindow, KeyedLimiter, LeakyBucket, ManualClock, Rate, SlidingLog,
    SlidingWindowCounter,
};

use crate::error::Error;
use crate::keys::Name;
use crate::peers::governor::{a_second, with_clock};
use crate::row::{Algorithm, Answer, Bench, Dist, Limiter, Measure, Row, Sample};

/// The system's allocator, counted.
pub(crate) struct Counting;

thread_local! {
    /// Constant to begin with and without a destructor, so that using it allocates nothing.
    static ALLOCATIONS: Cell<u32> = const { Cell::new(0) };
}

fn count() {
    // A thread that is being torn down has nobody left to count for.
    _ = ALLOCATIONS.try_with(|count| count.set(count.get().wrapping_add(1)));
}

// SAFETY: each call is handed on as it came to the system's allocator, which keeps the promises;
// counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are those that are asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as above. Not left to the default, which would touch pages that are zero anyway.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, new_size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Clients, each already known.
const KNOWN: u32 = 1_000;
/// Rounds in which each of them calls by either verb.
const ROUNDS: u32 = 100;
/// From one round to the next: positions of the expiry queue come due and are corrected, while
/// nobody goes idle.
const A_ROUND: Duration = Duration::from_millis(300);
const IDLE: Duration = Duration::from_secs(1);

/// P13: allocations of known clients' calls, some admitted and some refused.
pub(crate) fn samples() -> Result<Vec<Sample>, Error> {
    let second = Duration::from_secs(1);
    let quota = Rate::per_second(2).burst(2);
    // One in two centuries: its fractions need more than 64 bits.
    let wide = Rate::new(1, Duration::from_secs(200 * 365 * 86_400)).burst(2);
    let counter = SlidingWindowCounter::new(2, second);
    let mut samples = Vec::new();
    for name_len in [14, 36] {
        let mut add = |algorithm, limit: AnyLimit| {
            let row = row(name_len, algorithm);
            let name = Limiter::Tollgate;
            ours(row, limit).map(|figures| samples.push(Sample { row, name, figures }))
        };
        add(Algorithm::TokenBucket, quota.into())?;
        add(Algorithm::WideTokenBucket, wide.into())?;
        add(Algorithm::LeakyBucket, LeakyBucket::new(quota).into())?;
        add(Algorithm::FixedWindow, FixedWindow::new(2, second).into())?;
        add(Algorithm::SlidingWindowCounter, counter.into())?;
        add(Algorithm::SlidingLog, SlidingLog::new(2, second).into())?;
        let row = row(name_len, Algorithm::TokenBucket);
        let (name, figures) = (Limiter::Governor, governors(row));
        samples.push(Sample { row, name, figures });
    }
    Ok(samples)
}

fn row(name_len: usize, algorithm: Algorithm) -> Row {
    Row {
        answer: Answer::Mixed,
        measure: Measure::Allocations,
        algorithm: Some(algorithm),
        ..Row::new(Bench::P13, KNOWN, Dist::Uniform, name_len)
    }
}

fn ours(row: Row, limit: AnyLimit) -> Result<Vec<f64>, Error> {
    let clock = ManualClock::default();
    // Room for many more: as many shards as a large limiter has.
    let builder = KeyedLimiter::builder(limit, 1_000_000).idle(IDLE);
    let limiter = builder.clock(clock.clone()).build()?;
    let decide = |name: &Name| {
        black_box(limiter.allow(name.as_str()));
        black_box(limiter.try_acquire(name.as_str(), 1).is_allowed());
    };
    Ok(counted(row, || clock.advance(A_ROUND), decide))
}

fn governors(row: Row) -> Vec<f64> {
    let clock = FakeRelativeClock::default();
    let hasher = std::collections::hash_map::RandomState::new();
    let limiter = with_clock(a_second(2, 2), hasher, clock.clone());
    let decide = |name: &Name| {
        black_box(limiter.check_key(name.as_string()).is_ok());
        black_box(limiter.check_key(name.as_string()).is_ok());
    };
    counted(row, || clock.advance(A_ROUND), decide)
}

/// Allocations of all rounds but the first, in which clients become known.
fn counted(row: Row, next_round: impl Fn(), decide: impl Fn(&Name)) -> Vec<f64> {
    let mut name = Name::new(row.name_len);
    let mut before = 0;
    for round in 0..=ROUNDS {
        if round == 1 {
            before = ALLOCATIONS.get();
        }
        for client in 0..KNOWN {
            name.set(client);
            decide(&name);
        }
        next_round();
    }
    // Read before the vector is made, which is one.
    let allocations = ALLOCATIONS.get().wrapping_sub(before);
    vec![f64::from(allocations)]
}
