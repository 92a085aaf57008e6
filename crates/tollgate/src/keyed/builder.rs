//! How a limiter with a bucket a client is built.

use core::time::Duration;

use super::KeyedLimiter;
use super::key::Secrets;
use super::rules::{Idle, MOST_PLANS};
use super::store::{Store as _, StorePlan};
use super::total;
use crate::charge::Issuer;
use crate::clock::Timeline;
use crate::limit::sealed::Shapes as _;
use crate::snapshot::{self, Kind};
use crate::{BuildError, Clock, IntoLimit, Limit, MonotonicClock, RestoreError};

/// So many shards that threads seldom meet in one and that growing or sweeping one is short.
const SHARD_BITS: u32 = 8;
/// Below so many clients one shard will do.
const FEW_CLIENTS: u64 = 4_096;

/// How to build a [`KeyedLimiter`].
#[must_use = "a builder does nothing until `build`"]
#[derive(Clone, Debug)]
pub struct KeyedLimiterBuilder<L, C = MonotonicClock> {
    limit: L,
    plans: Vec<L>,
    largest_debt: u64,
    max_clients: usize,
    idle: Idle,
    overflow: bool,
    /// Other than the usual number of shards: for tests that want to see them race.
    shard_bits: Option<u32>,
    clock: C,
}

impl<L: Limit> KeyedLimiterBuilder<L> {
    pub(super) fn new(limit: L, max_clients: usize) -> Self {
        Self {
            limit,
            plans: Vec::new(),
            largest_debt: 0,
            max_clients,
            idle: Idle::Settled,
            overflow: false,
            shard_bits: None,
            clock: MonotonicClock::new(),
        }
    }
}

impl<L: Limit, C: Clock> KeyedLimiterBuilder<L, C> {
    /// Forgets a client this long after its last attempt (a call that was answered `Allowed` or
    /// `Limited`, with a cost of at least 1), to the nanosecond.
    ///
    /// At least the time in which a bucket fills (for windows: by which no past call counts), and
    /// forgetting changes no answer; that is the default. A shorter time is allowed (but not with a
    /// [`largest_debt`](Self::largest_debt)), and hands a client that stays away that long a fresh
    /// bucket early. More than 2^64 - 1 ns, which time
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

    /// Forgets a client as soon as none of its past calls counts any more: as soon as its bucket is
    /// full again, which may be long before a whole bucket's worth of time has passed. Nobody can
    /// tell, but that newcomers find room sooner in a full table.
    ///
    /// Costs a few nanoseconds for each client looked at, and a look at every client whenever the
    /// limit is changed. Who is settled starts afresh, whether its memory was given back already or
    /// not: with the initial tokens, if it has such, and without a plan until the next call names
    /// one.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{KeyedLimiter, ManualClock, Rate};
    ///
    /// let clock = ManualClock::default();
    /// let limiter = KeyedLimiter::builder(Rate::per_second(1).burst(60), 1)
    ///     .forget_settled()
    ///     .clock(clock.clone())
    ///     .build()?;
    /// assert!(limiter.allow("alice"));
    /// assert!(!limiter.allow("bob"), "alice has the one place");
    /// clock.advance(Duration::from_secs(1));
    /// assert!(limiter.allow("bob"), "alice has all her tokens again");
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn forget_settled(self) -> Self {
        Self {
            idle: Idle::AsSettled,
            ..self
        }
    }

