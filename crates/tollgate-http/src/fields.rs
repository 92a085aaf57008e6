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

/// A field's value. One allocation does for all of an answer, but for long lists of policies.
type Text = Vec<u8>;

/// Of two limits and their figures.
const USUAL_LENGTH: usize = 96;

/// Which field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    RateLimitPolicy,
    RateLimit,
    RetryAfter,
    LegacyLimit,
    LegacyRemaining,
    LegacyReset,
    Expose,
}

/// The header of an answer, in a framework's terms.
pub(crate) trait Header {
    /// Whether it has a field.
    fn has(&self, name: Name) -> bool;
    /// Adds a line to those that are there, if each of them may have it beside it. What is no value
    /// is left out.
    fn add(&mut self, name: Name, value: &[u8], beside: impl Fn(&[u8]) -> bool);
    /// Puts a line in the place of those that are there.
    fn put(&mut self, name: Name, value: &[u8]);
}

/// Writes all fields that a verdict makes for an answer, whichever it is, beside those that the
/// answer has.
pub(crate) fn write(verdict: &Verdict, headers: Headers, header: &mut impl Header) {
    let shown = verdict.shown();
    let mut text = Text::with_capacity(USUAL_LENGTH);
    policies(verdict, shown.as_ref(), &mut text);
    let mut is_any = !text.is_empty();
    list(Name::RateLimitPolicy, &text, header);
    if let Some(shown) = &shown
        && let Some(figures) = Figures::of(shown)
    {
        text.clear();
        figures.item(shown, &mut text);
        list(Name::RateLimit, &text, header);
        if let Some(reset) = headers.legacy {
            legacy(shown, &figures, reset, header);
        }
    }
    if let Some(retry_after) = retry_after(verdict) {
        is_any = true;
        put_number(Name::RetryAfter, retry_after, header);
    }
    if headers.exposed && is_any {
        let names: &[u8] = match headers.legacy {
            None => b"RateLimit, RateLimit-Policy, Retry-After",
            Some(_) => {
                b"RateLimit, RateLimit-Policy, Retry-After, X-RateLimit-Limit, \
                  X-RateLimit-Remaining, X-RateLimit-Reset"
            }
        };
        header.add(Name::Expose, names, |_| true);
    }
}

/// Another line of a list, unless what is there is no list of strings, as in drafts before the
/// eighth: with ours it would be nothing at all.
fn list(name: Name, value: &[u8], header: &mut impl Header) {
    if !value.is_empty() {
        header.add(name, value, |line| line.trim_ascii().starts_with(b"\""));
    }
}

/// All three fields, or none if any is there.
fn legacy(shown: &Shown<'_>, figures: &Figures, reset: Reset, header: &mut impl Header) {
    let fields = [
        (Name::LegacyLimit, shown.burst()),
        // Tokens, as the limit is: these fields have no place to tell what a request costs.
        (Name::LegacyRemaining, shown.tokens_left()),
        (Name::LegacyReset, figures.reset(shown, reset)),
    ];
    if fields.iter().any(|(name, _)| header.has(*name)) {
        return;
    }
    for (name, value) in fields {
        put_number(name, value, header);
    }
}

fn put_number(name: Name, value: u64, header: &mut impl Header) {
    header.put(name, itoa::Buffer::new().format(value).as_bytes());
}

fn add_number(before: &str, number: u64, to: &mut Text) {
    to.extend_from_slice(before.as_bytes());
    to.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn add_name(shown: &Shown<'_>, to: &mut Text) {
    // Of letters, digits, and `_`, `.` and `-`: nothing in it that a string escapes.
    to.push(b'"');
    to.extend_from_slice(shown.limit.name().as_bytes());
    to.push(b'"');
}

/// Whole seconds to wait before a refused request is worth making again: rounded up, and at least
/// 1.
/// `None` of one that is not refused, or for which no wait can be promised to suffice.
pub(crate) fn retry_after(verdict: &Verdict) -> Option<u64> {
    let wait = verdict.refused_by()?.again_after?;
    Some(seconds(wait).max(1))
}

/// The limits that were asked, in their order; the one that is shown among them.
fn policies(verdict: &Verdict, shown: Option<&Shown<'_>>, to: &mut Text) {
    let is_shown =
        |told: &Shown<'_>| shown.is_some_and(|shown| std::ptr::eq(shown.limit, told.limit));
    let mut room = MOST_POLICIES.saturating_sub(1);
    for told in verdict.told() {
        if !is_shown(&told) {
            if room == 0 {
                continue;
            }
            room = room.saturating_sub(1);
        }
        if !to.is_empty() {
            to.extend_from_slice(b", ");
        }
        policy(&told, to);
    }
}

/// A limit as a quota of whole tokens in whole seconds that is no more than its rate: its burst in
/// the time that earns it, or where that is less than a second, what a second earns, rounded down.
fn policy(shown: &Shown<'_>, to: &mut Text) {
    add_name(shown, to);
    let (burst, (tokens, period_ns)) = (shown.burst(), rate(shown.rule));
    let earned_ns = earned_in(burst, (tokens, period_ns));
    if earned_ns >= u128::from(SECOND_NS) {
        add_number(";q=", burst.min(LARGEST), to);
        match div_ceil(earned_ns, SECOND_NS) {
            Some(window) if window <= LARGEST => add_number(";w=", window, to),
            // Without a window, which is optional: in one that fits, it would be too many.
            Some(_) | None => {}
        }
        return;
    }
    let in_a_second = u128::from(tokens).saturating_mul(SECOND_NS.into());
    let quota = in_a_second.checked_div(period_ns);
    let quota = quota.and_then(|tokens| u64::try_from(tokens).ok());
    add_number(";q=", quota.unwrap_or(LARGEST).min(LARGEST), to);
    add_number(";w=1;tollgate-burst=", burst.min(LARGEST), to);
}

const SECOND_NS: u64 = 1_000_000_000;

/// Nanoseconds in which so many tokens are earned at that rate, rounded up.
fn earned_in(tokens: u64, (rate, period_ns): (u64, u128)) -> u128 {
    let product = u128::from(tokens).saturating_mul(period_ns);
    let rate = rate.max(1);
    match div_ceil(product, rate) {
        Some(nanoseconds) => nanoseconds.into(),
        None => product.div_ceil(rate.into()),
    }
}

/// Rounded up; `None` if it does not fit. Numbers of 64 bits are divided as such: with 128 it takes
/// several times as long.
fn div_ceil(number: u128, by: u64) -> Option<u64> {
    match u64::try_from(number) {
        Ok(number) => Some(number.div_ceil(by)),
        Err(_) => u64::try_from(number.div_ceil(by.into())).ok(),
    }
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
        _ => (rule.burst(), SECOND_NS.into()),
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
            let spent = requests.saturating_mul(shown.cost.max(1));
            let earned = div_ceil(earned_in(spent, rate(shown.rule)), SECOND_NS);
            let earned = earned.unwrap_or(u64::MAX);
            Some(earned.max(seconds(shown.decision.reset_after())))
        };
        let until_more = until_more.map(|seconds| seconds.clamp(1, LARGEST));
        Some(Self {
            requests,
            until_more,
        })
    }

    /// As an item of `RateLimit`.
    fn item(&self, shown: &Shown<'_>, to: &mut Text) {
        add_name(shown, to);
        add_number(";r=", self.requests, to);
        if let Some(seconds) = self.until_more {
            add_number(";t=", seconds, to);
        }
        if shown.cost > 1 {
            // In which unit `r` is, where it is not that of `q`.
            add_number(";tollgate-cost=", shown.cost.min(LARGEST), to);
        }
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
