//! Runs the command; writes the files it is given.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

/// What one run did.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// The one line of JSON of a run that succeeded.
    pub(crate) fn json(&self) -> Value {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{self:?}");
        assert_eq!(self.stdout.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.stdout).unwrap()
    }

    /// The one line on standard error of a run that ended with `code` and printed nothing.
    pub(crate) fn refusal(&self, code: i32) -> &str {
        self.refusal_after("", code)
    }

    /// The one line on standard error of a run that ended with `code` after it printed `stdout`.
    pub(crate) fn refusal_after(&self, stdout: &str, code: i32) -> &str {
        assert_eq!(
            (self.code, self.stdout.as_str()),
            (Some(code), stdout),
            "{self:?}"
        );
        assert_eq!(self.stderr.lines().count(), 1, "{self:?}");
        let line = self.stderr.strip_prefix("tollgate: ").unwrap();
        assert!(
            !line.contains(|c: char| c.is_control() && c != '\n'),
            "{line:?}"
        );
        line.trim_end()
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

pub(crate) fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tollgate"))
}

pub(crate) fn tollgate(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Run {
    command()
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
        .into()
}

/// `tollgate` with the words of a line, for arguments that hold no spaces.
pub(crate) fn tollgate_line(line: &str) -> Run {
    tollgate(line.split_whitespace())
}

pub(crate) fn tollgate_with_stdin(line: &str, stdin: &[u8]) -> Run {
    let mut child = command()
        .args(line.split_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that refuses its arguments does not read on; what it says is what is tested.
    _ = child.stdin.take().unwrap().write_all(stdin);
    child.wait_with_output().unwrap().into()
}

/// Replays one log at a rate and burst, and answers its JSON.
pub(crate) fn replay(log: &Path, rate: &str, burst: &str) -> Value {
    let log = log.to_str().unwrap();
    tollgate(["replay", log, "--rate", rate, "--burst", burst, "--json"]).json()
}

/// A log of the repository.
pub(crate) fn log(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("logs")
        .join(name)
}

/// A file of this run, named for the test that writes it: tests run side by side.
pub(crate) fn file(name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, bytes).unwrap();
    path
}

pub(crate) fn gzip(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes.as_ref()).unwrap();
    encoder.finish().unwrap()
}

/// One line of the common format, with its newline.
pub(crate) fn record(client: &str, time: &str) -> String {
    format!("{client} - - [{time}] \"GET / HTTP/1.1\" 200 5\n")
}
