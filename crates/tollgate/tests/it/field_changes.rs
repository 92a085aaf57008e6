//! Cases that other libraries test themselves by: tokens given, owed and brought over to another
//! limit, and the largest numbers. Each is named by its number in the collection they were restated
//! in, and by its library.

use std::time::Duration;

use tollgate::Tokens::{Kept, Proportional, Reset};
use tollgate::{BuildError, FixedWindow, Limiter, Rate, SlidingLog};

use crate::either::Told::{Left, Never, Wait};
use crate::either::{MS, SECOND, check, each, each_from, each_owing, per_ns};

/// bucket4j's largest number.
const MAX: u64 = i64::MAX.cast_unsigned();

#[test]
fn c71_bucket4j_what_is_added_stays_within_the_burst() {
    for (added, held) in [(49, 99), (50, 100), (120, 100)] {
        for bucket in each_from(per_ns(1, 1, 100), 0, 0) {
            bucket.at(50).refund(added);
            assert_eq!(bucket.remaining(), held, "{bucket}");
            assert_eq!(bucket.told(50, held), Left(0), "{bucket}");
            assert_eq!(bucket.told(50, 1), Wait(1), "{bucket}");
        }
    }
}

#[test]
fn c72_bucket4j_the_largest_number_added() {
    for added in [MAX - 1, MAX, u64::MAX - 1, u64::MAX] {
        for bucket in each(Rate::per_hour(1).burst(10)) {
            assert_eq!(bucket.told(0, 1), Left(9));
            bucket.refund(added);
            assert_eq!(bucket.told(0, 10), Left(0), "{bucket}");
            assert!(!bucket.take(1).is_allowed(), "{bucket}");
        }
    }
}

/// bucket4j tells how long the debt lasts; here the wait is for one token more.
#[test]
fn c73_bucket4j_taken_whether_there_or_not() {
    for (at_ns, tokens, held) in [
        (50, 49, 1),
        (50, 52, -2),
        (0, 50, -50_i64),
        (120, 151, -51),
        (201, 400, -300),
    ] {
        for bucket in each_owing(per_ns(1, 1, 100), 300) {
            assert!(bucket.take(100).is_allowed());
            let debit = bucket.at(at_ns).debit(tokens);
            assert_eq!(debit.taken(), tokens, "{bucket}");
            let short = u64::try_from(1 - held).unwrap();
            let wait = Some(Duration::from_nanos(short));
            assert_eq!(debit.next().retry_after(), wait, "{bucket}");
            assert_eq!(bucket.remaining(), u64::try_from(held).unwrap_or(0));
        }
    }
}

/// bucket4j refuses a debt whose end it cannot count. Here a debit takes what the largest debt
/// allows, and says so; and where that is large enough, all of it.
#[test]
fn c73_bucket4j_the_largest_debt() {
    for bucket in each_owing(per_ns(1, 1, 100), 300) {
        assert_eq!(bucket.debit(MAX / 2).taken(), 400, "{bucket}");
        assert_eq!(bucket.debit(1).taken(), 0, "{bucket}");
        assert_eq!(bucket.told(0, 1), Wait(301), "{bucket}");
    }
    for bucket in each_owing(per_ns(1, 1, 100), MAX) {
        assert_eq!(bucket.debit(MAX / 2).taken(), MAX / 2, "{bucket}");
        assert_eq!(bucket.told(0, 1), Wait(MAX / 2 - 99), "{bucket}");
    }
}

#[test]
fn c74_c75_bucket4j_another_burst() {
    let quota = |burst| Rate::per_hour(1).burst(burst);
    for (held, burst, next, tokens, wanted) in [
        (40, 100, 200, Kept, 40),
        (40, 100, 200, Proportional, 80),
        (40, 100, 200, Reset, 200),
        (40, 100, 20, Kept, 20),
        (40, 100, 20, Proportional, 8),
        (40, 100, 20, Reset, 20),
        (500, 500, 200, Kept, 200),
        (200, 500, 900, Kept, 200),
        (200, 500, 900, Proportional, 360),
    ] {
        for bucket in each(quota(burst)) {
            assert_eq!(bucket.told(0, burst - held), Left(held));
            bucket.set_quota(quota(next), tokens).unwrap();
            assert_eq!(bucket.told(0, wanted), Left(0), "{bucket}, {tokens:?}");
            assert!(!bucket.take(1).is_allowed(), "{bucket}, {tokens:?}");
        }
    }
}

