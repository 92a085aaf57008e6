//! The examples, started as a user would and asked over the network.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tonic_types::StatusExt;

use crate::harness::{Answer, item};

/// A running example; dropped, it is stopped.
struct Example {
    child: Child,
    address: SocketAddr,
}

impl Example {
    fn start(name: &str) -> Self {
        // Where cargo puts them: beside the folder of this test.
        let test = std::env::current_exe().unwrap();
        let folder: PathBuf = test.ancestors().nth(2).unwrap().join("examples");
        let path = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
        let mut child = Command::new(&path)
            .arg("127.0.0.1:0")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| {
                panic!(
                    "{}: {error}; `cargo test -p tollgate-http` builds it",
                    path.display()
                )
            });
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .trim()
            .strip_prefix("listening on http://")
            .unwrap()
            .parse();
        let address = address.unwrap();
        Self { child, address }
    }

    /// The answer to a request, as it comes over the wire.
    fn ask(&self, head: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        let length = body.len();
        write!(
            stream,
            "{head}host: example\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let mut lines = head.split("\r\n");
        let status = lines
            .next()
            .unwrap()
            .split(' ')
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_ascii_lowercase(), value.to_owned())
        });
        let mut headers: Vec<(String, String)> = headers.collect();
        headers.sort();
        headers.retain(|(name, _)| name != "date" && name != "connection");
        let body = body.to_owned();
        Answer {
            status,
            headers,
            body,
        }
    }

    fn get(&self, path: &str, headers: &str) -> Answer {
        self.ask(&format!("GET {path} HTTP/1.1\r\n{headers}"), "")
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// A refusal's header and body, to the byte, whatever the second.
fn check_refusal(
    answer: &Answer,
    limit: &str,
    policy: &[(&str, i64)],
    at_most: u64,
    more: &[&str],
) {
    let wait = answer.retry_after().unwrap();
    assert!(
        (at_most.saturating_sub(5).max(1)..=at_most).contains(&wait),
        "{wait}"
    );
    assert_eq!(answer.status, 429);
    assert_eq!(answer.items("ratelimit-policy"), [item(limit, policy)]);
    let t = i64::try_from(wait).unwrap();
    assert_eq!(answer.figures(), Some(item(limit, &[("r", 0), ("t", t)])));
    let body = format!(
        "{{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\",\
         \"title\":\"Request cannot be satisfied as assigned quota has been exceeded\",\
         \"status\":429,\"detail\":\"limit {limit} is used up; retry after {wait} s\",\
         \"violated-policies\":[\"{limit}\"]}}"
    );
    assert_eq!(answer.body, body);
    let length = body.len().to_string();
    let policy = format!(
        "\"{limit}\"{}",
        policy
            .iter()
            .map(|(key, number)| format!(";{key}={number}"))
            .collect::<String>()
    );
    let figures = format!("\"{limit}\";r=0;t={wait}");
    let wait = wait.to_string();
    let mut wanted = vec![
        ("cache-control", "no-store"),
        ("content-length", length.as_str()),
        ("content-type", "application/problem+json"),
        ("ratelimit", figures.as_str()),
        ("ratelimit-policy", policy.as_str()),
        ("retry-after", wait.as_str()),
    ];
    for (name, value) in &answer.headers {
        if more.contains(&name.as_str()) {
            wanted.push((name, value));
        }
    }
    wanted.sort_unstable();
    let found: Vec<(&str, &str)> = answer
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(found, wanted);
}

#[test]
fn axum_with_keys_and_plans() {
    let example = Example::start("axum_keys");
    let hello = |key: &str| example.get("/api/hello", &format!("x-api-key: {key}\r\n"));
    for left in [1, 0] {
        let answer = hello("basic-1");
        assert_eq!((answer.status, answer.body.as_str()), (200, "hello\n"));
        assert_eq!(answer.figures().unwrap().number("r"), Some(left));
        assert_eq!(answer.one("x-ratelimit-limit"), Some("2"));
        assert_eq!(
            answer.one("x-ratelimit-remaining"),
            Some(left.to_string().as_str())
        );
    }
    let legacy = [
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
    ];
    check_refusal(
        &hello("basic-1"),
        "per-key",
        &[("q", 2), ("w", 24)],
        12,
        &legacy,
    );
    let pro = (0..25).filter(|_| hello("pro-1").status == 200).count();
    assert!((20..25).contains(&pro), "{pro}");
    assert!((0..50).all(|_| hello("internal-1").status == 200));
    let nobody = example.get("/api/hello", "");
    assert_eq!(nobody.status, 403);
    assert_eq!(nobody.json()["type"], "urn:tollgate:problem:unidentified");

    let log_in = |password| example.ask("POST /login HTTP/1.1\r\n", password);
    assert!((0..10).all(|_| log_in("open sesame").status == 204));
    assert!((0..3).all(|_| log_in("guess").status == 401));
    check_refusal(
        &log_in("open sesame"),
        "log-in",
        &[("q", 3), ("w", 900)],
        900,
        &legacy,
    );
}

#[test]
fn axum_behind_a_proxy() {
    let example = Example::start("axum_proxy");
    let of = |addresses: &str| example.get("/", &format!("x-forwarded-for: {addresses}\r\n"));
    for left in [2, 1, 0] {
        let answer = of("198.51.100.7");
        assert_eq!((answer.status, answer.body.as_str()), (200, "hello\n"));
        assert_eq!(answer.figures().unwrap().number("r"), Some(left));
    }
    let refused = of("203.0.113.9, 198.51.100.7");
    check_refusal(&refused, "default", &[("q", 3), ("w", 180)], 60, &[]);
    assert_eq!(of("198.51.100.8").status, 200);
}

#[test]
fn actix() {
    let example = Example::start("actix");
    assert_eq!(example.get("/report", "").body, "all of it\n");
    for left in [1, 0] {
        let answer = example.get("/", "");
        assert_eq!((answer.status, answer.body.as_str()), (200, "hello\n"));
        assert_eq!(
            answer.figures().unwrap().number("r"),
            Some(left),
            "whichever worker it is"
        );
    }
    check_refusal(
        &example.get("/", ""),
        "per-client",
        &[("q", 5), ("w", 300)],
        60,
        &[],
    );
    let report = example.get("/report", "");
    assert_eq!(report.figures().unwrap().number("tollgate-cost"), Some(3));
}

#[test]
fn tonic() {
    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_client::HealthClient;

    let example = Example::start("tonic");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let address = format!("http://{}", example.address);
        let channel = tonic::transport::Channel::from_shared(address).unwrap();
        let mut client = HealthClient::new(channel.connect().await.unwrap());
        for left in [2, 1, 0] {
            let answer = client.check(HealthCheckRequest::default()).await.unwrap();
            let figures = answer
                .metadata()
                .get("ratelimit")
                .unwrap()
                .to_str()
                .unwrap();
            assert_eq!(crate::harness::items(figures)[0].number("r"), Some(left));
        }
        let refused = client
            .check(HealthCheckRequest::default())
            .await
            .unwrap_err();
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
        let delay = refused
            .get_details_retry_info()
            .unwrap()
            .retry_delay
            .unwrap();
        assert!(
            (Duration::from_secs(50)..=Duration::from_secs(60)).contains(&delay),
            "{delay:?}"
        );
        let text = |name: &str| {
            refused
                .metadata()
                .get(name)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        };
        assert_eq!(
            text("grpc-retry-pushback-ms"),
            delay.as_millis().to_string()
        );
        let wait: i64 = text("retry-after").parse().unwrap();
        assert_eq!(
            crate::harness::items(&text("ratelimit")),
            [item("default", &[("r", 0), ("t", wait)])]
        );
        let policy = crate::harness::items(&text("ratelimit-policy"));
        assert_eq!(policy, [item("default", &[("q", 3), ("w", 180)])]);
        assert_eq!(
            refused.message(),
            format!("limit default is used up; retry after {wait} s")
        );
    });
}
