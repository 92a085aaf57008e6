//! The limiter as its definition reads: every client is asked on every call, history is kept as it
//! happened, and waits are searched for rather than computed.
//!
//! Two questions define everything: would this call be admitted at that time, and would the client
//! be as new at that time? What remains is the largest call that would pass now; a wait is the
//! least number of nanoseconds after which the answer to its question is yes.

use std::collections::BTreeMap;

use crate::{Algorithm, Anchor, Answer, Config};

/// The literal limiter.
#[derive(Clone, Debug)]
pub struct Model {
    config: Config,
    clients: BTreeMap<String, Client>,
    latest_ns: u64,
}

/// What happened to one client since it was first seen.
#[derive(Clone, Debug)]
struct Client {
    last_attempt_ns: u64,
    /// (time, cost) of the admitted calls that may still count.
    admitted: Vec<(u64, u64)>,
    /// Buckets: the level in 1/`per_ns` tokens, and when that was.
    level: (u128, u64),
}

impl Model {
    /// A limiter that has seen nobody.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            clients: BTreeMap::new(),
            latest_ns: 0,
        }
    }

    /// Judges one call.
    pub fn call(&mut self, client: &str, cost: u64, at_ns: u64) -> Answer {
        if at_ns < self.latest_ns {
            return Answer::ClockBackwards;
        }
        self.latest_ns = at_ns;
        let algorithm = self.config.algorithm.clone();
        if cost > algorithm.burst() {
            return Answer::TooLarge;
        }
        self.sweep(at_ns);
        let known = self.clients.get(client);
        let mut state = known
            .cloned()
            .unwrap_or_else(|| Client::new(&algorithm, at_ns));
        if cost == 0 {
            return state.report(&algorithm, at_ns);
        }
        let tracked = u64::try_from(self.clients.len()).unwrap_or(u64::MAX);
        if known.is_none() && self.config.max_clients.is_some_and(|most| tracked >= most) {
            return Answer::ClientLimit;
        }
        let answer = state.attempt(&algorithm, cost, at_ns);
        self.clients.insert(client.to_owned(), state);
        answer
    }

    /// Clients tracked at the latest time seen, or at `at_ns` if that is later.
    pub fn len_at(&mut self, at_ns: u64) -> usize {
        self.latest_ns = self.latest_ns.max(at_ns);
        self.sweep(self.latest_ns);
        self.clients.len()
    }

    /// Forgets a client; whether it was tracked.
    pub fn remove(&mut self, client: &str, at_ns: u64) -> bool {
        self.len_at(at_ns);
        self.clients.remove(client).is_some()
    }

    fn sweep(&mut self, now_ns: u64) {
        if let Some(idle_ns) = self.config.idle_ns {
            self.clients
                .retain(|_, client| now_ns - client.last_attempt_ns < idle_ns);
        }
    }
}

impl Client {
    fn new(algorithm: &Algorithm, at_ns: u64) -> Self {
        let full = match *algorithm {
            Algorithm::TokenBucket { burst, per_ns, .. }
            | Algorithm::LeakyBucket { burst, per_ns, .. } => {
                u128::from(burst) * u128::from(per_ns)
            }
            Algorithm::FixedWindow { .. }
            | Algorithm::SlidingLog { .. }
            | Algorithm::SlidingWindowCounter { .. } => 0,
        };
        Self {
            last_attempt_ns: at_ns,
            admitted: Vec::new(),
            level: (full, at_ns),
        }
    }

    fn attempt(&mut self, algorithm: &Algorithm, cost: u64, at_ns: u64) -> Answer {
        let before = self.clone();
        self.last_attempt_ns = at_ns;
        if !self.admits(algorithm, cost, u128::from(at_ns)) {
            let retry_after_ns =
                least(|wait| self.admits(algorithm, cost, u128::from(at_ns) + wait));
            let remaining = self.remaining(algorithm, u128::from(at_ns));
            let reset_after_ns = self.reset_after_ns(algorithm, at_ns);
            return Answer::Limited {
                remaining,
                retry_after_ns,
                reset_after_ns,
            };
        }
        match *algorithm {
            Algorithm::TokenBucket { per_ns, .. } | Algorithm::LeakyBucket { per_ns, .. } => {
                let level = self.level_at(algorithm, u128::from(at_ns));
                self.level = (level - u128::from(cost) * u128::from(per_ns), at_ns);
            }
            Algorithm::FixedWindow {
                window_ns, anchor, ..
            } => {
                // The calls of windows that have closed are of no more use; those of the open one
                // tell when it opened.
                if self.used_in_window(window_ns, anchor, u128::from(at_ns)) == 0 {
                    self.admitted.clear();
                }
                self.admitted.push((at_ns, cost));
            }
            Algorithm::SlidingLog { window_ns, .. }
            | Algorithm::SlidingWindowCounter { window_ns, .. } => {
                // Older than two windows: no definition below looks at it any more.
                self.admitted
                    .retain(|call| at_ns - call.0 < window_ns.saturating_mul(2));
                self.admitted.push((at_ns, cost));
            }
        }
        let Answer::Allowed {
            remaining,
            reset_after_ns,
            ..
        } = self.report(algorithm, at_ns)
        else {
            return Answer::ClientLimit;
        };
        let delay_ns = match algorithm {
            // It leaves when those ahead of it have drained.
            Algorithm::LeakyBucket { .. } => before.reset_after_ns(algorithm, at_ns),
            Algorithm::TokenBucket { .. }
            | Algorithm::FixedWindow { .. }
            | Algorithm::SlidingLog { .. }
            | Algorithm::SlidingWindowCounter { .. } => 0,
        };
        Answer::Allowed {
            remaining,
            delay_ns,
            reset_after_ns,
        }
    }

