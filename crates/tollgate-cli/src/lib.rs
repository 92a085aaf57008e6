//! The command `tollgate`: check policy files, run traces, replay access logs.
//!
//! A library so that tests and fuzzers reach the parsers; it promises nothing to other programs.
//! Everything that decides is the library [`tollgate`]'s.

pub mod args;
pub mod check;
pub mod error;
pub mod json;
pub mod replay;
pub mod terminal;
pub mod trace;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;

use args::{Cli, Command, one_line_error};
use error::Error;
use terminal::{Output, Paint, one_line};

/// Runs the command line, writing to standard output and standard error: 0 done, 1 a check failed,
/// 2 wrong use, 3 something is broken.
#[must_use]
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    // Standard error is told what it is told; if it is closed, there is nobody to tell.
    let mut notes = io::stderr();
    match run(&cli, &mut notes) {
        Ok(code) => code,
        Err(error) => {
            error.note(&mut notes);
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(cli: &Cli, notes: &mut io::Stderr) -> Result<ExitCode, Error> {
    let mut output = Output::new(io::BufWriter::new(io::stdout().lock()));
    let passed = match &cli.command {
        Command::Check(args) => check::run(args, Paint::for_stdout(), &mut output, notes),
        Command::Replay(args) => {
            replay::run(args, Paint::for_stdout(), &mut output, notes).map(|()| true)
        }
        Command::Trace(args) => trace::run(args, &mut output, notes),
    };
    // A check that met something broken has printed what it made of the rest.
    output.flush().map_err(Error::Output)?;
    Ok(if passed? {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

/// Prints the help or the version that was asked for, or one line on what is wrong.
fn refuse(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    let is_help = matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if is_help {
        // clap knows which of the two streams its text belongs to, and a reader that has gone
        // away wanted no more of it.
        _ = error.print();
    } else {
        _ = writeln!(
            io::stderr(),
            "tollgate: {}",
            one_line(&one_line_error(error))
        );
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}
