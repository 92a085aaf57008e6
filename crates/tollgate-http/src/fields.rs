//! The header fields of an answer.
//!
//! `RateLimit-Policy` and `RateLimit` are those of draft-ietf-httpapi-ratelimit-headers-10, lists
//! of strings with parameters (RFC 9651); `Retry-After` is that of RFC 9110; `X-RateLimit-*` have
//! no standard, and are left out unless asked for. All that these say is decided here.

use std::time::Duration;

use tollgate_policy::verdict::Shown;
use tollgate_policy::{Rule, Verdict};

/// The largest integer of a structured field (RFC 9651, section 3.3.1).
const LARGEST: u64 = 999_999_999_999_999;
/// The most policies that one answer lists, so that its header stays below what proxies take.
pub const MOST_POLICIES: usize = 16;

/// What the header of an answer is to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    legacy: Option<Reset>,
    exposed: bool,
}

/// In which unit `X-RateLimit-Reset` tells when the client is as new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reset {
    /// Seconds from now, as Kong and Envoy send them.
    Delta,
    /// Seconds since the Unix epoch, as GitHub sends them: by the limiter's clock.
    Epoch,
}

impl Headers {
    /// `RateLimit-Policy` and `RateLimit` on every answer, `Retry-After` on a refusal.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset` too, of the one limit that `RateLimit` is
    /// about; they have no list form, so where the service sends any of them, it is left alone.
    #[must_use]
    pub fn legacy(self, reset: Reset) -> Self {
        let legacy = Some(reset);
        Self { legacy, ..self }
    }

    /// `Access-Control-Expose-Headers`, without which browsers hide the others from scripts of
    /// other origins. A CORS middleware around this one may replace it: name them there then.
    #[must_use]
    pub fn exposed(self, exposed: bool) -> Self {
        Self { exposed, ..self }
    }
}

/// What becomes of a field that the answer has already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meeting {
    /// Another line of the same list; nothing, if what is there is no such list.
    Listed,
    /// Another line.
    Added,
    /// All fields of this kind are left out, if any is there.
    Given,
    /// It is replaced.
    Replaced,
}

/// One field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// In small letters.
    pub(crate) name: &'static str,
    pub(crate) value: String,
    pub(crate) meeting: Meeting,
}

impl Field {
    pub(crate) fn new(name: &'static str, value: impl ToString, meeting: Meeting) -> Self {
        let value = value.to_string();
        Self {
            name,
            value,
            meeting,
        }
    }

    /// Whether this is to be written into an answer that has those lines of the same name.
    pub(crate) fn joins<'v>(&self, lines: impl Iterator<Item = &'v [u8]>) -> bool {
        match self.meeting {
            // A list of strings: of the drafts before the seventh it is a dictionary.
            Meeting::Listed => lines
                .map(<[u8]>::trim_ascii)
                .all(|line| line.starts_with(b"\"")),
            Meeting::Added | Meeting::Given | Meeting::Replaced => true,
        }
    }
}

/// All fields that a verdict makes for an answer, whichever it is.
pub(crate) fn of(verdict: &Verdict, headers: Headers) -> Vec<Field> {
    let mut fields = Vec::with_capacity(4);
    let shown = verdict.shown();
    if let Some(policies) = policies(verdict, shown.as_ref()) {
        fields.push(Field::new("ratelimit-policy", policies, Meeting::Listed));
    }
    if let Some(shown) = &shown {
        let figures = Figures::of(shown);
        if let Some(figures) = &figures {
            fields.push(Field::new(
                "ratelimit",
                figures.item(shown),
                Meeting::Listed,
            ));
        }
        if let (Some(reset), Some(figures)) = (headers.legacy, figures) {
            let legacy = [
                ("x-ratelimit-limit", shown.burst()),
                ("x-ratelimit-remaining", figures.requests),
                ("x-ratelimit-reset", figures.reset(shown, reset)),
            ];
            let legacy = legacy.map(|(name, value)| Field::new(name, value, Meeting::Given));
            fields.extend(legacy);
        }
    }
    if let Some(retry_after) = retry_after(verdict) {
        fields.push(Field::new("retry-after", retry_after, Meeting::Replaced));
    }
    if headers.exposed && !fields.is_empty() {
        let names = match headers.legacy {
            None => "RateLimit, RateLimit-Policy, Retry-After",
            Some(_) => {
                "RateLimit, RateLimit-Policy, Retry-After, X-RateLimit-Limit, \
                 X-RateLimit-Remaining, X-RateLimit-Reset"
            }
        };
        let expose = Field::new("access-control-expose-headers", names, Meeting::Added);
        fields.push(expose);
    }
    fields
}

/// Whole seconds to wait before a refused request is worth making again: rounded up, and at least
/// 1.
/// `None` of one that is not refused, or for which no wait can be promised to suffice.
pub(crate) fn retry_after(verdict: &Verdict) -> Option<u64> {
    let wait = verdict.refused_by()?.again_after?;
    Some(seconds(wait).max(1))
}

