//! Who in a shard may be forgotten next: a heap of lower bounds.

use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// A client was, when this was written down, last seen at `position`.
///
/// Twelve bytes, not sixteen: this is the second largest cost of a client.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
struct Entry {
    position: u64,
    hash: u32,
}

impl Ord for Entry {
    /// The earliest position is the greatest: the standard library's heap gives that first.
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        let (own, others) = (self.position, other.position);
        others.cmp(&own)
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

/// Positions and hashes of a shard's clients.
///
/// What holds whenever the shard is not being changed: the clients can be given entries, each its
/// own, of their own hash and with a position no later than their last attempt. So nobody can have
/// gone idle before the earliest position and the idle time. Entries are corrected only when they
/// come up; a removed client's entry stays behind until then. Clients of one hash need not be told
/// apart: giving the earliest entry to the one seen longest ago keeps the rest satisfiable.
#[derive(Debug, Default)]
pub(crate) struct Expiry {
    entries: BinaryHeap<Entry>,
}

impl Expiry {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The earliest position and its hash.
    pub(crate) fn earliest(&self) -> Option<(u64, u32)> {
        self.entries
            .peek()
            .map(|entry| (entry.position, entry.hash))
    }

    /// A client first seen at `position`.
    pub(crate) fn push(&mut self, position: u64, hash: u32) {
        self.entries.push(Entry { position, hash });
    }

    /// Drops the earliest entry.
    pub(crate) fn pop(&mut self) {
        self.entries.pop();
    }

    /// Moves the earliest entry to a later position.
    pub(crate) fn correct(&mut self, position: u64) {
        if let Some(mut earliest) = self.entries.peek_mut() {
            earliest.position = position;
            // Sifts down as it is dropped.
            drop::<PeekMut<'_, Entry>>(earliest);
        }
    }

    /// Makes room for `most` entries, and for no more than that.
    pub(crate) fn fit(&mut self, most: usize) {
        self.entries.shrink_to(most);
        self.entries
            .reserve_exact(most.saturating_sub(self.entries.len()));
    }

    /// Starts again from the clients there are.
    pub(crate) fn rebuild(&mut self, clients: impl Iterator<Item = (u64, u32)>) {
        let mut entries = core::mem::take(&mut self.entries).into_vec();
        entries.clear();
        entries.extend(clients.map(|(position, hash)| Entry { position, hash }));
        self.entries = entries.into();
    }

    /// Bytes on the heap.
    pub(crate) fn memory_bytes(&self) -> usize {
        Self::bytes_for(self.entries.capacity())
    }

    /// The bytes of so many entries.
    pub(crate) fn bytes_for(entries: usize) -> usize {
        entries.saturating_mul(size_of::<Entry>())
    }

    /// Every position and hash, in no order.
    #[cfg(any(test, loom))]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u32)> {
        self.entries
            .iter()
            .map(|entry| (entry.position, entry.hash))
    }
}
