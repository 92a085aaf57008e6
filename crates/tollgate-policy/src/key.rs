//! Whose bucket a request takes from.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use smallvec::SmallVec;

use crate::address::Network;
use crate::path::{Path, decoded};

/// The most parts of a key.
pub const MOST_PARTS: usize = 8;
/// The longest name of a header, cookie, parameter or descriptor, in bytes.
pub const LONGEST_NAME: usize = 128;

/// Something about a request that tells clients apart.
///
/// Written `ip`, `path`, `method`, `header:x-api-key`, `cookie:session`, `query:key`,
/// `descriptor:tenant`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Part {
    /// The [network](Network) of the client's address.
    Ip,
    /// The [path](crate::path).
    Path,
    /// The method; `HEAD` is `GET`, and those that HTTP does not define are one.
    Method,
    /// A header's value, without blanks around it. Of `authorization` the scheme's spelling does
    /// not count, and of `Basic` and `Digest` credentials only the user name does; of schemes with
    /// other parameters, as of signatures, none is told.
    Header(String),
    /// A cookie's value, without quotes around it and with `%XX` decoded.
    Cookie(String),
    /// A parameter of the query; its name and value are decoded.
    Query(String),
    /// What the service itself says: see [`Request::descriptor`](crate::Request::descriptor).
    Descriptor(String),
}

impl FromStr for Part {
    type Err = PartError;

    fn from_str(text: &str) -> Result<Self, PartError> {
        let (kind, name) = match text.split_once(':') {
            None => (text, None),
            Some((kind, name)) => (kind, Some(name)),
        };
        let part = match (kind, name) {
            ("ip", None) => return Ok(Self::Ip),
            ("path", None) => return Ok(Self::Path),
            ("method", None) => return Ok(Self::Method),
            ("header", Some(name)) => Self::Header(name.to_ascii_lowercase()),
            ("cookie", Some(name)) => Self::Cookie(name.to_owned()),
            ("query", Some(name)) => Self::Query(name.to_owned()),
            ("descriptor", Some(name)) => Self::Descriptor(name.to_owned()),
            ("header" | "cookie" | "query" | "descriptor", None) => return Err(PartError::NoName),
            _ => return Err(PartError::Unknown),
        };
        let is_token =
            |name: &str| (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(is_of_token);
        match part.name() {
            Some(name) if !is_token(name) => Err(PartError::Name),
            _ => Ok(part),
        }
    }
}

impl Part {
    /// What is told apart by a name, its name.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Ip | Self::Path | Self::Method => None,
            Self::Header(name)
            | Self::Cookie(name)
            | Self::Query(name)
            | Self::Descriptor(name) => Some(name),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip => f.write_str("ip"),
            Self::Path => f.write_str("path"),
            Self::Method => f.write_str("method"),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Cookie(name) => write!(f, "cookie:{name}"),
            Self::Query(name) => write!(f, "query:{name}"),
            Self::Descriptor(name) => write!(f, "descriptor:{name}"),
        }
    }
}

/// What is no part of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartError {
    /// None of the words.
    Unknown,
    /// `header`, `cookie`, `query` or `descriptor` without a name.
    NoName,
    /// A name that is no token, or longer than 128 bytes.
    Name,
    /// More than eight parts.
    TooMany,
}

impl fmt::Display for PartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => {
                "not ip, path, method, header:NAME, cookie:NAME, query:NAME or descriptor:NAME"
            }
            Self::NoName => "a name is missing, as in \"header:x-api-key\"",
            Self::TooMany => "a key has 8 parts at most",
            Self::Name => "a name is 1 to 128 letters, digits or any of !#$%&'*+-.^_`|~",
        })
    }
}

impl std::error::Error for PartError {}

/// Bytes that need no allocation while they are as few as names and addresses have.
pub(crate) type Short = SmallVec<[u8; 30]>;

