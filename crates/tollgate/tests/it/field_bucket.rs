//! Cases that other libraries test themselves by: one token bucket, and what it lets through. Each
//! is named by its number in the collection they were restated in, and by its library.

use std::collections::HashSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tollgate::{
    BuildError, ChangeError, Clock, KeyedLimiter, Limiter, Rate, RateError, Timestamp, TokenBucket,
    Tokens,
};

use crate::either::Told::{Left, Never, Wait};
use crate::either::{MS, SECOND, check, each, each_from, each_owing, per_ns};
use crate::harness::at;

/// A tenth of a second, of which x/time/rate's tables have t0, t1 and so on.
const T: u64 = 100 * MS;

#[test]
fn c01_x_time_rate_one_at_a_time() {
    let rows = [
        (0, 1, Left(0)),
        (0, 1, Wait(T)),
        (0, 1, Wait(T)),
        (T, 1, Left(0)),
        (T, 1, Wait(T)),
        (T, 1, Wait(T)),
        (2 * T, 2, Never),
        (2 * T, 1, Left(0)),
        (2 * T, 1, Wait(T)),
    ];
    check(each(Rate::per_second(10).burst(1)), &rows);
}

#[test]
fn c02_x_time_rate_three_at_once() {
    // (tenths of a second, tokens before, cost, answer)
    let rows = [
        (0, 3, 2, Left(1)),
        (0, 1, 2, Wait(T)),
        (0, 1, 1, Left(0)),
        (0, 0, 1, Wait(T)),
        (1, 1, 4, Never),
        (2, 2, 1, Left(1)),
        (3, 2, 1, Left(1)),
        (4, 2, 1, Left(1)),
        (4, 1, 1, Left(0)),
        (4, 0, 1, Wait(T)),
        (4, 0, 1, Wait(T)),
        (9, 3, 3, Left(0)),
        (9, 0, 0, Left(0)),
    ];
    for bucket in each(Rate::per_second(10).burst(3)) {
        for (row, (tenths, before, cost, wanted)) in rows.into_iter().enumerate() {
            assert_eq!(bucket.at(tenths * T).remaining(), before, "{bucket}, {row}");
            assert_eq!(bucket.told(tenths * T, cost), wanted, "{bucket}, {row}");
        }
    }
}

/// x/time/rate, golang/go#71360: a stale time rewound the bucket, which then earned the same token
/// twice. Here a time that goes back is an error, and changes nothing.
#[test]
fn c03_x_time_rate_a_time_that_goes_back_is_an_error() {
    for bucket in each(Rate::per_second(10).burst(3)) {
        let passes = |tenths: u64| bucket.take_at(1, tenths * T).map(|call| call.is_allowed());
        assert_eq!(passes(1), Ok(true));
        for _ in 0..4 {
            let error = passes(0).unwrap_err();
            assert_eq!((error.now(), error.latest()), (at(0), at(T)), "{bucket}");
        }
        assert_eq!([1; 3].map(passes), [Ok(true), Ok(true), Ok(false)]);
        assert_eq!([2; 3].map(passes), [Ok(true), Ok(false), Ok(false)]);
    }
}

/// The same of a clock that broke its promise to be monotonic: its stale calls are judged at the
/// latest time, and take what is there, once.
#[test]
fn c03_x_time_rate_a_stale_reading_earns_nothing_twice() {
    struct Broken(AtomicU64);

    impl Clock for Broken {
        const MONOTONIC: bool = true;

        fn now(&self) -> Timestamp {
            at(self.0.load(Ordering::Relaxed))
        }
    }

    let clock = Broken(AtomicU64::new(0));
    let quota = Rate::per_second(10).burst(3);
    let one = Limiter::builder(quota).clock(&clock).build().unwrap();
    let many = KeyedLimiter::builder(quota, 10)
        .clock(&clock)
        .build()
        .unwrap();
    for (tenths, wanted) in [
        (1, true),
        (0, true),
        (0, true),
        (0, false),
        (0, false),
        (1, false),
        (1, false),
        (1, false),
        (2, true),
        (2, false),
        (2, false),
    ] {
        clock.0.store(tenths * T, Ordering::Relaxed);
        assert_eq!((one.allow(), many.allow("alice")), (wanted, wanted));
    }
}

