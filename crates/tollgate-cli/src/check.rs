//! `tollgate check`: what a policy file says, and what comes of it.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use jiff::SignedDuration;
use tollgate::ManualClock;
use tollgate_policy::file::LONGEST_FILE;
use tollgate_policy::path::Path;
use tollgate_policy::plan::PlanBy;
use tollgate_policy::policy::Seen;
use tollgate_policy::proxies::{Peer, Source};
use tollgate_policy::{Answer, Cost, Idle, Limit, Policy, Request, Rule, WhenFull};

use crate::error::Error;
use crate::terminal::{COLUMNS, Paint, escape, grouped, one_line};

const AFTER_HELP: &str = "\
Reads the file as the sidecar, the middleware and replay do, and says of each
limit what it admits at most, what memory it takes, and how fast new names must
come to lock others out. An error is told with line and column, all of them at
once.

With --request it says which limits hold for that request, and whose bucket it
takes from in each.

Examples:
    tollgate check limits.toml
    tollgate check limits.toml --request 'GET /api/users?page=2' \\
        --header 'x-api-key: k1' --peer 192.0.2.7
    tollgate check limits.toml --request 'POST /login' --peer 10.0.0.1 \\
        --header 'x-forwarded-for: 198.51.100.7'

Exit codes: 0 the file is right, 1 it is wrong, 2 wrong use, 3 it cannot be
read.";

/// What `tollgate check` was asked.
#[derive(Args, Clone, Debug)]
#[command(after_help = AFTER_HELP)]
#[non_exhaustive]
pub struct CheckArgs {
    /// The policy file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// A request to try: its method and its target
    #[arg(long, value_name = "METHOD TARGET")]
    pub request: Option<String>,

    /// A header of that request; may be given more than once
    #[arg(long = "header", value_name = "NAME: VALUE", requires = "request")]
    pub headers: Vec<String>,

    /// The address that it comes from, or unix
    #[arg(long, value_name = "ADDRESS", requires = "request")]
    pub peer: Option<String>,

    /// What the service says of it under a name; may be given more than once
    #[arg(long = "descriptor", value_name = "NAME=VALUE", requires = "request")]
    pub descriptors: Vec<String>,
}

/// Runs the command; `false` if the file is wrong, whose errors go to `notes`.
///
/// # Errors
///
/// A file that cannot be read, or a request that is none.
pub fn run(
    args: &CheckArgs,
    paint: Paint,
    output: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<bool, Error> {
    let name = args.file.display().to_string();
    let text = read_text(&args.file)?;
    let request = args
        .request
        .as_deref()
        .map(|line| Tried::new(line, args))
        .transpose()?;
    let policy = match Policy::from_toml(&text) {
        Ok(policy) => policy,
        Err(errors) => {
            for error in errors.iter() {
                // Whoever closed standard error does not want to know.
                _ = writeln!(
                    notes,
                    "{}:{}",
                    one_line(&name),
                    one_line(&error.to_string())
                );
            }
            return Ok(false);
        }
    };
    let report = match request {
        Some(request) => asked(&policy, &request, paint),
        None => explained(&policy, paint),
    };
    write!(output, "{report}").map_err(Error::Output)?;
    Ok(true)
}

/// The width of the labels.
const LABEL: usize = 10;

/// A line of a report, cut into several of at most 80 columns at blanks.
fn line(text: &mut String, label: &str, says: &str) {
    let mut before = label;
    let mut row = String::new();
    for word in says.split(' ') {
        let width = row.chars().count().saturating_add(word.chars().count());
        if !row.is_empty() && width >= COLUMNS.saturating_sub(LABEL) {
            // Writing to a string cannot fail.
            _ = writeln!(text, "{before:<LABEL$}{row}");
            before = "";
            row.clear();
        }
        if !row.is_empty() {
            row.push(' ');
        }
        row.push_str(word);
    }
    _ = writeln!(text, "{before:<LABEL$}{row}");
}

/// A policy file's text.
pub(crate) fn read_text(file: &std::path::Path) -> Result<String, Error> {
    let name = file.display().to_string();
    let mut bytes = Vec::new();
    // One byte more than may be, so that too many are told as that.
    let most = u64::try_from(LONGEST_FILE)
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    let read = fs::File::open(file).and_then(|file| file.take(most).read_to_end(&mut bytes));
    match read {
        Ok(_) => String::from_utf8(bytes).map_err(|_| Error::NotText { name }),
        Err(source) => Err(Error::Input { name, source }),
    }
}

/// What each limit admits and takes.
fn explained(policy: &Policy, paint: Paint) -> String {
    let mut text = String::new();
    for (at, limit) in policy.limits().iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        _ = writeln!(text, "{}", paint.head(limit.name()));
        for (label, says) in lines(limit).into_iter().chain(unbelieved(policy, limit)) {
            let mut lines = String::new();
            line(&mut lines, label, &says);
            text.push_str(&if label == "warning" {
                paint.hit(&lines)
            } else {
                lines
            });
        }
    }
    text
}

