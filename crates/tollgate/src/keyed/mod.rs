//! A bucket a client, bounded.

mod clients;
mod expiry;
mod fingerprint;
pub(crate) mod key;
pub(crate) mod shards;
pub(crate) mod store;
mod table;

#[cfg(test)]
#[cfg(loom)]
mod loom_tests;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;

use core::fmt;
use core::hash::Hash;
use core::time::Duration;

use crate::charge::Issuer;
use crate::clock::Timeline;
use crate::limit::sealed::Shapes;
use crate::{
    BuildError, Charge, Clock, ClockWentBackwards, Decision, IntoLimit, Limit, MonotonicClock,
    Quota, Timestamp, TokenBucket,
};
pub use clients::LongestHold;
use key::Secrets;
use store::{Idle, Store, StorePlan};

type Keyed<L> = <<L as crate::limit::sealed::Limit>::Valid as Shapes>::Keyed;

/// So many shards that threads seldom meet in one and that growing or sweeping one is short.
const SHARD_BITS: u32 = 8;
/// Below so many clients one shard will do.
const FEW_CLIENTS: u64 = 4_096;

/// A bucket a client, for at most `max_clients` of them.
///
/// Any `Hash` is a key, borrowed or compound: `"alice"`, `&("tenant-7", user_id)`, an `IpAddr`. Two
/// keys are one client when they make the same calls to the `Hasher`, as equal keys do and a `str`
/// and a `String` of the same text; never when they feed it different bytes. Names are not stored,
/// so a client costs the same few bytes however long its name, and no call allocates for one
/// already tracked, but for a sliding log's entries and a smaller table once a crowd has left.
///
/// A client is forgotten once its last attempt is `idle` ago: by default the time after which no
/// past call counts, where forgetting changes no answer. There is no background thread, and no lock
/// is held for long: each call looks at up to two clients that may be due, and only a newcomer to a
/// full table looks at more, at most 64 under one lock, but at each that may be due before it is
/// refused. A newcomer is refused ([`Decision::ClientLimit`]) only if `max_clients` clients are
/// tracked and none of them is idle; nobody is ever forgotten early for it.
///
/// All calls may be made from many threads at once. Calls for one client are decided one after the
/// other, at a time that never runs back; calls for two clients wait on each other for one
/// decision, or for one shard's table to grow or shrink. No code of yours (`Hash`, [`Clock`]) runs
/// under a lock.
///
/// ```
/// use tollgate::{Decision, KeyedLimiter, Rate};
///
/// let user_id = 42;
/// let limiter = KeyedLimiter::new(Rate::per_second(5).burst(10), 100_000)?;
/// assert!(limiter.allow("alice"));
/// assert!(limiter.try_acquire(&("tenant-7", user_id), 10).is_allowed());
/// match limiter.try_acquire(&("tenant-7", user_id), 3) {
///     Decision::Allowed { remaining, .. } => unreachable!("{remaining} left"),
///     refused => println!("429, retry after {:?}", refused.retry_after()), // None: never
/// }
/// # Ok::<(), tollgate::BuildError>(())
/// ```
pub struct KeyedLimiter<L: Limit = TokenBucket, C: Clock = MonotonicClock> {
    store: Keyed<L>,
    secrets: Secrets,
    issuer: Issuer,
    max_clients: usize,
    timeline: Timeline<C>,
}

impl KeyedLimiter {
    /// A full token bucket of this quota for every client, at most `max_clients` of them at a time.
    ///
    /// # Errors
    ///
    /// A rate, period, burst or `max_clients` of zero, or a quota beyond the stated bound.
    ///
    /// ```
    /// use tollgate::{KeyedLimiter, Rate};
    ///
    /// let limiter = KeyedLimiter::new(Rate::per_hour(1).burst(1), 2)?;
    /// assert!(limiter.allow("alice") && limiter.allow("bob"));
    /// assert!(!limiter.allow("alice"), "no token left");
    /// assert!(!limiter.allow("carol"), "two clients are tracked");
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn new(quota: Quota, max_clients: usize) -> Result<Self, BuildError> {
        Self::builder(quota, max_clients).build()
    }

