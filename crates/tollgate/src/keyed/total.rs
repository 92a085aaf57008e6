//! How many clients are tracked, and how many more may become so at any moment.

use crate::sync::{AtomicU64, Ordering};

/// Places that are promised stand above those that are taken: at most 2^24 - 1, which 65,000 calls
/// under way at once [ask for](crate::together::MOST_ASKS) at most.
const SHIFT: u32 = 40;
const PROMISED: u64 = 1 << SHIFT;
/// The most clients that can be counted; at 32 bytes each they take 32 tebibytes.
pub(crate) const MOST: u64 = PROMISED - 1;

/// The clients of one limiter, counted. Places taken and promised together never exceed the cap.
///
/// A promise is made to a call that needs several limiters' places at once: it is kept or withdrawn
/// before the call gives up any of its locks, and nobody waits for a lock between the two.
#[derive(Debug)]
pub(crate) struct Total(AtomicU64);

impl Total {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Clients that are tracked.
    pub(crate) fn tracked(&self) -> u64 {
        self.0.load(Ordering::Acquire) & MOST
    }

    /// Whether a claim of so many places may succeed.
    pub(crate) fn has_room(&self, places: u64, most: u64) -> bool {
        occupied(self.0.load(Ordering::Acquire)).saturating_add(places) <= most
    }

    /// Whether places are promised, which soon are taken or free.
    pub(crate) fn is_promised(&self) -> bool {
        self.0.load(Ordering::Acquire) > MOST
    }

    /// Takes a place, if one is free.
    pub(crate) fn claim(&self, most: u64) -> bool {
        self.raise(1, 1, most)
    }

    /// Takes places as promises, all or none.
    pub(crate) fn promise(&self, places: u64, most: u64) -> bool {
        self.raise(places.saturating_mul(PROMISED), places, most)
    }

    fn raise(&self, by: u64, places: u64, most: u64) -> bool {
        let raised = |total: u64| {
            let fits = occupied(total).saturating_add(places) <= most;
            // `None` also if the promises do not fit their bits.
            total.checked_add(by).filter(|_| fits)
        };
        let raised = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, raised);
        #[cfg(loom)]
        assert!(occupied(self.0.load(Ordering::Acquire)) <= most);
        raised.is_ok()
    }

    /// Makes promised places taken ones.
    pub(crate) fn keep(&self, places: u64) {
        let less = places.wrapping_mul(PROMISED.wrapping_sub(1));
        self.0.fetch_sub(less, Ordering::AcqRel);
    }

    /// Gives promised places up.
    pub(crate) fn withdraw(&self, places: u64) {
        self.0
            .fetch_sub(places.wrapping_mul(PROMISED), Ordering::AcqRel);
    }

    /// Gives places up that were taken.
    pub(crate) fn release(&self, places: usize) {
        let places = u64::try_from(places).unwrap_or(0);
        self.0.fetch_sub(places, Ordering::AcqRel);
    }
}

/// Places taken and promised.
fn occupied(total: u64) -> u64 {
    (total & MOST).wrapping_add(total >> SHIFT)
}
