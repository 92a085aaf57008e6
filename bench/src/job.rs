//! What one worker process measures, and how it is handed over.

use std::io::Write as _;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::row::{Answer, Bench, Dist, Limiter, Row, Sample};
use crate::sets::Effort;
use crate::{allocations, http, memory, speed, stalls};

/// One worker's work.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) bench: Bench,
    pub(crate) quick: bool,
    pub(crate) part: Part,
}

/// Which limiters a process measures: what one leaves behind (memory, a heap in disorder) is not
/// to reach the next one's figures.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Part {
    /// Ours and our peers, in turn.
    Together,
    /// Peers that set no bar and leave much behind, without us.
    Apart,
    /// The one that has the process to itself.
    Alone(Row, Limiter),
}

/// The jobs of one round of a bench, a process each.
pub(crate) fn jobs(bench: Bench, quick: bool) -> Vec<Job> {
    let job = |part| Job { bench, quick, part };
    let alone = |(row, name)| job(Part::Alone(row, name));
    match bench {
        Bench::P1 | Bench::P2 | Bench::P3 | Bench::P4 => {
            vec![job(Part::Together), job(Part::Apart)]
        }
        Bench::P8 => {
            let rows = [
                (1_000_000, 16),
                (1_000_000, 200),
                (1_800_000, 16),
                (1_800_000, 200),
            ];
            let rows = rows.map(|(keys, name_len)| Row::new(bench, keys, Dist::Uniform, name_len));
            // With ahash governor keeps the same bytes.
            let names = [Limiter::Tollgate, Limiter::Governor, Limiter::Textbook];
            let each = |row| names.map(move |name| alone((row, name)));
            rows.into_iter().flat_map(each).collect()
        }
        Bench::P9 => {
            let newcomers = if quick {
                stalls::FLOOD / 2
            } else {
                stalls::FLOOD
            };
            let churn = Row::new(bench, newcomers, Dist::Churn, 14);
            let full = Row {
                dist: Dist::Full,
                answer: Answer::ClientLimit,
                ..churn
            };
            let jobs = [
                (full, Limiter::Tollgate),
                (churn, Limiter::Tollgate),
                (full, Limiter::Governor),
                (full, Limiter::GovernorAhash),
                (full, Limiter::Textbook),
                (full, Limiter::Baseline),
            ];
            jobs.map(alone).to_vec()
        }
        Bench::P10 => {
            let row = Row::new(bench, stalls::CROWD, Dist::Uniform, 14);
            [(row, Limiter::Tollgate), (row, Limiter::Governor)]
                .map(alone)
                .to_vec()
        }
        Bench::P5
        | Bench::P6
        | Bench::P7
        | Bench::P11
        | Bench::P12
        | Bench::P13
        | Bench::P14
        | Bench::H2 => vec![job(Part::Together)],
    }
}

/// The worker: does the job written in `job`, and prints its samples as JSON lines.
pub(crate) fn work(job: &str) -> Result<(), Error> {
    let samples = serde_json::from_str::<Job>(job)?.samples()?;
    let mut output = std::io::stdout().lock();
    for sample in samples {
        serde_json::to_writer(&mut output, &sample)?;
        output.write_all(b"\n")?;
    }
    Ok(output.flush()?)
}

impl Job {
    fn samples(self) -> Result<Vec<Sample>, Error> {
        let effort = Effort::new(self.quick);
        let admitted = |keys| match self.part {
            Part::Apart => speed::apart(self.bench, keys, effort),
            Part::Together | Part::Alone(..) => speed::admitted(self.bench, keys, effort),
        };
        match (self.bench, self.part) {
            (Bench::P1, _) => admitted(1),
            (Bench::P2, _) => admitted(1_000),
            (Bench::P3, _) => admitted(100_000),
            (Bench::P4, _) => admitted(1_000_000),
            (Bench::P5, _) => speed::refused(effort),
            (Bench::P6, _) => speed::rate_net(effort),
            (Bench::P7, _) => speed::single(effort),
            (Bench::P11, _) => speed::client_limit(effort),
            (Bench::P12, _) => speed::batches(effort),
            (Bench::P13, _) => allocations::samples(),
            (Bench::P14, _) => speed::sweep(effort),
            (Bench::H2, _) => http::samples(effort),
            (Bench::P8, Part::Alone(row, name)) => memory::bytes_a_client(row, name),
            (Bench::P9, Part::Alone(row, name)) => stalls::flood(row, name),
            (Bench::P10, Part::Alone(row, name)) => stalls::crowd_leaves(row, name),
            (Bench::P8 | Bench::P9 | Bench::P10, Part::Together | Part::Apart) => {
                Err(Error::new(format!("{:?} needs a limiter", self.bench)))
            }
        }
    }
}
