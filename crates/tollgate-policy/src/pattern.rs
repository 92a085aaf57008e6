//! Patterns of paths: `/login`, `/users/*/avatar`, `/static/*.css`, `/api/**`.

use std::fmt;
use std::str::FromStr;

use crate::path::{Path, decoded};

/// The longest pattern, in bytes.
pub const LONGEST_PATTERN: usize = 1_024;

/// What a path may look like, segment by segment.
///
/// `*` stands for any bytes within a segment, and comes once in it; `**` stands for any segments,
/// none among them, and comes last. All else is itself; `%2A` is a star. A slash at the end changes
/// nothing.
///
/// ```
/// use tollgate_policy::path::Path;
/// use tollgate_policy::pattern::Pattern;
///
/// let pattern: Pattern = "/users/*/avatar".parse()?;
/// let matches = |target: &str| pattern.matches(&Path::new(target.as_bytes(), false).unwrap());
/// assert!(matches("/users/7/avatar/?size=64"));
/// assert!(!matches("/users/7/8/avatar"));
/// // In one of its readings, which is enough: some services split before they decode.
/// assert!(matches("/users/7%2F8/avatar"));
/// # Ok::<(), tollgate_policy::pattern::PatternError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    segments: Vec<Segment>,
    /// Ends in `**`.
    is_open: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Exactly(Vec<u8>),
    /// Begins and ends so, and is as long as both at least.
    Between(Vec<u8>, Vec<u8>),
}

impl Segment {
    fn matches(&self, segment: &[u8]) -> bool {
        match self {
            Self::Exactly(bytes) => segment == bytes,
            Self::Between(before, after) => segment
                .strip_prefix(before.as_slice())
                .is_some_and(|rest| rest.ends_with(after)),
        }
    }
}

impl Pattern {
    /// Whether any reading of the path looks so.
    #[must_use]
    pub fn matches(&self, path: &Path<'_>) -> bool {
        path.readings()
            .any(|reading| self.matches_segments(reading))
    }

    /// Whether it is `/**`: every path, and what is none (`*`).
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.is_open && self.segments.is_empty()
    }

    /// Whether every reading does: for what a limit leaves out.
    #[must_use]
    pub fn matches_surely(&self, path: &Path<'_>) -> bool {
        path.readings()
            .all(|reading| self.matches_segments(reading))
    }

    fn matches_segments(&self, path: &[impl AsRef<[u8]>]) -> bool {
        let fits = if self.is_open {
            path.len() >= self.segments.len()
        } else {
            path.len() == self.segments.len()
        };
        let each = self.segments.iter().zip(path);
        fits && each
            .into_iter()
            .all(|(wanted, segment)| wanted.matches(segment.as_ref()))
    }

    /// The same for paths in small ASCII letters.
    #[must_use]
    pub fn in_small_letters(mut self) -> Self {
        for segment in &mut self.segments {
            match segment {
                Segment::Exactly(bytes) => bytes.make_ascii_lowercase(),
                Segment::Between(before, after) => {
                    before.make_ascii_lowercase();
                    after.make_ascii_lowercase();
                }
            }
        }
        self
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if text.len() > LONGEST_PATTERN {
            return Err(PatternError::TooLong { bytes: text.len() });
        }
        let path = text.strip_prefix('/').ok_or(PatternError::NoSlash)?;
        if text.contains(['?', '#']) {
            return Err(PatternError::Query);
        }
        if text.contains(['{', '}']) {
            return Err(PatternError::Braces);
        }
        let mut segments = Vec::new();
        let mut is_open = false;
        for part in path.split('/').filter(|part| !part.is_empty()) {
            if is_open {
                return Err(PatternError::BehindDoubleStar);
            }
            match part {
                "**" => is_open = true,
                "." | ".." => return Err(PatternError::Dots),
                _ => segments.push(segment(part)?),
            }
        }
        let text = text.to_owned();
        Ok(Self {
            text,
            segments,
            is_open,
        })
    }
}

fn segment(part: &str) -> Result<Segment, PatternError> {
    let bytes = |part: &str| decoded(part.as_bytes()).into_owned();
    match part.split_once('*') {
        None => Ok(Segment::Exactly(bytes(part))),
        Some((_, after)) if after.contains('*') => Err(PatternError::Stars),
        Some((before, after)) => Ok(Segment::Between(bytes(before), bytes(after))),
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What is no pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatternError {
    /// It does not begin with a slash.
    NoSlash,
    /// It holds `?` or `#`, which are in no path.
    Query,
    /// It holds braces, as routers have for any segment.
    Braces,
    /// It holds `.` or `..` as a segment, which paths are without.
    Dots,
    /// A segment holds two stars, or `**` and something else.
    Stars,
    /// Something comes behind `**`.
    BehindDoubleStar,
    /// It has more than 1,024 bytes.
    TooLong {
        /// How many.
        bytes: usize,
    },
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSlash => f.write_str("a path pattern begins with a slash, as in \"/api/**\""),
            Self::Query => f.write_str("a path has no \"?\" and no \"#\": leave the query out"),
            Self::Braces => f.write_str(
                "braces stand for nothing here: \"*\" is any segment, as in \"/users/*\"; \
                 %7B and %7D are braces",
            ),
            Self::Dots => {
                f.write_str("\".\" and \"..\" are resolved in paths: write what is meant")
            }
            Self::Stars => f.write_str(
                "one \"*\" a segment, as in \"/static/*.css\", or \"**\" as the last segment",
            ),
            Self::BehindDoubleStar => f.write_str("\"**\" is the last segment, as in \"/api/**\""),
            Self::TooLong { bytes } => {
                write!(f, "{bytes} bytes; a pattern has {LONGEST_PATTERN} at most")
            }
        }
    }
}

impl std::error::Error for PatternError {}
