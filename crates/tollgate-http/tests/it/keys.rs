//! Whose bucket a request takes from.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use http::Request;
use http::request::Parts;
use tollgate::{ManualClock, Rate};
use tollgate_http::proxies::{AddressHeader, Peer, Proxies};
use tollgate_http::{Key, Limits, LimitsError, MissingKey, Policy, RateLimitLayer};

use crate::harness::{App, bucket, from, get, limit, run};

/// A limit of one request an hour.
fn once() -> tollgate_http::Limit {
    limit("once", bucket(Rate::per_hour(1), 1))
}

/// The statuses of requests, in order.
fn statuses(app: &App, requests: impl IntoIterator<Item = Request<()>>) -> Vec<u16> {
    requests
        .into_iter()
        .map(|request| app.ask(request).status)
        .collect()
}

#[test]
fn by_address() {
    let app = App::new([once()]);
    let told = statuses(
        &app,
        ["192.0.2.1", "192.0.2.1", "192.0.2.2", "::ffff:192.0.2.2"].map(from),
    );
    assert_eq!(told, [200, 429, 200, 429]);
}

#[test]
fn by_header_cookie_query_path_and_method() {
    let app = |key: &str| App::new([once().with_key(key.parse().unwrap())]);
    let ask = |target: &str, header: (&str, &str)| get("192.0.2.1", target, &[header]);
    let key = |value| ask("/", ("x-api-key", value));
    assert_eq!(
        statuses(&app("header:x-api-key"), ["a", "b", "a"].map(key)),
        [200, 200, 429]
    );
    let cookie = |value: &str| ask("/", ("cookie", &format!("x=1; sid={value}")));
    assert_eq!(
        statuses(&app("cookie:sid"), ["a", "b", "a"].map(cookie)),
        [200, 200, 429]
    );
    let query = |target| ask(target, ("x", "x"));
    let targets = ["/?key=a", "/?key=b", "/?x=1&key=a"];
    assert_eq!(
        statuses(&app("query:key"), targets.map(query)),
        [200, 200, 429]
    );
    let paths = ["/a", "/b", "//a/?x"];
    assert_eq!(statuses(&app("path"), paths.map(query)), [200, 200, 429]);
    let method = |method: &str| {
        let mut request = from("192.0.2.1");
        *request.method_mut() = method.parse().unwrap();
        request
    };
    let methods = ["GET", "POST", "HEAD"].map(method);
    assert_eq!(statuses(&app("method"), methods), [200, 200, 429]);
}

#[test]
fn by_several_parts() {
    let key = Key::header("x-api-key").and(Key::path()).unwrap();
    let app = App::new([once().with_key(key)]);
    let ask = |key, path| get("192.0.2.1", path, &[("x-api-key", key)]);
    let requests = [
        ask("a", "/b"),
        ask("a/b", "/"),
        ask("a", "/c"),
        ask("a", "/b"),
    ];
    assert_eq!(statuses(&app, requests), [200, 200, 200, 429]);
}

/// A log-in, as something in front of the layer leaves it behind.
#[derive(Clone)]
struct User(&'static str);

fn of_user(name: &'static str) -> Request<()> {
    let mut request = from("192.0.2.1");
    request.extensions_mut().insert(User(name));
    request
}

fn user(head: &Parts) -> Option<&'static str> {
    head.extensions.get::<User>().map(|user| user.0)
}

