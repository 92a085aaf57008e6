//! The limiter of many clients against the literal model: every answer and every length.

use std::time::Duration;

use arbitrary::{Arbitrary, Unstructured};
use tollgate::{BuildError, KeyedLimiter, ManualClock};
use tollgate_testkit::{Algorithm, Answer, Config, Model};

use crate::harness::{Keyed, answer, any_limit, at};
use crate::script::{Script, Step, Verb};

/// Reads a limiter and its calls.
///
/// # Panics
///
/// If the limiter and the model differ, or a bound is not kept.
pub fn run(bytes: &[u8]) {
    let Ok(script) = Script::arbitrary_take_rest(Unstructured::new(bytes)) else {
        return;
    };
    let clock = ManualClock::default();
    let built = build(&script.config, &clock);
    assert_eq!(
        built.is_ok(),
        builds(&script.config),
        "{:?}: {built:?}",
        script.config
    );
    let Ok(limiter) = built else {
        return;
    };
    let mut pair = Pair {
        limiter,
        clock,
        model: Model::new(script.config.clone()),
        latest_ns: 0,
    };
    for (n, step) in script.steps.iter().enumerate() {
        pair.both(step)
            .unwrap_or_else(|differ| panic!("step {n}, {step:?}: {differ} in {script:?}"));
    }
    let hold = pair.limiter.longest_hold();
    assert!(hold.positions <= 64 && hold.rebuilds <= 1, "{hold:?}");
}

/// As the harness of the library's tests, but keeping the clock.
fn build(config: &Config, clock: &ManualClock) -> Result<Keyed, BuildError> {
    let most = config.max_clients.unwrap_or(u64::MAX);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let builder = KeyedLimiter::builder(any_limit(&config.algorithm), most).clock(clock.clone());
    match config.idle_ns {
        Some(idle_ns) => builder.idle(Duration::from_nanos(idle_ns)).build(),
        None => builder.never_forget().build(),
    }
}

/// Whether the numbers are within the bounds that the library states.
fn builds(config: &Config) -> bool {
    let limit = match config.algorithm {
        Algorithm::TokenBucket {
            tokens,
            per_ns,
            burst,
        }
        | Algorithm::LeakyBucket {
            tokens,
            per_ns,
            burst,
        } => tokens > 0 && per_ns > 0 && burst > 0 && is_below_2_to_127(tokens, per_ns, burst),
        Algorithm::SlidingLog { limit, window_ns } => {
            (1..=65_536).contains(&limit) && window_ns > 0
        }
        Algorithm::FixedWindow {
            limit, window_ns, ..
        }
        | Algorithm::SlidingWindowCounter { limit, window_ns } => limit > 0 && window_ns > 0,
        ref other => unreachable!("not one of the script's: {other:?}"),
    };
    limit && config.max_clients != Some(0) && config.idle_ns != Some(0)
}

/// burst x q + p, with p/q the rate in lowest terms.
fn is_below_2_to_127(tokens: u64, per_ns: u64, burst: u64) -> bool {
    let (mut divisor, mut rest) = (tokens, per_ns);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    let scaled = u128::from(burst) * u128::from(per_ns / divisor);
    scaled
        .checked_add(u128::from(tokens / divisor))
        .is_some_and(|sum| sum < 1 << 127)
}

struct Pair {
    limiter: Keyed,
    clock: ManualClock,
    model: Model,
    /// The latest time that both were told.
    latest_ns: u64,
}

impl Pair {
    /// Asks both; what differs is the error.
    fn both(&mut self, step: &Step) -> Result<(), String> {
        let client = step.client.to_string();
        match step.verb {
            Verb::TakeAt(cost) => {
                self.latest_ns = self.latest_ns.max(step.at_ns);
                let wanted = self.model.call(&client, cost, step.at_ns);
                let got = self
                    .limiter
                    .try_acquire_at(client.as_str(), cost, at(step.at_ns));
                same(answer(got), as_durations(wanted))
            }
            Verb::Take(cost) => {
                let now_ns = self.set_clock(step);
                let wanted = self.model.call(&client, cost, now_ns);
                let got = self.limiter.try_acquire(client.as_str(), cost);
                same(answer(Ok(got)), as_durations(wanted))
            }
            Verb::Peek => {
                let now_ns = self.set_clock(step);
                let wanted = self.model.call(&client, 0, now_ns);
                let got = self.limiter.peek(client.as_str());
                same(answer(Ok(got)), as_durations(wanted))
            }
            Verb::Allow => {
                let now_ns = self.set_clock(step);
                let wanted = self.model.call(&client, 1, now_ns);
                let got = self.limiter.allow(client.as_str());
                same(got, matches!(wanted, Answer::Allowed { .. }))
            }
            Verb::Remove => {
                let now_ns = self.set_clock(step);
                let wanted = self.model.remove(&client, now_ns);
                same(self.limiter.remove(client.as_str()), wanted)
            }
            Verb::ForgetIdle => {
                let now_ns = self.set_clock(step);
                self.forget_idle(now_ns);
                // How many were still there to be forgotten depends on what was looked at before.
                self.limiter.forget_idle();
                same(self.limiter.len(), self.model.len())
            }
            Verb::LenAt => {
                let got = self.limiter.len_at(at(step.at_ns));
                if step.at_ns < self.latest_ns {
                    return same(got.is_err(), true);
                }
                self.latest_ns = step.at_ns;
                self.forget_idle(step.at_ns);
                same(got, Ok(self.model.len()))
            }
        }
    }

    /// Puts the clock to the step's time, but never back: a limiter panics at that by design.
    fn set_clock(&mut self, step: &Step) -> u64 {
        self.latest_ns = self.latest_ns.max(step.at_ns);
        self.clock.set(at(self.latest_ns));
        self.latest_ns
    }

    /// To remove nobody only makes the model forget who is idle.
    fn forget_idle(&mut self, now_ns: u64) {
        assert!(!self.model.remove("nobody", now_ns));
    }
}

fn same<T: PartialEq + std::fmt::Debug>(got: T, wanted: T) -> Result<(), String> {
    if got == wanted {
        Ok(())
    } else {
        Err(format!("{got:?}, the model: {wanted:?}"))
    }
}

/// The model counts to 2^128; a wait beyond the longest `Duration` reads as that.
fn as_durations(answer: Answer) -> Answer {
    let capped = |ns: u128| ns.min(Duration::MAX.as_nanos());
    match answer {
        Answer::Allowed {
            remaining,
            delay_ns,
            reset_after_ns,
        } => Answer::Allowed {
            remaining,
            delay_ns: capped(delay_ns),
            reset_after_ns: capped(reset_after_ns),
        },
        Answer::Limited {
            remaining,
            retry_after_ns,
            reset_after_ns,
        } => Answer::Limited {
            remaining,
            retry_after_ns: capped(retry_after_ns),
            reset_after_ns: capped(reset_after_ns),
        },
        bare => bare,
    }
}
