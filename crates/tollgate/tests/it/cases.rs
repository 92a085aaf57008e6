//! Public bug reports about other rate limiters, as cases with exact values. Each is named by its
//! number in the collection they were restated in; the story is in the comment.

use std::time::Duration;

use tollgate::{
    AnyLimit, BuildError, Decision, FixedWindow, KeyedLimiter, LeakyBucket, Limiter, ManualClock,
    Rate, SlidingLog, SlidingWindowCounter,
};

use crate::harness::at;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

fn limiter(limit: impl Into<AnyLimit>) -> Limiter<AnyLimit, ManualClock> {
    Limiter::builder(limit.into())
        .clock(ManualClock::default())
        .build()
        .unwrap()
}

fn ns(nanos: u64) -> Option<Duration> {
    Some(Duration::from_nanos(nanos))
}

/// One call for a token: whether it passed, what remains, and the wait in nanoseconds.
fn take(limiter: &Limiter<AnyLimit, ManualClock>, at_ns: u64) -> Decision {
    limiter.try_acquire_at(1, at(at_ns)).unwrap()
}

fn passes(
    limiter: &Limiter<AnyLimit, ManualClock>,
    times: impl IntoIterator<Item = u64>,
) -> Vec<u64> {
    times
        .into_iter()
        .filter(|at_ns| take(limiter, *at_ns).is_allowed())
        .collect()
}

/// A sliding counter whose weighted part was rounded never passed at a limit of 1, or too early.
#[test]
fn b05_the_sliding_counter_weighs_exactly() {
    let one = limiter(SlidingWindowCounter::new(1, Duration::from_secs(10)));
    let times = [
        0,
        5 * SECOND,
        10 * SECOND,
        15 * SECOND,
        19_999 * MS,
        20 * SECOND,
    ];
    assert_eq!(passes(&one, times), [0, 20 * SECOND]);
    let one = limiter(SlidingWindowCounter::new(1, Duration::from_secs(10)));
    assert!(take(&one, 0).is_allowed());
    assert_eq!(take(&one, 15 * SECOND).retry_after(), ns(5 * SECOND));

    let hundred = limiter(SlidingWindowCounter::new(100, Duration::from_secs(60)));
    assert_eq!(passes(&hundred, [30 * SECOND; 50]).len(), 50);
    assert_eq!(passes(&hundred, [66 * SECOND; 10]).len(), 10);
    assert_eq!(
        hundred
            .try_acquire_at(0, at(66 * SECOND))
            .unwrap()
            .remaining(),
        45
    );
    assert_eq!(passes(&hundred, [66 * SECOND; 100]).len(), 45);
}

/// Credit cut to whole tokens while the last-seen time moved on starved whoever kept trying.
#[test]
fn b08_no_fraction_is_lost_by_asking() {
    let one = limiter(Rate::per_second(1).burst(1));
    let times = (0..12).map(|n| n * 300 * MS);
    assert_eq!(passes(&one, times), [0, 1_200 * MS, 2_400 * MS]);
    let one = limiter(Rate::per_second(1).burst(1));
    for at_ms in [0, 300, 600] {
        let _ = take(&one, at_ms * MS);
    }
    assert_eq!(take(&one, 900 * MS).retry_after(), ns(100 * MS));

    let ten = limiter(Rate::new(10, Duration::from_secs(30)).burst(10));
    let answers: Vec<Decision> = (0..16).map(|n| take(&ten, n * SECOND)).collect();
    let remaining: Vec<u64> = answers[..14]
        .iter()
        .map(|answer| answer.remaining())
        .collect();
    assert_eq!(remaining, [9, 8, 7, 7, 6, 5, 5, 4, 3, 3, 2, 1, 1, 0]);
    assert!(answers[..14].iter().all(|answer| answer.is_allowed()));
    assert!(!answers[14].is_allowed());
    assert!(answers[15].is_allowed() && answers[15].remaining() == 0);

    let busy = limiter(Rate::per_minute(1_200).burst(1_200));
    assert_eq!(passes(&busy, (0..12_001).map(|n| n * 5 * MS)).len(), 2_400);
}

