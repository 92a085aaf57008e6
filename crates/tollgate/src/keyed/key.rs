//! Whose bucket: any `Hash`, as 128 bits.
//!
//! The bytes that a key feeds to `Hash` are its identity. Up to 14 of them (a `str` of 14 bytes:
//! its closing 0xff is kept as one bit) are the key itself, so short names are compared exactly;
//! of longer ones 115 bits of a [fingerprint](super::fingerprint) are kept, under which the chance
//! that any two of a million clients meet is 10^-23. Where a client sits in a table is told by a
//! second, faster keyed hash, on which no equality rests.
//!
//! Beyond 15 bytes it matters how a key cuts them into pieces: `Hasher` promises the same answer
//! only for the same calls, and a first long piece that is hashed as a whole, with nothing kept in
//! case more should follow, makes a long name 5 ns cheaper.

use core::convert::Infallible;
use core::fmt;
use core::hash::{BuildHasher, Hash, Hasher};
use std::hash::RandomState;

use super::fingerprint::{Coefficients, Fingerprint, bits, lower, upper};
use crate::time::product;

/// The longest sequence of bytes that is a key itself.
const INLINE: usize = 14;
/// Where the two bits stand that tell what the rest is; both zero is no key at all.
const HASHED: u64 = 0b01 << 62;
const INLINED: u64 = 0b10 << 62;
const INLINED_AND_FF: u64 = 0b11 << 62;
/// Four bits for the number of bytes.
const LENGTH_SHIFT: u32 = 58;
/// Of a hashed key, that a byte 0xff follows what was hashed.
const HASHED_AND_FF: u64 = 1 << LENGTH_SHIFT;
/// Bits that no key uses: where a client's [`Tag`] stands.
const SPARE: u64 = 0x3ff << TAG_SHIFT;
const TAG_SHIFT: u32 = 48;

/// Ten bits that a client's place in a table has room for: under which limit its state is written
/// down (see [`Rules`](super::rules::Rules)). No part of who it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tag(u64);

impl Tag {
    /// Of a number below 2^10.
    pub(crate) fn new(number: u16) -> Self {
        Self((u64::from(number) << TAG_SHIFT) & SPARE)
    }

    /// The tag whose number is so much higher, below 2^10.
    #[inline]
    pub(crate) fn plus(self, more: u16) -> Self {
        Self(self.0.wrapping_add(u64::from(more) << TAG_SHIFT))
    }

    pub(crate) fn number(self) -> u16 {
        u16::try_from(self.0 >> TAG_SHIFT).unwrap_or(0)
    }
}

/// A client. All zero is no client; ten bits of the second word are zero, but in a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    low: u64,
    high: u64,
}

impl Key {
    /// What a vacant place in a table holds.
    pub(crate) const VACANT: Self = Self { low: 0, high: 0 };

    /// The one client of a table of its own: all newcomers to a full one.
    pub(crate) const OVERFLOW: Self = Self {
        low: 0,
        high: HASHED,
    };

    #[inline]
    pub(crate) fn is_vacant(self) -> bool {
        // Every key has one of the two top bits.
        self.high == 0
    }

    #[inline]
    pub(crate) fn low(self) -> u64 {
        self.low
    }

    /// The two words that are a key, without its tag.
    pub(crate) fn words(self) -> [u64; 2] {
        let bare = self.without_tag();
        [bare.low, bare.high]
    }

    /// The key of these words, if they can be one.
    pub(crate) fn from_words([low, high]: [u64; 2]) -> Option<Self> {
        let key = Self { low, high };
        let is_one = high & (HASHED | INLINED) != 0 && key.words() == [low, high];
        is_one.then_some(key)
    }

    /// Whether both name the same client, whatever their tags.
    #[inline]
    pub(crate) fn names_as(self, other: Self) -> bool {
        self.low == other.low && (self.high ^ other.high) & !SPARE == 0
    }

