//! What a limit of a policy file admits: its algorithm and numbers.

use std::ops::Range;
use std::time::Duration;

use tollgate::{BuildError, Rate};

use super::Errors;
use super::fields::{At, Fields};
use crate::rule::{Rule, default_burst};

/// What says how much a limit admits.
pub(super) enum RuleFields<'t> {
    Bucket {
        is_leaky: bool,
        rate: At<&'t str>,
        burst: Option<At<u64>>,
    },
    Window {
        rule: fn(u64, Duration) -> Rule,
        limit: At<u64>,
        window: At<Duration>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    TokenBucket,
    LeakyBucket,
    FixedWindow,
    SlidingLog,
    SlidingWindowCounter,
}

const ALGORITHMS: [(&str, Algorithm); 5] = [
    ("token-bucket", Algorithm::TokenBucket),
    ("leaky-bucket", Algorithm::LeakyBucket),
    ("fixed-window", Algorithm::FixedWindow),
    ("sliding-log", Algorithm::SlidingLog),
    ("sliding-window-counter", Algorithm::SlidingWindowCounter),
];

impl<'t> RuleFields<'t> {
    /// Of a plan that stands at that place, of a limit of that algorithm.
    pub(super) fn read_plan(
        fields: &mut Fields<'t, '_, '_, '_>,
        at: &Range<usize>,
        of: Rule,
    ) -> Option<Self> {
        let algorithm = match of {
            Rule::TokenBucket(_) => Algorithm::TokenBucket,
            Rule::LeakyBucket(_) => Algorithm::LeakyBucket,
            Rule::FixedWindow(..) | Rule::AlignedWindow(..) => Algorithm::FixedWindow,
            Rule::SlidingLog(..) => Algorithm::SlidingLog,
            Rule::SlidingWindowCounter(..) => Algorithm::SlidingWindowCounter,
        };
        let is_aligned = matches!(of, Rule::AlignedWindow(..));
        Self::read_numbers(fields, at, Some(algorithm), is_aligned, "a plan")
    }

    /// Of a limit that stands at that place.
    pub(super) fn read(fields: &mut Fields<'t, '_, '_, '_>, at: &Range<usize>) -> Option<Self> {
        let algorithm = match fields.choice("algorithm", &ALGORITHMS) {
            Some((_, algorithm)) => Some(algorithm),
            None if fields.has("algorithm") => None,
            None => Some(Algorithm::TokenBucket),
        };
        let anchor = fields.choice("anchor", &[("first", false), ("aligned", true)]);
        if algorithm.is_some_and(|algorithm| algorithm != Algorithm::FixedWindow) {
            fields.refuse("anchor", "anchor goes with a fixed-window");
        }
        let is_aligned = anchor.is_some_and(|(_, is_aligned)| is_aligned);
        Self::read_numbers(fields, at, algorithm, is_aligned, "a limit")
    }

    fn read_numbers(
        fields: &mut Fields<'t, '_, '_, '_>,
        at: &Range<usize>,
        algorithm: Option<Algorithm>,
        is_aligned: bool,
        whose: &str,
    ) -> Option<Self> {
        let rate = fields.text("rate", "tokens per period, as in \"5/s\" or \"100/min\"");
        let burst = fields.whole("burst", "a number of tokens, from 1");
        let limit = fields.whole("limit", "a number of tokens, from 1");
        let window = fields.duration("window");
        // Of an algorithm that is none, nothing else can be said.
        let algorithm = algorithm?;
        let is_bucket = matches!(algorithm, Algorithm::TokenBucket | Algorithm::LeakyBucket);
        if is_bucket {
            fields.need(
                "rate",
                at,
                &format!("{whose} needs a rate, as in rate = \"5/s\""),
            );
            for other in ["limit", "window"] {
                fields.refuse(
                    other,
                    &format!("a bucket has rate and burst, and no {other}"),
                );
            }
            let is_leaky = algorithm == Algorithm::LeakyBucket;
            let rate = rate?;
            return Some(Self::Bucket {
                is_leaky,
                rate,
                burst,
            });
        }
        for own in ["limit", "window"] {
            let problem = "a window needs limit and window, as in limit = 100, window = \"1m\"";
            fields.need(own, at, problem);
        }
        for other in ["rate", "burst"] {
            fields.refuse(
                other,
                &format!("a window has limit and window, and no {other}"),
            );
        }
        let rule = match algorithm {
            Algorithm::SlidingLog => Rule::SlidingLog,
            Algorithm::SlidingWindowCounter => Rule::SlidingWindowCounter,
            Algorithm::TokenBucket | Algorithm::LeakyBucket | Algorithm::FixedWindow => {
                if is_aligned {
                    Rule::AlignedWindow
                } else {
                    Rule::FixedWindow
                }
            }
        };
        Some(Self::Window {
            rule,
            limit: limit?,
            window: window?,
        })
    }

    /// The rule they make, with numbers that the library takes.
    pub(super) fn rule(self, errors: &mut Errors<'_>) -> Option<Rule> {
        let (rule, at, other_at) = match self {
            Self::Bucket {
                is_leaky,
                rate: (at, text),
                burst,
            } => {
                let rate = text.parse::<Rate>();
                let rate = rate.map_err(|error| format!("rate: {error}"));
                let rate = errors.take(&at, rate)?;
                let (burst_at, burst) =
                    burst.unwrap_or_else(|| (at.clone(), default_burst(rate, text)));
                let rule = if is_leaky {
                    Rule::LeakyBucket
                } else {
                    Rule::TokenBucket
                };
                (rule(rate.burst(burst)), at, burst_at)
            }
            Self::Window {
                rule,
                limit: (at, limit),
                window: (window_at, window),
            } => (rule(limit, window), at, window_at),
        };
        let checked = rule.check();
        let is_of_other = matches!(
            checked,
            Err(BuildError::BurstIsZero
                | BuildError::QuotaTooLarge { .. }
                | BuildError::WindowIsZero
                | BuildError::WindowTooLong { .. })
        );
        errors.take(if is_of_other { &other_at } else { &at }, checked)?;
        Some(rule)
    }
}
