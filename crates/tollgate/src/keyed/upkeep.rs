//! What a limiter is asked for besides decisions: other limits, figures, memory.

use super::KeyedLimiter;
use super::Plan;
use super::clients::LongestHold;
use super::store::Store;
use crate::observe;
use crate::snapshot::{self, Kind};
use crate::{
    ChangeError, Clock, ClockWentBackwards, IntoLimit, Limit, Statistics, Timestamp, Tokens,
};

impl<L: Limit, C: Clock> KeyedLimiter<L, C> {
    /// Holds clients without a plan to another limit of the same algorithm from now on; `tokens`
    /// says what becomes of those that they hold. See [`set_plan`](Self::set_plan).
    ///
    /// # Errors
    ///
    /// As [`set_plan`](Self::set_plan).
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    ///
    /// ```
    /// use tollgate::{KeyedLimiter, ManualClock, Rate, Tokens};
    ///
    /// let limiter = KeyedLimiter::builder(Rate::per_second(1).burst(10), 100)
    ///     .clock(ManualClock::default())
    ///     .build()?;
    /// assert!(limiter.try_acquire("alice", 6).is_allowed());
    /// limiter.set_quota(Rate::per_second(2).burst(20), Tokens::Kept)?;
    /// assert_eq!(limiter.peek("alice").remaining(), 4);
    /// assert_eq!(limiter.peek("bob").remaining(), 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_quota<I>(&self, limit: I, tokens: Tokens) -> Result<(), ChangeError>
    where
        I: IntoLimit<Limit = L>,
    {
        self.set_plan(Plan::DEFAULT, limit, tokens)
    }

    /// Holds clients of one plan to another limit of the same algorithm from now on; `tokens` says
    /// what becomes of those that they hold. The limit that holds already changes nothing, but with
    /// [`Tokens::Reset`].
    ///
    /// However many clients there are, none is looked at (but by a limiter that
    /// [forgets them as soon as they are settled](crate::KeyedLimiterBuilder::forget_settled), or
    /// that has never forgotten anybody and comes to, which look at all): each is brought over when
    /// it is next seen, as if that had happened at the instant of the change. Calls that race with
    /// it are judged by either limit. For all of a limiter's clients, also those of other plans, a
    /// change counts as an attempt: nobody goes idle earlier than the idle time after it, but for
    /// clients who are forgotten as soon as they are settled. The default idle time follows the
    /// limits.
    ///
    /// # Errors
    ///
    /// A number out of bounds, an idle time that would forget debts, a limit that the clients' past
    /// cannot be told in terms of, or one change too many: at most 15 are remembered at a time,
    /// each until everybody who has not been seen since is idle, or [`settle`](Self::settle) is
    /// called. Nothing was changed then.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    pub fn set_plan<I>(&self, plan: Plan, limit: I, tokens: Tokens) -> Result<(), ChangeError>
    where
        I: IntoLimit<Limit = L>,
    {
        let now = self.timeline.read();
        let limit = limit.into_limit().validated(self.largest_debt);
        let changed = limit.map_err(ChangeError::from).and_then(|limit| {
            let plan = plan.limit().map_err(|_| ChangeError::NoSuchPlan)?;
            self.store.change(plan, limit, tokens, now)
        });
        observe::changed(changed)
    }

