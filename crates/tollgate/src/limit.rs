//! Which algorithm a limiter runs: named by a type, or chosen at run time.

use core::fmt::Debug;

use crate::algorithm::bucket::{AnyWidth, Bucket};
use crate::algorithm::fixed_window::{FixedWindow, FixedWindows};
use crate::algorithm::leaky_bucket::LeakyBucket;
use crate::algorithm::sliding_log::{SlidingLog, SlidingLogs};
use crate::algorithm::sliding_window_counter::{SlidingWindowCounter, SlidingWindowCounters};
use crate::algorithm::token_bucket::TokenBucket;
use crate::cell::{AnyCell, BucketCell, Cell, SharedCell};
use crate::keyed::shards::Shards;
use crate::keyed::store::{AnyStore, BucketStore, Store, StorePlan};
use crate::wire::Wire;
use crate::{BuildError, Quota, Tokens};

/// A limit that limiters are built from: [`TokenBucket`] (the default), [`LeakyBucket`],
/// [`FixedWindow`], [`SlidingLog`], [`SlidingWindowCounter`], or [`AnyLimit`], one of these chosen
/// at run time.
///
/// Each is a plain `Copy` value; its numbers are checked once, where a limiter is built. The trait
/// is sealed: what an algorithm must promise is not settled for others to implement.
pub trait Limit: Copy + Debug + Send + Sync + 'static + sealed::Limit {}

/// What a limiter can be built from: a [`Quota`], which means a token bucket, or any [`Limit`].
pub trait IntoLimit: sealed::IntoLimit {
    /// The limit meant.
    type Limit: Limit;

    /// The limit meant.
    fn into_limit(self) -> Self::Limit;
}

impl<L: Limit> IntoLimit for L {
    type Limit = Self;

    fn into_limit(self) -> Self {
        self
    }
}

impl IntoLimit for Quota {
    type Limit = TokenBucket;

    fn into_limit(self) -> TokenBucket {
        TokenBucket::new(self)
    }
}

/// Public in name only: what a limit is made into is no part of the interface.
pub(crate) mod sealed {
    use super::{BuildError, Cell, Store, StorePlan};

    pub trait IntoLimit {}

    impl<L: Limit> IntoLimit for L {}
    impl IntoLimit for crate::Quota {}

    pub trait Limit {
        /// The limit, its numbers known to be good.
        type Valid: Shapes;

        /// Checks every number of the limit, for clients who may come to owe `debt` tokens.
        fn validated(self, debt: u64) -> Result<Self::Valid, BuildError>;
    }

    /// The two things that a validated limit is made into.
    pub trait Shapes: Sized {
        /// A bucket a client.
        type Keyed: Store<Valid = Self>;
        /// One bucket.
        type Single: Cell<Valid = Self>;

        /// With as many other limits as there are plans.
        fn keyed(self, others: Vec<Self>, plan: StorePlan) -> Result<Self::Keyed, BuildError>;
        fn single(self) -> Self::Single;
    }
}

impl<A: Wire> sealed::Shapes for A {
    type Keyed = Shards<A>;
    type Single = SharedCell<A>;

    fn keyed(self, others: Vec<A>, plan: StorePlan) -> Result<Shards<A>, BuildError> {
        if others
            .iter()
            .any(|other| self.may_become(other, Tokens::Kept).is_err())
        {
            return Err(BuildError::PlanOfOtherAlgorithm);
        }
        plan.build(self, others.into())
    }

    fn single(self) -> SharedCell<A> {
        SharedCell::new(self)
    }
}

impl sealed::Shapes for AnyWidth {
    type Keyed = BucketStore;
    type Single = BucketCell;

    /// All in the width of the widest.
    fn keyed(self, others: Vec<Self>, plan: StorePlan) -> Result<BucketStore, BuildError> {
        let narrow: Option<Vec<Bucket<i64>>> = others.iter().map(|other| other.narrow()).collect();
        Ok(match (self.narrow(), narrow) {
            (Some(first), Some(others)) => BucketStore::Narrow(first.keyed(others, plan)?),
            _ => {
                let others = others.into_iter().map(Self::wide).collect();
                BucketStore::Wide(self.wide().keyed(others, plan)?)
            }
        })
    }

    fn single(self) -> BucketCell {
        match self {
            Self::Narrow(bucket) => BucketCell::Narrow(bucket.single()),
            Self::Wide(bucket) => BucketCell::Wide(bucket.single()),
        }
    }
}

