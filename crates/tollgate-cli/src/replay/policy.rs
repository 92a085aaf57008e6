//! A policy tried on a log: all limits that hold for a request, asked together.

use std::borrow::Cow;
use std::time::Duration;

use tollgate::{ClockWentBackwards, Decision, ManualClock, Timestamp};
use tollgate_policy::key::{Client, Part};
use tollgate_policy::plan::PlanBy;
use tollgate_policy::policy::Seen;
use tollgate_policy::proxies::Peer;
use tollgate_policy::{Answer, Call, Gate, Limit, Outcome, Policy, Request};

use super::line::Line;
use super::records::{Names, Numbered, Parts};
use super::tally::{Summary, Tally, count, limited, most_limited};

/// A line of a log as a policy sees it. A log tells client, method and target, and no more.
#[derive(Debug)]
struct Logged<'l> {
    client: &'l [u8],
    method: Vec<u8>,
    target: Vec<u8>,
}

impl<'l> Logged<'l> {
    fn new(line: &Line<'l>) -> Self {
        let request = unescaped(line.request);
        // What is no request line, as of a handshake on the wrong port, is a target of nothing.
        let mut words = request.splitn(2, |byte| *byte == b' ');
        let (method, rest) = (words.next().unwrap_or_default(), words.next());
        let target = rest.unwrap_or_default();
        let version = target.iter().rposition(|byte| *byte == b' ').filter(|at| {
            let version = target.get(at.saturating_add(1)..).unwrap_or_default();
            version.starts_with(b"HTTP/")
        });
        let target = version.and_then(|at| target.get(..at)).unwrap_or(target);
        Self {
            client: line.client,
            method: method.to_vec(),
            target: target.to_vec(),
        }
    }
}

/// A field without the escapes of nginx (`\x22`) and Apache (`\"`); other backslashes stay.
fn unescaped(field: &[u8]) -> Cow<'_, [u8]> {
    if !field.contains(&b'\\') {
        return Cow::Borrowed(field);
    }
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, behind)) = rest.split_first() {
        let (byte, left) = match rest {
            [b'\\', b'x', high, low, left @ ..] => match digit(*high).zip(digit(*low)) {
                Some((high, low)) => ((high << 4) | low, left),
                None => (first, behind),
            },
            [b'\\', quoted @ (b'"' | b'\\'), left @ ..] => (*quoted, left),
            _ => (first, behind),
        };
        bytes.push(byte);
        rest = left;
    }
    Cow::Owned(bytes)
}

impl Request for Logged<'_> {
    fn method(&self) -> &[u8] {
        &self.method
    }

    fn target(&self) -> &[u8] {
        &self.target
    }

    fn peer(&self) -> Peer {
        Peer::Unknown
    }

    fn client(&self) -> Option<&[u8]> {
        Some(self.client)
    }

    fn header(&self, _: &str, _: &mut dyn FnMut(&[u8])) {}
}

/// Whether a log tells that part of a key.
fn is_logged(part: &Part) -> bool {
    matches!(part, Part::Ip | Part::Path | Part::Method | Part::Query(_))
}

/// What a limit needs that no log tells.
fn untold(limit: &Limit) -> impl Iterator<Item = String> {
    let parts = limit.key().parts().iter().filter(|part| !is_logged(part));
    let plan = limit.plans().by().map(PlanBy::to_string);
    parts.map(Part::to_string).chain(plan)
}

/// One bucket of one limit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Bucket {
    limit: usize,
    /// `None` for requests that lack a part of the key, where these are refused.
    client: Option<Client>,
}

/// What a request asks: buckets by number, and how much of each.
type Asks = Box<[(u32, u64)]>;

/// Whose request it is by number, what it asks, and the status that it was answered with where that
/// matters to any of its limits, else 0.
type Alike = (u32, Asks, u16);

/// Numbers for all that different requests ask for.
#[derive(Debug)]
pub struct Asked<'p> {
    policy: &'p Policy,
    clients: Numbered<Box<[u8]>>,
    buckets: Numbered<Bucket>,
    /// How each bucket is shown.
    shown: Vec<Box<[u8]>>,
    asks: Numbered<Alike>,
}

