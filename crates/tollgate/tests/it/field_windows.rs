//! Cases that other libraries test themselves by: windows, fixed and sliding, and queues. Each is
//! named by its number in the collection they were restated in, and by its library.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tollgate::{
    AnyLimit, BuildError, FixedWindow, KeyedLimiter, LeakyBucket, Limiter, ManualClock, Rate,
    SlidingLog, SlidingWindowCounter, Tokens,
};

use crate::either::Told::{Left, Never, Wait};
use crate::either::{MS, SECOND, check, each};

const MINUTE: Duration = Duration::from_secs(60);

/// Every window of so many tokens.
fn windows(limit: u64, window: Duration) -> [AnyLimit; 4] {
    [
        FixedWindow::new(limit, window).into(),
        FixedWindow::new(limit, window).aligned().into(),
        SlidingLog::new(limit, window).into(),
        SlidingWindowCounter::new(limit, window).into(),
    ]
}

/// bucket4j refills in whole intervals: 9 in 10 ns, none before.
#[test]
fn c64_bucket4j_whole_intervals_are_a_fixed_window() {
    for bucket in each(FixedWindow::new(9, Duration::from_nanos(10))) {
        assert_eq!(bucket.told(0, 9), Left(0));
        let held = [4, 9, 10, 11].map(|at_ns| bucket.at(at_ns).remaining());
        assert_eq!(held, [0, 0, 9, 9], "{bucket}");
    }
}

#[test]
fn c66_bucket4j_waits_for_a_whole_interval() {
    let rows = [
        (0, 10, Left(0)),
        (0, 1, Wait(60 * SECOND)),
        (0, 10, Wait(60 * SECOND)),
        (15 * SECOND, 1, Wait(45 * SECOND)),
        (15 * SECOND, 15, Never),
    ];
    check(each(FixedWindow::new(10, MINUTE)), &rows);
}

/// bucket4j aligns to a given instant; windows here are aligned to the clock's zero.
#[test]
fn c69_bucket4j_alignment_survives_a_pause() {
    let window = FixedWindow::new(400, Duration::from_millis(100)).aligned();
    let rows = [
        (32_849 * MS, 400, Left(0)),
        (32_849 * MS, 1, Wait(51 * MS)),
        (32_900 * MS - 1, 1, Wait(1)),
        (32_900 * MS, 400, Left(0)),
    ];
    check(each(window), &rows);
}

/// limits: 2 a minute, and the first of two leaves in 58 s.
#[test]
fn c89_limits_a_moving_window() {
    let rows = [
        (0, 1, Left(1)),
        (SECOND, 1, Left(0)),
        (2 * SECOND, 1, Wait(58 * SECOND)),
        (60 * SECOND, 1, Left(0)),
    ];
    check(each(SlidingLog::new(2, MINUTE)), &rows);
}

/// The example of limits' documentation.
#[test]
fn c90_limits_the_oldest_leaves_first() {
    let rows = [
        (10 * SECOND, 1, Left(9)),
        (20 * SECOND, 2, Left(7)),
        (30 * SECOND, 4, Left(3)),
        (50 * SECOND, 3, Left(0)),
        (71 * SECOND, 1, Left(0)),
        (72 * SECOND, 1, Wait(8 * SECOND)),
    ];
    check(each(SlidingLog::new(10, MINUTE)), &rows);
}

/// limits still counts a call that is exactly a window old. Here a call counts in
/// (now - window, now].
#[test]
fn c91_limits_at_the_age_of_a_window_a_call_is_out() {
    let rows = [
        (0, 1, Left(0)),
        (60 * SECOND - 1, 1, Wait(1)),
        (60 * SECOND, 1, Left(0)),
    ];
    check(each(SlidingLog::new(1, MINUTE)), &rows);
}

