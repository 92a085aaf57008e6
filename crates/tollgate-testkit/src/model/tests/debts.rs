//! Tokens taken whether they are there or not.

use super::{
    aligned, allowed, bucket, counter, delayed, fixed, limited, log, model, model_for_two,
    one_of_each, queue, remaining,
};
use crate::Answer;

#[test]
fn a_bucket_in_debt_has_to_earn_that_first() {
    let mut model = model(bucket(1, 1, 100)).initial_tokens(0).largest_debt(60);
    assert_eq!(model.debit("a", 50, 0), Some(50));
    assert_eq!(model.call("a", 0, 0), allowed(0, 150));
    assert_eq!(model.call("a", 1, 0), limited(0, 51, 150));
    assert_eq!(model.call("a", 100, 0), limited(0, 150, 150));
    assert_eq!(model.debit("a", 50, 0), Some(10), "down to the largest");
    assert_eq!(model.debit("a", 50, 0), Some(0));
    assert_eq!(model.call("a", 1, 60), limited(0, 1, 100));
    assert_eq!(model.call("a", 1, 61), allowed(0, 100));
    assert_eq!(
        model.debit("a", u64::MAX, 161),
        Some(160),
        "above the burst"
    );
    assert_eq!(model.call("a", 101, 161), Answer::TooLarge);
}

#[test]
fn what_may_be_owed_is_rounded_down_to_whole_tokens() {
    let mut model = model(bucket(3, 10, 1)).largest_debt(2);
    assert_eq!(model.debit("a", 5, 0), Some(3));
    // At 1 it owes 1.7, and three tenths are no token.
    assert_eq!(model.debit("a", 5, 1), Some(0));
    // At 4 it owes 0.8, and then 1.8.
    assert_eq!(model.debit("a", 5, 4), Some(1));
    assert_eq!(model.call("a", 1, 4), limited(0, 10, 10));
    assert_eq!(model.call("a", 1, 13), limited(0, 1, 1));
    assert_eq!(model.call("a", 1, 14), allowed(0, 4));
}

#[test]
fn without_a_debt_it_takes_what_there_is() {
    for algorithm in one_of_each() {
        let mut model = model(algorithm.clone());
        assert_eq!(model.debit("a", 3, 0), Some(3), "{algorithm:?}");
        assert_eq!(model.debit("a", 3, 0), Some(2), "{algorithm:?}");
        let before = model.judge("a", 1, 4);
        assert_eq!(model.debit("a", 3, 4), Some(0), "{algorithm:?}");
        assert_eq!(remaining(&model, "a", 4), 0, "{algorithm:?}");
        assert_eq!(model.call("a", 1, 4), before, "{algorithm:?}");
    }
}

#[test]
fn a_queue_in_debt_answers_as_the_bucket_and_debits_are_ahead_of_later_calls() {
    let mut queue = model(queue(1, 1, 2)).largest_debt(3);
    assert_eq!(queue.debit("a", 1, 0), Some(1));
    assert_eq!(queue.call("a", 1, 0), delayed(0, 1, 2));
    assert_eq!(queue.debit("a", 9, 0), Some(3));
    assert_eq!(queue.call("a", 1, 0), limited(0, 4, 5));
    assert_eq!(queue.call("a", 1, 3), limited(0, 1, 2));
    assert_eq!(queue.call("a", 1, 4), delayed(0, 1, 2));

    let mut bucket = model(bucket(3, 7, 5)).largest_debt(4);
    let mut queue = model(super::queue(3, 7, 5)).largest_debt(4);
    for at_ns in [0, 1, 4, 4, 9, 10, 17, 18] {
        let tokens = 1 + at_ns % 3;
        assert_eq!(
            bucket.debit("a", tokens, at_ns),
            queue.debit("a", tokens, at_ns)
        );
        assert_eq!(bucket.call("a", 0, at_ns), queue.call("a", 0, at_ns));
        let refused = queue.judge("a", 5, at_ns);
        assert!(matches!(refused, Answer::Limited { .. }));
        assert_eq!(bucket.judge("a", 5, at_ns), refused);
    }
}

#[test]
fn a_fixed_window_may_hold_more_than_its_limit() {
    for algorithm in [fixed(2, 10), aligned(2, 10)] {
        let mut model = model(algorithm).largest_debt(3);
        assert_eq!(model.call("a", 1, 0), allowed(1, 10));
        assert_eq!(model.debit("a", 10, 5), Some(4));
        assert_eq!(model.call("a", 1, 5), limited(0, 5, 5));
        assert_eq!(model.call("a", 1, 9), limited(0, 1, 1));
        assert_eq!(model.call("a", 1, 10), allowed(1, 10));
    }
    let mut first = model(fixed(2, 10)).largest_debt(3);
    assert_eq!(first.debit("a", 1, 7), Some(1));
    assert_eq!(first.call("a", 0, 8), allowed(1, 9), "it opened the window");
}

