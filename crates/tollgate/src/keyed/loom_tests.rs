//! Every interleaving of a few calls, with two shards and a cap of two: run with
//! `cargo xtask test --only loom`.
//!
//! Two things are checked at the end of each: everything that holds whenever no call is under way
//! (`validate`: no place lost, never above the cap, bounds where they belong), and that each
//! refusal was just.

use loom::sync::Arc;
use loom::thread;

use core::time::Duration;

use super::key::{Key, Secrets};
use super::rules::Idle;
use super::shards::Shards;
use super::store::{Store, StorePlan};
use crate::algorithm::bucket::{AnyWidth, Asked, Bucket};
use crate::charge::Issuer;
use crate::{Ask, Decision, Rate, Tokens, acquire_all};

const IDLE_NS: u64 = 10;

/// A store of two shards and at most two clients, and a supply of names for either shard.
struct World {
    store: Arc<Shards<Bucket<i64>>>,
    /// Names that live in the first shard, and in the second.
    names: [Vec<Key>; 2],
}

fn bucket(burst: u64) -> Bucket<i64> {
    let asked = Asked {
        quota: Rate::new(1, Duration::from_nanos(1)).burst(burst),
        initial: None,
        debt: 0,
        queue: false,
    };
    let Ok(AnyWidth::Narrow(bucket)) = AnyWidth::new(asked) else {
        unreachable!("fits 64 bits")
    };
    bucket
}

fn world() -> World {
    world_of(Idle::After(IDLE_NS))
}

fn world_of(idle: Idle) -> World {
    let secrets = Secrets::fixed(1);
    let places = secrets.places();
    let mut names = [Vec::new(), Vec::new()];
    for name in 0..64_u64 {
        let key = secrets.key(&name);
        names[places.shard(places.hash(key))].push(key);
    }
    let plan = StorePlan {
        places,
        max_clients: 2,
        idle,
        overflow: false,
        owes: false,
    };
    World {
        store: Arc::new(plan.build(bucket(5), Box::default()).unwrap()),
        names,
    }
}

fn is_refused(decision: Decision) -> bool {
    decision == Decision::ClientLimit
}

/// Two newcomers, and one idle client in the shard of neither: one of them gets its place.
#[test]
fn two_newcomers_for_one_idle_client_of_another_shard() {
    loom::model(|| {
        let World { store, names } = world();
        let _ = store.acquire(names[1][0], 1, 0);
        let _ = store.acquire(names[1][1], 1, 5);
        let (name, other) = (names[0][0], store.clone());
        let caller = thread::spawn(move || other.acquire(name, 1, IDLE_NS));
        let own = store.acquire(names[0][1], 1, IDLE_NS);
        let others = caller.join().unwrap();
        assert!(is_refused(own) != is_refused(others), "{own:?} {others:?}");
        store.validate();
        assert_eq!(store.len(IDLE_NS), 2);
    });
}

/// The same new client twice at once takes one place.
#[test]
fn the_same_newcomer_twice() {
    loom::model(|| {
        let World { store, names } = world();
        let _ = store.acquire(names[1][0], 1, 0);
        let (name, other) = (names[0][0], store.clone());
        let caller = thread::spawn(move || other.acquire(name, 1, 1));
        let own = store.acquire(name, 1, 1);
        let others = caller.join().unwrap();
        assert!(own.is_allowed() && others.is_allowed());
        assert_eq!(own.remaining().min(others.remaining()), 3, "one bucket");
        store.validate();
        assert_eq!(store.len(1), 2);
    });
}

/// An idle client returns while a newcomer wants its place: it is known, or it is new and there is
/// room for one of the two.
#[test]
fn an_owner_returns_while_it_is_being_forgotten() {
    loom::model(|| {
        let World { store, names } = world();
        let _ = store.acquire(names[1][0], 1, 0);
        let _ = store.acquire(names[0][1], 1, 5);
        let (owner, other) = (names[1][0], store.clone());
        let caller = thread::spawn(move || other.acquire(owner, 1, IDLE_NS));
        let newcomer = store.acquire(names[0][0], 1, IDLE_NS);
        let owner = caller.join().unwrap();
        assert!(
            is_refused(newcomer) != is_refused(owner),
            "{newcomer:?} {owner:?}"
        );
        if !is_refused(owner) {
            assert_eq!(owner.remaining(), 4, "it had gone idle: a fresh bucket");
        }
        store.validate();
    });
}

