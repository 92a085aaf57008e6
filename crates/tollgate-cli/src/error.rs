//! Why a command could not do what it was asked.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use tollgate::{BuildError, ClockWentBackwards, RateError};

use tollgate_policy::file::FileErrors;

use crate::terminal::one_line;

/// Why a command could not do what it was asked. The text names the file or the option; what lies
/// beneath is the [source](StdError::source).
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// `--rate` is no rate.
    Rate(RateError),
    /// `--burst` is no whole number above 0.
    Burst {
        /// As given.
        value: String,
    },
    /// `--rate` and `--burst` together are beyond what a limiter represents exactly.
    Quota(BuildError),
    /// The value of another option is none.
    Option {
        /// The option.
        option: &'static str,
        /// As given.
        value: String,
        /// What it should be.
        wanted: &'static str,
    },
    /// Standard input can be read only once.
    StdinTwice,
    /// An input that cannot be opened or read to its end.
    Input {
        /// The file.
        name: String,
        /// What the system or the decoder says.
        source: io::Error,
    },
    /// A file of text that is none.
    NotText {
        /// The file.
        name: String,
    },
    /// A policy file that is wrong.
    Policy {
        /// The file.
        name: String,
        /// What is wrong with it.
        errors: FileErrors,
    },
    /// Logs without one record.
    NoRecord {
        /// The files.
        names: String,
        /// How many lines they have.
        lines: u64,
    },
    /// Records out of order after they were put in order.
    Clock(ClockWentBackwards),
    /// A trace that is not one, or whose limit cannot be built.
    Trace {
        /// The file.
        name: String,
        /// What is wrong with it.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// Standard output cannot be written.
    Output(io::Error),
}

impl Error {
    /// 2 where the command was used wrongly, 3 where something is broken.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Rate(_)
            | Self::Burst { .. }
            | Self::Quota(_)
            | Self::Option { .. }
            | Self::Policy { .. }
            | Self::StdinTwice => 2,
            Self::Input { .. }
            | Self::NotText { .. }
            | Self::NoRecord { .. }
            | Self::Clock(_)
            | Self::Trace { .. }
            | Self::Output(_) => 3,
        }
    }

    /// Tells standard error, on one line. If it is closed, there is nobody to tell.
    pub(crate) fn note(&self, notes: &mut dyn io::Write) {
        _ = writeln!(notes, "tollgate: {}", one_line(&self.chain()));
    }

    /// This error and what lies beneath it, with colons between.
    #[must_use]
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut next = self.source();
        while let Some(source) = next {
            text.push_str(": ");
            match source.downcast_ref::<io::Error>() {
                Some(error) => text.push_str(&describe(error)),
                None => text.push_str(&source.to_string()),
            }
            next = source.source();
        }
        text
    }
}

/// The system's errors in our words: the standard library's begin with a capital and end with a
/// number.
fn describe(error: &io::Error) -> String {
    let texts = [
        (io::ErrorKind::NotFound, "no such file"),
        (io::ErrorKind::IsADirectory, "is a directory"),
        (io::ErrorKind::PermissionDenied, "permission denied"),
        (io::ErrorKind::StorageFull, "no space left"),
        (
            io::ErrorKind::UnexpectedEof,
            "ends in the middle of its gzip data",
        ),
    ];
    // What did not come from the system came from the decoder.
    let damaged = [io::ErrorKind::InvalidInput, io::ErrorKind::InvalidData];
    if error.raw_os_error().is_none() && damaged.contains(&error.kind()) {
        return format!("damaged gzip: {error}");
    }
    let known = texts.iter().find(|(kind, _)| *kind == error.kind());
    known.map_or_else(|| error.to_string(), |(_, text)| (*text).to_owned())
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(_) => f.write_str("--rate"),
            Self::Burst { value } => write!(
                f,
                "--burst: burst {value:?} is not a whole number of tokens from 1 to {}",
                u64::MAX
            ),
            Self::Quota(_) => f.write_str("--rate, --burst"),
            Self::Option {
                option,
                value,
                wanted,
            } => write!(f, "{option}: {value:?} is not {wanted}"),
            Self::StdinTwice => f.write_str("-: standard input can be read only once"),
            Self::Input { name, .. } | Self::Trace { name, .. } => f.write_str(name),
            Self::Policy { name, errors } => {
                let more = errors.iter().count().saturating_sub(1);
                if let Some(first) = errors.iter().next() {
                    write!(f, "{name}:{first}")?;
                }
                match more {
                    0 => Ok(()),
                    _ => write!(f, "; {more} more: see tollgate check"),
                }
            }
            Self::NotText { name } => write!(f, "{name}: is not UTF-8"),
            Self::NoRecord { names, lines: 0 } => write!(f, "{names}: empty, nothing to replay"),
            Self::NoRecord { names, lines } => write!(
                f,
                "{names}: no record of the common or combined format in {lines} lines"
            ),
            Self::Clock(_) => f.write_str("replay"),
            Self::Output(_) => f.write_str("standard output"),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Rate(source) => Some(source),
            Self::Quota(source) => Some(source),
            Self::Input { source, .. } | Self::Output(source) => Some(source),
            Self::Clock(source) => Some(source),
            Self::Trace { source, .. } => Some(&**source),
            Self::Burst { .. }
            | Self::Option { .. }
            | Self::StdinTwice
            | Self::Policy { .. }
            | Self::NotText { .. }
            | Self::NoRecord { .. } => None,
        }
    }
}
