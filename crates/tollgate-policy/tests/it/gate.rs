//! Requests answered.

use std::time::Duration;

use tollgate::{ManualClock, Rate, Timestamp};
use tollgate_policy::statuses::Statuses;
use tollgate_policy::{Cost, Gate, Key, Limit, MissingKey, Outcome, Policy, Rule};

use crate::request::Made;

fn limit(name: &str, rule: Rule) -> Limit {
    Limit::new(name, rule).unwrap()
}

fn bucket(rate: Rate, burst: u64) -> Rule {
    Rule::TokenBucket(rate.burst(burst))
}

fn gate(limits: Vec<Limit>) -> (Gate<ManualClock>, ManualClock) {
    let clock = ManualClock::default();
    let gate = Gate::new(Policy::new(limits).unwrap(), clock.clone());
    (gate.unwrap(), clock)
}

/// The limit that refused, and its wait.
fn refusal(gate: &Gate<ManualClock>, request: &Made) -> Option<(usize, Option<Duration>)> {
    let verdict = gate.admit(request);
    let said = verdict.refused_by()?;
    match said.outcome {
        Outcome::Decided(decision) => Some((said.limit, decision.retry_after())),
        Outcome::Unidentified | Outcome::NotAsked | _ => Some((said.limit, None)),
    }
}

/// valpackett/ring-ratelimit#6, 3scale/apisonator#54, alisaifee/flask-limiter#393, Kong/kong#3451:
/// the figures shown are those of the limit that is nearest, and of one limit alone.
#[test]
fn b45_the_nearest_limit_is_shown() {
    let a = limit("a", bucket(Rate::new(100, Duration::from_secs(60)), 100));
    let b = limit("b", bucket(Rate::new(2, Duration::from_secs(3_600)), 2));
    for limits in [vec![a.clone(), b.clone()], vec![b, a]] {
        let (gate, _) = gate(limits);
        let place = |name| {
            gate.policy()
                .limits()
                .iter()
                .position(|own| own.name() == name)
                .unwrap()
        };
        for remaining in [1, 0, 0] {
            let verdict = gate.admit(&Made::default());
            let shown = verdict.shown().unwrap();
            let figures = (shown.limit.name(), shown.decision.remaining());
            assert_eq!(figures, ("b", remaining));
        }
        let wait = Some(Duration::from_secs(1_800));
        assert_eq!(refusal(&gate, &Made::default()), Some((place("b"), wait)));
        // What was refused took nothing of the other.
        let left = gate.policy().calls(&Made::default());
        let tollgate_policy::Answer::Takes { client, .. } = &left[place("a")].answer else {
            panic!("{left:?}");
        };
        assert_eq!(
            gate.limiter(place("a")).unwrap().peek(client).remaining(),
            98
        );
    }
}

#[test]
fn what_counts_only_changes_nothing() {
    let strict = bucket(Rate::per_hour(1), 1);
    let shadow = limit("shadow", strict).with_shadow(true);
    let keyless = limit("keyless", strict)
        .with_key(Key::header("k"))
        .with_missing_key(MissingKey::Refuse)
        .with_shadow(true);
    let own = limit("own", bucket(Rate::per_hour(1), 2));
    let (gate, _) = gate(vec![shadow, keyless, own]);
    let outcomes: Vec<Vec<bool>> = (0..3)
        .map(|_| {
            let verdict = gate.admit(&Made::default());
            verdict
                .said()
                .iter()
                .map(|said| said.outcome.refuses())
                .collect()
        })
        .collect();
    // The last one is not asked of the shadow: nothing would come of it.
    assert_eq!(
        outcomes,
        [
            [false, true, false],
            [true, true, false],
            [false, true, true]
        ]
    );
    assert!(!gate.admit(&Made::default()).is_allowed());
    let shown = gate.admit(&Made::default());
    assert_eq!(shown.shown().map(|shown| shown.limit.name()), Some("own"));
}

/// Who has no key is refused before anything is taken, whatever comes first.
#[test]
fn who_lacks_a_key_takes_nothing() {
    let own = limit("own", bucket(Rate::per_hour(1), 2));
    let keyed = limit("keyed", bucket(Rate::per_hour(1), 2))
        .with_key(Key::header("k"))
        .with_missing_key(MissingKey::Refuse);
    let (gate, _) = gate(vec![own, keyed]);
    for _ in 0..3 {
        let verdict = gate.admit(&Made::default());
        assert_eq!(
            verdict.refused_by().map(|said| said.outcome),
            Some(Outcome::Unidentified)
        );
        assert_eq!(verdict.said()[0].outcome, Outcome::NotAsked);
        assert!(verdict.shown().is_none());
    }
    let with_key = Made::default().header("k", "a");
    assert!(gate.admit(&with_key).is_allowed() && gate.admit(&with_key).is_allowed());
    assert!(!gate.admit(&with_key).is_allowed());
}