/// The bucket holds 1.8 of 3 tokens when the limit becomes 60 in 1,000 ns.
#[test]
fn c76_bucket4j_the_part_of_a_token_is_brought_over() {
    // (nanoseconds after the change, tokens)
    for (tokens, held) in [
        (Kept, [(0, 1), (3, 1), (4, 2)]),
        (Proportional, [(0, 36), (16, 36), (17, 37)]),
        (Reset, [(0, 60), (16, 60), (17, 60)]),
    ] {
        for bucket in each_from(per_ns(3, 5, 3), 0, 0) {
            assert_eq!(bucket.at(3).remaining(), 1);
            bucket.set_quota(per_ns(60, 1_000, 60), tokens).unwrap();
            let got = held.map(|(after, _)| (after, bucket.at(3 + after).remaining()));
            assert_eq!(got, held, "{bucket}, {tokens:?}");
        }
    }
}

/// x/time/rate changes a limiter with reservations out. What is reserved ahead is a debt here, and
/// a reservation acts at the instant at which that is paid.
#[test]
fn c79_x_time_rate_a_change_with_tokens_owed() {
    let (five, ten) = (Rate::per_second(5), Rate::per_second(10));
    let tenth = Duration::from_millis(100);
    let owing = || {
        let each = each_owing(five.burst(2), 10);
        for bucket in &each {
            let taken = [2; 2].map(|tokens| bucket.debit(tokens).taken());
            assert_eq!(taken, [2, 2]);
            let full = bucket.look().reset_after();
            assert_eq!(full, 8 * tenth, "at t4, and 4 more until full");
        }
        each
    };
    for bucket in owing() {
        let bucket = bucket.at(200 * MS);
        bucket.set_quota(ten.burst(2), Kept).unwrap();
        assert_eq!(bucket.debit(1).taken(), 1);
        let paid = bucket.look().reset_after() - 2 * tenth;
        assert_eq!(paid, 2 * tenth, "{bucket}: at t4");
    }
    for bucket in owing() {
        let bucket = bucket.at(200 * MS);
        bucket.set_quota(ten.burst(2), Kept).unwrap();
        bucket.refund(2);
        assert_eq!(bucket.debit(2).taken(), 2);
        let paid = bucket.look().reset_after() - 2 * tenth;
        assert_eq!(paid, tenth, "{bucket}: at t3");
    }
    // x/time/rate is asked at t3 with a time of t0, and acts at t9; here time stays at t3.
    for bucket in owing() {
        let bucket = bucket.at(300 * MS);
        bucket.set_quota(five.burst(4), Kept).unwrap();
        assert_eq!(bucket.debit(4).taken(), 4);
        let paid = bucket.look().reset_after() - 8 * tenth;
        assert_eq!(paid, 9 * tenth, "{bucket}: at t12");
    }
}

/// resilience4j: one permit of the next cycle is taken already when the limit becomes two a cycle.
#[test]
fn c81_resilience4j_a_larger_limit_pays_the_debt_first() {
    for bucket in each_owing(Rate::per_second(1).burst(1), 1) {
        assert_eq!(bucket.debit(2).taken(), 2);
        let wider = Rate::per_second(2).burst(2);
        bucket.set_quota(wider, Kept).unwrap();
        assert_eq!(bucket.told(0, 1), Wait(SECOND), "{bucket}: it owes one");
        assert_eq!(bucket.told(SECOND, 1), Left(0), "{bucket}");
        assert_eq!(bucket.told(SECOND, 1), Wait(SECOND / 2), "{bucket}");
    }
}

#[test]
fn c82_bucket4j_three_of_the_longest_periods_fill() {
    for max in [MAX, u64::MAX] {
        let (burst, period_ns) = (max / 16, max / 8);
        let rows = [
            (3 * period_ns, burst + 1, Never),
            (3 * period_ns, 0, Left(burst)),
            (3 * period_ns, burst, Left(0)),
            (3 * period_ns, 1, Wait(period_ns.div_ceil(burst))),
        ];
        check(each_from(per_ns(burst, period_ns, burst), 7, 0), &rows);
    }
}

#[test]
fn c83_bucket4j_the_largest_burst_is_not_passed() {
    for (quota, elapsed_ns) in [
        (per_ns(1, 1, MAX - 10), 20),
        (per_ns(100, 100, MAX - 10), 50),
        (per_ns(1, 1, u64::MAX - 10), 20),
    ] {
        let burst = quota.burst();
        let rows = [
            (2, 0, Left(burst - 1)),
            (elapsed_ns, 0, Left(burst)),
            (elapsed_ns, burst, Left(0)),
            (elapsed_ns, 1, Wait(1)),
        ];
        check(each_from(quota, burst - 3, 0), &rows);
    }
}