    /// A limiter of any [`Limit`], or of a quota as a token bucket, to be given a clock or another
    /// idle time. `usize::MAX` clients are as many as there is memory for.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{KeyedLimiter, ManualClock, SlidingLog};
    ///
    /// let clock = ManualClock::default();
    /// let limiter = KeyedLimiter::builder(SlidingLog::new(1, Duration::from_secs(1)), 1)
    ///     .idle(Duration::from_secs(60))
    ///     .clock(clock.clone())
    ///     .build()?;
    /// assert!(limiter.allow("alice"));
    /// clock.advance(Duration::from_secs(59));
    /// assert!(!limiter.allow("bob"), "alice still has the one place");
    /// clock.advance(Duration::from_secs(1));
    /// assert!(limiter.allow("bob"));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn builder<I: IntoLimit>(limit: I, max_clients: usize) -> KeyedLimiterBuilder<I::Limit> {
        KeyedLimiterBuilder {
            limit: limit.into_limit(),
            max_clients,
            idle: Idle::Settled,
            shard_bits: None,
            clock: MonotonicClock::new(),
        }
    }
}

impl<L: Limit, C: Clock> KeyedLimiter<L, C> {
    /// Takes one token from the client's bucket if there is one: whether it may proceed right now.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    ///
    /// ```
    /// use tollgate::{KeyedLimiter, Rate};
    ///
    /// let limiter = KeyedLimiter::new(Rate::per_hour(1).burst(1), 100)?;
    /// assert!(limiter.allow("alice"));
    /// assert!(!limiter.allow("alice"));
    /// assert!(limiter.allow("bob"));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[inline]
    #[must_use = "a decision that is not looked at limits nobody"]
    pub fn allow<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let now = self.timeline.read();
        self.store.allow(self.secrets.key(key), now)
    }

    /// Takes `cost` tokens from the client's bucket if that many are there, else nothing. 0 looks:
    /// it takes nothing, tracks nobody, keeps nobody alive, and is always allowed.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    ///
    /// ```
    /// use tollgate::{Decision, KeyedLimiter, Rate};
    ///
    /// let limiter = KeyedLimiter::new(Rate::per_hour(1).burst(5), 100)?;
    /// assert_eq!(limiter.try_acquire("alice", 3).remaining(), 2);
    /// assert!(matches!(limiter.try_acquire("alice", 3), Decision::Limited { remaining: 2, .. }));
    /// assert_eq!(limiter.try_acquire("alice", 6), Decision::TooLarge { burst: 5 });
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[inline]
    pub fn try_acquire<K: Hash + ?Sized>(&self, key: &K, cost: u64) -> Decision {
        let now = self.timeline.read();
        self.store.acquire(self.secrets.key(key), cost, now)
    }

    /// The same at a time that the caller brings, which every later one must not be below,
    /// whichever client it is for. Where threads race, a call is judged at the latest time that
    /// its client's shard has seen.
    ///
    /// A limiter's calls should all bring their time, or all leave it to the clock: one that reads
    /// the clock in between (`peek`, `remove`, `len`, `forget_idle`) moves time on to it for good.
    ///
    /// # Errors
    ///
    /// [`ClockWentBackwards`] if a later time was seen before; nothing was changed then.
    ///
    /// ```
    /// use tollgate::{KeyedLimiter, Rate, Timestamp};
    ///
    /// let limiter = KeyedLimiter::new(Rate::per_second(1).burst(1), 100)?;
    /// assert!(limiter.try_acquire_at("alice", 1, Timestamp::from_nanos(7))?.is_allowed());
    /// assert!(!limiter.try_acquire_at("alice", 1, Timestamp::from_nanos(7))?.is_allowed());
    /// assert!(limiter.try_acquire_at("bob", 1, Timestamp::from_nanos(6)).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_acquire_at<K: Hash + ?Sized>(
        &self,
        key: &K,
        cost: u64,
        now: Timestamp,
    ) -> Result<Decision, ClockWentBackwards> {
        let now = self.timeline.inject(now)?;
        Ok(self.store.acquire(self.secrets.key(key), cost, now))
    }

    /// What remains for a client, without taking anything: as [`try_acquire`](Self::try_acquire)
    /// with a cost of 0. Where calls bring their time, look with
    /// [`try_acquire_at`](Self::try_acquire_at) instead: see there.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    ///
    /// ```
    /// use tollgate::{KeyedLimiter, Rate};
    ///
    /// let limiter = KeyedLimiter::new(Rate::per_hour(1).burst(1), 100)?;
    /// assert_eq!(limiter.peek("alice").remaining(), 1);
    /// assert!(limiter.is_empty(), "a look tracks nobody");
    /// assert!(limiter.allow("alice"));
    /// assert!(!limiter.allow("alice"));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn peek<K: Hash + ?Sized>(&self, key: &K) -> Decision {
        self.try_acquire(key, 0)
    }

    /// Takes as many tokens as there are, up to `most`: for work that can be cut to size. Returns
    /// how many, which is 0 if none are there, or if the client is new and as many as may be
    /// are tracked.
    ///
    /// Counts as an attempt even if it takes nothing, but for a `most` of 0.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    ///
    /// ```
    /// use tollgate::{KeyedLimiter, Rate};
    ///
    /// let limiter = KeyedLimiter::new(Rate::per_hour(1).burst(5), 100)?;
    /// assert_eq!(limiter.acquire_up_to("alice", 3), 3);
    /// assert_eq!(limiter.acquire_up_to("alice", 3), 2);
    /// assert_eq!(limiter.acquire_up_to("alice", 3), 0);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use = "tokens taken and not used limit nobody else"]
    pub fn acquire_up_to<K: Hash + ?Sized>(&self, key: &K, most: u64) -> u64 {
        let now = self.timeline.read();
        if most == 0 {
            return 0;
        }
        self.store.acquire_up_to(self.secrets.key(key), most, now)
    }

    /// Takes `cost` tokens as [`try_acquire`](Self::try_acquire) does, in a way that they can be
    /// given back: for work that may turn out not to count.
    ///
    /// # Errors
    ///
    /// Any answer but `Allowed`: nothing was taken.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    ///
    /// ```
    /// use tollgate::{Decision, KeyedLimiter, Rate};
    ///
    /// let limiter = KeyedLimiter::new(Rate::per_hour(1).burst(3), 100)?;
    /// let charge = limiter.charge("alice", 2).expect("a new client has its burst");
    /// assert_eq!(charge.decision().remaining(), 1);
    /// let refused = limiter.charge("alice", 2).unwrap_err();
    /// assert!(matches!(refused, Decision::Limited { remaining: 1, .. }));
    /// limiter.cancel(charge);
    /// assert_eq!(limiter.peek("alice").remaining(), 3);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn charge<K: Hash + ?Sized>(&self, key: &K, cost: u64) -> Result<Charge, Decision> {
        let now = self.timeline.read();
        let key = self.secrets.key(key);
        self.issuer
            .charge(key, cost, self.store.charge(key, cost, now))
    }

    /// Gives back what was taken, as far as it still counts: a bucket takes in at most its burst,
    /// a window only what was taken from it. Somebody who was forgotten meanwhile has all of it
    /// anyway. Does not keep a client from going idle.
    ///
    /// A charge of another limiter changes nothing.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{FixedWindow, KeyedLimiter, ManualClock};
    ///
    /// let clock = ManualClock::default();
    /// let window = FixedWindow::new(5, Duration::from_secs(10)).aligned();
    /// let limiter = KeyedLimiter::builder(window, 100).clock(clock.clone()).build()?;
    /// let charge = limiter.charge("alice", 5).expect("a new client has its limit");
    /// assert!(!limiter.allow("alice"));
    /// clock.advance(Duration::from_secs(10));
    /// assert!(limiter.allow("alice"));
    /// limiter.cancel(charge); // of the window before
    /// assert_eq!(limiter.peek("alice").remaining(), 4);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn cancel(&self, charge: Charge) {
        let now = self.timeline.read();
        if let Some((key, cost, taken_at)) = self.issuer.accept(&charge) {
            self.store.refund(key, cost, Some(taken_at), now);
        }
    }

    /// Gives a client `tokens`, whatever they are for: a bucket takes in at most its burst, a
    /// window what was taken from the one that is open, a log its latest entries. Nothing changes
    /// for a client that is not tracked, which has all of them. Does not keep a client from going
    /// idle.
    ///
    /// To give back what one call took, and not into a later window, use
    /// [`charge`](Self::charge) and [`cancel`](Self::cancel).
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    ///
    /// ```
    /// use tollgate::{KeyedLimiter, Rate};
    ///
    /// let limiter = KeyedLimiter::new(Rate::per_hour(1).burst(10), 100)?;
    /// assert!(limiter.try_acquire("alice", 10).is_allowed());
    /// limiter.refund("alice", 1);
    /// assert!(limiter.allow("alice") && !limiter.allow("alice"));
    /// limiter.refund("alice", 100);
    /// assert_eq!(limiter.peek("alice").remaining(), 10, "never more than the burst");
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn refund<K: Hash + ?Sized>(&self, key: &K, tokens: u64) {
        let now = self.timeline.read();
        self.store.refund(self.secrets.key(key), tokens, None, now);
    }

    /// Forgets a client, whose next call then starts with a full bucket. Returns whether it was
    /// tracked and not idle.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    ///
    /// ```
    /// use tollgate::{KeyedLimiter, Rate};
    ///
    /// let limiter = KeyedLimiter::new(Rate::per_hour(1).burst(1), 100)?;
    /// assert!(limiter.allow("alice"));
    /// assert!(!limiter.allow("alice"));
    /// assert!(limiter.remove("alice"));
    /// assert!(limiter.allow("alice"));
    /// assert!(!limiter.remove("bob"));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let now = self.timeline.read();
        self.store.remove(self.secrets.key(key), now)
    }

    /// The same at a time that the caller brings.
    ///
    /// # Errors
    ///
    /// [`ClockWentBackwards`] if a later time was seen before; nothing was changed then.
    ///
    /// ```
    /// use tollgate::{KeyedLimiter, Rate, Timestamp};
    ///
    /// let limiter = KeyedLimiter::new(Rate::per_second(1).burst(1), 100)?;
    /// let now = Timestamp::from_nanos(7);
    /// assert!(limiter.try_acquire_at("alice", 1, now)?.is_allowed());
    /// assert!(!limiter.try_acquire_at("alice", 1, now)?.is_allowed());
    /// assert!(limiter.remove_at("alice", now)?);
    /// assert!(limiter.try_acquire_at("alice", 1, now)?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove_at<K: Hash + ?Sized>(
        &self,
        key: &K,
        now: Timestamp,
    ) -> Result<bool, ClockWentBackwards> {
        let now = self.timeline.inject(now)?;
        Ok(self.store.remove(self.secrets.key(key), now))
    }

    /// Clients tracked now: those who are idle are forgotten first.
    ///
    /// Exact while no other thread calls; otherwise a number that was right at some instant of
    /// the call. Costs as little as a look while nobody is due, else as
    /// [`forget_idle`](Self::forget_idle).
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{KeyedLimiter, ManualClock, Rate};
    ///
    /// let clock = ManualClock::default();
    /// let limiter =
    ///     KeyedLimiter::builder(Rate::per_second(1).burst(1), 100).clock(clock.clone()).build()?;
    /// assert!(limiter.allow("alice"));
    /// assert!(!limiter.allow("alice"));
    /// assert_eq!(limiter.len(), 1);
    /// clock.advance(Duration::from_secs(1));
    /// assert_eq!(limiter.len(), 0);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        to_usize(self.store.len(self.timeline.read()))
    }

    /// The same at a time that the caller brings: for limiters whose calls bring theirs. Their
    /// clock, if it is another, would find everybody idle, or nobody.
    ///
    /// # Errors
    ///
    /// [`ClockWentBackwards`] if a later time was seen before; nothing was changed then.
    ///
    /// ```
    /// use tollgate::{KeyedLimiter, Rate, Timestamp};
    ///
    /// let limiter = KeyedLimiter::new(Rate::per_second(1).burst(1), 100)?;
    /// assert!(limiter.try_acquire_at("alice", 1, Timestamp::from_nanos(0))?.is_allowed());
    /// assert!(!limiter.try_acquire_at("alice", 1, Timestamp::from_nanos(0))?.is_allowed());
    /// assert_eq!(limiter.len_at(Timestamp::from_nanos(999_999_999))?, 1);
    /// assert_eq!(limiter.len_at(Timestamp::from_nanos(1_000_000_000))?, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn len_at(&self, now: Timestamp) -> Result<usize, ClockWentBackwards> {
        Ok(to_usize(self.store.len(self.timeline.inject(now)?)))
    }

    /// Whether no client is tracked now.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets everybody who is idle and gives their memory back; returns how many they were.
    ///
    /// Nobody needs to call this: it is for giving memory back after a crowd has left. It holds
    /// one shard's lock at a time, for at most 64 clients or one smaller table.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{KeyedLimiter, ManualClock, Rate};
    ///
    /// let clock = ManualClock::default();
    /// let limiter =
    ///     KeyedLimiter::builder(Rate::per_second(1).burst(1), 2).clock(clock.clone()).build()?;
    /// assert!(limiter.allow("alice") && limiter.allow("bob") && !limiter.allow("carol"));
    /// clock.advance(Duration::from_secs(1));
    /// assert_eq!(limiter.forget_idle(), 2);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn forget_idle(&self) -> usize {
        to_usize(self.store.forget_idle(self.timeline.read()))
    }

    /// The same at a time that the caller brings.
    ///
    /// # Errors
    ///
    /// [`ClockWentBackwards`] if a later time was seen before; nothing was changed then.
    ///
    /// ```
    /// use tollgate::{KeyedLimiter, Rate, Timestamp};
    ///
    /// let limiter = KeyedLimiter::new(Rate::per_second(1).burst(1), 1)?;
    /// assert!(limiter.try_acquire_at("alice", 1, Timestamp::from_nanos(0))?.is_allowed());
    /// assert!(!limiter.try_acquire_at("bob", 1, Timestamp::from_nanos(0))?.is_allowed());
    /// assert_eq!(limiter.forget_idle_at(Timestamp::from_nanos(999_999_999))?, 0);
    /// assert_eq!(limiter.forget_idle_at(Timestamp::from_nanos(1_000_000_000))?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn forget_idle_at(&self, now: Timestamp) -> Result<usize, ClockWentBackwards> {
        let now = self.timeline.inject(now)?;
        Ok(to_usize(self.store.forget_idle(now)))
    }

    /// The most clients that are tracked at a time.
    #[must_use]
    pub fn max_clients(&self) -> usize {
        self.max_clients
    }

    /// The most tokens that one call can take.
    #[must_use]
    pub fn burst(&self) -> u64 {
        self.store.burst()
    }

    /// Bytes that the clients' table and expiry queue have on the heap (without the entries of a
    /// sliding log). Asks every shard in turn.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.store.memory_bytes()
    }

    /// The most work that any call has done under one lock so far. At most 64 positions are looked
    /// at and at most one table and its queue made anew: this is here so that a test, or an alert,
    /// can hold the limiter to it.
    #[must_use]
    pub fn longest_hold(&self) -> LongestHold {
        self.store.longest_hold()
    }
}

