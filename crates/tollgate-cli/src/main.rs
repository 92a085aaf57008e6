//! The command `tollgate`.

use std::process::ExitCode;

fn main() -> ExitCode {
    tollgate_cli::main(std::env::args_os())
}