/// limits rounds what is weighed down; compared exactly, 93.3 and 7 are more than 100.
#[test]
fn c92_limits_a_weighed_window() {
    let rows = [
        (0, 40, Left(60)),
        (90 * SECOND, 80, Left(0)),
        (90 * SECOND, 1, Wait(1_500 * MS)),
        (100 * SECOND, 0, Left(6)),
        (100 * SECOND, 7, Wait(500 * MS)),
        (100 * SECOND, 1, Left(5)),
        (100 * SECOND, 5, Left(0)),
    ];
    check(each(SlidingWindowCounter::new(100, MINUTE)), &rows);
}

/// httprate rounds the 9.4 that are used to 9, and admits one more.
#[test]
fn c93_httprate_a_weighed_window_is_not_rounded() {
    let rows = [
        (50 * SECOND, 10, Left(0)),
        (146 * SECOND, 4, Left(0)),
        (146 * SECOND, 1, Wait(4 * SECOND)),
        (150 * SECOND - 1, 1, Wait(1)),
        (150 * SECOND, 1, Left(0)),
    ];
    let window = Duration::from_secs(100);
    check(each(SlidingWindowCounter::new(10, window)), &rows);
}

/// upstash/ratelimit-js#39: rounding refused even the first.
#[test]
fn c94_upstash_a_limit_of_one_admits_one() {
    let rows = [
        (30 * SECOND, 1, Left(0)),
        (30 * SECOND, 1, Wait(90 * SECOND)),
        (119 * SECOND, 1, Wait(SECOND)),
        (120 * SECOND, 1, Left(0)),
    ];
    check(each(SlidingWindowCounter::new(1, MINUTE)), &rows);
}

/// utopia-php/abuse#121: what was forgotten after one window was missing from the next.
#[test]
fn c95_utopia_a_window_is_weighed_in_the_next() {
    let rows = [
        (0, 10, Left(0)),
        (11 * SECOND, 0, Left(1)),
        (19 * SECOND, 0, Left(9)),
        (20 * SECOND - 1, 10, Wait(1)),
        (20 * SECOND, 10, Left(0)),
    ];
    let window = Duration::from_secs(10);
    check(each(SlidingWindowCounter::new(10, window)), &rows);
}

/// limits charges a fixed window for what it refuses, and then has nothing left for 2.
#[test]
fn c96_limits_a_refusal_takes_nothing() {
    for limit in windows(10, MINUTE) {
        for bucket in each(limit) {
            assert_eq!(bucket.told(0, 8), Left(2));
            assert!(!bucket.take(5).is_allowed());
            assert_eq!(bucket.told(0, 2), Left(0), "{bucket}, {limit:?}");
        }
    }
}

#[test]
fn c97_limits_costs() {
    for limit in windows(10, MINUTE) {
        for bucket in each(limit) {
            assert_eq!(bucket.told(0, 11), Never);
            assert_eq!(bucket.told(0, 5), Left(5));
            let refused = bucket.take(6);
            assert_eq!((refused.is_allowed(), refused.remaining()), (false, 5));
            assert_eq!(bucket.told(0, 5), Left(0), "{bucket}, {limit:?}");
        }
    }
}

/// ulule/limiter's reset is the same limit given again, or a client removed.
#[test]
fn c98_ulule_three_a_minute() {
    for limit in windows(3, MINUTE) {
        for bucket in each(limit) {
            assert_eq!([1; 3].map(|cost| bucket.take(cost).remaining()), [2, 1, 0]);
            assert!(!bucket.take(1).is_allowed());
            assert_eq!([bucket.remaining(), bucket.remaining()], [0, 0]);
            bucket.set_quota(limit, Tokens::Reset).unwrap();
            assert_eq!(bucket.remaining(), 3, "{bucket}, {limit:?}");
            assert_eq!(bucket.told(0, 3), Left(0), "{bucket}, {limit:?}");
        }
        let clients = KeyedLimiter::builder(limit, 10)
            .clock(ManualClock::default())
            .build()
            .unwrap();
        assert!(clients.try_acquire("alice", 3).is_allowed() && !clients.allow("alice"));
        assert!(clients.remove("alice"));
        assert_eq!(clients.try_acquire("alice", 1).remaining(), 2, "{limit:?}");
    }
}