/// boinkor-net/governor#11 and others: a cost that never fits is told as that.
#[test]
fn b37_a_cost_above_the_burst_never_passes() {
    let ten = limit("ten", bucket(Rate::per_second(2), 10)).with_cost(Cost::Fixed(11));
    let (gate, _) = gate(vec![ten, limit("own", bucket(Rate::per_hour(1), 1))]);
    for _ in 0..3 {
        assert_eq!(refusal(&gate, &Made::default()), Some((0, None)));
    }
}

/// A leaky bucket's delay is handed on; the longest of several.
#[test]
fn delays_are_handed_on() {
    let slow = |rate| {
        let rule = Rule::LeakyBucket(Rate::per_minute(rate).burst(5));
        limit("a", rule).with_max_delay(Duration::from_secs(20))
    };
    let other = limit("b", slow(60).rule()).with_max_delay(Duration::MAX);
    let (gate, clock) = gate(vec![slow(6), other]);
    for seconds in [0, 10, 20] {
        let verdict = gate.admit(&Made::default());
        assert_eq!(verdict.delay(), Duration::from_secs(seconds));
    }
    // It has two places more, but nobody is held back for longer than that.
    let wait = Some(Duration::from_secs(10));
    assert_eq!(refusal(&gate, &Made::default()), Some((0, wait)));
    let never_held = gate.admit_within(&Made::default(), |_, _| Duration::ZERO);
    let wait = never_held.shown().unwrap().decision.retry_after();
    assert_eq!(wait, Some(Duration::from_secs(30)));
    clock.advance(Duration::from_secs(10));
    assert_eq!(
        gate.admit(&Made::default()).delay(),
        Duration::from_secs(20)
    );
}

/// What is left of a leaky bucket is what may still come at once without being refused for its
/// delay.
#[test]
fn left_in_a_leaky_bucket_is_what_its_delay_admits() {
    let rule = Rule::LeakyBucket(Rate::per_second(1).burst(100));
    let (gate, clock) = gate(vec![
        limit("a", rule).with_max_delay(Duration::from_millis(2_500)),
    ]);
    let left = || {
        let verdict = gate.admit(&Made::default());
        let shown = verdict.shown().unwrap();
        (verdict.is_allowed(), shown.burst(), shown.requests_left())
    };
    for wanted in [(true, 3, 2), (true, 3, 1), (true, 3, 0), (false, 3, 0)] {
        assert_eq!(left(), wanted);
    }
    clock.advance(Duration::from_millis(1_500));
    assert_eq!(left(), (true, 3, 1));
}

/// Of two limits that are used up, the one is shown that the next request waits for longest.
#[test]
fn the_limit_that_binds_is_shown() {
    let bucket = limit("bucket", bucket(Rate::per_second(1), 2)); // full in 2 s, one in 1 s
    let window = limit("window", Rule::FixedWindow(2, Duration::from_millis(1_500)));
    let (gate, _) = gate(vec![bucket, window]);
    let _ = gate.admit(&Made::default());
    let verdict = gate.admit(&Made::default());
    let shown = verdict.shown().unwrap();
    assert_eq!(shown.limit.name(), "window");
    assert_eq!(shown.again_after, Some(Duration::from_millis(1_500)));
}

/// express-rate-limit/express-rate-limit#647: what is given back to a window that is over changes
/// nothing in the next.
#[test]
fn b53_a_refund_stays_in_its_window() {
    let window = Rule::AlignedWindow(5, Duration::from_secs(10));
    let limit = limit("a", window).with_refund_status(Statuses::of(["304"]).unwrap());
    for others in [true, false] {
        let (gate, clock) = gate(vec![limit.clone()]);
        let at = |ms: u64| clock.set(Timestamp::from_nanos(ms * 1_000_000));
        at(9_000);
        let mut a = gate.admit(&Made::default());
        assert!(a.is_allowed());
        for ms in [10_500, 10_700] {
            at(ms);
            assert!(!others || gate.admit(&Made::default()).is_allowed());
        }
        at(11_000);
        a.answered(304);
        let left = a.shown().unwrap().decision.remaining();
        assert_eq!(left, if others { 3 } else { 5 });
        let passed = (0..10).filter(|_| gate.admit(&Made::default()).is_allowed());
        assert_eq!(passed.count(), if others { 3 } else { 5 });
    }
}