/// x/time/rate, golang/go#34861: the first token was cut off by a rate that is no short fraction.
#[test]
fn c04_x_time_rate_the_first_token_is_whole() {
    let rate = Rate::try_from(0.769_230_769_230_769_3).unwrap();
    let wait = 1_300_000_000;
    let rows = [
        (0, 1, Left(0)),
        (0, 1, Wait(wait)),
        (wait - 1, 1, Wait(1)),
        (wait, 1, Left(0)),
    ];
    check(each(rate.burst(1)), &rows);
}

#[test]
fn c05_x_time_rate_of_fifteen_at_once_five_pass() {
    for bucket in each(Rate::per_second(1).burst(5)) {
        let (barrier, passed) = (Barrier::new(15), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..15 {
                scope.spawn(|| {
                    barrier.wait();
                    passed.fetch_add(usize::from(bucket.take(1).is_allowed()), Ordering::Relaxed);
                });
            }
        });
        assert_eq!(passed.into_inner(), 5, "{bucket}");
    }
}

/// x/time/rate is content with about 600 of five seconds' calls. Every call asks more often than
/// tokens come, so what has passed is all that there was, whole tokens of it.
#[test]
fn c06_x_time_rate_a_long_run_admits_the_closed_form() {
    for bucket in each(Rate::per_second(100).burst(100)) {
        let mut passed = 0;
        for call in 0..=2_500 {
            passed += bucket.passed([call * 2 * MS]) as u64;
            assert_eq!(passed, (call + 1).min(100 + call / 5), "{bucket}, {call}");
        }
        assert_eq!(passed, 600);
    }
}

/// x/time/rate has a rate without end and one of zero. Neither is a limit here, also not as the
/// next one of a limiter in use.
#[test]
fn c07_x_time_rate_zero_and_infinity_are_no_rates() {
    assert!(Rate::try_from(f64::INFINITY).is_err());
    let (zero, tenth) = (Rate::per_second(0), Rate::per_second(10));
    let error = BuildError::RateIsZero { rate: zero };
    assert_eq!(Limiter::new(zero.burst(1)).unwrap_err(), error);
    assert_eq!(KeyedLimiter::new(zero.burst(1), 1).unwrap_err(), error);
    for bucket in each(Rate::per_day(1).burst(1)) {
        assert_eq!(bucket.told(0, 1), Left(0));
        let changed = bucket.set_quota(zero.burst(1), Tokens::Kept);
        assert_eq!(changed, Err(ChangeError::Invalid(error)));
        assert_eq!(bucket.told(0, 1), Wait(86_400 * SECOND));
        bucket.set_quota(tenth.burst(1), Tokens::Kept).unwrap();
        assert_eq!(bucket.told(0, 1), Wait(T), "{bucket}");
    }
}

/// x/time/rate, golang/go#71154: at 1e-10 a second the wait overflowed, and everything passed.
#[test]
fn c08_x_time_rate_a_token_in_three_centuries() {
    let wait = 10_000_000_000 * SECOND;
    let rows = [
        (0, 1, Left(0)),
        (0, 1, Wait(wait)),
        (SECOND, 1, Wait(wait - SECOND)),
        (wait - 1, 1, Wait(1)),
        (wait, 1, Left(0)),
    ];
    check(each(Rate::try_from(1e-10).unwrap().burst(1)), &rows);
}

#[test]
fn c09_x_time_rate_a_period_is_a_rate() {
    let longest = i64::MAX.cast_unsigned();
    for (rate, wait) in [
        (Rate::new(1, Duration::from_nanos(1)), 1),
        (Rate::per_second(SECOND), 1),
        (Rate::new(1, Duration::from_millis(2_500)), 2_500 * MS),
        ("0.4/s".parse().unwrap(), 2_500 * MS),
        (Rate::new(1, Duration::from_nanos(longest)), longest),
    ] {
        let rows = [(0, 1, Left(0)), (0, 1, Wait(wait)), (wait, 1, Left(0))];
        check(each(rate.burst(1)), &rows);
    }
    let rate = Rate::new(1, Duration::ZERO);
    let error = Limiter::new(rate.burst(1)).unwrap_err();
    assert_eq!(error, BuildError::PeriodIsZero { rate });
}

#[test]
fn c10_tollbooth_one_in_ten_seconds() {
    let rows = [
        (0, 1, Left(0)),
        (0, 1, Wait(10 * SECOND)),
        (7 * SECOND, 1, Wait(3 * SECOND)),
        (10 * SECOND, 1, Left(0)),
        (10 * SECOND, 1, Wait(10 * SECOND)),
    ];
    check(each("0.1/s".parse::<Rate>().unwrap().burst(1)), &rows);
}

