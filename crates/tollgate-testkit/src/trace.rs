//! Trace files: one limiter, a list of timed calls, and the right answers.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::json::{List, line, need, no_place_for, object};
use crate::{Config, TraceError};

/// The largest trace file that is read, in bytes: half a million calls.
const MOST_BYTES: u64 = 64 << 20;

/// One limiter, a list of timed calls, and the right answers to them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawTrace")]
#[allow(clippy::exhaustive_structs, reason = "tests write it out")]
pub struct Trace {
    /// What the trace shows.
    pub name: String,
    /// The limiter.
    pub config: Config,
    /// The calls, in the order in which they are made.
    pub calls: Vec<Call>,
    /// One answer a call; empty where nobody has said what is right.
    pub expect: Vec<Answer>,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(try_from = "RawCall", into = "RawCall")]
#[allow(clippy::exhaustive_structs, reason = "tests write it out")]
pub struct Call {
    /// When, in nanoseconds.
    pub at_ns: u64,
    /// For whom.
    pub client: String,
    /// How many tokens; 0 is a look. 1 where a file says nothing.
    pub cost: u64,
}

/// The answer to one call, in the words of the trace files; displayed as JSON without spaces.
///
/// ```
/// use tollgate_testkit::Answer;
///
/// let refused = Answer::Limited { remaining: 0, retry_after_ns: 5, reset_after_ns: 9 };
/// assert_eq!(
///     refused.to_string(),
///     r#"{"decision":"limited","remaining":0,"retry_after_ns":5,"reset_after_ns":9}"#
/// );
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(try_from = "RawAnswer", into = "RawAnswer")]
#[non_exhaustive]
pub enum Answer {
    /// The tokens were taken.
    Allowed {
        /// Whole tokens left, rounded down.
        remaining: u64,
        /// When the call may go: 0, or the wait of a leaky bucket.
        delay_ns: u128,
        /// The least time after which the client is as new.
        reset_after_ns: u128,
    },
    /// Not enough tokens now.
    Limited {
        /// Whole tokens left, rounded down.
        remaining: u64,
        /// The least time after which the same call is admitted.
        retry_after_ns: u128,
        /// The least time after which the client is as new.
        reset_after_ns: u128,
    },
    /// A banned client: nothing is said of its tokens.
    Banned {
        /// The time until the ban ends.
        retry_after_ns: u128,
    },
    /// A new client, when as many as may be are tracked.
    ClientLimit,
    /// A cost above the burst: never.
    TooLarge,
    /// A time below the latest one seen: an error, and nothing changed.
    ClockBackwards,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl Trace {
    /// Reads a trace from the text of a file.
    ///
    /// # Errors
    ///
    /// A text that is not JSON, or not a trace: a field missing, unknown, given twice, out of
    /// place or of the wrong type, or another number of answers than of calls.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        serde_json::from_str(text).map_err(|error| TraceError::malformed(&error))
    }

    /// Reads a trace from a file of at most 64 MiB.
    ///
    /// ```
    /// use tollgate_testkit::{Trace, traces_dir};
    ///
    /// let worked = traces_dir().join("worked");
    /// assert_eq!(Trace::read(&worked.join("burst-of-one.json"))?.calls.len(), 5);
    /// assert!(Trace::read(&worked).is_err(), "a folder is no trace");
    /// # Ok::<(), tollgate_testkit::TraceError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Trace::parse`], and then the error names the file; a file that cannot be read, is
    /// larger, or is not UTF-8.
    pub fn read(path: &Path) -> Result<Self, TraceError> {
        let text = read_text(path).map_err(|source| TraceError::Unreadable {
            file: path.to_owned(),
            source,
        })?;
        let trace = text.and_then(|text| Self::parse(&text));
        trace.map_err(|error| error.in_file(path))
    }

    /// The text of a trace file, a call and an answer a line: what [`Trace::parse`] reads back.
    #[must_use]
    pub fn to_json(&self) -> String {
        let (name, config) = (line(&self.name), line(&self.config));
        let calls = lines(&self.calls);
        let expect = match self.expect.as_slice() {
            [] => String::new(),
            answers => format!(",\n \"expect\": {}", lines(answers)),
        };
        format!("{{\"name\": {name},\n \"config\": {config},\n \"calls\": {calls}{expect}}}\n")
    }
}

/// The text of a file that may be one of a trace; no more of it is read than may be.
fn read_text(path: &Path) -> io::Result<Result<String, TraceError>> {
    let mut bytes = Vec::new();
    let most = MOST_BYTES.saturating_add(1);
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > MOST_BYTES) {
        return Ok(Err(TraceError::whole("larger than 64 MiB".to_owned())));
    }
    Ok(String::from_utf8(bytes).map_err(|error| TraceError::whole(error.utf8_error().to_string())))
}

fn lines(items: &[impl Serialize]) -> String {
    let items: Vec<String> = items
        .iter()
        .map(|item| format!("\n  {}", line(item)))
        .collect();
    format!("[{}]", items.join(","))
}

