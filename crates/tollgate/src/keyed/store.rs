//! One face for every kind of store: which algorithm, and in how many bits.

use core::fmt::Debug;

use super::clients::{LongestHold, Rules};
use super::key::{Key, Places};
use super::shards::Shards;
use crate::Decision;
use crate::algorithm::Algorithm;
use crate::algorithm::bucket::{Bucket, Wide};
use crate::algorithm::fixed_window::FixedWindows;
use crate::algorithm::sliding_log::SlidingLogs;
use crate::algorithm::sliding_window_counter::SlidingWindowCounters;

/// How to build a store, but for the limit itself.
#[derive(Clone, Copy, Debug)]
pub struct StorePlan {
    pub(crate) places: Places,
    pub(crate) max_clients: u64,
    pub(crate) idle: Idle,
}

/// When a client is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Idle {
    /// As soon as no past call of its counts any more.
    Settled,
    After(u64),
    Never,
}

/// Clients by key, and the limit they are held to.
pub trait Store: Debug + Send + Sync {
    /// The most that one call can take.
    fn burst(&self) -> u64;
    /// Takes one token.
    fn allow(&self, key: Key, now: u64) -> bool;
    /// Takes `cost` tokens, or looks at 0.
    #[inline]
    fn acquire(&self, key: Key, cost: u64, now: u64) -> Decision {
        let (decision, _) = self.charge(key, cost, now);
        decision
    }
    /// Takes as many tokens as there are, up to `most`, which is at least 1; returns how many.
    fn acquire_up_to(&self, key: Key, most: u64, now: u64) -> u64;
    /// The same as `acquire`, and the time at which it was decided.
    fn charge(&self, key: Key, cost: u64, now: u64) -> (Decision, u64);
    /// Gives back tokens that were taken at `taken_at`, or of the latest ones.
    fn refund(&self, key: Key, tokens: u64, taken_at: Option<u64>, now: u64);
    /// Forgets one client.
    fn remove(&self, key: Key, now: u64) -> bool;
    /// Forgets who is idle.
    fn forget_idle(&self, now: u64) -> u64;
    /// Clients tracked once who is idle was forgotten.
    fn len(&self, now: u64) -> u64;
    /// The most that was ever done under one lock.
    fn longest_hold(&self) -> LongestHold;
    /// Bytes on the heap.
    fn memory_bytes(&self) -> usize;
    /// Panics unless the store is in order.
    #[cfg(any(test, loom))]
    fn validate(&self);
}

impl StorePlan {
    pub(crate) fn build<A: Algorithm>(self, algorithm: A) -> Shards<A> {
        let idle_ns = match self.idle {
            Idle::Settled => algorithm.settles_after(),
            Idle::After(idle_ns) => Some(idle_ns),
            Idle::Never => None,
        };
        Shards::new(
            Rules::new(algorithm, idle_ns),
            self.places,
            self.max_clients,
        )
    }
}

impl<A: Algorithm> Store for Shards<A> {
    fn burst(&self) -> u64 {
        self.algorithm().burst()
    }

    #[inline]
    fn allow(&self, key: Key, now: u64) -> bool {
        self.attempt(key, now, |algorithm, state, now| {
            algorithm.attempt(state, 1, now)
        })
        .unwrap_or(false)
    }

    #[inline]
    fn charge(&self, key: Key, cost: u64, now: u64) -> (Decision, u64) {
        let burst = self.algorithm().burst();
        if cost > burst {
            return (Decision::TooLarge { burst }, now);
        }
        let answered = if cost == 0 {
            self.look(key, now, |algorithm, state, now| {
                (algorithm.report(state, 0, now, true), now)
            })
        } else {
            self.attempt(key, now, |algorithm, state, now| {
                let admitted = algorithm.attempt(state, cost, now);
                (algorithm.report(state, cost, now, admitted), now)
            })
        };
        answered.unwrap_or((Decision::ClientLimit, now))
    }

    fn acquire_up_to(&self, key: Key, most: u64, now: u64) -> u64 {
        self.attempt(key, now, |algorithm, state, now| {
            algorithm.attempt_up_to(state, most, now)
        })
        .unwrap_or(0)
    }

    fn refund(&self, key: Key, tokens: u64, taken_at: Option<u64>, now: u64) {
        Self::refund(self, key, tokens, taken_at, now);
    }

    fn remove(&self, key: Key, now: u64) -> bool {
        Self::remove(self, key, now)
    }

    fn forget_idle(&self, now: u64) -> u64 {
        Self::forget_idle(self, now)
    }

    fn len(&self, now: u64) -> u64 {
        Self::len(self, now)
    }

    fn longest_hold(&self) -> LongestHold {
        Self::longest_hold(self)
    }

    fn memory_bytes(&self) -> usize {
        Self::memory_bytes(self)
    }

    #[cfg(any(test, loom))]
    fn validate(&self) {
        Self::validate(self);
    }
}

/// Buckets, token or leaky, in the width that their quota needs.
#[derive(Debug)]
pub enum BucketStore {
    /// 16 bytes a client.
    Narrow(Shards<Bucket<i64>>),
    /// 24 bytes a client.
    Wide(Shards<Bucket<Wide>>),
}

/// A store of the algorithm chosen at run time.
#[derive(Debug)]
pub enum AnyStore {
    /// Token or leaky buckets.
    Bucket(BucketStore),
    /// Fixed windows.
    FixedWindow(Shards<FixedWindows>),
    /// Sliding logs.
    SlidingLog(Shards<SlidingLogs>),
    /// Sliding window counters.
    SlidingWindowCounter(Shards<SlidingWindowCounters>),
}

/// Hands every call to the variant at hand.
macro_rules! delegate {
    ($store:ty { $($variant:ident),+ }) => {
        impl Store for $store {
            fn burst(&self) -> u64 {
                match self { $(Self::$variant(store) => store.burst()),+ }
            }

            #[inline]
            fn allow(&self, key: Key, now: u64) -> bool {
                match self { $(Self::$variant(store) => store.allow(key, now)),+ }
            }

            fn acquire_up_to(&self, key: Key, most: u64, now: u64) -> u64 {
                match self { $(Self::$variant(store) => store.acquire_up_to(key, most, now)),+ }
            }

            #[inline]
            fn charge(&self, key: Key, cost: u64, now: u64) -> (Decision, u64) {
                match self { $(Self::$variant(store) => store.charge(key, cost, now)),+ }
            }

            fn refund(&self, key: Key, tokens: u64, taken_at: Option<u64>, now: u64) {
                match self {
                    $(Self::$variant(store) => store.refund(key, tokens, taken_at, now)),+
                }
            }

            fn remove(&self, key: Key, now: u64) -> bool {
                match self { $(Self::$variant(store) => store.remove(key, now)),+ }
            }

            fn forget_idle(&self, now: u64) -> u64 {
                match self { $(Self::$variant(store) => store.forget_idle(now)),+ }
            }

            fn len(&self, now: u64) -> u64 {
                match self { $(Self::$variant(store) => store.len(now)),+ }
            }

            fn longest_hold(&self) -> LongestHold {
                match self { $(Self::$variant(store) => store.longest_hold()),+ }
            }

            fn memory_bytes(&self) -> usize {
                match self { $(Self::$variant(store) => store.memory_bytes()),+ }
            }

            #[cfg(any(test, loom))]
            fn validate(&self) {
                match self { $(Self::$variant(store) => store.validate()),+ }
            }
        }
    };
}

delegate!(BucketStore { Narrow, Wide });
delegate!(AnyStore {
    Bucket,
    FixedWindow,
    SlidingLog,
    SlidingWindowCounter
});
