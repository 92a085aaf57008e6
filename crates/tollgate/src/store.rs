//! What a shared backend must promise.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::time::Duration;

use crate::{AnyLimit, Decision, Timestamp};

/// What a store will have answered.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Buckets that several processes share, such as those in a database.
///
/// Whoever asks does not wait for ever: a future that is dropped before it is ready leaves the
/// store fit for the next call, and what it may have taken stays taken.
///
/// ```
/// use tollgate::{
///     AnyLimit, KeyedLimiter, Plan, Rate, Store, StoreAnswer, StoreAsk, StoreFuture, Timestamp,
///     acquire_all,
/// };
///
/// /// A store that is none: one limit's buckets, in this process.
/// #[derive(Debug)]
/// struct Here(KeyedLimiter<AnyLimit>);
///
/// impl Store for Here {
///     fn acquire_all<'a>(
///         &'a self,
///         asks: &'a [StoreAsk<'a>],
///     ) -> StoreFuture<'a, Vec<StoreAnswer>> {
///         Box::pin(async move {
///             let own = asks.iter().map(|ask| {
///                 self.0.ask(ask.client, ask.cost).within(ask.max_delay)
///             });
///             let mut own: Vec<_> = own.collect();
///             let _ = acquire_all(&mut own);
///             Ok(own.iter().map(StoreAnswer::from).collect())
///         })
///     }
///
///     fn cancel<'a>(
///         &'a self,
///         ask: &'a StoreAsk<'a>,
///         _: Timestamp,
///     ) -> StoreFuture<'a, StoreAnswer> {
///         Box::pin(async move {
///             self.0.refund(ask.client, ask.cost);
///             let mut look = [self.0.ask(ask.client, 0)];
///             let _ = acquire_all(&mut look);
///             Ok(StoreAnswer::from(&look[0]))
///         })
///     }
/// }
///
/// let quota = Rate::per_hour(1).burst(1);
/// let store = Here(KeyedLimiter::builder(AnyLimit::from(quota), 100).build()?);
/// let ask = StoreAsk::new("a", quota.into(), b"alice", 1);
/// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
/// # let mut now = |mut future: StoreFuture<'_, Vec<StoreAnswer>>| {
/// #     match future.as_mut().poll(&mut context) {
/// #     std::task::Poll::Ready(Ok(answers)) => answers[0].decision,
/// #     other => panic!("{other:?}"),
/// #     }
/// # };
/// assert!(now(store.acquire_all(&[ask])).is_allowed()); // awaited, in an async function
/// assert!(!now(store.acquire_all(&[ask])).is_allowed());
/// # Ok::<(), tollgate::BuildError>(())
/// ```
pub trait Store: fmt::Debug + Send + Sync {
    /// Takes from each of several buckets what it is asked for, if each can give it; else from
    /// none. One answer an ask, in their order: if all were charged, what each would have answered
    /// alone; if not, each one's refusal, or what there is where it would not have refused.
    ///
    /// # Errors
    ///
    /// The store did not answer, or nonsense. What was asked for may have been taken or not.
    fn acquire_all<'a>(&'a self, asks: &'a [StoreAsk<'a>]) -> StoreFuture<'a, Vec<StoreAnswer>>;

    /// Gives back what was taken for an ask at that time, as far as it still counts
    /// ([`cancel_aged`](crate::KeyedLimiter::cancel_aged)); answers what a look says then.
    ///
    /// # Errors
    ///
    /// As [`acquire_all`](Self::acquire_all).
    fn cancel<'a>(
        &'a self,
        ask: &'a StoreAsk<'a>,
        taken_at: Timestamp,
    ) -> StoreFuture<'a, StoreAnswer>;
}

/// What is asked of one bucket of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreAsk<'a> {
    /// Of which limit the bucket is: two limits of one name share their buckets.
    pub limit: &'a str,
    /// What it is held to.
    pub rule: AnyLimit,
    /// Whose it is: any bytes.
    pub client: &'a [u8],
    /// How many tokens.
    pub cost: u64,
    /// The longest delay with which a leaky bucket is to admit it.
    pub max_delay: Duration,
}

impl<'a> StoreAsk<'a> {
    /// So many tokens, however long a leaky bucket delays them.
    #[must_use]
    pub const fn new(limit: &'a str, rule: AnyLimit, client: &'a [u8], cost: u64) -> Self {
        Self {
            limit,
            rule,
            client,
            cost,
            max_delay: Duration::MAX,
        }
    }
}

/// What a store answered for one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an answer that is not looked at limits nobody"]
#[non_exhaustive]
pub struct StoreAnswer {
    /// The answer.
    pub decision: Decision,
    /// How long after it the same call would be allowed: see
    /// [`Ask::again_after`](crate::Ask::again_after).
    pub again_after: Option<Duration>,
    /// When it was judged, by the store's clock.
    pub at: Timestamp,
}

impl StoreAnswer {
    /// That answer, at that time.
    pub const fn new(decision: Decision, again_after: Option<Duration>, at: Timestamp) -> Self {
        Self {
            decision,
            again_after,
            at,
        }
    }
}

impl From<&crate::Ask<'_>> for StoreAnswer {
    #[inline]
    fn from(ask: &crate::Ask<'_>) -> Self {
        Self::new(ask.decision(), ask.again_after(), ask.judged_at())
    }
}

/// Why a store did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// Not in time.
    TimedOut,
    /// It cannot be reached, or refused to.
    Unavailable {
        /// What it said.
        reason: String,
    },
    /// What it said makes no sense.
    Nonsense {
        /// What it said.
        reason: String,
    },
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => f.write_str("the store did not answer in time"),
            Self::Unavailable { reason } => write!(f, "the store is not available: {reason}"),
            Self::Nonsense { reason } => write!(f, "the store's answer makes no sense: {reason}"),
        }
    }
}

impl core::error::Error for StoreError {}
