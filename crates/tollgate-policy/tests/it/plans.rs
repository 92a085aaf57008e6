//! Clients of one limit under other numbers.

use tollgate::{ManualClock, Rate};
use tollgate_policy::plan::{Plan, PlanBy, Plans};
use tollgate_policy::{Gate, Limit, Policy, Rule};

use crate::request::Made;

fn rule(burst: u64) -> Rule {
    Rule::TokenBucket(Rate::per_hour(1).burst(burst))
}

fn limit(by: PlanBy) -> Limit {
    let plans = vec![
        Plan::of("pro", rule(3)),
        Plan::unlimited("internal"),
        Plan::of("max", rule(5)),
    ];
    let limit = Limit::new("a", rule(1)).unwrap();
    limit.with_plans(Plans::new(by, plans).unwrap()).unwrap()
}

fn gate(limit: Limit) -> Gate<ManualClock> {
    let proxies = tollgate_policy::proxies::Proxies::new(
        ["10.0.0.0/8".parse().unwrap()],
        tollgate_policy::proxies::AddressHeader::XForwardedFor,
    );
    let policy = Policy::new(vec![limit]).unwrap().with_proxies(proxies);
    Gate::new(policy, ManualClock::default()).unwrap()
}

/// How many requests of ten pass.
fn passed(gate: &Gate<ManualClock>, request: &Made) -> usize {
    (0..10).filter(|_| gate.admit(request).is_allowed()).count()
}

/// The service says of which plan a client is; a name that is no plan's is none.
#[test]
fn each_plan_has_its_numbers() {
    let gate = gate(limit(PlanBy::Descriptor("plan".into())));
    assert_eq!(gate.policy().descriptors().collect::<Vec<_>>(), ["plan"]);
    let of = |peer: &str, plan: &str| Made::from(peer).says("plan", plan);
    assert_eq!(passed(&gate, &of("192.0.2.1", "pro")), 3);
    assert_eq!(passed(&gate, &of("192.0.2.2", "max")), 5);
    assert_eq!(passed(&gate, &of("192.0.2.3", "internal")), 10);
    assert_eq!(passed(&gate, &of("192.0.2.4", "none")), 1);
    assert_eq!(passed(&gate, &Made::from("192.0.2.5")), 1);
    // What a plan is not held to is shown to nobody.
    let verdict = gate.admit(&of("192.0.2.3", "internal"));
    assert!(verdict.shown().is_none());
    assert_eq!(verdict.told().count(), 0);
    let verdict = gate.admit(&of("192.0.2.2", "max"));
    assert_eq!(verdict.shown().unwrap().burst(), 5);
}

/// A header says it from a trusted proxy alone, and if it says one thing.
#[test]
fn a_client_does_not_choose_its_plan() {
    let gate = gate(limit(PlanBy::Header("X-Plan".into())));
    let of = |peer: &str| Made::from(peer);
    assert_eq!(passed(&gate, &of("192.0.2.1").header("x-plan", "max")), 1);
    let proxied = |client: &str| of("10.0.0.1").header("x-forwarded-for", client);
    let max = proxied("192.0.2.2").header("x-plan", "max");
    assert_eq!(passed(&gate, &max), 5);
    let both = proxied("192.0.2.3").header("x-plan", "pro");
    assert_eq!(passed(&gate, &both.header("x-plan", "internal")), 1);
}

/// Who changes plans keeps what is left of the burst.
#[test]
fn tokens_follow_from_plan_to_plan() {
    let gate = gate(limit(PlanBy::Descriptor("plan".into())));
    let of = |plan: &str| Made::default().says("plan", plan);
    assert_eq!(passed(&gate, &of("max")), 5);
    assert_eq!(passed(&gate, &of("pro")), 0);
}

#[test]
fn what_is_no_plan_is_refused() {
    let by = || PlanBy::Descriptor("plan".into());
    let limit = Limit::new("a", rule(1)).unwrap();
    let window = Rule::SlidingLog(5, std::time::Duration::from_secs(1));
    let other = Plans::new(by(), vec![Plan::of("pro", window)]).unwrap();
    assert_eq!(
        limit.clone().with_plans(other).unwrap_err().to_string(),
        "a plan has its limit's algorithm"
    );
    let zero = Plans::new(by(), vec![Plan::of("pro", rule(0))]).unwrap();
    assert_eq!(
        limit.with_plans(zero).unwrap_err().to_string(),
        "burst is 0; the least is 1 token"
    );
    let error = |plans: Vec<Plan>| Plans::new(by(), plans).unwrap_err().to_string();
    let many: Vec<Plan> = (0..64).map(|at| Plan::unlimited(&at.to_string())).collect();
    assert_eq!(error(many), "64 plans; a limit has 63 at most");
    assert_eq!(
        error(vec![Plan::unlimited("a b")]),
        "a plan's name is 1 to 64 letters, digits and such as \"-\""
    );
    let most: Vec<Plan> = (0..63)
        .map(|at| Plan::of(&at.to_string(), rule(at + 2)))
        .collect();
    let most = Limit::new("a", rule(1))
        .unwrap()
        .with_plans(Plans::new(by(), most).unwrap());
    let gate = gate(most.unwrap());
    assert_eq!(passed(&gate, &Made::default().says("plan", "62")), 10);
}