/// The same, once everything was read.
#[derive(Debug)]
pub struct AllAsked {
    clients: Vec<Box<[u8]>>,
    buckets: Vec<Bucket>,
    shown: Vec<Box<[u8]>>,
    requests: Vec<OneAsked>,
}

/// What some requests ask.
#[derive(Debug)]
struct OneAsked {
    /// Whose they are, by number.
    client: u32,
    /// For each call the number of its bucket.
    buckets: Vec<u32>,
    calls: Vec<Call>,
    status: u16,
}

impl<'p> Asked<'p> {
    /// Of that policy's limits, but for those that need what no log tells.
    #[must_use]
    pub fn new(policy: &'p Policy) -> Self {
        Self {
            policy,
            clients: Numbered::default(),
            buckets: Numbered::default(),
            shown: Vec::new(),
            asks: Numbered::default(),
        }
    }

    fn bucket(&mut self, bucket: &Bucket, request: &Logged<'_>) -> Option<u32> {
        let number = self.buckets.number(bucket, Clone::clone)?;
        if usize::try_from(number).ok()? == self.shown.len() {
            let limit = self.policy.limits().get(bucket.limit)?;
            self.shown.push(shown(self.policy, limit, request));
        }
        Some(number)
    }
}

/// The values of a key's parts, with blanks between.
fn shown(policy: &Policy, limit: &Limit, request: &Logged<'_>) -> Box<[u8]> {
    let parts = policy.seen(limit, request).into_iter();
    let values = parts.map(|(_, seen)| match seen {
        Seen::Is(value) => value,
        Seen::Missing | Seen::Ambiguous | _ => "-".to_owned(),
    });
    let values: Vec<String> = values.collect();
    if values.is_empty() {
        return b"everybody"[..].into();
    }
    values.join(" ").into_bytes().into()
}

impl Names for Asked<'_> {
    type All = AllAsked;

    fn number(&mut self, line: &Line<'_>) -> Option<u32> {
        let client = self.clients.number(line.client, |name| name.into())?;
        let request = Logged::new(line);
        let (mut asks, mut status) = (Vec::new(), 0);
        for call in self.policy.calls(&request) {
            let limit = self.policy.limits().get(call.limit);
            let Some(told) = limit.filter(|limit| untold(limit).next().is_none()) else {
                continue;
            };
            if !told.refund_status().is_empty() {
                status = line.status;
            }
            let (client, cost) = match call.answer {
                Answer::Takes { client, cost, .. } => (Some(client), cost),
                Answer::Unidentified => (None, 0),
                Answer::Passes | _ => continue,
            };
            let limit = call.limit;
            asks.push((self.bucket(&Bucket { limit, client }, &request)?, cost));
        }
        self.asks
            .number(&(client, asks.into(), status), Clone::clone)
    }

    fn into_all(self) -> AllAsked {
        let buckets = self.buckets.into_all();
        let call = |(number, cost): &(u32, u64)| {
            let bucket = buckets.get(usize::try_from(*number).ok()?)?;
            let answer = match bucket.client.clone() {
                Some(client) => Answer::Takes {
                    client,
                    cost: *cost,
                    plan: None,
                },
                None => Answer::Unidentified,
            };
            Some((*number, Call::new(bucket.limit, answer)))
        };
        let asks = self.asks.into_all().into_iter();
        let requests = asks.map(|(client, asks, status)| {
            let (buckets, calls) = asks.iter().filter_map(call).unzip();
            OneAsked {
                client,
                buckets,
                calls,
                status,
            }
        });
        AllAsked {
            requests: requests.collect(),
            clients: self.clients.into_all(),
            shown: self.shown,
            buckets,
        }
    }
}

/// What a policy would have done.
#[derive(Clone, Debug)]
pub struct PolicyFigures {
    /// The log, and how much of it was refused by any limit.
    pub summary: Summary,
    /// What each limit did, those among them that were not tried.
    pub limits: Vec<LimitFigures>,
}

