//! Random limiters and calls against the literal model, and against the promises themselves.
//!
//! Every quota from one token a month to 10^10 a second with a burst up to 2^40, and every window
//! up to a year, must build: `keyed(..).unwrap()` below. What must be refused is in `bounds`.

use tollgate_testkit::{Algorithm, Answer, Call, Config, Model, Random};

use crate::harness::{Keyed, answer, at, keyed};

/// Random limiters a property is tried on; `cargo xtask test --heavy` asks for more.
fn seeds(usually: u64) -> std::ops::Range<u64> {
    let times = std::env::var("TOLLGATE_SEEDS_TIMES")
        .ok()
        .and_then(|times| times.parse().ok());
    0..usually * times.unwrap_or(1)
}

fn call(limiter: &Keyed, call: &Call) -> Answer {
    answer(limiter.try_acquire_at(call.client.as_str(), call.cost, at(call.at_ns)))
}

#[test]
fn answers_and_lengths_are_the_models() {
    for seed in seeds(2_000) {
        let trace = Random::new(seed).trace(60);
        let limiter = keyed(&trace.config).unwrap();
        let mut model = Model::new(trace.config.clone());
        let mut latest = 0;
        for (n, made) in trace.calls.iter().enumerate() {
            let wanted = model.call(&made.client, made.cost, made.at_ns);
            let got = call(&limiter, made);
            assert_eq!(
                got, wanted,
                "seed {seed}, call {n}: {made:?} of {:?}",
                trace.config
            );
            // Not after every call: counting forgets, and whom a call leaves is seen later too.
            latest = latest.max(made.at_ns);
            if n % 4 == 3 {
                assert_eq!(
                    limiter.len_at(at(latest)).unwrap(),
                    model.len_at(latest),
                    "seed {seed}, after call {n} of {:?}",
                    trace.config
                );
            }
        }
    }
}

#[test]
fn below_the_cap_the_default_idle_changes_no_answer() {
    for seed in seeds(2_000) {
        let mut random = Random::new(seed ^ 0x0dd1_d1e5);
        let trace = random.trace(60);
        let forever = keyed(&Config {
            max_clients: None,
            idle_ns: None,
            ..trace.config.clone()
        });
        let forever = forever.unwrap();
        let limit = crate::harness::any_limit(&trace.config.algorithm);
        let by_default = tollgate::KeyedLimiter::builder(limit, 1_000)
            .clock(tollgate::ManualClock::default())
            .build()
            .unwrap();
        for made in &trace.calls {
            assert_eq!(
                call(&by_default, made),
                call(&forever, made),
                "seed {seed}: {made:?}"
            );
        }
    }
}

/// The bound itself, independent of any model: in any stretch of time t at most burst + rate x t.
#[test]
fn no_stretch_of_time_admits_more_than_burst_and_rate() {
    for seed in seeds(2_000) {
        let mut random = Random::new(seed ^ 0xb0_0bd5);
        let algorithm = random.bucket();
        let (Algorithm::TokenBucket {
            tokens,
            per_ns,
            burst,
        }
        | Algorithm::LeakyBucket {
            tokens,
            per_ns,
            burst,
        }) = algorithm
        else {
            unreachable!("a bucket")
        };
        let config = Config {
            algorithm,
            max_clients: None,
            idle_ns: None,
        };
        let limiter = keyed(&config).unwrap();
        let mut admitted: Vec<(u64, u64)> = Vec::new();
        for mut made in random.calls(&config, 120) {
            made.client = "one".into();
            if made.cost > 0 && matches!(call(&limiter, &made), Answer::Allowed { .. }) {
                admitted.push((made.at_ns, made.cost));
            }
        }
        for first in 0..admitted.len() {
            let mut sum: u128 = 0;
            for &(at_ns, cost) in &admitted[first..] {
                sum += u128::from(cost);
                let elapsed = u128::from(at_ns - admitted[first].0);
                // sum <= burst + tokens x elapsed / per_ns, without dividing
                let due = u128::from(burst) * u128::from(per_ns) + u128::from(tokens) * elapsed;
                assert!(
                    sum * u128::from(per_ns) <= due,
                    "seed {seed} from call {first}"
                );
            }
        }
    }
}

/// Every wait is tried on limiters of its own: after it the call passes, a nanosecond before it
/// does not; after `reset_after` the client is as new, a nanosecond before it is not.
#[test]
fn waits_and_resets_suffice_and_are_minimal() {
    let mut waits = 0;
    for seed in seeds(500) {
        let mut random = Random::new(seed ^ 0x3a17);
        let mut trace = random.trace(25);
        trace.config.idle_ns = None;
        trace.config.max_clients = None;
        let after = |made: usize| {
            let limiter = keyed(&trace.config).unwrap();
            for made in trace.calls.iter().take(made) {
                call(&limiter, made);
            }
            limiter
        };
        let limiter = after(0);
        for (n, made) in trace.calls.iter().enumerate() {
            let answered = call(&limiter, made);
            let (retry, reset) = match answered {
                Answer::Limited {
                    retry_after_ns,
                    reset_after_ns,
                    ..
                } => (Some(retry_after_ns), reset_after_ns),
                Answer::Allowed { reset_after_ns, .. } => (None, reset_after_ns),
                Answer::ClientLimit | Answer::TooLarge | Answer::ClockBackwards | _ => continue,
            };
            let latest = trace
                .calls
                .iter()
                .take(n + 1)
                .map(|made| made.at_ns)
                .max()
                .unwrap();
            let then = |wait: u128| u64::try_from(u128::from(latest) + wait).ok();
            let passes = |wait: u128| {
                let at_ns = then(wait)?;
                let again = Call {
                    at_ns,
                    ..made.clone()
                };
                Some(matches!(
                    call(&after(n + 1), &again),
                    Answer::Allowed { .. }
                ))
            };
            if let Some(retry) = retry.filter(|retry| then(*retry).is_some()) {
                assert!(retry > 0, "seed {seed}, call {n}");
                assert_eq!(passes(retry), Some(true), "seed {seed}, call {n}: {made:?}");
                assert_eq!(
                    passes(retry - 1),
                    Some(false),
                    "seed {seed}, call {n}: {made:?}"
                );
                waits += 1;
            }
            let burst = trace.config.algorithm.burst();
            let is_new = |wait: u128| {
                let look = Call {
                    at_ns: then(wait)?,
                    cost: 0,
                    ..made.clone()
                };
                Some(match call(&after(n + 1), &look) {
                    Answer::Allowed {
                        remaining,
                        reset_after_ns,
                        ..
                    } => {
                        assert!(remaining <= burst);
                        reset_after_ns == 0 && remaining == burst
                    }
                    other @ (Answer::Limited { .. } | _) => panic!("a look was answered {other}"),
                })
            };
            if then(reset).is_some() {
                assert_eq!(is_new(reset), Some(true), "seed {seed}, call {n}: {made:?}");
                if reset > 0 {
                    assert_eq!(
                        is_new(reset - 1),
                        Some(false),
                        "seed {seed}, call {n}: {made:?}"
                    );
                }
            }
        }
    }
    assert!(waits > 500, "{waits} waits");
}