/// A stale reading of a racing thread rewound the bucket and doubled the next refill. In the
/// library a time that goes back is an error, and nothing changes.
#[test]
fn b10_a_clock_that_goes_back_is_an_error_and_mints_nothing() {
    let limiter = limiter(Rate::per_second(1).burst(5));
    assert!(
        limiter
            .try_acquire_at(5, at(10 * SECOND))
            .unwrap()
            .is_allowed()
    );
    assert!(limiter.try_acquire_at(1, at(9 * SECOND)).is_err());
    let earned = take(&limiter, 11 * SECOND);
    assert!(earned.is_allowed() && earned.remaining() == 0);
    assert!(!take(&limiter, 11 * SECOND).is_allowed());

    // A clock restarted at 0: refused as an error at every reading, no panic, nothing minted.
    let limiter = self::limiter(Rate::per_second(1).burst(5));
    assert!(
        limiter
            .try_acquire_at(5, at(1_000 * SECOND))
            .unwrap()
            .is_allowed()
    );
    for restarted in 0..=10 {
        assert!(limiter.try_acquire_at(1, at(restarted * SECOND)).is_err());
    }
    assert!(!take(&limiter, 1_000 * SECOND).is_allowed());
}

/// A clock that is read by the limiter itself: the call panics and says so.
#[test]
#[should_panic(expected = "the clock went backwards: 9 ns after 10 ns")]
fn b10_an_injected_clock_that_goes_back_is_caught() {
    let clock = ManualClock::new(at(10));
    let limiter = KeyedLimiter::builder(Rate::per_second(1).burst(5), 10)
        .clock(clock.clone())
        .build()
        .unwrap();
    assert!(limiter.allow("alice"));
    clock.set(at(9));
    let _ = limiter.allow("bob");
}

/// NaN, infinities, zeros and negatives were accepted and switched the limiter off. Negative
/// bursts, limits and periods cannot be written: they are unsigned.
#[test]
fn b13_settings_that_are_no_numbers_are_refused_where_they_are_read() {
    for rate in [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        -1.0,
        -0.0,
        0.0,
        1e-320,
    ] {
        assert!(Rate::try_from(rate).is_err(), "{rate}");
    }
    for rate in [
        "nan", "1e400", "nan/s", "1e400/s", "0/s", "-1/s", "1/0s", "1/-1s", "1/0.5ns",
    ] {
        assert!(rate.parse::<Rate>().is_err(), "{rate}");
    }
    let second = Duration::from_secs(1);
    for (limit, error) in [
        (
            AnyLimit::from(Rate::new(1, Duration::ZERO).burst(1)),
            "period of rate 1/0ns is 0",
        ),
        (Rate::per_second(0).burst(1).into(), "rate is 0/s"),
        (Rate::per_second(1).burst(0).into(), "burst is 0"),
        (
            LeakyBucket::new(Rate::per_second(1).burst(0)).into(),
            "burst is 0",
        ),
        (FixedWindow::new(0, second).into(), "limit is 0"),
        (FixedWindow::new(1, Duration::ZERO).into(), "window is 0"),
        (SlidingLog::new(0, second).into(), "limit is 0"),
        (
            SlidingWindowCounter::new(1, Duration::ZERO).into(),
            "window is 0",
        ),
    ] {
        let built: Result<_, BuildError> = Limiter::builder(limit).build();
        let text = built.unwrap_err().to_string();
        assert!(text.starts_with(error), "{text}");
        assert!(KeyedLimiter::builder(limit, 1).build().is_err());
    }
}

