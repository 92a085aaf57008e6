//! Cases that other libraries test themselves by: how long to wait, and until a bucket is full.
//! Each is named by its number in the collection they were restated in, and by its library.

use std::time::Duration;

use tollgate::{AnyLimit, Decision, LeakyBucket, Rate};

use crate::either::Told::{Left, Never, Wait};
use crate::either::{Either, MS, SECOND, Told, check, each, each_from, each_owing, per_ns};

/// The wait is enough, and a nanosecond less is not.
fn passes_after(bucket: &Either, cost: u64, wait_ns: u64) {
    assert_eq!(bucket.told(0, cost), Wait(wait_ns), "{bucket}");
    assert_eq!(bucket.told(wait_ns - 1, cost), Wait(1), "{bucket}");
    assert!(bucket.at(wait_ns).take(cost).is_allowed(), "{bucket}");
}

/// bucket4j computes a delay also for more than the bucket holds; here that is never.
#[test]
fn c22_bucket4j_delays() {
    for (quota, held, cost, wanted) in [
        (per_ns(10, 100, 10), 0, 10, Wait(100)),
        (per_ns(2, 100, 10), 0, 10, Wait(500)),
        (per_ns(10, 100, 10), 4, 7, Wait(30)),
        (per_ns(10, 100, 11), 4, 11, Wait(70)),
        (per_ns(10, 100, 10), 4, 11, Never),
        (per_ns(10, 100, 10), 4, 4, Left(0)),
        (per_ns(10, 100, 10), 10, 3, Left(7)),
    ] {
        check(each_from(quota, held, 0), &[(0, cost, wanted)]);
    }
}

/// bucket4j#88: the part of a token that was there was ignored.
#[test]
fn c24_bucket4j_the_wait_counts_what_is_there() {
    let rows = [
        (0, 4, Left(0)),
        (200 * MS, 1, Wait(800 * MS)),
        (200 * MS, 3, Wait(2_800 * MS)),
        (200 * MS, 1, Wait(800 * MS)),
        (SECOND, 1, Left(0)),
        (SECOND, 3, Wait(3 * SECOND)),
    ];
    check(each(Rate::per_second(1).burst(4)), &rows);
}

/// bucket4j says a nanosecond less in the first three, and refuses then; in the last it says 0
/// while it refuses.
#[test]
fn c25_bucket4j_waits_round_up() {
    for (tokens, period_ns, cost, wait_ns) in [
        (3, 10, 1, 4),
        (7, 1_000, 1, 143),
        (3, 5, 2, 4),
        (100, 7, 1, 1),
    ] {
        for bucket in each_from(per_ns(tokens, period_ns, 100), 0, 0) {
            passes_after(&bucket, cost, wait_ns);
        }
    }
    // The same of every rate of small numbers.
    for tokens in 1..=24 {
        for period_ns in 1..=24 {
            for cost in 1..=4_u64 {
                let wait_ns = (cost * period_ns).div_ceil(tokens);
                for bucket in each_from(per_ns(tokens, period_ns, 4), 0, 0) {
                    passes_after(&bucket, cost, wait_ns);
                }
            }
        }
    }
}

/// mennanov/limiters says 100 ms, as if nothing of the next token had been earned.
#[test]
fn c26_mennanov_progress_counts() {
    let rows = [
        (0, 2, Left(0)),
        (100 * MS, 1, Left(0)),
        (160 * MS, 1, Wait(40 * MS)),
        (200 * MS, 1, Left(0)),
    ];
    let tenth = Rate::new(1, Duration::from_millis(100));
    check(each(tenth.burst(2)), &rows);
}

/// .NET says 2 periods where 3 are needed. Tokens come evenly here: it is two and a half.
#[test]
fn c27_dotnet_periods_are_not_rounded_down() {
    for bucket in each_from(Rate::per_second(2).burst(5), 0, 0) {
        passes_after(&bucket, 5, 2_500 * MS);
    }
}

#[test]
fn c28_bucket4j_a_probe_says_what_is_left_or_how_long() {
    let quota = per_ns(1, 1, 100);
    for (held, cost, wanted, left) in [
        (100, 49, Left(51), 51),
        (70, 80, Wait(10), 70),
        (70, 120, Never, 70),
        (100, 120, Never, 100),
    ] {
        for bucket in each_from(quota, held, 0) {
            assert_eq!(bucket.told(0, cost), wanted, "{bucket}");
            assert_eq!(bucket.remaining(), left, "{bucket}");
        }
    }
}

