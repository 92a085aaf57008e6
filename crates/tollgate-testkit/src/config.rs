//! What a trace's limiter is.

use serde::{Deserialize, Serialize};

/// A limiter, as a trace describes it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "RawConfig", into = "RawConfig")]
pub struct Config {
    /// Which limit.
    pub algorithm: Algorithm,
    /// The most clients tracked at a time; absent: no cap.
    pub max_clients: Option<u64>,
    /// Nanoseconds since its last attempt after which a client is forgotten; absent: never.
    pub idle_ns: Option<u64>,
}

/// A limit and its numbers. A rate is `tokens` every `per_ns` nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names are the trace format's own")]
pub enum Algorithm {
    TokenBucket {
        tokens: u64,
        per_ns: u64,
        burst: u64,
    },
    LeakyBucket {
        tokens: u64,
        per_ns: u64,
        burst: u64,
    },
    FixedWindow {
        limit: u64,
        window_ns: u64,
        anchor: Anchor,
    },
    SlidingLog {
        limit: u64,
        window_ns: u64,
    },
    SlidingWindowCounter {
        limit: u64,
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
}

/// When a fixed window opens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Anchor {
    /// At a client's first request, and at the first after it closed.
    #[default]
    First,
    /// At whole multiples of its length.
    Aligned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Name {
    TokenBucket,
    LeakyBucket,
    FixedWindow,
    SlidingLog,
    SlidingWindowCounter,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct RawRate {
    tokens: u64,
    per_ns: u64,
}

/// The fields as they stand in a trace: which of them belong together is told by the algorithm.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct RawConfig {
    algorithm: Name,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<RawRate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    burst: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    window_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    anchor: Option<Anchor>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_clients: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_ns: Option<u64>,
}

impl TryFrom<RawConfig> for Config {
    type Error = String;

    fn try_from(raw: RawConfig) -> Result<Self, String> {
        let missing = |field: &str| format!("config.{field} is missing");
        let stray = |field: &str| format!("config.{field} does not belong to {:?}", raw.algorithm);
        let bucket = || {
            for (given, field) in [
                (raw.limit.is_some(), "limit"),
                (raw.window_ns.is_some(), "window_ns"),
                (raw.anchor.is_some(), "anchor"),
            ] {
                if given {
                    return Err(stray(field));
                }
            }
            let RawRate { tokens, per_ns } = raw.rate.ok_or_else(|| missing("rate"))?;
            Ok((tokens, per_ns, raw.burst.ok_or_else(|| missing("burst"))?))
        };
        let window = |anchored: bool| {
            for (given, field) in [
                (raw.rate.is_some(), "rate"),
                (raw.burst.is_some(), "burst"),
                (raw.anchor.is_some() && !anchored, "anchor"),
            ] {
                if given {
                    return Err(stray(field));
                }
            }
            let limit = raw.limit.ok_or_else(|| missing("limit"))?;
            Ok((limit, raw.window_ns.ok_or_else(|| missing("window_ns"))?))
        };
        let algorithm = match raw.algorithm {
            Name::TokenBucket => {
                let (tokens, per_ns, burst) = bucket()?;
                Algorithm::TokenBucket {
                    tokens,
                    per_ns,
                    burst,
                }
            }
            Name::LeakyBucket => {
                let (tokens, per_ns, burst) = bucket()?;
                Algorithm::LeakyBucket {
                    tokens,
                    per_ns,
                    burst,
                }
            }
            Name::FixedWindow => {
                let (limit, window_ns) = window(true)?;
                let anchor = raw.anchor.unwrap_or_default();
                Algorithm::FixedWindow {
                    limit,
                    window_ns,
                    anchor,
                }
            }
            Name::SlidingLog => {
                let (limit, window_ns) = window(false)?;
                Algorithm::SlidingLog { limit, window_ns }
            }
            Name::SlidingWindowCounter => {
                let (limit, window_ns) = window(false)?;
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
        let raw = |algorithm| Self {
            algorithm,
            rate: None,
            burst: None,
            limit: None,
            window_ns: None,
            anchor: None,
            max_clients: config.max_clients,
            idle_ns: config.idle_ns,
        };
        let bucket = |algorithm, rate, burst| Self {
            rate: Some(rate),
            burst: Some(burst),
            ..raw(algorithm)
        };
        let window = |algorithm, limit, window_ns| Self {
            limit: Some(limit),
            window_ns: Some(window_ns),
            ..raw(algorithm)
        };
        match config.algorithm {
            Algorithm::TokenBucket {
                tokens,
                per_ns,
                burst,
            } => bucket(Name::TokenBucket, RawRate { tokens, per_ns }, burst),
            Algorithm::LeakyBucket {
                tokens,
                per_ns,
                burst,
            } => bucket(Name::LeakyBucket, RawRate { tokens, per_ns }, burst),
            Algorithm::FixedWindow {
                limit,
                window_ns,
                anchor,
            } => Self {
                anchor: Some(anchor),
                ..window(Name::FixedWindow, limit, window_ns)
            },
            Algorithm::SlidingLog { limit, window_ns } => {
                window(Name::SlidingLog, limit, window_ns)
            }
            Algorithm::SlidingWindowCounter { limit, window_ns } => {
                window(Name::SlidingWindowCounter, limit, window_ns)
            }
        }
    }
}
