//! Buckets in a store: one that works, and the ways in which one does not.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::time::Instant;
use tollgate::{
    AnyLimit, KeyedLimiter, ManualClock, Rate, Store, StoreAnswer, StoreAsk, StoreError,
    StoreFuture, Timestamp, acquire_all,
};
use tollgate_http::plan::{Plan, PlanBy, Plans};
use tollgate_http::statuses::Statuses;
use tollgate_http::{Key, Limit, OnError, Policy, Rule};

use crate::harness::{App, bucket, from, get, item, limit, ms, run, seconds};
use crate::keys::logged;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mood {
    Works,
    /// It takes, and hangs when it is to give back.
    Keeps,
    Hangs,
    Fails,
    Babbles,
}

/// A store in this process, in some mood.
#[derive(Debug)]
struct Fake {
    clock: ManualClock,
    mood: Mutex<Mood>,
    limiters: Mutex<HashMap<String, Arc<KeyedLimiter<AnyLimit, ManualClock>>>>,
    asked: Mutex<Vec<String>>,
}

impl Fake {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            clock: ManualClock::default(),
            mood: Mutex::new(Mood::Works),
            limiters: Mutex::default(),
            asked: Mutex::default(),
        })
    }

    fn is(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    fn limiter(&self, ask: &StoreAsk<'_>) -> Arc<KeyedLimiter<AnyLimit, ManualClock>> {
        let mut limiters = self.limiters.lock().unwrap();
        let made = || {
            let clock = self.clock.clone();
            Arc::new(
                KeyedLimiter::builder(ask.rule, 100)
                    .clock(clock)
                    .build()
                    .unwrap(),
            )
        };
        limiters
            .entry(format!("{} {:?}", ask.limit, ask.rule))
            .or_insert_with(made)
            .clone()
    }
}

impl Store for Fake {
    fn acquire_all<'a>(&'a self, asks: &'a [StoreAsk<'a>]) -> StoreFuture<'a, Vec<StoreAnswer>> {
        Box::pin(async move {
            let names = asks.iter().map(|ask| ask.limit.to_owned());
            self.asked.lock().unwrap().extend(names);
            let mood = *self.mood.lock().unwrap();
            match mood {
                Mood::Works | Mood::Keeps => {}
                Mood::Hangs => std::future::pending().await,
                Mood::Fails => {
                    let reason = "no".to_owned();
                    return Err(StoreError::Unavailable { reason });
                }
                Mood::Babbles => return Ok(Vec::new()),
            }
            // Not ready at once, as no answer over a network is.
            tokio::task::yield_now().await;
            let limiters: Vec<_> = asks.iter().map(|ask| self.limiter(ask)).collect();
            let own = limiters.iter().zip(asks);
            let own =
                own.map(|(limiter, ask)| limiter.ask(ask.client, ask.cost).within(ask.max_delay));
            let mut own: Vec<_> = own.collect();
            let _ = acquire_all(&mut own);
            Ok(own.iter().map(StoreAnswer::from).collect())
        })
    }

    fn cancel<'a>(
        &'a self,
        ask: &'a StoreAsk<'a>,
        taken_at: Timestamp,
    ) -> StoreFuture<'a, StoreAnswer> {
        Box::pin(async move {
            if *self.mood.lock().unwrap() == Mood::Keeps {
                std::future::pending::<()>().await;
            }
            assert!(taken_at <= tollgate::Clock::now(&self.clock));
            let limiter = self.limiter(ask);
            limiter.refund(ask.client, ask.cost);
            let mut look = [limiter.ask(ask.client, 0)];
            let _ = acquire_all(&mut look);
            Ok(StoreAnswer::from(&look[0]))
        })
    }
}

fn app(store: &Arc<Fake>, limits: impl IntoIterator<Item = Limit>) -> App {
    let policy = Policy::new(limits.into_iter().collect()).unwrap();
    let store = store.clone();
    App::with(policy, |builder| {
        builder.store(store).store_deadline(ms(50))
    })
}

fn hourly(name: &str, burst: u64) -> Limit {
    limit(name, bucket(Rate::per_hour(1), burst))
}

