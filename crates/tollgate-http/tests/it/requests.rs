//! Which limits hold for a request, and what they take.

use http::Request;
use tollgate::{ManualClock, Rate};
use tollgate_http::plan::{Plan, PlanBy, Plans};
use tollgate_http::statuses::Statuses;
use tollgate_http::{Cost, Key, Limits, Policy, RateLimitLayer, Requests, Rule};
use tower::Layer;

use crate::harness::{Answer, App, answer, bucket, echo, from, get, item, limit, run, seconds};

fn hourly(burst: u64) -> Rule {
    bucket(Rate::per_hour(1), burst)
}

fn passed(app: &App, request: impl Fn() -> Request<()>) -> usize {
    (0..20).filter(|_| app.ask(request()).status == 200).count()
}

/// A limit for some requests leaves the others alone, headers and all.
#[test]
fn a_limit_holds_for_its_requests() {
    let requests = Requests::all().paths(["/api/**".parse().unwrap()]).unwrap();
    let app = App::new([limit("api", hourly(1)).for_requests(requests.methods(["GET"]))]);
    assert_eq!(passed(&app, || get("192.0.2.1", "/api/x", &[])), 1);
    let other = app.ask(get("192.0.2.1", "/x", &[]));
    assert_eq!((other.status, other.headers), (200, Vec::new()));
    // Per route: a layer each.
    let (one, two) = (
        App::new([limit("a", hourly(1))]),
        App::new([limit("b", hourly(2))]),
    );
    assert_eq!(
        (
            passed(&one, || from("192.0.2.1")),
            passed(&two, || from("192.0.2.1"))
        ),
        (1, 2)
    );
    // And one layer around several routes is one limit.
    let twin = App {
        layer: one.layer.clone(),
        clock: ManualClock::default(),
    };
    assert_eq!(passed(&twin, || from("192.0.2.1")), 0);
}

/// Of which plan a client is the service says; what it is held to is what it is shown.
#[test]
fn plans_over_http() {
    let plans = vec![Plan::of("pro", hourly(5)), Plan::unlimited("internal")];
    let plans = Plans::new(PlanBy::Descriptor("plan".into()), plans).unwrap();
    let limit = limit("per-key", hourly(1)).with_key(Key::header("x-api-key"));
    let policy = Policy::new(vec![limit.with_plans(plans).unwrap()]).unwrap();
    let app = App::with(policy, |builder| {
        builder.descriptor("plan", |head| {
            let key = head.headers.get("x-api-key")?.to_str().ok()?;
            key.split_once('-').map(|(plan, _)| plan.to_owned())
        })
    });
    let with = |key: &'static str| move || get("192.0.2.1", "/", &[("x-api-key", key)]);
    let shown = app.ask(with("pro-2")());
    assert_eq!(
        shown.items("ratelimit-policy"),
        [item("per-key", &[("q", 5), ("w", 18_000)])]
    );
    assert_eq!(passed(&app, with("pro-1")), 5);
    assert_eq!(passed(&app, with("basic-1")), 1);
    assert_eq!(passed(&app, with("internal-1")), 20);
    let unlimited = app.ask(with("internal-1")());
    assert_eq!(unlimited.headers, Vec::new(), "there is nothing to tell");
}

/// A limit that only counts is seen in the figures, and by nobody else.
#[test]
fn a_shadow_is_seen_by_its_operator_alone() {
    let app = App::new([
        limit("shadow", hourly(1)).with_shadow(true),
        limit("own", hourly(3)),
    ]);
    let answers: Vec<Answer> = (0..4).map(|_| app.get()).collect();
    assert_eq!(
        answers
            .iter()
            .map(|answer| answer.status)
            .collect::<Vec<_>>(),
        [200, 200, 200, 429]
    );
    assert!(
        answers
            .iter()
            .all(|answer| answer.items("ratelimit-policy").len() == 1)
    );
    let figures = app.layer.limits().statistics();
    let figures: Vec<_> = figures
        .iter()
        .map(|(name, figures)| (name.as_str(), figures.allowed, figures.limited))
        .collect();
    assert_eq!(figures, [("shadow", 1, 2), ("own", 3, 1)]);
}

