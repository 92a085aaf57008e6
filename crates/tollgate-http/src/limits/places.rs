//! Places for requests that are held back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tollgate_policy::{Call, Policy};

/// How many requests are held back, or may come to be.
#[derive(Debug)]
pub(super) struct Places {
    taken: Arc<AtomicUsize>,
    most: usize,
}

/// A place among the requests that may be held back at a time. Dropped, it is somebody else's.
#[derive(Debug)]
pub(crate) struct Held(Arc<AtomicUsize>);

impl Places {
    pub(super) fn new(most: usize) -> Self {
        let taken = Arc::default();
        Self { taken, most }
    }

    /// As many as there are in all.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// One, if there is one left, and the request may come to be held back at all.
    pub(super) fn take_for(&self, policy: &Policy, calls: &[Call]) -> Option<Held> {
        if !policy.may_hold(calls) {
            return None;
        }
        if self.taken.fetch_add(1, Ordering::Relaxed) < self.most {
            return Some(Held(self.taken.clone()));
        }
        self.taken.fetch_sub(1, Ordering::Relaxed);
        None
    }
}

impl Held {
    /// For how long a request may be held back that has this place, or none: then not at all, and
    /// what would be is refused until it need not be.
    pub(super) fn longest_delay(place: Option<&Self>) -> Duration {
        place.map_or(Duration::ZERO, |_| Duration::MAX)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
