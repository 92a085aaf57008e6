//! The table: one line a row, within a hundred columns.

use std::io::Write;

use crate::bars::{Against, Met, Reads};
use crate::error::Error;
use crate::figures::{Figures, Verdict};
use crate::row::{Answer, Bench, Call, Dist, Limiter, Measure, Row};
use crate::text;

/// The cells of a line.
struct Cells {
    bench: String,
    keys: String,
    dist: String,
    threads: String,
    answer: String,
    name_len: String,
    ours: String,
    spread: String,
    peers: [String; 5],
    baseline: String,
    ratio: String,
    against: String,
    bar: String,
    met: String,
}

impl Cells {
    fn write(&self, output: &mut impl Write) -> Result<(), Error> {
        let [governor, with_ahash, mutex, fourth, fifth] = &self.peers;
        let line = format!(
            "{:3} {:>4} {:7} {:1} {:9} {:>3} {:>5} {:>3} {:>5} {:>5} {:>5} {:>5} {:>5} {:>4} {:>5} \
             {:1} {:7} {}",
            self.bench,
            self.keys,
            self.dist,
            self.threads,
            self.answer,
            self.name_len,
            self.ours,
            self.spread,
            governor,
            with_ahash,
            mutex,
            fourth,
            fifth,
            self.baseline,
            self.ratio,
            self.against,
            self.bar,
            self.met
        );
        Ok(writeln!(output, "{}", line.trim_end())?)
    }
}

/// The peers' columns: a name, and the limiters whose figures stand there, of which a line has one
/// at most. There is room for five; benches with other peers have a header of their own.
pub(crate) type Columns = [(&'static str, &'static [Limiter]); 5];

const GOVERNOR: (&str, &[Limiter]) = ("gov", &[Limiter::Governor]);
const WITH_AHASH: (&str, &[Limiter]) = ("ahash", &[Limiter::GovernorAhash]);
const MUTEX: (&str, &[Limiter]) = ("mutex", &[Limiter::Textbook, Limiter::Sweep]);

const USUAL: Columns = [
    GOVERNOR,
    WITH_AHASH,
    MUTEX,
    ("crab", &[Limiter::Throttlecrab]),
    ("lim", &[Limiter::Limitador]),
];

const OTHERS: Columns = [
    GOVERNOR,
    WITH_AHASH,
    MUTEX,
    ("net", &[Limiter::RateNet]),
    ("ratel", &[Limiter::Ratelimit]),
];

const LAYERS: Columns = [
    ("tgov", &[Limiter::TowerGovernor]),
    ("tgovh", &[Limiter::TowerGovernorHeaders]),
    ("", &[]),
    ("", &[]),
    ("", &[]),
];

pub(crate) fn columns(bench: Bench) -> Columns {
    match bench {
        Bench::H2 => LAYERS,
        Bench::P6 | Bench::P7 => OTHERS,
        Bench::P1
        | Bench::P2
        | Bench::P3
        | Bench::P4
        | Bench::P5
        | Bench::P8
        | Bench::P9
        | Bench::P10
        | Bench::P11
        | Bench::P12
        | Bench::P13
        | Bench::P14 => USUAL,
    }
}

/// Names the columns.
pub(crate) fn header(output: &mut impl Write, columns: Columns) -> Result<(), Error> {
    let cells = Cells {
        bench: "row".into(),
        keys: "keys".into(),
        dist: "dist".into(),
        threads: "t".into(),
        answer: "answer".into(),
        name_len: "len".into(),
        ours: "ours".into(),
        spread: "+-%".into(),
        peers: columns.map(|(name, _)| name.to_owned()),
        baseline: "base".into(),
        ratio: "ratio".into(),
        against: "".into(),
        bar: "bar".into(),
        met: "".into(),
    };
    cells.write(output)
}

/// Writes the rows of one bench.
pub(crate) fn rows(output: &mut impl Write, all: &[Figures]) -> Result<(), Error> {
    for figures in all {
        cells(figures, all).write(output)?;
    }
    Ok(())
}