/// The wait was the whole period, whatever had already been earned.
#[test]
fn b24_the_wait_is_for_what_is_short() {
    let minute = limiter(Rate::per_minute(1).burst(1));
    assert!(take(&minute, 0).is_allowed());
    assert_eq!(take(&minute, 20 * SECOND).retry_after(), ns(40 * SECOND));
    assert_eq!(take(&minute, 59_200 * MS).retry_after(), ns(800 * MS));

    let second = limiter(Rate::per_second(1).burst(1));
    assert!(take(&second, 0).is_allowed());
    assert_eq!(take(&second, 200 * MS).retry_after(), ns(800 * MS));

    let three = limiter(Rate::per_second(1).burst(3));
    assert!(three.try_acquire_at(2, at(0)).unwrap().is_allowed());
    assert_eq!(
        three.try_acquire_at(2, at(0)).unwrap().retry_after(),
        ns(SECOND)
    );

    let five = limiter(Rate::per_second(1).burst(5));
    assert_eq!(passes(&five, [0; 5]).len(), 5);
    assert_eq!(take(&five, 0).retry_after(), ns(SECOND));
}

/// Parts of a key glued together with a character that they may contain shared a counter.
#[test]
fn b25_two_pairs_are_two_keys() {
    let limiter = KeyedLimiter::builder(Rate::per_hour(1).burst(1), 100)
        .clock(ManualClock::default())
        .build()
        .unwrap();
    for pair in [
        ("a:b", "c"),
        ("a", "b:c"),
        ("a", "bc"),
        ("ab", "c"),
        ("", "abc"),
        ("abc", ""),
    ] {
        assert!(limiter.allow(&pair), "{pair:?} has a bucket of its own");
        assert!(!limiter.allow(&pair), "{pair:?}");
    }
    for entries in [&[("k", "v_x_y")][..], &[("k", "v"), ("x", "y")]] {
        assert!(limiter.allow(&("d", entries)));
        assert!(!limiter.allow(&("d", entries)));
    }
    let percent = "%".repeat(300);
    for name in ["", ":", "2001:db8::1", "a\0b", "a|b", percent.as_str()] {
        assert!(limiter.allow(name), "{name:?}");
        assert!(!limiter.allow(name), "{name:?}");
    }
    assert_eq!(limiter.len(), 14);
}

/// Tolerance confused with capacity: burst 5 let 6 through after a pause.
#[test]
fn b28_a_pause_earns_no_token_beyond_the_burst() {
    let five = limiter(Rate::per_second(5).burst(5));
    for at_ns in [0, 2 * SECOND] {
        let answers: Vec<Decision> = (0..6).map(|_| take(&five, at_ns)).collect();
        let remaining: Vec<u64> = answers[..5]
            .iter()
            .map(|answer| answer.remaining())
            .collect();
        assert_eq!(remaining, [4, 3, 2, 1, 0]);
        assert_eq!(answers[5].retry_after(), ns(200 * MS));
        assert!(!answers[5].is_allowed());
    }
}

/// Floats missed a refill that was due at exactly that instant.
#[test]
fn b34_a_refill_is_due_to_the_nanosecond() {
    for (rate, due) in [
        (Rate::new(10, Duration::from_secs(13)), 1_300_000_000),
        (Rate::new(1, Duration::from_secs(3_600)), 3_600 * SECOND),
        (Rate::per_second(3), 333_333_334),
        (Rate::try_from(0.1).unwrap(), 10 * SECOND),
        ("0.1/s".parse().unwrap(), 10 * SECOND),
    ] {
        let one = limiter(rate.burst(1));
        assert!(take(&one, 0).is_allowed());
        assert_eq!(take(&one, due - 1).retry_after(), ns(1), "{rate}");
        assert!(take(&one, due).is_allowed(), "{rate}");
    }
    let two = limiter(Rate::per_second(3).burst(2));
    assert!(two.try_acquire_at(2, at(0)).unwrap().is_allowed());
    let times = (1..=300_000_u64).map(|k| (k * SECOND).div_ceil(3));
    assert_eq!(passes(&two, times).len(), 300_000);
}

