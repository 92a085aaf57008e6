//! Why a row has no figure.

use std::fmt;
use std::io;
use std::path::Path;

/// A row that cannot be measured, or a result that cannot be handed on.
#[derive(Debug)]
pub(crate) struct Error(String);

impl Error {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }

    /// What the system says of a file, with its name.
    pub(crate) fn of_file(path: &Path, error: io::Error) -> Self {
        Self(format!("{}: {error}", path.display()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<tollgate_http::LimitsError> for Error {
    fn from(error: tollgate_http::LimitsError) -> Self {
        Self(error.to_string())
    }
}

impl From<tollgate::BuildError> for Error {
    fn from(error: tollgate::BuildError) -> Self {
        Self(error.to_string())
    }
}