/// What a request has of one part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Is(Short),
    Absent,
    /// Several at once, or something that different services read differently: whoever sends it
    /// would choose among buckets. Never passed by.
    Ambiguous,
}

impl Value {
    /// Another one beside it: the same if they are alike, else neither.
    fn add(&mut self, other: Short) {
        // Nothing is no value.
        if other.is_empty() {
            return;
        }
        match self {
            Self::Absent => *self = Self::Is(other),
            Self::Is(value) if *value == other => {}
            Self::Is(_) | Self::Ambiguous => *self = Self::Ambiguous,
        }
    }

    pub(crate) fn of_network(network: Network) -> Self {
        let mut bytes = Short::new();
        network.encode(&mut bytes);
        Self::Is(bytes)
    }

    /// Of a client's name that is no address: no network's bytes begin with 0.
    pub(crate) fn of_name(name: &[u8]) -> Self {
        Self::Is([&[0], name].concat().into())
    }

    /// A target without a path, as of `OPTIONS *`, is a value of its own: with `pass` it would
    /// otherwise be a way round.
    pub(crate) fn of_path(path: Option<&Path<'_>>) -> Self {
        let mut bytes = Short::new();
        match path {
            Some(path) => path.encode(&mut bytes),
            None => bytes.push(b'*'),
        }
        Self::Is(bytes)
    }

    pub(crate) fn of_method(method: &[u8]) -> Self {
        Self::Is(known_method(method).unwrap_or("*").as_bytes().into())
    }

    /// Adds a line of a header; an empty one is none.
    pub(crate) fn add_header(&mut self, name: &str, line: &[u8]) {
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        match name {
            "authorization" => match credentials(line) {
                Some(credentials) => self.add(credentials.into()),
                None => *self = Self::Ambiguous,
            },
            _ => self.add(line.into()),
        }
    }

    /// Adds what a line of the header `cookie` says of one cookie.
    pub(crate) fn add_cookies(&mut self, name: &str, line: &[u8]) {
        for pair in line.split(|byte| *byte == b';') {
            let Some((own, text)) = halves(pair, b'=') else {
                continue;
            };
            if own.trim_ascii() == name.as_bytes() {
                let bare = match text.trim_ascii() {
                    [b'"', inner @ .., b'"'] => inner,
                    text => text,
                };
                // Services differ about quotes and what is escaped between them.
                if bare.iter().any(|byte| matches!(byte, b'"' | b'\\')) {
                    *self = Self::Ambiguous;
                } else {
                    self.add((&*decoded(bare)).into());
                }
            }
        }
    }

    /// Of a parameter in the query of a target.
    pub(crate) fn of_query(name: &str, target: &[u8]) -> Self {
        let Some((_, query)) = halves(until(target, b'#'), b'?') else {
            return Self::Absent;
        };
        let read = |is_end: fn(&u8) -> bool| {
            let mut value = Self::Absent;
            for pair in query.split(is_end) {
                let (own, text) = halves(pair, b'=').unwrap_or((pair, b""));
                if &*form_decoded(own) == name.as_bytes() {
                    value.add((&*form_decoded(text)).into());
                }
            }
            value
        };
        let value = read(|byte| *byte == b'&');
        // Some services end a parameter at a semicolon too.
        if query.contains(&b';') && read(|byte| matches!(byte, b'&' | b';')) != value {
            return Self::Ambiguous;
        }
        value
    }
}

/// A method that HTTP defines, in its own spelling; `HEAD` is answered as `GET` is.
pub(crate) fn known_method(method: &[u8]) -> Option<&'static str> {
    const KNOWN: [&str; 9] = [
        "GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE", "QUERY",
    ];
    if method.eq_ignore_ascii_case(b"HEAD") {
        return Some("GET");
    }
    let mut known = KNOWN.into_iter();
    known.find(|known| method.eq_ignore_ascii_case(known.as_bytes()))
}

