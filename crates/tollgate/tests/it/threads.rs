//! Many threads at once.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tollgate::{
    AnyLimit, Clock, Decision, FixedWindow, KeyedLimiter, LeakyBucket, Limiter, ManualClock,
    MonotonicClock, Rate, SlidingLog, SlidingWindowCounter,
};
use tollgate_testkit::{Algorithm, Answer, Config, Model, Random};

#[test]
fn of_a_hundred_calls_on_a_fixed_clock_exactly_five_pass() {
    for _ in 0..50 {
        let limiter = KeyedLimiter::builder(Rate::per_second(5).burst(5), 10)
            .clock(ManualClock::default())
            .build()
            .unwrap();
        let (barrier, passed) = (Barrier::new(100), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..100 {
                scope.spawn(|| {
                    barrier.wait();
                    passed.fetch_add(u64::from(limiter.allow("one")), Ordering::Relaxed);
                });
            }
        });
        assert_eq!(passed.into_inner(), 5);
    }
}

/// B65: a check and a charge in two steps let every parallel request see the same free unit.
#[test]
fn b65_of_two_hundred_calls_exactly_a_hundred_pass() {
    let window = Duration::from_secs(3_600);
    for limit in [
        AnyLimit::from(Rate::per_hour(1).burst(100)),
        LeakyBucket::new(Rate::per_hour(1).burst(100)).into(),
        FixedWindow::new(100, window).into(),
        SlidingLog::new(100, window).into(),
        SlidingWindowCounter::new(100, window).into(),
    ] {
        for _ in 0..20 {
            let clock = ManualClock::default();
            let many = KeyedLimiter::builder(limit, 10)
                .clock(clock.clone())
                .build()
                .unwrap();
            let one = Limiter::builder(limit).clock(clock).build().unwrap();
            let barrier = Barrier::new(16);
            let (of_many, of_one) = (AtomicU64::new(0), AtomicU64::new(0));
            thread::scope(|scope| {
                for thread in 0..16 {
                    let (many, one, barrier) = (&many, &one, &barrier);
                    let (of_many, of_one) = (&of_many, &of_one);
                    scope.spawn(move || {
                        barrier.wait();
                        // 200 calls on 16 threads.
                        for _ in 0..if thread < 8 { 13 } else { 12 } {
                            of_many.fetch_add(u64::from(many.allow("one")), Ordering::Relaxed);
                            of_one.fetch_add(u64::from(one.allow()), Ordering::Relaxed);
                        }
                    });
                }
            });
            assert_eq!(
                (of_many.into_inner(), of_one.into_inner()),
                (100, 100),
                "{limit:?}"
            );
        }
    }
}

/// Eight threads on 10,000 clients. Time moves only while all of them wait; at one instant the
/// order of calls for one token makes no difference to how many of each client's pass, so the model
/// says exactly how many must.
#[test]
fn between_barriers_exactly_what_the_model_admits() {
    const CLIENTS: u64 = 10_000;
    const THREADS: u64 = 8;
    const ROUNDS: u64 = 30;
    const CALLS: u64 = 3_000;
    let config = Config {
        algorithm: Algorithm::TokenBucket {
            tokens: 2,
            per_ns: 1_000_000_000,
            burst: 3,
        },
        max_clients: None,
        idle_ns: Some(1_500_000_000),
    };
    let clock = ManualClock::default();
    let limiter = KeyedLimiter::builder(Rate::per_second(2).burst(3), CLIENTS as usize)
        .idle(Duration::from_millis(1_500))
        .clock(clock.clone())
        .build()
        .unwrap();
    let (start, end) = (
        Barrier::new(THREADS as usize + 1),
        Barrier::new(THREADS as usize + 1),
    );
    let admitted: Vec<AtomicU64> = (0..CLIENTS).map(|_| AtomicU64::new(0)).collect();
    // The clients of one round are crowded, so that most of them run dry.
    let client = |random: &mut Random, round: u64| (random.below(2_000) + round * 777) % CLIENTS;
    let seed = |round: u64, thread: u64| Random::new(round * THREADS + thread);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (limiter, admitted, start, end) = (&limiter, &admitted, &start, &end);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    start.wait();
                    let mut random = seed(round, thread);
                    for _ in 0..CALLS {
                        let client = client(&mut random, round);
                        let passed = limiter.allow(&client);
                        admitted[client as usize].fetch_add(u64::from(passed), Ordering::Relaxed);
                    }
                    end.wait();
                }
            });
        }
        // The model forgets everybody's calls but those that count: one model a client keeps its
        // literal sweep from taking all day.
        let mut models = vec![Model::new(config); CLIENTS as usize];
        for round in 0..ROUNDS {
            let now_ns = clock.now().as_nanos();
            start.wait();
            end.wait();
            let mut wanted = vec![0; CLIENTS as usize];
            for thread in 0..THREADS {
                let mut random = seed(round, thread);
                for _ in 0..CALLS {
                    let client = client(&mut random, round) as usize;
                    let answer = models[client].call("it", 1, now_ns);
                    wanted[client] += u64::from(matches!(answer, Answer::Allowed { .. }));
                }
            }
            let got: Vec<u64> = admitted
                .iter()
                .map(|n| n.swap(0, Ordering::Relaxed))
                .collect();
            assert!(got == wanted, "round {round}");
            let tracked: usize = models.iter_mut().map(|model| model.len_at(now_ns)).sum();
            assert_eq!(limiter.len(), tracked, "round {round}");
            clock.advance(Duration::from_millis(500));
        }
    });
}

