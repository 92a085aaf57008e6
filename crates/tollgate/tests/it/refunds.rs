//! Tokens given back: the cases of others.

use std::time::Duration;

use tollgate::{AnyLimit, FixedWindow, KeyedLimiter, Limiter, ManualClock, Rate};

use crate::each_limit::each_limit;
use crate::harness::at;

/// B30: an outer limit was drained by requests that an inner one refused, since a cancelled take
/// was compared with a later reading of the clock.
#[test]
fn b30_a_cancelled_charge_is_given_back_however_late() {
    let clock = ManualClock::default();
    let build = |burst| {
        let quota = Rate::per_hour(1).burst(burst);
        Limiter::builder(quota)
            .clock(clock.clone())
            .build()
            .unwrap()
    };
    let (owner, key) = (build(10), build(1));
    assert!(owner.allow() && key.allow());
    for _ in 0..100 {
        clock.advance(Duration::from_millis(1));
        let charge = owner.charge(1).unwrap();
        assert!(key.charge(1).is_err());
        clock.advance(Duration::from_micros(1));
        owner.cancel(charge);
        assert_eq!(owner.peek().remaining(), 9);
    }
}

/// B53: a refund that crossed a window's edge made the count negative.
#[test]
fn b53_a_refund_stays_in_the_window_it_was_taken_from() {
    for others in [2, 0] {
        let clock = ManualClock::default();
        let window = FixedWindow::new(5, Duration::from_secs(10)).aligned();
        let limiter = Limiter::builder(window)
            .clock(clock.clone())
            .build()
            .unwrap();
        clock.set(at(9_000_000_000));
        let charge = limiter.charge(1).unwrap();
        clock.set(at(10_500_000_000));
        assert!((0..others).all(|_| limiter.allow()));
        clock.set(at(11_000_000_000));
        limiter.cancel(charge);
        assert_eq!(limiter.peek().remaining(), 5 - others);
        let more = (0..10).filter(|_| limiter.allow()).count() as u64;
        assert_eq!(more, 5 - others);
    }
}

/// B100: a negative cost minted tokens above the limit. A cost has no sign here.
#[test]
fn b100_a_refund_is_at_most_the_burst_and_a_look_changes_nothing() {
    let limiter = Limiter::builder(Rate::new(1, Duration::from_secs(6)).burst(10))
        .clock(ManualClock::default())
        .build()
        .unwrap();
    assert!(limiter.try_acquire(10).is_allowed());
    limiter.refund(1);
    assert_eq!(limiter.try_acquire(1).remaining(), 0);
    limiter.refund(100);
    for _ in 0..3 {
        assert_eq!(limiter.peek().remaining(), 10);
    }
}

/// bucket4j adds MAX - 1 tokens to 9 of 10: exactly 10.
#[test]
fn the_largest_refund_fills_and_no_more() {
    for limit in each_limit(10, Duration::from_secs(1)) {
        let limiter = KeyedLimiter::builder(limit, 10)
            .clock(ManualClock::default())
            .build()
            .unwrap();
        assert!(limiter.try_acquire("alice", 10).is_allowed());
        limiter.refund("alice", u64::MAX - 1);
        limiter.refund("alice", u64::MAX);
        assert_eq!(limiter.peek("alice").remaining(), 10, "{limit:?}");
        assert_eq!(limiter.peek("alice").reset_after(), Duration::ZERO);
        assert!(limiter.try_acquire("alice", 10).is_allowed());
        assert!(!limiter.allow("alice"), "{limit:?}");
    }
}

#[test]
fn a_charge_of_another_limiter_changes_nothing() {
    let quota = Rate::per_hour(1).burst(2);
    let keyed = || KeyedLimiter::new(quota, 10).unwrap();
    let (one, other) = (keyed(), keyed());
    let charge = one.charge("alice", 2).unwrap();
    assert!(other.try_acquire("alice", 2).is_allowed());
    other.cancel(charge);
    assert!(!other.allow("alice") && !one.allow("alice"));
    let (one, other) = (Limiter::new(quota).unwrap(), Limiter::new(quota).unwrap());
    let charge = one.charge(2).unwrap();
    assert!(other.try_acquire(2).is_allowed());
    other.cancel(charge);
    assert!(!other.allow() && !one.allow());
}

