//! What the model answers.

use tollgate_testkit::{Algorithm, Anchor, Answer, Config, Model, Random};

use crate::shipped_traces;

const SECOND: u64 = 1_000_000_000;

fn model(algorithm: Algorithm) -> Model {
    Model::new(Config {
        algorithm,
        max_clients: None,
        idle_ns: None,
    })
}

fn allowed(remaining: u64, reset_after_ns: u128) -> Answer {
    Answer::Allowed {
        remaining,
        delay_ns: 0,
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

/// One client's calls, as (time, cost, answer).
fn check(algorithm: Algorithm, calls: &[(u64, u64, Answer)]) {
    let mut model = model(algorithm.clone());
    for (n, &(at_ns, cost, wanted)) in calls.iter().enumerate() {
        assert_eq!(
            model.call("a", cost, at_ns),
            wanted,
            "call {n} of {algorithm:?}"
        );
    }
}

#[test]
fn every_trace_is_answered_as_it_expects() {
    for trace in shipped_traces() {
        assert_eq!(trace.calls.len(), trace.expect.len(), "{}", trace.name);
        let mut model = Model::new(trace.config);
        for (n, (call, wanted)) in trace.calls.iter().zip(&trace.expect).enumerate() {
            let got = model.call(&call.client, call.cost, call.at_ns);
            assert_eq!(got, *wanted, "{}, call {n}: {call:?}", trace.name);
        }
    }
}

#[test]
fn corners_of_every_algorithm() {
    let back = Answer::ClockBackwards;
    check(
        Algorithm::TokenBucket {
            tokens: 1,
            per_ns: 3,
            burst: 1,
        },
        &[
            (5, 0, allowed(1, 0)),
            (5, 2, Answer::TooLarge),
            (5, 1, allowed(0, 3)),
            (5, 1, limited(0, 3, 3)),
            (4, 1, back),
            (7, 1, limited(0, 1, 1)),
            (8, 1, allowed(0, 3)),
            (u64::MAX, 1, allowed(0, 3)),
        ],
    );
    let delayed = |delay_ns, reset_after_ns| Answer::Allowed {
        remaining: 0,
        delay_ns,
        reset_after_ns,
    };
    check(
        Algorithm::LeakyBucket {
            tokens: 2,
            per_ns: 3,
            burst: 2,
        },
        &[
            (0, 1, allowed(1, 2)),
            (0, 1, delayed(2, 3)),
            (0, 0, allowed(0, 3)),
            (1, 1, limited(0, 1, 2)),
            (2, 1, delayed(1, 3)),
            (2, 3, Answer::TooLarge),
            (1, 0, back),
            (u64::MAX, 2, delayed(0, 3)),
        ],
    );
    check(
        Algorithm::FixedWindow {
            limit: 2,
            window_ns: 10,
            anchor: Anchor::Aligned,
        },
        &[
            (9, 2, allowed(0, 1)),
            (9, 1, limited(0, 1, 1)),
            (10, 2, allowed(0, 10)),
            (10, 0, allowed(0, 10)),
            (9, 0, back),
        ],
    );
    check(
        Algorithm::SlidingLog {
            limit: 2,
            window_ns: 10,
        },
        &[
            (0, 1, allowed(1, 10)),
            (4, 1, allowed(0, 10)),
            (4, 2, limited(0, 10, 10)),
            (9, 1, limited(0, 1, 5)),
            (10, 1, allowed(0, 10)),
            (10, 3, Answer::TooLarge),
        ],
    );
    check(
        Algorithm::SlidingWindowCounter {
            limit: 1,
            window_ns: 10,
        },
        &[
            (3, 1, allowed(0, 17)),
            (9, 1, limited(0, 11, 11)),
            (19, 1, limited(0, 1, 1)),
            (20, 1, allowed(0, 20)),
        ],
    );
}

/// The history was once cut by age alone, which left out the call that had opened a window and
/// kept one inside it: that one then seemed to have opened it, and the windows after it moved.
#[test]
fn a_window_from_the_first_request_stays_where_it_opened() {
    check(
        Algorithm::FixedWindow {
            limit: 2,
            window_ns: 10,
            anchor: Anchor::First,
        },
        &[
            (0, 1, allowed(1, 10)),
            (9, 1, allowed(0, 1)),
            (11, 1, allowed(1, 10)),
            (20, 1, allowed(0, 1)),
            (20, 1, limited(0, 1, 1)),
            (21, 1, allowed(1, 10)),
        ],
    );
}

#[test]
fn the_longest_wait_is_exact() {
    let all = u64::MAX;
    let longest = u128::from(all) * u128::from(all);
    for at_ns in [0, all] {
        let algorithm = Algorithm::TokenBucket {
            tokens: 1,
            per_ns: all,
            burst: all,
        };
        let mut bucket = model(algorithm);
        assert_eq!(bucket.call("a", all, at_ns), allowed(0, longest));
        assert_eq!(bucket.call("a", all, at_ns), limited(0, longest, longest));
        let algorithm = Algorithm::LeakyBucket {
            tokens: 1,
            per_ns: all,
            burst: all,
        };
        let mut bucket = model(algorithm);
        assert_eq!(bucket.call("a", all, at_ns), allowed(0, longest));
        assert_eq!(bucket.call("a", all, at_ns), limited(0, longest, longest));
    }
    let mut log = model(Algorithm::SlidingLog {
        limit: all,
        window_ns: all,
    });
    assert_eq!(log.call("a", all, all), allowed(0, u128::from(all)));
    let counter = Algorithm::SlidingWindowCounter {
        limit: all,
        window_ns: all,
    };
    let mut counter = model(counter);
    assert_eq!(counter.call("a", all, all), allowed(0, 2 * u128::from(all)));
    assert_eq!(
        counter.call("a", all, all),
        limited(0, 2 * u128::from(all), 2 * u128::from(all))
    );
}

#[test]
fn zeros_that_mean_nothing_are_answered_all_the_same() {
    check(
        Algorithm::TokenBucket {
            tokens: 0,
            per_ns: 0,
            burst: 0,
        },
        &[(0, 0, allowed(0, 0))],
    );
    check(
        Algorithm::LeakyBucket {
            tokens: 0,
            per_ns: 0,
            burst: 1,
        },
        &[(0, 1, allowed(0, 1)), (0, 1, limited(0, 1, 1))],
    );
    check(
        Algorithm::SlidingWindowCounter {
            limit: 1,
            window_ns: 0,
        },
        &[
            (0, 1, allowed(0, 2)),
            (0, 1, limited(0, 2, 2)),
            (0, 2, Answer::TooLarge),
        ],
    );
}

#[test]
fn clients_are_counted_until_they_are_idle() {
    let algorithm = Algorithm::TokenBucket {
        tokens: 1,
        per_ns: SECOND,
        burst: 1,
    };
    let mut model = Model::new(Config {
        algorithm,
        max_clients: Some(2),
        idle_ns: Some(10),
    });
    assert!(model.is_empty());
    model.call("a", 1, 0);
    model.call("b", 1, 5);
    assert_eq!(model.call("c", 1, 9), Answer::ClientLimit);
    assert_eq!(model.call("c", 0, 9), allowed(1, 0));
    // A look keeps nobody, a refusal does; too large a call does neither, yet time has passed.
    model.call("a", 0, 9);
    assert_eq!(model.call("b", 1, 9), limited(0, 999_999_996, 999_999_996));
    assert_eq!(
        (
            model.len(),
            model.len_at(9),
            model.len_at(10),
            model.len_at(18)
        ),
        (2, 2, 1, 1)
    );
    assert_eq!(model.len_at(19), 0);
    assert_eq!(model.call("b", 2, 10), Answer::TooLarge);
    assert_eq!(model.len(), 1);
    assert_eq!(model.call("c", 1, 10), allowed(0, u128::from(SECOND)));
    assert!(model.remove("c", 10) && !model.remove("c", 10) && !model.remove("a", 10));
    assert_eq!(model.len(), 1);
    assert!(!model.remove("b", 19));
    assert_eq!(model.call("b", 1, 18), Answer::ClockBackwards);
    assert!(model.is_empty());
}

/// That every wait is the least, tried out on the model as a whole.
#[test]
fn refused_until_retry_after_and_not_new_until_reset_after() {
    let (mut waits, mut resets) = (0, 0);
    for seed in 0..200 {
        let mut trace = Random::new(seed).trace(40);
        trace.config.idle_ns = None;
        let burst = trace.config.algorithm.burst();
        let mut model = Model::new(trace.config);
        for call in &trace.calls {
            let answer = model.call(&call.client, call.cost, call.at_ns);
            let at = |wait_ns: u128| u64::try_from(u128::from(call.at_ns) + wait_ns).ok();
            if let Answer::Limited { retry_after_ns, .. } = answer
                && let Some(at_ns) = at(retry_after_ns)
            {
                let retried = |at_ns| model.clone().call(&call.client, call.cost, at_ns);
                assert!(
                    matches!(retried(at_ns), Answer::Allowed { .. }),
                    "seed {seed}: {call:?}"
                );
                let sooner = retried(at_ns - 1);
                assert!(
                    matches!(sooner, Answer::Limited { .. }),
                    "seed {seed}: {call:?}"
                );
                waits += 1;
            }
            if let Answer::Allowed { reset_after_ns, .. } | Answer::Limited { reset_after_ns, .. } =
                answer
                && reset_after_ns > 0
                && let Some(at_ns) = at(reset_after_ns)
            {
                let looked = |at_ns| model.clone().call(&call.client, 0, at_ns);
                assert_eq!(looked(at_ns), allowed(burst, 0), "seed {seed}: {call:?}");
                assert_ne!(
                    looked(at_ns - 1),
                    allowed(burst, 0),
                    "seed {seed}: {call:?}"
                );
                resets += 1;
            }
        }
    }
    assert!(
        waits > 500 && resets > 1_000,
        "{waits} waits, {resets} resets"
    );
}
