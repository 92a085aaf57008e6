//! Trace files: one limiter, a list of timed calls, and the right answers.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Config;

/// How deep below a folder traces are looked for.
const DEEPEST: usize = 16;

/// One limiter and a list of timed calls.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// What the trace shows.
    pub name: String,
    /// The limiter.
    pub config: Config,
    /// The calls, in the order in which they are made.
    pub calls: Vec<Call>,
    /// The right answers, one a call; empty where nobody has said what is right.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<Answer>,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// When, in nanoseconds.
    pub at_ns: u64,
    /// For whom.
    pub client: String,
    /// How many tokens; 0 is a look.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub cost: u64,
}

fn one() -> u64 {
    1
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_one(cost: &u64) -> bool {
    *cost == 1
}

/// The answer to one call, in the words of the trace files. Waits are whole nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "RawAnswer", into = "RawAnswer")]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names are the trace format's own")]
pub enum Answer {
    Allowed {
        remaining: u64,
        delay_ns: u128,
        reset_after_ns: u128,
    },
    Limited {
        remaining: u64,
        retry_after_ns: u128,
        reset_after_ns: u128,
    },
    ClientLimit,
    TooLarge,
    ClockBackwards,
}

impl fmt::Display for Answer {
    /// One line of JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Allowed,
    Limited,
    ClientLimit,
    TooLarge,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum ErrorWord {
    ClockBackwards,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct RawAnswer {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decision: Option<Word>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    remaining: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delay_ns: Option<u128>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after_ns: Option<u128>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reset_after_ns: Option<u128>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<ErrorWord>,
}

impl TryFrom<RawAnswer> for Answer {
    type Error = String;

    fn try_from(raw: RawAnswer) -> Result<Self, String> {
        let missing = |field: &str| format!("expect: {field} is missing");
        let remaining = raw.remaining.ok_or_else(|| missing("remaining"));
        let reset_after_ns = raw.reset_after_ns.ok_or_else(|| missing("reset_after_ns"));
        let answer = match (raw.decision, raw.error) {
            (Some(Word::Allowed), None) => Self::Allowed {
                remaining: remaining?,
                delay_ns: raw.delay_ns.unwrap_or(0),
                reset_after_ns: reset_after_ns?,
            },
            (Some(Word::Limited), None) => Self::Limited {
                remaining: remaining?,
                retry_after_ns: raw
                    .retry_after_ns
                    .ok_or_else(|| missing("retry_after_ns"))?,
                reset_after_ns: reset_after_ns?,
            },
            (Some(Word::ClientLimit), None) => Self::ClientLimit,
            (Some(Word::TooLarge), None) => Self::TooLarge,
            (None, Some(ErrorWord::ClockBackwards)) => Self::ClockBackwards,
            (None, None) => return Err(missing("decision")),
            (Some(_), Some(_)) => {
                return Err("expect: decision and error exclude each other".into());
            }
        };
        Ok(answer)
    }
}

impl From<Answer> for RawAnswer {
    fn from(answer: Answer) -> Self {
        let bare = |word| Self {
            decision: Some(word),
            ..Self::default()
        };
        match answer {
            Answer::Allowed {
                remaining,
                delay_ns,
                reset_after_ns,
            } => Self {
                remaining: Some(remaining),
                delay_ns: (delay_ns > 0).then_some(delay_ns),
                reset_after_ns: Some(reset_after_ns),
                ..bare(Word::Allowed)
            },
            Answer::Limited {
                remaining,
                retry_after_ns,
                reset_after_ns,
            } => Self {
                remaining: Some(remaining),
                retry_after_ns: Some(retry_after_ns),
                reset_after_ns: Some(reset_after_ns),
                ..bare(Word::Limited)
            },
            Answer::ClientLimit => bare(Word::ClientLimit),
            Answer::TooLarge => bare(Word::TooLarge),
            Answer::ClockBackwards => Self {
                error: Some(ErrorWord::ClockBackwards),
                ..Self::default()
            },
        }
    }
}

impl Trace {
    /// Reads a trace from the text of a file.
    ///
    /// # Errors
    ///
    /// What is not JSON, not a trace, or has another number of answers than of calls.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let trace: Self = serde_json::from_str(text).map_err(TraceError::Malformed)?;
        let (calls, answers) = (trace.calls.len(), trace.expect.len());
        if answers != 0 && answers != calls {
            return Err(TraceError::AnswersDoNotMatch { calls, answers });
        }
        Ok(trace)
    }

    /// The text of a trace file: a call and an answer a line.
    #[must_use]
    pub fn to_json(&self) -> String {
        let lines = |items: Vec<String>| format!("[\n  {}]", items.join(",\n  "));
        let json = |calls: &[Call]| calls.iter().map(to_line).collect();
        let mut text = format!("{{\"name\": {},\n", to_line(&self.name));
        text.push_str(&format!(" \"config\": {},\n", to_line(&self.config)));
        text.push_str(&format!(" \"calls\": {}", lines(json(&self.calls))));
        if !self.expect.is_empty() {
            let answers = self.expect.iter().map(to_line).collect();
            text.push_str(&format!(",\n \"expect\": {}", lines(answers)));
        }
        text.push_str("}\n");
        text
    }
}

fn to_line<T: Serialize>(value: &T) -> String {
    // Strings, numbers and maps with string keys: nothing here can fail to serialise.
    serde_json::to_string(value).unwrap_or_default()
}

/// A text that is no trace.
#[derive(Debug)]
#[non_exhaustive]
pub enum TraceError {
    /// Not JSON, or a field that is missing, unknown or of the wrong type.
    Malformed(serde_json::Error),
    /// Every call needs an answer, or none has one.
    AnswersDoNotMatch {
        /// Calls in the trace.
        calls: usize,
        /// Answers in the trace.
        answers: usize,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The only error that says where: its text is the message.
            Self::Malformed(error) => write!(f, "malformed trace: {error}"),
            Self::AnswersDoNotMatch { calls, answers } => {
                write!(
                    f,
                    "malformed trace: expect has {answers} answers for {calls} calls"
                )
            }
        }
    }
}

impl std::error::Error for TraceError {}

/// The trace files below a folder, sorted; a file is itself.
///
/// # Errors
///
/// What the file system says; folders nested deeper than 16.
pub fn traces_below(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    collect(path, DEEPEST, &mut found)?;
    found.sort();
    Ok(found)
}

fn collect(path: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        found.push(path.to_path_buf());
        return Ok(());
    }
    let Some(depth) = depth.checked_sub(1) else {
        return Err(io::Error::other(format!(
            "folders nested deeper than {DEEPEST}"
        )));
    };
    for entry in path.read_dir()? {
        let path = entry?.path();
        if path.is_dir() || path.extension().is_some_and(|ending| ending == "json") {
            collect(&path, depth, found)?;
        }
    }
    Ok(())
}