/// The cap under threads: newcomers and returning clients race for fewer places than there are
/// clients, while time moves on. Sampled all along, the table is never above the cap, and whoever
/// is refused for it had good reason: every place was taken by somebody who had called.
#[test]
fn the_cap_holds_while_clients_come_and_go() {
    let clock = ManualClock::default();
    let limiter = KeyedLimiter::builder(Rate::per_second(1_000).burst(3), 100)
        .clock(clock.clone())
        .build()
        .unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let callers: Vec<_> = (0..4)
            .map(|thread| {
                let (limiter, clock) = (&limiter, &clock);
                scope.spawn(move || {
                    let mut random = Random::new(thread);
                    let mut answers = [0_u64; 3];
                    for round in 0..50_000_u64 {
                        let answer = limiter.try_acquire(&random.below(300), 1);
                        answers[match answer {
                            Decision::Allowed { .. } => 0,
                            Decision::Limited { .. } => 1,
                            Decision::ClientLimit | Decision::TooLarge { .. } | _ => 2,
                        }] += 1;
                        if round % 16 == 0 {
                            clock.advance(Duration::from_micros(100));
                        }
                    }
                    answers
                })
            })
            .collect();
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                assert!(limiter.len() <= 100);
            }
        });
        for caller in callers {
            let answers = caller.join().unwrap();
            assert!(
                answers[0] > 0 && answers.iter().sum::<u64>() == 50_000,
                "{answers:?}"
            );
        }
        stop.store(true, Ordering::Relaxed);
    });
    clock.advance(Duration::from_secs(1));
    assert_eq!(limiter.len(), 0, "no place was lost");
}

/// B32: a shard locked again while it was held froze the server under key churn. A hundred places,
/// eight threads with 100,000 names each, and one that sweeps and counts all the while.
#[test]
fn b32_churn_under_a_sweeper_ends_with_one_verdict_a_call() {
    let limiter = KeyedLimiter::new(Rate::per_second(1_000).burst(1), 100).unwrap();
    let stop = AtomicBool::new(false);
    let verdicts = AtomicU64::new(0);
    thread::scope(|scope| {
        let callers: Vec<_> = (0..8_u64)
            .map(|thread| {
                let (limiter, verdicts) = (&limiter, &verdicts);
                scope.spawn(move || {
                    for name in 0..100_000_u64 {
                        let _ = limiter.try_acquire(&(thread, name), 1);
                        verdicts.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                limiter.forget_idle();
                assert!(limiter.len() <= 100);
                thread::yield_now();
            }
        });
        callers
            .into_iter()
            .for_each(|caller| caller.join().unwrap());
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(verdicts.into_inner(), 800_000);
}

/// B96: one sweeper thread leaked for each limiter that was built and dropped. There is none.
#[test]
#[cfg(target_os = "linux")]
fn b96_a_limiter_starts_no_thread() {
    let own_threads = || {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let parent = status
            .lines()
            .find(|line| line.starts_with("Tgid"))
            .unwrap()
            .to_owned();
        drop(parent);
        std::fs::read_dir("/proc/self/task").unwrap().count()
    };
    // Other tests start and end threads meanwhile: a leak of one a limiter would still show.
    let before = own_threads();
    for _ in 0..1_000 {
        let limiter = KeyedLimiter::new(Rate::per_second(1).burst(1), 10_000).unwrap();
        assert!(limiter.allow("one") && !limiter.allow("one"));
    }
    assert!(own_threads() < before + 500, "{before} threads before");
}

/// Real threads on the real clock for three seconds: nothing panics, and each client's bound holds.
#[test]
fn the_bound_holds_on_the_real_clock() {
    const LONG_ENOUGH_NS: u64 = 3_000_000_000;
    let (rate, burst) = (1_000_u64, 50_u64);
    let limiter = KeyedLimiter::new(Rate::per_second(rate).burst(burst), 64).unwrap();
    let clock = MonotonicClock::new();
    let admitted: Vec<AtomicU64> = (0..8).map(|_| AtomicU64::new(0)).collect();
    let started = clock.now().as_nanos();
    thread::scope(|scope| {
        for thread in 0..4 {
            let (limiter, admitted, clock) = (&limiter, &admitted, &clock);
            scope.spawn(move || {
                let mut random = Random::new(thread);
                while clock.now().as_nanos() - started < LONG_ENOUGH_NS {
                    for client in (0..1_000).map(|_| random.below(8)) {
                        let passed = limiter.allow(&client);
                        admitted[client as usize].fetch_add(u64::from(passed), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    // A microsecond of slack for readings that two threads saw in the other order.
    let elapsed_ns = clock.now().as_nanos() - started + 1_000;
    for client in admitted {
        let most = u128::from(burst) * 1_000_000_000 + u128::from(rate) * u128::from(elapsed_ns);
        let admitted = client.into_inner();
        assert!(
            u128::from(admitted) * 1_000_000_000 <= most,
            "{admitted} in {elapsed_ns} ns"
        );
        assert!(admitted >= burst);
    }
}