#[test]
fn c98_ulule_of_a_hundred_ten_pass() {
    for limit in windows(10, MINUTE) {
        for bucket in each(limit) {
            assert_eq!(bucket.passed([0; 100]), 10, "{bucket}, {limit:?}");
        }
        for bucket in each(limit) {
            let (barrier, passed) = (Barrier::new(10), AtomicUsize::new(0));
            thread::scope(|scope| {
                for _ in 0..10 {
                    scope.spawn(|| {
                        barrier.wait();
                        for _ in 0..10 {
                            let passes = usize::from(bucket.take(1).is_allowed());
                            passed.fetch_add(passes, Ordering::Relaxed);
                        }
                    });
                }
            });
            assert_eq!(passed.into_inner(), 10, "{bucket}, {limit:?}");
        }
    }
}

/// mennanov/limiters' windows are aligned. Of those that open at the first call, fewer begin in
/// the last row's time.
#[test]
fn c99_mennanov_fixed_windows() {
    let window = Duration::from_millis(100);
    for (limit, calls, apart_ms, aligned, from_the_first) in
        [(2, 20, 25, 10, 10), (4, 20, 25, 20, 20), (2, 15, 33, 10, 8)]
    {
        let times = || (0..calls).map(|call| call * apart_ms * MS);
        let fixed = FixedWindow::new(limit, window);
        for bucket in each(fixed.aligned()) {
            assert_eq!(bucket.passed(times()), aligned, "{bucket}");
        }
        for bucket in each(fixed) {
            assert_eq!(bucket.passed(times()), from_the_first, "{bucket}");
        }
    }
}

/// httprate's windows start with its limiter, at any offset.
#[test]
fn c100_httprate_windows_at_an_offset() {
    let (window, window_ns) = (Duration::from_secs(1), SECOND);
    for offset_ns in [0, 347 * MS, window_ns - 1] {
        let start_ns = 5 * window_ns + offset_ns;
        let rows = [
            (start_ns, 1, Left(0)),
            (start_ns, 1, Wait(window_ns)),
            (start_ns + window_ns - 1, 1, Wait(1)),
            (start_ns + window_ns, 1, Left(0)),
        ];
        check(each(FixedWindow::new(1, window)), &rows);
        check(each(SlidingLog::new(1, window)), &rows);
        let end_ns = 6 * window_ns;
        let rows = [
            (start_ns, 1, Left(0)),
            (start_ns, 1, Wait(end_ns - start_ns)),
            (end_ns, 1, Left(0)),
        ];
        check(each(FixedWindow::new(1, window).aligned()), &rows);
    }
}

/// httprate refuses a cost above the limit as any other; here that is never, and says that 0
/// remain.
#[test]
fn c101_httprate_costs_of_a_request() {
    // (cost, passes, remaining)
    let of_three = [
        (2, true, 1),
        (2, false, 1),
        (0, true, 1),
        (2, false, 1),
        (2, false, 1),
    ];
    let of_five = [
        (2, true, 3),
        (2, true, 1),
        (1, true, 0),
        (2, false, 0),
        (10, false, 0),
        (1, false, 0),
    ];
    for (limit, rows) in [(3, &of_three[..]), (5, &of_five)] {
        for limit in windows(limit, MINUTE) {
            for bucket in each(limit) {
                for (cost, passes, remaining) in rows {
                    let decision = bucket.take(*cost);
                    let got = (decision.is_allowed(), decision.remaining());
                    assert_eq!(got, (*passes, *remaining), "{bucket}, {limit:?}");
                }
            }
        }
    }
}

