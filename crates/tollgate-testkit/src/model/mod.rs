//! The limiter as its definition reads.

mod bucket;
mod past;
mod search;
#[cfg(test)]
mod tests;
mod window;

use std::collections::BTreeMap;

use crate::{Algorithm, Answer, Config};
use past::{Past, assert_defined};

/// The literal limiter: every client is asked on every call, levels are exact fractions, and waits
/// are searched for among whole nanoseconds rather than computed.
///
/// Two questions define a client: would this call be admitted at that time, and would the client
/// be as new at that time? A wait is the least number of nanoseconds after which the answer is
/// yes. That a client may be forgotten while it waits is left out of account, as the traces leave
/// it: a forgotten client is another client.
///
/// A rate, a period or a window of 0, which means nothing, counts as 1.
///
/// Calls other than [`Model::call`] that bring a time below the latest one seen act at that one.
/// Whatever is done to a client while it is banned is done to what it will have when its ban ends.
///
/// ```
/// use tollgate_testkit::{Algorithm, Answer, Config, Model};
///
/// let algorithm = Algorithm::SlidingLog { limit: 1, window_ns: 10 };
/// let mut model = Model::new(Config { algorithm, max_clients: Some(1), idle_ns: Some(10) });
/// model.call("a", 1, 0);
/// assert_eq!(
///     model.call("a", 1, 3),
///     Answer::Limited { remaining: 0, retry_after_ns: 7, reset_after_ns: 7 }
/// );
/// assert_eq!(model.call("b", 1, 12), Answer::ClientLimit);
/// assert_eq!((model.len(), model.len_at(13)), (1, 0));
/// ```
#[derive(Clone, Debug)]
pub struct Model {
    config: Config,
    largest_debt: u64,
    /// What the bucket of a client first seen holds; absent: its burst.
    initial_tokens: Option<u64>,
    /// Never falls.
    latest_ns: u64,
    clients: BTreeMap<String, Client>,
}

/// What a change of the limit leaves each client of its tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "tests match on it")]
pub enum Tokens {
    /// What it had, at most the new burst; in a window, what it used stays used.
    Kept,
    /// The same share of the new burst as it had of the old one. Not for windows.
    Proportional,
    /// All: a full bucket, a window without calls.
    Reset,
}

#[derive(Clone, Debug)]
struct Client {
    /// Never falls. Above the latest time seen, it is when the client's ban ends.
    last_attempt_ns: u64,
    past: Past,
}