    #[inline]
    pub(crate) fn tag(self) -> Tag {
        Tag(self.high & SPARE)
    }

    #[inline]
    pub(crate) fn with_tag(self, tag: Tag) -> Self {
        let high = (self.high & !SPARE) | tag.0;
        Self { high, ..self }
    }

    #[inline]
    pub(crate) fn without_tag(self) -> Self {
        self.with_tag(Tag(0))
    }
}

/// The secrets of one limiter, so that nobody outside can choose names that meet.
#[derive(Clone)]
pub(crate) struct Secrets {
    long_names: Coefficients,
    places: Places,
}

/// Where clients go: the secret of the fast hash, and how much of it chooses the shard.
#[derive(Clone, Copy)]
pub(crate) struct Places {
    secret: (u64, u64, u64),
    /// The number of shards, a power of two up to 2^16, less one.
    shard_mask: u64,
}

impl Secrets {
    /// Fresh secrets from the standard library's own source of randomness, for 2^`shard_bits`
    /// shards (at most 2^16).
    pub(crate) fn random(shard_bits: u32) -> Self {
        // Each word is a SipHash under random keys that the standard library never shows.
        let word = || Ok::<u64, Infallible>(RandomState::new().hash_one(()));
        match Self::from_words(shard_bits, word) {
            Ok(secrets) => secrets,
            Err(never) => match never {},
        }
    }

    /// Secrets made from those words, of which it takes as many as [`words`](Self::words) gives.
    pub(crate) fn from_words<E>(
        shard_bits: u32,
        mut word: impl FnMut() -> Result<u64, E>,
    ) -> Result<Self, E> {
        let mut failed = None;
        let mut take = || {
            word().unwrap_or_else(|error| {
                failed.get_or_insert(error);
                0
            })
        };
        let secrets = Self {
            long_names: Coefficients::random(&mut take),
            places: Places {
                secret: (take(), take(), take()),
                shard_mask: shard_mask(shard_bits),
            },
        };
        failed.map_or(Ok(secrets), Err)
    }

    /// The words that they were made from: whoever knows them can choose names that meet.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> {
        let (one, two, three) = self.places.secret;
        self.long_names.words().chain([one, two, three])
    }

    /// The same secrets every time: a model checker must see the same run again.
    #[cfg(all(test, loom))]
    pub(crate) fn fixed(shard_bits: u32) -> Self {
        let secret = (
            0x9e37_79b9_7f4a_7c15,
            0xbf58_476d_1ce4_e5b9,
            0x94d0_49bb_1331_11eb,
        );
        let mut word: u64 = secret.0;
        Self {
            long_names: Coefficients::random(|| {
                word = word.wrapping_mul(secret.1 | 1).wrapping_add(secret.2);
                word
            }),
            places: Places {
                secret,
                shard_mask: shard_mask(shard_bits),
            },
        }
    }

    pub(crate) fn places(&self) -> Places {
        self.places
    }

    /// The client that `key` names. Runs the key's own `Hash`: never call it under a lock.
    #[inline]
    pub(crate) fn key<K: Hash + ?Sized>(&self, key: &K) -> Key {
        let mut bytes = KeyBytes::new(self);
        key.hash(&mut bytes);
        bytes.key()
    }
}

fn shard_mask(shard_bits: u32) -> u64 {
    !(u64::MAX << shard_bits.min(16))
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(..)")
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Places(..)")
    }
}

impl Places {
    /// How many shards there are.
    pub(crate) fn shards(self) -> usize {
        usize::try_from(self.shard_mask).map_or(1, |mask| mask.saturating_add(1))
    }

    /// 64 bits: two folded multiplies under the limiter's own random key. After one, names that
    /// count up can still fall into step with an unlucky key.
    #[inline]
    pub(crate) fn hash(self, key: Key) -> u64 {
        let (first, second, third) = self.secret;
        folded(folded(key.low ^ first, key.high ^ second), third)
    }