    /// Lets newcomers to a full table share one bucket more, instead of refusing them
    /// ([`ClientLimit`](crate::Decision::ClientLimit)).
    ///
    /// All of them are held to one limit together, so a crowd of new names gets through no more
    /// than one client. They are not tracked, and cannot be banned; and what one of them was
    /// charged cannot be given back to the bucket that they share.
    ///
    /// ```
    /// use tollgate::{KeyedLimiter, Rate};
    ///
    /// let limiter =
    ///     KeyedLimiter::builder(Rate::per_hour(1).burst(2), 1).share_overflow().build()?;
    /// assert!(limiter.allow("alice"));
    /// assert!(limiter.allow("bob") && limiter.allow("carol"));
    /// assert!(!limiter.allow("dave"));
    /// assert_eq!(limiter.statistics().overflowed, 3);
    /// assert_eq!(limiter.len(), 1);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn share_overflow(self) -> Self {
        Self {
            overflow: true,
            ..self
        }
    }

    /// Adds a plan: a limit of the same algorithm that some clients are held to instead. Its number
    /// is how many plans there are with it; see [`Plan::nth`](crate::Plan::nth). At most 63, which
    /// cost a client no memory.
    pub fn plan<I: IntoLimit<Limit = L>>(mut self, limit: I) -> Self {
        self.plans.push(limit.into_limit());
        self
    }

    /// How many tokens [`debit`](KeyedLimiter::debit) may leave a client owing; 0 by default. The
    /// default idle time then is that in which a bucket fills from there, so that nobody who owes
    /// tokens is forgotten; a shorter one is refused, here and where the limit is changed.
    pub fn largest_debt(self, tokens: u64) -> Self {
        Self {
            largest_debt: tokens,
            ..self
        }
    }

    /// Takes time from `clock` instead of a [`MonotonicClock`].
    pub fn clock<D: Clock>(self, clock: D) -> KeyedLimiterBuilder<L, D> {
        KeyedLimiterBuilder {
            limit: self.limit,
            plans: self.plans,
            largest_debt: self.largest_debt,
            max_clients: self.max_clients,
            idle: self.idle,
            overflow: self.overflow,
            shard_bits: self.shard_bits,
            clock,
        }
    }

    /// 2^`bits` shards.
    #[cfg(all(test, not(loom)))]
    pub(super) fn shard_bits(self, bits: u32) -> Self {
        Self {
            shard_bits: Some(bits),
            ..self
        }
    }

    /// Checks every bound.
    ///
    /// # Errors
    ///
    /// A number of the limit that is out of bounds, a `max_clients` or idle time of zero, or an
    /// idle time that would forget debts.
    ///
    /// ```
    /// use tollgate::{BuildError, KeyedLimiter, Rate};
    ///
    /// let refused = KeyedLimiter::builder(Rate::per_second(1).burst(1), 0).build();
    /// assert!(matches!(refused, Err(BuildError::MaxClientsIsZero)));
    /// ```
    pub fn build(self) -> Result<KeyedLimiter<L, C>, BuildError> {
        let secrets = Secrets::random(self.bits());
        self.build_with(secrets)
    }

    /// The same with all clients of a [`snapshot`](KeyedLimiter::snapshot).
    ///
    /// They are held to this builder's limit from the time of the snapshot on, with the tokens that
    /// they had then ([`Tokens::Kept`](crate::Tokens)), whatever limit it was taken under. The time
    /// since then counts, by the clock: with [`MonotonicClock`](crate::MonotonicClock) the time of
    /// day. If that is earlier than when the snapshot was taken, no time has passed.
    ///
    /// # Errors
    ///
    /// What [`build`](Self::build) finds, bytes that are no snapshot, or a damaged one, or one of a
    /// later version, of another kind of limiter, or of more clients than `max_clients`. A damaged
    /// one is told by a checksum, which is no defence against a forged one: that can give clients
    /// other tokens than they had, and crowd all of them in one place of a table, so that the
    /// limiter takes a hundred times the snapshot's length and is slow.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{KeyedLimiter, ManualClock, Rate, RestoreError};
    ///
    /// let quota = Rate::per_second(1).burst(10);
    /// let clock = ManualClock::default();
    /// let limiter = KeyedLimiter::builder(quota, 100).clock(clock.clone()).build()?;
    /// assert!(limiter.try_acquire("alice", 10).is_allowed());
    /// let mut snapshot = limiter.snapshot();
    /// clock.advance(Duration::from_secs(3)); // while nobody serves
    /// let builder = KeyedLimiter::builder(quota, 100).clock(clock);
    /// assert_eq!(builder.clone().restore(&snapshot)?.peek("alice").remaining(), 3);
    /// snapshot[20] ^= 1;
    /// assert_eq!(builder.restore(&snapshot).unwrap_err(), RestoreError::Damaged);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn restore(self, snapshot: &[u8]) -> Result<KeyedLimiter<L, C>, RestoreError> {
        let mut from = snapshot::body(snapshot, Kind::Keyed)?;
        let secrets = Secrets::from_words(self.bits(), || from.u64())?;
        let limiter = self.build_with(secrets)?;
        let now = limiter.timeline.read();
        limiter.store.read(&mut from, now)?;
        Ok(limiter)
    }

    /// The number of shards is two to the power of this.
    fn bits(&self) -> u32 {
        let few = u64::try_from(self.max_clients).is_ok_and(|most| most < FEW_CLIENTS);
        self.shard_bits.unwrap_or(if few { 0 } else { SHARD_BITS })
    }

    fn build_with(self, secrets: Secrets) -> Result<KeyedLimiter<L, C>, BuildError> {
        let most = MOST_PLANS.saturating_sub(1);
        if self.plans.len() > most {
            let plans = self.plans.len();
            return Err(BuildError::TooManyPlans { plans, most });
        }
        let validated = |limit: &L| limit.validated(self.largest_debt);
        let limit = validated(&self.limit)?;
        let plans: Result<Vec<_>, BuildError> = self.plans.iter().map(validated).collect();
        let max_clients = u64::try_from(self.max_clients).unwrap_or(u64::MAX);
        if max_clients == 0 {
            return Err(BuildError::MaxClientsIsZero);
        }
        if self.idle == Idle::After(0) {
            return Err(BuildError::IdleIsZero);
        }
        let plan = StorePlan {
            places: secrets.places(),
            max_clients: max_clients.min(total::MOST),
            idle: self.idle,
            overflow: self.overflow,
            owes: self.largest_debt > 0,
        };
        Ok(KeyedLimiter {
            store: limit.keyed(plans?, plan)?,
            secrets,
            issuer: Issuer::new(),
            max_clients: self.max_clients,
            largest_debt: self.largest_debt,
            timeline: Timeline::new(self.clock),
        })
    }
}