const SPANS: [(&str, Duration); 4] = [
    ("at once", Duration::ZERO),
    ("in a second", Duration::from_secs(1)),
    ("in a minute", Duration::from_secs(60)),
    ("in a day", Duration::from_secs(86_400)),
];

fn lines(limit: &Limit) -> Vec<(&'static str, String)> {
    let rule = limit.rule();
    let for_whom = match limit.left_out() {
        Some(except) => format!("{}, but not {except}", limit.requests()),
        None => limit.requests().to_string(),
    };
    let most = SPANS.map(|(span, time)| format!("{} {span}", grouped(limit.most_within(time))));
    let mut lines = vec![
        ("limit", format!("{rule} ({})", rule.algorithm())),
        ("for", for_whom),
        ("key", limit.key().to_string()),
        ("tokens", format!("at most {}", most.join(", "))),
        ("memory", memory(limit)),
    ];
    if limit.is_shadow() {
        let says = "counts what it would refuse, and refuses nothing";
        lines.insert(1, ("shadow", says.to_owned()));
    }
    for plan in limit.plans().iter() {
        let says = match plan.rule() {
            Some(rule) => format!("{}: {rule}", plan.name()),
            None => format!("{}: held to nothing", plan.name()),
        };
        lines.push(("plan", says));
    }
    if let Some(by) = limit.plans().by() {
        lines.push(("plan by", by.to_string()));
    }
    if !limit.refund_status().is_empty() {
        let says = format!(
            "what is answered with {} takes nothing",
            limit.refund_status()
        );
        lines.push(("refunds", says));
    }
    if matches!(rule, Rule::LeakyBucket(_)) {
        let says = format!(
            "held back for {} at most, refused where it would be longer",
            span(limit.max_delay())
        );
        lines.push(("delays", says));
    }
    lines.extend(forgetting(limit));
    lines
}

/// What a limit goes by and never will, since nobody is believed about it.
fn unbelieved(policy: &Policy, limit: &Limit) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if !policy.proxies().trust_nobody() {
        return lines;
    }
    if let Cost::Header(name) = limit.cost() {
        let says =
            format!("the cost is told by header:{name}, and no proxy is trusted: it is 1 always");
        lines.push(("warning", says));
    }
    if let Some(by @ PlanBy::Header(_)) = limit.plans().by() {
        let says = format!("the plan is told by {by}, and no proxy is trusted: nobody has one");
        lines.push(("warning", says));
    }
    lines
}

/// The limiter's memory with as many clients as it may have.
fn memory(limit: &Limit) -> String {
    let clients = limit.max_clients();
    let bytes = limit
        .limiter(ManualClock::default())
        .map_or(0, |limiter| limiter.memory_bytes_for(clients));
    let entries = match limit.rule() {
        Rule::SlidingLog(most, _) => format!(
            ", and {} B of log a client",
            grouped(most.saturating_mul(32))
        ),
        Rule::TokenBucket(_)
        | Rule::LeakyBucket(_)
        | Rule::FixedWindow(..)
        | Rule::AlignedWindow(..)
        | Rule::SlidingWindowCounter(..)
        | _ => String::new(),
    };
    let plural = if clients == 1 { "client" } else { "clients" };
    format!(
        "{} for {} {plural}{entries}",
        bytes_of(bytes),
        grouped_size(clients)
    )
}