fn cells(figures: &Figures, all: &[Figures]) -> Cells {
    let row = &figures.row;
    let unit = row.measure.unit();
    let missing = || "-".to_owned();
    let figure = |name| {
        let figure = figures.figure(name)?;
        Some(text::figure(figure.median, unit))
    };
    let or_missing = |name| figure(name).unwrap_or_else(missing);
    let ours = figures.figure(Limiter::Tollgate);
    let spread = ours.map(|ours| text::spread(ours.median, ours.spread));
    let verdict = figures.verdict(all);
    let bar = verdict.and_then(|verdict| verdict.bar);
    Cells {
        bench: format!("{:?}", row.bench),
        keys: text::keys(row.keys),
        dist: dist(row).to_owned(),
        threads: row.threads.to_string(),
        answer: answer(row).to_owned(),
        name_len: row.name_len.to_string(),
        ours: or_missing(Limiter::Tollgate),
        spread: spread.unwrap_or_else(missing),
        peers: columns(row.bench).map(|(_, peers)| {
            let figure = peers.iter().find_map(|peer| figure(*peer));
            figure.unwrap_or_else(missing)
        }),
        baseline: or_missing(Limiter::Baseline),
        ratio: verdict.map_or_else(missing, |verdict| match verdict.reads {
            Reads::Ours => text::figure(verdict.ratio, unit),
            Reads::PeerOverOurs | Reads::ItOverOurs | Reads::OursOverIt => {
                text::ratio(verdict.ratio)
            }
        }),
        against: verdict.map_or("", against).to_owned(),
        bar: bar.map_or_else(missing, |(bar, _)| {
            let floor = bar.floor.map_or_else(missing, text::bound);
            match bar.goal {
                Some(goal) => format!("{floor}/{}", text::bound(goal)),
                None => floor,
            }
        }),
        met: bar.map_or("", |(_, met)| met_in_words(met)).to_owned(),
    }
}

fn met_in_words(met: Met) -> &'static str {
    match met {
        Met::Missed => "MISSED",
        Met::Short => "short",
        Met::Floor => "floor",
        Met::Goal => "goal",
    }
}

/// The letter of what we are compared with.
fn against(verdict: Verdict) -> &'static str {
    match verdict.against {
        Against::Peer(Limiter::Governor) => "g",
        Against::Peer(Limiter::GovernorAhash) => "a",
        Against::Peer(Limiter::RateNet) => "n",
        Against::Peer(Limiter::Baseline) => "b",
        Against::Peer(Limiter::TowerGovernor) => "t",
        Against::Peer(_) => "m",
        Against::Own(_) => "o",
        Against::Nothing => "",
    }
}

/// Which clients, or where that is all the same, which algorithm; at most seven characters.
fn dist(row: &Row) -> &'static str {
    use crate::row::Algorithm;
    match (row.algorithm, row.dist) {
        (Some(Algorithm::TokenBucket), _) => "token",
        (Some(Algorithm::WideTokenBucket), _) => "wide",
        (Some(Algorithm::LeakyBucket), _) => "leaky",
        (Some(Algorithm::FixedWindow), _) => "window",
        (Some(Algorithm::SlidingLog), _) => "log",
        (Some(Algorithm::SlidingWindowCounter), _) => "counter",
        (None, Dist::Hot) => "hot",
        (None, Dist::Uniform) => "uniform",
        (None, Dist::Zipf) => "zipf",
        (None, Dist::Full) => "full",
        (None, Dist::Churn) => "churn",
    }
}

/// What is answered, or where the figure is not the time of a call, what it is; at most nine
/// characters.
fn answer(row: &Row) -> &'static str {
    match (row.measure, row.call, row.answer) {
        (Measure::Mean, _, _) if row.dist == Dist::Churn => "newcomer",
        (Measure::Mean, Call::Allow, Answer::Admitted) => "admitted",
        (Measure::Mean, Call::Allow, Answer::Refused) => "refused",
        (Measure::Mean, Call::Allow, Answer::ClientLimit) => "at limit",
        (Measure::Mean, Call::Allow, Answer::Mixed) => "mixed",
        (Measure::Mean, Call::TryAcquire, Answer::Admitted) => "acquire",
        (Measure::Mean, Call::TryAcquire, Answer::Refused) => "acq. ref.",
        (Measure::Mean, Call::TryAcquire, Answer::ClientLimit) => "acq. lim.",
        (Measure::Mean, Call::TryAcquire, Answer::Mixed) => "acq. mix.",
        (Measure::Mean, Call::TryAcquireInTurn, _) => "in turn",
        (Measure::Mean, Call::TryAcquireEach, _) => "each",
        (Measure::Longest, ..) => "longest",
        (Measure::P999, ..) => "p99.9",
        (Measure::LongestAlone, ..) => "alone",
        (Measure::Total, ..) => "forget",
        (Measure::BytesAClient, ..) => "bytes",
        (Measure::BytesAtCap, ..) => "at cap",
        (Measure::BytesAtEnd, ..) => "at end",
        (Measure::Positions, ..) => "positions",
        (Measure::Rebuilds, ..) => "rebuilds",
        (Measure::Allocations, ..) => "allocs",
    }
}

