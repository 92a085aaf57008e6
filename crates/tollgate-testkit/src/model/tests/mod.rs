//! What no trace can hold: debts, bans, changes of the limit.

mod bans;
mod changes;
mod debts;

use super::{Model, Tokens};
use crate::{Algorithm, Anchor, Answer, Config, Random};

fn model(algorithm: Algorithm) -> Model {
    Model::new(Config {
        algorithm,
        max_clients: None,
        idle_ns: None,
    })
}

/// With room for two, who are idle after 10.
fn model_for_two(algorithm: Algorithm) -> Model {
    Model::new(Config {
        algorithm,
        max_clients: Some(2),
        idle_ns: Some(10),
    })
}

fn bucket(tokens: u64, per_ns: u64, burst: u64) -> Algorithm {
    Algorithm::TokenBucket {
        tokens,
        per_ns,
        burst,
    }
}

fn queue(tokens: u64, per_ns: u64, burst: u64) -> Algorithm {
    Algorithm::LeakyBucket {
        tokens,
        per_ns,
        burst,
    }
}

fn fixed(limit: u64, window_ns: u64) -> Algorithm {
    Algorithm::FixedWindow {
        limit,
        window_ns,
        anchor: Anchor::First,
    }
}

fn aligned(limit: u64, window_ns: u64) -> Algorithm {
    Algorithm::FixedWindow {
        limit,
        window_ns,
        anchor: Anchor::Aligned,
    }
}

fn log(limit: u64, window_ns: u64) -> Algorithm {
    Algorithm::SlidingLog { limit, window_ns }
}

fn counter(limit: u64, window_ns: u64) -> Algorithm {
    Algorithm::SlidingWindowCounter { limit, window_ns }
}

/// One of each that takes and forgets much alike.
fn one_of_each() -> [Algorithm; 6] {
    [
        bucket(1, 10, 5),
        queue(1, 10, 5),
        fixed(5, 10),
        aligned(5, 10),
        log(5, 10),
        counter(5, 10),
    ]
}

fn allowed(remaining: u64, reset_after_ns: u128) -> Answer {
    delayed(remaining, 0, reset_after_ns)
}

fn delayed(remaining: u64, delay_ns: u128, reset_after_ns: u128) -> Answer {
    Answer::Allowed {
        remaining,
        delay_ns,
        reset_after_ns,
    }
}

fn limited(remaining: u64, retry_after_ns: u128, reset_after_ns: u128) -> Answer {
    Answer::Limited {
        remaining,
        retry_after_ns,
        reset_after_ns,
    }
}

fn banned(retry_after_ns: u128) -> Answer {
    Answer::Banned { retry_after_ns }
}

/// What a look finds.
fn remaining(model: &Model, client: &str, at_ns: u64) -> u64 {
    let looked = model.judge(client, 0, at_ns);
    let Answer::Allowed { remaining, .. } = looked else {
        panic!("a look is answered {looked}");
    };
    remaining
}

#[test]
fn buckets_start_with_the_initial_tokens() {
    let mut model = model_for_two(bucket(1, 1, 10)).initial_tokens(3);
    assert_eq!(model.call("a", 0, 0), allowed(3, 7), "unknown");
    assert_eq!(model.call("a", 4, 0), limited(3, 1, 7));
    assert_eq!(model.call("a", 3, 0), allowed(0, 10));
    assert_eq!(model.call("a", 0, 9), allowed(9, 1));
    assert_eq!(model.call("a", 0, 10), allowed(3, 7), "forgotten");
    assert!(model.ban("b", 12, 10));
    assert_eq!(model.call("b", 0, 12), allowed(5, 5));

    let mut queue = self::model(queue(1, 1, 10)).initial_tokens(3);
    assert_eq!(queue.call("a", 2, 0), delayed(1, 7, 9));

    let none = self::model(bucket(1, 1, 10)).initial_tokens(0);
    assert_eq!(none.judge("a", 1, 5), limited(0, 1, 10));
    for algorithm in one_of_each() {
        let most = self::model(algorithm.clone()).initial_tokens(u64::MAX);
        assert_eq!(most.judge("a", 0, 0), allowed(5, 0), "{algorithm:?}");
    }
    for algorithm in [fixed(5, 10), aligned(5, 10), log(5, 10), counter(5, 10)] {
        let window = self::model(algorithm.clone()).initial_tokens(0);
        assert_eq!(window.judge("a", 0, 0), allowed(5, 0), "{algorithm:?}");
    }
}

#[test]
fn judging_changes_nothing() {
    for algorithm in one_of_each() {
        let mut model = model_for_two(algorithm);
        model.call("a", 3, 5);
        model.ban("b", 100, 5);
        for (client, cost, at_ns) in [
            ("a", 1, 6),
            ("a", 5, 6),
            ("a", 6, 6),
            ("a", 0, 6),
            ("a", 1, 4),
            ("a", 1, u64::MAX),
            ("b", 1, 6),
            ("c", 1, 6),
            ("c", 1, 15),
        ] {
            let before = format!("{model:?}");
            let judged = model.judge(client, cost, at_ns);
            assert_eq!(format!("{model:?}"), before);
            assert_eq!(model.clone().call(client, cost, at_ns), judged);
        }
    }
}