    /// The shard of a client with this hash: its lowest bits.
    #[inline]
    pub(crate) fn shard(self, hash: u64) -> usize {
        usize::try_from(hash & self.shard_mask).unwrap_or(0)
    }

    /// The hash that a shard's own table goes by: the upper half, which the shard's choice left
    /// alone.
    #[inline]
    pub(crate) fn in_shard(self, hash: u64) -> u32 {
        u32::try_from(hash >> 32).unwrap_or(u32::MAX)
    }

    /// The same of a key that may have a tag.
    #[inline]
    pub(crate) fn hash_of(self, key: Key) -> u32 {
        self.in_shard(self.hash(key.without_tag()))
    }
}

/// The upper and the lower half of a product, each mixing what the other leaves in order.
#[inline]
fn folded(a: u64, b: u64) -> u64 {
    let product = product(a, b);
    lower(product) ^ upper(product)
}

/// Collects what a key feeds to `Hash`: as it is while it fits, else its fingerprint.
struct KeyBytes<'a> {
    held: Held,
    /// A byte 0xff after those held: how a `str` ends, and seldom in the midst of anything.
    closed: bool,
    secrets: &'a Secrets,
}

/// Up to 15 bytes, the first in the lowest bits and zero above them; or the fingerprint of more.
#[derive(Clone, Copy, Default)]
struct Held {
    low: u64,
    high: u64,
    /// [`HASHED_LEN`] of a fingerprint.
    len: usize,
}

/// More than are ever held as they are.
const HASHED_LEN: usize = usize::MAX;

impl<'a> KeyBytes<'a> {
    #[inline]
    fn new(secrets: &'a Secrets) -> Self {
        KeyBytes {
            held: Held::default(),
            closed: false,
            secrets,
        }
    }

    /// By reference: moving this about costs more than all the rest.
    #[inline]
    fn key(&self) -> Key {
        let Held { low, high, len } = self.held;
        match len {
            HASHED_LEN => hashed([low, high], self.closed),
            0..=INLINE if self.closed => inlined(INLINED_AND_FF, low, high, len),
            _ => self.unclosed_key(),
        }
    }

    /// The same for what does not end as a `str` does. A last byte of 0xff that came with others
    /// is still one: the identity is the bytes.
    #[inline(never)]
    fn unclosed_key(&self) -> Key {
        let (held, closed) = match self.held.last() {
            Some(0xff) if !self.closed => (self.held.without_last(), true),
            _ => (self.held, self.closed),
        };
        match (held.len <= INLINE, closed) {
            (true, false) => inlined(INLINED, held.low, held.high, held.len),
            (true, true) => inlined(INLINED_AND_FF, held.low, held.high, held.len),
            (false, _) => hashed(held.fingerprint(self.secrets), closed),
        }
    }

    /// What does not fit, or is not the first piece of a key.
    #[inline(never)]
    fn write_more(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let closed = core::mem::take(&mut self.closed);
        let len = self.held.len.saturating_add(usize::from(closed));
        if len.saturating_add(bytes.len()) <= INLINE + 1 {
            let closing: &[u8] = if closed { &[0xff] } else { &[] };
            closing
                .iter()
                .chain(bytes)
                .for_each(|byte| self.held.push(*byte));
        } else {
            let before = self.held.fingerprint(self.secrets);
            self.held = Held::hashed(self.secrets.long_names.next(before, closed, bytes));
        }
    }
}

impl Hasher for KeyBytes<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        if self.held.len > 0 || self.closed {
            return self.write_more(bytes);
        }
        self.held = Held::loaded(bytes)
            .unwrap_or_else(|| Held::hashed(self.secrets.long_names.first(bytes)));
    }

    #[inline]
    fn write_u8(&mut self, byte: u8) {
        if byte == 0xff && !self.closed {
            self.closed = true;
        } else {
            self.write_more(&[byte]);
        }
    }

    /// Not asked for: see [`KeyBytes::key`].
    fn finish(&self) -> u64 {
        0
    }
}