/// What one limit of a policy would have done.
#[derive(Clone, Debug)]
pub struct LimitFigures {
    /// Its name.
    pub name: String,
    /// What it admits.
    pub rule: String,
    /// The parts of its key.
    pub key: String,
    /// Whether it only counts.
    pub is_shadow: bool,
    /// What it needs that no log tells; it was not tried then.
    pub untold: Vec<String>,
    /// Requests for which it holds.
    pub requests: u64,
    /// Those that it refused.
    pub limited_requests: u64,
    /// Those among them that were refused for want of a place.
    pub client_limit: u64,
    /// Clients, by its key.
    pub clients: u64,
    /// Those that it refused at least once.
    pub limited_clients: u64,
    /// The clients refused most often.
    pub top: Vec<Tally>,
}

/// Tries a policy on a log; each limit with its own number of clients and idle time. Keeps the
/// `top` clients hit most, of each limit.
///
/// # Errors
///
/// Records that are not in time order.
pub fn run(
    (gate, clock): (&Gate<ManualClock>, &ManualClock),
    parts: Parts<AllAsked>,
    top: usize,
) -> Result<PolicyFigures, ClockWentBackwards> {
    let AllAsked {
        clients,
        buckets,
        shown,
        requests,
    } = parts.clients;
    let named = |client| Tally {
        client,
        ..Tally::default()
    };
    let mut of_clients: Vec<Tally> = clients.into_iter().map(named).collect();
    let mut of_buckets: Vec<Tally> = shown.into_iter().map(named).collect();
    let policy = gate.policy();
    let limits = policy.limits();
    let mut full = vec![0_u64; limits.len()];
    for record in &parts.records {
        let place = usize::try_from(record.client).ok();
        let Some(request) = place.and_then(|place| requests.get(place)) else {
            continue;
        };
        let now = Timestamp::from_nanos(record.at_ns);
        let mut verdict = gate.decide_at(&request.calls, now)?;
        for (bucket, said) in request.buckets.iter().zip(verdict.said()) {
            let Some(decision) = decision(said.outcome) else {
                continue;
            };
            if let Some(tally) = at(&mut of_buckets, *bucket) {
                tally.add(decision);
            }
            if let (Decision::ClientLimit, Some(full)) = (decision, full.get_mut(said.limit)) {
                *full = full.saturating_add(1);
            }
        }
        // It was answered by the next record, as far as a log tells.
        clock.set(now);
        verdict.answered(request.status);
        let refusal = verdict.refused_by().and_then(|said| decision(said.outcome));
        if let Some(tally) = at(&mut of_clients, request.client) {
            tally.add(refusal.unwrap_or(PASSED));
        }
    }
    let summary = Summary::new(&parts.records, parts.account, &of_clients);
    let mut by_limit = vec![Vec::new(); limits.len()];
    for (bucket, tally) in buckets.iter().zip(of_buckets) {
        if let Some(own) = by_limit.get_mut(bucket.limit) {
            own.push(tally);
        }
    }
    let limits = limits.iter().zip(by_limit).zip(full);
    let limits = limits.map(|((limit, tallies), full)| figures(limit, tallies, full, top));
    Ok(PolicyFigures {
        summary,
        limits: limits.collect(),
    })
}

/// What a limit answered, if it was asked.
fn decision(outcome: Outcome) -> Option<Decision> {
    match outcome {
        Outcome::Decided(decision) => Some(decision),
        // It will not do better later.
        Outcome::Unidentified => Some(Decision::TooLarge { burst: 0 }),
        Outcome::NotAsked | _ => None,
    }
}

/// The answer to a request that nothing refuses.
const PASSED: Decision = Decision::Allowed {
    remaining: 0,
    delay: Duration::ZERO,
    reset_after: Duration::ZERO,
};

fn at(tallies: &mut [Tally], number: u32) -> Option<&mut Tally> {
    tallies.get_mut(usize::try_from(number).ok()?)
}

fn figures(limit: &Limit, tallies: Vec<Tally>, client_limit: u64, top: usize) -> LimitFigures {
    let sum = |each: fn(&Tally) -> u64| tallies.iter().map(each).fold(0, u64::saturating_add);
    LimitFigures {
        name: limit.name().to_owned(),
        rule: limit.rule().to_string(),
        key: limit.key().to_string(),
        is_shadow: limit.is_shadow(),
        untold: untold(limit).collect(),
        requests: sum(|tally| tally.requests),
        limited_requests: sum(|tally| tally.limited),
        client_limit,
        clients: count(&tallies),
        limited_clients: limited(&tallies),
        top: most_limited(tallies, top),
    }
}
