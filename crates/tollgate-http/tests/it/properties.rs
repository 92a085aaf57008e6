//! What holds for every rule, cost and history: random limits, each with its seed in the message.

use std::time::Duration;

use tollgate::{Rate, Timestamp};
use tollgate_http::{Headers, Limit, Policy, Reset, Rule};
use tollgate_testkit::Random;

use crate::harness::{Answer, App, get, items};

/// Random limits, of any rule and size.
fn rule(random: &mut Random) -> Rule {
    let tokens = 1 + random.below(20);
    let unit = [1_000_000, 1_000_000_000, 60_000_000_000, 3_600_000_000_000];
    let unit = unit[usize::try_from(random.below(4)).unwrap()];
    let period = Duration::from_nanos((1 + random.below(9)) * unit);
    let burst = 1 + random.below(30);
    match random.below(6) {
        0 => Rule::FixedWindow(burst, period),
        1 => Rule::AlignedWindow(burst, period),
        2 => Rule::SlidingLog(burst, period),
        3 => Rule::SlidingWindowCounter(burst, period),
        4 => Rule::LeakyBucket(Rate::new(tokens, period).burst(burst)),
        _ => Rule::TokenBucket(Rate::new(tokens, period).burst(burst)),
    }
}

struct World {
    app: App,
    cost: u64,
}

impl World {
    fn new(random: &mut Random) -> Self {
        let count = 1 + random.below(3);
        let limits: Vec<Limit> = (0..count)
            .map(|at| {
                let max_delay = Duration::from_millis(random.below(5_000));
                let limit = Limit::new(&format!("limit-{at}"), rule(random)).unwrap();
                limit.with_max_delay(max_delay)
            })
            .collect();
        let most = limits
            .iter()
            .map(|limit| limit.rule().burst())
            .min()
            .unwrap();
        let cost = 1 + random.below(most.min(4));
        let reset = if random.below(2) == 0 {
            Reset::Delta
        } else {
            Reset::Epoch
        };
        let app = App::with(Policy::new(limits).unwrap(), |builder| {
            let builder = builder.headers(Headers::new().legacy(reset));
            builder.cost(move |_| cost)
        });
        app.clock
            .set(Timestamp::from_nanos(random.below(10_000_000_000_000)));
        Self { app, cost }
    }

    fn ask(&self) -> Answer {
        let answer = self.app.ask(get("192.0.2.1", "/", &[]));
        check(&answer);
        answer
    }
}

/// Every field is what it is to be: digits, or a list that parses, with all that is required.
fn check(answer: &Answer) {
    for (name, value) in &answer.headers {
        match name.as_str() {
            "ratelimit-policy" => {
                for item in items(value) {
                    assert!(item.number("q").is_some(), "{value}");
                    assert!(item.number("w").is_some_and(|window| window > 0), "{value}");
                }
            }
            "ratelimit" => {
                for item in items(value) {
                    assert!(item.number("r").is_some(), "{value}");
                    assert!(item.number("t").is_some_and(|t| t > 0), "{value}");
                }
            }
            "retry-after" | "x-ratelimit-limit" | "x-ratelimit-remaining" | "x-ratelimit-reset" => {
                assert!(
                    value.bytes().all(|byte| byte.is_ascii_digit()),
                    "{name}: {value}"
                );
            }
            _ => {}
        }
    }
}

/// Whoever waits as long as it is told, and asks for the same, is not refused again.
#[test]
fn who_obeys_retry_after_is_not_refused_twice() {
    let mut random = Random::new(0x7011_6a7e_0001);
    for round in 0..400 {
        let world = World::new(&mut random);
        for _ in 0..60 {
            let answer = world.ask();
            let Some(wait) = answer.retry_after() else {
                world
                    .app
                    .clock
                    .advance(Duration::from_nanos(random.below(300_000_000)));
                continue;
            };
            assert_eq!(answer.status, 429);
            assert_eq!(answer.figures().unwrap().number("t"), Some(wait));
            world.app.clock.advance(Duration::from_secs(wait));
            let again = world.ask();
            assert_eq!(
                again.status, 200,
                "round {round}, cost {}: {answer:?}",
                world.cost
            );
        }
    }
}

/// Whoever spreads `r` requests over `t` seconds, or waits `t` where `r` is 0, is never refused.
#[test]
fn who_paces_r_over_t_is_never_refused() {
    let mut random = Random::new(0x7011_6a7e_0002);
    let mut paced = 0;
    for round in 0..400 {
        let world = World::new(&mut random);
        // A history of its own, which may end on a refusal.
        for _ in 0..random.below(40) {
            let _ = world.ask();
            world
                .app
                .clock
                .advance(Duration::from_nanos(random.below(1_000_000_000)));
        }
        let mut answer = world.ask();
        for _ in 0..8 {
            let figures = answer.figures().unwrap();
            let (r, t) = (figures.number("r").unwrap(), figures.number("t").unwrap());
            let step = Duration::from_secs(t) / u32::try_from(r.max(1)).unwrap();
            // By one answer, for all of it.
            for at in 0..r.clamp(1, 30) {
                if r > 0 && at == 0 {
                    // The first one need not wait.
                } else {
                    // Rounded down by a nanosecond, the last one would be early.
                    world
                        .app
                        .clock
                        .advance(step + Duration::from_nanos(u64::from(r > 0)));
                }
                answer = world.ask();
                paced += 1;
                assert_eq!(
                    answer.status, 200,
                    "round {round}, cost {}: {figures:?}, {answer:?}",
                    world.cost
                );
            }
        }
    }
    assert!(paced > 5_000, "{paced}");
}
