//! How often a limiter has given which answer.

/// How often a limiter has given which answer since it was built, and whom it has forgotten.
///
/// Looks, debits, bans and calls under a plan that asks no bucket are not counted, but for debits
/// and bans that found the table full. The counts of one limiter are exact whenever no call is
/// under way; each wraps around at 2^64.
///
/// ```
/// use tollgate::{KeyedLimiter, Rate};
///
/// let limiter = KeyedLimiter::new(Rate::per_hour(1).burst(1), 1)?;
/// assert!(limiter.allow("alice"));
/// assert!(!limiter.allow("alice") && !limiter.allow("bob"));
/// let statistics = limiter.statistics();
/// assert_eq!((statistics.allowed, statistics.limited, statistics.client_limit), (1, 1, 1));
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Answers `Allowed`.
    pub allowed: u64,
    /// Answers `Limited`.
    pub limited: u64,
    /// Answers `Banned`.
    pub banned: u64,
    /// Answers `TooLarge`.
    pub too_large: u64,
    /// Answers `ClientLimit`.
    pub client_limit: u64,
    /// Of the answers above, those that newcomers to a full table had from the bucket that they
    /// share.
    pub overflowed: u64,
    /// Clients forgotten because they were idle.
    pub forgotten: u64,
}

/// The same where it is counted: under a lock, beside what is being changed there anyway.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    allowed: u64,
    limited: u64,
    pub(crate) banned: u64,
    pub(crate) too_large: u64,
    pub(crate) client_limit: u64,
    pub(crate) forgotten: u64,
}

impl Counts {
    #[inline]
    pub(crate) fn judged(&mut self, admitted: bool) {
        // A branch, so that one of them is written, at an address that is known beforehand.
        if admitted {
            self.allowed(1);
        } else {
            self.limited();
        }
    }

    #[inline]
    pub(crate) fn allowed(&mut self, calls: u64) {
        self.allowed = self.allowed.wrapping_add(calls);
    }

    #[inline(never)]
    pub(crate) fn limited(&mut self) {
        self.limited = self.limited.wrapping_add(1);
    }

    pub(crate) fn forgot(&mut self, clients: usize) {
        let clients = u64::try_from(clients).unwrap_or(u64::MAX);
        self.forgotten = self.forgotten.wrapping_add(clients);
    }

    pub(crate) fn add_to(&self, statistics: &mut Statistics) {
        for (sum, own) in [
            (&mut statistics.allowed, self.allowed),
            (&mut statistics.limited, self.limited),
            (&mut statistics.banned, self.banned),
            (&mut statistics.too_large, self.too_large),
            (&mut statistics.client_limit, self.client_limit),
            (&mut statistics.forgotten, self.forgotten),
        ] {
            *sum = sum.wrapping_add(own);
        }
    }

    /// Of the bucket that newcomers share.
    pub(crate) fn add_overflow_to(&self, statistics: &mut Statistics) {
        let judged = self.allowed.wrapping_add(self.limited);
        let of_them = judged.wrapping_add(self.banned);
        statistics.overflowed = statistics.overflowed.wrapping_add(of_them);
        self.add_to(statistics);
    }
}