/// A request that can never fit got a misleading wait.
#[test]
fn b37_a_cost_above_the_burst_is_never() {
    let ten = limiter(Rate::per_second(2).burst(10));
    let never = ten.try_acquire_at(11, at(0)).unwrap();
    assert_eq!(never, Decision::TooLarge { burst: 10 });
    assert_eq!(never.retry_after(), None);
    assert!(
        ten.try_acquire_at(10, at(0)).unwrap().is_allowed(),
        "nothing was taken"
    );
    assert_eq!(
        ten.try_acquire_at(10, at(0)).unwrap().retry_after(),
        ns(5 * SECOND)
    );
}

/// An idle time shorter than the time to fill handed slow clients a fresh burst. With the default
/// idle time the level survives; a shorter one resets early, as documented.
#[test]
fn b39_the_default_idle_time_never_forgets_a_level() {
    let quota = Rate::per_minute(1).burst(10);
    let by_default = KeyedLimiter::new(quota, 10).unwrap();
    assert!(
        by_default
            .try_acquire_at("slow", 10, at(0))
            .unwrap()
            .is_allowed()
    );
    let refused = by_default
        .try_acquire_at("slow", 3, at(121 * SECOND))
        .unwrap();
    assert_eq!(
        (refused.is_allowed(), refused.retry_after()),
        (false, ns(59 * SECOND))
    );
    let passed = by_default
        .try_acquire_at("slow", 2, at(121 * SECOND))
        .unwrap();
    assert_eq!((passed.is_allowed(), passed.remaining()), (true, 0));

    let steady = KeyedLimiter::new(quota, 10).unwrap();
    assert!(
        steady
            .try_acquire_at("steady", 10, at(0))
            .unwrap()
            .is_allowed()
    );
    for minute in 1..=60 {
        let passed = steady
            .try_acquire_at("steady", 1, at(minute * 60 * SECOND))
            .unwrap();
        assert_eq!(
            (passed.is_allowed(), passed.remaining()),
            (true, 0),
            "minute {minute}"
        );
    }

    let short = Duration::from_secs(120);
    let early = KeyedLimiter::builder(quota, 10)
        .idle(short)
        .build()
        .unwrap();
    assert!(
        early
            .try_acquire_at("slow", 10, at(0))
            .unwrap()
            .is_allowed()
    );
    assert_eq!(
        early
            .try_acquire_at("slow", 3, at(121 * SECOND))
            .unwrap()
            .remaining(),
        7
    );
}

/// After a quiet night the limiter did not limit at all, or refused everything.
#[test]
fn b41_a_long_pause_fills_the_bucket_and_no_more() {
    let two = limiter(Rate::per_second(1).burst(2));
    for at_ns in [0, 30 * SECOND] {
        assert!(take(&two, at_ns).is_allowed() && take(&two, at_ns).is_allowed());
        assert_eq!(take(&two, at_ns).retry_after(), ns(SECOND));
    }
    let billion = 1_000_000_000;
    let huge = limiter(Rate::per_second(billion).burst(billion));
    assert!(huge.try_acquire_at(billion, at(0)).unwrap().is_allowed());
    assert!(
        huge.try_acquire_at(billion, at(12 * 3_600 * SECOND))
            .unwrap()
            .is_allowed()
    );
    assert_eq!(take(&huge, 12 * 3_600 * SECOND).retry_after(), ns(1));

    let ten = limiter(Rate::per_second(10).burst(10));
    let years = 300 * 365 * 86_400 * SECOND;
    assert!(ten.try_acquire_at(10, at(0)).unwrap().is_allowed());
    assert!(ten.try_acquire_at(10, at(years)).unwrap().is_allowed());
    assert_eq!(take(&ten, years).retry_after(), ns(100 * MS));
}