/// The limits that were asked, in their order; the one that is shown among them.
fn policies(verdict: &Verdict, shown: Option<&Shown<'_>>) -> Option<String> {
    let mut list = String::new();
    let is_shown = |told: &Shown<'_>| shown.is_some_and(|shown| shown.limit == told.limit);
    let mut room = MOST_POLICIES.saturating_sub(1);
    for told in verdict.told() {
        if !is_shown(&told) {
            if room == 0 {
                continue;
            }
            room = room.saturating_sub(1);
        }
        if !list.is_empty() {
            list.push_str(", ");
        }
        list.push_str(&policy(&told));
    }
    (!list.is_empty()).then_some(list)
}

/// A limit as a quota of whole tokens in whole seconds that is no more than its rate: its burst in
/// the time that earns it, or where that is less than a second, what a second earns, rounded down.
fn policy(shown: &Shown<'_>) -> String {
    let name = shown.limit.name();
    let (burst, (tokens, period_ns)) = (shown.burst(), rate(shown.rule));
    let earned_ns = product(burst, period_ns).div_ceil(u128::from(tokens.max(1)));
    if earned_ns >= SECOND_NS {
        let quota = burst.min(LARGEST);
        return match u64::try_from(earned_ns.div_ceil(SECOND_NS)) {
            Ok(window) if window <= LARGEST => format!("\"{name}\";q={quota};w={window}"),
            // Without a window, which is optional: in one that fits, it would be too many.
            Ok(_) | Err(_) => format!("\"{name}\";q={quota}"),
        };
    }
    let in_a_second = u128::from(tokens)
        .saturating_mul(SECOND_NS)
        .checked_div(period_ns);
    let quota = in_a_second.and_then(|tokens| u64::try_from(tokens).ok());
    let (quota, burst) = (quota.unwrap_or(LARGEST).min(LARGEST), burst.min(LARGEST));
    format!("\"{name}\";q={quota};w=1;tollgate-burst={burst}")
}

const SECOND_NS: u128 = 1_000_000_000;

fn product(tokens: u64, period_ns: u128) -> u128 {
    u128::from(tokens).saturating_mul(period_ns)
}

/// Tokens, and the nanoseconds in which so many are earned; of a window its limit and its length.
fn rate(rule: Rule) -> (u64, u128) {
    match rule {
        Rule::TokenBucket(quota) | Rule::LeakyBucket(quota) => {
            (quota.rate().tokens(), quota.rate().period().as_nanos())
        }
        Rule::FixedWindow(limit, window)
        | Rule::AlignedWindow(limit, window)
        | Rule::SlidingLog(limit, window)
        | Rule::SlidingWindowCounter(limit, window) => (limit, window.as_nanos()),
        // No rule that this crate knows nothing of is ever put to use by it.
        _ => (rule.burst(), SECOND_NS),
    }
}

/// What a client may do next.
struct Figures {
    /// Requests like this one that pass at once.
    requests: u64,
    /// Whole seconds; `None` if no wait helps.
    until_more: Option<u64>,
}

impl Figures {
    /// `None` if no bucket was looked at.
    fn of(shown: &Shown<'_>) -> Option<Self> {
        use tollgate::Decision;
        let requests = match shown.decision {
            Decision::Allowed { .. } | Decision::Limited { .. } => shown.requests_left(),
            Decision::Banned { .. } => 0,
            Decision::ClientLimit | Decision::TooLarge { .. } | _ => return None,
        };
        let requests = requests.min(LARGEST);
        let until_more = if requests == 0 {
            shown.again_after.map(seconds)
        } else {
            // Whoever spreads those over that time is within the rate.
            let (tokens, period_ns) = rate(shown.rule);
            let spent = requests.saturating_mul(shown.cost.max(1));
            let earned_ns = product(spent, period_ns).div_ceil(u128::from(tokens.max(1)));
            let earned = u64::try_from(earned_ns.div_ceil(SECOND_NS)).unwrap_or(u64::MAX);
            Some(earned.max(seconds(shown.decision.reset_after())))
        };
        let until_more = until_more.map(|seconds| seconds.clamp(1, LARGEST));
        Some(Self {
            requests,
            until_more,
        })
    }

    /// As an item of `RateLimit`.
    fn item(&self, shown: &Shown<'_>) -> String {
        let mut item = format!("\"{}\";r={}", shown.limit.name(), self.requests);
        if let Some(seconds) = self.until_more {
            item.push_str(&format!(";t={seconds}"));
        }
        if shown.cost > 1 {
            // In which unit `r` is, where it is not that of `q`.
            let cost = shown.cost.min(LARGEST);
            item.push_str(&format!(";tollgate-cost={cost}"));
        }
        item
    }

    /// When the client is as new; of one that is banned, when that ends.
    fn reset(&self, shown: &Shown<'_>, unit: Reset) -> u64 {
        let ban = shown
            .again_after
            .filter(|_| shown.decision.reset_after().is_zero());
        let wait = shown.decision.reset_after().max(ban.unwrap_or_default());
        match unit {
            Reset::Delta => seconds(wait),
            Reset::Epoch => {
                let now = Duration::from_nanos(shown.at.as_nanos());
                seconds(now.saturating_add(wait))
            }
        }
    }
}

/// Whole seconds, rounded up.
fn seconds(time: Duration) -> u64 {
    let begun = u64::from(time.subsec_nanos() > 0);
    time.as_secs().saturating_add(begun)
}
