//! A full table: who is forgotten for a newcomer, and what newcomers share.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use tollgate::{
    AnyLimit, Decision, FixedWindow, KeyedLimiter, ManualClock, Rate, SlidingLog,
    SlidingWindowCounter, Timestamp, Tokens, acquire_all,
};
use tollgate_testkit::Random;

use crate::each_limit::each_limit;

const SECOND: Duration = Duration::from_secs(1);

/// With `forget_settled` a newcomer to a full table is refused if, and only if, nobody there is as
/// new; and nobody is ever forgotten who is not. Attempts, refunds, debits, bans and removals in
/// any order, at times around those at which something settles.
#[test]
fn whoever_is_settled_makes_room_and_nobody_else() {
    let (mut refused, mut made_room) = (0, 0);
    for seed in 0..600_u64 {
        let mut random = Random::new(seed ^ 0x0066_756c);
        let limits = each_limit(random.pick(5, &[2, 10]), SECOND);
        for limit in limits {
            let clock = ManualClock::default();
            let limiter = KeyedLimiter::builder(limit, 4)
                .forget_settled()
                .largest_debt(3)
                .clock(clock.clone())
                .build()
                .unwrap();
            // Another one without a cap says what each client has left.
            let all = KeyedLimiter::builder(limit, 100)
                .largest_debt(3)
                .clock(clock.clone())
                .build()
                .unwrap();
            let mut known: Vec<String> = Vec::new();
            for _ in 0..60 {
                let wait = random.pick(0, &[1, 100_000_000, 200_000_000, 500_000_000, 999_999_999]);
                clock.advance(Duration::from_nanos(wait));
                let name = format!("{}", random.below(9));
                let is_settled = |name: &String| {
                    let seen = all.peek(name.as_str());
                    seen.is_allowed() && seen.reset_after().is_zero()
                };
                known.retain(|name| !is_settled(name));
                let is_new = !known.contains(&name);
                match random.below(8) {
                    0 => {
                        limiter.refund(name.as_str(), 1);
                        all.refund(name.as_str(), 1);
                        continue;
                    }
                    1 => {
                        limiter.remove(name.as_str());
                        all.remove(name.as_str());
                        known.retain(|known| *known != name);
                        continue;
                    }
                    2 if !is_new => {
                        let taken = limiter.debit(name.as_str(), 4).taken();
                        assert_eq!(taken, all.debit(name.as_str(), 4).taken(), "{limit:?}");
                        continue;
                    }
                    3 if !is_new => {
                        let time = Duration::from_millis(300);
                        assert!(limiter.ban(name.as_str(), time) && all.ban(name.as_str(), time));
                        continue;
                    }
                    _ => {}
                }
                let decision = limiter.try_acquire(name.as_str(), 1);
                if is_new && known.len() == 4 {
                    assert_eq!(decision, Decision::ClientLimit, "seed {seed}, {limit:?}");
                    refused += 1;
                    continue;
                }
                made_room += usize::from(is_new && limiter.statistics().forgotten > 0);
                assert_eq!(
                    decision,
                    all.try_acquire(name.as_str(), 1),
                    "seed {seed}, {limit:?}"
                );
                if is_new {
                    known.push(name);
                }
                known.retain(|name| !is_settled(name));
                assert_eq!(limiter.len(), known.len(), "seed {seed}, {limit:?}");
            }
        }
    }
    assert!(
        refused > 5_000 && made_room > 5_000,
        "{refused}, {made_room}"
    );
}

