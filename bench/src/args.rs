//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::row::Bench;

/// Measures tollgate's performance bars beside other limiters and the textbook one
///
/// Prints a table, one line a row; every bar is a ratio within this run. Times are CPU time a
/// thread, but for longest calls, which are wall clock.
#[derive(Debug, Parser)]
#[command(name = "tollgate-bench", max_term_width = 100, after_help = AFTER_HELP)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    /// One process of 3 repetitions, not 3 of 7, with fewer calls, and half of P9's flood:
    /// about three minutes
    #[arg(long)]
    pub(crate) quick: bool,

    /// Writes one JSON object a row and limiter, a line each
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Measures only these, separated by commas
    #[arg(long, value_name = "BENCH", value_delimiter = ',', ignore_case = true)]
    pub(crate) only: Vec<Bench>,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs one job, and prints its samples as JSON lines
    #[command(hide = true)]
    Worker {
        /// The job, as JSON
        job: String,
    },
}

const AFTER_HELP: &str = "\
Rows:
    P1   one hot key                        P8   resident bytes a client
    P2   1,000 clients                      P9   a flood of 10,000,000 new names
    P3   100,000 clients                    P10  a million clients expire at once
    P4   1,000,000 clients                  P11  newcomers to a full table
    P5   refused calls                      P12  sixteen clients in one call
    P6   P1 to P4 beside rate-net           P13  allocations for a known client
    P7   one bucket (`Limiter`)             P14  a sweep over all clients on every call
    H2   the layer in an axum app

Peers:
    governor (also with ahash) and a Mutex<HashMap>: most rows
    throttlecrab and limitador: P1 to P4, without bars
    rate-net: P6, and its bucket without keys in P7
    ratelimit, which has no keys: P7
    tower_governor: H2

Examples:
    cargo run --release --manifest-path bench/Cargo.toml -- --quick
    cargo run --release --manifest-path bench/Cargo.toml -- --only P4,P9 --json figures.jsonl

JSON: bench, keys, dist, threads, answer, call, measure, algorithm, name_len say which row; name
which limiter. ns, bytes or count is the figure, spread its lowest and highest over processes
(--quick: over repetitions). ratio compares ours with the limiter or row in `against`, as `reads`
says; bar, where there is one, has floor, goal, and met: \"goal\", \"floor\" or \"missed\", or
without a floor \"goal\" or \"short\".

Exit codes: 0 measured, whatever the ratios are; 2 wrong use; 3 a row could not be measured.";
