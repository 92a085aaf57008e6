//! Another policy for a gate that is in use.

use std::time::Duration;

use tollgate::{ManualClock, Rate, Timestamp};
use tollgate_policy::plan::{Plan, PlanBy, Plans};
use tollgate_policy::{Gate, Idle, Key, Limit, Policy, Rule, WhenFull};

use crate::request::Made;

const fn per_ten_seconds(burst: u64) -> Rule {
    Rule::TokenBucket(Rate::new(1, Duration::from_secs(10)).burst(burst))
}

fn limit(rule: Rule) -> Limit {
    Limit::new("a", rule).unwrap()
}

fn policy(limits: impl IntoIterator<Item = Limit>) -> Policy {
    Policy::new(limits.into_iter().collect()).unwrap()
}

fn gate(limits: impl IntoIterator<Item = Limit>) -> (Gate<ManualClock>, ManualClock) {
    let clock = ManualClock::default();
    (Gate::new(policy(limits), clock.clone()).unwrap(), clock)
}

fn wait(gate: &Gate<ManualClock>) -> Option<Duration> {
    let verdict = gate.admit(&Made::default());
    verdict.shown().unwrap().decision.retry_after()
}

fn passed(gate: &Gate<ManualClock>) -> usize {
    (0..20)
        .filter(|_| gate.admit(&Made::default()).is_allowed())
        .count()
}

/// nuetzliches/hookaido#239, unkeyed/unkey#5519, bucket4j/bucket4j#45: a reload hands nobody a full
/// bucket.
#[test]
fn b21_a_reload_keeps_every_bucket() {
    let (gate, clock) = gate([limit(per_ten_seconds(5))]);
    assert_eq!(passed(&gate), 5);
    let other = Limit::new("other", per_ten_seconds(1)).unwrap();
    let steps = [
        (vec![limit(per_ten_seconds(5))], 9),
        (
            vec![limit(per_ten_seconds(5)), other.with_key(Key::path())],
            8,
        ),
        (vec![limit(per_ten_seconds(8))], 7),
    ];
    for (limits, seconds) in steps {
        clock.advance(Duration::from_secs(1));
        let reloaded = gate.reload(policy(limits)).unwrap();
        assert!(!reloaded.afresh.contains(&"a".to_owned()));
        let wait = wait(&gate);
        assert_eq!(wait, Some(Duration::from_secs(seconds)));
    }
    let window = |limit| self::limit(Rule::AlignedWindow(limit, Duration::from_secs(60)));
    let (gate, _) = self::gate([window(5)]);
    assert_eq!(passed(&gate), 5);
    gate.reload(policy([window(6)])).unwrap();
    assert_eq!(passed(&gate), 1);
}

/// Whatever else of a limit changes, its clients keep their tokens; another key or algorithm is
/// another limit, and the reload says so.
#[test]
fn identity_is_name_key_and_algorithm() {
    let a = || limit(per_ten_seconds(5));
    let plans = |names: &[&str]| {
        let plans = names.iter().map(|name| Plan::of(name, per_ten_seconds(9)));
        Plans::new(PlanBy::Descriptor("plan".into()), plans.collect()).unwrap()
    };
    let same = [
        a().with_max_clients(10),
        a().with_idle(Idle::Never),
        a().with_idle(Idle::After(Duration::from_secs(7_200))),
        a().with_when_full(WhenFull::ForgetSettled),
        a().with_when_full(WhenFull::Share),
        a().with_plans(plans(&["pro", "max"])).unwrap(),
        a().with_plans(plans(&["max"])).unwrap(),
        a().with_shadow(true).with_shadow(false),
        // One that needs levels of 128 bits.
        limit(Rule::TokenBucket(Rate::per_day(1).burst(1 << 50))),
    ];
    let (gate, _) = gate([a()]);
    assert_eq!(passed(&gate), 5);
    for limit in same {
        let shown = format!("{limit:?}");
        let reloaded = gate.reload(policy([limit])).unwrap();
        assert_eq!(reloaded, Default::default(), "{shown}");
        assert_eq!(passed(&gate), 0, "{shown}");
    }
    let others = [
        a().with_key(Key::path()),
        limit(Rule::LeakyBucket(Rate::per_hour(1).burst(5))),
        limit(Rule::AlignedWindow(5, Duration::from_secs(60))),
        limit(Rule::FixedWindow(5, Duration::from_secs(60))),
        Limit::new("b", per_ten_seconds(5)).unwrap(),
    ];
    for limit in others {
        let name = limit.name().to_owned();
        let reloaded = gate
            .reload(policy([limit.with_max_delay(Duration::MAX)]))
            .unwrap();
        assert_eq!(reloaded.afresh, [name.as_str()]);
        assert_eq!(reloaded.gone.is_empty(), name == "a");
        assert_eq!(passed(&gate), 5);
    }
    // Addresses by another prefix are other names.
    let prefixes = tollgate_policy::address::Prefixes::new(24, 64).unwrap();
    let b = Limit::new("b", per_ten_seconds(5)).unwrap();
    let reloaded = gate.reload(policy([b]).with_prefixes(prefixes)).unwrap();
    assert_eq!(reloaded.afresh, ["b"]);
}

