//! The memory of a thread that other threads have freed, which mimalloc leaves to the thread that allocated it.

mod raw {
    #[expect(unsafe_code, reason = "mimalloc's crate does not declare this function")]
    unsafe extern "C" {
        pub(super) safe fn mi_collect(force: bool);
    }
}

/// Makes memory of this thread that other threads have freed available again. mimalloc does so only after a hundred
/// allocations of large blocks, and the thread that sends a handler's reply frees what the handler's thread allocated.
pub(crate) fn take_back() {
    raw::mi_collect(false);
}

/// Returns the memory that this thread does not use to the system.
pub(crate) fn release() {
    raw::mi_collect(true);
}
