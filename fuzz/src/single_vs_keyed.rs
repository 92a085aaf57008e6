//! One bucket against a limiter of many clients that has one: they agree.

use arbitrary::{Arbitrary, Unstructured};
use tollgate::{Limiter, ManualClock};
use tollgate_testkit::Config;

use crate::harness::{any_limit, at, keyed};
use crate::script::{Script, Verb};

/// Reads a limiter and its calls, taking them all for one client's.
///
/// # Panics
///
/// If the two differ.
pub fn run(bytes: &[u8]) {
    let Ok(script) = Script::arbitrary_take_rest(Unstructured::new(bytes)) else {
        return;
    };
    // A client that is never forgotten has its bucket for as long as the limiter lives.
    let config = Config {
        max_clients: Some(1),
        idle_ns: None,
        ..script.config
    };
    let single = Limiter::builder(any_limit(&config.algorithm)).clock(ManualClock::default());
    let (single, keyed) = match (single.build(), keyed(&config)) {
        (Ok(single), Ok(keyed)) => (single, keyed),
        (single, keyed) => {
            assert_eq!(single.err(), keyed.err(), "{config:?}");
            return;
        }
    };
    assert_eq!(single.burst(), keyed.burst());
    for (n, step) in script.steps.iter().enumerate() {
        // All steps are calls here, whatever else they are to a limiter of many clients.
        let cost = match step.verb {
            Verb::TakeAt(cost) | Verb::Take(cost) | Verb::UpTo(cost) => cost,
            Verb::Refund(tokens) | Verb::Debit(tokens) => tokens,
            Verb::Allow | Verb::Remove | Verb::Ban(_) | Verb::Change(..) => 1,
            Verb::Peek | Verb::ForgetIdle | Verb::LenAt | Verb::Settle | Verb::Restart => 0,
        };
        let now = at(step.at_ns);
        assert_eq!(
            single.try_acquire_at(cost, now),
            keyed.try_acquire_at("one", cost, now),
            "step {n}, {step:?} of {config:?}, {:?}",
            script.steps
        );
    }
}
