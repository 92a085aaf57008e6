//! Public bug reports on answers over HTTP, by number.

use std::time::Duration;

use tollgate::Rate;
use tollgate_http::{Cost, Headers, Policy, Reset, Rule};

use crate::harness::{App, bucket, get, item, limit, ms, seconds};

fn every(period: Duration) -> Rate {
    Rate::new(1, period)
}

/// The same limits, with `X-RateLimit-*`.
fn legacy(rule: Rule, reset: Reset) -> App {
    let policy = Policy::new(vec![limit("default", rule)]).unwrap();
    App::with(policy, |builder| {
        builder.headers(Headers::new().legacy(reset))
    })
}

/// brandur/redis-cell#56, hashicorp/boundary#4094, balena-io/open-balena-api#1472,
/// KumoCorp/kumomta#282: a wait below a second is not 0.
#[test]
fn b03_retry_after_is_at_least_a_second() {
    let app = App::of(bucket(every(seconds(10)), 1));
    assert_eq!(app.get().status, 200);
    for (at, retry_after) in [
        (seconds(0), 10),
        (seconds(9), 1),
        (ms(9_001), 1),
        (Duration::from_micros(9_999_500), 1),
        (Duration::from_nanos(9_999_999_999), 1),
    ] {
        let refused = app.at(at).get();
        assert_eq!(
            (refused.status, refused.retry_after()),
            (429, Some(retry_after)),
            "{at:?}"
        );
    }
    assert_eq!(app.at(seconds(10)).get().status, 200);

    let app = App::of(bucket(Rate::per_second(2_000), 1));
    assert_eq!(app.get().status, 200);
    assert_eq!(
        app.at(Duration::from_micros(100)).get().retry_after(),
        Some(1)
    );
}

/// go-chi/httprate#47, dotnet/runtime#129036, bucket4j/bucket4j#88, mjpieters/aiolimiter#217,
/// `antifuchs/ratelimit_meter#36`: what has accrued already is taken off the wait.
#[test]
fn b24_retry_after_counts_what_has_accrued() {
    let app = App::of(bucket(every(seconds(60)), 1));
    assert_eq!(app.get().status, 200);
    assert_eq!(app.at(seconds(20)).get().retry_after(), Some(40));
    assert_eq!(app.at(ms(59_200)).get().retry_after(), Some(1));

    let app = App::of(bucket(Rate::per_second(1), 1));
    assert_eq!(app.get().status, 200);
    assert_eq!(app.at(ms(200)).get().retry_after(), Some(1));

    let two = limit("two", bucket(Rate::per_second(1), 3)).with_cost(Cost::Fixed(2));
    let app = App::new([two]);
    assert_eq!(app.get().status, 200);
    assert_eq!(app.get().retry_after(), Some(1), "not 2");

    let app = App::of(bucket(Rate::per_second(1), 5));
    assert!((0..5).all(|_| app.get().status == 200));
    assert_eq!(app.get().retry_after(), Some(1), "not 5 or 6");
}

/// boinkor-net/governor#11, bucket4j/bucket4j#20 and others: what never fits is not told to come
/// again.
#[test]
fn b37_a_cost_above_the_burst_is_never_worth_a_retry() {
    let policy = Policy::new(vec![limit("default", bucket(Rate::per_second(2), 10))]).unwrap();
    let app = App::with(policy, |builder| {
        builder.cost(|head| {
            let cost = head.headers.get("x-cost").unwrap();
            cost.to_str().unwrap().parse().unwrap()
        })
    });
    let ask = |cost: &str| app.ask(get("192.0.2.1", "/", &[("x-cost", cost)]));
    let refused = ask("11");
    assert_eq!((refused.status, refused.retry_after()), (429, None));
    assert_eq!(refused.figures(), None);
    assert_eq!(
        refused.json()["detail"],
        "the request costs 11; limit default never has more than 10"
    );
    assert_eq!(ask("10").status, 200);
    let refused = ask("10");
    assert_eq!((refused.status, refused.retry_after()), (429, Some(5)));
}

