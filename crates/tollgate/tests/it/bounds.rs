//! Which limits build, and which are refused with which words.

use std::fmt::{Debug, Display};
use std::time::Duration;

use tollgate::{
    AnyLimit, Decision, FixedWindow, KeyedLimiter, LeakyBucket, Limiter, ManualClock, Quota, Rate,
    SlidingLog, SlidingWindowCounter, TokenBucket, Tokens,
};

use crate::harness::at;

fn says(built: Result<impl Debug, impl Debug + Display>, wanted: &str) {
    assert_eq!(built.unwrap_err().to_string(), wanted);
}

#[test]
fn zeros_are_refused_by_name() {
    let good = Rate::per_second(5).burst(10);
    says(
        Limiter::new(Rate::per_second(0).burst(1)),
        "rate is 0/s; the least is 1 token in a period",
    );
    says(
        Limiter::new(Rate::new(1, Duration::ZERO).burst(1)),
        "period of rate 1/0ns is 0; the least is 1 ns",
    );
    says(
        Limiter::new(Rate::per_second(5).burst(0)),
        "burst is 0; the least is 1 token",
    );
    says(
        KeyedLimiter::new(good, 0),
        "max_clients is 0; the least is 1 client",
    );
    says(
        KeyedLimiter::builder(good, 1).idle(Duration::ZERO).build(),
        "idle is 0; the least is 1 ns",
    );
    let second = Duration::from_secs(1);
    says(
        Limiter::builder(FixedWindow::new(0, second)).build(),
        "limit is 0; the least is 1 token a window",
    );
    says(
        Limiter::builder(SlidingLog::new(1, Duration::ZERO)).build(),
        "window is 0; the least is 1 ns",
    );
    says(
        Limiter::builder(SlidingLog::new(65_537, second)).build(),
        "limit is 65537; a sliding log holds at most 65536 tokens a window",
    );
    says(
        Limiter::builder(SlidingWindowCounter::new(
            1,
            Duration::from_secs(18_446_744_074),
        ))
        .build(),
        "window is 18446744074s; the longest is 18446744073.709551615s",
    );
    assert!(
        Limiter::builder(SlidingLog::new(65_536, second))
            .build()
            .is_ok()
    );
}

/// With p/q the rate in lowest terms per nanosecond: burst x q + p below 2^127 builds.
#[test]
fn a_quota_builds_up_to_its_bound_and_not_beyond() {
    let rate = |tokens, secs| Rate::new(tokens, Duration::new(secs, 0));
    // q = 10^9 x 2^40, nearly 2^70: a burst of nearly 2^57 is left.
    let q: u128 = 1_000_000_000 << 40;
    let most = u64::try_from(((1_u128 << 127) - 1 - 1) / q).unwrap();
    for (quota, builds) in [
        (rate(1, 1 << 40).burst(most), true),
        (rate(1, 1 << 40).burst(most + 1), false),
        (rate(1, u64::MAX).burst(1), true),
        (rate(1, u64::MAX).burst(u64::MAX), false),
        (Rate::per_second(u64::MAX).burst(u64::MAX), true),
        (Rate::per_second(1).burst(u64::MAX), true),
        (
            Rate::new(u64::MAX, Duration::from_nanos(1)).burst(u64::MAX),
            true,
        ),
        (Rate::per_day(1).burst(1 << 40), true),
        (
            Rate::new(1, Duration::from_secs(30 * 86_400)).burst(1 << 40),
            true,
        ),
        (Rate::per_second(10_000_000_000).burst(1 << 40), true),
    ] {
        assert_eq!(Limiter::new(quota).is_ok(), builds, "{quota}");
        assert_eq!(
            Limiter::builder(LeakyBucket::new(quota)).build().is_ok(),
            builds,
            "{quota}"
        );
        assert_eq!(KeyedLimiter::new(quota, 10).is_ok(), builds, "{quota}");
    }
    says(
        Limiter::new(rate(1, u64::MAX).burst(u64::MAX)),
        "burst is 18446744073709551615; at a rate of 1/18446744073709551615s the most is \
         9223372036 tokens",
    );
}