/// What a request costs is what the service says, or a trusted proxy's header; at least 1.
#[test]
fn costs() {
    let app = App::with(
        Policy::new(vec![limit("a", hourly(9)), limit("b", hourly(9))]).unwrap(),
        |builder| builder.cost(|_| 0).cost_of("b", |_| 4),
    );
    let answer = app.get();
    assert_eq!(
        answer.figures(),
        Some(item("b", &[("r", 1), ("t", 14_400), ("tollgate-cost", 4)]))
    );
    assert_eq!(passed(&app, || from("192.0.2.1")), 1);

    let header = limit("a", hourly(9)).with_cost(Cost::Header("X-Cost".into()));
    let proxies = tollgate_http::proxies::Proxies::new(
        ["10.0.0.1".parse().unwrap()],
        tollgate_http::proxies::AddressHeader::XForwardedFor,
    );
    let app = App::with(
        Policy::new(vec![header]).unwrap().with_proxies(proxies),
        |builder| builder,
    );
    let costly = |peer| move || get(peer, "/", &[("x-cost", "4")]);
    assert_eq!(
        (
            passed(&app, costly("10.0.0.1")),
            passed(&app, costly("192.0.2.1"))
        ),
        (2, 9)
    );
}

/// What is skipped is asked of no limit, and its answer is left as it is.
#[test]
fn skipped_requests() {
    let policy = Policy::new(vec![limit("a", hourly(1))]).unwrap();
    let app = App::with(policy, |builder| {
        builder.skip(|head| head.uri.path() == "/healthz")
    });
    let healthy = app.ask(get("192.0.2.1", "/healthz", &[]));
    assert_eq!((healthy.status, healthy.headers), (200, Vec::new()));
    assert_eq!(passed(&app, || get("192.0.2.1", "/healthz", &[])), 20);
    assert_eq!(passed(&app, || from("192.0.2.1")), 1);
}

/// Only log-ins that fail count. Until one is answered it is counted: no more are on their way at a
/// time than may fail.
#[test]
fn only_failures_count() {
    let failed = limit("log-in", Rule::SlidingLog(3, seconds(900)))
        .with_refund_status(Statuses::of(["2xx", "304"]).unwrap());
    let app = App::new([failed]);
    let log_in = |status: &str| app.ask(get("192.0.2.1", "/login", &[("x-status", status)]));
    for _ in 0..10 {
        let answer = log_in("204");
        assert_eq!(
            (answer.status, answer.figures().unwrap().number("r")),
            (204, Some(3))
        );
    }
    for left in [2, 1, 0] {
        let answer = log_in("401");
        assert_eq!(
            (answer.status, answer.figures().unwrap().number("r")),
            (401, Some(left))
        );
    }
    let refused = log_in("204");
    assert_eq!((refused.status, refused.retry_after()), (429, Some(900)));
    // All at once: what is not answered yet is taken.
    let app =
        App::new([limit("log-in", hourly(3)).with_refund_status(Statuses::of(["2xx"]).unwrap())]);
    let told = run(async {
        let (sender, _) = tokio::sync::broadcast::channel::<()>(1);
        let slow = tower::service_fn({
            let sender = sender.clone();
            move |request| {
                let mut answered = sender.subscribe();
                async move {
                    _ = answered.recv().await;
                    echo(request).await
                }
            }
        });
        let service = app.layer.layer(slow);
        let asked: Vec<_> = (0..5)
            .map(|_| {
                let service = service.clone();
                tokio::spawn(async move {
                    let response = tower::ServiceExt::oneshot(service, from("192.0.2.1")).await;
                    answer(response.unwrap()).await.status
                })
            })
            .collect();
        tokio::task::yield_now().await;
        _ = sender.send(());
        let mut told = Vec::new();
        for one in asked {
            told.push(one.await.unwrap());
        }
        told
    });
    assert_eq!(told, [200, 200, 200, 429, 429]);
    assert_eq!(app.get().status, 200);
}

/// express-rate-limit/express-rate-limit#647: what a slow answer gives back is of its own window.
#[test]
fn b53_a_slow_answer_refunds_its_own_window() {
    let window = limit("a", Rule::AlignedWindow(5, seconds(10)))
        .with_refund_status(Statuses::of(["304"]).unwrap());
    let app = App::new([window]);
    let (hold, held) = tokio::sync::oneshot::channel::<()>();
    let held = std::sync::Mutex::new(Some(held));
    let slow = tower::service_fn(move |request| {
        let held = held.lock().unwrap().take();
        async move {
            if let Some(held) = held {
                _ = held.await;
            }
            echo(request).await
        }
    });
    let slow = std::sync::Arc::new(tokio::sync::Mutex::new(slow));
    let slow = tower::service_fn(move |request| {
        let slow = slow.clone();
        async move {
            let call = tower::Service::call(&mut *slow.lock().await, request);
            call.await
        }
    });
    let service = app.layer.layer(slow);
    app.at(seconds(9));
    run(async {
        let first = service.clone();
        let not_counted = get("192.0.2.1", "/", &[("x-status", "304")]);
        let first = tokio::spawn(async move {
            let response = tower::ServiceExt::oneshot(first, not_counted).await;
            answer(response.unwrap()).await
        });
        tokio::task::yield_now().await;
        for at in [10_500, 10_700] {
            app.at(crate::harness::ms(at));
            assert_eq!(app.answer(from("192.0.2.1")).await.status, 200);
        }
        app.at(seconds(11));
        _ = hold.send(());
        let first = first.await.unwrap();
        assert_eq!(
            (first.status, first.figures().unwrap().number("r")),
            (304, Some(3))
        );
    });
    assert_eq!(passed(&app, || from("192.0.2.1")), 3);
}