/// valpackett/ring-ratelimit#6, 3scale/apisonator#54, alisaifee/flask-limiter#393, Kong/kong#3451:
/// of several limits the one that is nearest is shown, and each header comes once.
#[test]
fn b45_the_nearest_limit_is_shown() {
    let a = limit("a", bucket(Rate::new(100, seconds(60)), 100));
    let b = limit("b", bucket(Rate::new(2, seconds(3_600)), 2));
    let policy = Policy::new(vec![a, b]).unwrap();
    let app = App::with(policy, |builder| {
        builder.headers(Headers::new().legacy(Reset::Delta))
    });
    let policies = [
        item("a", &[("q", 100), ("w", 60)]),
        item("b", &[("q", 2), ("w", 3_600)]),
    ];
    for (status, remaining, t, reset) in [
        (200, 1, 1_800, "1800"),
        (200, 0, 1_800, "3600"),
        (429, 0, 1_800, "3600"),
    ] {
        let answer = app.get();
        assert_eq!(answer.status, status);
        assert_eq!(answer.items("ratelimit-policy"), policies);
        assert_eq!(
            answer.figures(),
            Some(item("b", &[("r", remaining), ("t", t)]))
        );
        let remaining = remaining.to_string();
        let legacy = ["limit", "remaining", "reset"].map(|name| {
            let name = format!("x-ratelimit-{name}");
            answer.one(&name).unwrap().to_owned()
        });
        assert_eq!(legacy, ["2", remaining.as_str(), reset]);
        let wait = (status == 429).then_some(1_800);
        assert_eq!(answer.retry_after(), wait);
    }
    // What was refused took nothing of the other.
    let mut statistics = app.layer.limits().statistics();
    let (_, a) = statistics.remove(0);
    assert_eq!((a.allowed, a.limited), (2, 0));
}

/// tj/node-ratelimiter#11, alisaifee/flask-limiter#62 and #56, planningcenter/developers#606: no
/// second is cut off, and nothing is below 0.
#[test]
fn b62_no_reset_is_past() {
    let app = legacy(Rule::AlignedWindow(1, seconds(1)), Reset::Delta);
    let at = Duration::from_millis(1_441_268_386_507);
    assert_eq!(app.at(at).get().status, 200);
    let refused = app.get();
    assert_eq!((refused.status, refused.retry_after()), (429, Some(1)));
    assert_eq!(refused.one("x-ratelimit-reset"), Some("1"));
    let next = app.at(Duration::from_secs(1_441_268_387)).get();
    assert_eq!(
        (next.status, next.one("x-ratelimit-reset")),
        (200, Some("1"))
    );
}

/// sethvargo/go-limiter#22, outline/outline#13506, ysocorp/koa2-ratelimit#39,
/// directus/directus#17296, tj/node-ratelimiter#39: whole seconds from now, or, where asked for,
/// since 1970; nothing else.
#[test]
fn b67_resets_are_whole_seconds_of_one_kind() {
    let window = Rule::AlignedWindow(1, seconds(60));
    let now = Duration::from_millis(1_796_000_045_250);
    for (reset, says) in [(Reset::Delta, "55"), (Reset::Epoch, "1796000100")] {
        let app = legacy(window, reset);
        let (first, second) = (app.at(now).get(), app.get());
        assert_eq!((first.status, second.status), (200, 429));
        for answer in [&first, &second] {
            assert_eq!(answer.one("x-ratelimit-reset"), Some(says));
            assert_eq!(answer.figures().unwrap().number("t"), Some(55));
        }
        assert_eq!(
            (first.retry_after(), second.retry_after()),
            (None, Some(55))
        );
    }
}

/// envoyproxy/ratelimit#165 and #192, apache/apisix#9964: a reset is never 0 while a window runs.
#[test]
fn b98_a_reset_is_filled_in_on_every_path() {
    let app = legacy(Rule::AlignedWindow(50, seconds(60)), Reset::Delta);
    let start = 1_796_040_000;
    let mut told = Vec::new();
    for (at, takes) in [(0, 1), (11, 1), (59, 1), (59, 48)] {
        let mut answers = (0..takes).map(|_| app.at(seconds(start + at)).get());
        let last = answers.by_ref().last().unwrap();
        let says = |name: &str| last.one(name).unwrap().to_owned();
        told.push((
            says("x-ratelimit-reset"),
            says("x-ratelimit-remaining"),
            last.status,
        ));
    }
    let told: Vec<_> = told
        .iter()
        .map(|(reset, remaining, status)| (reset.as_str(), remaining.as_str(), *status))
        .collect();
    assert_eq!(
        told,
        [
            ("60", "49", 200),
            ("49", "48", 200),
            ("1", "47", 200),
            ("1", "0", 429)
        ]
    );
}

