//! Refusals in gRPC's terms.

use http::{HeaderMap, Request};
use tollgate::Rate;
use tollgate_http::{Cost, Key, MissingKey, Policy};
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::harness::{Answer, App, bucket, get, limit, ms, seconds};

/// A call, as gRPC makes it.
fn call(headers: &[(&str, &str)]) -> Request<()> {
    let kind = [("content-type", "application/grpc+proto")];
    let mut request = get("192.0.2.1", "/a.B/C", &[&kind[..], headers].concat());
    *request.method_mut() = http::Method::POST;
    request
}

/// The status in the header of an answer that has nothing else.
fn status(answer: &Answer) -> Status {
    assert_eq!((answer.status, answer.body.as_str()), (200, ""));
    assert_eq!(answer.one("content-type"), Some("application/grpc"));
    let mut headers = HeaderMap::new();
    for (name, value) in &answer.headers {
        headers.insert(
            http::HeaderName::try_from(name).unwrap(),
            value.parse().unwrap(),
        );
    }
    Status::from_header_map(&headers).unwrap()
}

/// `RESOURCE_EXHAUSTED`, and when to try again, to the millisecond, upwards.
#[test]
fn a_refusal_to_the_millisecond() {
    let app = App::new([limit("a", bucket(Rate::new(1, ms(1_500)), 1))]);
    let allowed = app.ask(call(&[]));
    assert_eq!((allowed.status, allowed.body.as_str()), (200, "/a.B/C"));
    assert_eq!(allowed.figures().unwrap().number("t"), Some(2));
    app.clock.advance(std::time::Duration::from_nanos(1));
    let refused = app.ask(call(&[]));
    let told = status(&refused);
    assert_eq!(
        (told.code(), told.message()),
        (
            Code::ResourceExhausted,
            "limit a is used up; retry after 2 s"
        )
    );
    let info = told.get_details_retry_info().unwrap();
    assert_eq!(info.retry_delay, Some(ms(1_500)));
    assert_eq!(refused.one("grpc-retry-pushback-ms"), Some("1500"));
    assert_eq!(refused.one("grpc-status"), Some("8"));
    assert_eq!(
        (
            refused.retry_after(),
            refused.figures().unwrap().number("t")
        ),
        (Some(2), Some(2))
    );
    assert_eq!(refused.one("cache-control"), Some("no-store"));
    // What is no call, or says so in another way, is answered as anything else is: with 200, a
    // cache would keep the refusal of one for all.
    for kind in [
        "application/grpc-web",
        "application/grpcfoo",
        "application/json",
    ] {
        let mut other = call(&[]);
        other
            .headers_mut()
            .insert("content-type", kind.parse().unwrap());
        assert_eq!(app.ask(other).status, 429, "{kind}");
    }
    let mut get = call(&[]);
    *get.method_mut() = http::Method::GET;
    assert_eq!(app.ask(get).status, 429);
    let mut plain = call(&[]);
    plain
        .headers_mut()
        .insert("content-type", "application/grpc".parse().unwrap());
    assert_eq!(app.ask(plain).one("grpc-status"), Some("8"));
}

/// A call that never fits is not to be repeated; one for which no wait can be told says nothing.
#[test]
fn what_no_wait_helps() {
    let app = App::new([limit("a", bucket(Rate::per_hour(1), 1)).with_max_clients(1)]);
    assert_eq!(app.ask(get("192.0.2.9", "/", &[])).status, 200);
    let full = app.ask(call(&[]));
    assert_eq!(status(&full).code(), Code::ResourceExhausted);
    assert_eq!(full.one("grpc-retry-pushback-ms"), None);
    assert!(status(&full).get_details_retry_info().is_none());

    let large = limit("a", bucket(Rate::per_hour(1), 1)).with_cost(Cost::Fixed(2));
    let large = App::new([large]).ask(call(&[]));
    assert_eq!(status(&large).code(), Code::ResourceExhausted);
    assert_eq!(large.one("grpc-retry-pushback-ms"), Some("-1"));
    // So is one whose wait has no number in 32 bits.
    let app = App::new([limit("a", bucket(Rate::new(1, seconds(2_147_484)), 1))]);
    assert_eq!(app.ask(call(&[])).status, 200);
    assert_eq!(app.ask(call(&[])).one("grpc-retry-pushback-ms"), Some("-1"));
}

#[test]
fn a_missing_key() {
    let keyed = || {
        let limit = limit("a", bucket(Rate::per_hour(1), 1)).with_key(Key::header("x-api-key"));
        Policy::new(vec![limit.with_missing_key(MissingKey::Refuse)]).unwrap()
    };
    for (status, code) in [
        (400, Code::InvalidArgument),
        (401, Code::Unauthenticated),
        (403, Code::PermissionDenied),
    ] {
        let app = App::with(keyed(), |builder| {
            builder.unidentified_status(http::StatusCode::from_u16(status).unwrap())
        });
        assert_eq!(self::status(&app.ask(call(&[]))).code(), code);
        assert_eq!(
            app.ask(call(&[("x-api-key", "k")])).one("grpc-status"),
            None
        );
    }
}

/// The HTTP status of a call tells nothing about it, so nothing is given back for it.
#[test]
fn calls_are_not_refunded_by_status() {
    let statuses = tollgate_http::statuses::Statuses::of(["2xx"]).unwrap();
    let app = App::new([limit("a", bucket(Rate::per_hour(1), 1)).with_refund_status(statuses)]);
    assert_eq!(
        app.ask(get("192.0.2.1", "/", &[]))
            .figures()
            .unwrap()
            .number("r"),
        Some(1)
    );
    assert_eq!(app.ask(call(&[])).figures().unwrap().number("r"), Some(0));
}
