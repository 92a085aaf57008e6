//! Another limit in the place of one.

use super::{
    Tokens, aligned, allowed, banned, bucket, counter, delayed, fixed, limited, log, model,
    model_for_two, one_of_each, queue, remaining,
};
use crate::Algorithm;

/// 1.8 tokens of 3 at time 3.
fn a_bucket_of_nine_fifths(algorithm: Algorithm) -> super::Model {
    let mut model = model(algorithm);
    model.call("a", 3, 0);
    model
}

#[test]
fn a_bucket_keeps_its_level() {
    for (old, new) in [
        (bucket(3, 5, 3), bucket(60, 1_000, 60)),
        (queue(3, 5, 3), queue(60, 1_000, 60)),
    ] {
        let mut model = a_bucket_of_nine_fifths(old);
        model.change(new, None, Tokens::Kept, 3);
        assert_eq!(model.call("a", 0, 3), allowed(1, 970));
        assert_eq!(remaining(&model, "a", 6), 1);
        assert_eq!(remaining(&model, "a", 7), 2);
        assert_eq!(model.call("a", 60, 3), limited(1, 970, 970));
    }
}

#[test]
fn a_bucket_keeps_its_share() {
    for (old, new) in [
        (bucket(3, 5, 3), bucket(60, 1_000, 60)),
        (queue(3, 5, 3), queue(60, 1_000, 60)),
    ] {
        let mut model = a_bucket_of_nine_fifths(old);
        model.change(new, None, Tokens::Proportional, 3);
        assert_eq!(model.call("a", 0, 3), allowed(36, 400));
        assert_eq!(remaining(&model, "a", 19), 36);
        assert_eq!(remaining(&model, "a", 20), 37);
    }
}

#[test]
fn a_bucket_is_reset_to_its_burst() {
    for (old, new) in [
        (bucket(3, 5, 3), bucket(1, 1, 60)),
        (queue(3, 5, 3), queue(1, 1, 60)),
    ] {
        let mut model = model(old).initial_tokens(7).largest_debt(9);
        model.debit("a", 12, 0);
        model.change(new, None, Tokens::Reset, 0);
        assert_eq!(model.call("a", 0, 0), allowed(60, 0), "not the initial");
        assert_eq!(model.call("b", 0, 0), allowed(7, 53), "of the new burst");
    }
}

#[test]
fn a_level_is_at_most_the_new_burst() {
    for tokens in [Tokens::Kept, Tokens::Proportional] {
        let mut model = model(bucket(1, 5, 4));
        model.call("a", 1, 0);
        model.change(bucket(1, 5, 2), None, tokens, 0);
        let left = if tokens == Tokens::Kept { 2 } else { 1 };
        assert_eq!(remaining(&model, "a", 0), left, "{tokens:?}");
        model.call("b", 1, 0);
        model.change(bucket(1, 5, 2), None, tokens, 100);
        assert_eq!(model.call("b", 2, 100), allowed(0, 10), "full by then");
    }
}

/// What a change loses shows only after another: until then, all there is are whole units.
#[test]
fn a_level_is_rounded_down_to_the_new_unit() {
    for (old, changed_ns, new, back, wait_ns) in [
        // A third of a token, of which a rate of one a nanosecond knows none.
        (bucket(1, 3, 1), 1, bucket(1, 1, 1), bucket(1, 3, 1), 3),
        (queue(1, 3, 1), 1, queue(1, 1, 1), queue(1, 3, 1), 3),
        // Two fifths are no half and three fifths are one; and 2/4 is one in lowest terms.
        (bucket(1, 5, 1), 2, bucket(2, 4, 1), bucket(1, 10, 1), 10),
        (bucket(1, 5, 1), 3, bucket(2, 4, 1), bucket(1, 10, 1), 5),
        (bucket(1, 5, 1), 4, bucket(2, 4, 1), bucket(1, 10, 1), 5),
        // Three fifths are six tenths.
        (bucket(1, 5, 1), 3, bucket(1, 10, 1), bucket(1, 10, 1), 4),
    ] {
        for tokens in [Tokens::Kept, Tokens::Proportional] {
            let mut model = model(old.clone());
            model.call("a", 1, 0);
            model.change(new.clone(), None, tokens, changed_ns);
            model.change(back.clone(), None, tokens, changed_ns);
            assert_eq!(
                model.call("a", 1, changed_ns),
                limited(0, wait_ns, wait_ns),
                "{old:?} at {changed_ns} to {new:?}"
            );
        }
    }
}