/// Only what a limit does not count is given back, once, and to each limit that does not.
#[test]
fn refunds_by_status() {
    let two = |name| limit(name, bucket(Rate::per_hour(1), 2));
    let failed = two("failed").with_refund_status(Statuses::of(["2xx", "304"]).unwrap());
    let shadow = two("shadow")
        .with_refund_status(Statuses::of(["200"]).unwrap())
        .with_shadow(true);
    let (gate, _) = gate(vec![failed, two("all").with_cost(Cost::Fixed(1)), shadow]);
    let left = |status| {
        let mut verdict = gate.admit(&Made::default());
        verdict.answered(status);
        verdict.answered(status);
        let said = verdict.said().iter();
        said.map(|said| match said.outcome {
            Outcome::Decided(decision) => decision.remaining(),
            Outcome::Unidentified | Outcome::NotAsked | _ => 99,
        })
        .collect::<Vec<_>>()
    };
    assert_eq!(left(204), [2, 1, 1]);
    assert_eq!(left(401), [1, 0, 0]);
}

/// symfony/symfony#63492, mailgun/gubernator#110: the time to be as new, on success too.
#[test]
fn b72_reset_is_the_time_to_be_full() {
    let (gate, _) = gate(vec![
        limit("ten", bucket(Rate::new(10, Duration::from_secs(30)), 10)).with_cost(Cost::Fixed(5)),
    ]);
    let verdict = gate.admit(&Made::default());
    let decision = verdict.shown().unwrap().decision;
    assert_eq!(
        (decision.remaining(), decision.reset_after()),
        (5, Duration::from_secs(15))
    );
}

/// What nobody limits passes, and shows nothing.
#[test]
fn a_request_that_no_limit_holds_for_passes() {
    let (gate, _) = gate(vec![
        limit("k", bucket(Rate::per_hour(1), 1))
            .with_key(Key::header("k"))
            .with_missing_key(MissingKey::Pass),
    ]);
    for _ in 0..3 {
        let verdict = gate.admit(&Made::default());
        assert!(verdict.is_allowed() && verdict.shown().is_none());
        assert_eq!(verdict.delay(), Duration::ZERO);
    }
    let calls = gate.policy().calls(&Made::default().header("k", "a"));
    let now = Timestamp::from_nanos(5);
    assert!(gate.decide_at(&calls, now).unwrap().is_allowed());
    assert!(!gate.decide_at(&calls, now).unwrap().is_allowed());
    assert!(gate.decide_at(&calls, Timestamp::from_nanos(4)).is_err());
}

/// What is told after a refund is true of a leaky bucket's delay, and of a ban.
#[test]
fn what_is_told_after_a_refund() {
    let refunds = |limit: Limit| limit.with_refund_status(Statuses::of(["2xx"]).unwrap());
    let rule = Rule::LeakyBucket(Rate::per_minute(6).burst(10));
    let leaky = refunds(limit("a", rule)).with_max_delay(Duration::from_secs(10));
    let (leaky, clock) = gate(vec![leaky]);
    assert!(leaky.admit(&Made::default()).is_allowed());
    clock.advance(Duration::from_secs(5));
    let mut slow = leaky.admit(&Made::default());
    assert_eq!(slow.delay(), Duration::from_secs(5));
    clock.advance(Duration::from_secs(5));
    assert_eq!(
        leaky.admit(&Made::default()).delay(),
        Duration::from_secs(10)
    );
    slow.answered(200);
    let shown = slow.shown().unwrap();
    assert_eq!(shown.decision.reset_after(), Duration::from_secs(15));
    assert_eq!(shown.again_after, Some(Duration::from_secs(5)));

    let (banned, _) = gate(vec![refunds(limit("a", bucket(Rate::per_hour(1), 5)))]);
    let mut verdict = banned.admit(&Made::default());
    let calls = banned.policy().calls(&Made::default());
    let tollgate_policy::Answer::Takes { client, .. } = &calls[0].answer else {
        panic!("{calls:?}");
    };
    assert!(
        banned
            .limiter(0)
            .unwrap()
            .ban(client, Duration::from_secs(3_600))
    );
    verdict.answered(200);
    let wait = verdict.shown().unwrap().again_after;
    assert_eq!(wait, Some(Duration::from_secs(3_600)));
}
