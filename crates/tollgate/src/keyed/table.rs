//! One shard's clients: an open-addressed table whose slots stand in the order of their hashes.
//!
//! A slot's home is its hash scaled to the capacity, so homes rise with hashes; a slot sits at its
//! home or in the run of slots right behind it, and a vacant slot ends a run. That order lets a
//! search for an unknown client stop at the first larger hash, lets growth copy from front to back
//! at any factor, and keeps equal hashes side by side for the expiry queue. State sits in the slot
//! itself: at a million clients a second dependent read from memory costs more than the bytes that
//! an index would save.

use core::ops::Range;

use super::key::{Key, Places, Tag};

/// The least capacity of a table that holds anything.
pub(crate) const LEAST: u32 = 8;

/// A client and its state; vacant when the key is.
#[derive(Clone, Debug)]
struct Slot<S> {
    key: Key,
    state: S,
}

/// Clients by key.
#[derive(Debug)]
pub(crate) struct Table<S> {
    /// Homes are below `capacity`; behind them are spare slots, so that runs never wrap around.
    /// The last slot is vacant.
    slots: Box<[Slot<S>]>,
    /// Below 2^32: that many slots take 2^37 bytes.
    capacity: u32,
    live: u32,
}

/// A count of slots as an index of one.
#[inline]
fn index(slots: u32) -> usize {
    usize::try_from(slots).unwrap_or(usize::MAX)
}

/// Of so many homes, those that are used before there are more: seven eighths.
fn most(capacity: u32) -> usize {
    index(capacity.saturating_sub(capacity >> 3))
}

/// The homes that come next.
fn grown(capacity: u32) -> u32 {
    capacity.saturating_add(capacity >> 2).max(LEAST)
}

/// The slots behind so many homes. Runs are short at seven eighths full; what does not fit behind
/// the last home makes a table longer where it is made anew, and larger in `insert`.
fn spare(capacity: u32) -> u32 {
    LEAST.saturating_add(capacity >> 6)
}

/// Where a client is, or would have to be put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    At(usize),
    /// There, under another tag.
    Otherwise(usize),
    Missing(usize),
}

impl<S: Clone + Default> Table<S> {
    pub(crate) fn new() -> Self {
        Self {
            slots: Box::default(),
            capacity: 0,
            live: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        index(self.live)
    }

    /// The most clients that are held before the table grows: seven eighths of the capacity.
    pub(crate) fn most(&self) -> usize {
        most(self.capacity)
    }

    /// The bytes of a table that grew until it holds so many, and how many it holds then.
    pub(crate) fn grown_for(clients: usize) -> (usize, usize) {
        let mut capacity = LEAST;
        while most(capacity) < clients && capacity < u32::MAX {
            capacity = grown(capacity);
        }
        if clients == 0 {
            return (0, 0);
        }
        let slots = capacity.saturating_add(spare(capacity));
        (
            index(slots).saturating_mul(size_of::<Slot<S>>()),
            most(capacity),
        )
    }

    #[inline]
    fn home(&self, hash: u32) -> usize {
        // hash x capacity / 2^32, rounded down: below the capacity.
        let scaled = u64::from(hash).wrapping_mul(u64::from(self.capacity));
        usize::try_from(scaled >> 32).unwrap_or(usize::MAX)
    }

    /// Where the client with this key and hash is; the key's tag is the one that is expected there.
    #[inline]
    pub(crate) fn find(&self, places: &Places, key: Key, hash: u32) -> Found {
        let home = self.home(hash);
        let run = self.slots.get(home..).unwrap_or_default();
        for (steps, slot) in run.iter().enumerate() {
            let at = home.wrapping_add(steps);
            if slot.key == key {
                return Found::At(at);
            }
            if slot.key.names_as(key) {
                return Found::Otherwise(at);
            }
            if slot.key.is_vacant() || places.hash_of(slot.key) > hash {
                return Found::Missing(at);
            }
        }
        Found::Missing(self.slots.len())
    }

    /// Reads the slot where a search for that hash begins, for the sake of reading it.
    #[inline]
    pub(crate) fn touch(&self, hash: u32) -> u64 {
        self.slots
            .get(self.home(hash))
            .map_or(0, |slot| slot.key.low())
    }

    /// A client's tag and state.
    #[inline]
    pub(crate) fn tagged(&self, at: usize) -> Option<(Tag, &S)> {
        self.slots.get(at).map(|slot| (slot.key.tag(), &slot.state))
    }

    #[inline]
    pub(crate) fn state_mut(&mut self, at: usize) -> Option<&mut S> {
        self.slots.get_mut(at).map(|slot| &mut slot.state)
    }

    /// Writes a client's state down anew, under another tag.
    pub(crate) fn retag(&mut self, at: usize, tag: Tag, state: S) {
        if let Some(slot) = self.slots.get_mut(at) {
            slot.key = slot.key.with_tag(tag);
            slot.state = state;
        }
    }

    /// The slots of clients with this hash.
    pub(crate) fn with_hash(&self, places: &Places, hash: u32) -> Range<usize> {
        let home = self.home(hash);
        let run = self.slots.get(home..).unwrap_or_default();
        let live = run.iter().take_while(|slot| !slot.key.is_vacant());
        let before = live
            .clone()
            .take_while(|slot| places.hash_of(slot.key) < hash)
            .count();
        let equal = live
            .skip(before)
            .take_while(|slot| places.hash_of(slot.key) == hash)
            .count();
        let start = home.saturating_add(before);
        start..start.saturating_add(equal)
    }

    /// Whether the next client needs a larger table first.
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.most()
    }

