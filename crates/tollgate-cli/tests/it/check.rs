//! `tollgate check`.

use crate::harness::{Run, file, tollgate};

const FILE: &str = r#"
[clients]
trusted_proxies = ["10.0.0.0/8"]

[[limit]]
name = "per-key"
match = { path = "/api/**", method = ["GET", "POST"] }
except = { path = "/api/health" }
key = ["header:x-api-key", "ip"]
missing_key = "refuse"
rate = "5/s"
burst = 10
max_clients = 4000

[[limit]]
name = "login"
match = { path = "/login", method = "POST" }
key = ["ip"]
algorithm = "sliding-log"
limit = 5
window = "15m"

[[limit]]
name = "site"
key = []
rate = "2000/s"
idle = "10ms"
shadow = true

[[limit]]
name = "session"
key = "cookie:sid"
missing_key = "pass"
algorithm = "leaky-bucket"
rate = "10/min"
max_delay = "5s"
cost = 2
idle = "never"
"#;

fn check(name: &str, text: &str, more: &[&str]) -> Run {
    let path = file(&format!("check/{name}.toml"), text);
    let path = path.to_str().unwrap();
    tollgate(["check", path].iter().chain(more))
}

#[test]
fn a_file_is_explained() {
    let run = check("explained", FILE, &[]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(
        run.stdout,
        r#"per-key
limit     5/s burst 10 (token-bucket)
for       GET, POST /api/**, but not /api/health
key       ["header:x-api-key", "ip"]
tokens    at most 10 at once, 15 in a second, 310 in a minute, 432,010 in a day
memory    229 kB for 4,000 clients
forgets   a client 2s after its last attempt (the time to fill)
full      more than 2,000 new names a second lock some of them out

login
limit     5 in any 900s (sliding-log)
for       POST /login
key       ["ip"]
tokens    at most 5 at once, 5 in a second, 5 in a minute, 480 in a day
memory    103 MB for 1,000,000 clients, and 160 B of log a client
forgets   a client 15m after its last attempt (the time to fill)
full      more than 1,111 new names a second lock some of them out

site
limit     2000/s burst 2000 (token-bucket)
shadow    counts what it would refuse, and refuses nothing
for       every request
key       []
tokens    at most 2,000 at once, 202,000 in a second, 12,120,000 in a minute,
          17,452,800,000 in a day
memory    860 B for 1 client
forgets   a client 10ms after its last attempt (as the file says)
warning   idle is 10ms, and an empty bucket needs 1s to fill: whoever stays away
          for the idle time gets a full one early

session
limit     10/min burst 10, leaky (leaky-bucket)
for       every request
key       ["cookie:sid"]
tokens    at most 10 at once, 10 in a second, 20 in a minute, 14,410 in a day
memory    45 MB for 1,000,000 clients
delays    held back for 5s at most, refused where it would be longer
forgets   nobody
full      for good, once 1,000,000 names were seen
"#
    );
    assert!(run.stdout.lines().all(|line| line.chars().count() <= 80));
}

/// Plans, what gives tokens back, and of which plan a request is.
#[test]
fn plans_and_refunds_are_explained() {
    let text = r#"
[clients]
trusted_proxies = ["10.0.0.1"]

[[limit]]
name = "log-in"
key = ["ip"]
rate = "5/min"
refund_status = ["2xx", "304"]
plan_by = "header:X-Plan"

[[limit.plan]]
name = "pro"
rate = "50/h"

[[limit.plan]]
name = "internal"
unlimited = true
"#;
    let run = check("plans", text, &[]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(
        run.stdout,
        r#"log-in
limit     5/min burst 5 (token-bucket)
for       every request
key       ["ip"]
tokens    at most 5 at once, 5 in a second, 10 in a minute, 7,205 in a day
memory    59 MB for 1,000,000 clients
plan      pro: 50/h burst 50
plan      internal: held to nothing
plan by   header:x-plan
refunds   what is answered with 2xx, 304 takes nothing
forgets   a client 1h after its last attempt (the time to fill)
full      more than 277 new names a second lock some of them out
"#
    );
    let asked = [
        "--request",
        "GET /",
        "--peer",
        "10.0.0.1",
        "--header",
        "x-plan: pro",
    ];
    let run = check("plans", text, &asked);
    assert!(
        run.stdout.contains("holds     takes 1 (plan pro)"),
        "{}",
        run.stdout
    );
}

/// What is never believed, since no proxy is trusted, is warned of.
#[test]
fn headers_that_nobody_believes_are_warned_of() {
    let text = r#"
[[limit]]
name = "a"
key = ["ip"]
rate = "5/s"
cost = "header:x-cost"
plan_by = "header:x-plan"
plan = [{ name = "pro", rate = "9/s" }]
"#;
    let run = check("believed", text, &[]);
    assert_eq!(run.code, Some(0));
    let warnings: Vec<&str> = run.stdout.split("warning ").skip(1).collect();
    assert_eq!(
        warnings,
        [
            "  the cost is told by header:x-cost, and no proxy is trusted: it is 1\n          \
             always\n",
            "  the plan is told by header:x-plan, and no proxy is trusted: nobody has\n          \
             one\n",
        ]
    );
    let trusting = format!("[clients]\ntrusted_proxies = [\"unix\"]\n{text}");
    assert!(!check("trusted", &trusting, &[]).stdout.contains("warning"));
}

#[test]
fn a_request_is_told_which_limits_hold_for_it() {
    let asked = |request: &str, more: &[&str]| {
        let run = check(
            &request.replace(['/', ' ', '?'], "-"),
            FILE,
            &[&["--request", request], more].concat(),
        );
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        run.stdout
    };
    assert_eq!(
        asked(
            "HEAD /api//users/?page=2",
            &["--header", "X-Api-Key: k\u{1b}1", "--peer", "192.0.2.7"],
        ),
        r#"client    192.0.2.7 (the peer)
path      /api/users

per-key
holds     takes 1
key       header:x-api-key "k\u{1b}1"
key       ip "192.0.2.7"

login
holds     does not hold for it

site
holds     only counts; takes 1

session
holds     lets it pass for want of a key
key       cookie:sid is missing
"#
    );
    assert_eq!(
        asked(
            "GET /api/x",
            &[
                "--header",
                "x-forwarded-for: 6.6.6.6, 2001:db8::7",
                "--header",
                "cookie: sid=a; sid=b",
                "--peer",
                "10.0.0.1",
            ],
        ),
        r#"client    2001:db8::/64 (told by the proxy)
path      /api/x

per-key
holds     refuses it for want of a key
key       header:x-api-key is missing
key       ip "2001:db8::/64"

login
holds     does not hold for it

site
holds     only counts; takes 1

session
holds     takes 2
key       cookie:sid says different things, so nothing
"#
    );
    let nowhere = asked("OPTIONS *", &["--peer", "unix"]);
    assert!(nowhere.starts_with("client    no address (the peer)\npath      none\n"));
    let behind = asked("POST /login", &["--peer", "10.0.0.1"]);
    let expected = "client    10.0.0.1 (the last proxy: its header does not tell whose request it\n\
                    \u{20}         is)\n";
    assert!(behind.starts_with(expected), "{behind}");
}

/// One line an error, each with its place; nothing else.
#[test]
fn a_wrong_file_is_told_by_line() {
    let text = FILE
        .replace("burst = 10", "brust = 10")
        .replace("\"15m\"", "\"15\\u0007\"");
    let run = check("wrong", &text, &[]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    let lines: Vec<&str> = run.stderr.lines().collect();
    let [first, second] = lines[..] else {
        panic!("{run:?}");
    };
    assert!(first.ends_with("wrong.toml:12:1: unknown field \"brust\"; did you mean \"burst\"?"));
    assert!(
        second.ends_with(
            "wrong.toml:21:10: window is \"15\\u{7}\"; it is a length of time, as in \"90s\" or \
             \"1m 30s\""
        ),
        "{second}"
    );
}

#[test]
fn wrong_use_is_told() {
    let request = |more: &[&str]| check("used", FILE, more);
    for (arguments, says) in [
        (
            &["--peer", "10.0.0.1"][..],
            "the following required arguments were not provided",
        ),
        (
            &["--request", "GET"],
            r#"--request: "GET" is not a method and a target, as in 'GET /a?b=c'"#,
        ),
        (
            &["--request", "GET / HTTP/1.1"],
            r#"--request: "GET / HTTP/1.1" is not a method and a target, as in 'GET /a?b=c'"#,
        ),
        (
            &["--request", "GET /", "--peer", "10.0.0"],
            r#"--peer: "10.0.0" is not an address, as in 192.0.2.7, or unix"#,
        ),
        (
            &["--request", "GET /", "--header", "x-api-key"],
            r#"--header: "x-api-key" is not a name, a colon and a value"#,
        ),
        (
            &["--request", "GET /", "--descriptor", "tenant"],
            r#"--descriptor: "tenant" is not a name, = and a value"#,
        ),
    ] {
        let run = request(arguments);
        let refusal = run.refusal(2);
        assert!(refusal.starts_with(says), "{refusal}");
    }
    let run = tollgate(["check", "no/such.toml"]);
    assert_eq!(run.refusal(3), "no/such.toml: no such file");
    let run = check("bytes", "", &[]);
    assert_eq!(run.code, Some(1));
    let path = file("check/utf8.toml", b"name = \"\xff\"");
    let run = tollgate(["check", path.to_str().unwrap()]);
    assert!(
        run.refusal(3).ends_with("utf8.toml: is not UTF-8"),
        "{run:?}"
    );
}

/// The README's command, on the file that it names.
#[test]
fn the_example_is_right() {
    let example = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tollgate-policy/examples/limits.toml"
    );
    let request = ["--request", "POST /login", "--peer", "10.0.0.1"];
    let header = ["--header", "x-forwarded-for: 198.51.100.7"];
    let run = tollgate([&["check", example][..], &request, &header].concat());
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert!(
        run.stdout
            .contains("client    198.51.100.7 (told by the proxy)")
    );
    let log_in = "log-in\nholds     takes 1\nkey       ip \"198.51.100.7\"\n";
    assert!(run.stdout.contains(log_in), "{}", run.stdout);
}
