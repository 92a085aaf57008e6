//! A bucket a client, bounded.

mod batch;
mod builder;
mod changes;
mod clients;
mod expiry;
mod fingerprint;
mod floor;
mod hold;
mod idling;
pub(crate) mod key;
mod persist;
mod plan;
mod room;
mod rules;
pub(crate) mod shards;
pub(crate) mod store;
mod table;
mod total;
mod upkeep;

#[cfg(test)]
#[cfg(loom)]
mod loom_tests;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;

use core::fmt;
use core::hash::Hash;
use core::time::Duration;

use crate::algorithm::Refunded;
use crate::charge::Issuer;
use crate::clock::Timeline;
use crate::limit::sealed::Shapes;
use crate::limiter::after;
use crate::observe;
use crate::{
    Ask, BuildError, Charge, Clock, ClockWentBackwards, Debit, Decision, IntoLimit, Limit,
    MonotonicClock, Quota, Timestamp, TokenBucket,
};
use batch::TOGETHER;
pub use builder::KeyedLimiterBuilder;
pub use clients::LongestHold;
use key::{Key, Secrets};
pub(crate) use plan::Limitless;
pub use plan::Plan;
use store::Store;

type Keyed<L> = <<L as crate::limit::sealed::Limit>::Valid as Shapes>::Keyed;

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
    largest_debt: u64,
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
        KeyedLimiterBuilder::new(limit.into_limit(), max_clients)
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
        observe::allowed(self.store.allow(self.secrets.key(key), now))
    }

    /// Takes `cost` tokens from the client's bucket if that many are there, else nothing. 0 looks:
    /// it takes nothing, tracks nobody, keeps nobody alive, and is refused only who is banned.
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
        observe::answered(self.store.acquire(self.secrets.key(key), cost, now))
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
        let decision = self.store.acquire(self.secrets.key(key), cost, now);
        Ok(observe::answered(decision))
    }

    /// Takes `cost` tokens as [`try_acquire`](Self::try_acquire) does, from a client of that plan.
    /// Which plan a client has is the caller's to know: a call under another plan than its last one
    /// takes the tokens along, at most to the plan's burst, as [`Tokens::Kept`](crate::Tokens)
    /// does. Calls that make an attempt and name no plan mean the default; looks, refunds and
    /// debits leave a client under its last one.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    ///
    /// ```
    /// use tollgate::{KeyedLimiter, Plan, Rate};
    ///
    /// const PRO: Plan = Plan::nth(1);
    /// let limiter = KeyedLimiter::builder(Rate::per_hour(1).burst(10), 100)
    ///     .plan(Rate::per_hour(100).burst(100))
    ///     .build()?;
    /// assert_eq!(limiter.try_acquire_as("alice", 40, PRO).remaining(), 60);
    /// assert_eq!(limiter.try_acquire_as("alice", 4, Plan::DEFAULT).remaining(), 6);
    /// assert_eq!(limiter.try_acquire_as("alice", 4, PRO).remaining(), 2);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn try_acquire_as<K: Hash + ?Sized>(&self, key: &K, cost: u64, plan: Plan) -> Decision {
        let now = self.timeline.read();
        let key = self.secrets.key(key);
        let decision = match plan.limit() {
            Ok(number) => self.store.charge(key, number, cost, now).0,
            Err(limitless) => limitless.answer(self.store.look(key, 0, now), cost),
        };
        observe::answered(decision)
    }

    /// Makes several calls, each as [`try_acquire`](Self::try_acquire) does, all at one reading of
    /// the clock; the answers are added to `decisions`, in order. Nothing ties the calls together:
    /// one may be allowed and the next refused. With many clients it is faster than one call after
    /// the other, since their memory is waited for together.
    ///
    /// Up to sixteen shards are locked at a time.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    ///
    /// ```
    /// use tollgate::{Decision, KeyedLimiter, Rate};
    ///
    /// let limiter = KeyedLimiter::new(Rate::per_hour(1).burst(2), 100)?;
    /// let mut decisions = Vec::new();
    /// limiter.try_acquire_each([("alice", 2), ("bob", 1), ("alice", 1)], &mut decisions);
    /// let allowed: Vec<bool> = decisions.into_iter().map(Decision::is_allowed).collect();
    /// assert_eq!(allowed, [true, true, false]);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn try_acquire_each<'k, K>(
        &self,
        calls: impl IntoIterator<Item = (&'k K, u64)>,
        decisions: &mut Vec<Decision>,
    ) where
        K: Hash + ?Sized + 'k,
    {
        let now = self.timeline.read();
        let mut calls = calls.into_iter().fuse();
        let mut keys = [(Key::VACANT, 0); TOGETHER];
        loop {
            let mut made = 0_usize;
            // The keys first: hashing and iterating are code of the caller's.
            for (place, (key, cost)) in keys.iter_mut().zip(&mut calls) {
                *place = (self.secrets.key(key), cost);
                made = made.saturating_add(1);
            }
            let Some(made) = keys.get(..made).filter(|made| !made.is_empty()) else {
                return;
            };
            let before = decisions.len();
            self.store.acquire_each(made, now, decisions);
            for decision in decisions.get(before..).unwrap_or_default() {
                let _ = observe::answered(*decision);
            }
        }
    }

    /// What a client asks of this limiter in a call to [`acquire_all`](crate::acquire_all), which
    /// asks several at once. Reads the clock, and does nothing else.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    pub fn ask<K: Hash + ?Sized>(&self, key: &K, cost: u64) -> Ask<'_> {
        let now = self.timeline.read();
        Ask::new(
            self.store.party(),
            self.issuer,
            self.secrets.key(key),
            cost,
            now,
        )
    }

    /// The same at a time that the caller brings.
    ///
    /// # Errors
    ///
    /// [`ClockWentBackwards`] if a later time was seen before; nothing was changed then.
    pub fn ask_at<K: Hash + ?Sized>(
        &self,
        key: &K,
        cost: u64,
        now: Timestamp,
    ) -> Result<Ask<'_>, ClockWentBackwards> {
        let now = self.timeline.inject(now)?;
        Ok(Ask::new(
            self.store.party(),
            self.issuer,
            self.secrets.key(key),
            cost,
            now,
        ))
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
        let charge = self
            .issuer
            .charge(key, cost, self.store.charge(key, 0, cost, now));
        charge.map_err(observe::answered)
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
            self.store.refund(key, cost, Refunded::Call(taken_at), now);
        }
    }

    /// The same for work that took its time before it turned out not to count: of a bucket's
    /// tokens, those are gone that a full one would have spilled meanwhile. Tokens taken a time d
    /// ago are worth what was taken less rate x d.
    ///
    /// Given back [as they were](Self::cancel), tokens that were taken one by one, as they were
    /// earned, could be saved up beyond the burst in work under way, and spent at once.
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
    /// let limiter = KeyedLimiter::builder(Rate::per_second(1).burst(2), 100)
    ///     .clock(clock.clone())
    ///     .build()?;
    /// let charge = limiter.charge("alice", 2).expect("a new client has its burst");
    /// clock.advance(Duration::from_millis(1_500));
    /// limiter.cancel_aged(charge); // worth half a token by now, and 1.5 were earned
    /// assert_eq!(limiter.peek("alice").remaining(), 2);
    ///
    /// let charge = limiter.charge("alice", 1).expect("it is full again");
    /// clock.advance(Duration::from_secs(1));
    /// assert!(limiter.try_acquire("alice", 2).is_allowed());
    /// limiter.cancel_aged(charge); // worth nothing: a full bucket earned its worth meanwhile
    /// assert!(!limiter.allow("alice"));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn cancel_aged(&self, charge: Charge) {
        let now = self.timeline.read();
        if let Some((key, cost, taken_at)) = self.issuer.accept(&charge) {
            self.store.refund(key, cost, Refunded::Aged(taken_at), now);
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
        self.store
            .refund(self.secrets.key(key), tokens, Refunded::Latest, now);
    }

    /// Takes `tokens` whether they are there or not, as far as the
    /// [largest debt](KeyedLimiterBuilder::largest_debt) goes: for costs that are known only
    /// afterwards. Counts as an attempt, but for 0 tokens. A client that is new to a full table
    /// is not tracked for it, and nothing is taken. 0 looks.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    pub fn debit<K: Hash + ?Sized>(&self, key: &K, tokens: u64) -> Debit {
        let (now, key) = (self.timeline.read(), self.secrets.key(key));
        if tokens == 0 {
            return Debit::new((0, self.store.look(key, 0, now)));
        }
        let debited = self.store.debit(key, tokens, now);
        debited.map_or(Debit::CLIENT_LIMIT, Debit::new)
    }

    /// Refuses a client everything for that long ([`Decision::Banned`]), or for as long as it is
    /// banned already if that is longer. Time goes on for its bucket meanwhile, under the limit
    /// that holds now: one set during the ban counts from its end. [`remove`] lifts a ban, and
    /// forgets the client.
    ///
    /// A banned client keeps its place until it goes idle after the end of its ban. One that is new
    /// to a full table is not banned: `false` says so.
    ///
    /// [`remove`]: Self::remove
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Decision, KeyedLimiter, ManualClock, Rate};
    ///
    /// let limiter = KeyedLimiter::builder(Rate::per_second(1).burst(10), 100)
    ///     .clock(ManualClock::default())
    ///     .build()?;
    /// let minute = Duration::from_secs(60);
    /// assert!(limiter.ban("alice", minute));
    /// assert_eq!(limiter.try_acquire("alice", 1), Decision::Banned { retry_after: minute });
    /// assert!(limiter.allow("bob"));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[doc(alias = "penalise")]
    #[doc(alias = "block")]
    #[must_use = "a client that is new to a full table is not banned"]
    pub fn ban<K: Hash + ?Sized>(&self, key: &K, time: Duration) -> bool {
        let now = self.timeline.read();
        self.store.ban(self.secrets.key(key), after(now, time), now)
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
