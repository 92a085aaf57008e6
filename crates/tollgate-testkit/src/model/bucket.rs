//! The buckets: a level, and a rate at which it changes.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::Zero;

use super::search::{rounded_down, whole};

/// Tokens that a client may still take.
#[derive(Clone, Debug)]
pub(super) struct TokenBucket {
    tokens_per_ns: BigRational,
    burst: BigRational,
    /// What it held at `as_of_ns`, after the call that was admitted then.
    level: BigRational,
    as_of_ns: u128,
}

impl TokenBucket {
    pub(super) fn full(tokens: u64, per_ns: u64, burst: u64, at_ns: u128) -> Self {
        Self {
            tokens_per_ns: rate(tokens, per_ns),
            burst: whole(burst),
            level: whole(burst),
            as_of_ns: at_ns,
        }
    }

    fn level(&self, at_ns: u128) -> BigRational {
        let earned = flow(&self.tokens_per_ns, self.as_of_ns, at_ns);
        self.burst.clone().min(&self.level + earned)
    }

    /// When it holds that many tokens, which is at most the burst.
    fn holds(&self, tokens: BigRational) -> impl Fn(u128) -> bool {
        let missing = tokens - &self.level;
        move |at_ns| missing <= flow(&self.tokens_per_ns, self.as_of_ns, at_ns)
    }

    pub(super) fn admits(&self, cost: u64) -> impl Fn(u128) -> bool {
        self.holds(whole(cost))
    }

    pub(super) fn is_full(&self) -> impl Fn(u128) -> bool {
        self.holds(self.burst.clone())
    }

    pub(super) fn remaining(&self, at_ns: u128) -> u64 {
        rounded_down(&self.level(at_ns))
    }

    pub(super) fn take(&mut self, cost: u64, at_ns: u128) {
        self.level = self.level(at_ns) - whole(cost);
        self.as_of_ns = at_ns;
    }

    pub(super) fn refund(&mut self, tokens: u64, at_ns: u128) {
        self.level = self.burst.clone().min(self.level(at_ns) + whole(tokens));
        self.as_of_ns = at_ns;
    }
}

/// A queue that a client's calls stand in until they leave.
#[derive(Clone, Debug)]
pub(super) struct LeakyBucket {
    tokens_per_ns: BigRational,
    places: BigRational,
    /// What stood in the queue at `as_of_ns`, with the call that was admitted then.
    backlog: BigRational,
    as_of_ns: u128,
}

impl LeakyBucket {
    pub(super) fn drained(tokens: u64, per_ns: u64, burst: u64, at_ns: u128) -> Self {
        Self {
            tokens_per_ns: rate(tokens, per_ns),
            places: whole(burst),
            backlog: BigRational::zero(),
            as_of_ns: at_ns,
        }
    }

    fn backlog(&self, at_ns: u128) -> BigRational {
        let drained = flow(&self.tokens_per_ns, self.as_of_ns, at_ns);
        BigRational::zero().max(&self.backlog - drained)
    }

    /// When the backlog is down to that many tokens, which is at least 0.
    fn is_down_to(&self, tokens: BigRational) -> impl Fn(u128) -> bool {
        let too_many = &self.backlog - tokens;
        move |at_ns| too_many <= flow(&self.tokens_per_ns, self.as_of_ns, at_ns)
    }

    pub(super) fn admits(&self, cost: u64) -> impl Fn(u128) -> bool {
        self.is_down_to(&self.places - whole(cost))
    }

    pub(super) fn is_drained(&self) -> impl Fn(u128) -> bool {
        self.is_down_to(BigRational::zero())
    }

    pub(super) fn remaining(&self, at_ns: u128) -> u64 {
        rounded_down(&(&self.places - self.backlog(at_ns)))
    }

    pub(super) fn take(&mut self, cost: u64, at_ns: u128) {
        self.backlog = self.backlog(at_ns) + whole(cost);
        self.as_of_ns = at_ns;
    }

    pub(super) fn refund(&mut self, tokens: u64, at_ns: u128) {
        self.backlog = BigRational::zero().max(self.backlog(at_ns) - whole(tokens));
        self.as_of_ns = at_ns;
    }
}

fn rate(tokens: u64, per_ns: u64) -> BigRational {
    BigRational::new(tokens.max(1).into(), per_ns.max(1).into())
}

/// What flows in or out between two times. Not in lowest terms: a search asks for it some hundred
/// times, and reducing it each time took most of the model's.
fn flow(tokens_per_ns: &BigRational, from_ns: u128, to_ns: u128) -> BigRational {
    let elapsed_ns = BigInt::from(to_ns.saturating_sub(from_ns));
    BigRational::new_raw(
        tokens_per_ns.numer() * elapsed_ns,
        tokens_per_ns.denom().clone(),
    )
}
