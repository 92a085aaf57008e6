//! What all processes measured of a row, summed up and held against its bars.

use crate::bars::{Against, Bar, Met, Reads, bars};
use crate::row::{Bench, Call, Limiter, Row, median};

/// A row's figures.
pub(crate) struct Figures {
    pub(crate) row: Row,
    /// Of each limiter: the repetitions of each process.
    measured: Vec<(Limiter, Vec<Vec<f64>>)>,
}

/// One limiter's figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figure {
    /// The median of the processes' medians.
    pub(crate) median: f64,
    /// The lowest and the highest of these; of the repetitions where one process was all.
    pub(crate) spread: (f64, f64),
}

/// Our figure, compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verdict {
    pub(crate) reads: Reads,
    pub(crate) against: Against,
    pub(crate) ratio: f64,
    /// Absent where the comparison is only there to be seen.
    pub(crate) bar: Option<(Bar, Met)>,
}

impl Figures {
    pub(crate) fn new(row: Row) -> Self {
        Self {
            row,
            measured: Vec::new(),
        }
    }

    /// What one more process measured.
    pub(crate) fn add(&mut self, name: Limiter, repetitions: &[f64]) {
        let repetitions = repetitions.to_vec();
        match self.measured.iter_mut().find(|(known, _)| *known == name) {
            Some((_, processes)) => processes.push(repetitions),
            None => self.measured.push((name, vec![repetitions])),
        }
    }

    pub(crate) fn limiters(&self) -> impl Iterator<Item = Limiter> {
        self.measured.iter().map(|(name, _)| *name)
    }

    pub(crate) fn figure(&self, name: Limiter) -> Option<Figure> {
        let (_, processes) = self.measured.iter().find(|(known, _)| *known == name)?;
        let medians: Vec<f64> = processes.iter().map(|own| median(own)).collect();
        let spread_over = match processes.as_slice() {
            [alone] => alone,
            _ => &medians,
        };
        let low = spread_over.iter().copied().fold(f64::INFINITY, f64::min);
        let high = spread_over.iter().copied().fold(0.0, f64::max);
        Some(Figure {
            median: median(&medians),
            spread: (low, high),
        })
    }

    /// Our figure against everything that the row's bars name; `all` has the rows that they are in.
    fn verdicts(&self, all: &[Self]) -> Vec<Verdict> {
        let Some(ours) = self.figure(Limiter::Tollgate) else {
            return Vec::new();
        };
        let verdict = |bar: Bar| {
            let it = match bar.against {
                Against::Peer(peer) => self.figure(peer)?.median,
                Against::Own(row) => {
                    let other = all.iter().find(|figures| figures.row == row)?;
                    other.figure(Limiter::Tollgate)?.median
                }
                Against::Nothing => 1.0,
            };
            let ratio = ratio(bar.reads, ours.median, it);
            Some(Verdict {
                reads: bar.reads,
                against: bar.against,
                ratio,
                bar: Some((bar, bar.met(ratio))),
            })
        };
        bars(&self.row).into_iter().filter_map(verdict).collect()
    }

    /// The verdict on us: of several bars, the tightest; without one, how we compare with the first
    /// peer.
    pub(crate) fn verdict(&self, all: &[Self]) -> Option<Verdict> {
        let margin = |verdict: &Verdict| {
            let bar = verdict.bar.map(|(bar, _)| bar.margin(verdict.ratio));
            bar.unwrap_or(f64::INFINITY)
        };
        let tightest = |a: &Verdict, b: &Verdict| margin(a).total_cmp(&margin(b));
        let peers = [Limiter::Governor, Limiter::Sweep];
        let compared = || peers.into_iter().find_map(|peer| self.beside(peer, all));
        let verdicts = self.verdicts(all);
        verdicts.into_iter().min_by(tightest).or_else(compared)
    }

    /// How we compare with a peer in this row, with the bar that it sets, if it sets one.
    pub(crate) fn beside(&self, peer: Limiter, all: &[Self]) -> Option<Verdict> {
        if matches!(peer, Limiter::Tollgate | Limiter::Baseline) || self.row.call != Call::Allow {
            return None;
        }
        let against = Against::Peer(peer);
        let bar = self
            .verdicts(all)
            .into_iter()
            .find(|verdict| verdict.against == against);
        let compared = || {
            let reads = match self.row.bench {
                Bench::P1
                | Bench::P2
                | Bench::P3
                | Bench::P4
                | Bench::P5
                | Bench::P6
                | Bench::P14
                | Bench::H2 => Reads::PeerOverOurs,
                Bench::P7
                | Bench::P8
                | Bench::P9
                | Bench::P10
                | Bench::P11
                | Bench::P12
                | Bench::P13 => Reads::OursOverIt,
            };
            let ours = self.figure(Limiter::Tollgate)?.median;
            let ratio = ratio(reads, ours, self.figure(peer)?.median);
            Some(Verdict {
                reads,
                against,
                ratio,
                bar: None,
            })
        };
        bar.or_else(compared)
            .filter(|verdict| verdict.ratio.is_finite())
    }
}