fn to_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

impl<L: Limit, C: Clock> fmt::Debug for KeyedLimiter<L, C> {
    /// Names the bounds; the clients stay out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedLimiter")
            .field("burst", &self.burst())
            .field("max_clients", &self.max_clients)
            .field("timeline", &self.timeline)
            .finish_non_exhaustive()
    }
}

/// How to build a [`KeyedLimiter`].
#[must_use = "a builder does nothing until `build`"]
#[derive(Clone, Debug)]
pub struct KeyedLimiterBuilder<L, C = MonotonicClock> {
    limit: L,
    max_clients: usize,
    idle: Idle,
    /// Other than the usual number of shards: for tests that want to see them race.
    shard_bits: Option<u32>,
    clock: C,
}

impl<L: Limit, C: Clock> KeyedLimiterBuilder<L, C> {
    /// Forgets a client this long after its last attempt (a call that was answered `Allowed` or
    /// `Limited`, with a cost of at least 1), to the nanosecond.
    ///
    /// At least the time in which a bucket fills (for windows: by which no past call counts), and
    /// forgetting changes no answer; that is the default. A shorter time is allowed, and hands a
    /// client that stays away that long a fresh bucket early. More than 2^64 - 1 ns, which time
    /// never reaches here, is never.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{KeyedLimiter, ManualClock, Rate};
    ///
    /// let clock = ManualClock::default();
    /// let limiter = KeyedLimiter::builder(Rate::per_hour(1).burst(1), 100)
    ///     .idle(Duration::from_secs(60))
    ///     .clock(clock.clone())
    ///     .build()?;
    /// assert!(limiter.allow("alice"));
    /// clock.advance(Duration::from_nanos(59_999_999_999));
    /// assert!(!limiter.allow("alice"), "known, and this attempt counts too");
    /// clock.advance(Duration::from_secs(60));
    /// assert!(limiter.allow("alice"), "forgotten: a fresh bucket");
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn idle(self, idle: Duration) -> Self {
        // Longer than time can run is never.
        let idle = u64::try_from(idle.as_nanos()).map_or(Idle::Never, Idle::After);
        Self { idle, ..self }
    }