#[test]
fn a_log_that_holds_more_than_its_limit_waits_until_enough_has_left() {
    let mut model = model(log(3, 10)).largest_debt(2);
    assert_eq!(model.call("a", 3, 0), allowed(0, 10));
    assert_eq!(model.debit("a", 5, 4), Some(2));
    assert_eq!(model.call("a", 1, 5), limited(0, 5, 9));
    assert_eq!(model.call("a", 2, 5), limited(0, 9, 9));
    assert_eq!(model.call("a", 1, 9), limited(0, 1, 5));
    assert_eq!(model.call("a", 1, 10), allowed(0, 10));
    assert_eq!(model.call("a", 1, 10), limited(0, 4, 10));
}

#[test]
fn a_counter_owes_what_it_weighs_exactly() {
    let mut model = model(counter(3, 10)).largest_debt(1);
    assert_eq!(model.call("a", 3, 9), allowed(0, 11));
    // 3 + 1 - 2.4 may be taken, which is one whole token; 0.6 may not.
    assert_eq!(model.debit("a", 5, 12), Some(1));
    assert_eq!(model.debit("a", 5, 12), Some(0));
    assert_eq!(
        model.call("a", 1, 12),
        limited(0, 5, 18),
        "3 x 3/10 + 2 <= 3"
    );
    assert_eq!(model.call("a", 1, 16), limited(0, 1, 14));
    assert_eq!(model.call("a", 1, 17), allowed(0, 13));
}

#[test]
fn debits_are_attempts_and_newcomers_to_a_full_table_are_turned_away() {
    for algorithm in one_of_each() {
        let mut model = model_for_two(algorithm);
        assert_eq!(model.debit("a", 5, 0), Some(5));
        assert_eq!(model.debit("b", 1, 0), Some(1));
        let before = model.judge("c", 0, 1);
        assert_eq!(model.debit("c", 1, 1), None);
        assert_eq!(model.judge("c", 0, 1), before);
        assert_eq!(model.len(), 2);
        // Also one that takes nothing.
        model.debit("a", 1, 9);
        assert_eq!((model.len_at(10), model.len_at(18)), (1, 1));
        assert_eq!(model.len_at(19), 0);
        assert_eq!(model.debit("c", 1, 10), Some(1), "b is idle");
        // At a time below the latest one seen, it is made at that one.
        assert_eq!(model.debit("d", 1, 9), None);
        model.debit("c", 1, 2);
        assert_eq!((model.len_at(19), model.len_at(20)), (1, 0));
    }
}

#[test]
fn a_debit_of_nothing_does_nothing() {
    for algorithm in one_of_each() {
        let mut model = model_for_two(algorithm).largest_debt(1);
        assert_eq!(model.debit("a", 0, 5), Some(0));
        assert!(model.is_empty());
        model.call("a", 5, 1);
        model.call("b", 1, 1);
        let before = format!("{model:?}");
        assert_eq!(model.debit("a", 0, 9), Some(0));
        assert_eq!(model.debit("c", 0, 9), Some(0), "the table is full");
        assert_eq!(format!("{model:?}"), before);
    }
}

#[test]
fn what_is_given_back_pays_a_debt() {
    let mut bucket = model(bucket(1, 1, 100)).initial_tokens(0).largest_debt(50);
    bucket.debit("a", 50, 0);
    bucket.refund("a", 20, None, 0);
    assert_eq!(bucket.call("a", 1, 0), limited(0, 31, 130));
    bucket.refund("a", 31, None, 0);
    assert_eq!(bucket.call("a", 1, 0), allowed(0, 100));

    let mut log = model(log(3, 10)).largest_debt(2);
    log.debit("a", 5, 0);
    log.refund("a", 1, None, 1);
    assert_eq!(log.call("a", 1, 1), limited(0, 9, 9));
    log.refund("a", 2, None, 1);
    assert_eq!(log.call("a", 1, 1), allowed(0, 10));
}

#[test]
fn the_largest_debts_are_exact() {
    let all = u64::MAX;
    let wide = u128::from(all);
    for algorithm in [bucket(1, 1, all), queue(1, 1, all)] {
        let mut model = model(algorithm).largest_debt(all);
        assert_eq!(model.debit("a", all, 0), Some(all));
        assert_eq!(model.debit("a", all, 0), Some(all));
        assert_eq!(model.debit("a", all, 0), Some(0));
        assert_eq!(model.call("a", 1, 0), limited(0, wide + 1, 2 * wide));
    }
    for algorithm in [fixed(all, all), aligned(all, all), log(all, all)] {
        let mut model = model(algorithm).largest_debt(all);
        assert_eq!(model.debit("a", all, 0), Some(all));
        assert_eq!(model.debit("a", all, 0), Some(all));
        assert_eq!(model.debit("a", all, 0), Some(0));
        assert_eq!(model.call("a", 1, 0), limited(0, wide, wide));
    }
    // A wait beyond all time reads as all time.
    let mut model = model(bucket(1, all, all)).largest_debt(all);
    model.debit("a", all, 0);
    model.debit("a", all, 0);
    assert_eq!(
        model.call("a", 1, 0),
        limited(0, (wide + 1) * wide, u128::MAX)
    );
}
