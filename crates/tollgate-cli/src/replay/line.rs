//! One line of an access log: who asked, and when.

use std::fmt;

use jiff::civil::DateTime;
use jiff::tz::Offset;

/// The longest client name that is read, in bytes: no address or host name comes near it.
pub const MOST_CLIENT_BYTES: usize = 1_024;

/// The first second that is not read: 2500-01-01T00:00:00Z. Nanoseconds since 1970 fit a `u64`
/// until 2554.
const END_SECOND: i64 = 16_725_225_600;

/// The longest text between the brackets that is looked at; a time with a fraction to the
/// nanosecond and an offset is 36 bytes.
const MOST_TIME_BYTES: usize = 40;

/// What a replay needs of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The first field, as it is.
    pub client: &'a [u8],
    /// The request, as it stands between its quotes.
    pub request: &'a [u8],
    /// The status that was answered with.
    pub status: u16,
    /// Nanoseconds since 1970-01-01T00:00:00Z.
    pub at_ns: u64,
    /// Whether the time had an offset; one without is read as UTC.
    pub has_offset: bool,
}

/// Why a line was not read, in the order in which they are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// It begins with a space or tab, as the rest of a record that was broken in two does.
    Continuation,
    /// Nothing on it, or only spaces.
    Empty,
    /// More bytes than [`MOST_LINE_BYTES`](super::lines::MOST_LINE_BYTES).
    LineTooLong,
    /// The first field is longer than [`MOST_CLIENT_BYTES`].
    ClientTooLong,
    /// No `[` where the common format has its time.
    NoTime,
    /// What stands in the brackets is no time.
    BadTime,
    /// Before 1970 or not before 2500.
    TimeOutOfRange,
    /// No quote after the time.
    NoRequest,
    /// The request's quote is never closed: the line was cut short.
    OpenRequest,
    /// The request is not followed by a status and a size.
    NoStatus,
}

impl Reason {
    /// The name in JSON; it does not change.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Continuation => "continuation",
            Self::Empty => "empty",
            Self::LineTooLong => "line_too_long",
            Self::ClientTooLong => "client_too_long",
            Self::NoTime => "no_time",
            Self::BadTime => "bad_time",
            Self::TimeOutOfRange => "time_out_of_range",
            Self::NoRequest => "no_request",
            Self::OpenRequest => "open_request",
            Self::NoStatus => "no_status",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Continuation => "continuation of the line before",
            Self::Empty => "empty line",
            Self::LineTooLong => "longer than 64 KiB",
            Self::ClientTooLong => "client name longer than 1 KiB",
            Self::NoTime => "no [time] after client, ident and user",
            Self::BadTime => "no time like 21/Jun/2026:23:49:36 +0200",
            Self::TimeOutOfRange => "time outside 1970 to 2499",
            Self::NoRequest => "no quoted request after the time",
            Self::OpenRequest => "request without its closing quote",
            Self::NoStatus => "no status and size after the request",
        })
    }
}

/// Reads one line of the common or combined format, without its newline:
/// `client ident user [time] "request" status size`, and whatever follows.
///
/// What follows the size is not looked at: a referer or an agent cut short does not undo the
/// request. The user may hold spaces and brackets, because servers log what the client claims to
/// be; they escape quotes, so only the true time is followed by one.
///
/// ```
/// use tollgate_cli::replay::line::{Reason, parse};
///
/// let line = parse(br#"192.0.2.1 - - [01/Jan/1970:01:00:09 +0100] "GET / HTTP/1.1" 200 5"#)?;
/// assert_eq!((line.client, line.at_ns), (&b"192.0.2.1"[..], 9_000_000_000));
/// assert_eq!(parse(br#" "curl/7.54.0""#), Err(Reason::Continuation));
/// # Ok::<(), Reason>(())
/// ```
///
/// # Errors
///
/// The first [`Reason`] found for which the line is no record.
pub fn parse(line: &[u8]) -> Result<Line<'_>, Reason> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let first = *line.trim_ascii().first().ok_or(Reason::Empty)?;
    if !line.starts_with(&[first]) {
        return Err(Reason::Continuation);
    }
    let (client, rest) = split_at_space(line).ok_or(Reason::NoTime)?;
    if client.len() > MOST_CLIENT_BYTES {
        return Err(Reason::ClientTooLong);
    }
    let (time, behind) = find_time(rest)?;
    let (request, status) = find_request(behind)?;
    Ok(Line {
        client,
        request,
        status,
        at_ns: time.at_ns,
        has_offset: time.has_offset,
    })
}

