//! What cannot be seen from outside: the order of a table, the queue's lower bounds, clients whose
//! hashes meet, and the number of shards.

use std::collections::HashMap;
use std::sync::Arc;

use tollgate_testkit::{Answer, Random};

use super::clients::{Clients, Who};
use super::key::Secrets;
use super::rules::{Idle, Plans, Rules};
use super::*;
use crate::algorithm::Algorithm;
use crate::algorithm::bucket::{AnyWidth, Asked, Bucket};
use crate::{ManualClock, Rate};

fn bucket() -> Bucket<i64> {
    let asked = Asked {
        quota: Rate::new(1, Duration::from_nanos(1)).burst(3),
        initial: None,
        debt: 0,
        queue: false,
    };
    match AnyWidth::new(asked) {
        Ok(AnyWidth::Narrow(bucket)) => bucket,
        other => unreachable!("{other:?}"),
    }
}

pub(super) fn rules(idle_ns: u64, secrets: &Secrets) -> Arc<Rules<Bucket<i64>>> {
    let plans = Plans::new(bucket(), Box::default());
    Arc::new(Rules::new(plans, (Idle::After(idle_ns), false), secrets.places()).unwrap())
}

/// Names that one table cannot tell apart by their hashes, four pairs of them, found by trying: of
/// 300,000 names about ten pairs meet in 32 bits.
fn names_that_meet(secrets: &Secrets) -> Vec<(u64, u64)> {
    let places = secrets.places();
    let mut seen = HashMap::new();
    let meets = |name| {
        let hash = places.in_shard(places.hash(secrets.key(&name)));
        seen.insert(hash, name).map(|other| (other, name))
    };
    (0..u64::MAX).filter_map(meets).take(4).collect()
}

/// A shard against a map, with names that meet among them: every operation in random order, at
/// times around the idle time.
#[test]
fn a_shard_holds_what_a_map_holds() {
    const IDLE_NS: u64 = 20;
    let secrets = Secrets::random(0);
    let rules = rules(IDLE_NS, &secrets);
    let places = secrets.places();
    let pairs = names_that_meet(&secrets);
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let mut names: Vec<u64> = (0..random.magnitude(200)).map(|n| n + 1_000_000).collect();
        names.extend(pairs.iter().flat_map(|pair| [pair.0, pair.1]));
        let mut clients: Clients<Bucket<i64>> = Clients::new(rules.clone());
        let mut map: HashMap<u64, u64> = HashMap::new();
        let mut now = 0;
        for step in 0..400 {
            now = clients.advance(now + random.pick(0, &[0, 0, 1, IDLE_NS - 1, IDLE_NS, 2]));
            let name = names[random.below(names.len() as u64) as usize];
            let key = secrets.key(&name);
            let hash = places.in_shard(places.hash(key));
            let found = clients.find(Who { key, hash });
            assert_eq!(
                found.is_some(),
                map.contains_key(&name),
                "seed {seed}, step {step}"
            );
            match random.below(8) {
                0 => {
                    if let Some(at) = found {
                        clients.remove(at);
                        map.remove(&name);
                    }
                }
                1 | 2 => {
                    let most = random.magnitude(64) as usize;
                    let due = map.values().filter(|seen| now - **seen >= IDLE_NS).count();
                    let forgotten = clients.forget_due(now, most);
                    assert!(forgotten <= due && (most < 64 || map.len() > 30 || forgotten == due));
                    // Which of the due ones went is the shard's to choose.
                    map.retain(|name, _| {
                        let key = secrets.key(name);
                        clients
                            .find(Who {
                                key,
                                hash: places.in_shard(places.hash(key)),
                            })
                            .is_some()
                    });
                    assert_eq!(map.len(), clients.len());
                }
                3 => clients.shrink(random.one_in(2)),
                _ => {
                    match found {
                        Some(at) => {
                            let act = |bucket: &Bucket<i64>, state: &mut _, now| {
                                ((), bucket.attempt(state, 1, now))
                            };
                            clients.attempt(at, 0, now, act);
                        }
                        None => {
                            let at = clients.insert(Who { key, hash }, 0, now).unwrap();
                            clients.enqueue(at);
                        }
                    }
                    map.insert(name, now);
                }
            }
            clients.validate();
        }
        while clients.forget_due(now + IDLE_NS, 64) > 0 {}
        clients.validate();
        assert_eq!(clients.len(), 0, "seed {seed}");
    }
}

