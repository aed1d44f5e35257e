//! Measures how long threads wait for the lock of an endpoint. For benchmarks only, because it costs each call time.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::clock;

static COUNT: AtomicU64 = AtomicU64::new(0);
static NANOSECONDS: AtomicU64 = AtomicU64::new(0);

/// Returns how often threads of this process waited for the lock of an endpoint, and how long in all.
pub fn lock_waits() -> (u64, Duration) {
    let waited = Duration::from_nanos(NANOSECONDS.load(Ordering::Relaxed));
    (COUNT.load(Ordering::Relaxed), waited)
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.try_lock() {
        Ok(guard) => return guard,
        Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => (),
    }
    let begun = clock::now();
    let guard = mutex.lock().unwrap_or_else(PoisonError::into_inner);
    let waited = u64::try_from(clock::since(begun).as_nanos()).unwrap_or(u64::MAX);
    COUNT.fetch_add(1, Ordering::Relaxed);
    NANOSECONDS.fetch_add(waited, Ordering::Relaxed);
    guard
}
