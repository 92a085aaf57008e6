//! Which path a request is for, however it is spelled.
//!
//! Services read odd paths in different ways: some decode `%2F` before they split a path into
//! segments and some after, some resolve `..` and some hand it to the handler, some cut `;...` off.
//! No single form is what all of them see. So a path has up to six *readings*, and a limit holds
//! for it if it does for any of them: an odd spelling then only meets more limits. A bucket of its
//! own takes one form, the most thoroughly undone, so no spelling of a path has another bucket.
//!
//! | | segments end at `/` | and at a decoded `/` or `\`, `;...` cut off |
//! |---|---|---|
//! | `.` and `..` kept | first | second |
//! | resolved, `..` taking an empty segment with it | third | fourth |
//! | resolved, empty segments being none | fifth | sixth, and the bucket's |
//!
//! In all of them `%XX` is decoded once, empty segments (`//`, a last `/`) are none in the end, and
//! neither query nor fragment is part of a path. A path without any of this has one reading, and
//! costs one pass.

use std::borrow::Cow;

use crate::key::Short;

/// The path of a request.
#[derive(Clone, Debug)]
pub struct Path<'t> {
    /// The readings, apart from each other; the last is that of the bucket.
    readings: Vec<Segments<'t>>,
}

impl<'t> Path<'t> {
    /// The path of a request's target as it was sent: `/a?b`, or `http://host/a?b` to a proxy.
    /// `None` for `*`. What is neither, as of a `CONNECT`, is taken for a path without its slash.
    ///
    /// With `ignores_case`, ASCII letters are all small.
    ///
    /// ```
    /// use tollgate_policy::path::Path;
    ///
    /// let written = |target: &str| Path::new(target.as_bytes(), false).unwrap().to_string();
    /// for target in ["/login", "/login/", "//login", "/%6Cogin?x=1", "/./login", "/a/../login"] {
    ///     assert_eq!(written(target), "/login");
    /// }
    /// assert_eq!(written("http://example.com"), "/");
    /// assert!(Path::new(b"*", false).is_none());
    /// ```
    #[must_use]
    pub fn new(target: &'t [u8], ignores_case: bool) -> Option<Self> {
        let readings = match path_of(target)? {
            Cow::Borrowed(path) => readings(path, ignores_case),
            Cow::Owned(path) => {
                let readings = readings(&path, ignores_case).into_iter();
                let owned = |segment: Cow<'_, [u8]>| Cow::Owned(segment.into_owned());
                readings
                    .map(|reading| reading.into_iter().map(owned).collect())
                    .collect()
            }
        };
        Some(Self { readings })
    }

    /// Each reading, as segments without slashes.
    pub(crate) fn readings(&self) -> impl Iterator<Item = &[Cow<'t, [u8]>]> {
        self.readings.iter().map(Vec::as_slice)
    }

    /// The path that tells buckets apart.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Short::new();
        self.encode(&mut bytes);
        bytes.into_vec()
    }

    /// Adds the path that tells buckets apart, each segment behind a slash; `/` if there is none.
    pub(crate) fn encode(&self, to: &mut Short) {
        let segments = self.readings.last().map_or(&[][..], Vec::as_slice);
        for segment in segments {
            to.push(b'/');
            to.extend_from_slice(segment);
        }
        if segments.is_empty() {
            to.push(b'/');
        }
    }
}

impl std::fmt::Display for Path<'_> {
    /// As it tells buckets apart; bytes that are no UTF-8 are replaced.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.bytes()))
    }
}

/// Segments without slashes.
type Segments<'p> = Vec<Cow<'p, [u8]>>;

/// All readings of a path, apart from each other; the last is that of the bucket.
fn readings(path: &[u8], ignores_case: bool) -> Vec<Segments<'_>> {
    let raw = || path.split(|byte| *byte == b'/').skip(1);
    let strict: Segments<'_> = raw()
        .map(|segment| small(decoded(segment), ignores_case))
        .collect();
    let is_odd = |byte: &u8| matches!(byte, b'%' | b';' | b'\\');
    let lenient = path.iter().any(is_odd).then(|| {
        let whole = raw().map(|segment| decoded(before(segment)));
        whole
            .flat_map(split)
            .map(|segment| small(segment, ignores_case))
            .collect()
    });
    let mut readings: Vec<Segments<'_>> = Vec::with_capacity(1);
    for reading in [Some(strict), lenient].into_iter().flatten() {
        let with_empty = resolved(&reading).map(without_empty);
        let reading = without_empty(reading);
        let resolved = resolved(&reading);
        for reading in [with_empty, Some(reading), resolved].into_iter().flatten() {
            // The bucket's has to be the last.
            readings.retain(|other| *other != reading);
            readings.push(reading);
        }
    }
    readings
}

