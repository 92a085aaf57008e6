//! The logs as they were named: opened one after the other, with a bar of the bytes read.

use std::fs::File;
use std::io::{self, BufRead, IsTerminal as _, Read};
use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::lines::decoded;
use crate::error::Error;

/// One log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Input {
    /// `-`.
    Stdin,
    /// A file.
    File(PathBuf),
}

impl From<PathBuf> for Input {
    fn from(path: PathBuf) -> Self {
        if path.as_os_str() == "-" {
            Self::Stdin
        } else {
            Self::File(path)
        }
    }
}

impl Input {
    /// What it is called where it is shown.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Stdin => "standard input".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// Its text, unpacked. What is read of it moves the bar.
    ///
    /// # Errors
    ///
    /// A file that cannot be opened or is packed in a way that is not read.
    pub fn open(&self, bar: &ProgressBar) -> Result<Box<dyn BufRead>, Error> {
        let failed = |source| Error::Input {
            name: self.name(),
            source,
        };
        let reader: Box<dyn Read> = match self {
            Self::Stdin => Box::new(io::stdin()),
            Self::File(path) => Box::new(File::open(path).map_err(failed)?),
        };
        decoded(bar.wrap_read(reader)).map_err(failed)
    }

    /// Its size, if it has one beforehand.
    fn size(&self) -> Option<u64> {
        match self {
            Self::Stdin => None,
            Self::File(path) => path
                .metadata()
                .ok()
                .filter(std::fs::Metadata::is_file)?
                .len()
                .into(),
        }
    }
}

/// A bar of the bytes of all inputs on standard error, if that is a terminal; without a total if
/// one of them has no size.
#[must_use]
pub fn bar(inputs: &[Input]) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let add = |sum: u64, input: &Input| sum.checked_add(input.size()?);
    let total = inputs.iter().try_fold(0, add);
    let template = match total {
        Some(_) => "reading {wide_bar} {bytes} of {total_bytes}, {eta} left",
        None => "reading {spinner} {bytes}, {bytes_per_sec}",
    };
    let style = ProgressStyle::with_template(template);
    ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr())
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// The names of the inputs as an error has them: the first, and how many more. Whoever prints the
/// error makes it fit for a terminal, as every other.
#[must_use]
pub fn names(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}