    /// Brings every client over to the present limits, so that none before them has to be
    /// remembered. Returns how many were.
    ///
    /// Nobody needs to call this, unless a change was refused for too many before it. It looks at
    /// every client, one shard's under its lock after the other's.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    ///
    /// ```
    /// use tollgate::{ChangeError, KeyedLimiter, Rate, Tokens};
    ///
    /// let limiter = KeyedLimiter::new(Rate::per_hour(1).burst(1), 100)?;
    /// for burst in 2..=16 {
    ///     limiter.set_quota(Rate::per_hour(1).burst(burst), Tokens::Kept)?;
    /// }
    /// let next = Rate::per_hour(1).burst(17);
    /// let refused = limiter.set_quota(next, Tokens::Kept);
    /// assert_eq!(refused, Err(ChangeError::HistoryFull { most: 15 }));
    /// assert_eq!(limiter.settle(), 15);
    /// limiter.set_quota(next, Tokens::Kept)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn settle(&self) -> usize {
        self.store.settle(self.timeline.read())
    }

    /// All clients that are not idle, as bytes from which
    /// [`KeyedLimiterBuilder::restore`](crate::KeyedLimiterBuilder::restore) makes a limiter with
    /// the same clients: for limits that are to survive a restart.
    ///
    /// **A snapshot is a secret**: it holds the keys of the limiter's hash, by which whoever reads
    /// it can choose names that share a bucket or crowd one place, and the names of up to 14 bytes
    /// themselves. Write it where nobody else reads, and write it whole or not at all (to another
    /// name, then renamed).
    ///
    /// Takes one shard's lock after the other, each for one pass over it: a client's state is exact
    /// as of that moment. The bucket that newcomers share and the counts of
    /// [`statistics`](Self::statistics) are not in it. About 41 bytes a client of a token bucket.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    ///
    /// ```
    /// use tollgate::{KeyedLimiter, Rate};
    ///
    /// let quota = Rate::per_hour(1).burst(2);
    /// let limiter = KeyedLimiter::new(quota, 100)?;
    /// assert!(limiter.try_acquire("alice", 2).is_allowed());
    /// let snapshot = limiter.snapshot();
    ///
    /// let restored = KeyedLimiter::builder(quota, 100).restore(&snapshot)?;
    /// assert!(!restored.allow("alice"));
    /// assert!(restored.allow("bob"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn snapshot(&self) -> Vec<u8> {
        let now = self.timeline.read();
        snapshot::written(Kind::Keyed, |to| {
            self.secrets.words().for_each(|word| to.u64(word));
            self.store.write(now, to);
        })
    }

    /// How often each answer was given, and how many clients were forgotten. Asks every shard in
    /// turn.
    pub fn statistics(&self) -> Statistics {
        self.store.statistics()
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

    /// The clients that fit before any table grows, if they are spread evenly. Asks every shard in
    /// turn.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.store.capacity()
    }

    /// Bytes that the clients' tables and expiry queues have on the heap (without the entries of a
    /// sliding log). Asks every shard in turn.
    ///
    /// Each shard (one below 4,096 `max_clients`, else 256) has a table of h homes, of which
    /// seven eighths are used before it grows (now and then a little less): h is 8 at first, and a
    /// quarter more, rounded down, each time. A table takes (h + 8 + h/64) slots of 16 bytes and
    /// the client's state (16 bytes for a bucket, 24 for an extreme quota's, a fixed window's and a
    /// sliding window counter's), and its queue 12 bytes for each of the h - h/8 clients that fit;
    /// all rounded down. Refunds with
    /// [`forget_settled`](crate::KeyedLimiterBuilder::forget_settled) can make the queue longer by
    /// two fifths. Beside that a shard takes 264 bytes.
    ///
    /// Exactly that much before the first client is forgotten or removed, who leaves the table as
    /// large as it was until less than a quarter of it is used.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.store.memory_bytes()
    }

    /// What [`memory_bytes`](Self::memory_bytes) comes to at most with so many clients: for sizing,
    /// with `max_clients`. Chance spreads clients over shards unevenly, and here every shard has as
    /// many as the fullest may; of a limiter of one shard it is exact, but for a table that grows
    /// a client or two early.
    ///
    /// ```
    /// use tollgate::{KeyedLimiter, Rate};
    ///
    /// let limiter = KeyedLimiter::new(Rate::per_second(5).burst(10), 1_000_000)?;
    /// let most = limiter.memory_bytes_for(1_000_000);
    /// assert!((55_000_000..65_000_000).contains(&most));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub fn memory_bytes_for(&self, clients: usize) -> usize {
        self.store.memory_bytes_for(clients)
    }

    /// The most work that any call has done under one lock so far. But for
    /// [`settle`](Self::settle), changes of the limit and calls to
    /// [`acquire_all`](crate::acquire_all) with many newcomers, at most 64 positions are looked at
    /// and at most one table and its queue made anew: this is here so that a test, or an alert,
    /// can hold the limiter to it.
    #[must_use]
    pub fn longest_hold(&self) -> LongestHold {
        self.store.longest_hold()
    }
}

fn to_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