/// mennanov/limiters takes at most 2 of 3, one every 100 ms: 2, 1, 0, and 1 after 100 ms.
#[test]
fn as_many_as_there_are_are_taken() {
    let clock = ManualClock::default();
    let quota = Rate::new(1, Duration::from_millis(100)).burst(3);
    let limiter = Limiter::builder(quota)
        .clock(clock.clone())
        .build()
        .unwrap();
    assert_eq!([2, 2, 2].map(|most| limiter.acquire_up_to(most)), [2, 1, 0]);
    clock.advance(Duration::from_millis(100));
    assert_eq!(
        [0, 2, u64::MAX].map(|most| limiter.acquire_up_to(most)),
        [0, 1, 0]
    );
    for limit in each_limit(10, Duration::from_secs(1)) {
        let limiter = KeyedLimiter::builder(limit, 1)
            .clock(ManualClock::default())
            .build()
            .unwrap();
        assert_eq!(limiter.acquire_up_to("alice", 0), 0);
        assert!(limiter.is_empty(), "nothing was asked for");
        assert_eq!(limiter.acquire_up_to("alice", u64::MAX), 10, "{limit:?}");
        assert_eq!(limiter.acquire_up_to("alice", 1), 0, "{limit:?}");
        assert_eq!(
            limiter.acquire_up_to("bob", 1),
            0,
            "as many as may be are tracked"
        );
    }
}

/// Nobody is tracked for a refund, and nobody lives longer by it.
#[test]
fn a_refund_tracks_nobody_and_keeps_nobody() {
    for limit in each_limit(10, Duration::from_secs(1)) {
        let clock = ManualClock::default();
        let limiter = KeyedLimiter::builder(limit, 1)
            .idle(Duration::from_secs(5))
            .clock(clock.clone())
            .build()
            .unwrap();
        limiter.refund("alice", 3);
        assert!(limiter.is_empty());
        let charge = limiter.charge("alice", 10).unwrap();
        clock.advance(Duration::from_nanos(4_999_999_999));
        limiter.refund("alice", 1);
        assert!(!limiter.allow("bob"), "{limit:?}");
        clock.advance(Duration::from_nanos(1));
        assert!(limiter.allow("bob"), "{limit:?}");
        limiter.cancel(charge);
        assert_eq!(limiter.len(), 1);
    }
}

/// A charge given back late is worth what was taken less what a full bucket would have spilled, to
/// the nanosecond; a window's is worth what it counts still.
#[test]
fn a_late_charge_is_worth_less() {
    let clock = ManualClock::default();
    let quota = Rate::new(3, Duration::from_secs(10)).burst(5);
    let keyed = |limit: AnyLimit| {
        KeyedLimiter::builder(limit, 10)
            .clock(clock.clone())
            .build()
            .unwrap()
    };
    for (waited_ns, left) in [
        (0, 5),
        // All that was taken was earned meanwhile, and no more than that.
        (3_333_333_333, 5),
        (6_666_666_667, 5),
        (20_000_000_000, 5),
    ] {
        let limiter = keyed(quota.into());
        let charge = limiter.charge("a", 4).unwrap();
        clock.advance(Duration::from_nanos(waited_ns));
        limiter.cancel_aged(charge);
        assert_eq!(limiter.peek("a").remaining(), left, "{waited_ns}");
    }
    // Where the bucket was not full, what it earned beside is not given twice.
    let limiter = keyed(quota.into());
    assert!(limiter.try_acquire("a", 5).is_allowed());
    clock.advance(Duration::from_secs(10)); // 3 tokens
    let charge = limiter.charge("a", 2).unwrap();
    clock.advance(Duration::from_nanos(3_333_333_333)); // 1 and 0.9999999999 more
    limiter.cancel_aged(charge);
    let wait = limiter.try_acquire("a", 4).retry_after().unwrap();
    assert_eq!(
        wait,
        Duration::from_nanos(3_333_333_334),
        "3 were there again"
    );
    let window = keyed(FixedWindow::new(5, Duration::from_secs(10)).into());
    let charge = window.charge("a", 4).unwrap();
    clock.advance(Duration::from_secs(9));
    window.cancel_aged(charge);
    assert_eq!(window.peek("a").remaining(), 5);
    // Another limiter's charge changes nothing.
    let charge = window.charge("a", 4).unwrap();
    limiter.cancel_aged(charge);
    assert_eq!(window.peek("a").remaining(), 1);
}