/// Finds the first `[time] "` that has an ident and a user before it, and what follows its quote.
fn find_time(rest: &[u8]) -> Result<(Time, &[u8]), Reason> {
    let mut failure = None;
    let mut fields = 0_usize;
    let mut in_field = false;
    for (position, &byte) in rest.iter().enumerate() {
        let starts_field = byte != b' ' && !in_field;
        in_field = byte != b' ';
        if !starts_field {
            continue;
        }
        if byte == b'[' && fields >= 2 {
            match time_at(rest.get(position..).unwrap_or_default()) {
                Ok(found) => return Ok(found),
                Err(reason) => _ = failure.get_or_insert(reason),
            }
        }
        fields = fields.saturating_add(1);
    }
    Err(failure.unwrap_or(Reason::NoTime))
}

/// The time in the brackets that `text` begins with, and what follows the quote after them.
///
/// Only the first few bytes are searched for the bracket, so a line full of them costs no more.
fn time_at(text: &[u8]) -> Result<(Time, &[u8]), Reason> {
    let inner = text.strip_prefix(b"[").ok_or(Reason::NoTime)?;
    let end = inner
        .iter()
        .take(MOST_TIME_BYTES)
        .position(|&byte| byte == b']');
    let (time, rest) = end
        .and_then(|end| inner.split_at_checked(end))
        .ok_or(Reason::BadTime)?;
    let time = Time::parse(time)?;
    let request = rest.strip_prefix(b"] \"").ok_or(Reason::NoRequest)?;
    Ok((time, request))
}

/// The request up to the quote that closes it, and the status that follows with a size.
///
/// A quote after a backslash is part of the request. One that no status follows is too: old
/// servers did not escape them.
fn find_request(request: &[u8]) -> Result<(&[u8], u16), Reason> {
    let mut reason = Reason::OpenRequest;
    let mut escaped = false;
    for (position, &byte) in request.iter().enumerate() {
        if byte == b'"' && !escaped {
            let after = position
                .checked_add(1)
                .and_then(|start| request.get(start..));
            if let Some(status) = status_of(after.unwrap_or_default()) {
                let request = request.get(..position).ok_or(Reason::OpenRequest)?;
                return Ok((request, status));
            }
            reason = Reason::NoStatus;
        }
        escaped = byte == b'\\' && !escaped;
    }
    Err(reason)
}

/// The status, if the text begins with a space, three digits, a space, and digits or a dash.
fn status_of(text: &[u8]) -> Option<u16> {
    let fields = text.strip_prefix(b" ")?;
    let mut fields = fields.splitn(3, |&byte| byte == b' ');
    let status = fields.next().unwrap_or_default();
    let size = fields.next().unwrap_or_default();
    let all_digits = |field: &[u8]| !field.is_empty() && field.iter().all(u8::is_ascii_digit);
    let is_status = status.len() == 3 && all_digits(status);
    let has_size = size == b"-" || all_digits(size);
    let digits = status
        .iter()
        .map(|digit| u16::from(digit.wrapping_sub(b'0')));
    let status = digits.fold(0, |status: u16, digit| {
        status.wrapping_mul(10).wrapping_add(digit)
    });
    (is_status && has_size).then_some(status)
}

fn split_at_space(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|&byte| byte == b' ')?;
    text.split_at_checked(at)
}