#[test]
fn a_debt_is_rounded_up_and_at_most_the_largest() {
    for (old, same, double, tenfold) in [
        (
            bucket(3, 5, 3),
            bucket(1, 1, 3),
            bucket(1, 1, 6),
            bucket(1, 1, 30),
        ),
        (
            queue(3, 5, 3),
            queue(1, 1, 3),
            queue(1, 1, 6),
            queue(1, 1, 30),
        ),
    ] {
        for (new, tokens, owed, burst) in [
            (&same, Tokens::Kept, 2, 3),
            (&double, Tokens::Kept, 2, 6),
            (&same, Tokens::Proportional, 2, 3),
            (&double, Tokens::Proportional, 4, 6),
            (&tenfold, Tokens::Proportional, 10, 30),
        ] {
            let mut model = model(old.clone()).largest_debt(10);
            assert_eq!(model.debit("a", 6, 0), Some(6));
            // At 2 it owes 1.8; twice that is 3.6, ten times that 18.
            model.change(new.clone(), None, tokens, 2);
            let wanted = limited(0, owed + 1, owed + burst);
            assert_eq!(model.call("a", 1, 2), wanted, "{tokens:?} to {new:?}");
        }
    }
    // In fifths nothing of it is lost; in whole tokens it is 2.
    for (between, owed_ns) in [(bucket(1, 5, 3), 9), (bucket(1, 1, 3), 10)] {
        let mut model = model(bucket(3, 5, 3)).largest_debt(10);
        model.debit("a", 6, 0);
        model.change(between, None, Tokens::Kept, 2);
        model.change(bucket(1, 5, 3), None, Tokens::Kept, 2);
        assert_eq!(model.call("a", 1, 2), limited(0, owed_ns + 5, owed_ns + 15));
    }
}

#[test]
fn a_change_counts_as_an_attempt_of_everybody_not_idle() {
    for algorithm in one_of_each() {
        let mut model = model_for_two(algorithm.clone());
        model.call("a", 5, 0);
        model.call("b", 5, 4);
        // At 10, a is idle under the old time, if not under the new one.
        model.change(algorithm.clone(), Some(100), Tokens::Kept, 10);
        assert_eq!(
            (model.len(), model.len_at(109), model.len_at(110)),
            (1, 1, 0)
        );
        // The other way round, nobody is judged by the new time for what was before.
        model.change(algorithm.clone(), Some(3), Tokens::Kept, 50);
        assert_eq!((model.len(), model.len_at(52), model.len_at(53)), (1, 1, 0));
        model.change(algorithm.clone(), None, Tokens::Reset, 51);
        assert_eq!(model.len_at(u64::MAX), 1);
        // At a time below the latest one seen, it is made at that one.
        model.change(algorithm, Some(3), Tokens::Kept, 7);
        assert_eq!((model.len_at(53), model.len_at(54)), (1, 0));
        assert_eq!(model.call("a", 1, 50), crate::Answer::ClockBackwards);
    }
}

#[test]
fn later_calls_are_judged_by_the_new_limit() {
    let mut model = model_for_two(bucket(1, 10, 5));
    model.change(bucket(1, 1, 9), Some(20), Tokens::Kept, 0);
    assert_eq!(model.call("a", 10, 0), crate::Answer::TooLarge);
    assert_eq!(model.call("a", 9, 0), allowed(0, 9));
    assert_eq!(model.len_at(19), 1);
    model.call("b", 1, 0);
    assert_eq!(model.call("c", 1, 19), crate::Answer::ClientLimit);
    let mut queue = super::model(queue(1, 10, 5));
    queue.call("a", 2, 0);
    queue.change(super::queue(1, 4, 3), None, Tokens::Kept, 0);
    assert_eq!(queue.call("a", 1, 0), delayed(2, 0, 4), "three are free");
}