/// What a gate does in this process a store does too: all or none, plans, refunds, figures.
#[test]
fn a_store_keeps_the_buckets() {
    let plans = vec![
        Plan::of("pro", bucket(Rate::per_hour(1), 4)),
        Plan::unlimited("internal"),
    ];
    let plans = Plans::new(PlanBy::Descriptor("plan".into()), plans).unwrap();
    let own = hourly("own", 2).with_plans(plans).unwrap();
    let failed = hourly("failed", 3)
        .with_key(Key::path())
        .with_refund_status(Statuses::of(["2xx"]).unwrap());
    let shadow = hourly("shadow", 1).with_shadow(true);
    let store = Fake::new();
    let policy = Policy::new(vec![own, failed, shadow]).unwrap();
    let shared = store.clone();
    let app = App::with(policy, |builder| {
        let plan = |head: &http::request::Parts| {
            let plan = head.headers.get("x-plan")?;
            plan.to_str().ok().map(str::to_owned)
        };
        builder.store(shared).descriptor("plan", plan)
    });
    let ask = |plan: &str, path: &str, status: &str| {
        app.ask(get(
            "192.0.2.1",
            path,
            &[("x-plan", plan), ("x-status", status)],
        ))
    };
    let first = ask("", "/", "200");
    assert_eq!(first.status, 200);
    assert_eq!(
        first.figures(),
        Some(item("own", &[("r", 1), ("t", 3_600)]))
    );
    assert_eq!(
        first.items("ratelimit-policy"),
        [
            item("own", &[("q", 2), ("w", 7_200)]),
            item("failed", &[("q", 3), ("w", 10_800)])
        ]
    );
    assert_eq!(
        *store.asked.lock().unwrap(),
        [
            "own token-bucket [\"ip\"]",
            "failed token-bucket [\"path\"]",
            "shadow token-bucket [\"ip\"]"
        ]
    );
    // What failed counts, and what did not was given back.
    assert_eq!(ask("", "/", "500").status, 500);
    let refused = ask("", "/", "200");
    assert_eq!((refused.status, refused.retry_after()), (429, Some(3_600)));
    assert_eq!(refused.figures().unwrap().name, "own");
    let pro = ask("pro", "/other", "500");
    assert_eq!(
        pro.figures(),
        Some(item("failed", &[("r", 2), ("t", 7_200)]))
    );
    for left in [1, 0] {
        let internal = ask("internal", "/", "500");
        let figures = internal.figures().unwrap();
        assert_eq!(
            (figures.name.as_str(), figures.number("r")),
            ("failed", Some(left))
        );
    }
    assert_eq!(ask("internal", "/", "500").status, 429);
    assert_eq!(app.layer.limits().statistics(), []);
}

/// api7/aisix#1147, openlinker-project/openlinker#2019, envoyproxy/ratelimit#462,
/// peterkhayes/rolling-rate-limiter#13, docs-plus/docs.plus#211: a store that never answers is a
/// store that failed, in time; once it answers again, requests are limited again.
#[test]
fn b19_a_store_that_hangs_has_failed() {
    for (on_error, status) in [(OnError::Allow, 200), (OnError::Deny, 503)] {
        for mood in [Mood::Hangs, Mood::Fails, Mood::Babbles] {
            let store = Fake::new();
            let app = app(&store, [hourly("a", 1).with_on_error(on_error)]);
            store.is(mood);
            run(async {
                let start = Instant::now();
                let asked = (0..100).map(|_| app.answer(from("192.0.2.1")));
                let told = join(asked).await;
                // The timer's grain is a millisecond, upwards.
                assert!(start.elapsed() <= ms(52), "{mood:?}: {:?}", start.elapsed());
                for answer in told {
                    assert_eq!(answer.status, status, "{mood:?}");
                    assert_eq!(answer.lines("ratelimit").len(), 0);
                    assert_eq!(answer.lines("ratelimit-policy").len(), 0);
                    assert_eq!(answer.retry_after(), None);
                    if status == 503 {
                        assert_eq!(
                            answer.body,
                            "{\"type\":\"https://iana.org/assignments/http-problem-types\
                             #temporary-reduced-capacity\",\"title\":\"Request cannot be satisfied \
                             due to temporary server capacity constraints\",\"status\":503,\
                             \"detail\":\"the limits cannot be looked up at present\"}"
                        );
                    }
                }
                store.is(Mood::Works);
                assert_eq!(app.answer(from("192.0.2.1")).await.status, 200);
                assert_eq!(app.answer(from("192.0.2.1")).await.status, 429);
            });
        }
    }
}

/// All of them, at once.
async fn join<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut pinned: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = pinned.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, done) in pinned.iter_mut().zip(&mut done) {
            if done.is_none()
                && let std::task::Poll::Ready(output) = future.as_mut().poll(context)
            {
                *done = Some(output);
            }
        }
        if done.iter().all(Option::is_some) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    done.into_iter().flatten().collect()
}

/// Only limits that hold for a request say what becomes of it; and what the store is asked about
/// what only counts refuses nobody.
#[test]
fn failures_are_the_asked_limits_matter() {
    let store = Fake::new();
    let strict = hourly("strict", 9)
        .with_on_error(OnError::Deny)
        .for_requests(
            tollgate_http::Requests::all()
                .paths(["/strict".parse().unwrap()])
                .unwrap(),
        );
    let shadow = hourly("shadow", 9)
        .with_on_error(OnError::Deny)
        .with_shadow(true);
    let app = app(&store, [strict, hourly("lenient", 9), shadow]);
    store.is(Mood::Fails);
    assert_eq!(app.get().status, 200);
    assert_eq!(app.ask(get("192.0.2.1", "/strict", &[])).status, 503);
}

