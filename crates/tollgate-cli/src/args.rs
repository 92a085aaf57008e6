//! The command line.

use clap::{Parser, Subcommand};

use crate::check::CheckArgs;
use crate::replay::ReplayArgs;
use crate::trace::TraceArgs;

/// An exact, bounded rate limiter, on the command line
#[derive(Clone, Debug, Parser)]
#[command(
    name = "tollgate",
    version,
    max_term_width = 100,
    subcommand_required = true
)]
#[command(arg_required_else_help = true, after_help = AFTER_HELP)]
#[non_exhaustive]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
#[non_exhaustive]
pub enum Command {
    /// Validates a policy file and says what comes of it
    Check(CheckArgs),
    /// Shows whom a limit would have hit: replays access logs through the limiter
    Replay(ReplayArgs),
    /// Runs call traces through the limiter and prints its answers, or checks them
    Trace(TraceArgs),
}

const AFTER_HELP: &str = "\
Examples:
    tollgate check limits.toml
    tollgate replay access.log --rate 5/s --burst 10
    tollgate trace --check traces/

Exit codes: 0 done, 1 a check failed, 2 wrong use, 3 something is broken.";

/// What clap has to say about a command line that it refuses, on one line.
///
/// Its own text has the usage and more on lines of their own; what we print names the option and
/// says where the rest is.
#[must_use]
pub fn one_line_error(error: &clap::Error) -> String {
    let text = error.to_string();
    let mut paragraphs = text.split("\n\n");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let what = words(paragraphs.next().unwrap_or_default());
    let mut line = what.strip_prefix("error: ").unwrap_or(&what).to_owned();
    for paragraph in paragraphs {
        if let Some(tip) = paragraph.trim().strip_prefix("tip: ") {
            line.push_str("; ");
            line.push_str(&words(tip));
        }
    }
    line.push_str("; see --help");
    line
}
