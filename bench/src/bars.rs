//! The bars: what a figure is held against. A floor must be met, a goal is what we are after.

use crate::row::{Algorithm, Answer, Bench, Call, Dist, Limiter, Measure, Row};

/// How a ratio reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reads {
    /// How many times as fast as a peer: the more, the better.
    PeerOverOurs,
    /// How many times as fast as another of our own: likewise.
    ItOverOurs,
    /// Our figure in units of another: the less, the better.
    OursOverIt,
    /// No ratio: our figure itself, the less the better.
    Ours,
}

impl Reads {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::PeerOverOurs => "peer/ours",
            Self::ItOverOurs => "it/ours",
            Self::OursOverIt => "ours/it",
            Self::Ours => "ours",
        }
    }
}

/// What our figure is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Against {
    /// This limiter in the same row.
    Peer(Limiter),
    /// Ourselves in another row.
    Own(Row),
    Nothing,
}

/// One bar.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bar {
    pub(crate) reads: Reads,
    pub(crate) against: Against,
    /// Absent where a figure short of the goal is only reported.
    pub(crate) floor: Option<f64>,
    pub(crate) goal: Option<f64>,
}

/// Whether a bar is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Met {
    Missed,
    /// Of a bar without a floor: the goal is not met.
    Short,
    Floor,
    Goal,
}

impl Bar {
    pub(crate) fn met(&self, ratio: f64) -> Met {
        let good = |bound: f64| match self.reads {
            Reads::PeerOverOurs | Reads::ItOverOurs => ratio >= bound,
            Reads::OursOverIt | Reads::Ours => ratio <= bound,
        };
        match (self.floor.map(good), self.goal.is_some_and(good)) {
            (Some(false), _) => Met::Missed,
            (None, false) => Met::Short,
            (Some(true), false) => Met::Floor,
            (None | Some(true), true) => Met::Goal,
        }
    }

    /// How far above its floor a figure is, in units of the floor: for finding the tightest of
    /// several bars. Without a floor, any other is tighter.
    pub(crate) fn margin(&self, ratio: f64) -> f64 {
        let above = |floor: f64| match self.reads {
            Reads::PeerOverOurs | Reads::ItOverOurs => ratio / floor,
            Reads::OursOverIt | Reads::Ours => floor / ratio.max(f64::MIN_POSITIVE),
        };
        self.floor.map_or(f64::INFINITY, above)
    }
}

fn faster_than(peer: Limiter, floor: f64, goal: impl Into<Option<f64>>) -> Bar {
    Bar {
        reads: Reads::PeerOverOurs,
        against: Against::Peer(peer),
        floor: Some(floor),
        goal: goal.into(),
    }
}

fn at_most(against: Against, floor: f64, goal: impl Into<Option<f64>>) -> Bar {
    let reads = match against {
        Against::Nothing => Reads::Ours,
        Against::Peer(_) | Against::Own(_) => Reads::OursOverIt,
    };
    let goal = goal.into();
    Bar {
        reads,
        against,
        floor: Some(floor),
        goal,
    }
}

/// What a row is held to. No bar: it is there to be seen.
pub(crate) fn bars(row: &Row) -> Vec<Bar> {
    let own = |row| Against::Own(row);
    match row.measure {
        Measure::Mean => match row.call {
            Call::Allow => of_a_call(row),
            Call::TryAcquire => {
                let allow = Row {
                    call: Call::Allow,
                    ..*row
                };
                vec![at_most(own(allow), 1.25, None)]
            }
            Call::TryAcquireInTurn => Vec::new(),
            Call::TryAcquireEach => {
                let in_turn = Row {
                    call: Call::TryAcquireInTurn,
                    ..*row
                };
                vec![Bar {
                    reads: Reads::ItOverOurs,
                    against: own(in_turn),
                    floor: None,
                    goal: Some(2.5),
                }]
            }
        },
        Measure::Longest if row.bench == Bench::P10 => {
            vec![at_most(Against::Peer(Limiter::Governor), 0.1, 0.001)]
        }
        Measure::BytesAClient if row.keys == 1_000_000 => {
            vec![at_most(Against::Nothing, 100.0, 56.0)]
        }
        Measure::BytesAClient => vec![at_most(Against::Nothing, 64.0, 52.0)],
        Measure::BytesAtEnd => {
            // Flat but for what the allocator and the page size round.
            let at_cap = Row {
                measure: Measure::BytesAtCap,
                ..*row
            };
            vec![at_most(own(at_cap), 1.05, None)]
        }
        Measure::Positions => vec![at_most(Against::Nothing, 64.0, None)],
        Measure::Rebuilds => vec![at_most(Against::Nothing, 1.0, None)],
        Measure::Allocations if row.algorithm != Some(Algorithm::SlidingLog) => {
            vec![at_most(Against::Nothing, 0.0, 0.0)]
        }
        Measure::Longest
        | Measure::P999
        | Measure::LongestAlone
        | Measure::Total
        | Measure::BytesAtCap
        | Measure::Allocations => Vec::new(),
    }
}

