//! `tollgate replay --policy`.

use serde_json::{Value, json};

use crate::harness::{Run, file, log, tollgate};

/// A record of 2026-06-21 at that second.
fn record(client: &str, second: u32, request: &str) -> String {
    format!("{client} - - [21/Jun/2026:00:00:{second:02} +0000] \"{request}\" 200 5 \"-\" \"-\"\n")
}

fn replay(name: &str, policy: &str, records: &[String], more: &[&str]) -> Run {
    let policy = file(&format!("policy/{name}.toml"), policy);
    let log = file(&format!("policy/{name}.log"), records.concat());
    let (policy, log) = (policy.to_str().unwrap(), log.to_str().unwrap());
    tollgate(["replay", log, "--policy", policy].iter().chain(more))
}

/// Of each limit: its name, requests, refused ones, clients, refused ones.
fn limits(run: &Run) -> Vec<(String, [u64; 4])> {
    let json = run.json();
    let number = |limit: &Value, field: &str| limit[field].as_u64().unwrap();
    let limits = json["limits"].as_array().unwrap().iter();
    let limits = limits.map(|limit| {
        let fields = ["requests", "limited_requests", "clients", "limited_clients"];
        (
            limit["name"].as_str().unwrap().to_owned(),
            fields.map(|field| number(limit, field)),
        )
    });
    limits.collect()
}

fn limit(name: &str, lines: &str) -> String {
    format!("[[limit]]\nname = \"{name}\"\n{lines}\n")
}

/// ravangen/graphql-rate-limit#129 and others: who is refused by one limit takes nothing from the
/// other; in either order.
#[test]
fn b11_all_limits_or_none() {
    let own = limit("own", "key = \"ip\"\nrate = \"1/h\"");
    let all = limit("all", "key = []\nrate = \"10/h\"");
    let mut records: Vec<String> = (0..20).map(|_| record("a", 0, "GET / HTTP/1.1")).collect();
    records.extend(
        "bcdefghijk"
            .chars()
            .map(|name| record(&name.to_string(), 1, "GET /")),
    );
    for (order, policy) in [
        ("own first", format!("{own}{all}")),
        ("all first", format!("{all}{own}")),
    ] {
        let run = replay(
            &format!("b11-{}", &order[..3]),
            &policy,
            &records,
            &["--json"],
        );
        let mut found = limits(&run);
        found.sort();
        let expected = [("all", [30, 1, 1, 1]), ("own", [30, 19, 11, 1])];
        let expected = expected.map(|(name, figures)| (name.to_owned(), figures));
        assert_eq!(found, expected, "{order}");
        assert_eq!(run.json()["limited_requests"], 20, "{order}");
        assert_eq!(run.json()["limited_clients"], 2, "{order}");
    }
}

/// What was answered with a status that a limit does not count takes nothing from it.
#[test]
fn what_does_not_count_is_given_back() {
    let failed = limit(
        "failed",
        "key = \"ip\"\nrate = \"2/h\"\nrefund_status = [\"200\"]",
    );
    let all = limit("all", "key = \"ip\"\nrate = \"7/h\"");
    let records: Vec<String> = [200, 200, 401, 200, 401, 200, 401, 200, 200]
        .iter()
        .zip(0..)
        .map(|(status, second)| {
            let record = record("a", second, "POST /login HTTP/1.1");
            record.replace(" 200 5", &format!(" {status} 5"))
        })
        .collect();
    let run = replay("refunds", &format!("{failed}{all}"), &records, &["--json"]);
    let found = limits(&run);
    // Two failures, and it is used up: the four after the second are refused. What was refused
    // by one took nothing from the other.
    let expected = [("failed", [9, 4, 1, 1]), ("all", [9, 0, 1, 0])];
    let expected = expected.map(|(name, figures)| (name.to_owned(), figures));
    assert_eq!(found, expected);
}

