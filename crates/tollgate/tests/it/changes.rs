//! Another limit for a limiter in use: public bug reports about other rate limiters, each named by
//! its number in the collection they were restated in.

use std::time::Duration;

use tollgate::{
    AnyLimit, FixedWindow, KeyedLimiter, LeakyBucket, Limiter, ManualClock, Plan, Rate, SlidingLog,
    Tokens,
};

use crate::either::Told::{Left, Wait};
use crate::either::{MS, SECOND, each};
use crate::harness::at;

fn one_in_ten_seconds(burst: u64) -> [AnyLimit; 2] {
    let quota = Rate::new(1, Duration::from_secs(10)).burst(burst);
    [quota.into(), LeakyBucket::new(quota).into()]
}

/// A reload built every limiter anew, and gave every client a full bucket.
#[test]
fn b21_a_reload_gives_nobody_a_token() {
    for (limit, wider) in one_in_ten_seconds(5).into_iter().zip(one_in_ten_seconds(8)) {
        for bucket in each(limit) {
            assert_eq!(bucket.told(0, 5), Left(0));
            for (secs, reloaded) in [(1, limit), (2, limit), (3, wider)] {
                let bucket = bucket.at(secs * SECOND);
                bucket.set_quota(reloaded, Tokens::Kept).unwrap();
                let wait = Wait((10 - secs) * SECOND);
                assert_eq!(bucket.told(secs * SECOND, 1), wait, "{bucket}, {limit:?}");
            }
            assert_eq!(bucket.told(10 * SECOND, 1), Left(0), "{bucket}, {limit:?}");
        }
    }
}

/// The same where the rule that changed is another plan's, and where it is the client's own.
#[test]
fn b21_a_reload_of_a_plan_gives_nobody_a_token() {
    let pro = Plan::nth(1);
    for (limit, wider) in one_in_ten_seconds(5).into_iter().zip(one_in_ten_seconds(8)) {
        let clock = ManualClock::default();
        let limiter = KeyedLimiter::builder(limit, 100)
            .plan(limit)
            .clock(clock.clone())
            .build()
            .unwrap();
        assert!(limiter.try_acquire("alice", 5).is_allowed());
        assert!(limiter.try_acquire_as("bob", 5, pro).is_allowed());
        for (secs, plan, reloaded) in [(1, pro, limit), (2, pro, wider), (3, Plan::DEFAULT, wider)]
        {
            clock.set(at(secs * SECOND));
            limiter.set_plan(plan, reloaded, Tokens::Kept).unwrap();
            let wait = Some(Duration::from_secs(10 - secs));
            assert_eq!(limiter.try_acquire("alice", 1).retry_after(), wait);
            let bob = limiter.try_acquire_as("bob", 1, pro);
            assert_eq!(bob.retry_after(), wait, "{limit:?}");
        }
    }
}

/// Five of five used, and the limit becomes six.
#[test]
fn b21_a_window_that_is_reloaded_admits_the_difference() {
    let limits = |limit| -> [AnyLimit; 3] {
        let minute = Duration::from_secs(60);
        [
            FixedWindow::new(limit, minute).into(),
            FixedWindow::new(limit, minute).aligned().into(),
            SlidingLog::new(limit, minute).into(),
        ]
    };
    for (limit, wider) in limits(5).into_iter().zip(limits(6)) {
        for bucket in each(limit) {
            assert_eq!(bucket.passed([0; 6]), 5);
            let wait = Wait(59 * SECOND);
            let bucket = bucket.at(SECOND);
            bucket.set_quota(limit, Tokens::Kept).unwrap();
            assert_eq!(bucket.told(SECOND, 1), wait, "{bucket}, {limit:?}");
            bucket.set_quota(wider, Tokens::Kept).unwrap();
            assert_eq!(bucket.told(SECOND, 1), Left(0), "{bucket}, {limit:?}");
            assert_eq!(bucket.told(SECOND, 1), wait, "{bucket}, {limit:?}");
        }
    }
}

/// A limit lowered below what was available stopped the task that refills, and limiters with it.
#[test]
fn b105_a_lower_limit_still_refills() {
    let cycle = Duration::from_millis(5);
    let limits = |limit| -> [AnyLimit; 5] {
        let quota = Rate::new(limit, cycle).burst(limit);
        [
            quota.into(),
            LeakyBucket::new(quota).into(),
            FixedWindow::new(limit, cycle).into(),
            FixedWindow::new(limit, cycle).aligned().into(),
            SlidingLog::new(limit, cycle).into(),
        ]
    };
    for (limit, lower) in limits(5).into_iter().zip(limits(2)) {
        for bucket in each(limit) {
            // A client that is known, and has all its tokens.
            let charge = bucket.charge(1).unwrap();
            bucket.cancel(charge);
            assert_eq!(bucket.remaining(), 5);
            bucket.set_quota(lower, Tokens::Kept).unwrap();
            for cycles in 0..4 {
                let passed = bucket.passed([cycles * 5 * MS; 10]);
                assert_eq!(passed, 2, "{bucket}, {limit:?}, cycle {cycles}");
            }
        }
        let clock = ManualClock::default();
        let clients = KeyedLimiter::builder(limit, 100)
            .clock(clock.clone())
            .build()
            .unwrap();
        assert!(clients.allow("alice"));
        clients.set_quota(lower, Tokens::Kept).unwrap();
        assert!(clients.allow("bob"));
        assert_eq!(clients.len(), 2);
        clock.advance(cycle);
        assert!(clients.is_empty(), "who is idle is still forgotten");
    }
}

/// The bucket is there from the start: a larger one is not full because nobody has asked yet.
#[test]
fn one_bucket_keeps_its_tokens_though_nobody_has_asked_yet() {
    let limiter = Limiter::builder(Rate::per_hour(1).burst(3))
        .clock(ManualClock::default())
        .build()
        .unwrap();
    limiter
        .set_quota(Rate::per_hour(1).burst(100), Tokens::Kept)
        .unwrap();
    assert_eq!(limiter.peek().remaining(), 3);
}
