//! Who calls: names, and sequences of clients that are the same for every limiter.

use crate::row::Dist;

/// Hexadecimal digits that tell clients apart, at the end of the name.
const DIGITS: usize = 8;

/// A client's name, made just before the call as a request's is: fetched from a table of a million
/// strings it would cost more than the decision.
///
/// One buffer, written over: governor's map takes a `&String`, and no allocation is to be charged
/// to it. Everyone pays the same few nanoseconds, which the baseline shows.
pub(crate) struct Name {
    text: String,
    prefix_len: usize,
}

impl Name {
    /// Names of `len` bytes, at least eight.
    pub(crate) fn new(len: usize) -> Self {
        let prefix_len = len.saturating_sub(DIGITS);
        let mut text: String = "client".chars().cycle().take(prefix_len).collect();
        text.reserve(DIGITS);
        Self { text, prefix_len }
    }

    #[inline]
    pub(crate) fn set(&mut self, client: u32) {
        self.text.truncate(self.prefix_len);
        for digit in hexadecimal(client) {
            // Seven bits: the compiler sees that one byte is pushed. Half the cost of checking that
            // eight are UTF-8.
            self.text.push(char::from(digit & 0x7f));
        }
    }

    #[inline]
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    #[inline]
    pub(crate) fn as_string(&self) -> &String {
        &self.text
    }
}

/// Eight lower-case digits at once, a byte each: one by one they cost more than a small decision,
/// and every limiter's figure would be mostly that.
#[inline]
fn hexadecimal(number: u32) -> [u8; DIGITS] {
    const EACH: u64 = 0x0101_0101_0101_0101;
    // Four bits to a byte, the highest first: halves, then quarters, then eighths move apart.
    let mut nibbles = u64::from(number);
    nibbles = (nibbles | nibbles << 16) & 0x0000_ffff_0000_ffff;
    nibbles = (nibbles | nibbles << 8) & 0x00ff_00ff_00ff_00ff;
    nibbles = (nibbles | nibbles << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    // 1 in each byte above 9: adding 6 carries into its fifth bit. No byte carries into the next.
    let letters = (nibbles + 6 * EACH) >> 4 & EACH;
    let digits = nibbles + EACH * u64::from(b'0') + letters * u64::from(b'a' - b'0' - 10);
    digits.to_be_bytes()
}

/// A sequence of `calls` clients below `keys`, told by `seed` alone.
pub(crate) fn sequence(dist: Dist, keys: u32, calls: usize, seed: u64) -> Vec<u32> {
    let mut random = Random(seed);
    match dist {
        Dist::Hot => vec![0; calls],
        Dist::Uniform => (0..calls).map(|_| random.below(keys)).collect(),
        Dist::Zipf => zipf(keys, calls, &mut random),
        Dist::Full | Dist::Churn => (0..u32::MAX).take(calls).collect(),
    }
}

/// Zipf with exponent 1: looked up in the exact cumulated weights.
fn zipf(keys: u32, calls: usize, random: &mut Random) -> Vec<u32> {
    let mut sum = 0.0;
    let weights = (1..=keys).map(|rank| {
        sum += 1.0 / f64::from(rank);
        sum
    });
    let cumulated: Vec<f64> = weights.collect();
    let client = |_| {
        let at = random.unit() * sum;
        let rank = cumulated.partition_point(|&weight| weight <= at);
        scattered(rank, keys)
    };
    (0..calls).map(client).collect()
}

/// The client of a rank: frequent ones are not neighbours in the order in which they came, whose
/// names would then share cache lines in a map that keeps them on the heap. The multiplier is
/// prime, so no two ranks meet.
fn scattered(rank: usize, keys: u32) -> u32 {
    let rank = u64::try_from(rank).unwrap_or(0);
    u32::try_from(rank * 7_368_787 % u64::from(keys)).unwrap_or(0)
}

/// splitmix64: <https://prng.di.unimi.it/splitmix64.c>.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `bound`; the bias of the multiplication is below one in a thousand for our bounds.
    fn below(&mut self, bound: u32) -> u32 {
        let high = self.next() >> 32;
        u32::try_from((high * u64::from(bound)) >> 32).unwrap_or(0)
    }

    /// From 0 to below 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_length_and_differ() {
        for len in [14, 16, 36, 200] {
            let mut name = Name::new(len);
            name.set(7);
            let seven = name.as_str().to_owned();
            name.set(10_000_007);
            assert_eq!((seven.len(), name.as_str().len()), (len, len));
            assert_ne!(seven, name.as_str());
        }
    }

    #[test]
    fn digits_are_hexadecimal() {
        let numbers = (0..u32::MAX)
            .step_by(65_521)
            .chain([u32::MAX, 0x0123_4567, 0x89ab_cdef]);
        for number in numbers {
            let digits = hexadecimal(number);
            assert_eq!(
                str::from_utf8(&digits),
                Ok(format!("{number:08x}").as_str())
            );
        }
    }

    #[test]
    fn the_most_frequent_of_a_zipf_sequence_has_its_share() {
        let clients = sequence(Dist::Zipf, 1_000, 100_000, 1);
        let first = clients.iter().filter(|&&client| client == 0).count();
        // 1 / (1 + 1/2 + ... + 1/1000) = 13.36 %.
        assert!((13_000..13_750).contains(&first), "{first}");
        assert!(clients.iter().all(|&client| client < 1_000));
    }

    #[test]
    fn no_two_ranks_meet() {
        let mut clients: Vec<u32> = (0..100_000).map(|rank| scattered(rank, 100_000)).collect();
        clients.sort_unstable();
        assert!(clients.into_iter().eq(0..100_000));
    }
}