fn grouped_size(count: usize) -> String {
    grouped(u64::try_from(count).unwrap_or(u64::MAX))
}

/// A number of bytes, rounded up to whole kB or MB once it is large.
fn bytes_of(bytes: usize) -> String {
    match bytes {
        0..10_000 => format!("{} B", grouped_size(bytes)),
        10_000..10_000_000 => format!("{} kB", grouped_size(bytes.div_ceil(1_000))),
        _ => format!("{} MB", grouped_size(bytes.div_ceil(1_000_000))),
    }
}

/// When clients are forgotten, how fast new names must come until some find no place, and what is
/// to be minded about it.
fn forgetting(limit: &Limit) -> Vec<(&'static str, String)> {
    let clients = limit.max_clients();
    let fills = limit.time_to_fill();
    let (idle, when) = match (limit.when_full(), limit.idle()) {
        (WhenFull::ForgetSettled, _) => (fills, "or sooner, once it has all its tokens"),
        (_, Idle::After(idle)) => (idle, "as the file says"),
        (_, Idle::Never) => {
            let then = match limit.when_full() {
                WhenFull::Share => ", and newcomers share one bucket then",
                WhenFull::Refuse | WhenFull::ForgetSettled | _ => "",
            };
            let names = grouped_size(clients);
            let full = format!("for good, once {names} names were seen{then}");
            return vec![("forgets", "nobody".to_owned()), ("full", full)];
        }
        _ => (fills, "the time to fill"),
    };
    let full = match limit.when_full() {
        WhenFull::Share => "leave some with one bucket together",
        WhenFull::Refuse | WhenFull::ForgetSettled | _ => "lock some of them out",
    };
    let clients = u128::try_from(clients).unwrap_or(u128::MAX);
    // In the shortest unit in which it is one name at least.
    let within = |seconds: u64| {
        let unit = Duration::from_secs(seconds).as_nanos();
        let names = clients.saturating_mul(unit).checked_div(idle.as_nanos());
        names.map_or(0, |names| u64::try_from(names).unwrap_or(u64::MAX))
    };
    let units = [
        (1, "second"),
        (60, "minute"),
        (3_600, "hour"),
        (86_400, "day"),
    ];
    let units = units.map(|(seconds, unit)| (within(seconds), unit));
    let seen = units.into_iter().find(|(names, _)| *names > 0);
    let (names, unit) = seen.unwrap_or((0, "day"));
    let mut lines = vec![(
        "forgets",
        format!("a client {} after its last attempt ({when})", span(idle)),
    )];
    if clients > 1 {
        let says = format!("more than {} new names a {unit} {full}", grouped(names));
        lines.push(("full", says));
    }
    if idle < fills {
        let says = format!(
            "idle is {}, and an empty bucket needs {} to fill: whoever stays away for the idle \
             time gets a full one early",
            span(idle),
            span(fills)
        );
        lines.push(("warning", says));
    }
    lines
}

/// A length of time, as in `1h 30m`.
fn span(time: Duration) -> String {
    match SignedDuration::try_from(time) {
        Ok(span) => format!("{span:#}"),
        Err(_) => format!("{time:?}"),
    }
}

/// A request that was described on the command line.
#[derive(Debug)]
struct Tried {
    method: String,
    target: String,
    peer: Peer,
    headers: Vec<(String, String)>,
    descriptors: Vec<(String, String)>,
}

