//! Random limiters and calls, the same for the same seed.

use crate::{Algorithm, Anchor, Call, Config, Trace};

const SECOND: u64 = 1_000_000_000;
const MONTH: u64 = 30 * 86_400 * SECOND;
const YEAR: u64 = 365 * 86_400 * SECOND;

/// A source of random numbers: `SplitMix64` (Steele, Lea, Flood, "Fast splittable pseudorandom
/// number generators", 2014). Not for secrets.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The source for a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Any number.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `below` - 1; 0 if that is empty.
    pub fn below(&mut self, below: u64) -> u64 {
        self.next_u64().checked_rem(below).unwrap_or(0)
    }

    /// One in `n`.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of the choices.
    pub fn pick<T: Copy>(&mut self, first: T, others: &[T]) -> T {
        let others_len = u64::try_from(others.len()).unwrap_or(0);
        let chosen = usize::try_from(self.below(others_len + 1)).unwrap_or(0);
        chosen
            .checked_sub(1)
            .and_then(|n| others.get(n))
            .copied()
            .unwrap_or(first)
    }

    /// From 1 to `most`, every order of magnitude as likely.
    pub fn magnitude(&mut self, most: u64) -> u64 {
        let bits = u64::from(most.max(1).ilog2());
        let scale = 1_u64 << self.below(bits + 1);
        (scale + self.below(scale)).min(most)
    }

    /// A token or leaky bucket from one token a month to 10^10 a second, with a burst up to 2^40.
    pub fn bucket(&mut self) -> Algorithm {
        let (tokens, per_ns) = match self.below(4) {
            0 => (
                self.pick(1, &[2, 3, 7, 10, 600_000]),
                self.pick(SECOND, &[60 * SECOND, MONTH]),
            ),
            1 => (self.magnitude(10_000_000_000), SECOND),
            2 => (1, self.magnitude(MONTH)),
            _ => {
                let per_ns = self.magnitude(MONTH);
                (
                    self.magnitude(per_ns.saturating_mul(10).min(1 << 40)),
                    per_ns,
                )
            }
        };
        let burst = match self.below(3) {
            0 => self.pick(1, &[2, 3, 10]),
            1 => self.magnitude(1_000),
            _ => self.magnitude(1 << 40),
        };
        if self.one_in(3) {
            Algorithm::LeakyBucket {
                tokens,
                per_ns,
                burst,
            }
        } else {
            Algorithm::TokenBucket {
                tokens,
                per_ns,
                burst,
            }
        }
    }

    /// A window algorithm with a window from a nanosecond to a year and a limit up to 2^40 (of a
    /// log, which holds every call, up to 2^16).
    pub fn window(&mut self) -> Algorithm {
        let limit = match self.below(3) {
            0 => self.pick(1, &[2, 3, 5, 100]),
            1 => self.magnitude(1_000),
            _ => self.magnitude(1 << 40),
        };
        let window_ns = match self.below(3) {
            0 => self.pick(SECOND, &[1, 7, 60 * SECOND]),
            _ => self.magnitude(YEAR),
        };
        match self.below(4) {
            0 => Algorithm::FixedWindow {
                limit,
                window_ns,
                anchor: Anchor::First,
            },
            1 => Algorithm::FixedWindow {
                limit,
                window_ns,
                anchor: Anchor::Aligned,
            },
            2 => Algorithm::SlidingLog {
                limit: limit.min(1 << 16),
                window_ns,
            },
            _ => Algorithm::SlidingWindowCounter { limit, window_ns },
        }
    }

    /// A limiter, now and then with a cap, or with an idle time that may be shorter than it takes
    /// to be as new.
    pub fn config(&mut self) -> Config {
        let algorithm = if self.one_in(2) {
            self.bucket()
        } else {
            self.window()
        };
        let max_clients = (!self.one_in(3)).then(|| self.pick(1, &[2, 3, 5, 20]));
        let span_ns = self.interesting_ns(&algorithm);
        let idle_ns = (!self.one_in(4)).then(|| self.around(span_ns).max(1));
        Config {
            algorithm,
            max_clients,
            idle_ns,
        }
    }

    /// A length of time at which something happens in a limiter.
    fn interesting_ns(&mut self, algorithm: &Algorithm) -> u64 {
        let count = match *algorithm {
            Algorithm::TokenBucket { burst, .. } | Algorithm::LeakyBucket { burst, .. } => {
                self.pick(1, &[2, burst])
            }
            Algorithm::FixedWindow { .. }
            | Algorithm::SlidingLog { .. }
            | Algorithm::SlidingWindowCounter { .. } => self.pick(1, &[2]),
        };
        algorithm.span_ns(count).unwrap_or(u64::MAX).min(10 * YEAR)
    }

    /// `ns`, or one more or less.
    fn around(&mut self, ns: u64) -> u64 {
        self.pick(ns, &[ns.saturating_add(1), ns.saturating_sub(1)])
    }

    /// Calls whose times gather where answers change: at refills, window edges and idle edges, each
    /// off by a nanosecond now and then.
    pub fn calls(&mut self, config: &Config, count: usize) -> Vec<Call> {
        let clients = self.pick(1, &[2, 4, 12]);
        let burst = config.algorithm.burst();
        let mut at_ns = if self.one_in(2) {
            0
        } else {
            self.magnitude(60 * YEAR)
        };
        let mut calls = Vec::with_capacity(count);
        for _ in 0..count {
            at_ns = at_ns
                .saturating_add(self.step_ns(config, at_ns))
                .min(u64::MAX >> 1);
            let back = self.one_in(40);
            let at_ns = if back {
                at_ns.saturating_sub(self.magnitude(SECOND))
            } else {
                at_ns
            };
            let cost = match self.below(8) {
                0 => 0,
                1 => self.magnitude(burst),
                2 => burst,
                3 => burst.saturating_add(self.magnitude(1 << 40)),
                _ => 1,
            };
            let client = format!("client-{}", self.below(clients));
            calls.push(Call {
                at_ns,
                client,
                cost,
            });
        }
        calls
    }

    fn step_ns(&mut self, config: &Config, at_ns: u64) -> u64 {
        match self.below(8) {
            0..3 => 0,
            3 => self.pick(1, &[2, 1_000]),
            4 => {
                let span_ns = self.interesting_ns(&config.algorithm);
                self.around(span_ns)
            }
            5 => {
                let idle_ns = config.idle_ns.unwrap_or(SECOND);
                self.around(idle_ns)
            }
            6 => {
                let span_ns = self.interesting_ns(&config.algorithm).max(1);
                self.around(span_ns - at_ns % span_ns)
            }
            _ => {
                let span_ns = self.interesting_ns(&config.algorithm);
                self.magnitude(span_ns.max(1))
            }
        }
    }

    /// A trace without answers.
    pub fn trace(&mut self, count: usize) -> Trace {
        let config = self.config();
        let calls = self.calls(&config, count);
        Trace {
            name: String::from("random"),
            config,
            calls,
            expect: Vec::new(),
        }
    }
}