/// A removal makes room for a newcomer, or comes too late for it.
#[test]
fn a_removal_against_a_newcomer() {
    loom::model(|| {
        let World { store, names } = world();
        let _ = store.acquire(names[1][0], 1, 0);
        let _ = store.acquire(names[0][1], 1, 0);
        let (removed, other) = (names[1][0], store.clone());
        let caller = thread::spawn(move || other.remove(removed, 1));
        let newcomer = store.acquire(names[0][0], 1, 1);
        assert!(caller.join().unwrap());
        store.validate();
        assert_eq!(store.len(1), if is_refused(newcomer) { 1 } else { 2 });
    });
}

/// The first client of an empty shard comes while a newcomer goes round all shards for room. A
/// second newcomer, after both, must still find whoever is idle by then.
#[test]
fn the_first_of_a_shard_against_a_search() {
    loom::model(|| {
        let World { store, names } = world();
        let _ = store.acquire(names[0][0], 1, 0);
        let _ = store.acquire(names[0][1], 1, 0);
        let (first, other) = (names[1][0], store.clone());
        // At this time both of the others are idle.
        let caller = thread::spawn(move || other.acquire(first, 1, IDLE_NS));
        let searching = store.acquire(names[0][2], 1, IDLE_NS + 3);
        let first = caller.join().unwrap();
        assert!(
            first.is_allowed() && searching.is_allowed(),
            "{first:?} {searching:?}"
        );
        store.validate();
        // `first` is idle now, whatever the search made of the floor; `searching` is not.
        let last = store.acquire(names[0][3], 1, 2 * IDLE_NS);
        assert!(last.is_allowed(), "{last:?}");
        store.validate();
    });
}

/// A thread that read its clock long ago enters an empty shard: it is idle as soon as it is there.
/// No later newcomer may be refused for it.
#[test]
fn a_latecomer_to_an_empty_shard_against_a_refusal() {
    loom::model(|| {
        let World { store, names } = world();
        let _ = store.acquire(names[0][0], 1, IDLE_NS);
        let _ = store.acquire(names[0][1], 1, IDLE_NS);
        let (leaver, latecomer, other) = (names[0][1], names[1][0], store.clone());
        let caller = thread::spawn(move || {
            other.remove(leaver, IDLE_NS);
            other.acquire(latecomer, 1, 0)
        });
        let newcomer = store.acquire(names[0][2], 1, IDLE_NS + 1);
        let latecomer = caller.join().unwrap();
        // Nobody is refused: not the latecomer, which comes after the removal, unless the newcomer
        // was faster; and not the newcomer, unless it came before the removal.
        assert!(!is_refused(latecomer) || newcomer.is_allowed());
        store.validate();
        // The latecomer is idle, so there is a place for a fourth in any case but that the newcomer
        // and the first have both.
        let fourth = store.acquire(names[0][3], 1, IDLE_NS + 1);
        assert_eq!(
            is_refused(fourth),
            newcomer.is_allowed(),
            "{newcomer:?} {latecomer:?} {fourth:?}"
        );
        store.validate();
    });
}

/// Sweeping, counting and calling at once lose nobody.
#[test]
fn a_sweep_against_a_call() {
    loom::model(|| {
        let World { store, names } = world();
        let _ = store.acquire(names[0][0], 1, 0);
        let _ = store.acquire(names[1][0], 1, 3);
        let (owner, other) = (names[0][0], store.clone());
        let caller = thread::spawn(move || other.acquire(owner, 1, IDLE_NS - 1));
        let tracked = store.len(IDLE_NS);
        assert!(caller.join().unwrap().is_allowed());
        assert!((1..=2).contains(&tracked), "{tracked}");
        store.validate();
    });
}

/// One of two clients is idle, and a sweep forgets it just as a newcomer has found no place free:
/// the newcomer must not be refused for a table that the sweep has made room in.
#[test]
fn a_sweep_against_a_newcomer() {
    loom::model(|| {
        let World { store, names } = world();
        let _ = store.acquire(names[1][0], 1, 0);
        let _ = store.acquire(names[0][1], 1, IDLE_NS);
        let other = store.clone();
        let caller = thread::spawn(move || other.len(IDLE_NS));
        let newcomer = store.acquire(names[0][0], 1, IDLE_NS);
        let tracked = caller.join().unwrap();
        assert!(newcomer.is_allowed(), "{newcomer:?}");
        assert!((1..=2).contains(&tracked), "{tracked}");
        store.validate();
    });
}

fn ask(store: &Shards<Bucket<i64>>, name: Key, cost: u64, now: u64) -> Ask<'_> {
    Ask::new(store.party(), Issuer::new(), name, cost, now)
}

