//! `std::shared_ptr`.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicI64, Ordering};

use super::scheduler::Task;
use super::slot::Slot;

vtable_slots! {
    /// Slots of `std::__shared_weak_count`, libc++'s control block. Its class is not in the debug information; the test reads the vtable
    /// of the control block that `EndstoneScheduler` emits.
    ControlBlockSlots of "std::__1::__shared_weak_count" {
        ON_ZERO_SHARED = 2 "__on_zero_shared" () -> super::Pass::Nothing;
        ON_ZERO_SHARED_WEAK = 4 "__on_zero_shared_weak" () -> super::Pass::Nothing;
    }
}

/// `std::shared_ptr<T>`: an owning pointer; dropping it gives up our share.
#[repr(C)]
#[derive(Debug)]
pub struct SharedPtr<T> {
    pointer: *mut c_void,
    control: *mut ControlBlock,
    shares: PhantomData<T>,
}

layout! { SharedPtr<Task<'static>>, mirrors "std::__1::shared_ptr<endstone::Task>", 16 bytes, in memory true {
    pointer @ 0 = "__ptr_";
    control @ 8 = "__cntrl_";
} }

/// The head of every control block. Counts are one less than the number of owners.
#[repr(C)]
struct ControlBlock {
    vtable: *const *const c_void,
    shared_owners: AtomicI64,
    weak_owners: AtomicI64,
}

impl<T> SharedPtr<T> {
    /// A pointer that owns nothing.
    pub const fn null() -> Self {
        SharedPtr {
            pointer: std::ptr::null_mut(),
            control: std::ptr::null_mut(),
            shares: PhantomData,
        }
    }

    /// The object, or null.
    pub fn as_ptr(&self) -> *mut c_void {
        self.pointer
    }
}

impl<T> Drop for SharedPtr<T> {
    fn drop(&mut self) {
        if self.control.is_null() {
            return;
        }
        let run = |slot: Slot| {
            // SAFETY: the control block is alive until its weak count is given up, and both slots take nothing and return nothing.
            unsafe { call!(self.control.cast::<c_void>(), slot; ()) }
        };
        // SAFETY: our share keeps the control block alive.
        let block = unsafe { &*self.control };
        // AcqRel pairs with the same operation of the other owners (libc++ uses acq_rel here): whoever is last sees all their writes.
        if block.shared_owners.fetch_sub(1, Ordering::AcqRel) == 0 {
            run(ControlBlockSlots::ON_ZERO_SHARED);
            // The owners together hold one weak share. AcqRel as above, with the weak owners.
            if block.weak_owners.fetch_sub(1, Ordering::AcqRel) == 0 {
                run(ControlBlockSlots::ON_ZERO_SHARED_WEAK);
            }
        }
    }
}
