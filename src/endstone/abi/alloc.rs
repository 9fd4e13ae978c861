//! The host's `operator new` and `operator delete`.
//!
//! Endstone's launcher preloads mimalloc, and the runtime frees with the *sized* `operator delete`, passing the size that it computes from
//! the object: a string's capacity, a vector's capacity, `sizeof(T)`. A block that is larger or smaller than that corrupts mimalloc's
//! pages (seen 10 of 10 times with over-allocation). So blocks that change hands come from here, with exactly that size.

use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

type New = unsafe extern "C-unwind" fn(usize) -> *mut c_void;
type Delete = unsafe extern "C" fn(*mut c_void);

struct Pair {
    new: New,
    delete: Delete,
}

fn pair() -> &'static Pair {
    static PAIR: OnceLock<Pair> = OnceLock::new();
    PAIR.get_or_init(|| {
        // `operator new(size_t)` and `operator delete(void*)`, from the scope in which the runtime finds its own.
        let (new, delete) = (global_symbol(c"_Znwm"), global_symbol(c"_ZdlPv"));
        if new.is_null() || delete.is_null() {
            // No C++ in this process, so nobody to exchange memory with.
            return Pair {
                new: malloc,
                delete: libc_free,
            };
        }
        // SAFETY: these mangled names can only be the two replaceable global allocation functions, whose types the C++ standard fixes.
        unsafe {
            Pair {
                new: std::mem::transmute::<*mut c_void, New>(new),
                delete: std::mem::transmute::<*mut c_void, Delete>(delete),
            }
        }
    })
}

/// The address of `name` in the process's global scope, or null.
pub(super) fn global_symbol(name: &CStr) -> *mut c_void {
    // SAFETY: `name` is a terminated string; RTLD_DEFAULT is always a valid handle.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

unsafe extern "C-unwind" fn malloc(size: usize) -> *mut c_void {
    // SAFETY: malloc takes any size.
    let block = unsafe { libc::malloc(size.max(1)) };
    if block.is_null() {
        std::alloc::handle_alloc_error(std::alloc::Layout::new::<u8>());
    }
    block
}

unsafe extern "C" fn libc_free(block: *mut c_void) {
    // SAFETY: the caller passes a block of `malloc` above.
    unsafe { libc::free(block) }
}

/// A block of exactly `size` bytes from the host's `operator new`, aligned to 16. Its new owner frees it and names this size.
pub fn allocate(size: usize) -> *mut c_void {
    // SAFETY: `operator new` takes any size; it throws when memory is used up, which ends in Endstone's own handler.
    unsafe { (pair().new)(size) }
}

/// Frees a block.
///
/// # Safety
///
/// `block` must be null, or a block of [`allocate`] or of the host's `operator new` that nobody else owns.
pub unsafe fn release(block: *mut c_void) {
    // SAFETY: the caller gives up a block of the paired allocation function; the unsized delete accepts null and blocks of any size.
    unsafe { (pair().delete)(block) }
}
