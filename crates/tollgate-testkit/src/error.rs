//! Why a text is no trace.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a trace could not be had.
///
/// ```
/// use tollgate_testkit::Trace;
///
/// let error = Trace::parse(r#"{"name": "n", "calls": [{"at_ns": "now"}]}"#).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "malformed trace: calls[0].at_ns: invalid type: string \"now\", expected u64 \
///      at line 1 column 39"
/// );
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum TraceError {
    /// The file or folder cannot be read.
    Unreadable {
        /// The file or folder.
        file: PathBuf,
        /// What the file system says.
        source: io::Error,
    },
    /// The text is not a trace.
    Malformed {
        /// The file that the text came from, if it came from one.
        file: Option<PathBuf>,
        /// The line and the byte in it, from 1, at which the problem was noticed; absent where it
        /// is one of the trace as a whole.
        line_and_column: Option<(usize, usize)>,
        /// Which field, and what is wrong with it.
        problem: String,
    },
}

impl TraceError {
    pub(crate) fn malformed(error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let place = format!(" at line {line} column {column}");
        let problem = text.strip_suffix(&place).unwrap_or(&text);
        Self::Malformed {
            file: None,
            line_and_column: (line > 0).then_some((line, column)),
            problem: problem.strip_prefix('.').unwrap_or(problem).to_owned(),
        }
    }

    /// A problem of the trace as a whole.
    pub(crate) fn whole(problem: String) -> Self {
        Self::Malformed {
            file: None,
            line_and_column: None,
            problem,
        }
    }

    pub(crate) fn in_file(self, path: &Path) -> Self {
        match self {
            Self::Malformed {
                line_and_column,
                problem,
                ..
            } => Self::Malformed {
                file: Some(path.to_owned()),
                line_and_column,
                problem,
            },
            unreadable @ Self::Unreadable { .. } => unreadable,
        }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { file, .. } => write!(f, "{}: cannot be read", file.display()),
            Self::Malformed {
                file,
                line_and_column,
                problem,
            } => {
                if let Some(file) = file {
                    write!(f, "{}: ", file.display())?;
                }
                write!(f, "malformed trace: {problem}")?;
                match line_and_column {
                    Some((line, column)) => write!(f, " at line {line} column {column}"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl Error for TraceError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unreadable { source, .. } => Some(source),
            Self::Malformed { .. } => None,
        }
    }
}
