//! The run: starts the workers, gathers their samples, prints rows as they are done.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use clap::ValueEnum as _;

use crate::args::Cli;
use crate::error::Error;
use crate::figures::Figures;
use crate::job::{Job, jobs};
use crate::output::Output;
use crate::row::{Bench, Sample};
use crate::{export, host, report};

/// Runs what the command line asks for.
pub(crate) fn run(cli: &Cli) -> Result<(), Error> {
    let mut json = cli.json.as_deref().map(Json::create).transpose()?;
    let mut output = Output::new(io::stdout().lock());
    host::describe(&mut output)?;
    let mut failed = 0;
    let mut columns = None;
    let benches = Bench::value_variants().iter();
    for bench in benches.filter(|bench| cli.only.is_empty() || cli.only.contains(bench)) {
        let wanted = report::columns(*bench);
        if columns.replace(wanted) != Some(wanted) {
            report::header(&mut output, wanted)?;
        }
        let (figures, failures) = measure(*bench, cli.quick);
        report::rows(&mut output, &figures)?;
        output.flush()?;
        if let Some(json) = &mut json {
            json.add(&figures)?;
        }
        for failure in &failures {
            _ = writeln!(io::stderr(), "tollgate-bench: {failure}");
        }
        failed += failures.len();
        if output.is_closed() && json.is_none() {
            // Nobody is left to measure for.
            break;
        }
    }
    report::legend(&mut output, cli.quick)?;
    match failed {
        0 => Ok(()),
        failed => Err(Error::new(format!("could not be measured: {failed} parts"))),
    }
}

/// The file that `--json` names.
struct Json<'a> {
    path: &'a Path,
    file: BufWriter<File>,
}

impl<'a> Json<'a> {
    fn create(path: &'a Path) -> Result<Self, Error> {
        let file = File::create(path).map_err(|error| Error::of_file(path, error))?;
        let file = BufWriter::new(file);
        Ok(Self { path, file })
    }

    /// Adds the rows of one bench; what is in the file is there even if a later bench fails.
    fn add(&mut self, figures: &[Figures]) -> Result<(), Error> {
        let named = |error| Error::of_file(self.path, error);
        export::rows(&mut self.file, figures).map_err(named)?;
        self.file.flush().map_err(named)
    }
}

/// Everything measured of one bench, and what could not be.
fn measure(bench: Bench, quick: bool) -> (Vec<Figures>, Vec<Error>) {
    let processes = if quick { 1 } else { 3 };
    let (mut figures, mut failures) = (Vec::new(), Vec::new());
    for process in 1..=processes {
        let jobs = jobs(bench, quick);
        for (done, job) in jobs.iter().enumerate() {
            progress(&format!(
                "{bench:?}: process {process} of {processes}, part {} of {}",
                done + 1,
                jobs.len()
            ));
            match samples(job) {
                Ok(samples) => gather(&mut figures, samples),
                Err(error) => failures.push(error),
            }
        }
    }
    progress("");
    (figures, failures)
}

/// One line on standard error that is written over, if somebody sits there.
fn progress(what: &str) {
    let mut terminal = io::stderr();
    if terminal.is_terminal() {
        _ = write!(terminal, "\r\x1b[K{what}");
        _ = terminal.flush();
    }
}

/// Has a worker do the job.
fn samples(job: &Job) -> Result<Vec<Sample>, Error> {
    let worker = Command::new(std::env::current_exe()?)
        .arg("worker")
        .arg(serde_json::to_string(job)?)
        .stdin(Stdio::null())
        .output()?;
    if !worker.status.success() {
        let what = String::from_utf8_lossy(&worker.stderr);
        let what = what.trim().trim_start_matches("tollgate-bench: ");
        let (bench, status) = (job.bench, worker.status);
        return Err(Error::new(format!("{bench:?}: {what} ({status})")));
    }
    let lines = String::from_utf8_lossy(&worker.stdout);
    let samples = lines.lines().map(serde_json::from_str::<Sample>);
    Ok(samples.collect::<Result<_, _>>()?)
}

/// Adds one process's samples to the rows that they belong to, in the order of first appearance.
fn gather(figures: &mut Vec<Figures>, samples: Vec<Sample>) {
    for sample in samples {
        let found = figures.iter().position(|known| known.row == sample.row);
        let at = found.unwrap_or_else(|| {
            figures.push(Figures::new(sample.row));
            figures.len() - 1
        });
        if let Some(known) = figures.get_mut(at) {
            known.add(sample.name, &sample.figures);
        }
    }
}
