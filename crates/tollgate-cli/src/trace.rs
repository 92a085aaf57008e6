//! `tollgate trace`: the real limiter on a list of timed calls.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use tollgate::{
    AnyLimit, BuildError, Decision, FixedWindow, KeyedLimiter, LeakyBucket, ManualClock, Rate,
    SlidingLog, SlidingWindowCounter, Timestamp, TokenBucket,
};
use tollgate_testkit::{Algorithm, Anchor, Answer, Config, Trace, TraceError, traces_below};

use crate::error::Error;
use crate::terminal::one_line;

const AFTER_HELP: &str = "\
A trace is one limiter, a list of timed calls and, where somebody has said what
is right, an answer for each. Times and waits are whole nanoseconds:
    {\"name\": \"one a second\",
     \"config\": {\"algorithm\": \"token-bucket\",
                \"rate\": {\"tokens\": 1, \"per_ns\": 1000000000}, \"burst\": 1},
     \"calls\": [{\"at_ns\": 0, \"client\": \"a\"},
               {\"at_ns\": 0, \"client\": \"a\", \"cost\": 1}],
     \"expect\": [{\"decision\": \"allowed\", \"remaining\": 0,
                 \"reset_after_ns\": 1000000000},
                {\"decision\": \"limited\", \"remaining\": 0,
                 \"retry_after_ns\": 1000000000, \"reset_after_ns\": 1000000000}]}
The other algorithms are leaky-bucket (the same numbers), fixed-window,
sliding-log and sliding-window-counter (limit, window_ns). \"max_clients\" and
\"idle_ns\" bound the clients.

The answers are printed one JSON object a line, in the words of \"expect\". With
--check each one that differs is printed with its file, the number of its call
(from 1), what was wanted and what was given, and at the end how many traces
passed and how many failed. A file that is no trace is named, counted as not
checked, and does not keep the others from being checked.

Examples:
    tollgate trace one-a-second.json
    tollgate trace --check traces/

Exit codes: 0 the answers were printed or all are right, 1 with --check: one
differs, 2 wrong use, 3 a file that cannot be read or is no trace.";

/// What `tollgate trace` was asked.
#[derive(Args, Clone, Debug)]
#[command(after_help = AFTER_HELP)]
#[non_exhaustive]
pub struct TraceArgs {
    /// Trace files; of a directory, every *.json below it, sorted
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Compare the answers with the traces' own instead of printing them
    #[arg(long)]
    pub check: bool,
}

/// Runs the command; answers whether no check failed.
///
/// With `check`, what is no trace does not keep the others from being checked: `notes` is told of
/// it, but for the last, which is the error.
///
/// # Errors
///
/// A file that cannot be read, is no trace or describes a limit that cannot be built; a directory
/// without traces; with `check`, a trace without answers.
pub fn run(args: &TraceArgs, output: &mut dyn Write, notes: &mut dyn Write) -> Result<bool, Error> {
    if args.check {
        return check_all(&args.files, output, notes);
    }
    for given in &args.files {
        for file in files_of(given)? {
            let (_, answers) = run_one(&file)?;
            for answer in answers {
                writeln!(output, "{answer}").map_err(Error::Output)?;
            }
        }
    }
    Ok(true)
}

/// Checks every trace that is one, and closes with how many passed and failed, and how many files
/// or folders could not be checked if there were any.
fn check_all(
    all: &[PathBuf],
    output: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<bool, Error> {
    let (mut passed, mut failed, mut unchecked) = (0_u64, 0_u64, 0_u64);
    let mut last = None;
    for given in all {
        let (files, error) = match files_of(given) {
            Ok(files) => (files, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        let checks = files.iter().map(|file| check(file, output));
        for check in error.map(Err).into_iter().chain(checks) {
            match check {
                Ok(true) => passed = passed.saturating_add(1),
                Ok(false) => failed = failed.saturating_add(1),
                Err(Error::Output(error)) => return Err(Error::Output(error)),
                Err(error) => {
                    unchecked = unchecked.saturating_add(1);
                    if let Some(earlier) = last.replace(error) {
                        earlier.note(notes);
                    }
                }
            }
        }
    }
    write!(output, "{passed} passed, {failed} failed").map_err(Error::Output)?;
    if unchecked != 0 {
        write!(output, ", {unchecked} not checked").map_err(Error::Output)?;
    }
    writeln!(output).map_err(Error::Output)?;
    match last {
        Some(error) => Err(error),
        None => Ok(failed == 0),
    }
}

/// The traces that an argument names: itself, or those below it.
fn files_of(given: &Path) -> Result<Vec<PathBuf>, Error> {
    let files = traces_below(given).map_err(|error| named(error, given))?;
    if files.is_empty() {
        return Err(trace_error(given, "no *.json below this directory"));
    }
    Ok(files)
}

fn run_one(file: &Path) -> Result<(Trace, Vec<Answer>), Error> {
    let trace = Trace::read(file).map_err(|error| named(error, file))?;
    let answers = answers(&trace).map_err(|source| trace_error(file, source))?;
    Ok((trace, answers))
}

/// Prints each answer that is not the one wanted; whether there was none.
fn check(file: &Path, output: &mut dyn Write) -> Result<bool, Error> {
    let (trace, answers) = run_one(file)?;
    if trace.expect.len() != answers.len() {
        return Err(trace_error(file, "no answers to check: expect is missing"));
    }
    let mut right = true;
    for (number, (wanted, got)) in (1_u64..).zip(trace.expect.iter().zip(&answers)) {
        if wanted != got {
            right = false;
            let file = one_line(&file.display().to_string());
            writeln!(output, "{file}: call {number}: wanted {wanted}, got {got}")
                .map_err(Error::Output)?;
        }
    }
    Ok(right)
}

/// What the limiter answers to each call of a trace.
///
/// ```
/// use tollgate_cli::trace::answers;
/// use tollgate_testkit::{Answer, Trace};
///
/// let trace = Trace::parse(
///     r#"{"name": "two of cost 1 and one too many",
///         "config": {"algorithm": "sliding-log", "limit": 1, "window_ns": 5},
///         "calls": [{"at_ns": 7, "client": "a"}, {"at_ns": 8, "client": "a"},
///                   {"at_ns": 9, "client": "a", "cost": 2}]}"#,
/// )?;
/// let (remaining, retry_after_ns, reset_after_ns) = (0, 4, 4);
/// let limited = Answer::Limited { remaining, retry_after_ns, reset_after_ns };
/// assert_eq!(answers(&trace)?[1..], [limited, Answer::TooLarge]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// A limit that cannot be built.
pub fn answers(trace: &Trace) -> Result<Vec<Answer>, Unanswerable> {
    let limiter = limiter(&trace.config)?;
    let answer = |call: &tollgate_testkit::Call| {
        let now = Timestamp::from_nanos(call.at_ns);
        match limiter.try_acquire_at(call.client.as_str(), call.cost, now) {
            Ok(decision) => in_words(decision),
            Err(_) => Ok(Answer::ClockBackwards),
        }
    };
    trace.calls.iter().map(answer).collect()
}

/// The limiter that a trace describes. Its clock is never read: each call brings its time.
fn limiter(config: &Config) -> Result<KeyedLimiter<AnyLimit, ManualClock>, Unanswerable> {
    let max_clients = config.max_clients.unwrap_or(u64::MAX);
    let max_clients = usize::try_from(max_clients).unwrap_or(usize::MAX);
    let builder = KeyedLimiter::builder(limit(&config.algorithm)?, max_clients);
    let builder = match config.idle_ns {
        Some(idle_ns) => builder.idle(Duration::from_nanos(idle_ns)),
        None => builder.never_forget(),
    };
    let built = builder.clock(ManualClock::default()).build();
    built.map_err(Unanswerable::Limit)
}

fn limit(algorithm: &Algorithm) -> Result<AnyLimit, Unanswerable> {
    let quota =
        |tokens, per_ns, burst| Rate::new(tokens, Duration::from_nanos(per_ns)).burst(burst);
    let limit = match *algorithm {
        Algorithm::TokenBucket {
            tokens,
            per_ns,
            burst,
        } => TokenBucket::new(quota(tokens, per_ns, burst)).into(),
        Algorithm::LeakyBucket {
            tokens,
            per_ns,
            burst,
        } => LeakyBucket::new(quota(tokens, per_ns, burst)).into(),
        Algorithm::FixedWindow {
            limit,
            window_ns,
            anchor,
        } => {
            let window = FixedWindow::new(limit, Duration::from_nanos(window_ns));
            match anchor {
                Anchor::First => window.into(),
                Anchor::Aligned => window.aligned().into(),
                _ => return Err(Unanswerable::NoWord),
            }
        }
        Algorithm::SlidingLog { limit, window_ns } => {
            SlidingLog::new(limit, Duration::from_nanos(window_ns)).into()
        }
        Algorithm::SlidingWindowCounter { limit, window_ns } => {
            SlidingWindowCounter::new(limit, Duration::from_nanos(window_ns)).into()
        }
        _ => return Err(Unanswerable::NoWord),
    };
    Ok(limit)
}

/// A decision in the words of the traces.
fn in_words(decision: Decision) -> Result<Answer, Unanswerable> {
    Ok(match decision {
        Decision::Allowed {
            remaining,
            delay,
            reset_after,
            ..
        } => Answer::Allowed {
            remaining,
            delay_ns: delay.as_nanos(),
            reset_after_ns: reset_after.as_nanos(),
        },
        Decision::Limited {
            remaining,
            retry_after,
            reset_after,
            ..
        } => Answer::Limited {
            remaining,
            retry_after_ns: retry_after.as_nanos(),
            reset_after_ns: reset_after.as_nanos(),
        },
        Decision::Banned { retry_after, .. } => Answer::Banned {
            retry_after_ns: retry_after.as_nanos(),
        },
        Decision::ClientLimit => Answer::ClientLimit,
        Decision::TooLarge { .. } => Answer::TooLarge,
        _ => return Err(Unanswerable::NoWord),
    })
}

/// Why a trace has no answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unanswerable {
    /// Its limit cannot be built.
    Limit(BuildError),
    /// The limiter or the format of traces has a word that the other lacks.
    NoWord,
}

impl fmt::Display for Unanswerable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Limit(_) => "config",
            Self::NoWord => "an algorithm or answer that this version has no word for",
        })
    }
}

impl std::error::Error for Unanswerable {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Limit(error) => Some(error),
            Self::NoWord => None,
        }
    }
}

/// The error that names the file or folder once, before what is wrong with it.
fn named(error: TraceError, given: &Path) -> Error {
    match error {
        TraceError::Unreadable { file, source } => Error::Input {
            name: file.display().to_string(),
            source,
        },
        TraceError::Malformed {
            file,
            line_and_column,
            problem,
        } => {
            let file = file.as_deref().unwrap_or(given);
            let unnamed = TraceError::Malformed {
                file: None,
                line_and_column,
                problem,
            };
            trace_error(file, unnamed)
        }
        other => trace_error(given, other),
    }
}

fn trace_error(path: &Path, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Trace {
        name: path.display().to_string(),
        source: source.into(),
    }
}