/// On both sides of 2^63, where a level takes 64 bits or 128, the largest numbers answer alike.
#[test]
fn the_largest_numbers_are_exact_in_either_width() {
    let second = 1_000_000_000;
    for burst in [9_223_372_035, 9_223_372_036, 9_223_372_037, u64::MAX] {
        let limiter = Limiter::new(Rate::per_second(1).burst(burst)).unwrap();
        let taken = limiter.try_acquire_at(burst, at(0)).unwrap();
        assert_eq!(taken.remaining(), 0);
        assert_eq!(taken.reset_after(), Duration::from_secs(burst));
        let refused = limiter.try_acquire_at(burst, at(1)).unwrap();
        let wait = Duration::from_secs(burst) - Duration::from_nanos(1);
        assert_eq!(refused.retry_after(), Some(wait), "burst {burst}");
        assert_eq!(
            limiter
                .try_acquire_at(2, at(2 * second - 1))
                .unwrap()
                .remaining(),
            1
        );
        assert!(
            limiter
                .try_acquire_at(2, at(2 * second))
                .unwrap()
                .is_allowed()
        );
        assert_eq!(
            limiter.try_acquire_at(0, at(u64::MAX)).unwrap().remaining(),
            { (u64::MAX / second - 2).min(burst) }
        );
    }
}

#[test]
fn a_wait_beyond_every_duration_reads_as_the_longest() {
    let limiter =
        Limiter::new(Rate::new(1, Duration::from_nanos(u64::MAX)).burst(1 << 60)).unwrap();
    let taken = limiter.try_acquire_at(1 << 60, at(0)).unwrap();
    assert_eq!(taken.reset_after(), Duration::MAX);
    let refused = limiter.try_acquire_at(1, at(5)).unwrap();
    assert_eq!(
        refused.retry_after(),
        Some(Duration::from_nanos(u64::MAX - 5))
    );
}

#[test]
fn the_last_nanosecond_of_time_is_like_any_other() {
    let limiter = KeyedLimiter::builder(Rate::per_second(1).burst(1), 1)
        .idle(Duration::from_nanos(u64::MAX - 7))
        .build()
        .unwrap();
    assert!(limiter.try_acquire_at("a", 1, at(7)).unwrap().is_allowed());
    assert_eq!(
        limiter.try_acquire_at("b", 1, at(u64::MAX - 1)).unwrap(),
        Decision::ClientLimit
    );
    assert!(
        limiter
            .try_acquire_at("b", 1, at(u64::MAX))
            .unwrap()
            .is_allowed()
    );
    assert_eq!(
        limiter.try_acquire_at("a", 1, at(u64::MAX)).unwrap(),
        Decision::ClientLimit
    );
}

#[test]
fn rates_are_read_and_printed() {
    for (text, rate) in [
        ("5/s", Rate::per_second(5)),
        ("100/min", Rate::per_minute(100)),
        ("7/h", Rate::per_hour(7)),
        ("1/day", Rate::per_day(1)),
        ("10/3s", Rate::new(10, Duration::from_secs(3))),
        ("500/ms", Rate::new(500, Duration::from_millis(1))),
        ("1/1500us", Rate::new(1, Duration::from_micros(1_500))),
        ("1/7ns", Rate::new(1, Duration::from_nanos(7))),
    ] {
        assert_eq!(text.parse(), Ok(rate));
        assert_eq!(rate.to_string(), text);
    }
    for (text, same) in [
        ("5/sec", "5/s"),
        (" 5 / second ", "5/s"),
        ("60/m", "60/min"),
        ("2/minutes", "2/min"),
        ("24/d", "24/day"),
        ("5.0/s", "5/s"),
        ("0.1/s", "1/10s"),
        ("2.50/min", "25/10min"),
        ("1/60s", "1/min"),
        ("1/500milliseconds", "1/500ms"),
        ("1/2 microseconds", "1/2us"),
        ("1.0000000000000000000000000000000000000000/s", "1/s"),
        ("18446744073709551615/s", "18446744073709551615/s"),
    ] {
        assert_eq!(text.parse::<Rate>().unwrap().to_string(), same, "{text}");
    }
}

#[test]
fn what_is_no_rate_is_refused_with_its_text() {
    let malformed = "is not TOKENS/PERIOD, like 5/s, 100/min or 10/3s";
    let not_positive = "is not a positive, finite number of tokens per period";
    let out_of_range =
        "is out of range: at most 2^64 - 1 tokens in a period of 1 ns to 2^64 s, exactly";
    for (text, why) in [
        ("", malformed),
        ("5", malformed),
        ("/s", malformed),
        ("5/", malformed),
        ("nan/s", malformed),
        ("NaN/s", malformed),
        ("inf/s", malformed),
        ("1e400/s", malformed),
        ("5/fortnight", malformed),
        ("5/0.5ns", malformed),
        ("+5/s", malformed),
        ("5./s", malformed),
        (".5/s", malformed),
        ("0x10/s", malformed),
        ("٥/s", malformed),
        ("0/s", not_positive),
        ("0.000/s", not_positive),
        ("-0/s", not_positive),
        ("-1/s", not_positive),
        ("5/0s", not_positive),
        ("18446744073709551616/s", out_of_range),
        ("1/18446744073709551616s", out_of_range),
        ("0.00000000000000000000001/s", out_of_range),
    ] {
        let error = text.parse::<Rate>().unwrap_err().to_string();
        assert_eq!(error, format!("rate {text:?} {why}"));
    }
    for (float, why) in [
        (f64::NAN, not_positive),
        (f64::INFINITY, not_positive),
        (f64::NEG_INFINITY, not_positive),
        (0.0, not_positive),
        (-0.0, not_positive),
        (-1.0, not_positive),
        (1e-320, out_of_range),
        (1e300, out_of_range),
    ] {
        let error = Rate::try_from(float).unwrap_err().to_string();
        assert_eq!(error, format!("rate \"{float:?}/s\" {why}"));
    }
}

