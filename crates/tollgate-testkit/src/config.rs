//! What a trace's limiter is.

use serde::{Deserialize, Serialize};

use crate::json::{need, no_place_for, object};

/// A limiter, as a trace describes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(try_from = "RawConfig", into = "RawConfig")]
#[allow(clippy::exhaustive_structs, reason = "tests write it out")]
pub struct Config {
    /// Which limit.
    pub algorithm: Algorithm,
    /// The most clients tracked at a time; absent: no cap.
    pub max_clients: Option<u64>,
    /// Nanoseconds since its last attempt after which a client is forgotten; absent: never.
    pub idle_ns: Option<u64>,
}

/// A limit and its numbers: any that a file can hold. Which of them make a limit is for the limiter
/// to say.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// `burst` tokens at most, refilled by `tokens` every `per_ns` nanoseconds.
    TokenBucket {
        /// Tokens of the rate.
        tokens: u64,
        /// Period of the rate.
        per_ns: u64,
        /// The most tokens held.
        burst: u64,
    },
    /// A queue of `burst` places, drained by `tokens` every `per_ns` nanoseconds.
    LeakyBucket {
        /// Tokens of the rate.
        tokens: u64,
        /// Period of the rate.
        per_ns: u64,
        /// Places in the queue.
        burst: u64,
    },
    /// `limit` tokens in each of the windows that the anchor lays out.
    FixedWindow {
        /// The most tokens in a window.
        limit: u64,
        /// Length of a window.
        window_ns: u64,
        /// When a window opens.
        anchor: Anchor,
    },
    /// `limit` tokens in every stretch of a window's length.
    SlidingLog {
        /// The most tokens in a window.
        limit: u64,
        /// Length of the window.
        window_ns: u64,
    },
    /// `limit` tokens in this aligned window and the share of the one before that still overlaps.
    SlidingWindowCounter {
        /// The most tokens in a window.
        limit: u64,
        /// Length of the window.
        window_ns: u64,
    },
}

impl Algorithm {
    /// The most that one call can take.
    #[must_use]
    pub fn burst(&self) -> u64 {
        match *self {
            Self::TokenBucket { burst, .. } | Self::LeakyBucket { burst, .. } => burst,
            Self::FixedWindow { limit, .. }
            | Self::SlidingLog { limit, .. }
            | Self::SlidingWindowCounter { limit, .. } => limit,
        }
    }

    /// The least nanoseconds in which a bucket earns `count` tokens, or so many windows; `None`
    /// beyond 2^64. A rate of 0, which means nothing, counts as 1.
    #[must_use]
    pub fn span_ns(&self, count: u64) -> Option<u64> {
        let (tokens, per_ns) = match *self {
            Self::TokenBucket { tokens, per_ns, .. } | Self::LeakyBucket { tokens, per_ns, .. } => {
                (tokens.max(1), per_ns)
            }
            Self::FixedWindow { window_ns, .. }
            | Self::SlidingLog { window_ns, .. }
            | Self::SlidingWindowCounter { window_ns, .. } => (1, window_ns),
        };
        let span_ns = u128::from(count) * u128::from(per_ns);
        span_ns.div_ceil(u128::from(tokens)).try_into().ok()
    }

    /// The least nanoseconds after a call by which no call until then counts any more: the default
    /// idle time of a limiter.
    #[must_use]
    pub fn settles_after_ns(&self) -> Option<u64> {
        match *self {
            Self::TokenBucket { burst, .. } | Self::LeakyBucket { burst, .. } => {
                self.span_ns(burst)
            }
            Self::FixedWindow { .. } | Self::SlidingLog { .. } => self.span_ns(1),
            Self::SlidingWindowCounter { .. } => self.span_ns(2),
        }
    }
}

/// When a fixed window opens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Anchor {
    /// At a client's first request, and at the first after it closed.
    #[default]
    First,
    /// At whole multiples of its length.
    Aligned,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Name {
    TokenBucket,
    LeakyBucket,
    FixedWindow,
    SlidingLog,
    SlidingWindowCounter,
}

object!(RawRate {
    tokens: u64,
    per_ns: u64
});

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(try_from = "RawRate")]
pub(crate) struct Rate {
    tokens: u64,
    per_ns: u64,
}