/// The same path is the same path, as everywhere; a host's name is a client as its address is.
#[test]
fn b109_a_path_is_normalised_as_everywhere() {
    let policy = limit(
        "login",
        "match = { path = \"/login\" }\nkey = [\"ip\", \"path\"]\nrate = \"1/min\"",
    );
    let targets = [
        "/login",
        "/login/",
        "//login",
        "/%6Cogin",
        "/login?x=1",
        "/./login",
        "/logout",
    ];
    let mut records: Vec<String> = Vec::new();
    for client in ["192.0.2.1", "host.example", "2001:db8::1"] {
        records.extend(targets.map(|target| record(client, 0, &format!("GET {target} HTTP/1.1"))));
    }
    records.push(record("2001:db8::2", 0, "POST /login"));
    records.push(record("h", 0, r"GET /log\x69n HTTP/2.0"));
    records.push(record("h", 0, r#"GET /login\"\\ HTTP/2.0"#));
    records.push(record("h", 0, r"\x16\x03\x01"));
    records.push(record("h", 0, ""));
    let run = replay("b109", &policy, &records, &["--json"]);
    assert_eq!(limits(&run), [("login".to_owned(), [20, 16, 4, 3])]);
    let top = &run.json()["limits"][0]["top"];
    assert_eq!(top[0]["client"], "2001:db8::/64 /login");
    assert_eq!(
        (&top[0]["limited"], &top[0]["longest_wait_ns"]),
        (&json!(6), &json!(60_000_000_000_u64))
    );
    assert_eq!(
        (&top[1]["client"], &top[2]["client"]),
        (&json!("192.0.2.1 /login"), &json!("host.example /login"))
    );
}

/// What only counts refuses nobody, and is asked only about what the others let pass.
#[test]
fn a_shadow_counts_what_the_others_let_pass() {
    let policy = [
        limit("two", "key = \"ip\"\nrate = \"2/h\""),
        limit("one", "key = \"ip\"\nrate = \"1/h\"\nshadow = true"),
    ];
    let records: Vec<String> = (0..5).map(|second| record("a", second, "GET /")).collect();
    let run = replay("shadow", &policy.concat(), &records, &["--json"]);
    let expected = [("two", [5, 3, 1, 1]), ("one", [2, 1, 1, 1])];
    assert_eq!(
        limits(&run),
        expected.map(|(name, figures)| (name.to_owned(), figures))
    );
    assert_eq!(run.json()["limited_requests"], 3);
}

/// Who lacks a key is refused, passes or shares, and a full table refuses, as the file says.
#[test]
fn the_file_says_who_is_refused() {
    let requests = ["GET /?k=a", "GET /", "GET /", "GET /?k=a&k=b"];
    let records: Vec<String> = requests
        .iter()
        .map(|request| record("c", 0, request))
        .collect();
    for (missing, figures, refused) in [
        ("share", [4, 2, 2, 1], 2),
        ("refuse", [4, 3, 2, 1], 3),
        ("pass", [2, 0, 2, 0], 0),
    ] {
        let lines = format!("key = \"query:k\"\nrate = \"1/h\"\nmissing_key = \"{missing}\"");
        let run = replay(
            &format!("missing-{missing}"),
            &limit("k", &lines),
            &records,
            &["--json"],
        );
        assert_eq!(limits(&run), [("k".to_owned(), figures)], "{missing}");
        assert_eq!(run.json()["limited_requests"], refused, "{missing}");
    }
    let policy = limit("two", "key = \"ip\"\nrate = \"5/h\"\nmax_clients = 2");
    let records = ["a", "b", "c", "a"].map(|client| record(client, 0, "GET /"));
    let run = replay("full", &policy, &records, &["--json"]);
    assert_eq!(limits(&run), [("two".to_owned(), [4, 1, 3, 1])]);
    assert_eq!(run.json()["limits"][0]["client_limit"], 1);
}

#[test]
fn a_policy_of_one_limit_is_that_limit() {
    let nasa = log("nasa-1995-head.common.log.gz");
    let nasa = nasa.to_str().unwrap();
    let policy = file(
        "policy/nasa.toml",
        limit("a", "key = \"ip\"\nrate = \"1/s\""),
    );
    let by_policy = tollgate([
        "replay",
        nasa,
        "--json",
        "--policy",
        policy.to_str().unwrap(),
    ])
    .json();
    let by_rate = tollgate(["replay", nasa, "--json", "--rate", "1/s"]).json();
    for field in ["records", "clients", "limited_requests", "limited_clients"] {
        assert_eq!(by_policy[field], by_rate[field], "{field}");
    }
    assert_eq!(by_policy["limits"][0]["top"], by_rate["top"]);
    assert_eq!(by_rate["limited_requests"], 318);
}

#[test]
fn the_report_fits_a_terminal() {
    let policy = [
        limit("per-client", "key = [\"ip\"]\nrate = \"1/s\""),
        limit(
            "tenants",
            "key = [\"header:x-tenant\", \"cookie:s\"]\nrate = \"1/s\"\nshadow = true",
        ),
        limit("one", "key = [\"method\"]\nrate = \"5/s\"\nmax_clients = 1"),
    ];
    let records = [
        record("192.0.2.1", 0, "GET /"),
        record("192.0.2.1", 0, "GET /"),
        record("192.0.2.2", 0, "POST /"),
        "what is this\n".to_owned(),
    ];
    let run = replay("report", &policy.concat(), &records, &[]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let (first, rest) = run.stdout.split_once('\n').unwrap();
    assert!(first.starts_with("policy             ") && first.ends_with("policy/report.toml"));
    let rest = rest.split("\nunreadable lines\n").next().unwrap();
    assert_eq!(
        rest,
        r#"first              2026-06-21 00:00:00 UTC
last               2026-06-21 00:00:00 UTC  (0s later)
lines              4
unreadable lines   1
records            3
clients            2
limited requests   2   66.7 %
limited clients    2  100.0 %

per-client
limit              1/s burst 1
key                ["ip"]
requests           3
limited requests   1   33.3 %
clients            2
limited clients    1   50.0 %

client     requests  limited   share  longest wait
192.0.2.1         2        1  50.0 %            1s

tenants (shadow)
limit              1/s burst 1
key                ["header:x-tenant", "cookie:s"]
not tried          the log does not tell header:x-tenant, cookie:s

one
limit              5/s burst 5
key                ["method"]
requests           3
limited requests   1   33.3 %
clients            2
limited clients    1   50.0 %
without a place    1

client  requests  limited    share  longest wait
POST           1        1  100.0 %           0ns
"#
    );
    assert!(
        run.stdout
            .lines()
            .skip(1)
            .all(|line| line.chars().count() <= 80)
    );
}

#[test]
fn wrong_use_is_told() {
    let records = [record("a", 0, "GET /")];
    let good = limit("a", "key = \"ip\"\nrate = \"1/s\"");
    let run = replay("rate", &good, &records, &["--rate", "1/s"]);
    assert!(run.refusal(2).contains("cannot be used with"), "{run:?}");
    let wrong = good.replace("rate", "rat");
    let run = replay("wrong", &wrong, &records, &[]);
    let says =
        "wrong.toml:1:1: a limit needs a rate, as in rate = \"5/s\"; 1 more: see tollgate check";
    assert!(run.refusal(2).ends_with(says), "{run:?}");
    let run = replay("empty", &good, &[], &[]);
    assert!(
        run.refusal(3)
            .ends_with("empty.log: empty, nothing to replay"),
        "{run:?}"
    );
}
