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

/// Sets a flag when it goes, by a panic too: whoever waits for it must not wait for ever.
struct Sets<'a>(&'a AtomicBool);

impl Drop for Sets<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The cap under threads: newcomers and returning clients race for fewer places than there are
/// clients, while time moves on. Sampled all along, the table is never above the cap. That nobody
/// is refused without a reason is the next test's, and the model checker's.
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
        let stops = Sets(&stop);
        for caller in callers {
            let answers = caller.join().unwrap();
            assert!(answers.iter().all(|times| *times > 0), "{answers:?}");
        }
        drop(stops);
    });
    clock.advance(Duration::from_secs(1));
    assert_eq!(limiter.len(), 0, "no place was lost");
}

/// As many places as there are clients: whatever they do at once, nobody is ever refused for the
/// cap. And with one place less, on a clock that stands still, exactly one is.
#[test]
fn nobody_is_refused_while_there_is_a_place() {
    for (places, refused) in [(5_000, 0), (4_999, 1)] {
        let clock = ManualClock::default();
        let limiter = KeyedLimiter::builder(Rate::per_second(1_000).burst(3), places)
            .clock(clock.clone())
            .build()
            .unwrap();
        for round in 0..5 {
            let limited = AtomicU64::new(0);
            thread::scope(|scope| {
                for thread in 0..8_u64 {
                    let (limiter, limited, clock) = (&limiter, &limited, &clock);
                    scope.spawn(move || {
                        // Each thread has its own clients, so each client calls once.
                        for client in (thread * 625..).take(625) {
                            let answer = limiter.try_acquire(&client, 1);
                            let is_limited = answer == Decision::ClientLimit;
                            limited.fetch_add(u64::from(is_limited), Ordering::Relaxed);
                            if refused == 0 {
                                // Idle ones are forgotten and come back.
                                clock.advance(Duration::from_nanos(700));
                            }
                        }
                    });
                }
            });
            assert_eq!(
                limited.into_inner(),
                refused,
                "{places} places, round {round}"
            );
            clock.advance(Duration::from_secs(1));
        }
    }
}

/// B32: a shard locked again while it was held froze the server under key churn. A hundred places,
/// eight threads with 100,000 names each, and one that sweeps and counts all the while. Each call
/// has one of two verdicts, since no name calls twice, and all of them end.
#[test]
fn b32_churn_under_a_sweeper_ends_with_one_verdict_a_call() {
    let limiter = KeyedLimiter::new(Rate::per_second(1_000).burst(1), 100).unwrap();
    let stop = AtomicBool::new(false);
    let (admitted, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        let callers: Vec<_> = (0..8_u64)
            .map(|thread| {
                let (limiter, admitted, refused) = (&limiter, &admitted, &refused);
                scope.spawn(move || {
                    for name in 0..100_000_u64 {
                        match limiter.try_acquire(&(thread, name), 1) {
                            Decision::Allowed { .. } => admitted,
                            Decision::ClientLimit => refused,
                            other @ (Decision::Limited { .. } | _) => panic!("{other}"),
                        }
                        .fetch_add(1, Ordering::Relaxed);
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
        let stops = Sets(&stop);
        callers
            .into_iter()
            .for_each(|caller| caller.join().unwrap());
        drop(stops);
    });
    let (admitted, refused) = (admitted.into_inner(), refused.into_inner());
    assert_eq!(admitted + refused, 800_000);
    assert!(admitted >= 100, "{admitted}");
}

/// B96: one sweeper thread leaked for each limiter that was built and dropped. There is none. In a
/// process of its own, where no other test starts threads.
#[test]
#[cfg(target_os = "linux")]
fn b96_a_limiter_starts_no_thread() {
    const CHILD: &str = "TOLLGATE_B96_CHILD";
    if std::env::var_os(CHILD).is_none() {
        let own = std::env::current_exe().unwrap();
        let test = "threads::b96_a_limiter_starts_no_thread";
        let child = std::process::Command::new(own)
            .args(["--exact", test, "--test-threads", "1"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(
            child.status.success() && said.contains("1 passed"),
            "{said}"
        );
        return;
    }
    let own_threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let before = own_threads();
    for _ in 0..1_000 {
        let limiter = KeyedLimiter::new(Rate::per_second(1).burst(1), 10_000).unwrap();
        assert!(limiter.allow("one") && !limiter.allow("one"));
    }
    assert_eq!(own_threads(), before);
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