#[test]
fn c11_bucket4j_the_part_of_a_token_is_kept() {
    let rows = [
        (97, 9, Left(0)),
        (97, 1, Wait(3)),
        (100, 1, Left(0)),
        (100, 1, Wait(10)),
    ];
    check(each_from(per_ns(10, 100, 10), 0, 0), &rows);
}

/// A full bucket holds no part of a token beyond.
#[test]
fn c12_bucket4j_the_part_of_a_token_is_lost_when_full() {
    for bucket in each_from(per_ns(10, 100, 10), 0, 0) {
        assert_eq!(bucket.told(97, 9), Left(0));
        bucket.refund(10);
        assert_eq!(bucket.told(97, 10), Left(0), "{bucket}");
        assert_eq!(bucket.told(100, 1), Wait(7), "{bucket}");
    }
}

/// Rows of the refill tables: what a bucket holds at one time, and at another; and how long one
/// token more takes from there, which tells the part of a token.
#[test]
fn c13_c14_bucket4j_refill() {
    let (thousand, hundred, one) = (
        per_ns(1_000, 1_000, 1_000),
        per_ns(100, 1_000, 100),
        per_ns(1, 10, 100),
    );
    for (quota, held, from_ns, to_ns, wanted, next_ns) in [
        (thousand, 0, 10_000, 10_040, 40, 1),
        (thousand, 50, 10_000, 10_001, 51, 1),
        (thousand, 200, 10_000, 20_000, 1_000, 1),
        (hundred, 0, 10_000, 10_003, 0, 7),
        (hundred, 90, 10_000, 10_017, 91, 3),
        (hundred, 0, 10_000, 28_888, 100, 10),
        (one, 0, 10_000, 10_003, 0, 7),
        (one, 90, 10_000, 10_017, 91, 3),
    ] {
        for bucket in each_from(quota, held, from_ns) {
            assert_eq!(bucket.at(to_ns).remaining(), wanted, "{bucket}, {quota}");
            assert!(bucket.take(wanted).is_allowed());
            assert_eq!(bucket.told(to_ns, 1), Wait(next_ns), "{bucket}, {quota}");
        }
    }
}

/// bucket4j's table has a row in which time runs back: nothing changes.
#[test]
fn c13_bucket4j_refill_at_an_earlier_time() {
    for bucket in each_from(per_ns(1_000, 1_000, 1_000), 55, 10_000) {
        assert!(bucket.take_at(1, 9_999).is_err(), "{bucket}");
        assert_eq!(bucket.take_at(0, 10_000).unwrap().remaining(), 55);
        assert_eq!(bucket.take_at(56, 10_000).map(Into::into), Ok(Wait(1)));
        assert_eq!(bucket.take_at(56, 10_001).map(Into::into), Ok(Left(0)));
    }
}

/// What is owed shows in the time until full, at a token a nanosecond.
#[test]
fn c15_bucket4j_into_debt() {
    for (held, tokens, level) in [(0, 10, -10), (50, 2, 48), (55, 1_600, -1_545_i64)] {
        for bucket in each_owing(per_ns(1, 1, 100), 1_545) {
            assert!(bucket.take(100 - held).is_allowed());
            assert_eq!(bucket.debit(tokens).taken(), tokens, "{bucket}");
            let looked = bucket.look();
            assert_eq!(looked.remaining(), u64::try_from(level).unwrap_or(0));
            let full = Duration::from_nanos(100_u64.checked_sub_signed(level).unwrap());
            assert_eq!(looked.reset_after(), full, "{bucket}");
        }
    }
}

/// bucket4j refuses each with an error of its own. Negative numbers cannot be written here, a cost
/// of zero is a look, and two tokens a nanosecond are a rate.
#[test]
fn c16_bucket4j_impossible_numbers() {
    let (zero, never) = (Rate::per_second(0), Rate::new(1, Duration::ZERO));
    let second = Rate::per_second(1);
    let above = BuildError::InitialAboveBurst {
        initial: 2,
        burst: 1,
    };
    let errors = [
        (
            TokenBucket::new(second.burst(0)).initial_tokens(0),
            BuildError::BurstIsZero,
        ),
        (
            TokenBucket::new(zero.burst(1)),
            BuildError::RateIsZero { rate: zero },
        ),
        (
            TokenBucket::new(never.burst(1)),
            BuildError::PeriodIsZero { rate: never },
        ),
        (TokenBucket::new(second.burst(1)).initial_tokens(2), above),
    ];
    let mut texts = HashSet::new();
    for (limit, error) in errors {
        assert_eq!(Limiter::builder(limit).build().unwrap_err(), error);
        let keyed = KeyedLimiter::builder(limit, 1).build();
        assert_eq!(keyed.unwrap_err(), error);
        texts.insert(error.to_string());
    }
    assert_eq!(texts.len(), errors.len(), "{texts:?}");

    let rows = [
        (0, 4, Left(0)),
        (0, 0, Left(0)),
        (0, 3, Wait(2)),
        (1, 2, Left(0)),
        (1, 1, Wait(1)),
    ];
    check(each(per_ns(2, 1, 4)), &rows);
}