impl TryFrom<RawRate> for Rate {
    type Error = String;

    fn try_from(raw: RawRate) -> Result<Self, String> {
        Ok(Self {
            tokens: need("tokens", raw.tokens)?,
            per_ns: need("per_ns", raw.per_ns)?,
        })
    }
}

object!(RawConfig {
    algorithm: Name,
    rate: Rate,
    burst: u64,
    limit: u64,
    window_ns: u64,
    anchor: Anchor,
    max_clients: u64,
    idle_ns: u64,
});

impl RawConfig {
    fn bucket(&self) -> Result<(u64, u64, u64), String> {
        let window = [
            ("limit", self.limit.is_some()),
            ("window_ns", self.window_ns.is_some()),
            ("anchor", self.anchor.is_some()),
        ];
        no_place_for(&window, "a bucket")?;
        let Rate { tokens, per_ns } = need("rate", self.rate)?;
        Ok((tokens, per_ns, need("burst", self.burst)?))
    }

    fn window(&self) -> Result<(u64, u64), String> {
        let bucket = [
            ("rate", self.rate.is_some()),
            ("burst", self.burst.is_some()),
        ];
        no_place_for(&bucket, "a window")?;
        Ok((
            need("limit", self.limit)?,
            need("window_ns", self.window_ns)?,
        ))
    }

    fn sliding_window(&self) -> Result<(u64, u64), String> {
        no_place_for(&[("anchor", self.anchor.is_some())], "a sliding window")?;
        self.window()
    }
}

impl TryFrom<RawConfig> for Config {
    type Error = String;

    fn try_from(raw: RawConfig) -> Result<Self, String> {
        let algorithm = match need("algorithm", raw.algorithm)? {
            Name::TokenBucket => {
                let (tokens, per_ns, burst) = raw.bucket()?;
                Algorithm::TokenBucket {
                    tokens,
                    per_ns,
                    burst,
                }
            }
            Name::LeakyBucket => {
                let (tokens, per_ns, burst) = raw.bucket()?;
                Algorithm::LeakyBucket {
                    tokens,
                    per_ns,
                    burst,
                }
            }
            Name::FixedWindow => {
                let (limit, window_ns) = raw.window()?;
                Algorithm::FixedWindow {
                    limit,
                    window_ns,
                    anchor: raw.anchor.unwrap_or_default(),
                }
            }
            Name::SlidingLog => {
                let (limit, window_ns) = raw.sliding_window()?;
                Algorithm::SlidingLog { limit, window_ns }
            }
            Name::SlidingWindowCounter => {
                let (limit, window_ns) = raw.sliding_window()?;
                Algorithm::SlidingWindowCounter { limit, window_ns }
            }
        };
        Ok(Self {
            algorithm,
            max_clients: raw.max_clients,
            idle_ns: raw.idle_ns,
        })
    }
}

impl From<Config> for RawConfig {
    fn from(config: Config) -> Self {
        let bucket = |name, tokens, per_ns, burst| Self {
            algorithm: Some(name),
            rate: Some(Rate { tokens, per_ns }),
            burst: Some(burst),
            ..Self::default()
        };
        let window = |name, limit, window_ns| Self {
            algorithm: Some(name),
            limit: Some(limit),
            window_ns: Some(window_ns),
            ..Self::default()
        };
        let limit = match config.algorithm {
            Algorithm::TokenBucket {
                tokens,
                per_ns,
                burst,
            } => bucket(Name::TokenBucket, tokens, per_ns, burst),
            Algorithm::LeakyBucket {
                tokens,
                per_ns,
                burst,
            } => bucket(Name::LeakyBucket, tokens, per_ns, burst),
            Algorithm::FixedWindow {
                limit,
                window_ns,
                anchor,
            } => Self {
                anchor: (anchor != Anchor::default()).then_some(anchor),
                ..window(Name::FixedWindow, limit, window_ns)
            },
            Algorithm::SlidingLog { limit, window_ns } => {
                window(Name::SlidingLog, limit, window_ns)
            }
            Algorithm::SlidingWindowCounter { limit, window_ns } => {
                window(Name::SlidingWindowCounter, limit, window_ns)
            }
        };
        Self {
            max_clients: config.max_clients,
            idle_ns: config.idle_ns,
            ..limit
        }
    }
}
