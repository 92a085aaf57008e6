//! Whose bucket a request takes from.

use tollgate::Rate;
use tollgate_policy::key::Part;
use tollgate_policy::proxies::{AddressHeader, Peer, Proxies, Trusted};
use tollgate_policy::{Answer, Cost, Key, Limit, MissingKey, Policy, Rule};

use crate::request::{Made, asked};

fn limit() -> Limit {
    Limit::new("one", Rule::TokenBucket(Rate::per_second(1).burst(10))).unwrap()
}

/// A policy of one limit with that key.
fn keyed(parts: &[&str]) -> Policy {
    policy(limit().with_key(key(parts)))
}

fn key(parts: &[&str]) -> Key {
    let parts = parts.iter().map(|part| part.parse().unwrap());
    Key::of_parts(parts.collect()).unwrap()
}

fn policy(limit: Limit) -> Policy {
    Policy::new(vec![limit]).unwrap()
}

/// Which bucket, as bytes.
fn client(policy: &Policy, request: &Made) -> Vec<u8> {
    match asked(policy, request) {
        Some(Answer::Takes { client, .. }) => client.as_bytes().to_vec(),
        other => panic!("{other:?}"),
    }
}

/// Requests of which each is to be another client than all others.
fn are_different(policy: &Policy, requests: &[Made]) {
    for (at, one) in requests.iter().enumerate() {
        for other in &requests[..at] {
            assert_ne!(
                client(policy, one),
                client(policy, other),
                "{one:?} {other:?}"
            );
        }
    }
}

/// Requests that all are one client.
fn are_one(policy: &Policy, requests: &[Made]) {
    for one in requests {
        assert_eq!(client(policy, one), client(policy, &requests[0]), "{one:?}");
    }
}

/// better-auth once wrote `{ip}{path}`: parts that run together must not meet.
#[test]
fn b25_two_lists_of_parts_never_meet() {
    let policy = keyed(&["header:a", "header:b"]);
    let made = |a: &str, b: &str| Made::default().header("a", a).header("b", b);
    are_different(
        &policy,
        &[
            made("x", "yz"),
            made("xy", "z"),
            made("xyz", "0"),
            made("x\u{1}y", "z"),
            made("x", "\u{1}yz"),
            made("x", ""),
            made("", "x"),
            made("", ""),
            Made::default()
                .header("a", &"x".repeat(128))
                .header("b", "y"),
            Made::default()
                .header("a", &"x".repeat(127))
                .header("b", "xy"),
        ],
    );
    // An address is no text, and an IPv4 one no IPv6 one.
    let policy = keyed(&["ip"]);
    are_different(
        &policy,
        &[
            Made::from("0.0.0.1"),
            Made::from("::1"),
            Made::from("::2:0:0:0:1"),
        ],
    );
    assert_eq!(client(&policy, &Made::from("2001:db8::1")).len(), 11);
    assert_eq!(client(&policy, &Made::from("192.0.2.1")).len(), 7);
}