/// bucket4j's estimates: a look, and a call that is refused, change nothing, however often.
#[test]
fn c29_bucket4j_asking_changes_nothing() {
    for bucket in each(per_ns(1, 1, 100)) {
        for _ in 0..2 {
            assert_eq!(bucket.remaining(), 100, "{bucket}");
            assert_eq!(bucket.told(0, 120), Never);
        }
        assert_eq!(bucket.told(0, 49), Left(51), "{bucket}");
        for _ in 0..2 {
            assert_eq!(bucket.remaining(), 51, "{bucket}");
            assert_eq!(bucket.told(0, 80), Wait(29), "{bucket}");
        }
        assert_eq!(bucket.told(0, 51), Left(0), "{bucket}");
    }
}

#[test]
fn c30_bucket4j_the_time_until_full() {
    let quota = per_ns(10, 100, 10);
    for (held, full_ns) in [(1, 90), (4, 60), (10, 0)] {
        for bucket in each_from(quota, held, 0) {
            let full = Duration::from_nanos(full_ns);
            assert_eq!(bucket.look().reset_after(), full, "{bucket}");
        }
    }
    for bucket in each_owing(per_ns(2, 100, 10), 23) {
        assert_eq!(bucket.debit(33).taken(), 33);
        let full = Duration::from_nanos(1_650);
        assert_eq!(bucket.look().reset_after(), full, "{bucket}");
    }
}

/// throttled calls it GCRA, with a burst of 4 beside the one; a token bucket of 5 answers the same,
/// and so does a leaky bucket.
#[test]
fn c31_throttled_gcra() {
    let quota = Rate::per_second(1).burst(5);
    // (tenths of a second, cost, answer, tenths until full)
    let rows = [
        (0, 6, Never, 0),
        (0, 1, Left(4), 10),
        (0, 1, Left(3), 20),
        (0, 1, Left(2), 30),
        (0, 1, Left(1), 40),
        (0, 1, Left(0), 50),
        (0, 1, Wait(SECOND), 50),
        (30, 1, Left(2), 30),
        (31, 1, Left(1), 39),
        (40, 1, Left(1), 40),
        (80, 1, Left(4), 10),
        (95, 1, Left(4), 10),
        (95, 0, Left(4), 10),
        (95, 2, Left(2), 30),
        (95, 5, Wait(3 * SECOND), 30),
        (150, 6, Never, 0),
    ];
    for limit in [AnyLimit::from(quota), LeakyBucket::new(quota).into()] {
        for bucket in each(limit) {
            for (row, (tenths, cost, wanted, full)) in rows.into_iter().enumerate() {
                let decision = bucket.at(tenths * 100 * MS).take(cost);
                assert_eq!(Told::from(decision), wanted, "{bucket}, row {row}");
                let full = Duration::from_millis(full * 100);
                assert_eq!(bucket.look().reset_after(), full, "{bucket}, row {row}");
                if let Decision::Limited { remaining, .. } = decision {
                    assert_eq!(remaining, bucket.remaining(), "{bucket}, row {row}");
                }
            }
            assert_eq!(bucket.remaining(), 5, "{bucket}");
        }
    }
}

/// throttled cuts a token's time to whole nanoseconds: 3 a second come to 3 more in a billion
/// seconds, and two a nanosecond to a period of zero.
#[test]
fn c32_throttled_a_period_is_not_cut() {
    let (giga, end_ns) = (1_000_000_000, 1_000_000_000 * SECOND);
    for per_second in [3, 7] {
        let tokens = per_second * giga;
        for bucket in each_from(Rate::per_second(per_second).burst(tokens + 1), 0, 0) {
            assert_eq!(bucket.at(end_ns - 1).remaining(), tokens - 1, "{bucket}");
            assert_eq!(bucket.at(end_ns).remaining(), tokens, "{bucket}");
        }
    }
    for bucket in each_from(Rate::per_second(2 * giga).burst(10), 0, 0) {
        let held = [0, 1, 2, 5, 6].map(|at_ns| bucket.at(at_ns).remaining());
        assert_eq!(held, [0, 2, 4, 10, 10], "{bucket}");
    }
}