/// ravangen/graphql-rate-limit#129 and others: what one limit refuses takes nothing from another.
#[test]
fn b11_all_limits_or_none() {
    for own_first in [true, false] {
        let own = limit("own", hourly(1));
        let all = limit("all", hourly(10)).with_key(Key::everybody());
        let app = App::new(if own_first { [own, all] } else { [all, own] });
        assert_eq!(passed(&app, || from("192.0.2.1")), 1);
        for host in 2..=10 {
            assert_eq!(app.ask(from(&format!("192.0.2.{host}"))).status, 200);
        }
        let refused = app.ask(from("192.0.2.11"));
        assert_eq!(
            (refused.status, refused.figures().unwrap().name.as_str()),
            (429, "all")
        );
    }
}

/// nuetzliches/hookaido#239, unkeyed/unkey#5519, bucket4j/bucket4j#45: a reload hands nobody a full
/// bucket.
#[test]
fn b21_reloads_keep_buckets() {
    let ten = |burst| limit("a", bucket(Rate::new(1, seconds(10)), burst));
    let app = App::new([ten(5)]);
    assert_eq!(passed(&app, || from("192.0.2.1")), 5);
    let other = limit("other", hourly(3)).with_key(Key::path());
    let policies = [
        vec![ten(5)],
        vec![ten(5), other.clone()],
        vec![ten(8), other],
    ];
    for (policy, (at, wait)) in policies.into_iter().zip([(1, 9), (2, 8), (3, 7)]) {
        app.at(seconds(at));
        app.layer
            .limits()
            .reload(Policy::new(policy).unwrap())
            .unwrap();
        assert_eq!(app.get().retry_after(), Some(wait));
    }
    // A policy that cannot be brought in changes nothing.
    let none = Policy::new(vec![ten(9).with_max_clients(0)]).unwrap();
    let error = app.layer.limits().reload(none).unwrap_err();
    assert_eq!(
        error.to_string(),
        "limit \"a\": max_clients is 0; the least is 1 client"
    );
    assert_eq!(app.layer.limits().policy().limits().len(), 2);
    let window = |limit| self::limit("w", Rule::AlignedWindow(limit, seconds(60)));
    let app = App::new([window(5)]);
    assert_eq!(passed(&app, || from("192.0.2.1")), 5);
    app.layer
        .limits()
        .reload(Policy::new(vec![window(6)]).unwrap())
        .unwrap();
    assert_eq!(passed(&app, || from("192.0.2.1")), 1);
}

/// lance-format/lance#7942 and others: impossible numbers are told where limits are made, and the
/// policy that runs goes on.
#[test]
fn b13_impossible_numbers() {
    let app = App::new([limit("a", hourly(1))]);
    for wrong in [
        "rate = \"nan/s\"",
        "rate = \"0/s\"",
        "rate = \"-1/s\"",
        "rate = \"1/0s\"",
    ] {
        let file = format!("[[limit]]\nname = \"a\"\nkey = \"ip\"\n{wrong}");
        let error = Policy::from_toml(&file).unwrap_err().to_string();
        assert!(error.starts_with("4:8: rate: "), "{error}");
    }
    for (quota, problem) in [
        (Rate::new(0, seconds(1)).burst(1), "rate is 0/s"),
        (
            Rate::new(1, seconds(0)).burst(1),
            "period of rate 1/0ns is 0",
        ),
        (Rate::per_second(1).burst(0), "burst is 0"),
    ] {
        let error = RateLimitLayer::new(quota, 10).unwrap_err().to_string();
        assert!(error.starts_with(problem), "{error}");
    }
    assert_eq!(passed(&app, || from("192.0.2.1")), 1);
    let limits: &Limits = app.layer.limits();
    assert!(format!("{limits:?}").starts_with("Limits"));
}

