//! Plans, and those that ask no bucket; several calls at once.

use std::time::Duration;

use tollgate::{
    AnyLimit, BuildError, ChangeError, Clock, Decision, FixedWindow, KeyedLimiter, ManualClock,
    Plan, Rate, SlidingLog, Tokens, acquire_all,
};
use tollgate_testkit::{Model, Random};

use crate::harness::{answer, any_limit, at};

const PRO: Plan = Plan::nth(1);

fn limiter(clock: &ManualClock) -> KeyedLimiter<tollgate::TokenBucket, ManualClock> {
    KeyedLimiter::builder(Rate::per_second(1).burst(10), 100)
        .plan(Rate::per_second(20).burst(100))
        .clock(clock.clone())
        .build()
        .unwrap()
}

/// Tokens go along, whole and in part; a client stays under the plan that it was last asked under
/// for looks, refunds and debits.
#[test]
fn tokens_go_along_from_plan_to_plan() {
    let clock = ManualClock::default();
    let limiter = limiter(&clock);
    assert_eq!(limiter.try_acquire_as("alice", 95, PRO).remaining(), 5);
    clock.advance(Duration::from_millis(75));
    // 6.5 tokens, of which the default's rate counts half ones exactly.
    assert_eq!(limiter.peek("alice").remaining(), 6);
    assert_eq!(limiter.try_acquire("alice", 1).remaining(), 5);
    clock.advance(Duration::from_millis(500));
    assert_eq!(limiter.peek("alice").remaining(), 6);
    limiter.refund("alice", 50);
    assert_eq!(limiter.peek("alice").remaining(), 10, "the default's burst");
    assert_eq!(limiter.try_acquire_as("alice", 11, PRO).remaining(), 10);
    limiter.refund("alice", 50);
    assert_eq!(limiter.peek("alice").remaining(), 60, "the plan's burst");
}

#[test]
fn a_plan_is_changed_alone() {
    let clock = ManualClock::default();
    let limiter = limiter(&clock);
    assert!(limiter.try_acquire_as("alice", 90, PRO).is_allowed());
    assert!(limiter.try_acquire("bob", 9).is_allowed());
    limiter
        .set_plan(PRO, Rate::per_second(20).burst(8), Tokens::Kept)
        .unwrap();
    assert_eq!(limiter.peek("alice").remaining(), 8);
    assert_eq!(limiter.peek("bob").remaining(), 1);
    limiter
        .set_plan(PRO, Rate::per_second(20).burst(9), Tokens::Reset)
        .unwrap();
    assert_eq!(limiter.peek("alice").remaining(), 9);
    assert_eq!(limiter.peek("bob").remaining(), 1, "of another plan");
    let absent = limiter.set_plan(Plan::nth(2), Rate::per_second(1).burst(1), Tokens::Kept);
    assert_eq!(absent, Err(ChangeError::NoSuchPlan));
}

/// A plan that there is none of, whatever its number, is the default.
#[test]
fn an_absent_plan_is_the_default() {
    let clock = ManualClock::default();
    for number in [2, 3, 63, 64, 65, 127, 128, 200, 253] {
        let limiter = limiter(&clock);
        let plan = Plan::nth(number);
        let refused = limiter.try_acquire_as("alice", 11, plan);
        assert_eq!(refused, Decision::TooLarge { burst: 10 });
        assert_eq!(limiter.try_acquire_as("alice", 4, plan).remaining(), 6);
        assert_eq!(limiter.try_acquire("alice", 4).remaining(), 2);
        let together = acquire_all(&mut [limiter.ask("alice", 1).plan(plan)]);
        assert_eq!(together.decision().remaining(), 1);
    }
}

