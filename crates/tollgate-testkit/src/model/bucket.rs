//! The buckets: a level, and a rate at which it changes.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Zero};

use super::Tokens;
use super::search::{rounded_down, up_to, whole};

/// The numbers of a bucket.
#[derive(Clone, Debug)]
pub(super) struct Quota {
    /// In lowest terms.
    tokens_per_ns: BigRational,
    burst: BigRational,
}

impl Quota {
    pub(super) fn new(tokens: u64, per_ns: u64, burst: u64) -> Self {
        Self {
            tokens_per_ns: BigRational::new(tokens.max(1).into(), per_ns.max(1).into()),
            burst: whole(burst),
        }
    }

    /// What a client starts with.
    fn initial(&self, initial_tokens: Option<u64>) -> BigRational {
        let burst = self.burst.clone();
        initial_tokens.map_or(burst.clone(), |tokens| burst.min(whole(tokens)))
    }

    /// With what a client goes on under this quota that had a level under the old one. With the
    /// rate p/q, levels are whole numbers of 1/q: what is between two of them is lost.
    fn carried(
        &self,
        level: BigRational,
        old: &Self,
        tokens: Tokens,
        largest_debt: u64,
    ) -> BigRational {
        let level = match tokens {
            Tokens::Kept => level,
            Tokens::Proportional => level * &self.burst / BigRational::one().max(old.burst.clone()),
            Tokens::Reset => self.burst.clone(),
        };
        let per_token = whole(self.tokens_per_ns.denom().clone());
        // Rounds towards minus infinity, so debts up.
        let level = (level * &per_token).floor() / per_token;
        level.min(self.burst.clone()).max(-whole(largest_debt))
    }
}

/// Tokens that a client may still take.
#[derive(Clone, Debug)]
pub(super) struct TokenBucket {
    quota: Quota,
    /// What it held at `as_of_ns`, after the call that was admitted then; below 0 in debt.
    level: BigRational,
    as_of_ns: u128,
}

impl TokenBucket {
    pub(super) fn first_seen(quota: Quota, initial_tokens: Option<u64>, at_ns: u128) -> Self {
        Self {
            level: quota.initial(initial_tokens),
            quota,
            as_of_ns: at_ns,
        }
    }

    fn level(&self, at_ns: u128) -> BigRational {
        let earned = flow(&self.quota.tokens_per_ns, self.as_of_ns, at_ns);
        self.quota.burst.clone().min(&self.level + earned)
    }

    /// When it holds that many tokens, which is at most the burst.
    fn holds(&self, tokens: BigRational) -> impl Fn(u128) -> bool {
        let missing = tokens - &self.level;
        move |at_ns| missing <= flow(&self.quota.tokens_per_ns, self.as_of_ns, at_ns)
    }

    pub(super) fn admits(&self, cost: u64) -> impl Fn(u128) -> bool {
        self.holds(whole(cost))
    }

    pub(super) fn is_full(&self) -> impl Fn(u128) -> bool {
        self.holds(self.quota.burst.clone())
    }

    pub(super) fn remaining(&self, at_ns: u128) -> u64 {
        rounded_down(&self.level(at_ns))
    }

    pub(super) fn take(&mut self, cost: u64, at_ns: u128) {
        self.level = self.level(at_ns) - whole(cost);
        self.as_of_ns = at_ns;
    }

    /// Takes what is there and what may be owed; how many that is.
    pub(super) fn debit(&mut self, tokens: u64, largest_debt: u64, at_ns: u128) -> u64 {
        let taken = up_to(tokens, self.level(at_ns) + whole(largest_debt));
        self.take(taken, at_ns);
        taken
    }

    /// Goes on as a bucket of other numbers, first seen at that time.
    pub(super) fn change(&mut self, to: Self, tokens: Tokens, largest_debt: u64, at_ns: u128) {
        let (level, old) = (self.level(at_ns), &self.quota);
        let level = to.quota.carried(level, old, tokens, largest_debt);
        *self = Self { level, ..to };
    }

    pub(super) fn refund(&mut self, tokens: u64, at_ns: u128) {
        self.level = self
            .quota
            .burst
            .clone()
            .min(self.level(at_ns) + whole(tokens));
        self.as_of_ns = at_ns;
    }
}

/// A queue that a client's calls stand in until they leave.
#[derive(Clone, Debug)]
pub(super) struct LeakyBucket {
    /// Its burst is the places in the queue.
    quota: Quota,
    /// What stood in the queue at `as_of_ns`, with the call that was admitted then; in debt, more
    /// than it has places.
    backlog: BigRational,
    as_of_ns: u128,
}

impl LeakyBucket {
    pub(super) fn first_seen(quota: Quota, initial_tokens: Option<u64>, at_ns: u128) -> Self {
        Self {
            backlog: &quota.burst - quota.initial(initial_tokens),
            quota,
            as_of_ns: at_ns,
        }
    }

    /// The places that are free; below 0 in debt.
    fn level(&self, at_ns: u128) -> BigRational {
        &self.quota.burst - self.backlog(at_ns)
    }

    fn backlog(&self, at_ns: u128) -> BigRational {
        let drained = flow(&self.quota.tokens_per_ns, self.as_of_ns, at_ns);
        BigRational::zero().max(&self.backlog - drained)
    }

    /// When the backlog is down to that many tokens, which is at least 0.
    fn is_down_to(&self, tokens: BigRational) -> impl Fn(u128) -> bool {
        let too_many = &self.backlog - tokens;
        move |at_ns| too_many <= flow(&self.quota.tokens_per_ns, self.as_of_ns, at_ns)
    }

    pub(super) fn admits(&self, cost: u64) -> impl Fn(u128) -> bool {
        self.is_down_to(&self.quota.burst - whole(cost))
    }

    pub(super) fn is_drained(&self) -> impl Fn(u128) -> bool {
        self.is_down_to(BigRational::zero())
    }

    pub(super) fn remaining(&self, at_ns: u128) -> u64 {
        rounded_down(&self.level(at_ns))
    }

    pub(super) fn take(&mut self, cost: u64, at_ns: u128) {
        self.backlog = self.backlog(at_ns) + whole(cost);
        self.as_of_ns = at_ns;
    }

    /// Takes what is there and what may be owed; how many that is.
    pub(super) fn debit(&mut self, tokens: u64, largest_debt: u64, at_ns: u128) -> u64 {
        let taken = up_to(tokens, self.level(at_ns) + whole(largest_debt));
        self.take(taken, at_ns);
        taken
    }

    /// Goes on as a queue of other numbers, first seen at that time.
    pub(super) fn change(&mut self, to: Self, tokens: Tokens, largest_debt: u64, at_ns: u128) {
        let (level, old) = (self.level(at_ns), &self.quota);
        let level = to.quota.carried(level, old, tokens, largest_debt);
        let backlog = &to.quota.burst - level;
        *self = Self { backlog, ..to };
    }

    pub(super) fn refund(&mut self, tokens: u64, at_ns: u128) {
        self.backlog = BigRational::zero().max(self.backlog(at_ns) - whole(tokens));
        self.as_of_ns = at_ns;
    }
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