#[test]
fn by_what_the_service_says() {
    let layer = RateLimitLayer::new(Rate::per_hour(1).burst(1), 100)
        .unwrap()
        .key_by(user);
    let clock = ManualClock::default();
    let app = App { layer, clock };
    let requests = [
        of_user("a"),
        of_user("b"),
        of_user("a"),
        from("192.0.2.1"),
        of_user(""),
    ];
    assert_eq!(
        statuses(&app, requests),
        [200, 200, 429, 200, 429],
        "nobody is one client"
    );

    let policy = Policy::new(vec![once().with_key(Key::descriptor("user"))]).unwrap();
    let app = App::with(policy.clone(), |builder| builder.descriptor("user", user));
    assert_eq!(
        statuses(&app, ["a", "b", "a"].map(of_user)),
        [200, 200, 429]
    );
    // One that nobody tells is found where the limits are built.
    let forgotten = Limits::builder(policy.clone()).build().unwrap_err();
    let error = LimitsError::Descriptor {
        name: "user".to_owned(),
        told: vec![],
    };
    assert_eq!(forgotten, error);
    let misspelt = Limits::builder(policy.clone())
        .descriptor("usr", user)
        .build();
    assert_eq!(
        misspelt.unwrap_err().to_string(),
        "the policy goes by descriptor \"user\", and nothing tells it; told are usr"
    );
    let other = App::new([once()]);
    assert_eq!(other.layer.limits().reload(policy).unwrap_err(), forgotten);
    let built = Limits::builder(Policy::new(vec![once()]).unwrap())
        .cost_of("twice", |_| 2)
        .build();
    assert_eq!(
        built.unwrap_err().to_string(),
        "a cost is told for limit \"twice\", and the policy has none of that name"
    );
}

/// The layer of five lines, with a proxy in front.
#[test]
fn by_address_behind_a_proxy() {
    let proxies = Proxies::new(
        ["10.0.0.0/8".parse().unwrap()],
        AddressHeader::XForwardedFor,
    );
    let layer = RateLimitLayer::new(Rate::per_hour(1).burst(1), 100)
        .unwrap()
        .proxies(proxies);
    let clock = ManualClock::default();
    let app = App { layer, clock };
    let ask = |peer, client| get(peer, "/", &[("x-forwarded-for", client)]);
    let requests = [
        ask("10.0.0.1", "6.6.6.6, 198.51.100.7"),
        ask("10.0.0.2", "7.7.7.7, 198.51.100.7, 10.0.0.9"),
        ask("203.0.113.9", "198.51.100.8"),
        ask("203.0.113.9", "198.51.100.9"),
    ];
    assert_eq!(statuses(&app, requests), [200, 429, 200, 429]);
}

/// Where nobody says who is at the other end: a closure, or none at all. Never a 500.
#[test]
fn without_an_address() {
    let nobody = || Request::new(());
    let policy = |missing| Policy::new(vec![once().with_missing_key(missing)]).unwrap();
    for (missing, told) in [
        (MissingKey::Share, [200, 429]),
        (MissingKey::Refuse, [400, 400]),
        (MissingKey::Pass, [200, 200]),
    ] {
        let app = App::with(policy(missing), |builder| builder);
        let lines = logged(|| {
            assert_eq!(statuses(&app, [nobody(), nobody()]), told, "{missing:?}");
        });
        assert_eq!(lines.len(), 1);
        assert!(
            lines[0].contains("nobody says from which address requests come"),
            "{lines:?}"
        );
    }
    let app = App::with(policy(MissingKey::Refuse), |builder| {
        builder.peer(|head| {
            let port = head.uri.path().len();
            Some(Peer::Address(
                [192, 0, 2, u8::try_from(port).unwrap()].into(),
            ))
        })
    });
    assert_eq!(statuses(&app, [nobody(), nobody()]), [200, 429]);
}

/// In axum a connection's address is known, and a path that routers cut off.
#[test]
fn in_axum() {
    use axum::extract::ConnectInfo;
    use std::net::SocketAddr;
    use tower::ServiceExt;

    let key = Key::ip().and(Key::path()).unwrap();
    let app = App::new([once().with_key(key)]);
    let inner = axum::Router::new()
        .route("/x", axum::routing::get(|| async { "x" }))
        .layer(app.layer.clone());
    let router = axum::Router::new()
        .nest("/a", inner.clone())
        .nest("/b", inner);
    let ask = |path: &str, port: u16, host: u8| {
        let address = SocketAddr::from(([192, 0, 2, host], port));
        let request = Request::builder()
            .uri(path)
            .extension(ConnectInfo(address))
            .body(axum::body::Body::empty())
            .unwrap();
        run(async {
            router
                .clone()
                .oneshot(request)
                .await
                .unwrap()
                .status()
                .as_u16()
        })
    };
    let told = [
        ask("/a/x", 1, 1),
        ask("/b/x", 2, 1),
        ask("/a/x", 3, 1),
        ask("/a/x", 4, 2),
    ];
    assert_eq!(told, [200, 200, 429, 200]);
    let mocked = router.layer(axum::extract::connect_info::MockConnectInfo(
        SocketAddr::from(([192, 0, 2, 1], 5)),
    ));
    let request = Request::builder()
        .uri("/b/x")
        .body(axum::body::Body::empty())
        .unwrap();
    let status = run(async { mocked.oneshot(request).await.unwrap().status() });
    assert_eq!(status, 429);
}

