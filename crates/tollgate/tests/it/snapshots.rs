//! Clients that outlive a limiter.

use std::time::Duration;

use tollgate::{
    AnyLimit, Clock, KeyedLimiter, Limiter, ManualClock, Plan, Rate, RestoreError, Timestamp,
};
use tollgate_testkit::Random;

use crate::each_limit::each_limit;

const SECOND: Duration = Duration::from_secs(1);

fn keyed(limit: AnyLimit, clock: &ManualClock) -> KeyedLimiter<AnyLimit, ManualClock> {
    let builder = KeyedLimiter::builder(limit, 100).clock(clock.clone());
    let limiter = builder.build().unwrap();
    for (name, cost) in [
        ("alice", 4),
        ("bob", 1),
        ("a name too long to be kept itself", 2),
    ] {
        assert!(limiter.try_acquire(name, cost).is_allowed());
    }
    assert!(limiter.ban("mallory", 5 * SECOND));
    limiter
}

/// Every answer is the one that the limiter before would have given, whoever was known.
#[test]
fn a_restored_limiter_answers_as_the_one_before() {
    for limit in each_limit(5, SECOND) {
        let clock = ManualClock::new(Timestamp::from_nanos(7_300_000_000));
        let limiter = keyed(limit, &clock);
        let snapshot = limiter.snapshot();
        for away in [0, 1, 199_999_999, 200_000_000, 700_000_000, 5_000_000_000] {
            let clock = ManualClock::new(Timestamp::from_nanos(7_300_000_000 + away));
            let restored = KeyedLimiter::builder(limit, 100).clock(clock.clone());
            let restored = restored.restore(&snapshot).unwrap();
            let before = keyed(
                limit,
                &ManualClock::new(Timestamp::from_nanos(7_300_000_000)),
            );
            let at = clock.now();
            for name in [
                "alice",
                "bob",
                "a name too long to be kept itself",
                "carol",
                "mallory",
            ] {
                for cost in [1, 2, 5] {
                    let wanted = before.try_acquire_at(name, cost, at).unwrap();
                    assert_eq!(restored.try_acquire(name, cost), wanted, "{limit:?} {name}");
                }
            }
            assert_eq!(restored.len(), before.len_at(at).unwrap());
        }
    }
}

/// A clock that is behind, or starts at zero: no time has passed, and what was to come is as far
/// off as it was.
#[test]
fn time_that_ran_back_is_no_time() {
    for limit in each_limit(5, SECOND) {
        let clock = ManualClock::new(Timestamp::from_nanos(9_000_000_000));
        let snapshot = keyed(limit, &clock).snapshot();
        for now in [0, 1, 8_999_999_999] {
            let clock = ManualClock::new(Timestamp::from_nanos(now));
            let restored = KeyedLimiter::builder(limit, 100).clock(clock.clone());
            let restored = restored.restore(&snapshot).unwrap();
            assert_eq!(restored.peek("alice").remaining(), 1, "{limit:?} {now}");
            assert_eq!(restored.peek("mallory").retry_after(), Some(5 * SECOND));
            clock.advance(5 * SECOND);
            assert!(restored.allow("mallory"));
        }
    }
}

#[test]
fn one_bucket_survives_too() {
    for limit in each_limit(5, SECOND) {
        let clock = ManualClock::default();
        let limiter = Limiter::builder(limit)
            .clock(clock.clone())
            .build()
            .unwrap();
        let fresh = Limiter::builder(limit).clock(clock.clone());
        let fresh = fresh.restore(&limiter.snapshot()).unwrap();
        assert_eq!(fresh.peek().remaining(), 5);
        assert!(limiter.try_acquire(4).is_allowed());
        let restored = Limiter::builder(limit).clock(clock.clone());
        let restored = restored.restore(&limiter.snapshot()).unwrap();
        assert!(!restored.try_acquire(2).is_allowed(), "{limit:?}");
        assert_eq!(restored.try_acquire(2), limiter.try_acquire(2));
        let keyed = KeyedLimiter::builder(limit, 5).restore(&limiter.snapshot());
        assert_eq!(keyed.unwrap_err(), RestoreError::OtherLimiter);
    }
}

