//! The records run through the limiter, and what it answered.

use std::cmp::Reverse;
use std::time::Duration;

use tollgate::{
    BuildError, ClockWentBackwards, Decision, KeyedLimiter, ManualClock, Quota, Timestamp,
};

use super::records::{Account, Parts, Record};

/// A bucket a client, kept for ever. The clock is never read: each record brings its time.
type Limiter = KeyedLimiter<tollgate::TokenBucket, ManualClock>;

/// The limit that is tried, ready to be tried once.
#[derive(Debug)]
pub struct Trial {
    quota: Quota,
    limiter: Limiter,
}

/// What the limit would have done.
#[derive(Clone, Debug)]
pub struct Figures {
    /// The limit.
    pub quota: Quota,
    /// The log, and how much of it was refused.
    pub summary: Summary,
    /// The clients refused most often, then by name.
    pub top: Vec<Tally>,
}

/// A log, and how much of it was refused.
#[derive(Clone, Debug)]
pub struct Summary {
    /// What was read.
    pub account: Account,
    /// The time of the first record, in nanoseconds since 1970.
    pub first_ns: u64,
    /// The time of the last.
    pub last_ns: u64,
    /// Clients seen.
    pub clients: u64,
    /// Requests refused.
    pub limited_requests: u64,
    /// Clients refused at least once.
    pub limited_clients: u64,
}

impl Summary {
    /// Of records in time order, and what became of each client.
    pub(super) fn new(records: &[Record], account: Account, tallies: &[Tally]) -> Self {
        let at = |record: Option<&Record>| record.map_or(0, |record| record.at_ns);
        Self {
            account,
            first_ns: at(records.first()),
            last_ns: at(records.last()),
            clients: count(tallies),
            limited_requests: tallies.iter().map(|tally| tally.limited).sum(),
            limited_clients: limited(tallies),
        }
    }
}

/// One client's figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Its name, as in the log.
    pub client: Box<[u8]>,
    /// Its requests.
    pub requests: u64,
    /// Those refused.
    pub limited: u64,
    /// The longest wait that a refusal told it.
    pub longest_wait: Duration,
}

impl Trial {
    /// A limit of `quota` for each client.
    ///
    /// # Errors
    ///
    /// A quota that no limiter represents exactly.
    pub fn new(quota: Quota) -> Result<Self, BuildError> {
        let limiter = KeyedLimiter::builder(quota, usize::MAX)
            .never_forget()
            .clock(ManualClock::default())
            .build()?;
        Ok(Self { quota, limiter })
    }

    /// Tries the limit on a log: one token a request. Keeps the `top` clients hit most.
    ///
    /// # Errors
    ///
    /// Records that are not in time order.
    pub fn run(self, parts: Parts, top: usize) -> Result<Figures, ClockWentBackwards> {
        let Parts {
            records,
            clients,
            account,
        } = parts;
        let name = |client| Tally {
            client,
            ..Tally::default()
        };
        let mut tallies: Vec<Tally> = clients.into_iter().map(name).collect();
        for record in &records {
            let now = Timestamp::from_nanos(record.at_ns);
            // The number stands for the name: they are one to one, and it hashes faster.
            let decision = self.limiter.try_acquire_at(&record.client, 1, now)?;
            let place = usize::try_from(record.client).ok();
            let Some(tally) = place.and_then(|place| tallies.get_mut(place)) else {
                continue;
            };
            tally.add(decision);
        }
        Ok(Figures {
            quota: self.quota,
            summary: Summary::new(&records, account, &tallies),
            top: most_limited(tallies, top),
        })
    }
}

impl Tally {
    /// Adds a request, and what it was answered.
    pub(super) fn add(&mut self, decision: Decision) {
        self.requests = self.requests.saturating_add(1);
        if !decision.is_allowed() {
            self.limited = self.limited.saturating_add(1);
            let wait = decision.retry_after().unwrap_or_default();
            self.longest_wait = self.longest_wait.max(wait);
        }
    }
}

/// Those that were refused at all, most often first, then by name; at most so many.
pub(super) fn most_limited(mut tallies: Vec<Tally>, most: usize) -> Vec<Tally> {
    tallies.retain(|tally| tally.limited != 0);
    tallies.sort_unstable_by(|a, b| {
        (Reverse(a.limited), &a.client).cmp(&(Reverse(b.limited), &b.client))
    });
    tallies.truncate(most);
    tallies
}

/// How many were refused at all.
pub(super) fn limited(tallies: &[Tally]) -> u64 {
    let limited = tallies.iter().filter(|tally| tally.limited != 0).count();
    u64::try_from(limited).unwrap_or(u64::MAX)
}

pub(super) fn count(tallies: &[Tally]) -> u64 {
    u64::try_from(tallies.len()).unwrap_or(u64::MAX)
}
