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
    fn acquire(&self, cost: u64, now: u64) -> Decision;
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

    #[inline]
    fn call<R>(&self, cost: u64, now: u64, answer: impl Fn(&A, &A::State, u64, bool) -> R) -> R {
        let mut bucket = lock(&self.bucket);
        let now = bucket.latest.max(now);
        bucket.latest = now;
        let admitted = cost == 0 || self.algorithm.attempt(&mut bucket.state, cost, now);
        answer(&self.algorithm, &bucket.state, now, admitted)
    }
}

impl<A: Algorithm> Cell for SharedCell<A> {
    fn burst(&self) -> u64 {
        self.algorithm.burst()
    }

    #[inline]
    fn allow(&self, now: u64) -> bool {
        self.call(1, now, |_, _, _, admitted| admitted)
    }

    #[inline]
    fn acquire(&self, cost: u64, now: u64) -> Decision {
        let (decision, _) = self.charge(cost, now);
        decision
    }

    #[inline]
    fn charge(&self, cost: u64, now: u64) -> (Decision, u64) {
        let burst = self.algorithm.burst();
        if cost > burst {
            return (Decision::TooLarge { burst }, now);
        }
        self.call(cost, now, |algorithm, state, now, admitted| {
            (algorithm.report(state, cost, now, admitted), now)
        })
    }

    fn refund(&self, tokens: u64, taken_at: Option<u64>, now: u64) {
        let mut bucket = lock(&self.bucket);
        let now = bucket.latest.max(now);
        bucket.latest = now;
        self.algorithm
            .refund(&mut bucket.state, tokens, taken_at, now);
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

            #[inline]
            fn acquire(&self, cost: u64, now: u64) -> Decision {
                match self { $(Self::$variant(cell) => cell.acquire(cost, now)),+ }
            }

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