/// tbmq changed a limit and restarted, and stored buckets never learnt of it.
#[test]
fn a_changed_limit_holds_for_restored_clients() {
    let clock = ManualClock::default();
    let builder =
        |burst| KeyedLimiter::builder(Rate::per_second(1).burst(burst), 10).clock(clock.clone());
    let limiter = builder(5).build().unwrap();
    assert!(limiter.try_acquire("alice", 1).is_allowed());
    let snapshot = limiter.snapshot();
    let lower = builder(2).restore(&snapshot).unwrap();
    assert_eq!(
        [2, 1].map(|cost| lower.try_acquire("alice", cost).is_allowed()),
        [true, false]
    );
    let higher = builder(9).restore(&snapshot).unwrap();
    assert_eq!(higher.peek("alice").remaining(), 4);
    assert_eq!(higher.peek("bob").remaining(), 9);
    let faster = KeyedLimiter::builder(Rate::per_second(10).burst(5), 10).clock(clock.clone());
    let faster = faster.restore(&snapshot).unwrap();
    clock.advance(Duration::from_millis(100));
    assert_eq!(faster.peek("alice").remaining(), 5);
}

/// Whose tokens the faster limit would have filled by now had only the slower one until then.
#[test]
fn a_faster_limit_forgives_nobody_what_was_spent_before() {
    let clock = ManualClock::default();
    let limiter = KeyedLimiter::builder(Rate::per_hour(1).burst(10), 10).clock(clock.clone());
    let limiter = limiter.build().unwrap();
    assert!(limiter.try_acquire("alice", 10).is_allowed());
    clock.advance(3_600 * SECOND);
    let faster = KeyedLimiter::builder(Rate::per_second(10).burst(10), 10).clock(clock.clone());
    let faster = faster.restore(&limiter.snapshot()).unwrap();
    assert_eq!(faster.peek("alice").remaining(), 1);
}

#[test]
fn plans_are_kept() {
    let clock = ManualClock::default();
    let builder = || {
        KeyedLimiter::builder(Rate::per_hour(1).burst(5), 10)
            .plan(Rate::per_hour(1).burst(50))
            .clock(clock.clone())
    };
    let limiter = builder().build().unwrap();
    assert!(
        limiter
            .try_acquire_as("alice", 20, Plan::nth(1))
            .is_allowed()
    );
    let restored = builder().restore(&limiter.snapshot()).unwrap();
    assert_eq!(restored.peek("alice").remaining(), 30);
}

/// Whatever is wrong with it is told, and there is no limiter then.
#[test]
fn what_is_no_snapshot_of_this_limiter_is_refused() {
    let clock = ManualClock::default();
    let limits = each_limit(5, SECOND);
    let snapshots = limits.map(|limit| keyed(limit, &clock).snapshot());
    let restore = |limit, bytes: &[u8]| {
        let builder = KeyedLimiter::builder(limit, 100).clock(clock.clone());
        builder.restore(bytes).map(|limiter| limiter.len())
    };
    for (own, limit) in limits.into_iter().enumerate() {
        for (other, snapshot) in snapshots.iter().enumerate() {
            let restored = restore(limit, snapshot);
            if own == other {
                assert_eq!(restored, Ok(4));
            } else {
                assert_eq!(restored, Err(RestoreError::OtherAlgorithm), "{own} {other}");
            }
        }
    }
    let (limit, snapshot) = (limits[0], &snapshots[0]);
    for len in 0..snapshot.len() {
        let wanted = if len < 8 {
            RestoreError::NotASnapshot
        } else {
            RestoreError::Damaged
        };
        assert_eq!(restore(limit, &snapshot[..len]), Err(wanted), "{len} bytes");
    }
    for at in 0..snapshot.len() {
        for bit in [1, 128] {
            let mut damaged = snapshot.clone();
            damaged[at] ^= bit;
            assert!(restore(limit, &damaged).is_err(), "byte {at}");
        }
    }
    let mut newer = snapshot.clone();
    newer[8] = 2;
    let newer = restore(limit, &newer).unwrap_err();
    assert_eq!(
        newer,
        RestoreError::Newer {
            version: 2,
            known: 1
        }
    );
    assert_eq!(
        newer.to_string(),
        "snapshot of version 2; the latest understood here is 1"
    );
    let few = KeyedLimiter::builder(limit, 3).clock(clock.clone());
    let few = few.restore(snapshot).unwrap_err();
    assert_eq!(
        few.to_string(),
        "the snapshot has 4 clients; max_clients is 3"
    );
    let invalid = KeyedLimiter::builder(limit, 0).restore(snapshot);
    assert!(matches!(invalid, Err(RestoreError::Build(_))));
}