/// What a log says, as text.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl tracing::Subscriber for Log {
    /// What this crate says; the library has events of its own, behind a feature.
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("tollgate_http")
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        struct Fields(String);
        impl tracing::field::Visit for Fields {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                write!(self.0, " {field}={value:?}").unwrap();
            }
        }
        let mut fields = Fields(event.metadata().level().to_string());
        event.record(&mut fields);
        let mut log = self.0.lock().unwrap();
        log.push_str(&fields.0);
        log.push('\n');
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// What a log has after something was done.
pub(crate) fn logged(act: impl FnOnce()) -> Vec<String> {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), act);
    let text = log.0.lock().unwrap();
    text.lines().map(str::to_owned).collect()
}

/// A missing key is told of once a limit, and again after a reload: the service's owner may have
/// mended it. The client stays out of it.
#[test]
fn a_missing_key_is_logged_once() {
    let keyed = |name: &str, missing| {
        let limit = limit(name, bucket(Rate::per_hour(1), 100));
        limit
            .with_key(Key::header("x-api-key"))
            .with_missing_key(missing)
    };
    let policy = || {
        Policy::new(vec![
            keyed("shared", MissingKey::Share),
            keyed("passed", MissingKey::Pass),
            keyed("refused", MissingKey::Refuse),
        ])
    };
    let app = App::with(policy().unwrap(), |builder| builder);
    let ask = |header: &str| app.ask(get("192.0.2.1", "/", &[(header, "secret")]));
    let quiet = logged(|| assert_eq!(ask("x-api-key").status, 200));
    assert_eq!(quiet, Vec::<String>::new());
    let lines = logged(|| (0..5).for_each(|_| assert_eq!(ask("x-other").status, 400)));
    let says = |name: &str, becomes: &str| {
        format!(
            "WARN message=a request lacks a part of the limit's key (not said again) \
             limit=\"{name}\" key=[\"header:x-api-key\"] becomes=\"{becomes}\""
        )
    };
    let wanted = [
        says("shared", "all such requests share one bucket"),
        says("passed", "such requests are not limited"),
        says("refused", "such requests are refused"),
    ];
    assert_eq!(lines, wanted);
    app.layer.limits().reload(policy().unwrap()).unwrap();
    assert_eq!(logged(|| _ = ask("x-other")).len(), 3);
}

/// The layer compiles as the page has it, and its type can be written down.
#[test]
fn a_limit_in_five_lines() {
    fn limited() -> Result<RateLimitLayer, LimitsError> {
        let limit = RateLimitLayer::new(Rate::per_second(5).burst(10), 100_000)?;
        Ok(limit.key(Key::header("x-api-key")))
    }
    let layer = limited().unwrap();
    let limit = layer.limits().policy().limits()[0].clone();
    assert_eq!(limit.rule(), bucket(Rate::per_second(5), 10));
    assert_eq!(
        (limit.max_clients(), limit.key().to_string().as_str()),
        (100_000, "[\"header:x-api-key\"]")
    );
    let none = RateLimitLayer::new(Rate::per_second(5).burst(10), 0).unwrap_err();
    assert_eq!(none.to_string(), "max_clients is 0; the least is 1 client");
}

/// Keys of a layer that is made of a limit for everybody have room for all.
#[test]
fn a_key_set_afterwards_has_room() {
    let everybody = once().with_key(Key::everybody());
    let layer = RateLimitLayer::of(everybody).unwrap().key(Key::ip());
    let clock = ManualClock::default();
    let app = App { layer, clock };
    let told = statuses(&app, ["192.0.2.1", "192.0.2.2", "192.0.2.1"].map(from));
    assert_eq!(told, [200, 200, 429]);
}