fn small(segment: Cow<'_, [u8]>, ignores_case: bool) -> Cow<'_, [u8]> {
    if ignores_case && segment.iter().any(u8::is_ascii_uppercase) {
        Cow::Owned(segment.to_ascii_lowercase())
    } else {
        segment
    }
}

/// What of a target is its path, which begins with a slash or lacks one; `*` is none.
fn path_of(target: &[u8]) -> Option<Cow<'_, [u8]>> {
    let end = target.iter().position(|byte| matches!(byte, b'?' | b'#'));
    let before = target.get(..end.unwrap_or(target.len())).unwrap_or(target);
    if before == b"*" {
        return None;
    }
    if before.starts_with(b"/") {
        return Some(Cow::Borrowed(before));
    }
    let scheme = before.windows(3).position(|part| part == b"://");
    let is_of_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let behind = scheme.filter(|end| *end > 0 && before.iter().take(*end).all(is_of_scheme));
    let behind = behind.and_then(|end| before.get(end.saturating_add(3)..));
    Some(match behind {
        Some(behind) => {
            let path = behind.iter().position(|byte| *byte == b'/');
            Cow::Borrowed(path.and_then(|at| behind.get(at..)).unwrap_or(b"/"))
        }
        // What no client should send, and some service may answer.
        None => Cow::Owned([b"/", before].concat()),
    })
}

/// A part of a target with each `%XX` as its byte; what is no such thing stays. Once: what comes of
/// it is not decoded again.
pub(crate) fn decoded(part: &[u8]) -> Cow<'_, [u8]> {
    if !part.contains(&b'%') {
        return Cow::Borrowed(part);
    }
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part;
    while let Some((first, behind)) = rest.split_first() {
        let escaped = match rest {
            [b'%', high, low, behind @ ..] => hexadecimal(*high)
                .zip(hexadecimal(*low))
                .map(|(high, low)| ((high << 4) | low, behind)),
            _ => None,
        };
        let (byte, behind) = escaped.unwrap_or((*first, behind));
        bytes.push(byte);
        rest = behind;
    }
    Cow::Owned(bytes)
}

fn hexadecimal(digit: u8) -> Option<u8> {
    let digit = char::from(digit).to_digit(16)?;
    u8::try_from(digit).ok()
}

/// What comes before a semicolon.
fn before(segment: &[u8]) -> &[u8] {
    let end = segment.iter().position(|byte| *byte == b';');
    segment
        .get(..end.unwrap_or(segment.len()))
        .unwrap_or(segment)
}

/// The segments that a decoded one falls into, each up to a semicolon that was escaped.
fn split(segment: Cow<'_, [u8]>) -> Vec<Cow<'_, [u8]>> {
    let is_end = |byte: &u8| matches!(byte, b'/' | b'\\');
    if !segment.iter().any(|byte| is_end(byte) || *byte == b';') {
        return vec![segment];
    }
    let parts = segment.split(is_end);
    parts
        .map(|part| Cow::Owned(before(part).to_vec()))
        .collect()
}

fn without_empty(mut segments: Segments<'_>) -> Segments<'_> {
    segments.retain(|segment| !segment.is_empty());
    segments
}

/// Without `.`, and without `..` and the segment before each; `None` if none of them is there.
fn resolved<'t>(segments: &[Cow<'t, [u8]>]) -> Option<Vec<Cow<'t, [u8]>>> {
    let is_dots = |segment: &Cow<'t, [u8]>| matches!(&**segment, b"." | b"..");
    if !segments.iter().any(is_dots) {
        return None;
    }
    let mut kept: Vec<Cow<'t, [u8]>> = Vec::new();
    for segment in segments {
        match &**segment {
            b"." => {}
            b".." => {
                kept.pop();
            }
            _ => kept.push(segment.clone()),
        }
    }
    Some(kept)
}