    /// Never forgets a client: each keeps its place until it is removed.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Decision, KeyedLimiter, ManualClock, Rate};
    ///
    /// let clock = ManualClock::default();
    /// let limiter = KeyedLimiter::builder(Rate::per_second(1).burst(1), 1)
    ///     .never_forget()
    ///     .clock(clock.clone())
    ///     .build()?;
    /// assert!(limiter.allow("alice"));
    /// clock.advance(Duration::from_secs(3_600));
    /// assert_eq!(limiter.try_acquire("bob", 1), Decision::ClientLimit);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn never_forget(self) -> Self {
        Self {
            idle: Idle::Never,
            ..self
        }
    }

    /// Takes time from `clock` instead of a [`MonotonicClock`].
    pub fn clock<D: Clock>(self, clock: D) -> KeyedLimiterBuilder<L, D> {
        let Self {
            limit,
            max_clients,
            idle,
            shard_bits,
            clock: _,
        } = self;
        KeyedLimiterBuilder {
            limit,
            max_clients,
            idle,
            shard_bits,
            clock,
        }
    }

    /// 2^`bits` shards.
    #[cfg(all(test, not(loom)))]
    fn shard_bits(self, bits: u32) -> Self {
        Self {
            shard_bits: Some(bits),
            ..self
        }
    }

    /// Checks every bound.
    ///
    /// # Errors
    ///
    /// A number of the limit that is out of bounds, or a `max_clients` or idle time of zero.
    ///
    /// ```
    /// use tollgate::{BuildError, KeyedLimiter, Rate};
    ///
    /// let refused = KeyedLimiter::builder(Rate::per_second(1).burst(1), 0).build();
    /// assert!(matches!(refused, Err(BuildError::MaxClientsIsZero)));
    /// ```
    pub fn build(self) -> Result<KeyedLimiter<L, C>, BuildError> {
        let limit = self.limit.validated()?;
        let max_clients = u64::try_from(self.max_clients).unwrap_or(u64::MAX);
        if max_clients == 0 {
            return Err(BuildError::MaxClientsIsZero);
        }
        let idle = self.idle;
        if idle == Idle::After(0) {
            return Err(BuildError::IdleIsZero);
        }
        let few = max_clients < FEW_CLIENTS;
        let shard_bits = self.shard_bits.unwrap_or(if few { 0 } else { SHARD_BITS });
        let secrets = Secrets::random(shard_bits);
        let places = secrets.places();
        Ok(KeyedLimiter {
            store: limit.keyed(StorePlan {
                places,
                max_clients,
                idle,
            }),
            secrets,
            issuer: Issuer::new(),
            max_clients: self.max_clients,
            timeline: Timeline::new(self.clock),
        })
    }
}
