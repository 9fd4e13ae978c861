//! Memory in use, for tests: what the asking thread has allocated and not freed. Other tests run on other threads and do not disturb it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Constant and without a destructor: to touch it allocates nothing.
    static BYTES: Cell<i64> = const { Cell::new(0) };
}

/// The system's allocator, counted.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn add(bytes: i64) {
    BYTES.with(|all| all.set(all.get() + bytes));
}

// SAFETY: every call goes to the system's allocator with what it was given; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as i64);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        add(-(layout.size() as i64));
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size as i64 - layout.size() as i64);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(place, layout, size) }
    }
}

/// Bytes that this thread has allocated, less those that it has freed.
pub(crate) fn of_this_thread() -> i64 {
    BYTES.with(Cell::get)
}