/// Whether a byte is one of a token's (RFC 9110, 5.6.2).
pub(crate) fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// What comes before the first such byte.
fn until(text: &[u8], byte: u8) -> &[u8] {
    halves(text, byte).map_or(text, |(before, _)| before)
}

fn halves(text: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|own| *own == byte)?;
    let (before, rest) = text.split_at_checked(at)?;
    Some((before, rest.get(1..)?))
}

/// As in a form: a plus is a blank.
fn form_decoded(text: &[u8]) -> Cow<'_, [u8]> {
    if text.contains(&b'+') {
        let blank = |byte: &u8| if *byte == b'+' { b' ' } else { *byte };
        let text: Vec<u8> = text.iter().map(blank).collect();
        Cow::Owned(decoded(&text).into_owned())
    } else {
        decoded(text)
    }
}

/// Who the credentials of `authorization` are of (RFC 9110, 11.6.2): the scheme in small letters
/// and what comes behind it; of `Basic` (RFC 7617) and `Digest` (RFC 7616) the user name alone, or
/// a wrong password would be another client. `None` if there is nobody to be told from them, as
/// from a signature.
fn credentials(line: &[u8]) -> Option<Vec<u8>> {
    let is_blank = |byte: &u8| byte.is_ascii_whitespace();
    let end = line.iter().position(is_blank).unwrap_or(line.len());
    let (scheme, rest) = line.split_at_checked(end)?;
    let mut bytes = scheme.to_ascii_lowercase();
    let rest = rest.trim_ascii();
    let is_listed = rest
        .iter()
        .any(|byte| byte.is_ascii_whitespace() || b",\"".contains(byte));
    let who = match bytes.as_slice() {
        b"basic" => {
            let plain = basic_alphabet().decode(rest).ok()?;
            let (user, _) = halves(&plain, b':')?;
            user.to_vec()
        }
        b"digest" => parameter(rest, b"username")?.to_vec(),
        // Parameters, some of which are another each time.
        _ if is_listed => return None,
        _ => rest.to_vec(),
    };
    bytes.push(b' ');
    bytes.extend_from_slice(&who);
    Some(bytes)
}

/// A parameter in quotes that hold neither quotes nor backslashes.
fn parameter<'l>(list: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    let mut pairs = list
        .split(|byte| *byte == b',')
        .filter_map(|pair| halves(pair, b'='));
    let (_, value) = pairs.find(|(own, _)| own.trim_ascii().eq_ignore_ascii_case(name))?;
    match value.trim_ascii() {
        [b'"', inner @ .., b'"'] if !inner.iter().any(|byte| b"\"\\".contains(byte)) => Some(inner),
        _ => None,
    }
}

/// As forgiving as services are: padded or not.
fn basic_alphabet() -> GeneralPurpose {
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    GeneralPurpose::new(&alphabet::STANDARD, config)
}

/// What tells a limit's clients apart: up to eight parts, each of which counts. None is one bucket
/// for everybody.
///
/// ```
/// use tollgate_policy::Key;
///
/// let key = Key::header("x-api-key").and(Key::ip())?;
/// assert_eq!(key.to_string(), r#"["header:x-api-key", "ip"]"#);
/// assert!("header:x api key".parse::<Key>().is_err());
/// # Ok::<(), tollgate_policy::key::PartError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Key(Vec<Part>);

impl Key {
    /// The same bucket for everybody.
    #[must_use]
    pub fn everybody() -> Self {
        Self::default()
    }

    /// The client's address.
    #[must_use]
    pub fn ip() -> Self {
        Self(vec![Part::Ip])
    }

    /// The path.
    #[must_use]
    pub fn path() -> Self {
        Self(vec![Part::Path])
    }

    /// The method.
    #[must_use]
    pub fn method() -> Self {
        Self(vec![Part::Method])
    }

