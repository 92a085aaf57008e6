//! Since when nobody at all can have gone idle.

use super::clients::NOBODY;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};

/// A lower bound of every shard's `earliest`, at all times.
#[derive(Debug)]
pub(super) struct Floor {
    writer: Mutex<()>,
    /// How often the bound was lowered. Written after `position`, so that who reads a version reads
    /// no bound from before it.
    pub(super) version: AtomicU64,
    pub(super) position: AtomicU64,
}

impl Floor {
    pub(super) fn new() -> Self {
        Self {
            writer: Mutex::new(()),
            version: AtomicU64::new(0),
            position: AtomicU64::new(NOBODY),
        }
    }

    /// Someone of that position comes to a shard where all others' are later.
    pub(super) fn lower(&self, position: u64) {
        let _writer = lock(&self.writer);
        let lowest = self.position.load(Ordering::Relaxed).min(position);
        self.position.store(lowest, Ordering::Release);
        let version = self.version.load(Ordering::Relaxed);
        self.version
            .store(version.wrapping_add(1), Ordering::Release);
    }

    /// Every shard was asked since `version` was read, and `position` is the earliest found. Void
    /// if someone undercut it meanwhile.
    pub(super) fn raise(&self, version: u64, position: u64) {
        let _writer = lock(&self.writer);
        if self.version.load(Ordering::Relaxed) == version {
            let highest = self.position.load(Ordering::Relaxed).max(position);
            self.position.store(highest, Ordering::Release);
        }
    }
}