impl Tried {
    fn new(line: &str, args: &CheckArgs) -> Result<Self, Error> {
        let wrong = |option: &'static str, value: &str, wanted: &'static str| Error::Option {
            option,
            value: value.to_owned(),
            wanted,
        };
        let mut words = line.split_whitespace();
        let (Some(method), Some(target), None) = (words.next(), words.next(), words.next()) else {
            return Err(wrong(
                "--request",
                line,
                "a method and a target, as in 'GET /a?b=c'",
            ));
        };
        let peer = match args.peer.as_deref() {
            None => Peer::Unknown,
            Some("unix") => Peer::Unix,
            Some(text) => {
                let address = text.parse::<IpAddr>();
                let wanted = "an address, as in 192.0.2.7, or unix";
                Peer::Address(address.map_err(|_| wrong("--peer", text, wanted))?)
            }
        };
        let split = |option, texts: &[String], by, wanted| {
            let pairs = texts.iter().map(|text| {
                let (name, value) = text
                    .split_once(by)
                    .ok_or_else(|| wrong(option, text, wanted))?;
                Ok((name.trim().to_owned(), value.trim().to_owned()))
            });
            pairs.collect::<Result<Vec<(String, String)>, Error>>()
        };
        let headers = split(
            "--header",
            &args.headers,
            ':',
            "a name, a colon and a value",
        )?;
        let descriptors = split(
            "--descriptor",
            &args.descriptors,
            '=',
            "a name, = and a value",
        )?;
        let small = headers
            .into_iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value));
        Ok(Self {
            method: method.to_owned(),
            target: target.to_owned(),
            peer,
            headers: small.collect(),
            descriptors,
        })
    }
}

impl Request for Tried {
    fn method(&self) -> &[u8] {
        self.method.as_bytes()
    }

    fn target(&self) -> &[u8] {
        self.target.as_bytes()
    }

    fn peer(&self) -> Peer {
        self.peer
    }

    fn header(&self, name: &str, each: &mut dyn FnMut(&[u8])) {
        let lines = self.headers.iter().filter(|(own, _)| own == name);
        lines.for_each(|(_, value)| each(value.as_bytes()));
    }

    fn descriptor(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        let (_, value) = self.descriptors.iter().find(|(own, _)| own == name)?;
        Some(Cow::Borrowed(value.as_bytes()))
    }
}

/// Which limits hold for a request, and whose bucket it takes from.
fn asked(policy: &Policy, request: &Tried, paint: Paint) -> String {
    let origin = policy.origin(request);
    let address = origin
        .address
        .map(|address| policy.prefixes().network(address).to_string());
    let from = match origin.source {
        Source::Peer => "the peer",
        Source::Header => "told by the proxy",
        Source::Fallback | _ => "the last proxy: its header does not tell whose request it is",
    };
    let path = Path::new(request.target.as_bytes(), policy.ignores_case());
    let path = path.map(|path| escape(path.to_string().as_bytes()));
    let mut text = String::new();
    let address = address.unwrap_or_else(|| "no address".to_owned());
    line(&mut text, "client", &format!("{address} ({from})"));
    line(
        &mut text,
        "path",
        &path.unwrap_or_else(|| "none".to_owned()),
    );
    let calls = policy.calls(request);
    for (at, limit) in policy.limits().iter().enumerate() {
        _ = writeln!(text, "\n{}", paint.head(limit.name()));
        let call = calls.iter().find(|call| call.limit == at);
        let says = match call.map(|call| &call.answer) {
            None => "does not hold for it".to_owned(),
            Some(Answer::Takes { cost, plan, .. }) => {
                let plan = plan.and_then(|plan| limit.plans().get(plan));
                let plan = plan.map_or_else(String::new, |plan| format!(" (plan {})", plan.name()));
                format!("takes {}{plan}", grouped(*cost))
            }
            Some(Answer::Unidentified) => "refuses it for want of a key".to_owned(),
            Some(Answer::Passes) => "lets it pass for want of a key".to_owned(),
            Some(_) => String::new(),
        };
        let shadow = if limit.is_shadow() {
            "only counts; "
        } else {
            ""
        };
        let shadow = call.map_or("", |_| shadow);
        line(&mut text, "holds", &format!("{shadow}{says}"));
        for (part, seen) in call.map_or_else(Vec::new, |_| policy.seen(limit, request)) {
            let says = match seen {
                Seen::Is(value) => format!("{part} {}", one_line(&format!("{value:?}"))),
                Seen::Missing => format!("{part} is missing"),
                Seen::Ambiguous | _ => format!("{part} says different things, so nothing"),
            };
            line(&mut text, "key", &says);
        }
    }
    text
}
