//! Clients that are kept out for a time.

use super::{
    allowed, banned, bucket, counter, fixed, limited, log, model, model_for_two, one_of_each,
    remaining,
};
use crate::Answer;

#[test]
fn calls_and_looks_are_banned_until_the_ban_ends() {
    for algorithm in one_of_each() {
        let mut model = model(algorithm);
        assert_eq!(model.call("a", 0, 3), allowed(5, 0));
        assert!(model.ban("a", 50, 3));
        assert_eq!(model.len(), 1, "a newcomer is tracked");
        for (cost, at_ns, wanted) in [
            (1, 3, banned(47)),
            (5, 3, banned(47)),
            (0, 3, banned(47)),
            (6, 3, Answer::TooLarge),
            (1, 2, Answer::ClockBackwards),
            (1, 49, banned(1)),
            (0, 49, banned(1)),
            (6, 49, Answer::TooLarge),
            (0, 50, allowed(5, 0)),
        ] {
            assert_eq!(model.call("a", cost, at_ns), wanted);
        }
        assert!(matches!(model.call("a", 5, 50), Answer::Allowed { .. }));
        assert_eq!(remaining(&model, "a", 50), 0);
    }
}

#[test]
fn time_goes_on_while_a_client_is_banned() {
    let mut model = model(bucket(1, 1, 10));
    model.call("a", 10, 0);
    model.ban("a", 4, 0);
    assert_eq!(model.call("a", 1, 3), banned(1), "and takes nothing");
    assert_eq!(model.call("a", 5, 4), limited(4, 1, 6));
    assert_eq!(model.call("a", 4, 4), allowed(0, 10));
}

#[test]
fn bans_only_extend_and_calls_do_not_extend_them() {
    let mut model = model(log(5, 10));
    model.ban("a", 100, 0);
    assert!(model.ban("a", 60, 1));
    assert_eq!(model.call("a", 1, 1), banned(99));
    assert!(model.ban("a", 120, 2));
    assert_eq!(model.call("a", 1, 99), banned(21));
    assert_eq!(model.call("a", 1, 119), banned(1));
    assert_eq!(model.call("a", 1, 120), allowed(4, 10));
    // One that has ended already is an attempt, and no more.
    assert!(model.ban("a", 110, 121) && model.ban("a", 121, 121));
    assert_eq!(model.call("a", 0, 121), allowed(4, 9));
    // At a time below the latest one seen, it is imposed at that one.
    assert!(model.ban("a", 130, 5));
    assert_eq!(model.call("a", 1, 121), banned(9));
}

#[test]
fn removing_lifts_a_ban() {
    let mut model = model_for_two(bucket(1, 1, 10)).initial_tokens(7);
    model.ban("a", 100, 0);
    assert!(model.remove("a", 1));
    assert!(!model.remove("a", 1));
    assert_eq!(model.call("a", 1, 1), allowed(6, 4), "a new client");
}

#[test]
fn a_banned_client_is_idle_after_its_ban() {
    for algorithm in one_of_each() {
        let mut model = model_for_two(algorithm);
        model.ban("a", 50, 0);
        model.call("b", 1, 0);
        assert!(!model.ban("c", 50, 1), "two are tracked");
        assert!(model.ban("b", 1, 1), "who is tracked can be banned");
        assert_eq!(model.len_at(11), 1);
        model.call("a", 1, 49);
        model.call("a", 0, 50);
        assert_eq!((model.len_at(59), model.len_at(60)), (1, 0));
        assert!(model.ban("a", 70, 59), "extended while it is tracked");
        assert_eq!((model.len_at(79), model.len_at(80)), (1, 0));
        assert!(model.ban("a", u64::MAX, 80));
        assert_eq!(model.len_at(u64::MAX), 1);
        let left = u128::from(u64::MAX - 80);
        assert_eq!(model.call("a", 1, 80), banned(left));
    }
}

#[test]
fn a_full_table_bans_no_newcomer() {
    let mut model = model_for_two(fixed(5, 10));
    model.ban("a", 5, 0);
    model.ban("b", 20, 0);
    assert!(!model.ban("c", 99, 14));
    assert_eq!(model.call("c", 1, 14), Answer::ClientLimit);
    assert_eq!(model.call("c", 0, 14), allowed(5, 0));
    assert!(model.ban("c", 99, 15), "a has been idle since its ban");
    assert_eq!(model.call("a", 1, 15), Answer::ClientLimit);
}

#[test]
fn a_banned_client_is_debited_as_of_the_end_of_its_ban() {
    let mut bucket = model_for_two(bucket(1, 1, 10)).largest_debt(2);
    bucket.call("a", 10, 0);
    bucket.ban("a", 4, 0);
    assert_eq!(bucket.debit("a", 3, 1), Some(3), "of four");
    assert_eq!(bucket.debit("a", 9, 2), Some(3), "one, and two of debt");
    assert_eq!(bucket.call("a", 1, 3), banned(1), "a debit lifts no ban");
    assert_eq!(bucket.call("a", 1, 4), limited(0, 3, 12));
    assert_eq!((bucket.len_at(13), bucket.len_at(14)), (1, 0));
    // Time goes on from there if the ban is extended.
    bucket.ban("a", 8, 4);
    assert_eq!(bucket.call("a", 2, 8), allowed(0, 10));

    let mut window = model(fixed(5, 10));
    window.ban("a", 30, 0);
    assert_eq!(window.debit("a", 2, 5), Some(2));
    assert_eq!(window.call("a", 1, 31), allowed(2, 9), "it opened at 30");

    let mut log = model(log(5, 10));
    log.call("a", 4, 0);
    log.ban("a", 10, 0);
    assert_eq!(log.debit("a", 5, 1), Some(5), "the four will have left");
    assert_eq!(log.call("a", 1, 10), limited(0, 10, 10));

    let mut counter = model(counter(5, 10));
    counter.call("a", 5, 0);
    counter.ban("a", 15, 0);
    assert_eq!(counter.debit("a", 5, 1), Some(2), "2.5 are weighed");
    assert_eq!(counter.call("a", 0, 15), allowed(0, 15));
}

#[test]
fn a_banned_client_is_given_back_as_of_the_end_of_its_ban() {
    let mut bucket = model_for_two(bucket(1, 1, 10));
    bucket.call("a", 10, 0);
    bucket.ban("a", 4, 0);
    bucket.refund("a", 2, None, 1);
    assert_eq!(bucket.call("a", 1, 3), banned(1));
    assert_eq!(bucket.call("a", 6, 4), allowed(0, 10));
    bucket.call("a", 10, 14);
    bucket.ban("a", 22, 14);
    bucket.refund("a", 5, None, 14);
    assert_eq!(bucket.call("a", 0, 22), allowed(10, 0), "at most the burst");
    assert_eq!((bucket.len_at(31), bucket.len_at(32)), (1, 0), "no attempt");

    for (end_ns, used) in [(9, 2), (10, 0)] {
        for algorithm in [fixed(5, 10), log(5, 10)] {
            let mut window = model(algorithm);
            window.call("a", 3, 0);
            window.ban("a", end_ns, 0);
            window.refund("a", 1, Some(0), 1);
            assert_eq!(remaining(&window, "a", end_ns), 5 - used);
        }
    }
}