impl Model {
    /// A limiter that has seen nobody.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            largest_debt: 0,
            initial_tokens: None,
            latest_ns: 0,
            clients: BTreeMap::new(),
        }
    }

    /// How many tokens [`Model::debit`] may leave a client owing; 0 otherwise.
    #[must_use]
    pub fn largest_debt(self, tokens: u64) -> Self {
        Self {
            largest_debt: tokens,
            ..self
        }
    }

    /// How many tokens the bucket of a client first seen holds, at most its burst; all of them
    /// otherwise. Windows ignore it.
    #[must_use]
    pub fn initial_tokens(self, tokens: u64) -> Self {
        Self {
            initial_tokens: Some(tokens),
            ..self
        }
    }

    /// The answer to one call; a cost of 0 is a look.
    pub fn call(&mut self, client: &str, cost: u64, at_ns: u64) -> Answer {
        if at_ns < self.latest_ns {
            return Answer::ClockBackwards;
        }
        self.latest_ns = at_ns;
        if cost > self.config.algorithm.burst() {
            return Answer::TooLarge;
        }
        self.sweep();
        let known = self.clients.get(client);
        if let Some(banned) = known.filter(|known| known.last_attempt_ns > at_ns) {
            return Answer::Banned {
                retry_after_ns: u128::from(banned.last_attempt_ns - at_ns),
            };
        }
        if cost == 0 {
            let new = self.newcomer();
            return known.unwrap_or(&new).past.allowed(0, u128::from(at_ns));
        }
        match self.track(client) {
            Some(caller) => {
                let at_ns = caller.attempt(at_ns);
                caller.past.attempt(cost, at_ns)
            }
            None => Answer::ClientLimit,
        }
    }

    /// What [`Model::call`] would answer.
    #[must_use]
    pub fn judge(&self, client: &str, cost: u64, at_ns: u64) -> Answer {
        self.clone().call(client, cost, at_ns)
    }

    /// Takes tokens, whether they are there or not, down to the largest debt. How many it took;
    /// `None` is the client limit. An attempt, but with 0 tokens nothing at all.
    ///
    /// Whom it leaves in debt waits until that is paid off as well:
    ///
    /// ```
    /// use tollgate_testkit::{Algorithm, Answer, Config, Model};
    ///
    /// let algorithm = Algorithm::TokenBucket { tokens: 1, per_ns: 1, burst: 100 };
    /// let config = Config { algorithm, max_clients: Some(1), idle_ns: None };
    /// let mut model = Model::new(config).largest_debt(50).initial_tokens(0);
    /// assert_eq!(model.debit("a", 60, 0), Some(50));
    /// assert_eq!(
    ///     model.call("a", 1, 0),
    ///     Answer::Limited { remaining: 0, retry_after_ns: 51, reset_after_ns: 150 }
    /// );
    /// assert_eq!(model.debit("b", 1, 0), None);
    /// ```
    pub fn debit(&mut self, client: &str, tokens: u64, at_ns: u64) -> Option<u64> {
        if tokens == 0 {
            return Some(0);
        }
        self.pass(at_ns);
        let (now_ns, largest_debt) = (self.latest_ns, self.largest_debt);
        let client = self.track(client)?;
        let at_ns = client.attempt(now_ns);
        Some(client.past.debit(tokens, largest_debt, at_ns))
    }

    /// Answers a client's calls with [`Answer::Banned`] until a time, unless it is banned for
    /// longer already. False is the client limit. An attempt, made when the ban ends.
    ///
    /// ```
    /// use tollgate_testkit::{Algorithm, Answer, Config, Model};
    ///
    /// let algorithm = Algorithm::SlidingLog { limit: 1, window_ns: 10 };
    /// let mut model = Model::new(Config { algorithm, max_clients: Some(1), idle_ns: Some(10) });
    /// assert!(model.ban("a", 50, 0));
    /// assert!(!model.ban("b", 50, 59), "a is tracked until it has been idle for 10");
    /// assert_eq!(model.judge("a", 1, 59), model.judge("a", 1, 60));
    /// ```
    pub fn ban(&mut self, client: &str, until_ns: u64, at_ns: u64) -> bool {
        self.pass(at_ns);
        let end_ns = self.latest_ns.max(until_ns);
        match self.track(client) {
            Some(client) => {
                client.attempt(end_ns);
                true
            }
            None => false,
        }
    }

    /// Has a client make an attempt that takes nothing; nothing for whom is not tracked.
    pub fn touch(&mut self, client: &str, at_ns: u64) {
        self.pass(at_ns);
        if let Some(client) = self.clients.get_mut(client) {
            client.attempt(self.latest_ns);
        }
    }

    /// Puts another limit in the place of this one, of the same kind, and another idle time.
    ///
    /// Whoever is idle under the old one is forgotten before. All others make an attempt that takes
    /// nothing; what they have then, or will have when their ban ends, is put in the terms of the
    /// new limit:
    ///
    /// - A bucket's level is rounded down to a whole number of `1/q` tokens, with `p/q` the new
    ///   rate in lowest terms; it is at most the new burst, and no debt above the largest.
    /// - A fixed window stays open from the time at which it opened. Of an aligned one, the calls
    ///   belong to the window of the new length that is open.
    /// - A sliding log's calls count if they count under both lengths.
    /// - Of a sliding window counter of another length, what is weighed is rounded up and belongs
    ///   to the window of the new length that is open, as if it had just been taken.
    ///
    /// # Panics
    ///
    /// To another kind of limit, or another anchor; in proportion, for a window: what that would
    /// mean is not defined.
    ///
    /// ```
    /// use tollgate_testkit::{Algorithm, Answer, Config, Model, Tokens};
    ///
    /// let bucket = |burst| Algorithm::TokenBucket { tokens: 1, per_ns: 10, burst };
    /// let config = Config { algorithm: bucket(4), max_clients: None, idle_ns: None };
    /// let mut model = Model::new(config);
    /// model.call("a", 2, 0);
    /// model.change(bucket(2), None, Tokens::Proportional, 0);
    /// assert_eq!(
    ///     model.call("a", 2, 0),
    ///     Answer::Limited { remaining: 1, retry_after_ns: 10, reset_after_ns: 10 }
    /// );
    /// ```
    pub fn change(
        &mut self,
        algorithm: Algorithm,
        idle_ns: Option<u64>,
        tokens: Tokens,
        at_ns: u64,
    ) {
        assert_defined(&self.config.algorithm, &algorithm, tokens);
        self.pass(at_ns);
        for client in self.clients.values_mut() {
            let at_ns = client.attempt(self.latest_ns);
            client
                .past
                .change(&algorithm, tokens, self.largest_debt, at_ns);
        }
        self.config = Config {
            algorithm,
            idle_ns,
            ..self.config
        };
    }

    /// Clients tracked at the latest time seen.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len_at(self.latest_ns)
    }

    /// Clients that would be tracked at that time, if nothing else happened until then. Whom a
    /// call has swept is gone, also from the times before it.
    #[must_use]
    pub fn len_at(&self, at_ns: u64) -> usize {
        let tracked = self.clients.values();
        tracked
            .filter(|client| !client.is_forgotten(self.config.idle_ns, at_ns))
            .count()
    }

    /// Whether nobody is tracked at the latest time seen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Gives a client tokens back, of a call that was admitted at a time or of the latest ones.
    pub fn refund(&mut self, client: &str, tokens: u64, taken_at_ns: Option<u64>, at_ns: u64) {
        self.pass(at_ns);
        if let Some(client) = self.clients.get_mut(client) {
            let at_ns = client.judged_at_ns(self.latest_ns);
            client.past.refund(tokens, taken_at_ns, at_ns);
        }
    }

    /// Forgets a client at that time, or at the latest one seen if that is later; whether it was
    /// tracked until then.
    pub fn remove(&mut self, client: &str, at_ns: u64) -> bool {
        self.pass(at_ns);
        self.clients.remove(client).is_some()
    }

    /// Lets time pass, if that is later than the latest one seen.
    fn pass(&mut self, at_ns: u64) {
        self.latest_ns = self.latest_ns.max(at_ns);
        self.sweep();
    }

    fn sweep(&mut self) {
        let (idle_ns, now_ns) = (self.config.idle_ns, self.latest_ns);
        self.clients
            .retain(|_, client| !client.is_forgotten(idle_ns, now_ns));
    }

    /// A client first seen at the latest time seen.
    fn newcomer(&self) -> Client {
        let now_ns = u128::from(self.latest_ns);
        Client {
            last_attempt_ns: self.latest_ns,
            past: Past::new(&self.config.algorithm, self.initial_tokens, now_ns),
        }
    }

    /// The client, tracked from now on if it was not; `None` is the client limit.
    fn track(&mut self, client: &str) -> Option<&mut Client> {
        if !self.clients.contains_key(client) && self.is_full() {
            return None;
        }
        let new = self.newcomer();
        Some(self.clients.entry(client.to_owned()).or_insert(new))
    }

    fn is_full(&self) -> bool {
        let tracked = u128::try_from(self.clients.len()).unwrap_or(u128::MAX);
        self.config
            .max_clients
            .is_some_and(|most| tracked >= u128::from(most))
    }
}

impl Client {
    /// The time that stands for now in what it may take: when its ban ends, if it is banned.
    fn judged_at_ns(&self, now_ns: u64) -> u128 {
        u128::from(self.last_attempt_ns.max(now_ns))
    }

    /// Makes an attempt, at a time or when its ban ends; when that is.
    fn attempt(&mut self, at_ns: u64) -> u128 {
        self.last_attempt_ns = self.last_attempt_ns.max(at_ns);
        u128::from(self.last_attempt_ns)
    }

    fn is_forgotten(&self, idle_ns: Option<u64>, at_ns: u64) -> bool {
        idle_ns.is_some_and(|idle_ns| {
            u128::from(self.last_attempt_ns) + u128::from(idle_ns) <= u128::from(at_ns)
        })
    }
}