#[derive(Clone, Copy)]
struct Time {
    at_ns: u64,
    has_offset: bool,
}

impl Time {
    /// Reads `21/Jun/2026:23:49:36 +0200`, also with a fraction of a second before the offset, as
    /// servers told to log one write it.
    fn parse(text: &[u8]) -> Result<Self, Reason> {
        let (civil, rest) = text.split_at_checked(20).ok_or(Reason::BadTime)?;
        let civil = parse_civil(civil).ok_or(Reason::BadTime)?;
        let (fraction_ns, rest) = match rest.strip_prefix(b".") {
            Some(fraction) => parse_fraction(fraction).ok_or(Reason::BadTime)?,
            None => (0, rest),
        };
        let has_offset = !rest.is_empty();
        let offset = if has_offset {
            parse_offset(rest)
        } else {
            Some(Offset::UTC)
        };
        let second = offset
            .ok_or(Reason::BadTime)?
            .to_timestamp(civil)
            .map_err(|_| Reason::TimeOutOfRange)?
            .as_second();
        let at_ns = (0..END_SECOND).contains(&second).then(|| {
            u64::try_from(second)
                .ok()?
                .checked_mul(1_000_000_000)?
                .checked_add(fraction_ns)
        });
        Ok(Self {
            at_ns: at_ns.flatten().ok_or(Reason::TimeOutOfRange)?,
            has_offset,
        })
    }
}

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// `21/Jun/2026:23:49:36`. A leap second, 60, is read as 59: the records before it stay before it.
fn parse_civil(text: &[u8]) -> Option<DateTime> {
    let &[
        d1,
        d2,
        b'/',
        m1,
        m2,
        m3,
        b'/',
        y1,
        y2,
        y3,
        y4,
        b':',
        ref time @ ..,
    ] = text
    else {
        return None;
    };
    let &[h1, h2, b':', n1, n2, b':', s1, s2] = time else {
        return None;
    };
    let month = (1..)
        .zip(MONTHS)
        .find(|(_, name)| name.eq_ignore_ascii_case(&[m1, m2, m3]))?
        .0;
    let two = |digits: [u8; 2]| i8::try_from(number(&digits)?).ok();
    let year = i16::try_from(number(&[y1, y2, y3, y4])?).ok()?;
    let second = two([s1, s2])?;
    let second = if second == 60 { 59 } else { second };
    DateTime::new(
        year,
        month,
        two([d1, d2])?,
        two([h1, h2])?,
        two([n1, n2])?,
        second,
        0,
    )
    .ok()
}

/// One to nine digits as nanoseconds, and what follows them.
fn parse_fraction(text: &[u8]) -> Option<(u64, &[u8])> {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at_checked(length)?;
    let missing = 9_u32.checked_sub(u32::try_from(length).ok()?)?;
    Some((
        number(digits)?.checked_mul(10_u64.checked_pow(missing)?)?,
        rest,
    ))
}

/// ` +0200`: a space, a sign, hours and minutes east of UTC.
fn parse_offset(text: &[u8]) -> Option<Offset> {
    let &[b' ', sign, h1, h2, m1, m2] = text else {
        return None;
    };
    let (hours, minutes) = (number(&[h1, h2])?, number(&[m1, m2])?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    let seconds = hours
        .checked_mul(60)?
        .checked_add(minutes)?
        .checked_mul(60)?;
    let seconds = i32::try_from(seconds).ok()?;
    match sign {
        b'+' => Offset::from_seconds(seconds).ok(),
        b'-' => Offset::from_seconds(seconds.checked_neg()?).ok(),
        _ => None,
    }
}

/// Decimal digits and nothing else.
fn number(digits: &[u8]) -> Option<u64> {
    let add = |sum: u64, &digit: &u8| {
        let digit = digit.is_ascii_digit().then(|| digit.wrapping_sub(b'0'))?;
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    };
    if digits.is_empty() {
        None
    } else {
        digits.iter().try_fold(0, add)
    }
}