/// Explains what the columns cannot.
pub(crate) fn legend(output: &mut impl Write, quick: bool) -> Result<(), Error> {
    let how = if quick {
        "quick: 1 process of 3 repetitions (P8 to P10: of one), half of P9's flood, crab and lim \
         with\nnames of 14 bytes alone; +- over repetitions"
    } else {
        "median of 3 processes of 7 repetitions (P8 to P10: of one; crab and lim: of 3); +- over \
         processes"
    };
    writeln!(output, "\n{how}")?;
    output.write_all(LEGEND.as_bytes())?;
    Ok(())
}

const LEGEND: &str = "\
t threads, len bytes of a name, +- half the spread of ours; times in ns unless a unit follows, base
the name and the loop alone (in every figure of the line, not subtracted); CPU time a thread, but
longest, p99.9 and forget by the wall clock
gov governor 0.10, ahash the same with ahash, mutex Mutex<HashMap<String, Bucket>> (P14: which looks
at all clients on every call), net rate-net 2.1 (P7: its DirectLimiter)
without bars: crab throttlecrab 0.4 behind a Mutex, lim limitador 0.14 in memory, whose windows are
fixed (a twentieth of the calls), both in a process of their own; ratel ratelimit 2.0
acquire, acq.: try_acquire, with all that it says used; base and peers: see the line of allow
at limit, lim.: as many clients as may be are tracked, and newcomers refused; ref.: refused
ratio: P1 to P6 and P14 peer/ours, P12 it/ours; else ours/it; without x our figure itself. Against g
governor, a governor with ahash, m mutex, n rate-net, o ours (acquire: allow; each: in turn;
refused, at limit: admitted; at end: at cap). bar: floor/goal of the tightest bar of the row, and
which of the two is met; short: not the goal, and there is no floor
P5: 2 threads only in a full run, with 1,000 and 100,000 clients; no Zipf sequence; not crab, which
forgets at once a client whose burst is one, and so refuses nobody, nor lim
P9: cap 1,000,000, which the peers do not have; full: all places held by active clients (after the
first million), churn: each newcomer finds one client just gone idle; a stopwatch is in every figure
(see base). Clocks: ours in full its own, in churn one moved by hand; governor and ahash governor's
own, mutex the system's
P10: forget: all of it, by forget_idle and by governor's retain_recent; alone: the longest call with
nothing beside. Clocks: moved by hand, ours and governor's. ahash and mutex are not measured
H2: requests to an axum app on loopback over 16 open connections, CPU time of its thread; base the
app without a limit, tgov tower_governor 0.8, tgovh the same with x-ratelimit-*; ratio peer/ours,
against b base, t tgov
P12: batches of sixteen, whose names are made before them in buffers: each is one call to
try_acquire_each, in turn sixteen to try_acquire; all that they say is used. Peers have no such call
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_hundred_columns_at_most() {
        for bench in [Bench::P4, Bench::P6] {
            let row = Row {
                call: Call::TryAcquire,
                answer: Answer::ClientLimit,
                ..Row::new(bench, 1_800_000, Dist::Uniform, 200)
            };
            let allow = Row {
                call: Call::Allow,
                ..row
            };
            let all = [(row, 99_999.0), (allow, 9_999.0)].map(|(row, ours)| {
                let mut figures = Figures::new(row);
                for (_, peers) in columns(bench) {
                    figures.add(peers[0], &[99_999.0]);
                }
                figures.add(Limiter::Baseline, &[9_999.0]);
                figures.add(Limiter::Tollgate, &[0.0, ours, 999_999.0]);
                figures
            });
            let mut output = Vec::new();
            header(&mut output, columns(bench)).expect("a vector takes all");
            rows(&mut output, &all).expect("a vector takes all");
            let output = String::from_utf8(output).expect("text");
            let lens: Vec<usize> = output.lines().map(str::len).collect();
            assert!(output.contains("MISSED"), "{output}");
            assert!(lens.iter().all(|len| *len <= 100), "{lens:?}\n{output}");
        }
        let widest = LEGEND.lines().map(str::len).max();
        assert!(widest <= Some(100), "{widest:?}");
    }
}