/// Every distinct client ever seen stayed in memory.
#[test]
fn b47_clients_that_left_give_their_memory_back() {
    let second = Duration::from_secs(1);
    for limit in [
        AnyLimit::from(Rate::per_second(1).burst(1)),
        LeakyBucket::new(Rate::per_second(1).burst(1)).into(),
        FixedWindow::new(1, second).into(),
        SlidingLog::new(1, second).into(),
        SlidingWindowCounter::new(1, second).into(),
    ] {
        let clock = ManualClock::default();
        let limiter = KeyedLimiter::builder(limit, 10_000)
            .clock(clock.clone())
            .build()
            .unwrap();
        for name in 0..1_000_000_u32 {
            assert!(limiter.allow(&name), "{name} of {limit:?}");
            if name % 1_024 == 0 {
                let active = limiter.len();
                // A second's clients, at one a millisecond; the counter weighs two windows.
                let settled = if matches!(limit, AnyLimit::SlidingWindowCounter(_)) {
                    2
                } else {
                    1
                };
                let most = settled * 1_000;
                assert_eq!(
                    active,
                    most.min(name as usize + 1),
                    "at {name} of {limit:?}"
                );
            }
            clock.advance(Duration::from_millis(1));
        }
        clock.advance(Duration::from_secs(3_600));
        assert_eq!(limiter.len(), 0, "{limit:?}");
        let unused = KeyedLimiter::builder(limit, 10_000).build().unwrap();
        assert_eq!(limiter.memory_bytes(), unused.memory_bytes(), "{limit:?}");
        let hold = limiter.longest_hold();
        assert!(hold.positions <= 64 && hold.rebuilds <= 1, "{hold:?}");
    }
}

/// Window ends kept in whole seconds were compared with a clock in milliseconds.
#[test]
fn b62_a_window_ends_to_the_nanosecond() {
    let window = limiter(FixedWindow::new(1, Duration::from_secs(1)).aligned());
    let start = 1_441_268_386_507 * MS;
    assert!(take(&window, start).is_allowed());
    assert_eq!(take(&window, start).retry_after(), ns(493 * MS));
    let next = take(&window, 1_441_268_387_000 * MS);
    assert!(next.is_allowed());
    assert_eq!(next.reset_after(), Duration::from_secs(1));
}

/// A window that had ended still counted because the timer that ends it had not run.
#[test]
fn b69_a_window_needs_nobody_to_end_it() {
    let window = limiter(FixedWindow::new(20, Duration::from_secs(5)).aligned());
    assert_eq!(passes(&window, [0; 20]).len(), 20);
    let next = take(&window, 7 * SECOND);
    assert!(next.is_allowed());
    assert_eq!(
        (next.remaining(), next.reset_after()),
        (19, Duration::from_secs(3))
    );
}

/// The reset was that of one token, or there only when refused.
#[test]
fn b72_the_reset_is_the_time_until_full() {
    let one = limiter(Rate::new(1, Duration::from_secs(10)).burst(1));
    let taken = take(&one, 0);
    assert_eq!(
        (taken.remaining(), taken.reset_after()),
        (0, Duration::from_secs(10))
    );
    assert_eq!(
        take(&one, 0).retry_after(),
        ns(10 * SECOND),
        "the next token"
    );
    let ten = limiter(Rate::new(10, Duration::from_secs(30)).burst(10));
    let taken = ten.try_acquire_at(5, at(0)).unwrap();
    assert_eq!(
        (taken.remaining(), taken.reset_after()),
        (5, Duration::from_secs(15))
    );
}

/// A timestamp used as a set's member made a burst within one tick count once.
#[test]
fn b76_calls_of_one_instant_each_count() {
    let log = limiter(SlidingLog::new(3, Duration::from_secs(1)));
    assert_eq!(passes(&log, [0; 5]).len(), 3);
    assert_eq!(passes(&log, [999 * MS; 2]).len(), 0);
    let next = take(&log, SECOND);
    assert_eq!((next.is_allowed(), next.remaining()), (true, 2));
}