#[test]
fn c84_bucket4j_a_wait_in_the_largest_numbers() {
    for bucket in each_owing(per_ns(MAX / 2, MAX / 2, MAX / 2), 1) {
        assert_eq!(bucket.told(0, MAX / 2), Left(0));
        assert_eq!(bucket.told(0, 10), Wait(10), "{bucket}");
        assert_eq!(bucket.debit(1).taken(), 1);
        assert_eq!(bucket.told(0, MAX / 2), Wait(MAX / 2 + 1), "{bucket}");
        assert_eq!(bucket.told(0, MAX), Never, "{bucket}");
    }
}

/// bucket4j's refill in whole intervals is a fixed window here.
#[test]
fn c85_bucket4j_the_longest_interval() {
    let window = FixedWindow::new(MAX / 4, Duration::from_nanos(MAX / 2));
    for bucket in each_owing(window, 1) {
        assert_eq!(bucket.told(0, MAX / 4), Left(0));
        assert_eq!(bucket.told(0, 10), Wait(MAX / 2), "{bucket}");
        assert_eq!(bucket.debit(1).taken(), 1);
        assert_eq!(bucket.told(0, MAX / 2), Never, "{bucket}");
        assert_eq!(bucket.told(MAX / 2 - 1, 1), Wait(1), "{bucket}");
        assert_eq!(bucket.told(MAX / 2, MAX / 4), Left(0), "{bucket}");
    }
}

/// bucket4j goes over to floats here.
#[test]
fn c86_bucket4j_the_largest_numbers_are_exact() {
    let (tokens, period_ns) = (MAX / 16, MAX / 8);
    let exact = |elapsed_ns: u64| {
        let product = u128::from(tokens) * u128::from(elapsed_ns);
        u64::try_from(product / u128::from(period_ns)).unwrap()
    };
    for (elapsed_ns, wanted) in [
        (1, 0),
        (2, 0),
        (3, 1),
        (period_ns / 3, exact(period_ns / 3)),
        (period_ns / 2, exact(period_ns / 2)),
        (period_ns - 2, tokens - 1),
        (period_ns - 1, tokens - 1),
        (period_ns, tokens),
    ] {
        for bucket in each_from(per_ns(tokens, period_ns, tokens), 0, 0) {
            assert_eq!(bucket.at(elapsed_ns).remaining(), wanted, "{bucket}");
        }
    }
}

/// Elapsed time times tokens, in 64 bits, wraps around to little or nothing: bucket4j's refill
/// multiplies unchecked.
#[test]
fn c87_bucket4j_a_product_that_wraps_fills() {
    for (tokens, elapsed_ns) in [
        (1 << 40, 1 << 23),
        (1 << 40, 1 << 24),
        ((1 << 40) + 1, 1 << 24),
        (3 << 40, 5_592_406),
        (1 << 40, u64::MAX),
    ] {
        let rows = [
            (elapsed_ns, 0, Left(1 << 50)),
            (elapsed_ns, 1 << 50, Left(0)),
            (elapsed_ns, 1, Wait(1)),
        ];
        check(each_from(per_ns(tokens, 1, 1 << 50), 0, 0), &rows);
    }
}

/// node-rate-limiter-flexible#71 and #231, express-rate-limit#546: a timer of 2^31 ms went off at
/// once.
#[test]
fn c88_node_and_express_a_window_longer_than_a_timer() {
    let window = Duration::from_millis(1 << 31);
    let window_ns = (1 << 31) * MS;
    let rows = [
        (0, 1, Left(0)),
        (0, 1, Wait(window_ns)),
        (MS, 1, Wait(window_ns - MS)),
        (window_ns - 1, 1, Wait(1)),
        (window_ns, 1, Left(0)),
    ];
    check(each(Rate::new(1, window).burst(1)), &rows);
    check(each(FixedWindow::new(1, window)), &rows);
    check(each(FixedWindow::new(1, window).aligned()), &rows);
    check(each(SlidingLog::new(1, window)), &rows);
    let longest = Duration::from_nanos(u64::MAX);
    let window = longest + Duration::from_nanos(1);
    let refused = Limiter::builder(FixedWindow::new(1, window)).build();
    let error = BuildError::WindowTooLong { window, longest };
    assert_eq!(refused.unwrap_err(), error);
}
