//! One bucket, shared by threads.

use core::fmt;
use core::time::Duration;

use crate::algorithm::Refunded;
use crate::cell::Cell;
use crate::charge::Issuer;
use crate::clock::Timeline;
use crate::keyed::key::Key;
use crate::limit::sealed::Shapes;
use crate::observe;
use crate::snapshot::{self, Kind};
use crate::{
    Ask, BuildError, ChangeError, Charge, Clock, ClockWentBackwards, Debit, Decision, IntoLimit,
    Limit, MonotonicClock, Quota, RestoreError, Statistics, Timestamp, TokenBucket, Tokens,
};

type Single<L> = <<L as crate::limit::sealed::Limit>::Valid as Shapes>::Single;

/// One bucket, shared by threads: for a whole service, a connection, an outbound API.
///
/// For a bucket a client see [`KeyedLimiter`](crate::KeyedLimiter). [`allow`](Self::allow) answers
/// yes or no, [`try_acquire`](Self::try_acquire) says what remains and how long to wait. Neither
/// ever waits; each call is one atomic step towards other threads.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, ManualClock, Rate};
///
/// let clock = ManualClock::default();
/// let limiter = Limiter::builder(Rate::per_second(2).burst(5)).clock(clock.clone()).build()?;
/// assert!(limiter.try_acquire(5).is_allowed());
/// assert_eq!(limiter.try_acquire(1).retry_after(), Some(Duration::from_millis(500)));
/// clock.advance(Duration::from_millis(500));
/// assert!(limiter.allow());
/// # Ok::<(), tollgate::BuildError>(())
/// ```
pub struct Limiter<L: Limit = TokenBucket, C: Clock = MonotonicClock> {
    cell: Single<L>,
    largest_debt: u64,
    issuer: Issuer,
    timeline: Timeline<C>,
}

impl Limiter {
    /// A full token bucket of this quota.
    ///
    /// # Errors
    ///
    /// A rate, period or burst of zero, or a quota beyond the stated bound.
    ///
    /// ```
    /// use tollgate::{Limiter, Rate};
    ///
    /// let limiter = Limiter::new(Rate::per_minute(1).burst(1))?;
    /// assert!(limiter.allow());
    /// assert!(!limiter.allow());
    /// assert!(Limiter::new(Rate::per_minute(1).burst(0)).is_err());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn new(quota: Quota) -> Result<Self, BuildError> {
        Self::builder(quota).build()
    }

    /// A limiter of any [`Limit`], or of a quota as a token bucket, to be given a clock.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{FixedWindow, Limiter, ManualClock};
    ///
    /// let window = FixedWindow::new(1, Duration::from_secs(60));
    /// let limiter = Limiter::builder(window).clock(ManualClock::default()).build()?;
    /// assert!(limiter.allow());
    /// assert_eq!(limiter.try_acquire(1).retry_after(), Some(Duration::from_secs(60)));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn builder<I: IntoLimit>(limit: I) -> LimiterBuilder<I::Limit> {
        LimiterBuilder {
            limit: limit.into_limit(),
            largest_debt: 0,
            clock: MonotonicClock::new(),
        }
    }
}

impl<L: Limit, C: Clock> Limiter<L, C> {
    /// Takes one token if there is one: whether the caller may proceed right now.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    ///
    /// ```
    /// use tollgate::{Limiter, Rate};
    ///
    /// let limiter = Limiter::new(Rate::per_hour(1).burst(1))?;
    /// assert!(limiter.allow());
    /// assert!(!limiter.allow());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[inline]
    #[must_use = "a decision that is not looked at limits nobody"]
    pub fn allow(&self) -> bool {
        observe::allowed(self.cell.allow(self.timeline.read()))
    }

    /// Takes `cost` tokens if that many are there, else nothing; 0 looks without taking, and is
    /// refused only while the bucket is banned.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    ///
    /// ```
    /// use tollgate::{Limiter, Rate};
    ///
    /// let limiter = Limiter::new(Rate::per_hour(1).burst(5))?;
    /// assert_eq!(limiter.try_acquire(3).remaining(), 2);
    /// assert!(!limiter.try_acquire(3).is_allowed());
    /// assert_eq!(limiter.try_acquire(0).remaining(), 2, "the refusal took nothing");
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[inline]
    pub fn try_acquire(&self, cost: u64) -> Decision {
        observe::answered(self.cell.acquire(cost, self.timeline.read()))
    }