/// Entries were counted before those outside the window were dropped.
#[test]
fn b82_what_has_left_the_window_is_not_counted() {
    let log = limiter(SlidingLog::new(2, Duration::from_secs(10)));
    assert_eq!(passes(&log, [0, SECOND]).len(), 2);
    let later = 11_500 * MS;
    assert_eq!(take(&log, later).remaining(), 1);
    assert_eq!(take(&log, later).remaining(), 0);
    assert_eq!(take(&log, later).retry_after(), ns(10 * SECOND));
}

/// Refused requests pushed the window on, and a steady client was locked out.
#[test]
fn b85_a_refusal_does_not_move_the_window() {
    for window in [
        FixedWindow::new(2, Duration::from_secs(60)),
        FixedWindow::new(2, Duration::from_secs(60)).aligned(),
    ] {
        let times = (0..18).map(|n| n * 10 * SECOND);
        let wanted = [0, 10, 60, 70, 120, 130].map(|secs| secs * SECOND);
        assert_eq!(passes(&limiter(window), times), wanted);
    }
    let log = limiter(SlidingLog::new(1, Duration::from_secs(10)));
    let wanted = [0, 10, 20, 30].map(|secs| secs * SECOND);
    assert_eq!(passes(&log, (0..35).map(|n| n * SECOND)), wanted);
}

/// "2 per second" was read as one every two seconds.
#[test]
fn b88_so_many_per_second_is_so_many_per_second() {
    for two in [Rate::per_second(2), "2/s".parse().unwrap()] {
        let limiter = limiter(two.burst(1));
        let times = [0, 250 * MS, 500 * MS, SECOND];
        assert_eq!(passes(&limiter, times), [0, 500 * MS, SECOND]);
    }
    let fast = limiter(Rate::new(500, Duration::from_millis(1)).burst(500));
    assert_eq!(passes(&fast, [0; 500]).len(), 500);
    let earned = [take(&fast, 2_000), take(&fast, 2_000)];
    assert!(earned[0].is_allowed() && !earned[1].is_allowed());
}

/// The number of elapsed intervals was added, not intervals times tokens.
#[test]
fn b91_a_period_earns_all_its_tokens() {
    let fifty = |at_ns| {
        let limiter = limiter(Rate::per_second(50).burst(50));
        assert!(limiter.try_acquire_at(50, at(0)).unwrap().is_allowed());
        passes(&limiter, [at_ns; 60]).len()
    };
    assert_eq!(fifty(SECOND), 50);
    assert_eq!(fifty(20 * MS), 1);
}

/// A refill period below a timer's tick stopped refilling. (No call waits yet.)
#[test]
fn b93_half_a_millisecond_is_a_period() {
    let one = limiter(Rate::new(1, Duration::from_micros(500)).burst(1));
    assert!(take(&one, 0).is_allowed());
    assert_eq!(take(&one, 499_999).retry_after(), ns(1));
    assert!(take(&one, 500_000).is_allowed());
}

/// An entry that expired after one period although in use gave nearly twice the limit.
#[test]
fn b99_a_bucket_in_use_is_never_refilled_whole() {
    let quota = Rate::per_second(3).burst(3);
    for limit in [AnyLimit::from(quota), LeakyBucket::new(quota).into()] {
        let limiter = KeyedLimiter::builder(limit, 10).build().unwrap();
        let mut passed = Vec::new();
        for at_ms in (0..=3_000).step_by(100) {
            let answer = limiter.try_acquire_at("busy", 1, at(at_ms * MS)).unwrap();
            if answer.is_allowed() {
                passed.push(at_ms);
                assert!(at_ms == 0 || answer.remaining() < 2, "at {at_ms} ms");
            }
        }
        assert_eq!(
            passed,
            [
                0, 100, 200, 400, 700, 1000, 1400, 1700, 2000, 2400, 2700, 3000
            ],
            "{limit:?}"
        );
    }
}