/// Guava refuses acquire(0), which is a look here, and rates of zero and NaN. At its slowest rate
/// exactly one call passes: here a float that slow is refused, and the slowest rate that there is
/// earns nothing more before clocks end.
#[test]
fn c17_guava_the_slowest_rate_admits_one() {
    for rate in [0.0, f64::NAN] {
        let refused = Rate::try_from(rate);
        assert!(
            matches!(refused, Err(RateError::NotPositive { .. })),
            "{rate}"
        );
    }
    let smallest = Rate::try_from(f64::from_bits(1));
    assert!(matches!(smallest, Err(RateError::OutOfRange { .. })));

    let longest = Duration::from_secs(u64::MAX);
    for bucket in each(Rate::new(1, longest).burst(1)) {
        assert_eq!(bucket.told(0, 0), Left(1));
        assert_eq!(bucket.told(0, 1), Left(0));
        assert_eq!(bucket.take(1).retry_after(), Some(longest), "{bucket}");
        let end = bucket.at(u64::MAX).take(1);
        let wait = longest - Duration::from_nanos(u64::MAX);
        assert_eq!((end.is_allowed(), end.retry_after()), (false, Some(wait)));
    }
}

/// mennanov/limiters takes one, and one more after each of these sleeps.
#[test]
fn c18_mennanov_parts_of_a_period_are_carried() {
    let rows = [
        (0, 1, Left(3)),
        (150 * MS, 1, Left(3)),
        (240 * MS, 1, Left(2)),
        (290 * MS, 1, Left(2)),
        (360 * MS, 1, Left(2)),
    ];
    let tenth = Rate::new(1, Duration::from_millis(100));
    check(each(tenth.burst(4)), &rows);
    let error = Limiter::new(tenth.burst(0)).unwrap_err();
    assert_eq!(error, BuildError::BurstIsZero);
}

#[test]
fn c19_mennanov_as_many_as_there_are() {
    for bucket in each(Rate::new(1, Duration::from_millis(100)).burst(3)) {
        assert_eq!([2; 3].map(|most| bucket.take_up_to(most)), [2, 1, 0]);
        let later = bucket.at(100 * MS);
        assert_eq!([2; 2].map(|most| later.take_up_to(most)), [1, 0]);
    }
}

/// sethvargo/go-limiter counts the ticks in a stretch of time: tokens, of a bucket that was empty.
#[test]
fn c20_sethvargo_whole_ticks() {
    for (elapsed_ns, tick_ns, ticks) in [
        (0, SECOND, 0),
        (SECOND / 2, SECOND, 0),
        (SECOND - 1, SECOND, 0),
        (SECOND, SECOND, 1),
        (49_500 * MS, SECOND, 49),
        (49_500 * MS, MS, 49_500),
    ] {
        for start_ns in [0, 1, 7_777_777_777] {
            for bucket in each_from(per_ns(1, tick_ns, 100_000), 0, start_ns) {
                let later = bucket.at(start_ns + elapsed_ns);
                assert_eq!(later.remaining(), ticks, "{bucket} of {tick_ns} ns");
            }
        }
    }
}

/// hammer#192: a clock of whole seconds held a rate above the burst down to one burst a second.
#[test]
fn c21_hammer_a_rate_above_the_burst_is_reached() {
    for bucket in each(Rate::per_second(30).burst(10)) {
        for call in 0..100 {
            assert_eq!(bucket.told(call * T, 1), Left(9), "{bucket}, {call}");
        }
        assert!(bucket.at(100 * T).take(10).is_allowed());
        for call in 101..200 {
            assert_eq!(bucket.passed([call * T; 4]), 3, "{bucket}, {call}");
        }
    }
}