#[test]
fn a_banned_client_is_changed_as_of_the_end_of_its_ban() {
    let banned_until_6 = || {
        let mut model = model_for_two(bucket(1, 1, 10));
        model.call("a", 10, 0);
        model.ban("a", 6, 0);
        model
    };
    for (tokens, left) in [
        (Tokens::Kept, 6),
        (Tokens::Proportional, 12),
        (Tokens::Reset, 20),
    ] {
        let mut model = banned_until_6();
        model.change(bucket(2, 1, 20), Some(3), tokens, 1);
        assert_eq!(model.call("a", 1, 5), banned(1), "{tokens:?}");
        assert_eq!(remaining(&model, "a", 6), left, "{tokens:?}");
        assert_eq!((model.len_at(8), model.len_at(9)), (1, 0), "{tokens:?}");
    }
    let mut window = model(log(5, 10));
    window.call("a", 3, 0);
    window.ban("a", 10, 0);
    window.change(log(5, 100), None, Tokens::Kept, 1);
    assert_eq!(remaining(&window, "a", 10), 5, "they will have left");
}

#[test]
fn a_window_of_the_same_length_keeps_what_was_used() {
    for (old, lower, higher) in [
        (fixed(5, 10), fixed(2, 10), fixed(7, 10)),
        (aligned(5, 10), aligned(2, 10), aligned(7, 10)),
        (log(5, 10), log(2, 10), log(7, 10)),
    ] {
        let mut model = model(old.clone());
        model.call("a", 4, 0);
        model.change(higher, None, Tokens::Kept, 3);
        assert_eq!(model.call("a", 0, 3), allowed(3, 7));
        model.change(lower.clone(), None, Tokens::Kept, 4);
        assert_eq!(model.call("a", 1, 4), limited(0, 6, 6), "above the limit");
        assert_eq!(model.call("a", 1, 9), limited(0, 1, 1));
        // What can no longer be told from unused is.
        model.change(old.clone(), None, Tokens::Kept, 10);
        assert_eq!(model.call("a", 0, 10), allowed(5, 0));
    }
    let mut counter = model(counter(3, 10));
    counter.call("a", 3, 9);
    counter.change(super::counter(4, 10), None, Tokens::Kept, 12);
    assert_eq!(counter.call("a", 0, 12), allowed(1, 8), "4 - 2.4");
    counter.change(super::counter(2, 10), None, Tokens::Kept, 12);
    assert_eq!(counter.call("a", 1, 12), limited(0, 5, 8), "3 x 3/10");
    counter.refund("a", 1, Some(9), 12);
    assert_eq!(counter.call("a", 1, 12), limited(0, 3, 8), "2 x 5/10");
}

#[test]
fn a_window_is_reset_to_a_new_one() {
    for (old, new) in [
        (fixed(5, 10), fixed(4, 7)),
        (aligned(5, 10), aligned(4, 7)),
        (log(5, 10), log(4, 7)),
        (counter(5, 10), counter(4, 7)),
        (fixed(5, 10), fixed(4, 10)),
        (aligned(5, 10), aligned(4, 10)),
        (log(5, 10), log(4, 10)),
        (counter(5, 10), counter(4, 10)),
    ] {
        let mut model = model(old);
        model.call("a", 5, 0);
        model.change(new.clone(), None, Tokens::Reset, 1);
        assert_eq!(model.call("a", 0, 1), allowed(4, 0), "{new:?}");
    }
}

#[test]
fn a_fixed_window_of_another_length_stays_open_from_when_it_opened() {
    let opened_at_1 = || {
        let mut model = model(fixed(5, 10));
        model.call("a", 1, 1);
        model.call("a", 1, 9);
        model
    };
    let mut longer = opened_at_1();
    longer.change(fixed(5, 20), None, Tokens::Kept, 10);
    assert_eq!(longer.call("a", 4, 10), limited(3, 11, 11));
    assert_eq!(longer.call("a", 4, 20), limited(3, 1, 1));
    assert_eq!(longer.call("a", 4, 21), allowed(1, 20));

    let mut shorter = opened_at_1();
    shorter.change(fixed(5, 9), None, Tokens::Kept, 9);
    assert_eq!(shorter.call("a", 4, 9), limited(3, 1, 1));
    assert_eq!(shorter.call("a", 4, 10), allowed(1, 9));

    // By the new length it has closed; the call at 9 has not opened another one.
    let mut closed = opened_at_1();
    closed.change(fixed(5, 5), None, Tokens::Kept, 9);
    assert_eq!(closed.call("a", 1, 9), allowed(4, 5));
}

