//! What a client has done.

use std::mem::discriminant;

use crate::{Algorithm, Anchor, Answer};

use super::Tokens;
use super::bucket::{LeakyBucket, Quota, TokenBucket};
use super::search::least_after;
use super::window::{Counting, Window};

/// What a client has done, in the terms of the algorithm that judges it.
#[derive(Clone, Debug)]
pub(super) enum Past {
    TokenBucket(TokenBucket),
    LeakyBucket(LeakyBucket),
    Window(Window),
}

impl Past {
    /// That of a client first seen.
    pub(super) fn new(algorithm: &Algorithm, initial_tokens: Option<u64>, at_ns: u128) -> Self {
        match *algorithm {
            Algorithm::TokenBucket {
                tokens,
                per_ns,
                burst,
            } => {
                let quota = Quota::new(tokens, per_ns, burst);
                Self::TokenBucket(TokenBucket::first_seen(quota, initial_tokens, at_ns))
            }
            Algorithm::LeakyBucket {
                tokens,
                per_ns,
                burst,
            } => {
                let quota = Quota::new(tokens, per_ns, burst);
                Self::LeakyBucket(LeakyBucket::first_seen(quota, initial_tokens, at_ns))
            }
            Algorithm::FixedWindow {
                limit,
                window_ns,
                anchor,
            } => {
                let counting = match anchor {
                    Anchor::First => Counting::FromFirst,
                    Anchor::Aligned => Counting::Aligned,
                };
                Self::Window(Window::without_calls(counting, limit, window_ns))
            }
            Algorithm::SlidingLog { limit, window_ns } => {
                Self::Window(Window::without_calls(Counting::Log, limit, window_ns))
            }
            Algorithm::SlidingWindowCounter { limit, window_ns } => {
                Self::Window(Window::without_calls(Counting::Weighed, limit, window_ns))
            }
        }
    }

    pub(super) fn attempt(&mut self, cost: u64, at_ns: u128) -> Answer {
        let retry_after_ns = least_after(at_ns, self.admits(cost));
        if retry_after_ns > 0 {
            return Answer::Limited {
                remaining: self.remaining(at_ns),
                retry_after_ns,
                reset_after_ns: self.reset_after_ns(at_ns),
            };
        }
        // It leaves when those ahead of it have drained, so before it joins them.
        let delay_ns = match self {
            Self::LeakyBucket(_) => self.reset_after_ns(at_ns),
            Self::TokenBucket(_) | Self::Window(_) => 0,
        };
        match self {
            Self::TokenBucket(bucket) => bucket.take(cost, at_ns),
            Self::LeakyBucket(bucket) => bucket.take(cost, at_ns),
            Self::Window(window) => window.take(cost, at_ns),
        }
        self.allowed(delay_ns, at_ns)
    }

    /// Takes what there is and what may be owed; how many that is.
    pub(super) fn debit(&mut self, tokens: u64, largest_debt: u64, at_ns: u128) -> u64 {
        match self {
            Self::TokenBucket(bucket) => bucket.debit(tokens, largest_debt, at_ns),
            Self::LeakyBucket(bucket) => bucket.debit(tokens, largest_debt, at_ns),
            Self::Window(window) => window.debit(tokens, largest_debt, at_ns),
        }
    }

    pub(super) fn refund(&mut self, tokens: u64, taken_at_ns: Option<u64>, at_ns: u128) {
        match self {
            Self::TokenBucket(bucket) => bucket.refund(tokens, at_ns),
            Self::LeakyBucket(bucket) => bucket.refund(tokens, at_ns),
            Self::Window(window) => window.refund(tokens, taken_at_ns.map(u128::from), at_ns),
        }
    }

    /// Goes on under another algorithm, to which a change is defined.
    pub(super) fn change(
        &mut self,
        to: &Algorithm,
        tokens: Tokens,
        largest_debt: u64,
        at_ns: u128,
    ) {
        match (self, Self::new(to, None, at_ns)) {
            (Self::TokenBucket(bucket), Self::TokenBucket(to)) => {
                bucket.change(to, tokens, largest_debt, at_ns);
            }
            (Self::LeakyBucket(bucket), Self::LeakyBucket(to)) => {
                bucket.change(to, tokens, largest_debt, at_ns);
            }
            (Self::Window(window), Self::Window(to)) => window.change(to, tokens, at_ns),
            (Self::TokenBucket(_) | Self::LeakyBucket(_) | Self::Window(_), _) => {
                unreachable!("a change to another kind of limit is not defined")
            }
        }
    }

    pub(super) fn allowed(&self, delay_ns: u128, at_ns: u128) -> Answer {
        Answer::Allowed {
            remaining: self.remaining(at_ns),
            delay_ns,
            reset_after_ns: self.reset_after_ns(at_ns),
        }
    }

    fn reset_after_ns(&self, at_ns: u128) -> u128 {
        least_after(at_ns, self.is_as_new())
    }

    /// At what times a call of that cost would be admitted.
    fn admits(&self, cost: u64) -> Box<dyn Fn(u128) -> bool + '_> {
        match self {
            Self::TokenBucket(bucket) => Box::new(bucket.admits(cost)),
            Self::LeakyBucket(bucket) => Box::new(bucket.admits(cost)),
            Self::Window(window) => Box::new(window.admits(cost)),
        }
    }

    /// At what times nothing tells the client from a new one.
    fn is_as_new(&self) -> Box<dyn Fn(u128) -> bool + '_> {
        match self {
            Self::TokenBucket(bucket) => Box::new(bucket.is_full()),
            Self::LeakyBucket(bucket) => Box::new(bucket.is_drained()),
            Self::Window(window) => Box::new(window.is_as_new()),
        }
    }

    fn remaining(&self, at_ns: u128) -> u64 {
        match self {
            Self::TokenBucket(bucket) => bucket.remaining(at_ns),
            Self::LeakyBucket(bucket) => bucket.remaining(at_ns),
            Self::Window(window) => window.remaining(at_ns),
        }
    }
}

/// Panics where a change would mean nothing.
pub(super) fn assert_defined(from: &Algorithm, to: &Algorithm, tokens: Tokens) {
    assert_eq!(
        discriminant(from),
        discriminant(to),
        "a change to another kind of limit is not defined: {from:?} to {to:?}"
    );
    if let (
        Algorithm::FixedWindow { anchor: old, .. },
        Algorithm::FixedWindow { anchor: new, .. },
    ) = (from, to)
    {
        assert_eq!(old, new, "a change of a window's anchor is not defined");
    }
    let is_bucket = matches!(
        from,
        Algorithm::TokenBucket { .. } | Algorithm::LeakyBucket { .. }
    );
    assert!(
        is_bucket || tokens != Tokens::Proportional,
        "a change in proportion is not defined for windows: {from:?} to {to:?}"
    );
}
