//! Limiters that already know their clients, called in turn: A B C A B C.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::cpu;
use crate::error::Error;
use crate::keys::sequence;
use crate::peers::{Calls, Contender, Entry};
use crate::row::{Answer, Dist, Limiter, Row, Sample};

/// Above every number of clients in a row: nobody is refused for it.
const ROOM: u32 = 2_000_000;

/// Below the hundred seconds in which a generous bucket fills: nobody goes idle meanwhile, so no
/// limiter has forgetting to do while the others have none.
const LIVES_AT_MOST: Duration = Duration::from_secs(90);

/// Clients looked at in all by one repetition of the limiter that looks at each on every call.
const SWEPT: usize = 20_000_000;

/// One in so many calls is made to the limiter whose calls take fifty times as long as ours.
const OF_LIMITADOR: usize = 20;

/// Calls to one bucket, below the million tokens that it starts with.
const CALLS_TO_ONE: usize = 900_000;

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    pub(crate) repetitions: usize,
    /// Calls a repetition, over all threads. Few enough that over all repetitions no client of a
    /// Zipf sequence (one call in twelve is the first's of 100,000) spends its million tokens.
    pub(crate) calls: usize,
    pub(crate) quick: bool,
    /// Whether all rows of a set are over before any of its clients goes idle.
    pub(crate) keeps_sets: bool,
}

impl Effort {
    pub(crate) fn new(quick: bool) -> Self {
        let (repetitions, calls) = if quick { (3, 250_000) } else { (7, 600_000) };
        Self {
            repetitions,
            calls,
            quick,
            keeps_sets: quick,
        }
    }

    /// For peers that set no bar and take long: fewer repetitions, one set.
    pub(crate) fn apart(self) -> Self {
        Self {
            repetitions: 3,
            keeps_sets: true,
            ..self
        }
    }
}

/// The limiters of some rows.
pub(crate) struct Set {
    /// The row that others are varied from.
    row: Row,
    entries: Vec<Entry>,
    contenders: Vec<Box<dyn Contender>>,
    born: Instant,
}

impl Set {
    /// Builds the limiters, and makes every client known to each of them.
    pub(crate) fn new(row: Row, entries: Vec<Entry>) -> Result<Self, Error> {
        let mut set = Self {
            row,
            entries,
            contenders: Vec::new(),
            born: cpu::wall(),
        };
        set.build()?;
        Ok(set)
    }

    fn build(&mut self) -> Result<(), Error> {
        self.contenders.clear();
        self.born = cpu::wall();
        let clients: Vec<u32> = (0..self.row.keys).collect();
        for entry in &self.entries {
            let contender = if self.row.name_len == 0 {
                entry.single()?
            } else {
                let full = entry.answer == Answer::ClientLimit;
                let max_clients = if full { self.row.keys } else { ROOM };
                entry.keyed(usize::try_from(max_clients).unwrap_or(usize::MAX))?
            };
            contender.learn(&self.calls(&clients, 0));
            self.contenders.push(contender);
        }
        Ok(())
    }

    /// Samples of every limiter, its repetitions interleaved with the others'.
    pub(crate) fn measure(
        &mut self,
        dist: Dist,
        threads: usize,
        effort: Effort,
    ) -> Result<Vec<Sample>, Error> {
        let one_bucket = self.row.keys == 1;
        let calls = if one_bucket {
            CALLS_TO_ONE
        } else {
            effort.calls
        };
        let clients: Vec<Vec<u32>> = (1..)
            .take(threads)
            .map(|seed| sequence(dist, self.row.keys, calls / threads, seed))
            .collect();
        let mut figures = vec![Vec::new(); self.entries.len()];
        for _ in 0..effort.repetitions {
            if one_bucket {
                // It would run dry over the repetitions.
                self.build()?;
            }
            let each = self.entries.iter().zip(&self.contenders);
            for ((entry, contender), figures) in each.zip(&mut figures) {
                figures.push(self.repetition(*entry, contender.as_ref(), &clients)?);
            }
        }
        let samples = self.entries.iter().zip(figures).map(|(entry, figures)| {
            let (call, answer) = (entry.call, entry.answer);
            let row = Row {
                dist,
                threads,
                call,
                answer,
                ..self.row
            };
            let name = entry.name;
            Sample { row, name, figures }
        });
        Ok(samples.collect())
    }

    fn calls<'a>(&self, clients: &'a [u32], offset: u32) -> Calls<'a> {
        let name_len = self.row.name_len;
        Calls {
            clients,
            offset,
            name_len,
        }
    }

    /// CPU nanoseconds a call of one limiter, if every call was answered as the row says.
    fn repetition(
        &self,
        entry: Entry,
        contender: &dyn Contender,
        clients: &[Vec<u32>],
    ) -> Result<f64, Error> {
        let newcomers = entry.answer == Answer::ClientLimit;
        let offset = if newcomers { self.row.keys } else { 0 };
        let calls: Vec<Calls<'_>> = clients
            .iter()
            .map(|all| {
                let some = fewer(entry.name, all.len(), self.row.keys);
                self.calls(all.get(..some).unwrap_or(all), offset)
            })
            .collect();
        let made: usize = calls.iter().map(|calls| calls.clients.len()).sum();
        let (ns, admitted) = timed(contender, &calls);
        let expected = match (entry.name, entry.answer) {
            (Limiter::Baseline, _) | (_, Answer::Admitted) => made,
            (_, Answer::Refused | Answer::ClientLimit) => 0,
            (_, Answer::Mixed) => admitted,
        };
        let (bench, name, age) = (self.row.bench, entry.name, self.born.elapsed());
        if admitted != expected {
            let what = format!("{bench:?}: {name:?} admitted {admitted} of {made}, not {expected}");
            return Err(Error::new(what));
        }
        if age > LIVES_AT_MOST {
            return Err(Error::new(format!(
                "{bench:?}: took {age:?}: clients go idle after 100 s, and none should"
            )));
        }
        Ok(ns / made.max(1) as f64)
    }
}

/// How many of the calls a repetition makes: fewer where each takes long.
fn fewer(name: Limiter, calls: usize, keys: u32) -> usize {
    match name {
        Limiter::Sweep => calls.min(SWEPT / usize::try_from(keys.max(1)).unwrap_or(1)),
        Limiter::Limitador => calls / OF_LIMITADOR,
        Limiter::Tollgate
        | Limiter::Governor
        | Limiter::GovernorAhash
        | Limiter::RateNet
        | Limiter::Ratelimit
        | Limiter::Throttlecrab
        | Limiter::Textbook
        | Limiter::TowerGovernor
        | Limiter::TowerGovernorHeaders
        | Limiter::Baseline => calls,
    }
}

/// CPU nanoseconds and admitted calls of all threads, each with calls of its own.
fn timed(contender: &dyn Contender, calls: &[Calls<'_>]) -> (f64, usize) {
    let own = |calls: &Calls<'_>| {
        let start = cpu::thread_ns();
        let admitted = contender.run(calls);
        (cpu::thread_ns() - start, admitted)
    };
    if let [alone] = calls {
        return own(alone);
    }
    let barrier = Barrier::new(calls.len());
    let (own, barrier) = (&own, &barrier);
    thread::scope(|scope| {
        let start = |calls| {
            scope.spawn(move || {
                barrier.wait();
                own(calls)
            })
        };
        let threads: Vec<_> = calls.iter().map(start).collect();
        // A thread that panicked ended the process: panics abort.
        let ended = threads.into_iter().filter_map(|thread| thread.join().ok());
        ended.fold((0.0, 0), |sum, own| (sum.0 + own.0, sum.1 + own.1))
    })
}