/// An algorithm chosen at run time.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{AnyLimit, FixedWindow, KeyedLimiter, ManualClock, Rate};
///
/// fn limit(name: &str) -> AnyLimit {
///     match name {
///         "fixed-window" => FixedWindow::new(2, Duration::from_secs(1)).into(),
///         _ => Rate::per_second(2).burst(2).into(),
///     }
/// }
/// for name in ["fixed-window", "token-bucket"] {
///     let clock = ManualClock::default();
///     let limiter = KeyedLimiter::builder(limit(name), 100).clock(clock).build()?;
///     assert!(limiter.try_acquire("alice", 2).is_allowed());
///     assert!(!limiter.allow("alice"));
/// }
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnyLimit {
    /// Up to a burst at once, the rate in the long run.
    TokenBucket(TokenBucket),
    /// A queue that drains at the rate.
    LeakyBucket(LeakyBucket),
    /// A count that starts again when its window has closed.
    FixedWindow(FixedWindow),
    /// Every admitted call counts until it is one window old.
    SlidingLog(SlidingLog),
    /// Two counters that stand in for a log.
    SlidingWindowCounter(SlidingWindowCounter),
}

impl From<Quota> for AnyLimit {
    fn from(quota: Quota) -> Self {
        Self::TokenBucket(TokenBucket::new(quota))
    }
}

/// A limit chosen at run time, its numbers known to be good.
#[derive(Clone, Copy, Debug)]
pub enum AnyValid {
    /// Token or leaky.
    Bucket(AnyWidth),
    /// A fixed window.
    FixedWindow(FixedWindows),
    /// A sliding log.
    SlidingLog(SlidingLogs),
    /// A sliding window counter.
    SlidingWindowCounter(SlidingWindowCounters),
}

impl sealed::Shapes for AnyValid {
    type Keyed = AnyStore;
    type Single = AnyCell;

    fn keyed(self, others: Vec<Self>, plan: StorePlan) -> Result<AnyStore, BuildError> {
        /// The others, if all of them are of the first one's kind.
        fn alike<T>(
            others: Vec<AnyValid>,
            of: impl Fn(AnyValid) -> Option<T>,
        ) -> Result<Vec<T>, BuildError> {
            let alike: Option<Vec<T>> = others.into_iter().map(of).collect();
            alike.ok_or(BuildError::PlanOfOtherAlgorithm)
        }
        macro_rules! keyed {
            ($($variant:ident),+) => {
                match self {
                    $(Self::$variant(first) => {
                        let others = alike(others, |other| match other {
                            Self::$variant(other) => Some(other),
                            _ => None,
                        })?;
                        AnyStore::$variant(first.keyed(others, plan)?)
                    })+
                }
            };
        }
        Ok(keyed!(
            Bucket,
            FixedWindow,
            SlidingLog,
            SlidingWindowCounter
        ))
    }

    fn single(self) -> AnyCell {
        match self {
            Self::Bucket(limit) => AnyCell::Bucket(limit.single()),
            Self::FixedWindow(limit) => AnyCell::FixedWindow(limit.single()),
            Self::SlidingLog(limit) => AnyCell::SlidingLog(limit.single()),
            Self::SlidingWindowCounter(limit) => AnyCell::SlidingWindowCounter(limit.single()),
        }
    }
}

impl Limit for AnyLimit {}

impl sealed::Limit for AnyLimit {
    type Valid = AnyValid;

    fn validated(self, debt: u64) -> Result<AnyValid, BuildError> {
        Ok(match self {
            Self::TokenBucket(limit) => AnyValid::Bucket(limit.validated(debt)?),
            Self::LeakyBucket(limit) => AnyValid::Bucket(limit.validated(debt)?),
            Self::FixedWindow(limit) => AnyValid::FixedWindow(limit.validated(debt)?),
            Self::SlidingLog(limit) => AnyValid::SlidingLog(limit.validated(debt)?),
            Self::SlidingWindowCounter(limit) => {
                AnyValid::SlidingWindowCounter(limit.validated(debt)?)
            }
        })
    }
}

/// Each algorithm is a limit by its own `validated`, and one that `AnyLimit` can be.
macro_rules! limits {
    ($($name:ident => $valid:ty),+) => {$(
        impl Limit for $name {}

        impl sealed::Limit for $name {
            type Valid = $valid;

            fn validated(self, debt: u64) -> Result<$valid, BuildError> {
                Self::validated(self, debt)
            }
        }

        impl From<$name> for AnyLimit {
            fn from(limit: $name) -> Self {
                Self::$name(limit)
            }
        }
    )+};
}

limits! {
    TokenBucket => AnyWidth,
    LeakyBucket => AnyWidth,
    FixedWindow => FixedWindows,
    SlidingLog => SlidingLogs,
    SlidingWindowCounter => SlidingWindowCounters
}
