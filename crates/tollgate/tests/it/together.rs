//! Several limiters asked in one call.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use tollgate::{
    Ask, Clock, Decision, KeyedLimiter, LeakyBucket, Limiter, ManualClock, Plan, Rate, Timestamp,
    TokenBucket, acquire_all,
};
use tollgate_testkit::{Answer, Model, Random};

use crate::harness::{Keyed, answer, any_limit, at};

/// The answers of models asked one after the other, and charged only if all allow it.
fn models_answer(models: &mut [Model], asks: &[(usize, String, u64)], now_ns: u64) -> Vec<Answer> {
    // What is asked of one client of one limiter counts as one.
    let sum = |which: usize, name: &str| {
        let same = asks.iter().filter(|ask| ask.0 == which && ask.1 == name);
        same.map(|ask| ask.2).sum::<u64>()
    };
    let judged: Vec<Answer> = asks
        .iter()
        .map(|(which, name, _)| models[*which].judge(name, sum(*which, name), now_ns))
        .collect();
    let is_allowed = |answer: &Answer| matches!(answer, Answer::Allowed { .. });
    let charges = judged.iter().all(is_allowed);
    let mut seen = Vec::new();
    for (which, name, _) in asks {
        if seen.contains(&(*which, name)) {
            continue;
        }
        seen.push((*which, name));
        if charges {
            models[*which].call(name, sum(*which, name), now_ns);
        }
    }
    if charges {
        return judged;
    }
    let looked = |(which, name, _): &(usize, String, u64), judged: Answer| {
        if is_allowed(&judged) {
            models[*which].judge(name, 0, now_ns)
        } else {
            judged
        }
    };
    let answers = asks
        .iter()
        .zip(judged)
        .map(|(ask, judged)| looked(ask, judged));
    let answers: Vec<Answer> = answers.collect();
    for ((which, name, _), answer) in asks.iter().zip(&answers) {
        if sum(*which, name) > 0 && !matches!(answer, Answer::TooLarge) {
            models[*which].touch(name, now_ns);
        }
    }
    answers
}

/// Limiters of every kind, some with a cap, asked in any combination: each answers as its model,
/// and all are charged or none.
#[test]
fn all_are_charged_or_none_as_by_the_models() {
    let (mut charged, mut refused) = (0, 0);
    for seed in 0..1_500_u64 {
        let mut random = Random::new(seed ^ 0x7065_7468);
        let clock = ManualClock::default();
        let mut limiters: Vec<Keyed> = Vec::new();
        let mut models = Vec::new();
        let mut first = None;
        for _ in 0..=random.below(3) {
            let config = random.config();
            let most = config.max_clients.unwrap_or(1 << 20) as usize;
            let builder =
                KeyedLimiter::builder(any_limit(&config.algorithm), most).clock(clock.clone());
            let built = match config.idle_ns {
                Some(idle_ns) => builder.idle(Duration::from_nanos(idle_ns)).build(),
                None => builder.never_forget().build(),
            };
            limiters.push(built.unwrap());
            models.push(Model::new(config.clone()));
            first.get_or_insert(config);
        }
        for (step, made) in random.calls(&first.unwrap(), 60).into_iter().enumerate() {
            let now_ns = made.at_ns.max(clock.now().as_nanos());
            clock.set(at(now_ns));
            let mut asked = Vec::new();
            for _ in 0..=random.below(4) {
                let which = random.below(limiters.len() as u64) as usize;
                let name = random
                    .pick(made.client.clone().as_str(), &["a", "b"])
                    .to_owned();
                let cost = random.pick(made.cost.min(1 << 40), &[0, 1, 1, 2]);
                asked.push((which, name, cost));
            }
            let mut asks: Vec<Ask<'_>> = asked
                .iter()
                .map(|(which, name, cost)| limiters[*which].ask(name.as_str(), *cost))
                .collect();
            let together = acquire_all(&mut asks);
            let got: Vec<Answer> = asks.iter().map(|ask| answer(Ok(ask.decision()))).collect();
            // Newcomers who ask for one place each where there is room for fewer are the limiter's
            // to refuse together: the models would take in one.
            let mut newcomers: Vec<(usize, &String)> = asked
                .iter()
                .filter(|ask| ask.2 > 0)
                .map(|ask| (ask.0, &ask.1))
                .collect();
            newcomers.sort();
            newcomers.dedup();
            let crowded = newcomers.windows(2).any(|two| two[0].0 == two[1].0);
            if crowded && got.contains(&Answer::ClientLimit) {
                break;
            }
            let wanted = models_answer(&mut models, &asked, now_ns);
            assert_eq!(got, wanted, "seed {seed}, step {step}: {asked:?}");
            let all = wanted
                .iter()
                .all(|answer| matches!(answer, Answer::Allowed { .. }));
            assert_eq!(together.is_allowed(), all);
            *(if all { &mut charged } else { &mut refused }) += 1;
            for (limiter, model) in limiters.iter().zip(&models) {
                assert_eq!(
                    limiter.len(),
                    model.len_at(now_ns),
                    "seed {seed}, step {step}"
                );
            }
        }
    }
    assert!(charged > 10_000 && refused > 10_000, "{charged}, {refused}");
}