    /// A header's value. A name that is not written in the program is parsed, as in
    /// `"header:NAME".parse()`.
    ///
    /// # Panics
    ///
    /// With a name that no header has.
    #[must_use]
    #[track_caller]
    pub fn header(name: &'static str) -> Self {
        Self::literal("header:", name)
    }

    /// A cookie's value. A name that is not written in the program is parsed, as in
    /// `"cookie:NAME".parse()`.
    ///
    /// # Panics
    ///
    /// With a name that no such thing has.
    #[must_use]
    #[track_caller]
    pub fn cookie(name: &'static str) -> Self {
        Self::literal("cookie:", name)
    }

    /// A parameter of the query. A name that is not written in the program is parsed, as in
    /// `"query:NAME".parse()`.
    ///
    /// # Panics
    ///
    /// With a name that no such thing has.
    #[must_use]
    #[track_caller]
    pub fn query(name: &'static str) -> Self {
        Self::literal("query:", name)
    }

    /// What the service says about a request under that name. A name that is not written in the
    /// program is parsed, as in
    /// `"descriptor:NAME".parse()`.
    ///
    /// # Panics
    ///
    /// With a name that no such thing has.
    #[must_use]
    #[track_caller]
    pub fn descriptor(name: &'static str) -> Self {
        Self::literal("descriptor:", name)
    }

    #[track_caller]
    fn literal(kind: &str, name: &'static str) -> Self {
        match [kind, name].concat().parse() {
            Ok(key) => key,
            #[expect(
                clippy::panic,
                reason = "the name stands in the program, as a static header name of http does"
            )]
            Err(error) => panic!("{kind}{name}: {error}"),
        }
    }

    /// Both, in that order.
    ///
    /// # Errors
    ///
    /// More than eight parts.
    pub fn and(mut self, other: Self) -> Result<Self, PartError> {
        self.0.extend(other.0);
        Self::of_parts(self.0)
    }

    /// Those parts, in that order.
    ///
    /// # Errors
    ///
    /// More than eight, or a name that is no token.
    pub fn of_parts(parts: Vec<Part>) -> Result<Self, PartError> {
        if parts.len() > MOST_PARTS {
            return Err(PartError::TooMany);
        }
        // Each as it is read from text: header names are in small letters, whoever wrote them.
        let parts = parts.into_iter().map(|part| part.to_string().parse());
        Ok(Self(parts.collect::<Result<_, _>>()?))
    }

    /// Its parts.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.0
    }
}

/// A key of one part, as in `header:x-api-key`.
impl FromStr for Key {
    type Err = PartError;

    fn from_str(part: &str) -> Result<Self, PartError> {
        Ok(Self(vec![part.parse()?]))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (at, part) in self.0.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}\"{part}\"")?;
        }
        f.write_str("]")
    }
}

/// Whose bucket: the values of all parts of a key, as bytes.
///
/// Two lists of parts never meet: every part but the last comes with its length, and each says
/// whether it is there. All bytes are fed to `Hash` as one, so that a limiter keeps short ones as
/// they are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Client(Short);

impl Client {
    /// Of the values of all parts; those that are not there share a bucket, with equal others.
    pub(crate) fn new<'v>(values: impl IntoIterator<Item = &'v Value>) -> Self {
        let mut bytes = Short::new();
        let mut values = values.into_iter().peekable();
        while let Some(value) = values.next() {
            let Value::Is(value) = value else {
                bytes.push(0);
                continue;
            };
            bytes.push(1);
            if values.peek().is_some() {
                length(value.len(), &mut bytes);
            }
            bytes.extend_from_slice(value);
        }
        Self(bytes)
    }

    /// Its bytes, which are its identity.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Hash for Client {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.0);
    }
}

/// A length, seven bits a byte, the lowest first (LEB128).
fn length(mut length: usize, to: &mut Short) {
    loop {
        let low = u8::try_from(length & 0x7f).unwrap_or(0);
        length >>= 7;
        if length == 0 {
            return to.push(low);
        }
        to.push(low | 0x80);
    }
}