impl Held {
    #[inline]
    fn hashed([low, high]: Fingerprint) -> Self {
        let len = HASHED_LEN;
        Self { low, high, len }
    }

    /// What there is as a fingerprint, be it one already or not.
    fn fingerprint(self, secrets: &Secrets) -> Fingerprint {
        match self.bytes().get(..self.len) {
            Some(bytes) => secrets.long_names.first(bytes),
            None => [self.low, self.high],
        }
    }

    /// `bytes`, if there are at most 15: two overlapping reads instead of a copy of unknown
    /// length, which would cost more than the rest of the key.
    #[inline]
    fn loaded(bytes: &[u8]) -> Option<Self> {
        let len = bytes.len();
        if len > INLINE + 1 {
            return None;
        }
        if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
            // Of the last eight bytes, 16 - len are among the first eight. In two steps, since
            // for a length of eight that is every bit.
            let last = u64::from_le_bytes(*last) >> bits(15_usize.wrapping_sub(len)) >> 8;
            return Some(Self {
                low: u64::from_le_bytes(*first),
                high: last,
                len,
            });
        }
        let low = if let (Some(first), Some(last)) =
            (bytes.first_chunk::<4>(), bytes.last_chunk::<4>())
        {
            let last = u64::from(u32::from_le_bytes(*last));
            u64::from(u32::from_le_bytes(*first)) | (last << bits(len.wrapping_sub(4)))
        } else {
            bytes
                .iter()
                .rev()
                .fold(0, |word, byte| (word << 8) | u64::from(*byte))
        };
        Some(Self { low, high: 0, len })
    }

    /// One byte more; the caller has seen that there is room.
    fn push(&mut self, byte: u8) {
        let byte = u64::from(byte) << bits(self.len);
        if self.len < 8 {
            self.low |= byte;
        } else {
            self.high |= byte;
        }
        self.len = self.len.wrapping_add(1);
    }

    fn bytes(self) -> [u8; 16] {
        let words = (u128::from(self.high) << 64) | u128::from(self.low);
        words.to_le_bytes()
    }

    fn last(self) -> Option<u8> {
        self.bytes().get(self.len.checked_sub(1)?).copied()
    }

    fn without_last(self) -> Self {
        let mut shorter = Self::default();
        let bytes = self.bytes();
        bytes
            .iter()
            .take(self.len.saturating_sub(1))
            .for_each(|byte| shorter.push(*byte));
        shorter
    }
}

#[inline]
fn inlined(kind: u64, low: u64, high: u64, len: usize) -> Key {
    let len = u64::try_from(len).unwrap_or(0) << LENGTH_SHIFT;
    Key {
        low,
        high: high | kind | len,
    }
}

