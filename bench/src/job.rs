//! What one worker process measures, and how it is handed over.

use std::io::Write as _;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::row::{Answer, Bench, Dist, Limiter, Row, Sample};
use crate::sets::Effort;
use crate::{allocations, memory, speed, stalls};

/// One worker's work.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) bench: Bench,
    pub(crate) quick: bool,
    /// The one limiter that has the process to itself, where what it leaves behind (memory, a
    /// heap in disorder) would reach the next one's figures.
    pub(crate) alone: Option<(Row, Limiter)>,
}

/// The jobs of one process of a bench. Only what is known not to be disturbed shares a process.
pub(crate) fn jobs(bench: Bench, quick: bool) -> Vec<Job> {
    let all_at_once = vec![Job {
        bench,
        quick,
        alone: None,
    }];
    let alone = |(row, name)| Job {
        bench,
        quick,
        alone: Some((row, name)),
    };
    match bench {
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
        Bench::P1
        | Bench::P2
        | Bench::P3
        | Bench::P4
        | Bench::P5
        | Bench::P7
        | Bench::P11
        | Bench::P13
        | Bench::P14 => all_at_once,
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
        match (self.bench, self.alone) {
            (Bench::P1, _) => speed::admitted(self.bench, 1, effort),
            (Bench::P2, _) => speed::admitted(self.bench, 1_000, effort),
            (Bench::P3, _) => speed::admitted(self.bench, 100_000, effort),
            (Bench::P4, _) => speed::admitted(self.bench, 1_000_000, effort),
            (Bench::P5, _) => speed::refused(effort),
            (Bench::P7, _) => speed::single(effort),
            (Bench::P11, _) => speed::client_limit(effort),
            (Bench::P13, _) => allocations::samples(),
            (Bench::P14, _) => speed::sweep(effort),
            (Bench::P8, Some((row, name))) => memory::bytes_a_client(row, name),
            (Bench::P9, Some((row, name))) => stalls::flood(row, name),
            (Bench::P10, Some((row, name))) => stalls::crowd_leaves(row, name),
            (Bench::P8 | Bench::P9 | Bench::P10, None) => {
                Err(Error::new(format!("{:?} needs a limiter", self.bench)))
            }
        }
    }
}
