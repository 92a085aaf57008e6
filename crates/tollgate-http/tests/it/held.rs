//! Requests that a leaky bucket holds back.

use std::time::Duration;

use http::Request;
use tokio::time::Instant;
use tollgate::Rate;
use tollgate_http::{Policy, Rule};
use tower::limit::ConcurrencyLimit;
use tower::{Layer, ServiceExt};

use crate::harness::{Answer, App, answer, echo, from, get, limit, ms, run};

/// Two a second, held back for a second at most; a health check is none of it.
fn app(max_held: usize) -> App {
    let rule = Rule::LeakyBucket(Rate::per_second(2).burst(10));
    let policy = Policy::new(vec![limit("a", rule)]).unwrap();
    App::with(policy, |builder| {
        builder
            .max_held(max_held)
            .skip(|head| head.uri.path() == "/healthz")
    })
}

/// The answer, and when it came.
async fn timed(app: &App, request: Request<()>) -> (Answer, Duration) {
    let start = Instant::now();
    let answer = app.answer(request).await;
    (answer, start.elapsed())
}

/// Each waits for those before it; one that would wait for too long is refused, until it would not.
#[test]
fn requests_leave_at_the_rate() {
    let app = app(1_024);
    run(async {
        let four = tokio::join!(
            timed(&app, from("192.0.2.1")),
            timed(&app, from("192.0.2.1")),
            timed(&app, from("192.0.2.1")),
            timed(&app, from("192.0.2.1")),
        );
        let told = [four.0, four.1, four.2, four.3].map(|(answer, time)| {
            // The timer's grain is a millisecond, upwards.
            (
                answer.status,
                answer.retry_after(),
                time.as_millis() / 10 * 10,
            )
        });
        assert_eq!(
            told,
            [
                (200, None, 0),
                (200, None, 500),
                (200, None, 1_000),
                (429, Some(1), 0)
            ]
        );
        // Somebody else waits for nobody.
        let (answer, time) = timed(&app, from("192.0.2.2")).await;
        assert_eq!((answer.status, time), (200, ms(0)));
        app.clock.advance(ms(500));
        let (answer, time) = timed(&app, from("192.0.2.1")).await;
        assert_eq!((answer.status, time.as_millis() / 10 * 10), (200, 1_000));
    });
}

/// No more are held back at a time than may be: others are refused, with a wait after which they
/// would not be held back at all. Whoever hangs up leaves the place, not the tokens.
#[test]
fn places_are_bounded() {
    let app = app(2);
    run(async {
        assert_eq!(app.answer(from("192.0.2.1")).await.status, 200);
        let service = app.layer.layer(tower::service_fn(echo));
        let held = |service: &_| {
            let service = Clone::clone(service);
            let service: tollgate_http::RateLimit<_> = service;
            tokio::spawn(async move { service.oneshot(from("192.0.2.1")).await.unwrap().status() })
        };
        let (one, two) = (held(&service), held(&service));
        tokio::task::yield_now().await;
        let (refused, time) = timed(&app, from("192.0.2.1")).await;
        assert_eq!(
            (refused.status, refused.retry_after(), time),
            (429, Some(2), ms(0))
        );
        // Who need not be held back needs no place.
        assert_eq!(app.answer(from("192.0.2.2")).await.status, 200);
        one.abort();
        assert!(one.await.unwrap_err().is_cancelled());
        app.clock.advance(ms(1_000));
        // The first is done with, its token gone all the same: there are 1 and 1 before this one.
        let (allowed, time) = timed(&app, from("192.0.2.1")).await;
        assert_eq!((allowed.status, time.as_millis() / 10 * 10), (200, 500));
        assert_eq!(two.await.unwrap(), 200);
    });
    let none = self::app(0);
    assert_eq!(
        (none.get().status, none.get().retry_after()),
        (200, Some(1))
    );
}

/// A request that is held back has not been let into its service: whatever bounds what that does at
/// a time serves others meanwhile.
#[test]
fn who_is_held_back_holds_nobody_up() {
    let app = app(1_024);
    run(async {
        let one_at_a_time = ConcurrencyLimit::new(tower::service_fn(echo), 1);
        let service = app.layer.layer(one_at_a_time);
        assert_eq!(
            service
                .clone()
                .oneshot(from("192.0.2.1"))
                .await
                .unwrap()
                .status(),
            200
        );
        let held = tokio::spawn(service.clone().oneshot(from("192.0.2.1")));
        tokio::task::yield_now().await;
        let start = Instant::now();
        let healthy = service
            .clone()
            .oneshot(get("192.0.2.3", "/healthz", &[]))
            .await
            .unwrap();
        assert_eq!((healthy.status().as_u16(), start.elapsed()), (200, ms(0)));
        let other = service.oneshot(from("192.0.2.2")).await.unwrap();
        assert_eq!((other.status().as_u16(), start.elapsed()), (200, ms(0)));
        let held = answer(held.await.unwrap().unwrap()).await;
        assert_eq!(held.status, 200);
        assert!(start.elapsed() >= ms(500));
    });
}

/// A service that was made ready for a request that is refused, or held back, is given up with what
/// it was given for that.
#[test]
fn a_refusal_keeps_no_permit() {
    use tower::Service;
    let app = App::new([limit("a", crate::harness::bucket(Rate::per_hour(1), 1))]);
    run(async {
        let one_at_a_time = ConcurrencyLimit::new(tower::service_fn(echo), 1);
        let mut one = app.layer.layer(one_at_a_time);
        let mut other = one.clone();
        let ask = async |service: &mut tollgate_http::RateLimit<_>, peer| {
            let response = ServiceExt::<Request<()>>::ready(service).await.unwrap();
            response.call(from(peer)).await.unwrap().status().as_u16()
        };
        assert_eq!(ask(&mut one, "192.0.2.1").await, 200);
        assert_eq!(ask(&mut one, "192.0.2.1").await, 429);
        assert_eq!(ask(&mut other, "192.0.2.2").await, 200);
    });
}
