//! `tollgate replay`: the real limiter over a real access log, to see whom a limit would have hit.

pub mod inputs;
pub mod line;
pub mod lines;
pub mod policy;
pub mod records;
pub mod report;
pub mod tally;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::ProgressBar;
use tollgate::{ManualClock, Quota, Rate};
use tollgate_policy::rule::default_burst;
use tollgate_policy::{Gate, Policy};

use crate::check::read_text;
use crate::error::Error;
use crate::terminal::{Paint, one_line};
use inputs::Input;
use policy::Asked;
use records::{Clients, Log, Names, Parts};
use tally::Trial;

const AFTER_HELP: &str = "\
Logs are in the common or combined format, as Apache and nginx write them:
    client ident user [21/Jun/2026:23:49:36 +0200] \"request\" status size ...
plain or gzip (told by content, not by name). A time without an offset is read
as UTC.

Each client, the first field as it is, has a bucket of its own and is never
forgotten; each request takes one token. With --policy the file says whose
bucket, when it is forgotten and what a request takes. Records are put in time
order first, over all logs together; all those of one second arrive at that
second.

Lines that cannot be read are counted by reason, and the first 5 are shown:
lines longer than 64 KiB, client names longer than 1 KiB, times outside 1970 to
2499, records cut short, and lines that begin with a space, which continue the
one before. They are never fatal; no record at all is.

Memory: 16 bytes a record, 24 while records out of order are sorted, and about
200 bytes and the name a client.

Examples:
    tollgate replay access.log --rate 5/s --burst 10
    tollgate replay access.log.*.gz access.log --rate 100/min --burst 20
    ssh web1 cat /var/log/nginx/access.log | tollgate replay - --rate 1/s
    tollgate replay access.log --rate 5/s --json | jq .limited_clients
    tollgate replay access.log --policy limits.toml

Exit codes: 0 the figures were printed, 2 wrong use, 3 a log that cannot be read
or has no record.";

/// What `tollgate replay` was asked.
#[derive(Args, Clone, Debug)]
#[command(after_help = AFTER_HELP)]
#[non_exhaustive]
pub struct ReplayArgs {
    /// Access logs; - is standard input
    #[arg(required = true, value_name = "LOG")]
    pub logs: Vec<PathBuf>,

    /// Tokens a client earns in a period: 5/s, 100/min, 10/3s, 0.5/s
    ///
    /// Periods are ns, us, ms, s, min, h and day, with or without a whole number before them. A
    /// fraction is kept exactly: 0.5/s is 5/10s.
    #[arg(
        long,
        value_name = "TOKENS/PERIOD",
        allow_hyphen_values = true,
        required_unless_present = "policy"
    )]
    pub rate: Option<String>,

    /// The most tokens a client can save up, and what it starts with [default: the rate's tokens]
    ///
    /// Without it, 10/min is a burst of 10. A rate with a fraction counts as the least whole tokens
    /// that make it: 0.25/s is 1/4s, so 1; 2.5/s is 5/2s, so 5.
    #[arg(long, value_name = "TOKENS", allow_hyphen_values = true)]
    pub burst: Option<String>,

    /// Try all limits of a policy file instead
    ///
    /// Each limit that holds for a request is asked for it, all or none; its clients, their number
    /// and its idle time are as the file says. A limit whose key needs what a log does not tell (a
    /// header, a cookie, a descriptor) is not tried.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rate", "burst"])]
    pub policy: Option<PathBuf>,

    /// How many of the clients hit most are listed
    #[arg(long, value_name = "CLIENTS", default_value_t = 10)]
    pub top: usize,

    /// Print one line of JSON
    ///
    /// A name or line that is not UTF-8 is written as in the text report: every byte but printable
    /// ASCII as \xNN, a backslash as two.
    #[arg(long)]
    pub json: bool,
}

