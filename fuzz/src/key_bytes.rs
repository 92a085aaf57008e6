//! Two keys are one client if they feed the same pieces to `Hash`, or the same few bytes however
//! cut up; and only if they feed the same bytes.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use arbitrary::{Arbitrary, Unstructured};
use tollgate::{KeyedLimiter, ManualClock, Rate};

/// As many bytes are one client however they are cut.
const ANY_CUT: usize = 15;

/// Unrelated lists of pieces are seldom equal, so the second key may be made from the first.
#[derive(Arbitrary, Debug)]
struct Keys {
    first: Vec<Piece>,
    second: Second,
}

#[derive(Arbitrary, Debug)]
enum Second {
    /// The same bytes, one piece for each length and one for what is left.
    Recut(Vec<u8>),
    /// The same, but for one byte.
    Changed {
        at: u8,
        by: u8,
        lengths: Vec<u8>,
    },
    /// The same and something after them: a length is part of a key too.
    Longer(Piece),
    Other(Vec<Piece>),
}

#[derive(Arbitrary, Clone, Debug)]
enum Piece {
    Bytes(Vec<u8>),
    /// Fed by `write_u8`, as the 0xff that ends a `str`, which the limiter keeps as one bit.
    Byte(u8),
    Closing,
}

#[derive(Debug)]
struct Key(Vec<Piece>);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for piece in &self.0 {
            match piece {
                Piece::Bytes(bytes) => state.write(bytes),
                Piece::Byte(byte) => state.write_u8(*byte),
                Piece::Closing => state.write_u8(0xff),
            }
        }
    }
}

impl Key {
    fn bytes(&self) -> Vec<u8> {
        self.pieces().concat()
    }

    /// As the limiter is told of them: a byte is a byte, and nothing is nothing.
    fn pieces(&self) -> Vec<Vec<u8>> {
        let pieces = self.0.iter().map(|piece| match piece {
            Piece::Bytes(bytes) => bytes.clone(),
            Piece::Byte(byte) => vec![*byte],
            Piece::Closing => vec![0xff],
        });
        pieces.filter(|piece| !piece.is_empty()).collect()
    }

    fn cut(mut bytes: &[u8], lengths: &[u8]) -> Self {
        let mut pieces = Vec::new();
        for length in lengths {
            let (piece, rest) = bytes.split_at(usize::from(*length).min(bytes.len()));
            pieces.push(match piece {
                // One byte by either way, so that both are tried at every place.
                [byte] if length % 2 == 1 => Piece::Byte(*byte),
                _ => Piece::Bytes(piece.to_vec()),
            });
            bytes = rest;
        }
        pieces.push(Piece::Bytes(bytes.to_vec()));
        Self(pieces)
    }
}

/// Reads two keys and asks a limiter with one token a client whether they are one.
///
/// # Panics
///
/// If the limiter tells them apart other than by their bytes.
pub fn run(bytes: &[u8]) {
    let Ok(keys) = Keys::arbitrary_take_rest(Unstructured::new(bytes)) else {
        return;
    };
    let first = Key(keys.first);
    let bytes = first.bytes();
    let second = match keys.second {
        Second::Recut(lengths) => Key::cut(&bytes, &lengths),
        Second::Changed { at, by, lengths } => {
            let mut changed = bytes.clone();
            if let Some(byte) = changed.get_mut(usize::from(at)) {
                *byte = byte.wrapping_add(by);
            }
            Key::cut(&changed, &lengths)
        }
        Second::Longer(piece) => Key(first.0.iter().cloned().chain([piece]).collect()),
        Second::Other(pieces) => Key(pieces),
    };
    let are_one = bytes == second.bytes();
    if are_one && bytes.len() > ANY_CUT && first.pieces() != second.pieces() {
        // One client or two: not promised.
        return;
    }
    let hour = Rate::new(1, Duration::from_secs(3_600));
    let limiter = KeyedLimiter::builder(hour.burst(1), 2)
        .clock(ManualClock::default())
        .build()
        .expect("within every bound");
    assert!(limiter.allow(&first), "a new client");
    assert_eq!(limiter.allow(&second), !are_one, "{first:?}, {second:?}");
    assert_eq!(limiter.len(), if are_one { 1 } else { 2 });
    assert!(limiter.remove(&second));
    assert_eq!(limiter.allow(&first), are_one, "{first:?}, {second:?}");
}
