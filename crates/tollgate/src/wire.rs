//! A limit and its clients' states as bytes outside the process: whole numbers, the lowest byte
//! first, and nothing else.

use crate::RestoreError;
use crate::algorithm::Algorithm;

/// Bytes being written.
#[derive(Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn u8(&mut self, number: u8) {
        self.0.push(number);
    }

    pub(crate) fn u64(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    pub(crate) fn i128(&mut self, number: i128) {
        self.bytes(&number.to_le_bytes());
    }

    pub(crate) fn usize(&mut self, number: usize) {
        self.u64(u64::try_from(number).unwrap_or(u64::MAX));
    }

    pub(crate) fn written(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Bytes being read: whatever is not there is an error.
#[derive(Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], RestoreError> {
        let (first, rest) = self.0.split_first_chunk().ok_or(RestoreError::Damaged)?;
        self.0 = rest;
        Ok(*first)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, RestoreError> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn bool(&mut self) -> Result<bool, RestoreError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(RestoreError::Damaged),
        }
    }

    pub(crate) fn u64(&mut self) -> Result<u64, RestoreError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn i128(&mut self) -> Result<i128, RestoreError> {
        self.array().map(i128::from_le_bytes)
    }

    /// The number that the last eight bytes are, which are then taken off.
    pub(crate) fn last_u64(&mut self) -> Result<u64, RestoreError> {
        let (rest, last) = self.0.split_last_chunk().ok_or(RestoreError::Damaged)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*last))
    }

    pub(crate) fn end(&self) -> Result<(), RestoreError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(RestoreError::Damaged)
        }
    }
}

/// A limit whose clients can be written down and read again.
///
/// What is read may be anything: it is an error, or a state that the arithmetic can live with.
pub trait Wire: Algorithm {
    /// Which algorithm.
    const KIND: u8;

    /// Writes the limit.
    fn write(&self, to: &mut Writer);
    /// Reads a limit of this kind.
    fn read(from: &mut Reader<'_>) -> Result<Self, RestoreError>;
    /// Writes a client's state.
    fn write_state(state: &Self::State, to: &mut Writer);
    /// Reads a client's state under this limit.
    fn read_state(&self, from: &mut Reader<'_>) -> Result<Self::State, RestoreError>;
    /// Makes all times of a state so much earlier, but none earlier than zero.
    fn set_back(state: &mut Self::State, by: u64);
}