/// inngest/inngest#1459, spring-cloud/spring-cloud-gateway#87, emqx/emqx#8167.
#[test]
fn b102_a_small_limit_is_not_rounded_away() {
    let file = "[[limit]]\nname = \"a\"\nkey = \"ip\"\nrate = \"5/day\"\n";
    let app = App::with(Policy::from_toml(file).unwrap(), |builder| builder);
    assert!((0..5).all(|_| app.get().status == 200));
    let refused = app.get();
    assert_eq!((refused.status, refused.retry_after()), (429, Some(17_280)));
    assert_eq!(app.at(seconds(17_280)).get().status, 200);
}

/// boinkor-net/governor#102 and #157, jeremy/rack-ratelimit#3, upstash/ratelimit-js#62: what
/// remains is what is left after the answer, and recovers.
#[test]
fn b104_what_remains_recovers() {
    let left = |app: &App| app.get().figures().unwrap().number("r").unwrap();
    let policy = Policy::new(vec![limit("a", bucket(Rate::new(5, seconds(60)), 5))]).unwrap();
    let app = App::with(policy, |builder| {
        builder.cost(|head| if head.uri.path() == "/four" { 4 } else { 1 })
    });
    // One that costs 4 is told how many more such there are: none.
    let four = app.ask(get("192.0.2.1", "/four", &[])).figures().unwrap();
    assert_eq!(
        four,
        item("a", &[("r", 0), ("t", 36), ("tollgate-cost", 4)])
    );
    assert_eq!(left(&app), 0);
    assert_eq!(left(app.at(seconds(12))), 0);
    assert_eq!(left(app.at(seconds(60))), 3);

    let app = App::of(bucket(every(ms(90)), 2));
    let told: Vec<(u64, u16)> = [0, 1, 2, 90]
        .into_iter()
        .map(|at| {
            let answer = app.at(ms(at)).get();
            (
                answer.figures().unwrap().number("r").unwrap(),
                answer.status,
            )
        })
        .collect();
    assert_eq!(told, [(1, 200), (0, 200), (0, 429), (0, 200)]);

    let app = App::of(Rule::FixedWindow(3, seconds(60)));
    let told: Vec<u64> = (0..5).map(|_| left(&app)).collect();
    assert_eq!(told, [2, 1, 0, 0, 0]);
}

/// AaronErhardt/actix-governor#49, benwis/tower-governor#55, traefik/traefik#8330.
#[test]
fn b88_two_per_second_are_two_in_a_second() {
    let app = App::of(bucket(Rate::per_second(2), 1));
    let told: Vec<u16> = [0, 250, 500, 1_000]
        .into_iter()
        .map(|at| app.at(ms(at)).get().status)
        .collect();
    assert_eq!(told, [200, 429, 200, 200]);
}

/// symfony/symfony#63492, mailgun/gubernator#110: what is told with a success is when the next one
/// passes, and when all are there again.
#[test]
fn b72_successes_tell_when_more_passes() {
    let reset = |answer: &crate::harness::Answer| {
        let figures = answer.figures().unwrap();
        let reset = answer.one("x-ratelimit-reset").unwrap().to_owned();
        (
            figures.number("r").unwrap(),
            figures.number("t").unwrap(),
            reset,
        )
    };
    let app = legacy(bucket(every(seconds(10)), 1), Reset::Delta);
    assert_eq!(reset(&app.get()), (0, 10, "10".to_owned()));
    let app = legacy(bucket(Rate::new(10, seconds(30)), 10), Reset::Delta);
    let five: Vec<_> = (0..5).map(|_| app.get()).collect();
    assert_eq!(reset(&five[4]), (5, 15, "15".to_owned()));
}