/// A policy that cannot be brought in changes nothing, also of limits that could be.
#[test]
fn whole_or_not_at_all() {
    let two = |burst, most| {
        let a = limit(per_ten_seconds(burst));
        let b = Limit::new("b", per_ten_seconds(100)).unwrap();
        [a.with_key(Key::everybody()), b.with_max_clients(most)]
    };
    let (gate, _) = gate(two(5, 100));
    for host in 1..=3 {
        let request = Made::from(&format!("192.0.2.{host}"));
        assert!(gate.admit(&request).is_allowed());
    }
    let error = gate.reload(policy(two(9, 2))).unwrap_err();
    assert_eq!(error.limit(), "b");
    assert_eq!(
        error.to_string(),
        "limit \"b\": the snapshot has 3 clients; max_clients is 2"
    );
    let error = gate.reload(policy(two(9, 0))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "limit \"b\": max_clients is 0; the least is 1 client"
    );
    let rule = gate.policy().limits()[0].rule();
    assert_eq!(rule, per_ten_seconds(5));
    assert_eq!(passed(&gate), 2, "and its limiter is held to no other");
}

/// More changes than a limiter remembers, with nobody idle between: none is refused.
#[test]
fn many_reloads() {
    let (gate, clock) = gate([limit(per_ten_seconds(5))]);
    assert_eq!(passed(&gate), 5);
    for burst in 6..60 {
        gate.reload(policy([limit(per_ten_seconds(burst))]))
            .unwrap();
    }
    assert_eq!(passed(&gate), 0);
    clock.set(Timestamp::from_nanos(20_000_000_000));
    assert_eq!(passed(&gate), 2);
}

/// Tokens taken before a reload are given back after it, where the limit is the same; nothing is
/// given to another.
#[test]
fn refunds_over_a_reload() {
    let statuses = || tollgate_policy::statuses::Statuses::of(["2xx"]).unwrap();
    let a = |burst| limit(per_ten_seconds(burst)).with_refund_status(statuses());
    let (gate, _) = gate([a(2)]);
    let [mut one, mut other] = [(); 2].map(|()| gate.admit(&Made::default()));
    gate.reload(policy([Limit::new("b", per_ten_seconds(1)).unwrap(), a(3)]))
        .unwrap();
    one.answered(200);
    assert_eq!(one.shown().unwrap().decision.remaining(), 1);
    gate.reload(policy([a(3).with_key(Key::path())])).unwrap();
    other.answered(200);
    assert_eq!(passed(&gate), 3);
}