/// One client's removal and return, over and over, leaves no trail of stale positions.
#[test]
fn removing_and_returning_does_not_pile_up() {
    let secrets = Secrets::random(0);
    let rules = rules(1_000_000, &secrets);
    let places = secrets.places();
    let mut clients: Clients<Bucket<i64>> = Clients::new(rules.clone());
    let add = |clients: &mut Clients<Bucket<i64>>, name: u64, now| {
        let key = secrets.key(&name);
        let hash = places.in_shard(places.hash(key));
        let at = clients.insert(Who { key, hash }, 0, now).unwrap();
        clients.enqueue(at);
        at
    };
    for now in 0..10_000 {
        clients.advance(now);
        if now < 10 {
            add(&mut clients, now, now);
        }
        let at = add(&mut clients, 77, now);
        clients.remove(at);
        clients.validate();
    }
    assert!(
        clients.memory_bytes() < 10_000,
        "{} bytes",
        clients.memory_bytes()
    );
}

/// What a trace calls a decision.
fn in_words(decision: Decision) -> Answer {
    match decision {
        Decision::Allowed {
            remaining,
            delay,
            reset_after,
        } => Answer::Allowed {
            remaining,
            delay_ns: delay.as_nanos(),
            reset_after_ns: reset_after.as_nanos(),
        },
        Decision::Limited {
            remaining,
            retry_after,
            reset_after,
        } => Answer::Limited {
            remaining,
            retry_after_ns: retry_after.as_nanos(),
            reset_after_ns: reset_after.as_nanos(),
        },
        Decision::Banned { retry_after } => Answer::Banned {
            retry_after_ns: retry_after.as_nanos(),
        },
        Decision::ClientLimit => Answer::ClientLimit,
        Decision::TooLarge { .. } => Answer::TooLarge,
    }
}

/// Answers and order do not depend on how many shards there are.
#[test]
fn every_number_of_shards_answers_as_the_model() {
    use tollgate_testkit::{Algorithm as Given, Config, Model};
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let config = Config {
            algorithm: Given::TokenBucket {
                tokens: 1,
                per_ns: 10,
                burst: 2,
            },
            max_clients: Some(random.pick(1, &[2, 3, 8])),
            idle_ns: Some(random.pick(1, &[19, 20, 40])),
        };
        let clock = ManualClock::default();
        let limiter = KeyedLimiter::builder(
            Rate::new(1, Duration::from_nanos(10)).burst(2),
            config.max_clients.unwrap() as usize,
        )
        .idle(Duration::from_nanos(config.idle_ns.unwrap()))
        .clock(clock.clone())
        .shard_bits(random.below(5) as u32)
        .build()
        .unwrap();
        let mut model = Model::new(config);
        for step in 0..200 {
            clock.advance(Duration::from_nanos(
                random.pick(0, &[0, 0, 1, 9, 10, 19, 20]),
            ));
            let now_ns = clock.now().as_nanos();
            let name = format!("{}", random.below(12));
            if random.one_in(8) {
                let removed = limiter.remove(name.as_str());
                assert_eq!(
                    removed,
                    model.remove(&name, now_ns),
                    "seed {seed}, step {step}"
                );
            } else {
                let cost = random.pick(1, &[0, 1, 2, 3]);
                let wanted = model.call(&name, cost, now_ns);
                let got = in_words(limiter.try_acquire(name.as_str(), cost));
                assert_eq!(got, wanted, "seed {seed}, step {step}, cost {cost}");
            }
            limiter.store.validate();
            if random.one_in(4) {
                assert_eq!(
                    limiter.len(),
                    model.len_at(now_ns),
                    "seed {seed}, step {step}"
                );
            }
        }
    }
}
