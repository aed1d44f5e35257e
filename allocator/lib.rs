//! The memory allocator of the native halves for Python and Node: mimalloc, which returns and reuses memory of closed
//! connections where glibc fragments it.

use std::{
    alloc::{GlobalAlloc, Layout},
    cell::Cell,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread::sleep,
    time::Duration,
};

use mimalloc::MiMalloc;

/// The size of a large block in bytes. To mimalloc, whose pages hold several smaller blocks, it is 128 KiB.
const LARGE: usize = 256 * 1024;
/// The bytes of large blocks that the process allocates before a thread looks again for its blocks that other threads have freed. The
/// blocks of all threads count, because several threads in turn may read large messages, and each would keep that much.
const COLLECT_INTERVAL: usize = 48 * 1024 * 1024;

/// The maximum number of times that a thread tries to return memory alone, a millisecond apart.
const MAX_TRIES: usize = 1_000;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Returns the memory that the current thread does not use to the system. For threads that end.
///
/// One thread at a time returns memory. While one does, mimalloc returns none for the others, and it does not try again before the
/// process allocates.
pub fn release() {
    static RETURNING: Mutex<()> = Mutex::new(());
    // Bounded, because in a forked process the lock may belong to a thread that no longer exists.
    let returning = (0..MAX_TRIES).find_map(|_| {
        let returning = RETURNING.try_lock().ok();
        if returning.is_none() {
            sleep(Duration::from_millis(1));
        }
        returning
    });
    raw::mi_collect(true);
    drop(returning);
}

/// mimalloc, with one addition. A block that another thread has freed can be used again once the thread that allocated it has
/// looked for such blocks. mimalloc does that after a hundred allocations of large blocks, whatever their size; this allocator
/// also after a number of bytes, because messages are often freed by another thread than the one that allocated them.
struct Allocator;

impl Allocator {
    fn count(size: usize) {
        if size >= LARGE {
            count_large(size);
        }
    }
}

/// The bytes of large blocks that the process has allocated; it wraps.
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The value of `ALLOCATED` when this thread last looked for freed blocks.
    static COLLECTED_AT: Cell<usize> = const { Cell::new(0) };
}

#[cold]
fn count_large(size: usize) {
    let allocated = ALLOCATED.fetch_add(size, Ordering::Relaxed).wrapping_add(size);
    // Without a destructor, the cell is there until the thread has ended.
    if allocated.wrapping_sub(COLLECTED_AT.get()) >= COLLECT_INTERVAL {
        COLLECTED_AT.set(allocated);
        raw::mi_collect(false);
    }
}

#[expect(
    unsafe_code,
    reason = "an allocator can't be written otherwise; every call goes to mimalloc's"
)]
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count(layout.size());
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::count(layout.size());
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        unsafe { MiMalloc.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::count(size);
        unsafe { MiMalloc.realloc(block, layout, size) }
    }
}

mod raw {
    #[expect(unsafe_code, reason = "mimalloc's crate does not declare this function")]
    unsafe extern "C" {
        pub(super) safe fn mi_collect(force: bool);
    }
}