/// httprate's counter: a window's calls are the last window's in the next, and gone after two.
#[test]
fn c102_httprate_the_counter_moves_on() {
    let rows = [
        (0, 1, Left(199)),
        (0, 99, Left(100)),
        (60 * SECOND, 0, Left(100)),
        (60 * SECOND, 20, Left(80)),
        (90 * SECOND, 0, Left(130)),
        (120 * SECOND, 0, Left(180)),
        (180 * SECOND, 0, Left(200)),
        (180 * SECOND, 200, Left(0)),
    ];
    for bucket in each(SlidingWindowCounter::new(200, MINUTE)) {
        for (at_ns, cost, wanted) in rows {
            assert_eq!(bucket.told(at_ns, cost), wanted, "{bucket}, {at_ns} ns");
        }
        let idle = bucket.at(300 * SECOND).look();
        let as_new = (200, Duration::ZERO);
        assert_eq!((idle.remaining(), idle.reset_after()), as_new, "{bucket}");
    }
}

/// node-rate-limiter-flexible: a block is not made longer by who tries on, penalties and rewards
/// are tokens taken and given, and execEvenly spreads calls as a queue does. A duration of zero,
/// which never resets there, is refused here.
#[test]
fn c103_node_blocks_penalties_and_even_spreading() {
    let two = Duration::from_secs(2);
    for limit in windows(2, Duration::from_secs(1)) {
        for bucket in each(limit) {
            bucket.ban(two);
            for at_ns in [0, SECOND, 2 * SECOND - 1] {
                let wanted = Wait(2 * SECOND - at_ns);
                assert_eq!(bucket.told(at_ns, 1), wanted, "{bucket}, {limit:?}");
            }
            assert_eq!(bucket.told(2 * SECOND, 1), Left(1), "{bucket}, {limit:?}");
            assert_eq!(bucket.debit(1).taken(), 1);
            assert_eq!((bucket.remaining(), bucket.passed([2 * SECOND])), (0, 0));
            bucket.refund(1);
            assert_eq!(bucket.told(2 * SECOND, 1), Left(0), "{bucket}, {limit:?}");
        }
    }
    let even = LeakyBucket::new(Rate::new(2, Duration::from_secs(5)).burst(2));
    for bucket in each(even) {
        let delays = [1; 2].map(|cost| bucket.take(cost).delay());
        assert_eq!(delays, [0, 2_500].map(Duration::from_millis), "{bucket}");
    }
    let refused = Limiter::builder(FixedWindow::new(1, Duration::ZERO)).build();
    assert_eq!(refused.unwrap_err(), BuildError::WindowIsZero);
}

/// mennanov/limiters refuses the third with the 200 ms that it would wait in the queue; here it is
/// told when there is a place again.
#[test]
fn c104_mennanov_a_queue_of_two() {
    let queue = LeakyBucket::new(Rate::new(1, Duration::from_millis(100)).burst(2));
    for bucket in each(queue) {
        for delay_ms in [0, 100] {
            let taken = bucket.take(1);
            assert!(taken.is_allowed());
            assert_eq!(taken.delay(), Duration::from_millis(delay_ms), "{bucket}");
        }
        assert_eq!(bucket.told(0, 1), Wait(100 * MS), "{bucket}");
        let later = bucket.at(100 * MS).take(1);
        assert!(later.is_allowed());
        assert_eq!(later.delay(), Duration::from_millis(100), "{bucket}");
    }
}

/// express-rate-limit#647: a call that was uncounted after its window had closed left the next one
/// below zero.
#[test]
fn c105_express_an_uncount_in_the_next_window() {
    let fixed = FixedWindow::new(5, Duration::from_secs(10));
    for window in [fixed, fixed.aligned()] {
        for others in [0, 1, 2] {
            for bucket in each(window) {
                let charge = bucket.charge(1).unwrap();
                assert_eq!(bucket.passed([9 * SECOND]), 1);
                bucket.at(10 * SECOND);
                assert_eq!(bucket.passed(vec![10 * SECOND; others]), others);
                bucket.cancel(charge);
                let left = 5 - others as u64;
                assert_eq!(bucket.remaining(), left, "{bucket}");
                bucket.refund(u64::MAX);
                assert_eq!(bucket.passed([10 * SECOND; 20]), 5, "{bucket}");
            }
        }
    }
}
