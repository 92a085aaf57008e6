//! Where trace files are.

use std::io;
use std::path::{Path, PathBuf};

use crate::TraceError;

/// How many folders deep traces are looked for, so that a link to a folder above it ends.
const DEEPEST: usize = 8;

/// The traces that come with this crate: `worked`, `random` and `store`.
///
/// ```
/// assert!(tollgate_testkit::traces_dir().join("worked/burst-of-one.json").is_file());
/// ```
#[must_use]
pub fn traces_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("traces")
}

/// Every `*.json` file below a folder, sorted by path; a file is itself, whatever its name.
///
/// ```
/// use tollgate_testkit::{traces_below, traces_dir};
///
/// assert!(traces_below(&traces_dir())?.len() > 90);
/// let absent = traces_dir().join("absent");
/// let error = traces_below(&absent).unwrap_err();
/// assert_eq!(error.to_string(), format!("{}: cannot be read", absent.display()));
/// # Ok::<(), tollgate_testkit::TraceError>(())
/// ```
///
/// # Errors
///
/// The file or folder that cannot be read, with what the file system says; folders nested more than
/// 8 deep.
pub fn traces_below(path: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let mut found = Vec::new();
    let metadata = path.metadata().map_err(|source| unreadable(path, source))?;
    if metadata.is_dir() {
        collect(path, DEEPEST, &mut found)?;
        found.sort();
    } else {
        found.push(path.to_owned());
    }
    Ok(found)
}

fn collect(folder: &Path, deepest: usize, found: &mut Vec<PathBuf>) -> Result<(), TraceError> {
    let failed = |source| unreadable(folder, source);
    let Some(deepest) = deepest.checked_sub(1) else {
        let text = format!("nested more than {DEEPEST} folders deep");
        return Err(failed(io::Error::other(text)));
    };
    for entry in folder.read_dir().map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            collect(&path, deepest, found)?;
        } else if path.extension().is_some_and(|ending| ending == "json") {
            found.push(path);
        }
    }
    Ok(())
}

fn unreadable(path: &Path, source: io::Error) -> TraceError {
    let file = path.to_owned();
    TraceError::Unreadable { file, source }
}