/// A bucket that never refills broke one backend of several: here it is refused where it is built.
#[test]
fn b101_a_bucket_that_never_refills_is_refused() {
    let never = Rate::per_second(0).burst(3);
    assert_eq!(
        Limiter::new(never).unwrap_err(),
        BuildError::RateIsZero { rate: never.rate() }
    );
    assert!(KeyedLimiter::new(never, 1).is_err());
    assert!(Limiter::builder(LeakyBucket::new(never)).build().is_err());
}

/// "5 per day" let one through, since a burst derived from it rounded to nothing. A burst is always
/// written out here, and a rate below one a second is like any other.
#[test]
fn b102_small_limits_are_exact() {
    let five = limiter(Rate::per_day(5).burst(5));
    assert_eq!(passes(&five, [0; 5]).len(), 5);
    assert_eq!(take(&five, 0).retry_after(), ns(17_280 * SECOND));
    assert!(take(&five, 17_280 * SECOND).is_allowed());
    let tenth = limiter("1/10s".parse::<Rate>().unwrap().burst(1));
    assert_eq!(
        passes(&tenth, [0, 9 * SECOND, 10 * SECOND]),
        [0, 10 * SECOND]
    );
}

/// The header showed 0 for ever, one too many, or a negative number.
#[test]
fn b104_remaining_is_what_is_there_after_the_call() {
    let five = limiter(Rate::per_minute(5).burst(5));
    let mut remaining = vec![five.try_acquire_at(4, at(0)).unwrap().remaining()];
    remaining.extend([0, 12, 60].map(|secs| take(&five, secs * SECOND).remaining()));
    assert_eq!(remaining, [1, 0, 0, 3]);

    let two = limiter(Rate::new(1, Duration::from_millis(90)).burst(2));
    assert_eq!(take(&two, 0).remaining(), 1);
    assert_eq!(take(&two, MS).remaining(), 0);
    let refused = take(&two, 2 * MS);
    assert_eq!((refused.is_allowed(), refused.remaining()), (false, 0));
    assert_eq!(refused.retry_after(), ns(88 * MS));
    let passed = take(&two, 90 * MS);
    assert_eq!((passed.is_allowed(), passed.remaining()), (true, 0));

    let three = limiter(FixedWindow::new(3, Duration::from_secs(60)));
    let remaining: Vec<u64> = (0..5).map(|_| take(&three, 0).remaining()).collect();
    assert_eq!(remaining, [2, 1, 0, 0, 0]);
}

/// A "month" that was a 30-day slice surprised its users. The library has no unit of a month: a
/// window is a length of time, aligned to the Unix epoch, and says so.
#[test]
fn b106_days_and_thirty_day_slices_are_aligned_to_the_epoch() {
    let day = limiter(FixedWindow::new(1, Duration::from_secs(86_400)).aligned());
    // 2026-11-30T23:59:59Z and 2026-12-01T00:00:00Z.
    let midnight = 1_796_083_200 * SECOND;
    let last = take(&day, midnight - SECOND);
    assert_eq!(
        (last.is_allowed(), last.reset_after()),
        (true, Duration::from_secs(1))
    );
    assert!(take(&day, midnight).is_allowed());

    let slice = limiter(FixedWindow::new(1, Duration::from_secs(30 * 86_400)).aligned());
    // Noon of 2026-11-30 and of 2026-12-01; the slice, number 692, ends on 2026-12-03.
    assert!(take(&slice, midnight - 43_200 * SECOND).is_allowed());
    let second = take(&slice, midnight + 43_200 * SECOND);
    assert_eq!(
        (second.is_allowed(), second.reset_after()),
        (false, Duration::from_secs(129_600))
    );
}