/// The refuser with the longest wait is named; what no wait ends lasts longest; the first of
/// equals.
#[test]
fn the_longest_refusal_is_named() {
    let clock = ManualClock::default();
    let limiter = |rate: Rate, burst| {
        let built = Limiter::builder(rate.burst(burst)).clock(clock.clone());
        let built = built.build().unwrap();
        assert!(built.try_acquire(burst).is_allowed());
        built
    };
    let (second, minute) = (
        limiter(Rate::per_second(1), 5),
        limiter(Rate::per_minute(1), 1),
    );
    let other = limiter(Rate::per_minute(1), 1);
    let free = Limiter::builder(Rate::per_second(1).burst(9)).clock(clock.clone());
    let free = free.build().unwrap();
    let refused = acquire_all(&mut [free.ask(1), second.ask(1), minute.ask(1), other.ask(1)]);
    assert_eq!(refused.refused_by(), Some(2));
    assert_eq!(
        refused.decision().retry_after(),
        Some(Duration::from_secs(60))
    );
    let refused = acquire_all(&mut [free.ask(1), minute.ask(1), second.ask(6)]);
    assert_eq!(refused.refused_by(), Some(2));
    assert_eq!(refused.decision(), Decision::TooLarge { burst: 5 });
    other.ban(Duration::from_secs(61));
    let refused = acquire_all(&mut [minute.ask(1), other.ask(1), free.ask(1)]);
    assert_eq!(refused.refused_by(), Some(1));
    assert_eq!(free.peek().remaining(), 9);
    let allowed = acquire_all(&mut [free.ask(4), free.ask(3)]);
    assert!(allowed.is_allowed());
    assert_eq!(
        (allowed.decision().remaining(), free.peek().remaining()),
        (2, 2)
    );
    assert!(acquire_all(&mut []).is_allowed());
}

/// A plan and an injected time go with an ask.
#[test]
fn an_ask_brings_its_plan_and_its_time() {
    let limiter = KeyedLimiter::builder(Rate::per_second(1).burst(1), 10)
        .plan(Rate::per_second(1).burst(50))
        .build()
        .unwrap();
    let one = Limiter::new(Rate::per_second(1).burst(40)).unwrap();
    let ask = |cost, now| {
        let now = Timestamp::from_nanos(now);
        let of_pro = limiter
            .ask_at("alice", cost, now)
            .unwrap()
            .plan(Plan::nth(1));
        acquire_all(&mut [of_pro, one.ask_at(cost, now).unwrap()])
    };
    assert!(ask(40, 5).is_allowed());
    assert_eq!(ask(1, 6).refused_by(), Some(1));
    assert!(ask(1, 1_000_000_005).is_allowed());
    assert!(
        limiter
            .ask_at("alice", 1, Timestamp::from_nanos(4))
            .is_err()
    );
    assert!(one.ask_at(1, Timestamp::from_nanos(4)).is_err());
}

/// Newcomers to a full table share a bucket in such a call too.
#[test]
fn newcomers_to_a_full_table_share_a_bucket() {
    let limiter = KeyedLimiter::builder(Rate::per_hour(1).burst(3), 1)
        .share_overflow()
        .build()
        .unwrap();
    let one = Limiter::new(Rate::per_hour(1).burst(100)).unwrap();
    assert!(limiter.allow("alice"));
    let ask = |name| acquire_all(&mut [limiter.ask(name, 2), one.ask(2)]);
    assert!(ask("bob").is_allowed());
    assert_eq!(ask("carol").refused_by(), Some(0));
    assert!(ask("alice").is_allowed());
    assert_eq!(one.peek().remaining(), 96);
    assert_eq!(limiter.len(), 1);
}

/// Two newcomers of one limiter in one call, and one place: neither is taken in.
#[test]
fn too_few_places_are_nobodys() {
    let limiter = KeyedLimiter::new(Rate::per_hour(1).burst(3), 1).unwrap();
    let mut asks = [limiter.ask("alice", 1), limiter.ask("bob", 1)];
    let refused = acquire_all(&mut asks);
    assert_eq!(refused.decision(), Decision::ClientLimit);
    assert!(limiter.is_empty());
    assert!(limiter.allow("carol"));
}