/// A change tells at once who is settled when: nobody is forgotten early for it, and nobody keeps a
/// place longer than its own tokens need.
#[test]
fn a_change_forgets_everybody_in_time() {
    let clock = ManualClock::default();
    let limiter = KeyedLimiter::builder(Rate::per_second(10).burst(10), 2)
        .forget_settled()
        .clock(clock.clone())
        .build()
        .unwrap();
    assert!(limiter.try_acquire("alice", 10).is_allowed());
    assert!(limiter.try_acquire("bob", 1).is_allowed());
    clock.advance(Duration::from_millis(50));
    // Half a token is there, and half of one lacks: 95 and 5 seconds from now on.
    let slow = Rate::new(1, 10 * SECOND).burst(10);
    limiter.set_quota(slow, Tokens::Kept).unwrap();
    clock.advance(5 * SECOND - Duration::from_nanos(1));
    assert_eq!(limiter.try_acquire("carol", 1), Decision::ClientLimit);
    clock.advance(Duration::from_nanos(1));
    assert!(limiter.try_acquire("carol", 10).is_allowed(), "bob's place");
    assert_eq!(limiter.try_acquire("bob", 1), Decision::ClientLimit);
    // Faster again: alice has one token, and needs nine more.
    limiter
        .set_quota(Rate::per_second(9).burst(10), Tokens::Kept)
        .unwrap();
    clock.advance(SECOND - Duration::from_nanos(1));
    assert_eq!(limiter.try_acquire("bob", 1), Decision::ClientLimit);
    clock.advance(Duration::from_nanos(1));
    assert!(limiter.allow("bob"));
    // Who was settled when the limit changed is new to it.
    clock.advance(100 * SECOND);
    limiter
        .set_quota(Rate::per_second(9).burst(20), Tokens::Kept)
        .unwrap();
    assert_eq!(limiter.peek("alice").remaining(), 20);
    assert!(!limiter.remove("alice"));
}

/// With one place, none of it free: a call for several limiters is refused as one alone is.
#[test]
fn a_full_table_that_forgets_as_settled_answers_at_once() {
    let clock = ManualClock::default();
    let limiter = KeyedLimiter::builder(Rate::per_hour(1).burst(2), 1)
        .forget_settled()
        .clock(clock.clone())
        .build()
        .unwrap();
    assert!(limiter.allow("alice"));
    let refused = acquire_all(&mut [limiter.ask("bob", 1)]);
    assert_eq!(refused.decision(), Decision::ClientLimit);
    assert_eq!(limiter.len(), 1);
}

/// Where more have settled than a call forgets on its way, a ban and a debit still do what they
/// say.
#[test]
fn a_ban_and_a_debit_find_whom_they_are_for() {
    for limit in each_limit(10, SECOND) {
        let clock = ManualClock::default();
        let limiter = KeyedLimiter::builder(limit, 20)
            .forget_settled()
            .clock(clock.clone())
            .build()
            .unwrap();
        assert!((0..10).all(|name: u32| limiter.allow(&name)));
        clock.advance(4 * SECOND);
        assert!(limiter.ban(&77, 60 * SECOND), "{limit:?}");
        assert!(!limiter.allow(&77), "{limit:?}");
        assert_eq!(limiter.debit(&9, 5).taken(), 5, "{limit:?}");
        assert_eq!(limiter.peek(&9).remaining(), 5, "{limit:?}");
        assert_eq!(limiter.len(), 2, "{limit:?}");
    }
}

/// A ban ends when it ends, whatever becomes of the window that was open.
#[test]
fn a_shorter_window_ends_no_ban() {
    let window = |seconds| {
        let length = Duration::from_secs(seconds);
        [
            AnyLimit::from(FixedWindow::new(5, length)),
            SlidingLog::new(5, length).into(),
            SlidingWindowCounter::new(5, length).into(),
        ]
    };
    for (long, short) in window(10).into_iter().zip(window(2)) {
        let clock = ManualClock::default();
        let limiter = KeyedLimiter::builder(long, 1)
            .forget_settled()
            .clock(clock.clone())
            .build()
            .unwrap();
        assert!(limiter.allow("alice") && limiter.ban("alice", 5 * SECOND));
        clock.advance(SECOND);
        limiter.set_quota(short, Tokens::Kept).unwrap();
        clock.advance(4 * SECOND - Duration::from_nanos(1));
        let banned = Decision::Banned {
            retry_after: Duration::from_nanos(1),
        };
        assert_eq!(limiter.peek("alice"), banned, "{long:?}");
        assert!(!limiter.allow("bob"), "{long:?}");
    }
}

