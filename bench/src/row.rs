//! What a row is: which calls, at which limiter, and what was measured of them.

use serde::{Deserialize, Serialize};

/// A row's bar in the list of bars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[value(rename_all = "UPPER")]
pub(crate) enum Bench {
    P1,
    P2,
    P3,
    P4,
    P5,
    P6,
    P7,
    P8,
    P9,
    P10,
    P11,
    P12,
    P13,
    P14,
    H2,
}

/// Which clients call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Dist {
    /// Always the same.
    Hot,
    Uniform,
    /// The nth most frequent calls 1/n as often as the first.
    Zipf,
    /// Each calls once, and all places are held by active clients.
    Full,
    /// Each calls once, and takes the place of one that has just gone idle.
    Churn,
}

/// What the calls are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Admitted,
    Refused,
    ClientLimit,
    /// Some are admitted, some are refused.
    Mixed,
}

/// How much of the answer is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Call {
    /// Yes or no.
    Allow,
    /// With what remains and how long to wait, both used.
    TryAcquire,
    /// The same of sixteen clients whose names were made before, one call after the other.
    TryAcquireInTurn,
    /// Of those sixteen, all in one call.
    TryAcquireEach,
}

/// What the figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Measure {
    /// CPU nanoseconds a call.
    Mean,
    /// Nanoseconds of wall clock that the longest call took.
    Longest,
    /// Nanoseconds of wall clock within which 99.9 % of calls ended.
    P999,
    /// The longest call of the same thread while nothing goes on beside it: what the machine adds.
    LongestAlone,
    /// Nanoseconds of wall clock that forgetting everybody took.
    Total,
    /// Resident bytes a client.
    BytesAClient,
    /// Resident bytes that the limiter added by the time it held as many clients as it may.
    BytesAtCap,
    /// Resident bytes that it had added at the end.
    BytesAtEnd,
    /// Positions of the expiry queue looked at under one lock.
    Positions,
    /// Tables or queues made anew under one lock.
    Rebuilds,
    /// Allocations and reallocations.
    Allocations,
}

/// The unit of a figure, and the name that the figure has in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Ns,
    Bytes,
    Count,
}

impl Measure {
    pub(crate) fn unit(self) -> Unit {
        match self {
            Self::Mean | Self::Longest | Self::P999 | Self::LongestAlone | Self::Total => Unit::Ns,
            Self::BytesAClient | Self::BytesAtCap | Self::BytesAtEnd => Unit::Bytes,
            Self::Positions | Self::Rebuilds | Self::Allocations => Unit::Count,
        }
    }
}

/// What decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Limiter {
    Tollgate,
    Governor,
    /// With ahash as its map's hasher.
    GovernorAhash,
    RateNet,
    /// One bucket, without keys.
    Ratelimit,
    Throttlecrab,
    Limitador,
    /// The layer, as it comes.
    TowerGovernor,
    /// The same with its `x-ratelimit-*`.
    TowerGovernorHeaders,
    /// `Mutex<HashMap<String, Bucket>>`, tokens as `f64`.
    Textbook,
    /// The textbook one, which sweeps its whole map on every call.
    Sweep,
    /// Nothing decides: the cost of making the name and of the loop.
    Baseline,
}

/// The algorithm, where it is not the token bucket of the other rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Algorithm {
    TokenBucket,
    /// A token bucket whose level needs 128 bits.
    WideTokenBucket,
    LeakyBucket,
    FixedWindow,
    SlidingLog,
    SlidingWindowCounter,
}

/// One row, whoever decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) bench: Bench,
    /// How many clients there are.
    pub(crate) keys: u32,
    pub(crate) dist: Dist,
    pub(crate) threads: usize,
    pub(crate) answer: Answer,
    pub(crate) call: Call,
    pub(crate) measure: Measure,
    pub(crate) algorithm: Option<Algorithm>,
    /// Bytes of a client's name; 0 where there is none.
    pub(crate) name_len: usize,
}

impl Row {
    /// A row of admitted calls to `allow` on one thread, to vary from.
    pub(crate) fn new(bench: Bench, keys: u32, dist: Dist, name_len: usize) -> Self {
        Self {
            bench,
            keys,
            dist,
            threads: 1,
            answer: Answer::Admitted,
            call: Call::Allow,
            measure: Measure::Mean,
            algorithm: None,
            name_len,
        }
    }
}

/// What one process measured of one limiter in one row: one figure a repetition.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) row: Row,
    pub(crate) name: Limiter,
    pub(crate) figures: Vec<f64>,
}

/// Anything that is not NaN; 0 of nothing.
pub(crate) fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.len().saturating_sub(1) / 2, sorted.len() / 2);
    match (sorted.get(low), sorted.get(high)) {
        (Some(low), Some(high)) => f64::midpoint(*low, *high),
        _ => 0.0,
    }
}
