//! One bucket shared by threads: the same state and arithmetic as a client's, under one lock.

use core::fmt::Debug;

use crate::Decision;
use crate::algorithm::Algorithm;
use crate::algorithm::bucket::{Bucket, Wide};
use crate::algorithm::fixed_window::FixedWindows;
use crate::algorithm::sliding_log::SlidingLogs;
use crate::algorithm::sliding_window_counter::SlidingWindowCounters;
use crate::sync::{Mutex, lock};

/// One bucket.
pub trait Cell: Debug + Send + Sync {
    /// The most that one call can take.
    fn burst(&self) -> u64;
    /// Takes one token.
    fn allow(&self, now: u64) -> bool;
    /// Takes `cost` tokens, or looks at 0.
    #[inline]
    fn acquire(&self, cost: u64, now: u64) -> Decision {
        let (decision, _) = self.charge(cost, now);
        decision
    }
    /// Takes as many tokens as there are, up to `most`, which is at least 1; returns how many.
    fn acquire_up_to(&self, most: u64, now: u64) -> u64;
    /// The same as `acquire`, and the time at which it was decided.
    fn charge(&self, cost: u64, now: u64) -> (Decision, u64);
    /// Gives back tokens that were taken at `taken_at`, or of the latest ones.
    fn refund(&self, tokens: u64, taken_at: Option<u64>, now: u64);
}

/// One bucket of one algorithm.
#[derive(Debug)]
pub struct SharedCell<A: Algorithm> {
    algorithm: A,
    bucket: Mutex<Shared<A::State>>,
}

#[derive(Debug)]
struct Shared<S> {
    state: S,
    /// The latest time decided at: time in here never runs back.
    latest: u64,
}

impl<A: Algorithm> SharedCell<A> {
    pub(crate) fn new(algorithm: A) -> Self {
        // A full bucket, an empty log: as good at any later time.
        let state = algorithm.fresh(0);
        Self {
            algorithm,
            bucket: Mutex::new(Shared { state, latest: 0 }),
        }
    }

    /// Acts on the bucket's state at the call's time: `now`, or the latest decided at.
    #[inline]
    fn act<R>(&self, now: u64, act: impl Fn(&A, &mut A::State, u64) -> R) -> R {
        let mut bucket = lock(&self.bucket);
        let now = bucket.latest.max(now);
        bucket.latest = now;
        act(&self.algorithm, &mut bucket.state, now)
    }
}

impl<A: Algorithm> Cell for SharedCell<A> {
    fn burst(&self) -> u64 {
        self.algorithm.burst()
    }

    #[inline]
    fn allow(&self, now: u64) -> bool {
        self.act(now, |algorithm, state, now| {
            algorithm.attempt(state, 1, now)
        })
    }

    #[inline]
    fn charge(&self, cost: u64, now: u64) -> (Decision, u64) {
        let burst = self.algorithm.burst();
        if cost > burst {
            return (Decision::TooLarge { burst }, now);
        }
        self.act(now, |algorithm, state, now| {
            let admitted = cost == 0 || algorithm.attempt(state, cost, now);
            (algorithm.report(state, cost, now, admitted), now)
        })
    }

    fn acquire_up_to(&self, most: u64, now: u64) -> u64 {
        self.act(now, |algorithm, state, now| {
            algorithm.attempt_up_to(state, most, now)
        })
    }

    fn refund(&self, tokens: u64, taken_at: Option<u64>, now: u64) {
        self.act(now, |algorithm, state, now| {
            algorithm.refund(state, tokens, taken_at, now);
        });
    }
}

/// A bucket, token or leaky, in the width that its quota needs.
#[derive(Debug)]
pub enum BucketCell {
    /// A level of 64 bits.
    Narrow(SharedCell<Bucket<i64>>),
    /// A level of 128 bits.
    Wide(SharedCell<Bucket<Wide>>),
}

/// One bucket of the algorithm chosen at run time.
#[derive(Debug)]
pub enum AnyCell {
    /// A token or leaky bucket.
    Bucket(BucketCell),
    /// A fixed window.
    FixedWindow(SharedCell<FixedWindows>),
    /// A sliding log.
    SlidingLog(SharedCell<SlidingLogs>),
    /// A sliding window counter.
    SlidingWindowCounter(SharedCell<SlidingWindowCounters>),
}

/// Hands every call to the variant at hand.
macro_rules! delegate {
    ($cell:ty { $($variant:ident),+ }) => {
        impl Cell for $cell {
            fn burst(&self) -> u64 {
                match self { $(Self::$variant(cell) => cell.burst()),+ }
            }

            #[inline]
            fn allow(&self, now: u64) -> bool {
                match self { $(Self::$variant(cell) => cell.allow(now)),+ }
            }

            fn acquire_up_to(&self, most: u64, now: u64) -> u64 {
                match self { $(Self::$variant(cell) => cell.acquire_up_to(most, now)),+ }
            }

            #[inline]
            fn charge(&self, cost: u64, now: u64) -> (Decision, u64) {
                match self { $(Self::$variant(cell) => cell.charge(cost, now)),+ }
            }

            fn refund(&self, tokens: u64, taken_at: Option<u64>, now: u64) {
                match self { $(Self::$variant(cell) => cell.refund(tokens, taken_at, now)),+ }
            }
        }
    };
}

delegate!(BucketCell { Narrow, Wide });
delegate!(AnyCell {
    Bucket,
    FixedWindow,
    SlidingLog,
    SlidingWindowCounter
});