#[test]
fn touching_is_an_attempt_that_takes_nothing() {
    for algorithm in one_of_each() {
        let mut model = model_for_two(algorithm);
        model.touch("a", 0);
        assert!(model.is_empty(), "nobody is tracked for it");
        model.call("a", 3, 0);
        let looked = model.judge("a", 0, 9);
        model.touch("a", 9);
        assert_eq!(model.judge("a", 0, 9), looked);
        assert_eq!((model.len_at(18), model.len_at(19)), (1, 0));
        // At a time below the latest one seen, it is made at that one.
        model.touch("a", 3);
        assert_eq!((model.len_at(18), model.len_at(19)), (1, 0));
        model.touch("a", 19);
        assert!(model.is_empty(), "it was idle");
        assert_eq!(model.call("a", 1, 18), Answer::ClockBackwards);
        model.ban("b", 30, 19);
        model.touch("b", 25);
        assert_eq!(model.judge("b", 1, 25), banned(5));
        assert_eq!((model.len_at(39), model.len_at(40)), (1, 0));
    }
}

/// Another limit of the same kind.
fn similar(random: &mut Random, algorithm: &Algorithm) -> Algorithm {
    let kind = |algorithm: &Algorithm| match *algorithm {
        Algorithm::TokenBucket { .. } => 0,
        Algorithm::LeakyBucket { .. } => 1,
        Algorithm::FixedWindow { anchor, .. } => 2 + u8::from(anchor == Anchor::Aligned),
        Algorithm::SlidingLog { .. } => 4,
        Algorithm::SlidingWindowCounter { .. } => 5,
    };
    loop {
        let other = if kind(algorithm) < 2 {
            random.bucket()
        } else {
            random.window()
        };
        if kind(&other) == kind(algorithm) {
            return other;
        }
    }
}

/// That every wait is the least, whatever was done before, for which the answers must never change
/// back as time goes on.
#[test]
fn refused_until_retry_after_in_debt_and_after_bans_and_changes() {
    let (mut waits, mut bans) = (0, 0);
    for seed in 0..300 {
        let mut random = Random::new(seed ^ 0xdeb7);
        let mut config = random.config();
        (config.idle_ns, config.max_clients) = (None, None);
        let mut algorithm = config.algorithm.clone();
        let debt = random.magnitude(algorithm.burst());
        let calls = random.calls(&config, 40);
        let mut model = Model::new(config).largest_debt(debt);
        let mut now_ns = 0;
        for made in calls {
            now_ns = made.at_ns.max(now_ns);
            let name = made.client.as_str();
            match random.below(6) {
                0 => {
                    let taken = model.debit(name, made.cost, now_ns);
                    assert!(taken.is_some_and(|taken| taken <= made.cost));
                }
                1 => {
                    let least = algorithm.span_ns(1).unwrap_or(1);
                    let until_ns = now_ns.saturating_add(random.magnitude(least));
                    assert!(model.ban(name, until_ns, now_ns));
                }
                2 => {
                    algorithm = similar(&mut random, &algorithm);
                    let is_bucket = matches!(
                        algorithm,
                        Algorithm::TokenBucket { .. } | Algorithm::LeakyBucket { .. }
                    );
                    let tokens = match random.below(8) {
                        0 => Tokens::Reset,
                        1..4 if is_bucket => Tokens::Proportional,
                        _ => Tokens::Kept,
                    };
                    model.change(algorithm.clone(), None, tokens, now_ns);
                }
                3 => model.refund(name, made.cost, None, now_ns),
                _ => {
                    model.call(name, made.cost, now_ns);
                }
            }
            for cost in [1, algorithm.burst()] {
                let told = || format!("seed {seed}: {cost} after {made:?} of {algorithm:?}");
                let judged = model.judge(name, cost, now_ns);
                let (Answer::Limited { retry_after_ns, .. } | Answer::Banned { retry_after_ns }) =
                    judged
                else {
                    continue;
                };
                let Ok(retry_ns) = u64::try_from(u128::from(now_ns) + retry_after_ns) else {
                    continue;
                };
                let retried = model.judge(name, cost, retry_ns);
                let sooner = model.judge(name, cost, retry_ns - 1);
                if judged == banned(retry_after_ns) {
                    assert!(!matches!(retried, Answer::Banned { .. }), "{}", told());
                    assert_eq!(sooner, banned(1), "{}", told());
                    bans += 1;
                } else {
                    assert!(matches!(retried, Answer::Allowed { .. }), "{}", told());
                    assert!(matches!(sooner, Answer::Limited { .. }), "{}", told());
                    waits += 1;
                }
            }
        }
    }
    assert!(waits > 1_000 && bans > 1_000, "{waits} waits, {bans} bans");
}
