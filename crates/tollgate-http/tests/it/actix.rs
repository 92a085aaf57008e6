//! The middleware of actix-web.

use std::time::Duration;

use actix_web::dev::{Service, ServiceRequest, ServiceResponse};
use actix_web::test::{TestRequest, init_service, read_body};
use actix_web::{App, HttpResponse, web};
use tollgate::{ManualClock, Rate};
use tollgate_http::actix::RateLimit;
use tollgate_http::statuses::Statuses;
use tollgate_http::{Builder, Headers, Key, Limit, Limits, Policy, Reset, Rule};

use crate::harness::{self, Answer, bucket, limit, ms, run};

type Build = Builder<ServiceRequest>;

fn limits(limit: Limit, set: impl FnOnce(Build) -> Build) -> Limits<ServiceRequest> {
    let policy = Policy::new(vec![limit]).unwrap();
    let builder = tollgate_http::actix::limits(policy).clock(ManualClock::default());
    set(builder).build().unwrap()
}

/// An application that answers as `echo` does, and fails at `/error`.
macro_rules! app {
    ($limits:expr) => {{
        async fn echo(request: actix_web::HttpRequest) -> HttpResponse {
            let status = request.headers().get("x-status");
            let status = status.map_or(200, |status| status.to_str().unwrap().parse().unwrap());
            let mut response = HttpResponse::build(status.try_into().unwrap());
            for line in request.headers().get_all("x-answer") {
                let (name, value) = line.to_str().unwrap().split_once(": ").unwrap();
                response.append_header((name, value));
            }
            response.body(request.path().to_owned())
        }
        async fn fails() -> Result<HttpResponse, actix_web::Error> {
            Err(actix_web::error::ErrorUnauthorized("no"))
        }
        let app = App::new()
            .wrap_fn(|request, service| {
                let closed = request.path() == "/closed";
                let answer = service.call(request);
                async move {
                    if closed {
                        return Err(actix_web::error::ErrorUnauthorized("closed"));
                    }
                    answer.await
                }
            })
            .wrap(RateLimit::from($limits.clone()))
            .route("/error", web::get().to(fails))
            .default_service(web::to(echo));
        init_service(app).await
    }};
}

async fn taken<B: actix_web::body::MessageBody>(response: ServiceResponse<B>) -> Answer {
    let status = response.status().as_u16();
    let headers = response.headers().iter();
    let headers =
        headers.map(|(name, value)| (name.as_str().to_owned(), value.to_str().unwrap().to_owned()));
    let mut headers: Vec<_> = headers.collect();
    headers.sort_by(|(one, _), (other, _)| one.cmp(other));
    let body = read_body(response).await;
    Answer {
        status,
        headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
    }
}

fn request(peer: &str, path: &str) -> TestRequest {
    TestRequest::with_uri(path).peer_addr((peer.parse::<std::net::IpAddr>().unwrap(), 1).into())
}

/// The same answers as on tower, to the byte, but for the length, which the server tells.
#[test]
fn answers_are_those_of_tower() {
    let rule = || bucket(Rate::new(1, Duration::from_secs(7)), 1);
    let headers = Headers::new().legacy(Reset::Epoch).exposed(true);
    let policy = Policy::new(vec![limit("default", rule())]).unwrap();
    let tower = harness::App::with(policy, |builder| builder.headers(headers));
    run(async {
        let limits = limits(limit("default", rule()), |builder| builder.headers(headers));
        let app = app!(limits);
        for method in ["GET", "GET", "HEAD"] {
            let own = request("192.0.2.1", "/").method(method.parse().unwrap());
            let own = taken(app.call(own.to_request()).await.unwrap()).await;
            let mut theirs = harness::from("192.0.2.1");
            *theirs.method_mut() = method.parse().unwrap();
            let mut theirs = tower.answer(theirs).await;
            theirs.headers.retain(|(name, _)| name != "content-length");
            let mut own = own;
            own.headers.retain(|(name, value)| {
                name != "content-length"
                    && (name, value.as_str())
                        != (&"content-type".to_owned(), "text/plain; charset=utf-8")
            });
            assert_eq!(own, theirs, "{method}");
        }
    });
}

/// Keys, costs, what is skipped and what is given back: also for a handler's error, which is an
/// answer by then, and for that of a middleware within, which becomes one further out.
#[test]
fn keys_costs_skips_and_refunds() {
    let keyed = limit("a", bucket(Rate::per_hour(1), 3))
        .with_key(
            Key::header("x-api-key")
                .and(Key::descriptor("user"))
                .unwrap(),
        )
        .with_refund_status(Statuses::of(["401"]).unwrap());
    run(async {
        let limits = limits(keyed, |builder| {
            builder
                .descriptor("user", |request: &ServiceRequest| {
                    request
                        .query_string()
                        .split_once("user=")
                        .map(|(_, user)| user.to_owned())
                })
                .cost(|request| if request.path() == "/dear" { 2 } else { 1 })
                .skip(|request| request.path() == "/healthz")
        });
        let app = app!(limits);
        let ask = |path: &'static str, key: &'static str| {
            let request = request("192.0.2.1", path).insert_header(("x-api-key", key));
            app.call(request.to_request())
        };
        let status = async |path, key| ask(path, key).await.map(|answer| answer.status().as_u16());
        assert_eq!(status("/healthz", "k").await.unwrap(), 200);
        for _ in 0..5 {
            // Its status is that of the error: what it took is given back.
            assert_eq!(status("/error", "k").await.unwrap(), 401);
            let error = status("/closed", "k").await.unwrap_err();
            assert_eq!(error.as_response_error().status_code(), 401);
        }
        let fields = taken(ask("/error", "k").await.unwrap()).await;
        assert_eq!(fields.figures().unwrap().number("r"), Some(3));
        let told = [
            status("/dear?user=a", "k").await.unwrap(),
            status("/dear?user=a", "k").await.unwrap(),
            status("/?user=a", "k").await.unwrap(),
            status("/?user=a", "k").await.unwrap(),
            status("/?user=b", "k").await.unwrap(),
            status("/?user=a", "l").await.unwrap(),
        ];
        assert_eq!(told, [200, 429, 200, 429, 200, 200]);
        let (_, figures) = limits.statistics().remove(0);
        assert_eq!(figures.limited, 2);
    });
}

/// A leaky bucket holds requests back here too, and lists get another line.
#[test]
fn delays_and_upstream_lists() {
    run(async {
        let leaky = limit("a", Rule::LeakyBucket(Rate::per_second(2).burst(9)));
        let limits = limits(leaky, |builder| {
            builder.headers(Headers::new().legacy(Reset::Delta))
        });
        let app = app!(limits);
        let start = tokio::time::Instant::now();
        let mut told = Vec::new();
        for _ in 0..4 {
            let request = request("192.0.2.1", "/")
                .insert_header(("x-answer", "ratelimit: \"day\";r=9;t=9"))
                .append_header(("x-answer", "x-ratelimit-limit: 60"));
            let answer = taken(app.call(request.to_request()).await.unwrap()).await;
            told.push((answer.status, start.elapsed().as_millis() / 10 * 10));
            if answer.status == 200 {
                assert_eq!(answer.items("ratelimit").len(), 2);
                assert_eq!(answer.one("x-ratelimit-limit"), Some("60"));
                assert_eq!(answer.one("x-ratelimit-reset"), None);
            }
        }
        assert_eq!(told, [(200, 0), (200, 500), (200, 1_500), (429, 1_500)]);
        assert!(start.elapsed() < ms(1_520));
    });
}
