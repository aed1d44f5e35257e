//! Counts the bytes that a thread holds, so that a target's memory can be held against its bound.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

thread_local! {
    /// Bytes allocated less bytes freed by this thread, and the maximum since the last reset.
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs a function; returns the most bytes that it held at a time, beyond those held before, and its result.
pub fn peak_of<T>(function: impl FnOnce() -> T) -> (usize, T) {
    let before = HELD.get().0;
    HELD.set((before, before));
    let result = function();
    (HELD.get().1.abs_diff(before), result)
}

fn count(bytes: isize) {
    // The cell is gone while a thread ends.
    let _ = HELD.try_with(|cell| {
        let (held, most) = cell.get();
        let held = held + bytes;
        cell.set((held, most.max(held)));
    });
}

#[expect(
    unsafe_code,
    reason = "an allocator can't be written otherwise; every call goes to the system's"
)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.cast_signed() - layout.size().cast_signed());
        unsafe { System.realloc(pointer, layout, size) }
    }
}