    fn report(&self, algorithm: &Algorithm, at_ns: u64) -> Answer {
        Answer::Allowed {
            remaining: self.remaining(algorithm, u128::from(at_ns)),
            delay_ns: 0,
            reset_after_ns: self.reset_after_ns(algorithm, at_ns),
        }
    }

    fn reset_after_ns(&self, algorithm: &Algorithm, at_ns: u64) -> u128 {
        least(|wait| self.is_as_new(algorithm, u128::from(at_ns) + wait))
    }

    /// The largest call that would pass.
    fn remaining(&self, algorithm: &Algorithm, at_ns: u128) -> u64 {
        let burst = algorithm.burst();
        let refused = least(|cost| {
            let cost = u64::try_from(cost).unwrap_or(u64::MAX);
            cost > burst || !self.admits(algorithm, cost, at_ns)
        });
        u64::try_from(refused).map_or(burst, |refused| refused.saturating_sub(1))
    }

    fn admits(&self, algorithm: &Algorithm, cost: u64, at_ns: u128) -> bool {
        let cost = u128::from(cost);
        match *algorithm {
            Algorithm::TokenBucket { per_ns, .. } | Algorithm::LeakyBucket { per_ns, .. } => {
                cost * u128::from(per_ns) <= self.level_at(algorithm, at_ns)
            }
            Algorithm::FixedWindow {
                limit,
                window_ns,
                anchor,
            } => self.used_in_window(window_ns, anchor, at_ns) + cost <= u128::from(limit),
            Algorithm::SlidingLog { limit, window_ns } => {
                self.sum(|call_ns| at_ns - call_ns < u128::from(window_ns)) + cost
                    <= u128::from(limit)
            }
            Algorithm::SlidingWindowCounter { limit, window_ns } => {
                let window_ns = u128::from(window_ns);
                let (window, into) = (at_ns / window_ns, at_ns % window_ns);
                let current = self.sum(|call_ns| call_ns / window_ns == window);
                let previous = self.sum(|call_ns| call_ns / window_ns + 1 == window);
                // previous x overlap / window + current + cost <= limit
                let left = u128::from(limit).checked_sub(current + cost);
                left.is_some_and(|left| previous * (window_ns - into) <= left * window_ns)
            }
        }
    }

    fn is_as_new(&self, algorithm: &Algorithm, at_ns: u128) -> bool {
        match *algorithm {
            Algorithm::TokenBucket { burst, per_ns, .. }
            | Algorithm::LeakyBucket { burst, per_ns, .. } => {
                self.level_at(algorithm, at_ns) == u128::from(burst) * u128::from(per_ns)
            }
            Algorithm::FixedWindow {
                window_ns, anchor, ..
            } => self.used_in_window(window_ns, anchor, at_ns) == 0,
            Algorithm::SlidingLog { window_ns, .. } => {
                self.sum(|call_ns| at_ns - call_ns < u128::from(window_ns)) == 0
            }
            Algorithm::SlidingWindowCounter { window_ns, .. } => {
                let window = |ns: u128| ns / u128::from(window_ns);
                self.sum(|call_ns| window(at_ns) - window(call_ns) <= 1) == 0
            }
        }
    }

    /// A bucket's level in 1/`per_ns` tokens: every nanosecond earns `tokens` of them.
    fn level_at(&self, algorithm: &Algorithm, at_ns: u128) -> u128 {
        let (Algorithm::TokenBucket {
            tokens,
            per_ns,
            burst,
        }
        | Algorithm::LeakyBucket {
            tokens,
            per_ns,
            burst,
        }) = *algorithm
        else {
            return 0;
        };
        let elapsed = at_ns - u128::from(self.level.1);
        let earned = elapsed.saturating_mul(u128::from(tokens));
        let capacity = u128::from(burst) * u128::from(per_ns);
        self.level.0.saturating_add(earned).min(capacity)
    }

    /// What the window that `at_ns` falls in has admitted.
    fn used_in_window(&self, window_ns: u64, anchor: Anchor, at_ns: u128) -> u128 {
        let window_ns = u128::from(window_ns);
        match anchor {
            Anchor::Aligned => self.sum(|call_ns| call_ns / window_ns == at_ns / window_ns),
            Anchor::First => {
                // Each admitted call either falls in the window open at its time or opens one.
                let mut opened_ns: Option<u128> = None;
                let mut used = 0;
                for &(call_ns, cost) in &self.admitted {
                    let call_ns = u128::from(call_ns);
                    if opened_ns.is_none_or(|opened_ns| call_ns - opened_ns >= window_ns) {
                        opened_ns = Some(call_ns);
                        used = 0;
                    }
                    used += u128::from(cost);
                }
                let is_open = opened_ns.is_some_and(|opened_ns| at_ns - opened_ns < window_ns);
                if is_open { used } else { 0 }
            }
        }
    }

    /// The cost of the admitted calls whose time is one of those.
    fn sum(&self, counts: impl Fn(u128) -> bool) -> u128 {
        let counted = self
            .admitted
            .iter()
            .filter(|call| counts(u128::from(call.0)));
        counted.map(|call| u128::from(call.1)).sum()
    }
}

/// The least number for which the answer is yes, given that it then stays yes.
fn least(is_enough: impl Fn(u128) -> bool) -> u128 {
    if is_enough(0) {
        return 0;
    }
    let (mut too_few, mut enough) = (0, 1);
    while !is_enough(enough) {
        too_few = enough;
        enough *= 2;
    }
    while enough - too_few > 1 {
        let middle = too_few + (enough - too_few) / 2;
        if is_enough(middle) {
            enough = middle;
        } else {
            too_few = middle;
        }
    }
    enough
}
