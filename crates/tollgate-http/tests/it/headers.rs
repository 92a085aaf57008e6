//! `RateLimit-Policy` and `RateLimit` of every rule, and of the largest numbers.

use std::time::Duration;

use tollgate::{Quota, Rate};
use tollgate_http::Rule;

use crate::harness::{App, item, limit, ms, seconds};

const LARGEST: i64 = 999_999_999_999_999;

/// A quota in whole tokens and whole seconds is never more than the rate, and what may come at once
/// beyond it is told beside it.
#[test]
fn a_policy_is_no_more_than_its_rate() {
    let token = |rate: Rate, burst| Rule::TokenBucket(rate.burst(burst));
    for (rule, numbers) in [
        (token(Rate::per_second(5), 10), &[("q", 10), ("w", 2)][..]),
        (token(Rate::per_second(5), 5), &[("q", 5), ("w", 1)]),
        (
            token(Rate::per_second(5), 4),
            &[("q", 5), ("w", 1), ("tollgate-burst", 4)],
        ),
        (
            token(Rate::new(7, seconds(2)), 3),
            &[("q", 3), ("w", 1), ("tollgate-burst", 3)],
        ),
        (token(Rate::new(3, seconds(2)), 5), &[("q", 5), ("w", 4)]),
        (token(Rate::per_day(1), 1), &[("q", 1), ("w", 86_400)]),
        (
            token(Rate::new(1, Duration::from_nanos(1)), 7),
            &[("q", 1_000_000_000), ("w", 1), ("tollgate-burst", 7)],
        ),
        (Rule::FixedWindow(50, seconds(60)), &[("q", 50), ("w", 60)]),
        (Rule::AlignedWindow(50, ms(1_500)), &[("q", 50), ("w", 2)]),
        (
            Rule::SlidingLog(3, ms(200)),
            &[("q", 15), ("w", 1), ("tollgate-burst", 3)],
        ),
        (
            Rule::SlidingWindowCounter(9, seconds(1)),
            &[("q", 9), ("w", 1)],
        ),
        // Of a leaky bucket only those pass at once that are not held back for too long.
        (
            Rule::LeakyBucket(Rate::per_second(2).burst(100)),
            &[("q", 3), ("w", 2)],
        ),
        (
            Rule::LeakyBucket(Rate::per_second(2).burst(1)),
            &[("q", 2), ("w", 1), ("tollgate-burst", 1)],
        ),
    ] {
        let policies = App::of(rule).get().items("ratelimit-policy");
        assert_eq!(policies, [item("default", numbers)], "{rule:?}");
    }
}

/// Integers of structured fields have 15 digits; what has more is cut to those, and a window that
/// has is left out.
#[test]
fn the_largest_numbers_still_parse() {
    let slow = Rate::new(1, Duration::from_nanos(u64::MAX));
    let fast = Rate::new(u64::MAX, Duration::from_nanos(1));
    for (quota, policy) in [
        (slow.burst(1), &[("q", 1), ("w", 18_446_744_074)][..]),
        (
            Quota::new(Rate::per_day(1), 1 << 33),
            &[("q", 1 << 33), ("w", (1 << 33) * 86_400)],
        ),
        (Quota::new(Rate::per_day(1), 1 << 34), &[("q", 1 << 34)]),
        (Quota::new(Rate::per_day(1), 1 << 50), &[("q", LARGEST)]),
        (
            fast.burst(u64::MAX),
            &[("q", LARGEST), ("w", 1), ("tollgate-burst", LARGEST)],
        ),
    ] {
        let app = App::of(Rule::TokenBucket(quota));
        for answer in [app.get(), app.get()] {
            let policies = answer.items("ratelimit-policy");
            assert_eq!(policies, [item("default", policy)]);
            let figures = answer.figures().unwrap();
            assert!(figures.numbers.iter().all(|(_, number)| *number <= LARGEST));
        }
    }
}

/// `t` is when the next such request passes, where none does at once; else no sooner than the rate
/// would allow as many as are left.
#[test]
fn t_invites_nobody_to_more_than_the_rate() {
    let told = |app: &App| {
        let figures = app.get().figures().unwrap();
        (figures.number("r").unwrap(), figures.number("t").unwrap())
    };
    let app = App::of(Rule::TokenBucket(Rate::per_second(5).burst(10)));
    let all: Vec<_> = (0..11).map(|_| told(&app)).collect();
    assert_eq!(
        all,
        [
            (9, 2),
            (8, 2),
            (7, 2),
            (6, 2),
            (5, 1),
            (4, 2),
            (3, 2),
            (2, 2),
            (1, 2),
            (0, 1),
            (0, 1)
        ]
    );
    // At the end of a window its whole quota is left: the draft's own example of what not to say.
    let app = App::of(Rule::AlignedWindow(10_000, seconds(1_000)));
    assert_eq!(told(app.at(seconds(990))), (9_999, 1_000));
    let app = App::of(Rule::AlignedWindow(2, seconds(1_000)));
    assert_eq!(told(app.at(seconds(990))), (1, 500));
    assert_eq!(told(&app), (0, 10));
}

/// Several layers around one service each add their line.
#[test]
fn layers_add_up() {
    use tower::Layer;
    let one = App::new([limit(
        "one",
        Rule::TokenBucket(Rate::per_second(5).burst(5)),
    )]);
    let two = App::new([limit(
        "two",
        Rule::TokenBucket(Rate::per_second(5).burst(1)),
    )]);
    let ask = || {
        let service = two.layer.layer(tower::service_fn(crate::harness::echo));
        let service = one.layer.layer(service);
        crate::harness::run(async move {
            let request = crate::harness::from("192.0.2.1");
            let response = tower::ServiceExt::oneshot(service, request).await.unwrap();
            crate::harness::answer(response).await
        })
    };
    for status in [200, 429] {
        let answer = ask();
        assert_eq!(answer.status, status);
        let names: Vec<String> = answer
            .items("ratelimit")
            .into_iter()
            .map(|item| item.name)
            .collect();
        assert_eq!(names, ["two", "one"]);
    }
}
