//! Steps that are run one after the other, and the summary that closes them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// What ran, and how it went.
#[derive(Default)]
pub(crate) struct Report {
    steps: Vec<(String, bool)>,
}

impl Report {
    /// Runs a program to its end; what it prints goes where ours does.
    pub(crate) fn run(&mut self, name: &str, command: &mut Command) {
        println!("\n== {name}: {}", line(command));
        let passed = match command.status() {
            Ok(status) => status.success(),
            Err(error) => {
                println!("{name}: {error}");
                false
            }
        };
        self.steps.push((name.to_owned(), passed));
    }

    /// Passes if there are no problems.
    pub(crate) fn check(&mut self, name: &str, problems: impl FnOnce() -> Vec<String>) {
        println!("\n== {name}");
        let problems = problems();
        problems.iter().for_each(|problem| println!("{problem}"));
        self.steps.push((name.to_owned(), problems.is_empty()));
    }

    /// Prints each step and how many passed.
    pub(crate) fn close(self) -> ExitCode {
        println!("\n== summary");
        for (name, passed) in &self.steps {
            println!("{} {name}", if *passed { "passed" } else { "FAILED" });
        }
        let failed = self.steps.iter().filter(|(_, passed)| !passed).count();
        println!(
            "{} passed, {failed} failed",
            self.steps.len().saturating_sub(failed)
        );
        ExitCode::from(u8::from(failed > 0))
    }
}

/// A cargo command, by the cargo that runs us.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args);
    command
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let name = |word: &OsStr| {
        let path = Path::new(word);
        let short = if path.is_absolute() {
            path.file_name()
        } else {
            Some(word)
        };
        short.unwrap_or(word).to_string_lossy().into_owned()
    };
    words.map(name).collect::<Vec<_>>().join(" ")
}

/// The files below a folder, sorted; build output and hidden folders are passed over.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = folder.read_dir() else {
            continue;
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            let skipped = name.is_some_and(|name| name == "target" || name.starts_with('.'));
            match (path.is_dir(), skipped) {
                (_, true) => {}
                (true, false) => folders.push(path),
                (false, false) => files.push(path),
            }
        }
    }
    files.sort();
    files
}
