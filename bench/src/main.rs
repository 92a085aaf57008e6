//! Tollgate's performance bars, each measured beside its peers in the same run.
//!
//! Every bar is a ratio within one run. The program starts itself again as a worker for each part,
//! reads the workers' samples, and prints one line a row.

mod allocations;
mod args;
mod bars;
mod cpu;
mod error;
mod export;
mod figures;
mod host;
mod http;
mod job;
mod keys;
mod memory;
mod output;
mod peers;
mod report;
mod row;
mod run;
mod sets;
mod speed;
mod stalls;
mod text;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use args::{Cli, Command};

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

/// A row that cannot be measured; 2 is clap's, for wrong use.
const UNMEASURABLE: u8 = 3;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match &cli.command {
        Some(Command::Worker { job }) => job::work(job),
        None => run::run(&cli),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error is told; if it is closed, the exit code still says it.
            _ = writeln!(std::io::stderr(), "tollgate-bench: {error}");
            ExitCode::from(UNMEASURABLE)
        }
    }
}
