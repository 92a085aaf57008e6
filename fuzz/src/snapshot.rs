//! Snapshots made of any bytes, with a right checksum: no fuzzer guesses those.

use std::time::Duration;

use tollgate::{
    AnyLimit, ChangeError, FixedWindow, KeyedLimiter, KeyedLimiterBuilder, LeakyBucket, Limiter,
    LimiterBuilder, ManualClock, Rate, SlidingLog, SlidingWindowCounter, Timestamp, Tokens,
};

/// The magic and the version of the format.
const HEAD: &[u8; 9] = b"tollgate\x01";
const CHECKSUM_BYTES: usize = 4;

/// Bytes that a limiter may take for one of a snapshot. Of an honest one it takes about three, and
/// at least eight slots for each of 256 shards that holds anybody. Whoever forges the secrets of
/// the hash can put all clients into one place, at the end of a table that then grows until a
/// sixty-fourth of it has room for them.
const FACTOR: usize = 160;

/// Clients that the limiters have room for: in one shard, and in 256.
const FEW: usize = 100;
const MANY: usize = 5_000;

const LARGEST_DEBT: u64 = 3;

/// Some that may be in a snapshot, and one that is not.
const NAMES: [&str; 4] = ["alice", "bob", "a name too long to be kept itself", "carol"];

/// Puts the head and the checksum of a snapshot into the place of the first and the last bytes,
/// and has every kind of limiter restore it.
///
/// # Panics
///
/// If one panics, grows beyond its bounds, or cannot be restored from its own snapshot.
pub fn run(bytes: &[u8]) {
    let Some(body) = bytes.get(HEAD.len()..bytes.len().saturating_sub(CHECKSUM_BYTES)) else {
        return;
    };
    let mut snapshot = [HEAD, body].concat();
    let checksum = crc32fast::hash(&snapshot);
    snapshot.extend(checksum.to_le_bytes());
    let second = Duration::from_secs(1);
    let century = Duration::from_secs(100 * 366 * 86_400);
    // The first are the seeds' own; the levels of the last buckets take 128 bits.
    let usual = limits(5, Rate::per_second(5), second);
    let plans = limits(9, Rate::per_second(5), 3 * second);
    let large = limits(60_000, Rate::new(7, century), century);
    for ((usual, plan), large) in usual.into_iter().zip(plans).zip(large) {
        keyed([usual, plan, large], FEW, &snapshot);
        keyed([large, usual, plan], MANY, &snapshot);
        single(usual, plan, &snapshot);
        single(large, usual, &snapshot);
    }
}

/// One of each algorithm.
fn limits(limit: u64, rate: Rate, window: Duration) -> [AnyLimit; 6] {
    [
        rate.burst(limit).into(),
        LeakyBucket::new(rate.burst(limit)).into(),
        FixedWindow::new(limit, window).into(),
        FixedWindow::new(limit, window).aligned().into(),
        SlidingLog::new(limit, window).into(),
        SlidingWindowCounter::new(limit, window).into(),
    ]
}

/// When the seeds were written.
fn clock() -> ManualClock {
    ManualClock::new(Timestamp::from_nanos(7_300_000_000))
}

fn keyed([limit, plan, other]: [AnyLimit; 3], most: usize, snapshot: &[u8]) {
    let clock = clock();
    let builder = |limit| {
        let builder = KeyedLimiter::builder(limit, most).plan(plan);
        builder.largest_debt(LARGEST_DEBT).clock(clock.clone())
    };
    let empty = builder(limit).build().expect("within every bound");
    let empty_bytes = empty.memory_bytes();
    let Ok(limiter) = builder(limit).restore(snapshot) else {
        return;
    };
    let bytes = limiter.memory_bytes() - empty_bytes;
    let len = snapshot.len();
    assert!(bytes <= FACTOR * len, "{bytes} bytes of {len}");
    assert!(limiter.len() <= most);
    is_restored(&limiter, builder(limit));
    for wait in [0, 1_000_000_000, 1 << 62] {
        clock.advance(Duration::from_nanos(wait));
        for name in NAMES {
            _ = limiter.peek(name);
            _ = limiter.try_acquire(name, 2);
            limiter.refund(name, 1);
            _ = limiter.debit(name, 4);
            _ = limiter.acquire_up_to(name, 9);
            if let Ok(charge) = limiter.charge(name, 1) {
                limiter.cancel(charge);
            }
            _ = limiter.ban(name, Duration::from_nanos(wait / 2));
        }
        assert!(limiter.len() <= most);
        is_restored(&limiter, builder(limit));
        for tokens in [Tokens::Kept, Tokens::Proportional, Tokens::Reset] {
            match limiter.set_quota(other, tokens) {
                Ok(()) => is_restored(&limiter, builder(other)),
                Err(ChangeError::NeedsMoreBits | ChangeError::NotProportional) => continue,
                Err(error) => panic!("{limit:?} to {other:?}: {error}"),
            }
            limiter.set_quota(limit, tokens).expect("it was held to it");
            // For clients of several ages; where nobody else has room she is never there.
            _ = limiter.remove("carol");
            _ = limiter.try_acquire("carol", 1);
        }
        limiter.settle();
    }
    assert!(limiter.len() <= most);
    let hold = limiter.longest_hold();
    assert!(hold.positions <= 64 && hold.rebuilds <= 1, "{hold:?}");
}

/// What a limiter writes down, the same limiter reads.
fn is_restored(
    limiter: &KeyedLimiter<AnyLimit, ManualClock>,
    builder: KeyedLimiterBuilder<AnyLimit, ManualClock>,
) {
    let snapshot = limiter.snapshot();
    let restored = builder.restore(&snapshot).expect("its own snapshot");
    assert_eq!(restored.len(), limiter.len());
    for name in NAMES {
        assert_eq!(restored.peek(name), limiter.peek(name), "{name}");
    }
}

fn single(limit: AnyLimit, other: AnyLimit, snapshot: &[u8]) {
    let clock = clock();
    let builder = |limit| {
        let builder = Limiter::builder(limit);
        builder.largest_debt(LARGEST_DEBT).clock(clock.clone())
    };
    let Ok(limiter) = builder(limit).restore(snapshot) else {
        return;
    };
    is_restored_alone(&limiter, builder(limit));
    for wait in [0, 1_000_000_000, 1 << 62] {
        clock.advance(Duration::from_nanos(wait));
        _ = limiter.peek();
        _ = limiter.try_acquire(2);
        limiter.refund(1);
        _ = limiter.debit(4);
        _ = limiter.acquire_up_to(9);
        if let Ok(charge) = limiter.charge(1) {
            limiter.cancel(charge);
        }
        limiter.ban(Duration::from_nanos(wait / 2));
        is_restored_alone(&limiter, builder(limit));
        for tokens in [Tokens::Kept, Tokens::Proportional, Tokens::Reset] {
            match limiter.set_quota(other, tokens) {
                Ok(()) => is_restored_alone(&limiter, builder(other)),
                Err(ChangeError::NeedsMoreBits | ChangeError::NotProportional) => continue,
                Err(error) => panic!("{limit:?} to {other:?}: {error}"),
            }
            limiter.set_quota(limit, tokens).expect("it was held to it");
        }
    }
}

fn is_restored_alone(
    limiter: &Limiter<AnyLimit, ManualClock>,
    builder: LimiterBuilder<AnyLimit, ManualClock>,
) {
    let snapshot = limiter.snapshot();
    let restored = builder.restore(&snapshot).expect("its own snapshot");
    assert_eq!(restored.peek(), limiter.peek());
}
