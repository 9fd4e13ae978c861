//! The atomics of this folder: `std`'s, or loom's under `--cfg loom`, so that the models check the very code that ships.

#[cfg(not(loom))]
pub(super) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, fence};

#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, fence};

#[cfg(loom)]
pub(super) use loom::cell::UnsafeCell;

/// `std`'s cell with loom's interface: access is a closure, so that loom can see how long it lasts.
#[cfg(not(loom))]
#[derive(Debug)]
pub(super) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(super) fn new(value: T) -> Self {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    #[inline(always)]
    pub(super) fn with<R>(&self, access: impl FnOnce(*const T) -> R) -> R {
        access(self.0.get())
    }

    #[inline(always)]
    pub(super) fn with_mut<R>(&self, access: impl FnOnce(*mut T) -> R) -> R {
        access(self.0.get())
    }
}