    /// Puts a missing client in. Returns whether the table had to grow for it.
    pub(crate) fn insert(&mut self, places: &Places, key: Key, hash: u32, state: S) -> bool {
        let mut place = self.place(places, key, hash).filter(|_| !self.is_full());
        let grows = place.is_none();
        if grows {
            self.rebuild(places, grown(self.capacity));
            // Once is enough: a table made anew has two vacant slots behind its last run.
            place = self.place(places, key, hash);
        }
        let Some((at, vacant)) = place else {
            return grows;
        };
        if let Some(run) = self.slots.get_mut(at..=vacant) {
            run.rotate_right(1);
        }
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = Slot { key, state };
        }
        self.live = self.live.saturating_add(1);
        grows
    }

    /// Where a missing client would have to be put, and the vacant slot that ends the run there;
    /// `None` if that is the last slot, which stays vacant.
    fn place(&self, places: &Places, key: Key, hash: u32) -> Option<(usize, usize)> {
        let found = self.find(places, key, hash);
        let (Found::At(at) | Found::Otherwise(at) | Found::Missing(at)) = found;
        let run = self.slots.get(at..)?;
        let vacant = run.iter().position(|slot| slot.key.is_vacant())?;
        let vacant = at.saturating_add(vacant);
        (vacant < self.slots.len().saturating_sub(1)).then_some((at, vacant))
    }

    /// Forgets the client at `at`.
    pub(crate) fn remove(&mut self, places: &Places, at: usize) {
        let behind = self.slots.get(at.saturating_add(1)..).unwrap_or_default();
        // Those behind it move up until one is at home or nobody is there.
        let shift = behind
            .iter()
            .zip(at.saturating_add(1)..)
            .take_while(|(slot, at)| {
                !slot.key.is_vacant() && self.home(places.hash_of(slot.key)) < *at
            })
            .count();
        let last = at.saturating_add(shift);
        if let Some(run) = self.slots.get_mut(at..=last) {
            run.rotate_left(1);
        }
        if let Some(slot) = self.slots.get_mut(last) {
            *slot = Slot {
                key: Key::VACANT,
                state: S::default(),
            };
            self.live = self.live.saturating_sub(1);
        }
    }

    /// Gives memory back when less than a quarter of it is used; an empty table keeps `least`
    /// homes. Returns whether it did.
    pub(crate) fn shrink(&mut self, places: &Places, least: u32) -> bool {
        if self.live >= self.capacity >> 2 {
            return false;
        }
        let capacity = match self.live {
            0 => least,
            live => live.saturating_mul(2).max(LEAST),
        };
        let shrinks = capacity < self.capacity;
        if shrinks {
            self.rebuild(places, capacity);
        }
        shrinks
    }

    /// Moves every client to a table of `capacity` homes, from front to back. None only for nobody.
    fn rebuild(&mut self, places: &Places, capacity: u32) {
        let old = core::mem::take(&mut self.slots);
        self.capacity = capacity;
        if capacity == 0 {
            return;
        }
        let least = index(capacity.saturating_add(spare(capacity)));
        let mut slots = Vec::with_capacity(least);
        let vacant = Slot {
            key: Key::VACANT,
            state: S::default(),
        };
        for slot in old.into_iter().filter(|slot| !slot.key.is_vacant()) {
            let home = self.home(places.hash_of(slot.key));
            if slots.len() < home {
                slots.resize(home, vacant.clone());
            }
            slots.push(slot);
        }
        slots.resize(least.max(slots.len().saturating_add(2)), vacant);
        self.slots = slots.into_boxed_slice();
    }

    /// Bytes on the heap.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.slots.len().saturating_mul(size_of::<Slot<S>>())
    }

    /// Every client's key and state, in the order of their hashes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, &S)> {
        let live = self.slots.iter().filter(|slot| !slot.key.is_vacant());
        live.map(|slot| (slot.key, &slot.state))
    }

    /// How many slots there are, vacant ones among them.
    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Whose slot that is; `None` if nobody's.
    pub(crate) fn key(&self, at: usize) -> Option<Key> {
        let key = self.slots.get(at)?.key;
        (!key.is_vacant()).then_some(key)
    }

    /// Panics unless every client can be found and the order holds.
    #[cfg(any(test, loom))]
    pub(crate) fn validate(&self, places: &Places) {
        assert_eq!(self.iter().count(), self.len());
        assert!(self.len() <= self.most().max(index(self.live.min(LEAST))));
        assert!(self.iter().is_sorted_by_key(|(key, _)| places.hash_of(key)));
        for (at, slot) in self
            .slots
            .iter()
            .enumerate()
            .filter(|(_, slot)| !slot.key.is_vacant())
        {
            let hash = places.hash_of(slot.key);
            assert_eq!(self.find(places, slot.key, hash), Found::At(at));
            assert!(self.with_hash(places, hash).contains(&at));
        }
        if let Some(last) = self.slots.last() {
            assert!(last.key.is_vacant());
        }
    }
}
