//! Requests through a layer, answers taken apart, and structured fields read by a parser that is
//! not ours.

use std::future::Future;
use std::net::IpAddr;
use std::time::Duration;

use http::request::Parts;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use sfv::{BareItem, List, ListEntry, Parser};
use tollgate::{ManualClock, Rate, Timestamp};
use tollgate_http::proxies::Peer;
use tollgate_http::{Builder, Limit, Limits, Policy, RateLimitLayer, Rule};
use tower::{Layer, ServiceExt};

/// An answer, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// In the order of their names.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    /// All lines of a header.
    pub(crate) fn lines(&self, name: &str) -> Vec<&str> {
        let own = self.headers.iter().filter(|(own, _)| own == name);
        own.map(|(_, value)| value.as_str()).collect()
    }

    /// A header that comes once, or not at all.
    pub(crate) fn one(&self, name: &str) -> Option<&str> {
        let lines = self.lines(name);
        assert!(lines.len() <= 1, "{name} comes {} times", lines.len());
        lines.first().copied()
    }

    /// `Retry-After`, which is digits.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        let text = self.one("retry-after")?;
        assert!(text.bytes().all(|byte| byte.is_ascii_digit()), "{text}");
        Some(text.parse().unwrap())
    }

    /// The one item of `RateLimit`.
    pub(crate) fn figures(&self) -> Option<Item> {
        let mut items = self.items("ratelimit");
        assert!(items.len() <= 1, "{items:?}");
        items.pop()
    }

    /// The items of a list, over all its lines.
    pub(crate) fn items(&self, name: &str) -> Vec<Item> {
        let lines = self.lines(name).join(", ");
        if lines.is_empty() {
            return Vec::new();
        }
        items(&lines)
    }

    /// The body, as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// A string with whole numbers for parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) name: String,
    pub(crate) numbers: Vec<(String, i64)>,
}

impl Item {
    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        let (_, number) = self.numbers.iter().find(|(own, _)| own == key)?;
        Some(u64::try_from(*number).unwrap())
    }
}

/// A list of strings, as RFC 9651 has it.
pub(crate) fn items(list: &str) -> Vec<Item> {
    let parsed: List = Parser::new(list)
        .parse()
        .unwrap_or_else(|error| panic!("{list:?}: {error}"));
    let items = parsed.into_iter().map(|entry| {
        let ListEntry::Item(item) = entry else {
            panic!("an inner list in {list:?}");
        };
        let BareItem::String(name) = item.bare_item else {
            panic!("no string in {list:?}");
        };
        let numbers = item.params.into_iter().map(|(key, value)| {
            let BareItem::Integer(number) = value else {
                panic!("no integer in {list:?}");
            };
            (key.to_string(), i64::from(number))
        });
        Item {
            name: name.as_str().to_owned(),
            numbers: numbers.collect(),
        }
    });
    items.collect()
}

/// An item written down, to compare with.
pub(crate) fn item(name: &str, numbers: &[(&str, i64)]) -> Item {
    let numbers = numbers
        .iter()
        .map(|(key, number)| ((*key).to_owned(), *number));
    Item {
        name: name.to_owned(),
        numbers: numbers.collect(),
    }
}

/// Runs a future on a clock that runs only while all wait for it.
pub(crate) fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(future)
}

/// Limits on a clock that stands still.
pub(crate) struct App {
    pub(crate) layer: RateLimitLayer,
    pub(crate) clock: ManualClock,
}

impl App {
    pub(crate) fn new(limits: impl IntoIterator<Item = Limit>) -> Self {
        Self::with(
            Policy::new(limits.into_iter().collect()).unwrap(),
            |builder| builder,
        )
    }

    pub(crate) fn with(policy: Policy, set: impl FnOnce(Builder<Parts>) -> Builder<Parts>) -> Self {
        let clock = ManualClock::default();
        let limits = set(Limits::builder(policy).clock(clock.clone())).build();
        let layer = RateLimitLayer::from(limits.unwrap());
        Self { layer, clock }
    }

    /// One limit.
    pub(crate) fn of(rule: Rule) -> Self {
        Self::new([limit("default", rule)])
    }

    /// At that time since the Unix epoch.
    pub(crate) fn at(&self, time: Duration) -> &Self {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap();
        self.clock.set(Timestamp::from_nanos(nanoseconds));
        self
    }

    /// The answer to a request, from a service that is answered with [`echo`].
    pub(crate) fn ask(&self, request: Request<()>) -> Answer {
        run(self.answer(request))
    }

    pub(crate) async fn answer(&self, request: Request<()>) -> Answer {
        let service = self.layer.layer(tower::service_fn(echo));
        answer(service.oneshot(request).await.unwrap()).await
    }

    /// The answer to a plain request.
    pub(crate) fn get(&self) -> Answer {
        self.ask(from("192.0.2.1"))
    }
}

/// Answers as the request says: with the status of `x-status`, the headers of `x-answer` (`name:
/// value`), and the path.
pub(crate) async fn echo(
    request: Request<()>,
) -> Result<Response<Full<Bytes>>, std::convert::Infallible> {
    let mut response = Response::builder();
    if let Some(status) = request.headers().get("x-status") {
        response = response.status(status.to_str().unwrap());
    }
    for header in request.headers().get_all("x-answer") {
        let (name, value) = header.to_str().unwrap().split_once(": ").unwrap();
        response = response.header(name, value);
    }
    let path = request.uri().path().to_owned();
    Ok(response.body(Full::from(path)).unwrap())
}

/// An answer taken apart.
pub(crate) async fn answer<B>(response: Response<B>) -> Answer
where
    B: http_body::Body<Error: std::fmt::Debug>,
{
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let headers = head.headers.iter();
    let headers = headers.map(|(name, value)| {
        let value = value.to_str().unwrap().to_owned();
        (name.as_str().to_owned(), value)
    });
    let mut headers: Vec<_> = headers.collect();
    headers.sort_by(|(one, _), (other, _)| one.cmp(other));
    Answer {
        status: head.status.as_u16(),
        headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
    }
}

/// A `GET /` over a connection from that address.
pub(crate) fn from(peer: &str) -> Request<()> {
    get(peer, "/", &[])
}

pub(crate) fn get(peer: &str, target: &str, headers: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::builder().uri(target);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let peer: IpAddr = peer.parse().unwrap();
    request.extension(Peer::Address(peer)).body(()).unwrap()
}

pub(crate) fn limit(name: &str, rule: Rule) -> Limit {
    Limit::new(name, rule).unwrap()
}

/// A token bucket.
pub(crate) fn bucket(rate: Rate, burst: u64) -> Rule {
    Rule::TokenBucket(rate.burst(burst))
}

pub(crate) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}
