//! Waits, and the exact numbers that they are found with.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::ToPrimitive;

/// The least wait from `now_ns` after which the answer is yes, given that it then stays yes: it is
/// found by asking, so that no formula stands between a definition and its wait.
///
/// Asks at most 257 times. The longest wait without a debt, for 2^64 - 1 tokens at one every
/// 2^64 - 1 nanoseconds, ends before 2^128, where time ends here; a longer one, out of a debt,
/// reads as 2^128 - 1.
pub(super) fn least_after(now_ns: u128, is_so: impl Fn(u128) -> bool) -> u128 {
    let is_enough = |wait_ns| is_so(now_ns.saturating_add(wait_ns));
    if is_enough(0) {
        return 0;
    }
    let (mut too_little, mut enough) = (0, 1_u128);
    while enough < u128::MAX && !is_enough(enough) {
        too_little = enough;
        enough = enough.saturating_mul(2);
    }
    while enough - too_little > 1 {
        let middle = too_little + (enough - too_little) / 2;
        if is_enough(middle) {
            enough = middle;
        } else {
            too_little = middle;
        }
    }
    enough
}

pub(super) fn whole(number: impl Into<BigInt>) -> BigRational {
    BigRational::from_integer(number.into())
}

/// The whole part of a number of tokens up to a burst, which fits; 0 in debt.
pub(super) fn rounded_down(tokens: &BigRational) -> u64 {
    tokens.floor().to_integer().to_u64().unwrap_or(0)
}

/// As many of the tokens as that allows, in whole ones; none of them below 0.
pub(super) fn up_to(tokens: u64, most: BigRational) -> u64 {
    rounded_down(&whole(tokens).min(most))
}
