//! The hops that a header names, from the right: what each proxy added is at the right end.
//!
//! One pass over what is read, and nothing is kept: a walk that stops reads no further. An element
//! ends at a comma, wherever that stands; it is never extended over a comma, as a quoted string
//! would ask for, so what a client sends in front of an element cannot change how that is read.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::address::canonical;
use crate::key::is_of_token;

/// The address that a proxy saw; `None` where none is written.
pub(crate) type Hop = Option<IpAddr>;

/// More than any address takes, with brackets, zone and port.
const LONGEST: usize = 128;

/// Of `X-Forwarded-For`.
pub(crate) fn x_forwarded_for<'l>(lines: &'l [&'l [u8]]) -> impl Iterator<Item = Hop> + 'l {
    elements(lines).map(node)
}

/// Of `Forwarded`: an element without a `for` names nobody.
pub(crate) fn forwarded<'l>(lines: &'l [&'l [u8]]) -> impl Iterator<Item = Hop> + 'l {
    elements(lines).map(|element| {
        let mut named = None;
        for pair in element.split(|byte| *byte == b';').map(<[u8]>::trim_ascii) {
            if pair.is_empty() {
                continue;
            }
            // Anything but a name and a value is inside of quotes that something else cut.
            let mut halves = pair.splitn(2, |byte| *byte == b'=');
            let (name, value) = (halves.next()?.trim_ascii(), halves.next()?.trim_ascii());
            if name.is_empty() || !name.iter().all(|byte| is_of_token(*byte)) || is_cut(value) {
                return None;
            }
            if name.eq_ignore_ascii_case(b"for") {
                if named.is_some() {
                    return None;
                }
                named = Some(quoted_or_token(value)?);
            }
        }
        node(named?)
    })
}

/// Of a header that holds one address.
pub(crate) fn one<'l>(lines: &'l [&'l [u8]]) -> impl Iterator<Item = Hop> + 'l {
    let alone = match lines {
        [line] => Some(*line),
        _ => None,
    };
    alone.into_iter().map(|line| node(line.trim_ascii()))
}

/// Elements of all lines as of one list, the last one first, without blanks around them; empty ones
/// are none.
fn elements<'l>(lines: &'l [&'l [u8]]) -> impl Iterator<Item = &'l [u8]> {
    let elements = lines
        .iter()
        .rev()
        .flat_map(|line| line.rsplit(|byte| *byte == b','));
    elements
        .map(<[u8]>::trim_ascii)
        .filter(|element| !element.is_empty())
}

/// A token as it is, or what stands between quotes; `None` if it is neither.
fn quoted_or_token(value: &[u8]) -> Option<&[u8]> {
    match value {
        [b'"', inner @ .., b'"'] => {
            let plain = inner.iter().all(|byte| !matches!(byte, b'"' | b'\\'));
            plain.then_some(inner)
        }
        // RFC 9110, 5.6.2: no colon or bracket is in a token, so IPv6 needs its quotes.
        token if !token.is_empty() => token.iter().all(|byte| is_of_token(*byte)).then_some(token),
        _ => None,
    }
}

/// Whether quotes are open at either end: what looks like the next parameter is inside of them, and
/// may be the client's, whose `Host` a proxy quotes.
fn is_cut(value: &[u8]) -> bool {
    value.contains(&b'"') && quoted_or_token(value).is_none()
}

/// The address of a node: alone, or with a port; of IPv6 in brackets or not, its zone left out.
/// Whatever is no address, as `unknown` and `_hidden`, is `None`.
fn node(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text)
        .ok()
        .filter(|text| text.len() <= LONGEST)?;
    let text = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or(text);
    let address = if let Some(bracketed) = text.strip_prefix('[') {
        let (inner, behind) = bracketed.split_once(']')?;
        behind
            .is_empty()
            .then_some(())
            .or_else(|| is_port(behind.strip_prefix(':')?))?;
        IpAddr::V6(ipv6(inner)?)
    } else if let Some(address) = ipv6(text) {
        IpAddr::V6(address)
    } else {
        let (address, port) = match text.split_once(':') {
            Some((address, port)) => (address, Some(port)),
            None => (text, None),
        };
        port.map_or(Some(()), is_port)?;
        IpAddr::V4(address.parse::<Ipv4Addr>().ok()?)
    };
    Some(canonical(address, false))
}

fn ipv6(text: &str) -> Option<Ipv6Addr> {
    let (address, zone) = match text.split_once('%') {
        Some((address, zone)) => (address, Some(zone)),
        None => (text, None),
    };
    zone.is_none_or(|zone| !zone.is_empty()).then_some(())?;
    address.parse().ok()
}

/// Digits, or an obfuscated port of `Forwarded`.
fn is_port(text: &str) -> Option<()> {
    let digits = (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let hidden = text.len() > 1 && text.starts_with('_');
    (digits || hidden).then_some(())
}