/// Two threads ask two limiters in opposite orders for what only one of them can have: neither
/// waits for the other, one is charged by both, and the other by none.
#[test]
fn two_limits_in_opposite_orders() {
    loom::model(|| {
        let ([one, other], names) = ([world().store, world().store], world().names);
        let (name, others_name) = (names[0][0], names[1][0]);
        let _ = one.acquire(name, 1, 0);
        let _ = other.acquire(others_name, 1, 0);
        let (first, second) = (one.clone(), other.clone());
        let caller = thread::spawn(move || {
            let mut asks = [ask(&second, others_name, 3, 0), ask(&first, name, 3, 0)];
            acquire_all(&mut asks).is_allowed()
        });
        let mut asks = [ask(&one, name, 3, 0), ask(&other, others_name, 3, 0)];
        let own = acquire_all(&mut asks).is_allowed();
        assert!(own != caller.join().unwrap());
        for (store, name) in [(&one, name), (&other, others_name)] {
            assert_eq!(Store::look(store.as_ref(), name, 0, 0).remaining(), 1);
            store.validate();
        }
    });
}

/// Two calls for newcomers to two limiters that have room for one more each: one call has both
/// places, and the other none.
#[test]
fn the_last_places_of_two_limiters() {
    loom::model(|| {
        let ([one, other], names) = ([world().store, world().store], world().names);
        let _ = one.acquire(names[1][1], 1, 0);
        let _ = other.acquire(names[1][1], 1, 0);
        let (first, second) = (one.clone(), other.clone());
        let (left, right) = (names[0][0], names[1][0]);
        let caller = thread::spawn(move || {
            let mut asks = [ask(&second, right, 1, 0), ask(&first, right, 1, 0)];
            acquire_all(&mut asks).decision()
        });
        let mut asks = [ask(&one, left, 1, 0), ask(&other, left, 1, 0)];
        let own = acquire_all(&mut asks).decision();
        let others = caller.join().unwrap();
        assert!(
            own.is_allowed() != others.is_allowed(),
            "{own:?} {others:?}"
        );
        assert!(is_refused(own) != is_refused(others));
        for store in [&one, &other] {
            store.validate();
            assert_eq!(store.len(0), 2);
        }
    });
}

/// A call that gets no place at one limiter has never had one at the other: nobody is refused for
/// a place that was only promised.
#[test]
fn a_promise_that_is_withdrawn_refuses_nobody() {
    loom::model(|| {
        let ([one, full], names) = ([world().store, world().store], world().names);
        let _ = one.acquire(names[1][1], 1, 0);
        let _ = full.acquire(names[0][1], 1, 0);
        let _ = full.acquire(names[1][1], 1, 0);
        let (first, second) = (one.clone(), full.clone());
        let name = names[0][0];
        let caller = thread::spawn(move || {
            let mut asks = [ask(&first, name, 1, 0), ask(&second, name, 1, 0)];
            acquire_all(&mut asks).is_allowed()
        });
        let newcomer = one.acquire(names[1][0], 1, 0);
        assert!(newcomer.is_allowed(), "{newcomer:?}");
        assert!(!caller.join().unwrap());
        one.validate();
        full.validate();
        assert_eq!((one.len(0), full.len(0)), (2, 2));
    });
}

/// A change of the limit while a call is made and another limit is being charged with it.
#[test]
fn a_change_against_a_call() {
    loom::model(|| {
        let World { store, names } = world();
        let name = names[0][0];
        let _ = store.acquire(name, 3, 0);
        let other = store.clone();
        let caller = thread::spawn(move || other.change(0, bucket(20), Tokens::Kept, 1));
        let own = store.acquire(name, 1, 1);
        caller.join().unwrap().unwrap();
        // 2 left at 0, 3 at 1, one of which was taken, before the change or after it.
        assert_eq!(own.remaining(), 2);
        assert_eq!(Store::look(store.as_ref(), name, 0, 1).remaining(), 2);
        assert_eq!(
            Store::look(store.as_ref(), names[1][0], 0, 1).remaining(),
            20
        );
        store.validate();
    });
}

/// A ban moves the only client of a shard to a later position; a newcomer that undercuts it comes
/// while another searches for room, and is idle as soon as it is there.
#[test]
fn a_latecomer_beside_a_banned_client_against_a_search() {
    loom::model(|| {
        let World { store, names } = world();
        assert!(store.ban(names[1][0], 100, 0));
        // Its entry is corrected: the shard publishes the end of the ban.
        store.forget_idle(IDLE_NS);
        let (latecomer, other) = (names[1][1], store.clone());
        let caller = thread::spawn(move || other.acquire(latecomer, 1, IDLE_NS));
        let newcomer = store.acquire(names[0][0], 1, 2 * IDLE_NS);
        let latecomer = caller.join().unwrap();
        store.validate();
        // The latecomer is idle at the newcomer's time: it is never the reason for a refusal.
        assert!(newcomer.is_allowed(), "{newcomer:?} {latecomer:?}");
    });
}