/// A plan keeps its clients' tokens wherever it stands in the list, and one that is gone leaves
/// them to the limit itself.
#[test]
fn plans_are_told_apart_by_name() {
    let plan = |name: &str, burst| Plan::of(name, per_ten_seconds(burst));
    let a = |plans: Vec<Plan>| {
        let plans = Plans::new(PlanBy::Descriptor("plan".into()), plans).unwrap();
        limit(per_ten_seconds(1)).with_plans(plans).unwrap()
    };
    let (pro, max) = (plan("pro", 10), plan("max", 1_000));
    let (gate, _) = gate([a(vec![pro.clone(), max.clone()])]);
    let left = || {
        let verdict = gate.admit(&Made::default().says("plan", "max"));
        verdict.shown().unwrap().decision.remaining()
    };
    assert_eq!(left(), 999);
    for (plans, wanted) in [
        (vec![max.clone(), pro.clone()], 998),
        (vec![max.clone()], 997),
        (vec![plan("new", 5), max.clone()], 996),
        (vec![Plan::unlimited("free"), max.clone(), pro], 995),
        (vec![plan("max", 2_000)], 994),
    ] {
        let reloaded = gate.reload(policy([a(plans)])).unwrap();
        assert_eq!(reloaded, Default::default());
        assert_eq!(left(), wanted);
    }
    let other = Made::from("192.0.2.2").says("plan", "pro");
    assert!(gate.admit(&other).is_allowed());
    assert!(
        !gate.admit(&other).is_allowed(),
        "there is no such plan any more"
    );
}

/// Requests on other threads while policies come and go: nobody gets a full bucket for it.
#[test]
fn reloads_beside_requests() {
    let (gate, _) = gate([limit(per_ten_seconds(500))]);
    let gate = std::sync::Arc::new(gate);
    let callers: Vec<_> = (0..2)
        .map(|_| {
            let gate = gate.clone();
            std::thread::spawn(move || {
                let calls = (0..2_000).map(|_| gate.admit(&Made::default()).is_allowed());
                calls.filter(|allowed| *allowed).count()
            })
        })
        .collect();
    for round in 0..200 {
        let shadow = Limit::new("other", per_ten_seconds(1))
            .unwrap()
            .with_shadow(true);
        let own = limit(per_ten_seconds(500 - round % 2));
        gate.reload(policy([own, shadow])).unwrap();
    }
    let passed: usize = callers
        .into_iter()
        .map(|caller| caller.join().unwrap())
        .sum();
    assert!((499..=500).contains(&passed), "{passed}");
}

/// From levels of 128 bits to those of 64, with another table at the same time.
#[test]
fn a_copy_may_need_fewer_bits() {
    let wide = Rule::TokenBucket(Rate::per_day(150_007).burst(150_007));
    let narrow = Rule::TokenBucket(Rate::per_day(100).burst(100));
    let (gate, _) = gate([limit(wide)]);
    let taken = (0..150_000).filter(|_| gate.admit(&Made::default()).is_allowed());
    assert_eq!(taken.count(), 150_000);
    let reloaded = gate
        .reload(policy([limit(narrow).with_max_clients(5_000)]))
        .unwrap();
    assert_eq!(reloaded, Default::default());
    assert_eq!(passed(&gate), 7, "what was left of more");
}

/// A plan that is held to nothing for a while, and then to something again.
#[test]
fn a_plan_is_free_for_a_while() {
    let a = |plan: Plan| {
        let plans = Plans::new(PlanBy::Descriptor("plan".into()), vec![plan]).unwrap();
        limit(per_ten_seconds(1)).with_plans(plans).unwrap()
    };
    let pro = || a(Plan::of("pro", per_ten_seconds(5)));
    let (gate, _) = gate([pro()]);
    let passed = || {
        let request = Made::default().says("plan", "pro");
        (0..20)
            .filter(|_| gate.admit(&request).is_allowed())
            .count()
    };
    assert_eq!(passed(), 5);
    gate.reload(policy([a(Plan::unlimited("pro"))])).unwrap();
    assert_eq!(passed(), 20);
    gate.reload(policy([pro()])).unwrap();
    assert_eq!(passed(), 0);
}