#[test]
fn an_aligned_windows_count_belongs_to_the_one_of_the_new_length() {
    for (window_ns, changed_ns, closes_ns) in
        [(4, 15, 16), (4, 19, 20), (100, 15, 100), (12, 15, 24)]
    {
        let mut model = model(aligned(5, 10));
        model.call("a", 5, 9);
        model.call("a", 3, 12);
        let new = aligned(5, window_ns);
        model.change(new.clone(), None, Tokens::Kept, changed_ns);
        let left_ns = u128::from(closes_ns - changed_ns);
        let wanted = limited(2, left_ns, left_ns);
        assert_eq!(model.call("a", 3, changed_ns), wanted, "{new:?}");
        assert_eq!(remaining(&model, "a", closes_ns), 5, "{new:?}");
    }
}

#[test]
fn a_log_of_another_length_judges_what_still_counts() {
    let with_two = || {
        let mut model = model(log(5, 10));
        model.call("a", 1, 0);
        model.call("a", 1, 6);
        model
    };
    let mut longer = with_two();
    longer.change(log(5, 20), None, Tokens::Kept, 9);
    assert_eq!(longer.call("a", 0, 9), allowed(3, 17));
    assert_eq!(longer.call("a", 0, 20), allowed(4, 6));
    let mut longer = with_two();
    longer.change(log(5, 20), None, Tokens::Kept, 10);
    assert_eq!(longer.call("a", 0, 10), allowed(4, 16), "one had left");
    let mut shorter = with_two();
    shorter.change(log(5, 3), None, Tokens::Kept, 8);
    assert_eq!(shorter.call("a", 0, 8), allowed(4, 1));
    shorter.change(log(5, 100), None, Tokens::Kept, 8);
    assert_eq!(shorter.call("a", 0, 8), allowed(4, 98), "it left for good");
}

#[test]
fn a_log_over_its_limit_waits_until_enough_has_left() {
    let mut model = model(log(5, 10));
    model.call("a", 3, 0);
    model.call("a", 2, 4);
    model.change(log(3, 10), None, Tokens::Kept, 5);
    assert_eq!(model.call("a", 1, 5), limited(0, 5, 9));
    assert_eq!(model.call("a", 2, 5), limited(0, 9, 9));
    assert_eq!(model.call("a", 1, 10), allowed(0, 10));
}

#[test]
fn a_counter_of_another_length_starts_from_what_it_weighs() {
    let mut model = model(counter(3, 10));
    model.call("a", 2, 9);
    model.call("a", 1, 11);
    // 1 + 2 x 8/10, rounded up, in the window from 7 to 14.
    model.change(counter(5, 7), None, Tokens::Kept, 12);
    assert_eq!(model.call("a", 0, 12), allowed(2, 9));
    assert_eq!(model.call("a", 0, 14), allowed(2, 7));
    assert_eq!(model.call("a", 0, 15), allowed(2, 6), "5 - 3 x 6/7");
    assert_eq!(model.call("a", 3, 16), limited(2, 1, 5), "5 - 3 x 5/7");
    assert_eq!(model.call("a", 3, 17), allowed(0, 11), "5 - 3 x 4/7");

    let mut unused = super::model(counter(3, 10));
    unused.call("a", 2, 9);
    unused.change(counter(5, 7), None, Tokens::Kept, 20);
    assert_eq!(unused.call("a", 0, 20), allowed(5, 0));

    // It is of now: what is given back later comes from it.
    let mut model = super::model(counter(3, 10));
    model.call("a", 3, 9);
    model.change(counter(5, 7), None, Tokens::Kept, 12);
    model.refund("a", 2, None, 13);
    assert_eq!(remaining(&model, "a", 13), 4);

    let all = u64::MAX;
    let mut largest = super::model(counter(all, 10)).largest_debt(all);
    largest.debit("a", all, 0);
    largest.debit("a", all, 0);
    largest.change(counter(all, 20), None, Tokens::Kept, 0);
    assert_eq!(largest.call("a", 1, 0), limited(0, 31, 40));
}

#[test]
#[should_panic(expected = "a change in proportion is not defined for windows")]
fn windows_do_not_change_in_proportion() {
    model(log(5, 10)).change(log(6, 10), None, Tokens::Proportional, 0);
}

#[test]
#[should_panic(expected = "a change to another kind of limit is not defined")]
fn kinds_do_not_change() {
    model(bucket(1, 1, 1)).change(queue(1, 1, 1), None, Tokens::Reset, 0);
}

#[test]
#[should_panic(expected = "a change of a window's anchor is not defined")]
fn anchors_do_not_change() {
    model(fixed(5, 10)).change(aligned(5, 10), None, Tokens::Reset, 0);
}
