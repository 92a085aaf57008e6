//! What is around a limiter's state in a snapshot: what it is, of which version, and whether it is
//! whole.
//!
//! `"tollgate"`, the version, the kind of limiter, its body, and a CRC-32 of everything before it.

use core::fmt;

use crate::wire::{Reader, Writer};
use crate::{BuildError, ChangeError};

const MAGIC: &[u8; 8] = b"tollgate";
const VERSION: u8 = 1;

/// Which limiter a snapshot is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One bucket.
    Single,
    /// A bucket a client.
    Keyed,
}

impl Kind {
    fn byte(self) -> u8 {
        match self {
            Self::Single => 1,
            Self::Keyed => 2,
        }
    }
}

/// Why a snapshot was not restored: no limiter was made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RestoreError {
    /// The limiter to restore it to cannot be built.
    Build(BuildError),
    /// These bytes never were a snapshot.
    NotASnapshot,
    /// Of a later version of the format.
    Newer {
        /// Its version.
        version: u8,
        /// The latest version that is understood.
        known: u8,
    },
    /// Bytes are missing, or others than were written.
    Damaged,
    /// Of another kind of limiter: of one bucket where there is one a client, or the other way
    /// round.
    OtherLimiter,
    /// Of a limiter of another algorithm.
    OtherAlgorithm,
    /// Its clients' tokens cannot be told in terms of the limit that they are to be held to.
    Change(ChangeError),
    /// More clients than the limiter tracks.
    TooManyClients {
        /// The clients in the snapshot.
        clients: u64,
        /// The most that the limiter tracks.
        most: u64,
    },
}

impl From<BuildError> for RestoreError {
    fn from(error: BuildError) -> Self {
        Self::Build(error)
    }
}

impl From<ChangeError> for RestoreError {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::OtherAlgorithm => Self::OtherAlgorithm,
            ChangeError::Invalid(error) => Self::Build(error),
            ChangeError::HistoryFull { .. }
            | ChangeError::NeedsMoreBits
            | ChangeError::NotProportional
            | ChangeError::NoSuchPlan => Self::Change(error),
        }
    }
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Build(error) => error.fmt(f),
            Self::NotASnapshot => f.write_str("not a snapshot of a limiter"),
            Self::Newer { version, known } => write!(
                f,
                "snapshot of version {version}; the latest understood here is {known}"
            ),
            Self::Damaged => f.write_str("the snapshot is damaged"),
            Self::OtherLimiter => f.write_str(
                "the snapshot is of another kind of limiter: one bucket, not one a client, or the \
                 other way round",
            ),
            Self::OtherAlgorithm => f.write_str("the snapshot is of another algorithm"),
            Self::Change(error) => error.fmt(f),
            Self::TooManyClients { clients, most } => {
                write!(
                    f,
                    "the snapshot has {clients} clients; max_clients is {most}"
                )
            }
        }
    }
}

impl core::error::Error for RestoreError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Build(error) => Some(error),
            Self::Change(error) => Some(error),
            Self::NotASnapshot
            | Self::Newer { .. }
            | Self::Damaged
            | Self::OtherLimiter
            | Self::OtherAlgorithm
            | Self::TooManyClients { .. } => None,
        }
    }
}

/// A snapshot of that kind, whose body `write` writes.
pub(crate) fn written(kind: Kind, write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut to = Writer::default();
    to.bytes(MAGIC);
    to.u8(VERSION);
    to.u8(kind.byte());
    write(&mut to);
    let checksum = crc32fast::hash(to.written());
    to.bytes(&checksum.to_le_bytes());
    to.into_bytes()
}

/// The body of a snapshot of that kind, known to be whole.
pub(crate) fn body(bytes: &[u8], kind: Kind) -> Result<Reader<'_>, RestoreError> {
    let rest = bytes
        .strip_prefix(MAGIC)
        .ok_or(RestoreError::NotASnapshot)?;
    let version = *rest.first().ok_or(RestoreError::Damaged)?;
    if version > VERSION {
        let known = VERSION;
        return Err(RestoreError::Newer { version, known });
    }
    let (all, checksum) = bytes.split_last_chunk().ok_or(RestoreError::Damaged)?;
    if version == 0 || crc32fast::hash(all) != u32::from_le_bytes(*checksum) {
        return Err(RestoreError::Damaged);
    }
    let head = MAGIC.len().saturating_add(1);
    let mut from = Reader::new(all.get(head..).ok_or(RestoreError::Damaged)?);
    let own = from.u8()?;
    let known = [Kind::Single, Kind::Keyed].map(Kind::byte);
    if own == kind.byte() {
        Ok(from)
    } else if known.contains(&own) {
        Err(RestoreError::OtherLimiter)
    } else {
        Err(RestoreError::Damaged)
    }
}