/// The last instant there is has no next: nobody waits for it.
#[test]
fn the_last_instant_ends() {
    for builder in [
        KeyedLimiter::builder(Rate::per_second(1).burst(1), 1),
        KeyedLimiter::builder(Rate::per_second(1).burst(1), 1).forget_settled(),
    ] {
        let limiter = builder.build().unwrap();
        let last = Timestamp::MAX;
        assert!(
            limiter
                .try_acquire_at("alice", 1, last)
                .unwrap()
                .is_allowed()
        );
        assert_eq!(limiter.len_at(last), Ok(1));
        let refused = limiter.try_acquire_at("bob", 1, last).unwrap();
        assert_eq!(refused, Decision::ClientLimit);
    }
}

/// Nor does the shared bucket, which is never forgotten.
#[test]
fn the_shared_bucket_is_kept_at_the_last_instant() {
    let limiter = KeyedLimiter::builder(Rate::per_hour(1).burst(5), 1)
        .idle(SECOND)
        .share_overflow()
        .build()
        .unwrap();
    let last = Timestamp::MAX;
    let before = Timestamp::from_nanos(last.as_nanos() - 2_000_000_000);
    let allows = |name, now| {
        let decision = limiter.try_acquire_at(name, 1, now);
        decision.unwrap().is_allowed()
    };
    assert!(allows("alice", before));
    assert!((0..5).all(|_| allows("bob", before)));
    assert!(allows("alice", last));
    assert!(!allows("bob", last));
}

/// The shared bucket follows every change, however many limits came and went.
#[test]
fn the_shared_bucket_follows_the_limit() {
    let clock = ManualClock::default();
    let limiter = KeyedLimiter::builder(Rate::per_hour(1).burst(10), 1)
        .share_overflow()
        .clock(clock.clone())
        .build()
        .unwrap();
    assert!(limiter.allow("alice") && limiter.allow("bob"));
    clock.advance(SECOND);
    limiter
        .set_quota(Rate::per_second(1).burst(10), Tokens::Kept)
        .unwrap();
    clock.advance(19 * SECOND);
    limiter
        .set_quota(Rate::per_second(1_000).burst(11), Tokens::Kept)
        .unwrap();
    assert!(limiter.allow("alice"));
    assert!(
        !limiter.try_acquire("carol", 11).is_allowed(),
        "ten were kept"
    );
    clock.advance(Duration::from_millis(1));
    assert_eq!(limiter.try_acquire("carol", 11).remaining(), 0);
}

/// A crowd of newcomers gets through no more than one client, however many threads bring it; those
/// who are tracked notice nothing.
#[test]
fn newcomers_share_one_bucket_whatever_they_are_called() {
    for limit in each_limit(50, SECOND) {
        let clock = ManualClock::default();
        let limiter = KeyedLimiter::builder(limit, 3)
            .share_overflow()
            .clock(clock.clone())
            .build()
            .unwrap();
        assert!(["a", "b", "c"].iter().all(|name| limiter.allow(name)));
        let barrier = Barrier::new(4);
        let admitted: usize = thread::scope(|scope| {
            let threads: Vec<_> = (0..4_u64)
                .map(|thread| {
                    let (limiter, barrier) = (&limiter, &barrier);
                    scope.spawn(move || {
                        barrier.wait();
                        (0..100_u64)
                            .filter(|n| limiter.allow(&(thread, *n)))
                            .count()
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum()
        });
        assert_eq!(admitted, 50, "{limit:?}");
        let statistics = limiter.statistics();
        assert_eq!((statistics.overflowed, statistics.client_limit), (400, 0));
        assert_eq!((statistics.allowed, statistics.limited), (53, 350));
        assert_eq!(limiter.try_acquire("a", 49).remaining(), 0);
        assert_eq!(limiter.len(), 3);
        assert!(
            !limiter.ban("mallory", SECOND),
            "there is no telling newcomers apart"
        );
        limiter.set_quota(limit, Tokens::Reset).unwrap();
        assert!(limiter.allow("dave"), "{limit:?}");
        clock.advance(2 * SECOND);
        assert!(limiter.allow("erin"));
        assert_eq!(limiter.len(), 1, "the others were idle");
    }
}