object!(RawTrace { name: String, config: Config, calls: List<Call>, expect: List<Answer> });

impl TryFrom<RawTrace> for Trace {
    type Error = String;

    fn try_from(raw: RawTrace) -> Result<Self, String> {
        let name = need("name", raw.name)?;
        let config = need("config", raw.config)?;
        let List(calls) = need("calls", raw.calls)?;
        let expect = match raw.expect {
            Some(List(answers)) if answers.len() != calls.len() => {
                let (answers, calls) = (answers.len(), calls.len());
                return Err(format!("expect has {answers} answers for {calls} calls"));
            }
            Some(List(answers)) => answers,
            None => Vec::new(),
        };
        Ok(Self {
            name,
            config,
            calls,
            expect,
        })
    }
}

object!(RawCall {
    at_ns: u64,
    client: String,
    cost: u64
});

impl TryFrom<RawCall> for Call {
    type Error = String;

    fn try_from(raw: RawCall) -> Result<Self, String> {
        Ok(Self {
            at_ns: need("at_ns", raw.at_ns)?,
            client: need("client", raw.client)?,
            cost: raw.cost.unwrap_or(1),
        })
    }
}

impl From<Call> for RawCall {
    fn from(call: Call) -> Self {
        Self {
            at_ns: Some(call.at_ns),
            client: Some(call.client),
            cost: (call.cost != 1).then_some(call.cost),
        }
    }
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DecisionWord {
    Allowed,
    Limited,
    Banned,
    ClientLimit,
    TooLarge,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ErrorWord {
    ClockBackwards,
}

// In the order in which the files have them.
object!(RawAnswer {
    decision: DecisionWord,
    error: ErrorWord,
    remaining: u64,
    delay_ns: u128,
    retry_after_ns: u128,
    reset_after_ns: u128,
});

impl TryFrom<RawAnswer> for Answer {
    type Error = String;

    fn try_from(raw: RawAnswer) -> Result<Self, String> {
        let remaining = ("remaining", raw.remaining.is_some());
        let delay = ("delay_ns", raw.delay_ns.is_some());
        let retry_after = ("retry_after_ns", raw.retry_after_ns.is_some());
        let reset_after = ("reset_after_ns", raw.reset_after_ns.is_some());
        let bare = |answer, beside| {
            no_place_for(&[remaining, delay, retry_after, reset_after], beside).map(|()| answer)
        };
        match (raw.decision, raw.error) {
            (Some(DecisionWord::Allowed), None) => {
                no_place_for(&[retry_after], "allowed")?;
                Ok(Self::Allowed {
                    remaining: need("remaining", raw.remaining)?,
                    delay_ns: raw.delay_ns.unwrap_or(0),
                    reset_after_ns: need("reset_after_ns", raw.reset_after_ns)?,
                })
            }
            (Some(DecisionWord::Limited), None) => {
                no_place_for(&[delay], "limited")?;
                Ok(Self::Limited {
                    remaining: need("remaining", raw.remaining)?,
                    retry_after_ns: need("retry_after_ns", raw.retry_after_ns)?,
                    reset_after_ns: need("reset_after_ns", raw.reset_after_ns)?,
                })
            }
            (Some(DecisionWord::Banned), None) => {
                no_place_for(&[remaining, delay, reset_after], "banned")?;
                Ok(Self::Banned {
                    retry_after_ns: need("retry_after_ns", raw.retry_after_ns)?,
                })
            }
            (Some(DecisionWord::ClientLimit), None) => bare(Self::ClientLimit, "client_limit"),
            (Some(DecisionWord::TooLarge), None) => bare(Self::TooLarge, "too_large"),
            (None, Some(ErrorWord::ClockBackwards)) => {
                bare(Self::ClockBackwards, "clock_backwards")
            }
            (Some(_), Some(_)) => Err("error does not belong beside a decision".to_owned()),
            (None, None) => Err("decision is missing".to_owned()),
        }
    }
}

impl From<Answer> for RawAnswer {
    fn from(answer: Answer) -> Self {
        let decided = |word| Self {
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
                delay_ns: (delay_ns != 0).then_some(delay_ns),
                reset_after_ns: Some(reset_after_ns),
                ..decided(DecisionWord::Allowed)
            },
            Answer::Limited {
                remaining,
                retry_after_ns,
                reset_after_ns,
            } => Self {
                remaining: Some(remaining),
                retry_after_ns: Some(retry_after_ns),
                reset_after_ns: Some(reset_after_ns),
                ..decided(DecisionWord::Limited)
            },
            Answer::Banned { retry_after_ns } => Self {
                retry_after_ns: Some(retry_after_ns),
                ..decided(DecisionWord::Banned)
            },
            Answer::ClientLimit => decided(DecisionWord::ClientLimit),
            Answer::TooLarge => decided(DecisionWord::TooLarge),
            Answer::ClockBackwards => Self {
                error: Some(ErrorWord::ClockBackwards),
                ..Self::default()
            },
        }
    }
}
