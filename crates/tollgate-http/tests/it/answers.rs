//! What a refusal looks like, to the byte.

use http::{Method, StatusCode};
use tollgate::Rate;
use tollgate_http::{Cost, Headers, Key, LimitsError, MissingKey, Policy, Reset};

use crate::harness::{Answer, App, bucket, from, get, item, limit, seconds};

/// The headers of an answer, names and values.
fn headers(answer: &Answer) -> Vec<(&str, &str)> {
    let pairs = answer.headers.iter();
    pairs
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

#[test]
fn a_refusal_to_the_byte() {
    let app = App::of(bucket(Rate::new(1, seconds(7)), 1));
    let allowed = app.get();
    assert_eq!((allowed.status, allowed.body.as_str()), (200, "/"));
    assert_eq!(
        headers(&allowed),
        [
            ("ratelimit", "\"default\";r=0;t=7"),
            ("ratelimit-policy", "\"default\";q=1;w=7")
        ]
    );
    let refused = app.get();
    assert_eq!(refused.status, 429);
    assert_eq!(
        headers(&refused),
        [
            ("cache-control", "no-store"),
            ("content-length", "245"),
            ("content-type", "application/problem+json"),
            ("ratelimit", "\"default\";r=0;t=7"),
            ("ratelimit-policy", "\"default\";q=1;w=7"),
            ("retry-after", "7"),
        ]
    );
    assert_eq!(
        refused.body,
        "{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\",\
         \"title\":\"Request cannot be satisfied as assigned quota has been exceeded\",\
         \"status\":429,\"detail\":\"limit default is used up; retry after 7 s\",\
         \"violated-policies\":[\"default\"]}"
    );
    assert_eq!(refused.body.len(), 245);
    // An answer to HEAD has the header of that to GET, and no body.
    let mut request = from("192.0.2.1");
    *request.method_mut() = Method::HEAD;
    let head = app.ask(request);
    assert_eq!((head.status, head.body.as_str()), (429, ""));
    assert_eq!(headers(&head), headers(&refused));
}

/// A newcomer to a full table has an answer of its own, with a status of the operator's choice.
#[test]
fn a_full_table_has_a_problem_of_its_own() {
    let full = limit("a", bucket(Rate::per_hour(1), 5)).with_max_clients(1);
    let policy = Policy::new(vec![full]).unwrap();
    for (status, set) in [(429, None), (503, Some(StatusCode::SERVICE_UNAVAILABLE))] {
        let app = App::with(policy.clone(), |builder| match set {
            Some(status) => builder.client_limit_status(status),
            None => builder,
        });
        assert_eq!(app.ask(from("192.0.2.1")).status, 200);
        let refused = app.ask(from("192.0.2.2"));
        assert_eq!((refused.status, refused.retry_after()), (status, None));
        assert_eq!(refused.figures(), None);
        assert_eq!(
            refused.items("ratelimit-policy"),
            [item("a", &[("q", 5), ("w", 18_000)])]
        );
        assert_eq!(
            refused.body,
            format!(
                "{{\"type\":\"urn:tollgate:problem:client-limit\",\
                 \"title\":\"As many clients as may be are tracked\",\"status\":{status},\
                 \"detail\":\"limit a has no room for another client at present\"}}"
            )
        );
        assert_eq!(app.ask(from("192.0.2.1")).status, 200, "who is known stays");
    }
}

/// Who says not whose the request is, where that is refused, is told what is missing.
#[test]
fn a_missing_key_may_be_refused() {
    let keyed = limit("a", bucket(Rate::per_hour(1), 5))
        .with_key(Key::header("x-api-key").and(Key::ip()).unwrap())
        .with_missing_key(MissingKey::Refuse);
    let policy = Policy::new(vec![keyed]).unwrap();
    for (status, set) in [(400, None), (401, Some(StatusCode::UNAUTHORIZED))] {
        let app = App::with(policy.clone(), |builder| match set {
            Some(status) => builder.unidentified_status(status),
            None => builder,
        });
        let refused = app.get();
        assert_eq!((refused.status, refused.retry_after()), (status, None));
        assert!(refused.items("ratelimit-policy").is_empty());
        assert_eq!(
            refused.body,
            format!(
                "{{\"type\":\"urn:tollgate:problem:unidentified\",\
                 \"title\":\"The request does not say whose it is\",\"status\":{status},\
                 \"detail\":\"limit a goes by header:x-api-key and ip\"}}"
            )
        );
        assert_eq!(
            app.ask(get("192.0.2.1", "/", &[("x-api-key", "k")])).status,
            200
        );
    }
}

/// A status that refuses nothing is no status for a refusal.
#[test]
fn a_refusal_is_not_a_success() {
    let policy = || Policy::new(vec![limit("a", bucket(Rate::per_hour(1), 5))]).unwrap();
    let built = tollgate_http::Limits::builder(policy())
        .client_limit_status(StatusCode::OK)
        .build();
    let error = LimitsError::Status {
        status: StatusCode::OK,
    };
    assert_eq!(built.unwrap_err(), error);
    assert_eq!(
        error.to_string(),
        "requests are to be refused with status 200; one from 400 to 599 refuses"
    );
}

/// What browsers may show to scripts is named where that is asked for, besides what the service
/// names itself.
#[test]
fn fields_are_exposed_by_option() {
    let policy = || Policy::new(vec![limit("a", bucket(Rate::per_hour(1), 5))]).unwrap();
    let request = || {
        let own = "access-control-expose-headers: x-own";
        get("192.0.2.1", "/", &[("x-answer", own)])
    };
    let name = "access-control-expose-headers";
    let plain = App::with(policy(), |builder| builder);
    assert_eq!(plain.ask(request()).lines(name), ["x-own"]);
    let exposed = App::with(policy(), |builder| {
        builder.headers(Headers::new().exposed(true))
    });
    assert_eq!(
        exposed.ask(request()).lines(name),
        ["x-own", "RateLimit, RateLimit-Policy, Retry-After"]
    );
    let headers = Headers::new().exposed(true).legacy(Reset::Epoch);
    let legacy = App::with(policy(), |builder| builder.headers(headers));
    assert_eq!(
        legacy.get().lines(name),
        [
            "RateLimit, RateLimit-Policy, Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, \
          X-RateLimit-Reset"
        ]
    );
}

/// What the service sends already stays: lists get another line, and what has no list form is left
/// alone, all three of it.
#[test]
fn what_the_service_sends_stays() {
    let policy = Policy::new(vec![limit("own", bucket(Rate::per_hour(1), 5))]).unwrap();
    let app = App::with(policy, |builder| {
        builder.headers(Headers::new().legacy(Reset::Delta))
    });
    let ask = |own: &[&str]| {
        let own: Vec<(&str, &str)> = own.iter().map(|own| ("x-answer", *own)).collect();
        app.ask(get("192.0.2.1", "/", &own))
    };
    let answer = ask(&[
        "ratelimit-policy: \"day\";q=100;w=86400",
        "ratelimit: \"day\";r=99;t=100",
        "x-ratelimit-limit: 60",
    ]);
    let names = |name: &str| {
        let items = answer.items(name).into_iter();
        items.map(|item| item.name).collect::<Vec<_>>()
    };
    assert_eq!(answer.lines("ratelimit").len(), 2);
    assert_eq!((names("ratelimit"), names("ratelimit-policy")), {
        let both = || vec!["day".to_owned(), "own".to_owned()];
        (both(), both())
    });
    assert_eq!(answer.one("x-ratelimit-limit"), Some("60"));
    assert_eq!(answer.one("x-ratelimit-remaining"), None);
    // Of the drafts before the eighth they are no such lists: with ours they would be none at all.
    let answer = ask(&[
        "ratelimit: limit=100, remaining=50, reset=5",
        "retry-after: 120",
    ]);
    assert_eq!(
        answer.lines("ratelimit"),
        ["limit=100, remaining=50, reset=5"]
    );
    assert_eq!(answer.one("retry-after"), Some("120"));
    assert_eq!(answer.items("ratelimit-policy").len(), 1);
    assert_eq!(answer.one("x-ratelimit-remaining"), Some("3"));
}

/// Each limit that was asked is listed, at most 16, and the one that is shown among them.
#[test]
fn at_most_sixteen_policies_are_listed() {
    let limits = (0..40).map(|at| {
        let burst = if at == 30 { 2 } else { 100 };
        limit(&format!("limit-{at}"), bucket(Rate::per_hour(100), burst))
    });
    let app = App::new(limits);
    let answer = app.get();
    let listed: Vec<String> = answer
        .items("ratelimit-policy")
        .into_iter()
        .map(|item| item.name)
        .collect();
    assert_eq!(listed.len(), 16);
    assert!(listed.contains(&"limit-30".to_owned()));
    assert_eq!(answer.figures().unwrap().name, "limit-30");
}

/// A fixed cost above 1 is told with what is left, which counts such requests.
#[test]
fn what_is_left_counts_requests_of_that_cost() {
    let three = limit("a", bucket(Rate::per_minute(1), 10)).with_cost(Cost::Fixed(3));
    let app = App::new([three]);
    let told: Vec<_> = (0..4).map(|_| app.get().figures().unwrap()).collect();
    let cost = ("tollgate-cost", 3);
    assert_eq!(
        told,
        [
            item("a", &[("r", 2), ("t", 360), cost]),
            item("a", &[("r", 1), ("t", 360), cost]),
            item("a", &[("r", 0), ("t", 120), cost]),
            item("a", &[("r", 0), ("t", 120), cost]),
        ]
    );
}