#[test]
fn plans_that_ask_no_bucket_track_nobody() {
    let clock = ManualClock::default();
    let limiter = limiter(&clock);
    for cost in [0, 1, u64::MAX] {
        let allowed = limiter.try_acquire_as("alice", cost, Plan::UNLIMITED);
        assert_eq!(
            (allowed.is_allowed(), allowed.remaining()),
            (true, u64::MAX)
        );
        let denied = limiter.try_acquire_as("alice", cost, Plan::DENY_ALL);
        assert_eq!(denied.is_allowed(), cost == 0);
        let ask = |plan| acquire_all(&mut [limiter.ask("alice", cost).plan(plan)]).decision();
        assert_eq!(
            (ask(Plan::UNLIMITED), ask(Plan::DENY_ALL)),
            (allowed, denied)
        );
    }
    assert!(limiter.is_empty());
    let minute = Duration::from_secs(60);
    assert!(limiter.ban("alice", minute));
    let banned = Decision::Banned {
        retry_after: minute,
    };
    assert_eq!(limiter.try_acquire_as("alice", 1, Plan::UNLIMITED), banned);
    let both = [
        limiter.ask("bob", 5),
        limiter.ask("alice", 1).plan(Plan::UNLIMITED),
    ];
    let refused = acquire_all(&mut { both });
    assert_eq!(
        (refused.refused_by(), refused.decision()),
        (Some(1), banned)
    );
    assert_eq!(limiter.peek("bob").remaining(), 10);
}

/// A client that is idle is new, whether its memory was given back yet or not: without a plan.
#[test]
fn a_debit_finds_an_idle_client_without_its_plan() {
    for swept in [false, true] {
        let clock = ManualClock::default();
        let limiter = limiter(&clock);
        for name in ["a", "b", "c", "d", "e"] {
            assert!(limiter.try_acquire_as(name, 1, PRO).is_allowed());
        }
        clock.advance(Duration::from_secs(3_600));
        assert!(!swept || limiter.is_empty());
        assert_eq!(limiter.debit("e", 50).taken(), 10);
    }
}

#[test]
fn plans_are_checked_where_a_limiter_is_built() {
    let window = FixedWindow::new(5, Duration::from_secs(1));
    let mixed = KeyedLimiter::builder(AnyLimit::from(window), 5)
        .plan(AnyLimit::from(SlidingLog::new(5, Duration::from_secs(1))))
        .build();
    assert_eq!(mixed.unwrap_err(), BuildError::PlanOfOtherAlgorithm);
    let mixed = KeyedLimiter::builder(window, 5)
        .plan(window.aligned())
        .build();
    assert_eq!(mixed.unwrap_err(), BuildError::PlanOfOtherAlgorithm);
    let quota = Rate::per_second(1).burst(1);
    let builder = (0..64).fold(KeyedLimiter::builder(quota, 5), |builder, _| {
        builder.plan(quota)
    });
    let many = builder.build().unwrap_err();
    assert_eq!(many.to_string(), "there are 64 plans; the most is 63");
    // One that needs 128 bits widens all.
    let wide = KeyedLimiter::builder(quota, 5)
        .plan(Rate::new(7, Duration::from_secs(1 << 40)).burst(1 << 40))
        .build()
        .unwrap();
    assert!(wide.try_acquire_as("alice", 1 << 40, PRO).is_allowed());
    assert!(wide.allow("bob") && !wide.allow("bob"));
}

/// As one call after the other, at one time: known and new clients, looks, and the same one twice.
#[test]
fn several_calls_at_once_are_answered_one_by_one() {
    for seed in 0..1_000_u64 {
        let mut random = Random::new(seed ^ 0x0062_6174);
        let mut config = random.config();
        // Whom a full table takes in depends on which shard is looked at first.
        config.max_clients = None;
        let clock = ManualClock::default();
        let builder = KeyedLimiter::builder(any_limit(&config.algorithm), 1 << 20);
        let builder = match config.idle_ns {
            Some(idle_ns) => builder.idle(Duration::from_nanos(idle_ns)),
            None => builder.never_forget(),
        };
        let limiter = builder.clock(clock.clone()).build().unwrap();
        let mut model = Model::new(config.clone());
        let mut decisions = Vec::new();
        let calls = random.calls(&config, 200);
        for (step, batch) in calls.chunks(1 + random.below(40) as usize).enumerate() {
            let now_ns = batch[0].at_ns.max(clock.now().as_nanos());
            clock.set(at(now_ns));
            decisions.clear();
            let made = batch.iter().map(|call| (call.client.as_str(), call.cost));
            limiter.try_acquire_each(made, &mut decisions);
            let got: Vec<_> = decisions.iter().map(|got| answer(Ok(*got))).collect();
            let wanted: Vec<_> = batch
                .iter()
                .map(|call| model.call(&call.client, call.cost, now_ns))
                .collect();
            assert_eq!(got, wanted, "seed {seed}, batch {step}");
        }
    }
}