#[inline]
fn hashed([low, high]: Fingerprint, closed: bool) -> Key {
    let closing = if closed { HASHED_AND_FF } else { 0 };
    Key {
        low,
        high: high & !(HASHED | INLINED | HASHED_AND_FF | SPARE) | HASHED | closing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn secrets() -> Secrets {
        Secrets::random(8)
    }

    #[test]
    fn distinct_bytes_are_distinct_clients() {
        let secrets = secrets();
        let mut seen = HashSet::new();
        // Every length around the inline limit, each with 0xff or 0 at any one place.
        for len in 0..40 {
            for odd in [0x00, 0x61, 0xff] {
                for at in 0..len {
                    let mut name = vec![0x61; len];
                    name[at] = odd;
                    seen.insert(name);
                }
            }
            seen.insert(vec![0xff; len]);
            seen.insert(vec![0; len]);
        }
        let keys: HashSet<(u64, u64)> = seen
            .iter()
            .map(|name| {
                let mut bytes = KeyBytes::new(&secrets);
                bytes.write(name);
                let key = bytes.key();
                assert!(!key.is_vacant());
                assert_eq!(key.high & SPARE, 0, "the spare bits stay free");
                (key.low, key.high)
            })
            .collect();
        assert_eq!(keys.len(), seen.len());
    }

    /// Feeds the first bytes of a name as one piece, and each of the rest as one.
    fn cut(secrets: &Secrets, name: &[u8], at: usize) -> Key {
        let mut parts = KeyBytes::new(secrets);
        parts.write(&name[..at]);
        for byte in &name[at..] {
            parts.write_u8(*byte);
        }
        parts.key()
    }

    #[test]
    fn identity_of_few_bytes_is_the_bytes_however_they_are_fed() {
        let secrets = secrets();
        for last in [0x61, 0xff] {
            let mut name: Vec<u8> = (0..15u8).map(|n| n.wrapping_mul(17)).collect();
            name[14] = last;
            for len in 0..16 {
                let whole = cut(&secrets, &name[..len], len);
                for at in 0..len {
                    assert_eq!(cut(&secrets, &name[..len], at), whole, "{len} bytes, {at}");
                }
            }
        }
    }

    #[test]
    fn identity_of_many_bytes_is_their_pieces_and_other_bytes_are_another_client() {
        let secrets = secrets();
        let lens: [u16; 12] = [16, 17, 24, 119, 120, 121, 127, 128, 129, 240, 241, 300];
        let mut seen = HashSet::new();
        for len in lens {
            let name: Vec<u8> = (0..len).map(|n| n.to_le_bytes()[0]).collect();
            // As it is and with another byte anywhere, each in one piece and in several.
            for other in (0..name.len()).map(Some).chain([None]) {
                let mut name = name.clone();
                if let Some(at) = other {
                    name[at] ^= 0x80;
                }
                for at in [name.len(), 3] {
                    let key = cut(&secrets, &name, at);
                    assert_eq!(cut(&secrets, &name, at), key);
                    seen.insert((key.low, key.high));
                }
            }
        }
        let names: usize = lens.iter().map(|len| usize::from(*len) + 1).sum();
        assert_eq!(seen.len(), 2 * names);
    }

    #[test]
    fn borrowed_and_owned_names_are_one_client() {
        let secrets = secrets();
        for name in [
            "",
            "alice",
            "fourteen bytes",
            "fifteen bytes..",
            "a name of thirty-six bytes, in full.",
        ] {
            assert_eq!(secrets.key(name), secrets.key(&name.to_owned()));
            assert_eq!(
                secrets.key(&(name, 7u64)),
                secrets.key(&(name.to_owned(), 7u64))
            );
        }
        assert_ne!(secrets.key(&("a:b", "c")), secrets.key(&("a", "b:c")));
    }

    /// Chi-square over 256 cells for names that differ little; 400 is out of reach for a fair
    /// hash (mean 255, deviation 23), so that the test does not depend on the random secret.
    #[test]
    fn places_are_spread_evenly() {
        let secrets = secrets();
        let families: [fn(u32) -> String; 4] = [
            |n| n.to_string(),
            |n| format!("client-{n:07}"),
            |n| format!("{n:08x}----"),
            |n| format!("10.{}.{}.{}", n >> 16, (n >> 8) & 255, n & 255),
        ];
        for name in families {
            for shift in [56, 48, 40, 32, 24] {
                let mut cells = [0u32; 256];
                for n in 0..51_200 {
                    let hash = secrets.places().hash(secrets.key(name(n).as_str()));
                    cells[usize::from((hash >> shift).to_le_bytes()[0])] += 1;
                }
                let squares: i64 = cells.iter().map(|n| (i64::from(*n) - 200).pow(2)).sum();
                assert!(
                    squares / 200 < 400,
                    "chi-square {} at bit {shift} of {}",
                    squares / 200,
                    name(7)
                );
            }
        }
    }
}