fn ratio(reads: Reads, ours: f64, it: f64) -> f64 {
    match reads {
        Reads::PeerOverOurs | Reads::ItOverOurs => it / ours,
        Reads::OursOverIt => ours / it,
        Reads::Ours => ours,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{Dist, Measure};

    fn figures(row: Row, measured: &[(Limiter, f64)]) -> Figures {
        let mut figures = Figures::new(row);
        for (name, figure) in measured {
            figures.add(*name, &[*figure]);
        }
        figures
    }

    #[test]
    fn a_figure_is_the_median_of_medians() {
        let mut figures = Figures::new(Row::new(Bench::P1, 1, Dist::Hot, 14));
        for repetitions in [[1.0, 2.0, 90.0], [3.0, 3.0, 3.0], [9.0, 9.0, 0.0]] {
            figures.add(Limiter::Tollgate, &repetitions);
        }
        let expected = Figure {
            median: 3.0,
            spread: (2.0, 9.0),
        };
        assert_eq!(figures.figure(Limiter::Tollgate), Some(expected));
        assert_eq!(figures.figure(Limiter::Governor), None);
    }

    #[test]
    fn the_tightest_bar_is_the_verdict() {
        let row = Row::new(Bench::P4, 1_000_000, Dist::Uniform, 14);
        let (governor, with_ahash) = (Limiter::Governor, Limiter::GovernorAhash);
        let measured = [
            (Limiter::Tollgate, 100.0),
            (governor, 500.0),
            (with_ahash, 110.0),
        ];
        let all = [figures(row, &measured)];
        let verdict = all[0].verdict(&all).expect("a verdict");
        assert_eq!(
            (verdict.against, verdict.ratio),
            (Against::Peer(with_ahash), 1.1)
        );
        assert_eq!(verdict.bar.map(|(_, met)| met), Some(Met::Missed));
        let beside = all[0].beside(governor, &all).expect("a comparison");
        assert_eq!(beside.bar.map(|(_, met)| met), Some(Met::Goal));
    }

    #[test]
    fn a_row_is_held_against_another_of_our_own() {
        let admitted = Row::new(Bench::P5, 1, Dist::Hot, 14);
        let refused = Row {
            answer: crate::row::Answer::Refused,
            ..admitted
        };
        let all = [
            figures(admitted, &[(Limiter::Tollgate, 20.0)]),
            figures(refused, &[(Limiter::Tollgate, 21.0)]),
        ];
        let verdict = all[1].verdict(&all).expect("a verdict");
        assert_eq!(
            (verdict.ratio, verdict.against),
            (1.05, Against::Own(admitted))
        );
    }

    #[test]
    fn a_batch_is_held_against_its_calls_in_turn() {
        let in_turn = Row {
            call: Call::TryAcquireInTurn,
            ..Row::new(Bench::P12, 1_000_000, Dist::Uniform, 14)
        };
        let each = Row {
            call: Call::TryAcquireEach,
            ..in_turn
        };
        let all = [
            figures(in_turn, &[(Limiter::Tollgate, 200.0)]),
            figures(each, &[(Limiter::Tollgate, 100.0)]),
        ];
        assert!(all[0].verdict(&all).is_none());
        let verdict = all[1].verdict(&all).expect("a verdict");
        assert_eq!(
            (verdict.ratio, verdict.against),
            (2.0, Against::Own(in_turn))
        );
        assert_eq!(verdict.bar.map(|(_, met)| met), Some(Met::Short));
    }

    #[test]
    fn a_count_of_nothing_is_its_own_ratio() {
        let row = Row {
            measure: Measure::Allocations,
            ..Row::new(Bench::P13, 1, Dist::Uniform, 14)
        };
        let all = [figures(
            row,
            &[(Limiter::Tollgate, 0.0), (Limiter::Governor, 0.0)],
        )];
        let verdict = all[0].verdict(&all).expect("a verdict");
        assert_eq!(verdict.bar.map(|(_, met)| met), Some(Met::Goal));
        assert!(
            all[0].beside(Limiter::Governor, &all).is_none(),
            "0/0 is no ratio"
        );
    }
}