/// Runs the command. The figures go to `output`; `notes` is told of logs that gave nothing.
///
/// # Errors
///
/// Wrong numbers; a log that cannot be read to its end; no record in any of them.
pub fn run(
    args: &ReplayArgs,
    paint: Paint,
    output: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<(), Error> {
    let inputs: Vec<Input> = args.logs.iter().cloned().map(Input::from).collect();
    let dashes = inputs.iter().filter(|input| **input == Input::Stdin);
    if dashes.count() > 1 {
        return Err(Error::StdinTwice);
    }
    let names: Vec<String> = inputs.iter().map(Input::name).collect();
    let report = match (&args.policy, &args.rate) {
        (Some(file), _) => {
            let policy = policy_of(file)?;
            let clock = ManualClock::default();
            let gate = Gate::new(policy, clock.clone()).map_err(Error::Quota)?;
            let policy = gate.policy();
            let parts = read(&inputs, Log::new(Asked::new(&policy)), notes)?;
            let figures = policy::run((&gate, &clock), parts, args.top).map_err(Error::Clock)?;
            let file = file.display().to_string();
            if args.json {
                report::policy_json(&figures, &file, &names).map_err(Error::Output)?
            } else {
                report::policy_text(&figures, &file, &names, paint)
            }
        }
        (None, rate) => {
            let quota = quota(rate.as_deref().unwrap_or_default(), args.burst.as_deref())?;
            let trial = Trial::new(quota).map_err(Error::Quota)?;
            let parts = read(&inputs, Log::new(Clients::default()), notes)?;
            let figures = trial.run(parts, args.top).map_err(Error::Clock)?;
            if args.json {
                report::json(&figures, &names).map_err(Error::Output)?
            } else {
                report::text(&figures, &names, paint)
            }
        }
    };
    writeln!(output, "{}", report.trim_end()).map_err(Error::Output)
}

/// The policy of a file.
fn policy_of(file: &Path) -> Result<Policy, Error> {
    let name = file.display().to_string();
    let text = read_text(file)?;
    Policy::from_toml(&text).map_err(|errors| Error::Policy { name, errors })
}

/// The limit that was asked for.
fn quota(text: &str, burst: Option<&str>) -> Result<Quota, Error> {
    let rate: Rate = text.parse().map_err(Error::Rate)?;
    let burst = match burst {
        None => default_burst(rate, text),
        Some(value) => {
            let burst = value.parse().ok().filter(|&burst| burst != 0);
            burst.ok_or_else(|| Error::Burst {
                value: value.to_owned(),
            })?
        }
    };
    Ok(rate.burst(burst))
}

/// The records of all inputs, in time order; one at least.
fn read<N: Names>(
    inputs: &[Input],
    mut log: Log<N>,
    notes: &mut dyn Write,
) -> Result<Parts<N::All>, Error> {
    let bar = inputs::bar(inputs);
    let read = read_each(inputs, &mut log, &bar, notes);
    bar.finish_and_clear();
    read?;
    let parts = log.into_parts();
    if parts.records.is_empty() {
        let names: Vec<String> = inputs.iter().map(Input::name).collect();
        return Err(Error::NoRecord {
            names: inputs::names(&names),
            lines: parts.account.lines,
        });
    }
    Ok(parts)
}

fn read_each<N: Names>(
    inputs: &[Input],
    log: &mut Log<N>,
    bar: &ProgressBar,
    notes: &mut dyn Write,
) -> Result<(), Error> {
    for (place, input) in inputs.iter().enumerate() {
        let failed = |source| Error::Input {
            name: input.name(),
            source,
        };
        let (records, lines) = log.read(place, input.open(bar)?).map_err(failed)?;
        // An empty log among others is an everyday thing; one that says nothing is worth a word.
        if records == 0 && lines != 0 && inputs.len() > 1 {
            let name = one_line(&input.name());
            let note = format!("tollgate: {name}: no record in {lines} lines");
            // Whoever closed standard error does not want to know.
            bar.suspend(|| _ = writeln!(notes, "{note}"));
        }
    }
    Ok(())
}