/// What is given back for a slow answer is worth what it was less what a full bucket would have
/// spilled: who lets good log-ins wait, and ends each before one more that fails, gets no more
/// tries at once than the burst.
#[test]
fn slow_answers_save_up_no_tries() {
    let rule = bucket(Rate::new(1, seconds(10)), 1);
    let limit = limit("log-in", rule).with_refund_status(Statuses::of(["2xx"]).unwrap());
    let app = App::new([limit]);
    run(async {
        let (end, _) = tokio::sync::broadcast::channel::<()>(1);
        let ending = end.clone();
        let slow = tower::service_fn(move |request: Request<()>| {
            let mut ended = ending.subscribe();
            async move {
                if request.uri().path() == "/slow" {
                    _ = ended.recv().await;
                }
                echo(request).await
            }
        });
        let service = app.layer.layer(slow);
        let ask = |path, status| {
            let request = get("192.0.2.1", path, &[("x-status", status)]);
            tower::ServiceExt::oneshot(service.clone(), request)
        };
        let mut slow = Vec::new();
        for _ in 0..20 {
            slow.push(tokio::spawn(ask("/slow", "200")));
            tokio::task::yield_now().await;
            app.clock.advance(seconds(10));
        }
        _ = end.send(());
        let mut failed = 0;
        for one in slow {
            assert_eq!(one.await.unwrap().unwrap().status(), 200);
            let status = ask("/", "401").await.unwrap().status();
            failed += u32::from(status == 401);
        }
        assert_eq!(failed, 1);
    });
}

/// After what was given back, a reset that is told by the calendar is that of then.
#[test]
fn a_reset_after_a_refund_is_not_past() {
    let rule = bucket(Rate::new(1, seconds(10)), 2);
    let limit = limit("a", rule).with_refund_status(Statuses::of(["2xx"]).unwrap());
    let headers = tollgate_http::Headers::new().legacy(tollgate_http::Reset::Epoch);
    let policy = Policy::new(vec![limit]).unwrap();
    let app = App::with(policy, |builder| builder.headers(headers));
    app.at(seconds(1_000));
    assert_eq!(
        app.ask(get("192.0.2.1", "/", &[("x-status", "500")]))
            .status,
        500
    );
    let clock = app.clock.clone();
    let slow = tower::service_fn(move |request| {
        clock.advance(seconds(8));
        echo(request)
    });
    let service = app.layer.layer(slow);
    let answer = run(async {
        answer(
            tower::ServiceExt::oneshot(service, from("192.0.2.1"))
                .await
                .unwrap(),
        )
        .await
    });
    // By 1008 eight tenths were earned, and the two that are left of the token make it one.
    assert_eq!(answer.figures().unwrap().number("r"), Some(1));
    assert_eq!(answer.one("x-ratelimit-reset"), Some("1018"));
}

/// The last of several settings holds, and what is said of one limit before what is said of all.
#[test]
fn the_last_setting_holds() {
    let policy = Policy::new(vec![limit("a", hourly(99)), limit("b", hourly(99))]).unwrap();
    let app = App::with(policy, |builder| {
        builder
            .cost_of("a", |_| 1)
            .cost(|_| 2)
            .cost_of("a", |_| 3)
            .cost(|_| 4)
    });
    _ = app.get();
    let left: Vec<_> = app.layer.limits().statistics();
    assert_eq!(left.len(), 2);
    let figures = app.get().figures().unwrap();
    assert_eq!(
        (figures.name.as_str(), figures.number("tollgate-cost")),
        ("b", Some(4))
    );
    let layer = RateLimitLayer::of(limit("a", hourly(99)))
        .unwrap()
        .cost(|_| 1)
        .cost(|_| 7);
    let app = App {
        layer,
        clock: ManualClock::default(),
    };
    assert_eq!(
        app.get().figures().unwrap().number("tollgate-cost"),
        Some(7)
    );
}

/// Every limit that has too little left is named.
#[test]
fn all_violated_policies_are_named() {
    let app = App::new([
        limit("a", hourly(1)),
        limit("b", hourly(2)),
        limit("c", hourly(1)),
    ]);
    assert_eq!(app.get().status, 200);
    let refused = app.get();
    assert_eq!(
        refused.json()["violated-policies"],
        serde_json::json!(["a", "c"])
    );
    let dear = limit("a", hourly(5)).with_cost(Cost::Fixed(3));
    let app = App::new([dear]);
    assert_eq!(app.get().status, 200);
    assert_eq!(
        app.get().json()["detail"],
        "limit a has too little left for a cost of 3; retry after 3600 s"
    );
}

/// Where a request's cost is told by nothing else, `X-RateLimit-Remaining` counts tokens, as its
/// limit does.
#[test]
fn legacy_fields_count_tokens() {
    let headers = tollgate_http::Headers::new().legacy(tollgate_http::Reset::Delta);
    let dear = limit("a", hourly(10)).with_cost(Cost::Fixed(4));
    let policy = Policy::new(vec![dear]).unwrap();
    let app = App::with(policy, |builder| builder.headers(headers));
    let answer = app.get();
    let legacy = ["limit", "remaining", "reset"].map(|name| {
        answer
            .one(&format!("x-ratelimit-{name}"))
            .unwrap()
            .to_owned()
    });
    assert_eq!(legacy, ["10", "6", "14400"]);
}