/// Shards are written one after the other, so a place may be in a snapshot twice: of who went idle
/// meanwhile, and of who took it. Who is idle by the time of the snapshot is left out.
#[test]
fn who_is_idle_by_then_needs_no_place() {
    let clock = ManualClock::default();
    let quota = Rate::per_second(1).burst(10);
    let limiter = KeyedLimiter::builder(quota, 4)
        .clock(clock.clone())
        .build()
        .unwrap();
    assert!(limiter.allow("alice") && limiter.allow("bob"));
    clock.advance(6 * SECOND);
    assert!(limiter.allow("carol") && limiter.allow("dave"));
    let snapshot = limiter.snapshot();
    let builder = |most| KeyedLimiter::builder(quota, most).clock(clock.clone());
    let shorter = builder(2).idle(5 * SECOND).restore(&snapshot).unwrap();
    assert_eq!(shorter.len(), 2);
    assert_eq!(shorter.peek("carol").remaining(), 9);
    let settled = builder(2).forget_settled().restore(&snapshot).unwrap();
    assert_eq!(settled.len(), 2);
    assert!(builder(2).restore(&snapshot).is_err());
}

/// Forged bytes with a right checksum: refused, or a limiter that answers without a panic.
#[test]
fn forged_bytes_do_no_more_than_give_other_tokens() {
    let clock = ManualClock::default();
    let (mut restored, mut refused) = (0, 0);
    for limit in each_limit(5, SECOND) {
        let snapshot = keyed(limit, &clock).snapshot();
        let mut random = Random::new(11);
        for _ in 0..3_000 {
            let mut forged = snapshot.clone();
            let end = forged.len() - 4;
            for _ in 0..=random.below(3) {
                let at = 9 + random.below(end as u64 - 9) as usize;
                forged[at] = random.pick(0, &[1, 127, 128, 255, 7]);
            }
            let checksum = crc32(&forged[..end]);
            forged[end..].copy_from_slice(&checksum.to_le_bytes());
            let builder = KeyedLimiter::builder(limit, 100).clock(clock.clone());
            match builder.restore(&forged) {
                Ok(limiter) => {
                    restored += 1;
                    for name in ["alice", "bob", "mallory", "carol"] {
                        let _ = limiter.try_acquire(name, 3);
                        limiter.refund(name, 1);
                        let _ = limiter.debit(name, 2);
                    }
                    assert!(limiter.len() <= 100);
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(restored > 1_000 && refused > 1_000, "{restored}, {refused}");
}

/// As in IEEE 802.3, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |rest: u32| (rest >> 1) ^ (0xedb8_8320 * (rest & 1));
    !bytes.iter().fold(!0, |rest, byte| {
        (0..8).fold(rest ^ u32::from(*byte), |rest, _| step(rest))
    })
}
