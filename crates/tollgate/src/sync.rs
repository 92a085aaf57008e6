//! Locks and atomics: the standard library's, or the model checker's under `--cfg loom`.

#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex, MutexGuard, atomic::AtomicU64, atomic::Ordering};

#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard, atomic::AtomicU64, atomic::Ordering};

/// Lets other threads go on, one of which has to.
pub(crate) fn pause() {
    #[cfg(not(loom))]
    std::thread::yield_now();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// Locks. No foreign code runs under any lock of this crate, so a poisoned one means that a call
/// panicked between two whole steps; what it guards is still consistent.
#[inline]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
