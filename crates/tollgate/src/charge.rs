//! Tokens that were taken, by someone who may give them back.

use core::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Decision;
use crate::keyed::key::Key;

/// A number that nothing else in this process has: 2^64 limiters are more than one builds.
pub(crate) fn unique() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Tokens that were taken and can be given back, once: to
/// [`KeyedLimiter::cancel`](crate::KeyedLimiter::cancel) or
/// [`Limiter::cancel`](crate::Limiter::cancel) of the limiter that they were taken from. Dropped,
/// they stay taken.
///
/// It cannot be copied, so nothing is given back twice; and it knows when it was taken, so nothing
/// is given back to a window that it was not taken from.
///
/// ```
/// use tollgate::{KeyedLimiter, Rate};
///
/// let limiter = KeyedLimiter::new(Rate::per_hour(1).burst(2), 100)?;
/// let charge = limiter.charge("alice", 2).expect("a new client has its burst");
/// assert!(!limiter.allow("alice"));
/// limiter.cancel(charge); // what it was for did not happen
/// assert!(limiter.allow("alice"));
/// # Ok::<(), tollgate::BuildError>(())
/// ```
pub struct Charge {
    issuer: u64,
    key: Key,
    cost: u64,
    taken_at: u64,
    decision: Decision,
}

impl Charge {
    /// The answer with which the tokens were taken.
    pub fn decision(&self) -> Decision {
        self.decision
    }
}

/// What a debit took, and what comes next.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{KeyedLimiter, ManualClock, Rate};
///
/// // 1,000 tokens a minute, and an answer may overdraw them by 500.
/// let limiter = KeyedLimiter::builder(Rate::per_minute(1_000).burst(1_000), 100)
///     .largest_debt(500)
///     .clock(ManualClock::default())
///     .build()?;
/// assert!(limiter.try_acquire("alice", 900).is_allowed()); // what the prompt costs
/// let debit = limiter.debit("alice", 400); // what the answer turned out to cost
/// assert_eq!(debit.taken(), 400);
/// assert_eq!(debit.next().retry_after(), Some(Duration::from_millis(18_060))); // for 301 tokens
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Debit {
    taken: u64,
    next: Decision,
}

impl Debit {
    pub(crate) fn new((taken, next): (u64, Decision)) -> Self {
        Self { taken, next }
    }

    /// Nothing was taken: the client is new, and as many as may be are tracked.
    pub(crate) const CLIENT_LIMIT: Self = Self {
        taken: 0,
        next: Decision::ClientLimit,
    };

    /// How many tokens were taken: all, but for those that would have left more than the largest
    /// debt.
    #[must_use]
    pub const fn taken(self) -> u64 {
        self.taken
    }

    /// What the client is told right after: the refusal that a call for one token would meet, or
    /// what a look says.
    pub const fn next(self) -> Decision {
        self.next
    }
}

/// Who hands charges out, and takes back no others.
#[derive(Clone, Copy)]
pub(crate) struct Issuer(u64);

impl Issuer {
    pub(crate) fn new() -> Self {
        Self(unique())
    }

    /// The charge if the decision took something, else the decision.
    pub(crate) fn charge(
        &self,
        key: Key,
        cost: u64,
        (decision, taken_at): (Decision, u64),
    ) -> Result<Charge, Decision> {
        if !decision.is_allowed() {
            return Err(decision);
        }
        Ok(Charge {
            issuer: self.0,
            key,
            cost,
            taken_at,
            decision,
        })
    }

    /// Whose the tokens are, how many, and since when; `None` of another limiter's charge.
    pub(crate) fn accept(&self, charge: &Charge) -> Option<(Key, u64, u64)> {
        (charge.issuer == self.0).then_some((charge.key, charge.cost, charge.taken_at))
    }
}

impl fmt::Debug for Charge {
    /// How much, and how it was answered; the client stays out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Charge")
            .field("cost", &self.cost)
            .field("decision", &self.decision)
            .finish_non_exhaustive()
    }
}
