//! What a rule says of itself, beside what its limiter does.

use std::time::Duration;

use tollgate::{KeyedLimiter, ManualClock, Rate};
use tollgate_policy::{Idle, Limit, Rule};

const SECOND: Duration = Duration::from_secs(1);

fn rules() -> [Rule; 7] {
    [
        Rule::TokenBucket(Rate::per_second(5).burst(10)),
        Rule::TokenBucket(Rate::new(7, 3 * SECOND).burst(1)),
        Rule::LeakyBucket(Rate::per_second(2).burst(3)),
        Rule::FixedWindow(4, 2 * SECOND),
        Rule::AlignedWindow(4, 2 * SECOND),
        Rule::SlidingLog(4, 2 * SECOND),
        Rule::SlidingWindowCounter(4, 2 * SECOND),
    ]
}

fn limiter(limit: &Limit, clock: &ManualClock) -> KeyedLimiter<tollgate::AnyLimit, ManualClock> {
    limit.limiter(clock.clone()).unwrap()
}

/// The most that a client gets who takes all there is at each of some instants: the worst stretch
/// of them all.
fn taken(limit: &Limit, times_ms: &[u64], within: Duration) -> u64 {
    let clock = ManualClock::default();
    let limiter = limiter(limit, &clock);
    let mut taken: Vec<(Duration, u64)> = Vec::new();
    let mut last = Duration::ZERO;
    for time in times_ms {
        let now = Duration::from_millis(*time);
        clock.advance(now - last);
        last = now;
        taken.push((now, limiter.acquire_up_to("a", u64::MAX)));
    }
    let stretches = taken.iter().enumerate().map(|(place, (start, _))| {
        let from_there = &taken[place..];
        let end = from_there.partition_point(|(at, _)| *at - *start < within);
        from_there[..end].iter().map(|(_, tokens)| tokens).sum()
    });
    stretches.max().unwrap_or(0)
}

/// No client gets more than is said; a patient one that much, or nearly.
#[test]
fn nobody_gets_more_than_is_said() {
    let every = |step: usize| {
        (0..12_000)
            .step_by(step)
            .map(|ms| ms + 1_999)
            .collect::<Vec<u64>>()
    };
    for rule in rules() {
        let limit = Limit::new("a", rule).unwrap();
        for within in [1, 500, 1_000, 2_000, 3_000, 10_000].map(Duration::from_millis) {
            let said = limit.most_within(within);
            let most =
                [20, 50, 100, 500, 1_000, 2_000].map(|step| taken(&limit, &every(step), within));
            let most = most.into_iter().max().unwrap();
            assert!(
                most <= said,
                "{rule} within {within:?}: {most} above {said}"
            );
            assert!(
                most * 2 >= said,
                "{rule} within {within:?}: {most} of {said}"
            );
        }
    }
}

/// Nor where clients are forgotten early.
#[test]
fn nobody_who_is_forgotten_gets_more_than_is_said() {
    for rule in rules() {
        let idle = Idle::After(Duration::from_millis(100));
        let limit = Limit::new("a", rule).unwrap().with_idle(idle);
        for within in [1, 1_000, 3_000].map(Duration::from_millis) {
            let said = limit.most_within(within);
            let times: Vec<u64> = (0..10_000).step_by(100).collect();
            let most = taken(&limit, &times, within);
            assert!(
                most <= said && most * 2 >= said,
                "{rule} within {within:?}: {most} of {said}"
            );
        }
    }
}

/// After that time, and not one nanosecond sooner, an empty bucket is as good as a new one.
#[test]
fn time_to_fill_is_when_nobody_can_tell() {
    for rule in rules() {
        let limit = Limit::new("a", rule).unwrap();
        let clock = ManualClock::default();
        clock.advance(2 * SECOND);
        let limiter = limiter(&limit, &clock);
        assert_eq!(limiter.acquire_up_to("a", u64::MAX), rule.burst());
        let fills = rule.time_to_fill();
        clock.advance(fills - Duration::from_nanos(1));
        assert_eq!(limiter.len(), 1, "{rule}");
        clock.advance(Duration::from_nanos(1));
        assert_eq!(limiter.len(), 0, "{rule}");
    }
}