/// Threads that ask for two limits in opposite orders, and a third beside them: each charge is
/// everywhere or nowhere.
#[test]
fn threads_charge_all_or_none() {
    let limiters: Vec<KeyedLimiter> = (0..3)
        .map(|_| KeyedLimiter::new(Rate::per_day(1).burst(3_000), 10_000).unwrap())
        .collect();
    let service = Limiter::new(Rate::per_day(1).burst(4_000)).unwrap();
    let barrier = Barrier::new(4);
    let admitted: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..4_usize)
            .map(|thread| {
                let (limiters, service, barrier) = (&limiters, &service, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    let mut admitted = 0;
                    for call in 0..1_500_usize {
                        let mut order = [0, 1, 2];
                        order.rotate_left(thread % 3);
                        if (thread + call) % 2 == 0 {
                            order.reverse();
                        }
                        let mut asks: Vec<Ask<'_>> =
                            order.map(|which| limiters[which].ask("all", 1)).into();
                        asks.insert(call % 4, service.ask(1));
                        admitted += u64::from(acquire_all(&mut asks).is_allowed());
                    }
                    admitted
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(admitted, 3_000);
    assert_eq!(service.peek().remaining(), 1_000);
    assert!(
        limiters
            .iter()
            .all(|limiter| limiter.peek("all").remaining() == 0)
    );
}

/// Who starts with fewer tokens than it asks for earns them from its first call on, as alone.
#[test]
fn waiting_as_told_suffices_for_newcomers_with_few_tokens() {
    let clock = ManualClock::default();
    let bucket = TokenBucket::new(Rate::per_second(1).burst(10)).initial_tokens(0);
    let limiter = KeyedLimiter::builder(bucket, 10)
        .clock(clock.clone())
        .build()
        .unwrap();
    for cost in [1, 10] {
        let ask = |name: &(&str, u64)| acquire_all(&mut [limiter.ask(name, cost)]).decision();
        for name in ["alice", "bob"] {
            let refused = ask(&(name, cost));
            assert_eq!(refused.retry_after(), Some(Duration::from_secs(cost)));
        }
        clock.advance(Duration::from_secs(cost));
        assert!(ask(&("alice", cost)).is_allowed());
        assert!(limiter.try_acquire(&("bob", cost), cost).is_allowed());
    }
}

#[test]
fn more_asks_than_are_judged_are_refused() {
    let limiter = KeyedLimiter::new(Rate::per_hour(1).burst(1), 10_000).unwrap();
    let asks = |count: u32| -> Vec<Ask<'_>> { (0..count).map(|n| limiter.ask(&n, 1)).collect() };
    assert!(acquire_all(&mut asks(256)).is_allowed());
    let refused = acquire_all(&mut asks(257));
    assert_eq!(
        (refused.decision(), refused.refused_by()),
        (Decision::ClientLimit, Some(0))
    );
    assert_eq!(limiter.len(), 256);
}

/// A look is under the client's own plan, and one plan that asks no bucket does not name another's.
#[test]
fn a_look_and_a_plan_without_a_bucket_leave_the_plan_alone() {
    let pro = Plan::nth(1);
    let limiter = KeyedLimiter::builder(Rate::per_hour(1).burst(10), 10)
        .plan(Rate::per_hour(1).burst(100))
        .build()
        .unwrap();
    assert!(limiter.try_acquire_as("alice", 1, pro).is_allowed());
    let mut look = [limiter.ask("alice", 0)];
    assert_eq!(acquire_all(&mut look).decision().remaining(), 99);
    let mut look = [limiter.ask("bob", 0).plan(pro)];
    assert_eq!(acquire_all(&mut look).decision().remaining(), 100);
    let unlimited = || limiter.ask("alice", 7).plan(Plan::UNLIMITED);
    let paid = |cost| limiter.ask("alice", cost).plan(pro);
    assert!(acquire_all(&mut [unlimited(), paid(40)]).is_allowed());
    assert!(acquire_all(&mut [paid(40), unlimited()]).is_allowed());
    assert_eq!(limiter.peek("alice").remaining(), 19);
}

/// A leaky bucket that would delay a call for longer than it is to be delayed refuses it, with the
/// wait after which it would not: also where there is no room for it.
#[test]
fn a_delay_that_is_too_long_is_refused_until_it_is_not() {
    let ms = Duration::from_millis;
    let clock = ManualClock::default();
    let queue = LeakyBucket::new(Rate::per_second(3).burst(5));
    let keyed = KeyedLimiter::builder(queue, 10)
        .clock(clock.clone())
        .build()
        .unwrap();
    let one = Limiter::builder(queue)
        .clock(clock.clone())
        .build()
        .unwrap();
    let ask = |cost, max_delay| {
        let asks = || {
            (
                keyed.ask("alice", cost).within(max_delay),
                one.ask(cost).within(max_delay),
            )
        };
        let (of_keyed, of_one) = asks();
        let mut asks = [of_keyed, of_one];
        let together = acquire_all(&mut asks);
        assert_eq!(asks[0].decision(), asks[1].decision());
        assert_eq!(asks[0].again_after(), asks[1].again_after());
        (together.decision(), asks[0].again_after())
    };
    let (first, again) = ask(2, ms(0));
    assert_eq!(
        (first.delay(), again),
        (ms(0), Some(Duration::from_nanos(666_666_667)))
    );
    // Two thirds of a second, rounded up; 100 ms are too few.
    let too_long = Duration::from_nanos(566_666_667);
    let limited = |remaining, retry_after| Decision::Limited {
        remaining,
        retry_after,
        reset_after: Duration::from_nanos(666_666_667),
    };
    assert_eq!(ask(1, ms(100)), (limited(0, too_long), Some(too_long)));
    // Neither room nor time; each for itself lasts as long.
    assert_eq!(
        ask(5, ms(100)).0.retry_after(),
        Some(Duration::from_nanos(666_666_667))
    );
    assert_eq!(
        ask(4, ms(500)).0.retry_after(),
        Some(Duration::from_nanos(333_333_334))
    );
    assert_eq!(ask(6, ms(0)).0, Decision::TooLarge { burst: 5 });
    assert_eq!(
        ask(0, ms(0)).0.remaining(),
        3,
        "a look is delayed by nothing"
    );
    clock.advance(too_long - Duration::from_nanos(1));
    assert_eq!(
        ask(1, ms(100)).0.retry_after(),
        Some(Duration::from_nanos(1))
    );
    clock.advance(Duration::from_nanos(1));
    assert_eq!(ask(1, ms(100)).0.delay(), ms(100));
}

/// What an ask was charged can be given back, once, and by nobody who was not charged.
#[test]
fn asks_give_back() {
    let limiter = KeyedLimiter::builder(Rate::per_hour(1).burst(3), 1)
        .plan(Rate::per_hour(1).burst(5))
        .share_overflow()
        .build()
        .unwrap();
    let charged = |name, cost, plan| {
        let mut asks = [limiter.ask(name, cost).plan(plan)];
        let _ = acquire_all(&mut asks);
        let [ask] = asks;
        ask.into_charge()
    };
    let left = |name| limiter.peek(name).remaining();
    let charge = charged("alice", 2, Plan::DEFAULT).unwrap();
    assert_eq!((left("alice"), charge.decision().remaining()), (1, 1));
    limiter.cancel(charge);
    assert_eq!(left("alice"), 3);
    assert!(charged("alice", 4, Plan::DEFAULT).is_none(), "too large");
    assert!(charged("alice", 0, Plan::DEFAULT).is_none());
    assert!(charged("alice", 2, Plan::UNLIMITED).is_none());
    assert_eq!(left("alice"), 3);
    limiter.cancel(charged("alice", 3, Plan::nth(1)).unwrap());
    // Who shares the bucket of newcomers took nothing of his own.
    assert!(charged("bob", 1, Plan::DEFAULT).is_none());
    let one = Limiter::new(Rate::per_hour(1).burst(1)).unwrap();
    let mut asks = [limiter.ask("alice", 1), one.ask(2)];
    assert!(!acquire_all(&mut asks).is_allowed());
    assert!(
        asks.map(|ask| ask.into_charge().is_none())
            .into_iter()
            .all(|none| none)
    );
}

/// When the same call passes again is told to the nanosecond, by every algorithm.
#[test]
fn again_after_suffices_and_one_nanosecond_less_does_not() {
    for limit in crate::each_limit::each_limit(7, Duration::from_secs(3)) {
        for cost in [1, 2] {
            let clock = ManualClock::default();
            let limiter = KeyedLimiter::builder(limit, 10)
                .clock(clock.clone())
                .build()
                .unwrap();
            let ask = || {
                let mut asks = [limiter.ask("alice", cost)];
                let allowed = acquire_all(&mut asks).is_allowed();
                (allowed, asks[0].again_after())
            };
            for _ in 0..20 {
                let (allowed, again) = ask();
                let again = again.unwrap();
                if allowed && again.is_zero() {
                    continue;
                }
                clock.advance(again - Duration::from_nanos(1));
                assert_eq!(ask(), (false, Some(Duration::from_nanos(1))), "{limit:?}");
                clock.advance(Duration::from_nanos(1));
            }
        }
    }
}