/// A store that fails is told of once, and once more when it answers.
#[test]
fn failures_are_logged_when_they_begin_and_end() {
    let store = Fake::new();
    let requests = tollgate_http::Requests::all()
        .paths(["/".parse().unwrap()])
        .unwrap();
    let app = app(&store, [hourly("a", 1_000).for_requests(requests)]);
    let ask = |mood| {
        store.is(mood);
        logged(|| (0..3).for_each(|_| _ = app.get()))
    };
    assert_eq!(ask(Mood::Works), Vec::<String>::new());
    assert_eq!(
        ask(Mood::Fails),
        ["WARN message=the limits' store fails; requests pass"]
    );
    assert_eq!(ask(Mood::Hangs), Vec::<String>::new());
    // What the store is not asked about says nothing about it.
    let other = logged(|| _ = app.ask(get("192.0.2.1", "/other", &[])));
    assert_eq!(other, Vec::<String>::new());
    assert_eq!(
        ask(Mood::Works),
        ["INFO message=the limits' store answers again"]
    );
}

/// A refund that the store does not carry out in time is none, and its answer comes all the same.
#[test]
fn a_refund_has_a_deadline_too() {
    let store = Fake::new();
    let limit = hourly("a", 3).with_refund_status(Statuses::of(["2xx"]).unwrap());
    let app = app(&store, [limit]);
    run(async {
        let start = Instant::now();
        store.is(Mood::Keeps);
        let answer = app.answer(from("192.0.2.1")).await;
        let left = answer.figures().unwrap().number("r");
        assert_eq!((answer.status, left), (200, Some(2)));
        assert!(start.elapsed() <= ms(60), "{:?}", start.elapsed());
    });
}

/// A leaky bucket in a store holds requests back, too, and another policy is a store's matter.
#[test]
fn delays_and_reloads() {
    let store = Fake::new();
    let leaky = limit("a", Rule::LeakyBucket(Rate::per_second(2).burst(10)));
    let app = app(&store, [leaky.clone()]);
    run(async {
        let start = Instant::now();
        for _ in 0..3 {
            assert_eq!(app.answer(from("192.0.2.1")).await.status, 200);
        }
        assert!(
            (ms(1_500)..ms(1_530)).contains(&start.elapsed()),
            "{:?}",
            start.elapsed()
        );
        assert_eq!(app.answer(from("192.0.2.1")).await.status, 429);
    });
    let policy = Policy::new(vec![leaky, hourly("b", 1)]).unwrap();
    let reloaded = app.layer.limits().reload(policy).unwrap();
    assert_eq!(
        (reloaded.afresh, reloaded.gone),
        (vec!["b".to_owned()], vec![])
    );
    store.clock.advance(seconds(10));
    assert_eq!((app.get().status, app.get().status), (200, 429));
}

/// A limit that was not asked, since the client's plan is held to nothing, has no say in what
/// becomes of its requests; and of several refusals the one that lasts longest is told, as in this
/// process.
#[test]
fn who_was_not_asked_denies_nothing() {
    let plans = Plans::new(
        PlanBy::Descriptor("plan".into()),
        vec![Plan::unlimited("free")],
    );
    let strict = hourly("strict", 1).with_on_error(OnError::Deny);
    let limits = [
        strict.with_plans(plans.unwrap()).unwrap(),
        hourly("lenient", 1),
    ];
    let store = Fake::new();
    store.is(Mood::Fails);
    let shared = store.clone();
    let app = App::with(Policy::new(limits.to_vec()).unwrap(), |builder| {
        builder.store(shared).descriptor("plan", |_| Some("free"))
    });
    assert_eq!(app.get().status, 200);
    let costly = hourly("costly", 5).with_cost(tollgate_http::Cost::Fixed(9));
    let app = self::app(&store, [hourly("a", 1), costly]);
    store.is(Mood::Works);
    let refused = app.get();
    assert_eq!((refused.status, refused.retry_after()), (429, None));
    assert_eq!(
        refused.json()["violated-policies"],
        serde_json::json!(["costly"])
    );
}

/// A store that hangs is asked about each limit that only counts until the time is over, and not
/// after it, whatever the deadline is made of.
#[test]
fn a_deadline_is_over_once() {
    use tollgate_policy::SharedGate;
    let shadows = ["a", "b", "c"].map(|name| hourly(name, 9).with_shadow(true));
    let policy = Policy::new(shadows.to_vec()).unwrap();
    let store = Fake::new();
    store.is(Mood::Hangs);
    let gate = SharedGate::new(policy, store.clone());
    run(async {
        let (head, ()) = from("192.0.2.1").into_parts();
        struct Asked(http::request::Parts);
        impl tollgate_policy::Request for Asked {
            fn method(&self) -> &[u8] {
                b"GET"
            }
            fn target(&self) -> &[u8] {
                self.0.uri.path().as_bytes()
            }
            fn peer(&self) -> tollgate_http::proxies::Peer {
                self.0.extensions.get().copied().unwrap()
            }
            fn header(&self, _: &str, _: &mut dyn FnMut(&[u8])) {}
        }
        let policy = gate.policy();
        let calls = policy.calls(&Asked(head));
        let verdict = gate.decide(policy, &calls, seconds(1), async {}).await;
        assert!(verdict.is_allowed());
    });
    assert_eq!(store.asked.lock().unwrap().len(), 3);
}