#[test]
fn a_float_means_the_decimal_it_prints_as() {
    for (float, rate) in [
        (5.0, Rate::per_second(5)),
        (0.1, Rate::new(1, Duration::from_secs(10))),
        (2.5, Rate::new(25, Duration::from_secs(10))),
        (1e10, Rate::per_second(10_000_000_000)),
        (1e-9, Rate::new(1, Duration::from_secs(1_000_000_000))),
        (
            0.3333333333333333,
            Rate::new(
                3_333_333_333_333_333,
                Duration::from_secs(10_000_000_000_000_000),
            ),
        ),
    ] {
        assert_eq!(Rate::try_from(float), Ok(rate));
    }
}

#[test]
fn rates_and_quotas_are_constants() {
    const QUOTA: Quota = Rate::new(3, Duration::from_millis(7)).burst(2);
    const BUCKET: TokenBucket = TokenBucket::new(QUOTA);
    const WINDOW: FixedWindow = FixedWindow::new(1, Duration::from_secs(1)).aligned();
    assert!(Limiter::builder(BUCKET).build().is_ok() && Limiter::builder(WINDOW).build().is_ok());
    assert_eq!(QUOTA.to_string(), "3/7ms burst 2");
}

/// The formula of `memory_bytes`, to the byte. Names that count up are spread by the limiter's own
/// random hash: which tables they crowd differs from run to run.
#[test]
fn memory_is_what_the_formula_says() {
    let second = Duration::from_secs(1);
    let narrow = AnyLimit::from(Rate::per_hour(1).burst(1));
    let wide = AnyLimit::from(Rate::new(1_000_003, Duration::from_secs(1 << 34)).burst(1));
    let window = AnyLimit::from(FixedWindow::new(1, second * 3_600));
    let counter = AnyLimit::from(SlidingWindowCounter::new(1, second * 3_600));
    for (limit, state) in [(narrow, 16), (wide, 24), (window, 24), (counter, 24)] {
        let limiter = KeyedLimiter::builder(limit, 4_095)
            .clock(ManualClock::default())
            .build()
            .unwrap();
        assert_eq!(limiter.memory_bytes(), 264);
        let (mut homes, mut due_homes) = (8, 8);
        let most = |homes: usize| homes - homes / 8;
        let bytes = |homes| 264 + (homes + 8 + homes / 64) * (16 + state) + 12 * most(homes);
        for clients in 1..=4_095_usize {
            assert!(limiter.try_acquire(&clients, 1).is_allowed());
            if clients > most(due_homes) {
                due_homes += due_homes / 4;
            }
            homes = homes.max(due_homes);
            // A table in which the last clients stand too close together grows a step earlier.
            while limiter.capacity() > most(homes) {
                homes += homes / 4;
            }
            assert_eq!(limiter.capacity(), most(homes), "{clients}");
            assert!(most(homes) < 2 * clients + 8, "{clients}");
            assert_eq!(limiter.memory_bytes(), bytes(homes), "{clients}");
            assert_eq!(
                limiter.memory_bytes_for(clients),
                bytes(due_homes),
                "{clients}"
            );
        }
    }
}

/// Nobody who owes tokens is forgotten.
#[test]
fn an_idle_time_that_forgets_debts_is_refused() {
    let builder = |idle| {
        KeyedLimiter::builder(Rate::per_second(1).burst(10), 5)
            .largest_debt(5)
            .idle(Duration::from_secs(idle))
    };
    let limiter = builder(15).build().unwrap();
    says(
        builder(14).build(),
        "idle is 14s; with this debt the least is 15s",
    );
    // Nor does a change of the limit make it so.
    says(
        limiter.set_quota(Rate::per_second(1).burst(11), Tokens::Kept),
        "idle is 15s; with this debt the least is 16s",
    );
    assert_eq!(limiter.burst(), 10, "nothing was changed");
    let quota = Rate::per_second(2).burst(25);
    assert_eq!(limiter.set_quota(quota, Tokens::Kept), Ok(()));
}
