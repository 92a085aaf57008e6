//! Cases that other libraries test themselves by: several limits on one call. Each is named by its
//! number in the collection they were restated in, and by its library.

use std::time::Duration;

use tollgate::{FixedWindow, KeyedLimiter, ManualClock, Rate, Together, acquire_all};

use crate::either::Told::{Left, Wait};
use crate::either::{Either, SECOND, each, each_from, per_ns};

/// Buckets that are asked together.
struct Group {
    all: Vec<Either>,
    /// The last one is asked first.
    backwards: bool,
}

/// Buckets of each kind, one list a limit: with those of their kind and with those of another, in
/// either order.
fn groups(limits: impl Fn() -> Vec<Vec<Either>>) -> Vec<Group> {
    let mut groups = Vec::new();
    for (mixed, backwards) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut lists = limits();
        for (place, list) in lists.iter_mut().enumerate().filter(|_| mixed) {
            let kinds = list.len();
            list.rotate_left(place % kinds);
        }
        while lists.iter().all(|list| !list.is_empty()) {
            let all = lists.iter_mut().filter_map(Vec::pop).collect();
            groups.push(Group { all, backwards });
        }
    }
    groups
}

impl Group {
    /// So many tokens of each.
    fn take(&self, at_ns: u64, cost: u64) -> Together {
        let asks = self.all.iter().map(|bucket| bucket.at(at_ns).ask(cost));
        let mut asks: Vec<_> = asks.collect();
        if self.backwards {
            asks.reverse();
        }
        acquire_all(&mut asks)
    }

    /// Which of them refused.
    fn refuser(&self, together: Together) -> Option<usize> {
        let place = together.refused_by()?;
        let last = self.all.len() - 1;
        Some(if self.backwards { last - place } else { place })
    }

    fn remaining(&self) -> Vec<u64> {
        self.all.iter().map(Either::remaining).collect()
    }
}

#[test]
fn c23_bucket4j_the_longest_wait_of_two() {
    for group in groups(|| {
        vec![
            each_from(per_ns(10, 100, 10), 1, 0).into(),
            each_from(per_ns(5, 10, 5), 2, 0).into(),
        ]
    }) {
        for (at_ns, wanted) in [(0, Wait(20)), (19, Wait(1)), (20, Left(0))] {
            let together = group.take(at_ns, 3);
            assert_eq!(wanted, together.decision().into(), "at {at_ns} ns");
            let refuser = (at_ns < 20).then_some(0);
            assert_eq!(group.refuser(together), refuser, "at {at_ns} ns");
        }
    }
}

#[test]
fn c30_bucket4j_the_time_until_both_are_full() {
    for (first, second, full_ns) in [(1, 2, 90), (3, 5, 70), (10, 0, 10), (10, 5, 0)] {
        for group in groups(|| {
            vec![
                each_from(per_ns(10, 100, 10), first, 0).into(),
                each_from(per_ns(5, 10, 5), second, 0).into(),
            ]
        }) {
            let looked = group.take(0, 0).decision();
            let full = Duration::from_nanos(full_ns);
            assert_eq!(looked.reset_after(), full, "{first}, {second}");
        }
    }
}

/// bucket4j#51: after twelve idle hours the tokens overflowed, and everything was refused.
#[test]
fn c62_bucket4j_three_limits_after_a_long_pause() {
    for group in groups(|| {
        vec![
            each(Rate::per_hour(700_000).burst(700_000)),
            each(Rate::per_minute(14_500).burst(14_500)),
            each(Rate::per_second(300).burst(300)),
        ]
    }) {
        assert!(group.take(0, 300).is_allowed());
        let later_ns = 12 * 3_600 * SECOND;
        for (cost, wanted) in [(1, Left(299)), (299, Left(0)), (1, Wait(3_333_334))] {
            let together = group.take(later_ns, cost);
            assert_eq!(wanted, together.decision().into(), "{cost}");
        }
        assert_eq!(group.remaining(), [699_700, 14_200, 0]);
    }
}

#[test]
fn c63_bucket4j_the_least_of_two_is_there() {
    for group in groups(|| {
        vec![
            each_from(Rate::per_hour(1).burst(10), 5, 0).into(),
            each_from(Rate::per_hour(1).burst(2), 2, 0).into(),
        ]
    }) {
        assert_eq!(group.take(0, 0).decision().remaining(), 2);
        for bucket in &group.all {
            bucket.refund(3);
        }
        assert_eq!(group.take(0, 0).decision().remaining(), 2);
        assert_eq!(group.remaining(), [8, 2]);
    }
}

/// langfuse/langfuse#14280 and dotnet/runtime#113314: the first of two limits was charged for what
/// the second refused.
#[test]
fn c70_langfuse_and_dotnet_a_refusal_charges_nobody() {
    for group in groups(|| {
        vec![
            each(Rate::per_hour(1).burst(10)),
            each(Rate::per_hour(1).burst(1)),
        ]
    }) {
        assert!(group.take(0, 1).is_allowed());
        for _ in 0..20 {
            let together = group.take(0, 1);
            assert!(!together.is_allowed());
            assert_eq!(group.refuser(together), Some(1));
            assert_eq!(group.remaining(), [9, 0]);
        }
    }
}

/// A client stuck on its own limit burnt the one that all share with requests that were refused.
#[test]
fn b11_what_one_limit_refuses_is_not_charged_to_another() {
    for backwards in [false, true] {
        for global in each(Rate::per_hour(1).burst(10)) {
            let users = KeyedLimiter::builder(Rate::per_hour(1).burst(1), 100)
                .clock(ManualClock::default())
                .build()
                .unwrap();
            let refuser = |name: &str| {
                let mut asks = [users.ask(name, 1), global.ask(1)];
                if backwards {
                    asks.reverse();
                }
                let place = acquire_all(&mut asks).refused_by();
                place.map(|place| if backwards { 1 - place } else { place })
            };
            assert_eq!(refuser("A"), None);
            for _ in 1..20 {
                assert_eq!(refuser("A"), Some(0), "{global}");
            }
            for name in ["B", "C", "D", "E", "F", "G", "H", "I", "J"] {
                assert_eq!(refuser(name), None, "{name}, {global}");
            }
            assert_eq!(refuser("K"), Some(1), "{global}");
            assert_eq!(users.peek("K").remaining(), 1, "{global}");
            assert_eq!(global.remaining(), 0);
        }
    }
}

/// B11 in windows: ten a minute, and thirty in half an hour.
#[test]
fn b11_the_long_window_counts_what_the_short_one_admits() {
    let window = |limit, secs| FixedWindow::new(limit, Duration::from_secs(secs)).aligned();
    for group in groups(|| vec![each(window(10, 60)), each(window(30, 1_800))]) {
        for (at_ns, calls) in [(0, 16), (60 * SECOND, 15)] {
            let passes = |_: &u64| group.take(at_ns, 1).is_allowed();
            assert_eq!((0..calls).filter(passes).count(), 10, "at {at_ns} ns");
        }
        assert_eq!(group.remaining(), [0, 10]);
    }
}