    /// The same at a time that the caller brings, which every later one must not be below. Where
    /// threads race, a call is judged at the latest time that any of them brought.
    ///
    /// # Errors
    ///
    /// [`ClockWentBackwards`] if a later time was seen before; nothing was changed then.
    ///
    /// ```
    /// use tollgate::{Limiter, Rate, Timestamp};
    ///
    /// let limiter = Limiter::new(Rate::per_second(1).burst(1))?;
    /// assert!(limiter.try_acquire_at(1, Timestamp::from_nanos(7))?.is_allowed());
    /// assert!(!limiter.try_acquire_at(1, Timestamp::from_nanos(7))?.is_allowed());
    /// assert!(limiter.try_acquire_at(1, Timestamp::from_nanos(6)).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_acquire_at(
        &self,
        cost: u64,
        now: Timestamp,
    ) -> Result<Decision, ClockWentBackwards> {
        let now = self.timeline.inject(now)?;
        Ok(observe::answered(self.cell.acquire(cost, now)))
    }

    /// What remains, without taking anything: always allowed, even at 0.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    ///
    /// ```
    /// use tollgate::{Limiter, Rate};
    ///
    /// let limiter = Limiter::new(Rate::per_hour(1).burst(2))?;
    /// assert_eq!(limiter.peek().remaining(), 2);
    /// assert!(limiter.try_acquire(2).is_allowed());
    /// assert_eq!(limiter.peek().remaining(), 0);
    /// assert!(!limiter.allow());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn peek(&self) -> Decision {
        self.try_acquire(0)
    }

    /// Takes as many tokens as there are, up to `most`: for work that can be cut to size. Returns
    /// how many, which is 0 if none are there.
    ///
    /// Counts as an attempt even if it takes nothing, but for a `most` of 0.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    ///
    /// ```
    /// use tollgate::{Limiter, Rate};
    ///
    /// let limiter = Limiter::new(Rate::per_hour(1).burst(5))?;
    /// assert_eq!(limiter.acquire_up_to(3), 3);
    /// assert_eq!(limiter.acquire_up_to(3), 2);
    /// assert_eq!(limiter.acquire_up_to(3), 0);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use = "tokens taken and not used limit nobody else"]
    pub fn acquire_up_to(&self, most: u64) -> u64 {
        let now = self.timeline.read();
        if most == 0 {
            return 0;
        }
        self.cell.acquire_up_to(most, now)
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
    /// use tollgate::{Limiter, Rate};
    ///
    /// let limiter = Limiter::new(Rate::per_hour(1).burst(2))?;
    /// let charge = limiter.charge(2).expect("a new bucket has its burst");
    /// assert_eq!(limiter.charge(1).unwrap_err().remaining(), 0);
    /// limiter.cancel(charge);
    /// assert_eq!(limiter.peek().remaining(), 2);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn charge(&self, cost: u64) -> Result<Charge, Decision> {
        let charged = self.cell.charge(cost, self.timeline.read());
        let charge = self.issuer.charge(Key::VACANT, cost, charged);
        charge.map_err(observe::answered)
    }

    /// Gives back what was taken, as far as it still counts: a bucket takes in at most its burst,
    /// a window only what was taken from it. A charge of another limiter changes nothing.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    ///
    /// ```
    /// use tollgate::{Limiter, Rate};
    ///
    /// let limiter = Limiter::new(Rate::per_hour(1).burst(1))?;
    /// let charge = limiter.charge(1).expect("a new bucket has its burst");
    /// assert!(!limiter.allow());
    /// limiter.cancel(charge);
    /// assert!(limiter.allow());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn cancel(&self, charge: Charge) {
        let now = self.timeline.read();
        if let Some((_, cost, taken_at)) = self.issuer.accept(&charge) {
            self.cell.refund(cost, Refunded::Call(taken_at), now);
        }
    }

    /// Gives the bucket `tokens`, at most to the burst; a window what was taken from the one that
    /// is open, a log its latest entries.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    ///
    /// ```
    /// use tollgate::{Limiter, Rate};
    ///
    /// let limiter = Limiter::new(Rate::per_hour(1).burst(10))?;
    /// assert!(limiter.try_acquire(10).is_allowed());
    /// limiter.refund(1);
    /// assert!(limiter.allow() && !limiter.allow());
    /// limiter.refund(100);
    /// assert_eq!(limiter.peek().remaining(), 10);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn refund(&self, tokens: u64) {
        self.cell
            .refund(tokens, Refunded::Latest, self.timeline.read());
    }

    /// What is asked of this bucket in a call to [`acquire_all`](crate::acquire_all), which asks
    /// several at once. Reads the clock, and does nothing else.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    pub fn ask(&self, cost: u64) -> Ask<'_> {
        let now = self.timeline.read();
        Ask::new(self.cell.party(), self.issuer, Key::VACANT, cost, now)
    }

    /// The same at a time that the caller brings.
    ///
    /// # Errors
    ///
    /// [`ClockWentBackwards`] if a later time was seen before; nothing was changed then.
    pub fn ask_at(&self, cost: u64, now: Timestamp) -> Result<Ask<'_>, ClockWentBackwards> {
        let now = self.timeline.inject(now)?;
        Ok(Ask::new(
            self.cell.party(),
            self.issuer,
            Key::VACANT,
            cost,
            now,
        ))
    }

    /// Takes `tokens` whether they are there or not, as far as the
    /// [largest debt](LimiterBuilder::largest_debt) goes: for costs that are known only afterwards.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    ///
    /// ```
    /// use tollgate::{Limiter, ManualClock, Rate};
    ///
    /// let limiter = Limiter::builder(Rate::per_second(1).burst(10))
    ///     .largest_debt(5)
    ///     .clock(ManualClock::default())
    ///     .build()?;
    /// assert_eq!(limiter.debit(12).taken(), 12);
    /// assert_eq!(limiter.debit(12).taken(), 3, "it owes 5 now");
    /// assert!(!limiter.allow());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn debit(&self, tokens: u64) -> Debit {
        let now = self.timeline.read();
        Debit::new(if tokens == 0 {
            (0, self.cell.acquire(0, now))
        } else {
            self.cell.debit(tokens, now)
        })
    }

    /// Refuses everything for that long ([`Decision::Banned`]), or for as long as the bucket is
    /// banned already if that is longer. Time goes on for the bucket meanwhile, under the limit
    /// that holds now: one set during the ban counts from its end. [`reset`](Self::reset) lifts a
    /// ban.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Decision, Limiter, ManualClock, Rate};
    ///
    /// let limiter = Limiter::builder(Rate::per_second(1).burst(10))
    ///     .clock(ManualClock::default())
    ///     .build()?;
    /// let minute = Duration::from_secs(60);
    /// limiter.ban(minute);
    /// assert_eq!(limiter.try_acquire(1), Decision::Banned { retry_after: minute });
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[doc(alias = "penalise")]
    #[doc(alias = "block")]
    pub fn ban(&self, time: Duration) {
        let now = self.timeline.read();
        self.cell.ban(after(now, time), now);
    }

    /// Starts afresh: a full bucket, or its initial tokens, and no ban.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, Rate};
    ///
    /// let limiter = Limiter::new(Rate::per_hour(1).burst(5))?;
    /// limiter.ban(Duration::from_secs(60));
    /// limiter.reset();
    /// assert_eq!(limiter.peek().remaining(), 5);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn reset(&self) {
        self.cell.reset();
    }

    /// Holds the bucket to another limit of the same algorithm from now on; `tokens` says what
    /// becomes of those that it holds.
    ///
    /// # Errors
    ///
    /// A number out of bounds, or a limit that the bucket's past cannot be told in terms of.
    /// Nothing was changed then.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    ///
    /// ```
    /// use tollgate::{Limiter, ManualClock, Rate, Tokens};
    ///
    /// let clock = ManualClock::default();
    /// let limiter = Limiter::builder(Rate::per_second(1).burst(10)).clock(clock).build()?;
    /// assert!(limiter.try_acquire(6).is_allowed());
    /// limiter.set_quota(Rate::per_second(2).burst(20), Tokens::Kept)?;
    /// assert_eq!(limiter.peek().remaining(), 4);
    /// limiter.set_quota(Rate::per_second(2).burst(10), Tokens::Proportional)?;
    /// assert_eq!(limiter.peek().remaining(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_quota<I>(&self, limit: I, tokens: Tokens) -> Result<(), ChangeError>
    where
        I: IntoLimit<Limit = L>,
    {
        let now = self.timeline.read();
        let limit = limit.into_limit().validated(self.largest_debt);
        let changed = limit
            .map_err(ChangeError::from)
            .and_then(|limit| self.cell.change(limit, tokens, now));
        observe::changed(changed)
    }

    /// The bucket as bytes from which [`LimiterBuilder::restore`] makes the same: for a limit that
    /// is to survive a restart.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    #[must_use]
    pub fn snapshot(&self) -> Vec<u8> {
        let now = self.timeline.read();
        snapshot::written(Kind::Single, |to| self.cell.write(now, to))
    }

    /// How often each answer was given.
    pub fn statistics(&self) -> Statistics {
        self.cell.statistics()
    }

    /// The most tokens that one call can take.
    #[must_use]
    pub fn burst(&self) -> u64 {
        self.cell.burst()
    }
}

