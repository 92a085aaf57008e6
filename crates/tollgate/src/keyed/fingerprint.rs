//! What is kept of a key too long to be kept itself: 128 bits of a multilinear hash.
//!
//! With a piece of the key cut into 64-bit words m and secret 128-bit numbers k, each of two lanes
//! is the upper half of `k0 + k1 x m1 + k2 x m2 + ...` modulo 2^128. That is MULTILINEAR of Lemire
//! and Kaser, "Strongly universal string hashing is fast" (The Computer Journal 57, 2014,
//! <https://arxiv.org/abs/1202.4961>) with K = 128 and L = 64, and their theorem is why it may
//! decide whether two keys are one: **of two pieces that were chosen without knowing the secrets,
//! any b bits agree with a chance of 2^-b**, by no conjecture about mixing. Nothing that depends
//! on these bits is shown to whoever chooses keys, short of two keys that meet.
//!
//! SipHash-1-3-128, which we used before, takes 18 ns for a name of 36 bytes where this takes 9:
//! its eleven rounds wait for each other, and these products do not.

/// Words of one sum. A longer piece is hashed as several, one after the other.
const WORDS: usize = 15;
const BYTES: usize = 8 * WORDS;

/// The secret numbers of one word, one for each lane.
type Pair = [u128; 2];

/// A hash of what came before, and all of 128 bits.
pub(crate) type Fingerprint = [u64; 2];

/// The secrets of a limiter.
#[derive(Clone)]
pub(crate) struct Coefficients {
    constant: Pair,
    of_words: [Pair; WORDS],
    of_last: Pair,
    of_before: [Pair; 2],
}

impl Coefficients {
    /// From random words.
    pub(crate) fn random(mut word: impl FnMut() -> u64) -> Self {
        let mut wide = || (u128::from(word()) << 64) | u128::from(word());
        let mut pair = || [wide(), wide()];
        Self {
            constant: pair(),
            of_words: [(); WORDS].map(|()| pair()),
            of_last: pair(),
            of_before: [pair(), pair()],
        }
    }

    /// The words that they were made from, in that order.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> {
        let pairs = [self.constant].into_iter();
        let pairs = pairs.chain(self.of_words).chain([self.of_last]);
        let wide = pairs.chain(self.of_before).flatten();
        let halves = |wide: u128| [wide >> 64, wide & u128::from(u64::MAX)];
        wide.flat_map(halves)
            .map(|half| u64::try_from(half).unwrap_or(u64::MAX))
    }

    /// The hash of a key's first piece.
    #[inline(never)]
    pub(crate) fn first(&self, piece: &[u8]) -> Fingerprint {
        if piece.len() <= BYTES {
            return self.sum(self.constant, false, piece);
        }
        let (first, rest) = piece.split_at(BYTES);
        self.next(self.sum(self.constant, false, first), false, rest)
    }

    /// The hash of what came before, a byte 0xff if `closed`, and one piece more.
    pub(crate) fn next(&self, before: Fingerprint, closed: bool, piece: &[u8]) -> Fingerprint {
        let [one, two] = &self.of_before;
        let (_, next) =
            piece
                .chunks(BYTES)
                .fold((closed, before), |(closed, [first, second]), chunk| {
                    let lanes = plus(plus(self.constant, one, first), two, second);
                    (false, self.sum(lanes, closed, chunk))
                });
        next
    }

    /// Of up to [`BYTES`].
    #[inline]
    fn sum(&self, mut lanes: Pair, closed: bool, bytes: &[u8]) -> Fingerprint {
        let (words, rest) = bytes.as_chunks::<8>();
        for (word, coefficients) in words.iter().zip(&self.of_words) {
            lanes = plus(lanes, coefficients, u64::from_le_bytes(*word));
        }
        let rest = match bytes.last_chunk::<8>() {
            // Of the last eight bytes, the first ones are in a word already. In two steps, since
            // that may be all of them.
            Some(last) => u64::from_le_bytes(*last) >> 8 >> bits(7_usize.wrapping_sub(rest.len())),
            None => rest
                .iter()
                .rev()
                .fold(0, |word, byte| (word << 8) | u64::from(*byte)),
        };
        // Above up to seven bytes, the length, which is below 2^7, and one bit.
        let len = u64::try_from(bytes.len()).unwrap_or(0);
        let last = rest | (len << 56) | (u64::from(closed) << 63);
        plus(lanes, &self.of_last, last).map(upper)
    }
}

/// `lanes + coefficients x word`, each modulo 2^128.
#[inline]
fn plus([first, second]: Pair, [one, two]: &Pair, word: u64) -> Pair {
    let word = u128::from(word);
    [
        first.wrapping_add(one.wrapping_mul(word)),
        second.wrapping_add(two.wrapping_mul(word)),
    ]
}

#[inline]
pub(super) fn upper(n: u128) -> u64 {
    lower(n >> 64)
}

#[inline]
pub(super) fn lower(n: u128) -> u64 {
    // Masked to 64 bits, so the conversion always fits and compiles to nothing.
    u64::try_from(n & u128::from(u64::MAX)).unwrap_or(u64::MAX)
}

/// The bits below the byte at `at` in its word of eight.
#[inline]
pub(super) fn bits(at: usize) -> u32 {
    u32::try_from(at & 7).unwrap_or(0).wrapping_mul(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that differ from each other in all their bits, by an odd step.
    fn secrets() -> Coefficients {
        let mut word = 7_u64;
        Coefficients::random(move || {
            word = word
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f);
            word
        })
    }

    /// The formula as it is written, a byte at a time.
    fn by_the_book(secrets: &Coefficients, lane: usize, mut sum: u128, piece: &[u8]) -> u64 {
        let mut bytes = piece.to_vec();
        bytes.resize(piece.len() / 8 * 8 + 8, 0);
        let last = bytes.len() - 1;
        bytes[last] = piece.len().to_le_bytes()[0];
        let of_words = &secrets.of_words[..piece.len() / 8];
        for (word, secret) in bytes
            .chunks(8)
            .zip(of_words.iter().chain([&secrets.of_last]))
        {
            let word = word
                .iter()
                .rev()
                .fold(0, |word, byte| (word << 8) | u128::from(*byte));
            sum = sum.wrapping_add(word.wrapping_mul(secret[lane]));
        }
        (sum >> 64).try_into().unwrap()
    }

    #[test]
    fn a_hash_is_what_the_formula_says() {
        let secrets = secrets();
        for len in 0..=BYTES {
            let piece: Vec<u8> = (0..len).map(|n| (n * 29).to_le_bytes()[0]).collect();
            let expected =
                [0, 1].map(|lane| by_the_book(&secrets, lane, secrets.constant[lane], &piece));
            assert_eq!(secrets.first(&piece), expected, "{len} bytes");
        }
        let (before, piece) = ([3, u64::MAX], *b"after that");
        let expected = [0, 1].map(|lane| {
            let [one, two] = [0, 1].map(|word| secrets.of_before[word][lane]);
            let sum = secrets.constant[lane]
                .wrapping_add(one.wrapping_mul(3))
                .wrapping_add(two.wrapping_mul(u64::MAX.into()));
            by_the_book(&secrets, lane, sum, &piece)
        });
        assert_eq!(secrets.next(before, false, &piece), expected);
    }
}
