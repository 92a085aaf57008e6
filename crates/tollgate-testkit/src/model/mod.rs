//! The limiter as its definition reads.

mod bucket;
mod search;
mod window;

use std::collections::BTreeMap;

use crate::{Algorithm, Anchor, Answer, Config};
use bucket::{LeakyBucket, TokenBucket};
use search::least_after;
use window::{Counting, Window};

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
    /// Never falls.
    latest_ns: u64,
    clients: BTreeMap<String, Client>,
}

#[derive(Clone, Debug)]
struct Client {
    last_attempt_ns: u64,
    past: Past,
}

/// What a client has done, in the terms of the algorithm that judges it.
#[derive(Clone, Debug)]
enum Past {
    TokenBucket(TokenBucket),
    LeakyBucket(LeakyBucket),
    Window(Window),
}

impl Model {
    /// A limiter that has seen nobody.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            latest_ns: 0,
            clients: BTreeMap::new(),
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
        let new = Client {
            last_attempt_ns: at_ns,
            past: Past::new(&self.config.algorithm, u128::from(at_ns)),
        };
        if cost == 0 {
            let looked_at = self.clients.get(client).unwrap_or(&new);
            return looked_at.past.allowed(0, u128::from(at_ns));
        }
        if !self.clients.contains_key(client) && self.is_full() {
            return Answer::ClientLimit;
        }
        let caller = self.clients.entry(client.to_owned()).or_insert(new);
        caller.last_attempt_ns = at_ns;
        caller.past.attempt(cost, u128::from(at_ns))
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
        self.latest_ns = self.latest_ns.max(at_ns);
        self.sweep();
        let now_ns = u128::from(self.latest_ns);
        if let Some(client) = self.clients.get_mut(client) {
            match &mut client.past {
                Past::TokenBucket(bucket) => bucket.refund(tokens, now_ns),
                Past::LeakyBucket(bucket) => bucket.refund(tokens, now_ns),
                Past::Window(window) => {
                    window.refund(tokens, taken_at_ns.map(u128::from), now_ns);
                }
            }
        }
    }

    /// Forgets a client at that time, or at the latest one seen if that is later; whether it was
    /// tracked until then.
    pub fn remove(&mut self, client: &str, at_ns: u64) -> bool {
        self.latest_ns = self.latest_ns.max(at_ns);
        self.sweep();
        self.clients.remove(client).is_some()
    }

    fn sweep(&mut self) {
        let (idle_ns, now_ns) = (self.config.idle_ns, self.latest_ns);
        self.clients
            .retain(|_, client| !client.is_forgotten(idle_ns, now_ns));
    }

    fn is_full(&self) -> bool {
        let tracked = u128::try_from(self.clients.len()).unwrap_or(u128::MAX);
        self.config
            .max_clients
            .is_some_and(|most| tracked >= u128::from(most))
    }
}

impl Client {
    fn is_forgotten(&self, idle_ns: Option<u64>, at_ns: u64) -> bool {
        idle_ns.is_some_and(|idle_ns| {
            u128::from(self.last_attempt_ns) + u128::from(idle_ns) <= u128::from(at_ns)
        })
    }
}

impl Past {
    fn new(algorithm: &Algorithm, at_ns: u128) -> Self {
        match *algorithm {
            Algorithm::TokenBucket {
                tokens,
                per_ns,
                burst,
            } => Self::TokenBucket(TokenBucket::full(tokens, per_ns, burst, at_ns)),
            Algorithm::LeakyBucket {
                tokens,
                per_ns,
                burst,
            } => Self::LeakyBucket(LeakyBucket::drained(tokens, per_ns, burst, at_ns)),
            Algorithm::FixedWindow {
                limit,
                window_ns,
                anchor,
            } => {
                let counting = match anchor {
                    Anchor::First => Counting::FromFirst,
                    Anchor::Aligned => Counting::Aligned,
                };
                Self::Window(Window::without_calls(counting, limit, window_ns))
            }
            Algorithm::SlidingLog { limit, window_ns } => {
                Self::Window(Window::without_calls(Counting::Log, limit, window_ns))
            }
            Algorithm::SlidingWindowCounter { limit, window_ns } => {
                Self::Window(Window::without_calls(Counting::Weighed, limit, window_ns))
            }
        }
    }

    fn attempt(&mut self, cost: u64, at_ns: u128) -> Answer {
        let retry_after_ns = least_after(at_ns, self.admits(cost));
        if retry_after_ns > 0 {
            return Answer::Limited {
                remaining: self.remaining(at_ns),
                retry_after_ns,
                reset_after_ns: self.reset_after_ns(at_ns),
            };
        }
        // It leaves when those ahead of it have drained, so before it joins them.
        let delay_ns = match self {
            Self::LeakyBucket(_) => self.reset_after_ns(at_ns),
            Self::TokenBucket(_) | Self::Window(_) => 0,
        };
        match self {
            Self::TokenBucket(bucket) => bucket.take(cost, at_ns),
            Self::LeakyBucket(bucket) => bucket.take(cost, at_ns),
            Self::Window(window) => window.take(cost, at_ns),
        }
        self.allowed(delay_ns, at_ns)
    }

    fn allowed(&self, delay_ns: u128, at_ns: u128) -> Answer {
        Answer::Allowed {
            remaining: self.remaining(at_ns),
            delay_ns,
            reset_after_ns: self.reset_after_ns(at_ns),
        }
    }

    fn reset_after_ns(&self, at_ns: u128) -> u128 {
        least_after(at_ns, self.is_as_new())
    }

    /// At what times a call of that cost would be admitted.
    fn admits(&self, cost: u64) -> Box<dyn Fn(u128) -> bool + '_> {
        match self {
            Self::TokenBucket(bucket) => Box::new(bucket.admits(cost)),
            Self::LeakyBucket(bucket) => Box::new(bucket.admits(cost)),
            Self::Window(window) => Box::new(window.admits(cost)),
        }
    }

    /// At what times nothing tells the client from a new one.
    fn is_as_new(&self) -> Box<dyn Fn(u128) -> bool + '_> {
        match self {
            Self::TokenBucket(bucket) => Box::new(bucket.is_full()),
            Self::LeakyBucket(bucket) => Box::new(bucket.is_drained()),
            Self::Window(window) => Box::new(window.is_as_new()),
        }
    }

    fn remaining(&self, at_ns: u128) -> u64 {
        match self {
            Self::TokenBucket(bucket) => bucket.remaining(at_ns),
            Self::LeakyBucket(bucket) => bucket.remaining(at_ns),
            Self::Window(window) => window.remaining(at_ns),
        }
    }
}