/// Bars of nanoseconds a call to `allow`.
fn of_a_call(row: &Row) -> Vec<Bar> {
    let governor = |floor, goal| faster_than(Limiter::Governor, floor, goal);
    let with_ahash = |floor, goal| faster_than(Limiter::GovernorAhash, floor, goal);
    let admitted = Against::Own(Row {
        answer: Answer::Admitted,
        ..*row
    });
    match (row.bench, row.dist, row.answer) {
        (Bench::P1, _, _) => vec![governor(1.1, 1.6)],
        (Bench::P2, _, _) => vec![governor(1.1, 1.8)],
        (Bench::P3, Dist::Zipf, _) => vec![governor(1.5, 3.0), with_ahash(1.2, 2.0)],
        (Bench::P3, _, _) => vec![governor(2.0, 6.0), with_ahash(1.5, 3.0)],
        (Bench::P4, Dist::Zipf, _) => vec![governor(1.6, 3.0), with_ahash(1.4, 2.0)],
        (Bench::P4, _, _) => vec![governor(1.5, 4.5), with_ahash(1.2, 2.0)],
        (Bench::P5, _, Answer::Refused) => vec![at_most(admitted, 1.1, 1.0)],
        (Bench::P6, _, _) => vec![faster_than(Limiter::RateNet, 2.5, 5.0)],
        (Bench::P7, _, Answer::Admitted) => {
            vec![at_most(Against::Peer(Limiter::Governor), 1.25, 1.0)]
        }
        (Bench::P9, _, _) => vec![at_most(Against::Peer(Limiter::Governor), 0.6, 0.4)],
        (Bench::H2, _, _) => {
            let without = faster_than(Limiter::Baseline, 0.93, 0.97);
            let governor = |peer| faster_than(peer, 1.0, None);
            vec![without, governor(Limiter::TowerGovernor)]
        }
        (Bench::P11, _, Answer::ClientLimit) => vec![at_most(admitted, 1.5, 1.0)],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_met_at_its_bound() {
        let faster = faster_than(Limiter::Governor, 1.5, 3.0);
        assert_eq!(
            [1.49, 1.5, 3.0].map(|ratio| faster.met(ratio)),
            [Met::Missed, Met::Floor, Met::Goal]
        );
        let less = at_most(Against::Nothing, 1.25, 1.0);
        assert_eq!(
            [1.26, 1.25, 1.0].map(|ratio| less.met(ratio)),
            [Met::Missed, Met::Floor, Met::Goal]
        );
        assert_eq!(at_most(Against::Nothing, 64.0, None).met(0.0), Met::Floor);
    }

    #[test]
    fn rate_net_sets_its_bar_in_every_row_of_p6() {
        for dist in [Dist::Hot, Dist::Uniform, Dist::Zipf] {
            let bars = bars(&Row::new(Bench::P6, 1_000, dist, 36));
            let [bar] = bars.as_slice() else {
                panic!("{bars:?}")
            };
            assert_eq!(bar.against, Against::Peer(Limiter::RateNet));
            assert_eq!((bar.floor, bar.goal), (Some(2.5), Some(5.0)));
        }
    }

    #[test]
    fn two_peers_set_two_bars() {
        let row = Row::new(Bench::P4, 1_000_000, Dist::Uniform, 14);
        let floors: Vec<_> = bars(&row).iter().map(|bar| bar.floor).collect();
        assert_eq!(floors, [Some(1.5), Some(1.2)]);
    }

    #[test]
    fn without_a_floor_nothing_is_missed() {
        let in_turn = Row {
            call: Call::TryAcquireInTurn,
            ..Row::new(Bench::P12, 1_000_000, Dist::Uniform, 14)
        };
        let each = Row {
            call: Call::TryAcquireEach,
            ..in_turn
        };
        let bars_of_each = bars(&each);
        let [bar] = bars_of_each.as_slice() else {
            panic!("{bars_of_each:?}")
        };
        assert_eq!(bar.against, Against::Own(in_turn));
        assert_eq!(
            [0.5, 2.49, 2.5].map(|ratio| bar.met(ratio)),
            [Met::Short, Met::Short, Met::Goal]
        );
        assert!(bars(&in_turn).is_empty());
    }
}