#[test]
fn one_value_is_one_client_however_it_is_spelled() {
    let header = |line: &str| Made::default().header("x-api-key", line);
    are_one(
        &keyed(&["header:X-API-Key"]),
        &[
            header("k"),
            header(" k\t"),
            header("k").header("x-api-key", "k"),
        ],
    );
    let authorization = |line: &str| Made::default().header("authorization", line);
    are_one(
        &keyed(&["header:authorization"]),
        &[
            authorization("Bearer T"),
            authorization("bearer T"),
            authorization("BEARER   T "),
        ],
    );
    // alice:secret, alice:guess, and without padding.
    are_one(
        &keyed(&["header:authorization"]),
        &[
            authorization("Basic YWxpY2U6c2VjcmV0"),
            authorization("basic  YWxpY2U6Z3Vlc3M="),
            authorization("BASIC YWxpY2U6Z3Vlc3M"),
        ],
    );
    are_different(
        &keyed(&["header:authorization"]),
        &[
            authorization("Bearer T"),
            authorization("Bearer t"),
            authorization("Basic YWxpY2U6c2VjcmV0"),
            authorization("Basic Ym9iOnNlY3JldA=="),
        ],
    );
    are_one(
        &keyed(&["header:authorization"]),
        &[
            authorization(r#"Digest username="bob", nonce="1", nc=00000001"#),
            authorization(r#"digest nonce="2", UserName = "bob""#),
        ],
    );
    let cookie = |line: &str| Made::default().header("cookie", line);
    are_one(
        &keyed(&["cookie:sid"]),
        &[
            cookie("sid=a"),
            cookie("x=1; sid=a"),
            cookie("sid=\"a\";y"),
            cookie(" sid = %61 "),
            cookie("x=1").header("cookie", "sid=a"),
            cookie("sid=a; sid=\"a\""),
        ],
    );
    are_different(
        &keyed(&["cookie:sid"]),
        &[cookie("sid=a"), cookie("SID=a"), cookie("sid=a=b")],
    );
    are_one(
        &keyed(&["query:api_key"]),
        &[
            Made::get("/?api_key=a+b"),
            Made::get("/?x&api%5Fkey=a%20b&y=1#api_key=c"),
            Made::get("/?api_key=a+b&api_key=a%20b"),
        ],
    );
    are_different(
        &keyed(&["query:k"]),
        &[
            Made::get("/?k=a"),
            Made::get("/?k=a%2B"),
            Made::get("/?k=a+"),
        ],
    );
    let method = |method| Made {
        method,
        ..Made::default()
    };
    are_one(
        &keyed(&["method"]),
        &[method("GET"), method("get"), method("HEAD")],
    );
    are_one(
        &keyed(&["method"]),
        &[method("BREW"), method("X"), method("")],
    );
    are_different(
        &keyed(&["method"]),
        &[method("GET"), method("POST"), method("BREW")],
    );
    are_one(&keyed(&[]), &[Made::get("/a"), Made::from("10.0.0.1")]);
}

/// Whoever sends a value twice would have one bucket more each time, whichever the service reads.
#[test]
fn what_is_said_twice_is_nobody() {
    let twice = |second: &str| Made::default().header("k", "valid").header("k", second);
    let cookies = |line: &str| Made::default().header("cookie", line);
    let basic = |line: &str| Made::default().header("authorization", line);
    for (part, requests) in [
        ("header:k", vec![twice("1"), twice("2")]),
        (
            "cookie:k",
            vec![
                cookies("k=valid; k=1"),
                cookies("k=2; k=valid"),
                // As Python reads it, the same cookie as `valid`.
                cookies(r#"k="\166alid""#),
                cookies("k=\"valid"),
            ],
        ),
        (
            "query:k",
            vec![
                Made::get("/?k=valid&k=1"),
                Made::get("/?k=2&k=valid&k=2"),
                // As some services read it, a parameter of its own.
                Made::get("/?k=valid;x=1"),
                Made::get("/?x=1;k=valid"),
            ],
        ),
        (
            "header:authorization",
            vec![
                basic("Basic !"),
                basic("Basic Ym9i"),
                basic("basic"),
                basic("AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host, Signature=1"),
                basic(r#"Hawk id="a", ts="1", nonce="2""#),
                basic(r#"Digest realm="a""#),
            ],
        ),
    ] {
        let mut requests = requests;
        are_one(&keyed(&[part]), &requests);
        // It shares with those who say nothing, if anybody shares,
        requests.push(Made::default());
        are_one(&keyed(&[part]), &requests);
        requests.pop();
        // and is never a way past a limit.
        let passing = limit()
            .with_key(key(&[part]))
            .with_missing_key(MissingKey::Pass);
        are_one(&policy(passing.clone()), &requests);
        assert_eq!(
            asked(&policy(passing), &Made::default()),
            Some(Answer::Passes)
        );
        let refusing = limit()
            .with_key(key(&[part]))
            .with_missing_key(MissingKey::Refuse);
        for request in &requests {
            assert_eq!(
                asked(&policy(refusing.clone()), request),
                Some(Answer::Unidentified)
            );
        }
    }
}

/// An empty value is none, wherever it stands.
#[test]
fn nothing_is_no_value() {
    let cookie = |line: &str| Made::default().header("cookie", line);
    for (part, requests) in [
        (
            "header:k",
            vec![Made::default().header("k", " "), Made::default()],
        ),
        (
            "cookie:k",
            vec![cookie("k="), cookie("k"), cookie("k=\"\""), cookie("")],
        ),
        (
            "query:k",
            vec![Made::get("/?k="), Made::get("/?k"), Made::get("/?k&k=")],
        ),
    ] {
        let refusing = limit()
            .with_key(key(&[part]))
            .with_missing_key(MissingKey::Refuse);
        for request in &requests {
            let answer = asked(&policy(refusing.clone()), request);
            assert_eq!(answer, Some(Answer::Unidentified), "{request:?}");
        }
    }
}

/// What the service says counts as it is; a name is asked for once.
#[test]
fn descriptors_are_the_services_to_say() {
    let policy = keyed(&["descriptor:tenant", "descriptor:tenant"]);
    let said = |value: &str| Made {
        descriptors: vec![("tenant", value.to_owned())],
        ..Made::default()
    };
    are_different(
        &policy,
        &[said("a"), said("b"), said(" a"), Made::default()],
    );
    are_one(&policy, &[said("a"), said("a").header("tenant", "b")]);
    assert_eq!(policy.descriptors().collect::<Vec<_>>(), ["tenant"]);
}

/// What is there still tells those apart who lack something else.
#[test]
fn a_part_that_is_missing_leaves_the_others() {
    let policy = keyed(&["ip", "header:k"]);
    are_different(
        &policy,
        &[
            Made::from("192.0.2.1"),
            Made::from("192.0.2.2"),
            Made::from("192.0.2.1").header("k", "a"),
            Made::default().peer(Peer::Unknown).header("k", "a"),
            Made::default().peer(Peer::Unknown),
        ],
    );
    are_one(
        &policy,
        &[
            Made::from("192.0.2.1"),
            Made::from("192.0.2.1").header("k", " "),
        ],
    );
}

/// A target without a path is no request without a key.
#[test]
fn a_target_without_a_path_is_a_path_of_its_own() {
    let passing = limit()
        .with_key(Key::path())
        .with_missing_key(MissingKey::Pass);
    let policy = policy(passing);
    are_different(&policy, &[Made::get("*"), Made::get("/"), Made::get("/*")]);
    are_one(&policy, &[Made::get("*"), Made::get("*?a")]);
}

#[test]
fn a_cost_is_believed_from_trusted_proxies_alone() {
    let proxy = ["10.0.0.1".parse::<Trusted>().unwrap()];
    let costing = limit().with_cost(Cost::Header("x-cost".to_owned()));
    let policy = policy(costing).with_proxies(Proxies::new(proxy, AddressHeader::XForwardedFor));
    let cost = |request: &Made| match asked(&policy, request) {
        Some(Answer::Takes { cost, .. }) => cost,
        other => panic!("{other:?}"),
    };
    let from_proxy = |line: &str| Made::from("10.0.0.1").header("x-cost", line);
    for (line, tokens) in [
        ("7", 7),
        (" 7 ", 7),
        ("007", 7),
        ("0", 1),
        ("", 1),
        ("-7", 1),
        ("+7", 1),
        ("7.5", 1),
        ("7 8", 1),
        ("1e3", 1),
        ("18446744073709551615", u64::MAX),
        ("99999999999999999999999", u64::MAX),
    ] {
        assert_eq!(cost(&from_proxy(line)), tokens, "{line:?}");
    }
    assert_eq!(
        cost(&from_proxy("3").header("x-cost", "9")),
        9,
        "the largest"
    );
    assert_eq!(cost(&Made::from("10.0.0.2").header("x-cost", "7")), 1);
}

#[test]
fn parts_are_read_and_printed_alike() {
    for text in [
        "ip",
        "path",
        "method",
        "header:x-a",
        "cookie:A.b",
        "query:k",
        "descriptor:t",
    ] {
        assert_eq!(text.parse::<Part>().unwrap().to_string(), text);
    }
    for (text, says) in [
        (
            "",
            "not ip, path, method, header:NAME, cookie:NAME, query:NAME or descriptor:NAME",
        ),
        (
            "ip:1",
            "not ip, path, method, header:NAME, cookie:NAME, query:NAME or descriptor:NAME",
        ),
        (
            "IP",
            "not ip, path, method, header:NAME, cookie:NAME, query:NAME or descriptor:NAME",
        ),
        ("header", "a name is missing, as in \"header:x-api-key\""),
        (
            "header:",
            "a name is 1 to 128 letters, digits or any of !#$%&'*+-.^_`|~",
        ),
        (
            "header:a b",
            "a name is 1 to 128 letters, digits or any of !#$%&'*+-.^_`|~",
        ),
    ] {
        assert_eq!(
            text.parse::<Part>().unwrap_err().to_string(),
            says,
            "{text}"
        );
    }
    let nine = vec![Part::Ip; 9];
    assert_eq!(
        Key::of_parts(nine).unwrap_err().to_string(),
        "a key has 8 parts at most"
    );
}
