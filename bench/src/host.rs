//! Where and when: figures mean little without it.

use std::fs;
use std::io::Write;
use std::thread::available_parallelism;

use crate::error::Error;

/// Writes the compiler, the processor, what else it is doing, and the date.
pub(crate) fn describe(output: &mut impl Write) -> Result<(), Error> {
    let unknown = || "unknown".to_owned();
    let read = |path| fs::read_to_string(path).ok();
    let model = read("/proc/cpuinfo").and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let load = read("/proc/loadavg").map(|text| {
        text.split_whitespace()
            .take(3)
            .collect::<Vec<_>>()
            .join(" ")
    });
    let cores = available_parallelism().map_or_else(|_| unknown(), |cores| cores.to_string());
    writeln!(output, "compiler  {}", env!("BENCH_RUSTC"))?;
    writeln!(
        output,
        "processor {}, {cores} cores",
        model.unwrap_or_else(unknown)
    )?;
    writeln!(output, "load      {}", load.unwrap_or_else(unknown))?;
    let now = jiff::Timestamp::now();
    writeln!(output, "date      {}\n", now.strftime("%Y-%m-%d %H:%M UTC"))?;
    Ok(())
}