/// The instant that long after `now`, or the last that there is.
pub(crate) fn after(now: u64, time: Duration) -> u64 {
    now.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

impl<L: Limit, C: Clock> fmt::Debug for Limiter<L, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut limiter = f.debug_struct("Limiter");
        limiter
            .field("cell", &self.cell)
            .field("timeline", &self.timeline)
            .finish()
    }
}

/// How to build a [`Limiter`].
#[must_use = "a builder does nothing until `build`"]
#[derive(Clone, Debug)]
pub struct LimiterBuilder<L, C = MonotonicClock> {
    limit: L,
    largest_debt: u64,
    clock: C,
}

impl<L: Limit, C: Clock> LimiterBuilder<L, C> {
    /// Takes time from `clock` instead of a [`MonotonicClock`].
    pub fn clock<D: Clock>(self, clock: D) -> LimiterBuilder<L, D> {
        LimiterBuilder {
            limit: self.limit,
            largest_debt: self.largest_debt,
            clock,
        }
    }

    /// How many tokens [`debit`](Limiter::debit) may leave the bucket owing; 0 by default.
    pub fn largest_debt(self, tokens: u64) -> Self {
        Self {
            largest_debt: tokens,
            ..self
        }
    }

    /// Checks every bound.
    ///
    /// # Errors
    ///
    /// A number of the limit that is out of bounds.
    pub fn build(self) -> Result<Limiter<L, C>, BuildError> {
        let cell = self.limit.validated(self.largest_debt)?.single();
        Ok(Limiter {
            cell,
            largest_debt: self.largest_debt,
            issuer: Issuer::new(),
            timeline: Timeline::new(self.clock),
        })
    }

    /// The same with the bucket of a [`snapshot`](Limiter::snapshot), as for
    /// [`KeyedLimiterBuilder::restore`](crate::KeyedLimiterBuilder::restore).
    ///
    /// # Errors
    ///
    /// What [`build`](Self::build) finds, bytes that are no snapshot, or a damaged one, or one of a
    /// later version or of another kind of limiter.
    ///
    /// ```
    /// use tollgate::{Limiter, Rate};
    ///
    /// let limiter = Limiter::new(Rate::per_hour(1).burst(5))?;
    /// assert!(limiter.try_acquire(3).is_allowed());
    /// let snapshot = limiter.snapshot();
    /// let restored = Limiter::builder(Rate::per_hour(1).burst(5)).restore(&snapshot)?;
    /// assert_eq!(restored.peek().remaining(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn restore(self, snapshot: &[u8]) -> Result<Limiter<L, C>, RestoreError> {
        let mut from = snapshot::body(snapshot, Kind::Single)?;
        let limiter = self.build()?;
        let now = limiter.timeline.read();
        limiter.cell.read(&mut from, now)?;
        Ok(limiter)
    }
}
