//! A `std::shared_ptr` that can be copied, which a plugin never does but a server must.

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicI64, Ordering};

use endstone_spark::endstone::abi::SharedPtr;

/// One share of a C++ object, passed to and from C++ as a `std::shared_ptr<T>`.
#[repr(transparent)]
#[derive(Debug)]
pub struct Share<T>(SharedPtr<T>);
// SAFETY: the counters are atomic and C++ drops shares on any thread.
unsafe impl<T> Send for Share<T> {}

/// The words of a `std::shared_ptr`: the object, and the control block, which counts owners minus one after its vtable pointer.
#[repr(C)]
struct Words {
    object: *mut u8,
    control: *const ControlBlock,
}

#[repr(C)]
struct ControlBlock {
    vtable: *const usize,
    owners: AtomicI64,
}

const _: () = assert!(size_of::<Words>() == size_of::<SharedPtr<u8>>());

impl<T> Share<T> {
    pub const NULL: Share<T> = Share(SharedPtr::null());

    /// The object, or null.
    pub fn as_ptr(&self) -> *mut T {
        self.0.as_ptr().cast()
    }
}

impl<T> Clone for Share<T> {
    fn clone(&self) -> Self {
        // SAFETY: both types are the two words of a shared pointer; the copy below is not dropped before it counts as a share.
        let (words, copy) = unsafe {
            (
                &*(&raw const self.0).cast::<Words>(),
                ManuallyDrop::new(std::ptr::read(&raw const self.0)),
            )
        };
        if !words.control.is_null() {
            // SAFETY: our share keeps the control block alive. Relaxed: nothing is published by taking another share of what we own,
            // and the drop's AcqRel orders the end, as in libc++.
            unsafe { (*words.control).owners.fetch_add(1, Ordering::Relaxed) };
        }
        Share(ManuallyDrop::into_inner(copy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_one_more_owner_and_its_drop_one_less() {
        let block = ControlBlock {
            vtable: std::ptr::null(),
            owners: AtomicI64::new(0),
        };
        let mut object = 7u8;
        let words = Words {
            object: &raw mut object,
            control: &raw const block,
        };
        // SAFETY: the words form a shared pointer whose only share is never dropped, so no slot of the control block is ever called.
        let share = ManuallyDrop::new(unsafe { std::ptr::read((&raw const words).cast::<Share<u8>>()) });
        let copy = Share::clone(&share);
        assert_eq!(block.owners.load(Ordering::Relaxed), 1);
        assert_eq!(copy.as_ptr(), words.object);
        drop(copy);
        assert_eq!(block.owners.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn nothing_can_be_shared_too() {
        assert!(Share::<u8>::NULL.clone().as_ptr().is_null());
    }
}
