//! A value that signal handlers read while one publisher replaces it.
//!
//! **Problem.** Handlers need the current list of modules. Modules come and go, so the list is replaced while handlers may be reading the old one, which
//! must then be freed, but not under their hands.
//!
//! **Why not an `Arc`.** Taking a count of something that may vanish in that instant needs a lock or hazard pointers, and the last reader would free:
//! a handler must not call `free`.
//!
//! **Algorithm.** Readers count themselves in before they load the pointer and out when they are done. The publisher swaps the pointer, keeps the
//! old value aside, and frees what it kept when it once sees the count at zero: a reader that comes later finds the new value.
//!
//! **Price.** Two atomic additions and a fence per reader. A reader that never leaves (its thread was torn out of the handler) keeps all old values
//! alive: memory is lost, never used after it was freed.
//!
//! **Assumptions.** Readers are short and come one by one, so the count often is zero.

use super::primitive::{AtomicPtr, AtomicU64, Ordering, fence};

/// See the module's text.
#[derive(Debug)]
pub struct Published<T> {
    current: AtomicPtr<T>,
    readers: AtomicU64,
}

// SAFETY: readers get `&T` on their own threads (T: Sync) and the publisher drops values that other threads made (T: Send).
unsafe impl<T: Send + Sync> Sync for Published<T> {}

impl<T> Published<T> {
    /// Nothing is published yet.
    #[allow(clippy::new_without_default)] // Made once, knowingly.
    pub fn new() -> Self {
        Published {
            current: AtomicPtr::new(std::ptr::null_mut()),
            readers: AtomicU64::new(0),
        }
    }

    /// Reader: counts itself in.
    pub fn enter(&self) -> Reading<'_, T> {
        // Relaxed: ordered by the fence.
        self.readers.fetch_add(1, Ordering::Relaxed);
        // Pairs with the fence in `Publisher::reclaim`: either that sees the count, or the load below sees the pointer that was swapped in before it.
        fence(Ordering::SeqCst);
        // Acquire: pairs with the Release of the swap in `publish`: who sees the pointer sees the value.
        let value = self.current.load(Ordering::Acquire);
        Reading { published: self, value }
    }

    /// How many readers are inside.
    pub fn readers(&self) -> u64 {
        // Acquire: pairs with the Release in Reading::drop, so that what a reader did is seen once it is gone.
        self.readers.load(Ordering::Acquire)
    }
}

/// A reader that is counted in.
#[derive(Debug)]
pub struct Reading<'a, T> {
    published: &'a Published<T>,
    value: *mut T,
}

impl<T> Reading<'_, T> {
    /// The value that is current, `None` when nothing is published.
    pub fn get(&self) -> Option<&T> {
        // SAFETY: the pointer came from Box::into_raw in `publish` or is null; it is freed only after the count was seen at zero, and this reader is counted.
        unsafe { self.value.as_ref() }
    }
}

impl<T> Drop for Reading<'_, T> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire loads of the count: the reads through `value` happen before the free.
        self.published.readers.fetch_sub(1, Ordering::Release);
    }
}

/// The right to publish. Make one per [`Published`].
#[derive(Debug)]
pub struct Publisher<'a, T> {
    published: &'a Published<T>,
    retired: Vec<Box<T>>,
}

impl<'a, T> Publisher<'a, T> {
    /// The publisher of `published`.
    pub fn new(published: &'a Published<T>) -> Self {
        Publisher {
            published,
            retired: Vec::new(),
        }
    }

    /// Makes `value` the current one, or nothing. The old one is kept until no reader can hold it.
    pub fn publish(&mut self, value: Option<Box<T>>) {
        let new = value.map_or(std::ptr::null_mut(), Box::into_raw);
        // AcqRel: Release publishes the new value; Acquire takes the old one as it was published.
        let old = self.published.current.swap(new, Ordering::AcqRel);
        if !old.is_null() {
            // SAFETY: `old` came from Box::into_raw above and the swap made us its only keeper; readers only share it.
            self.retired.push(unsafe { Box::from_raw(old) });
        }
        self.reclaim();
    }

    /// Frees what no reader can hold any more. Returns how many old values are still kept.
    pub fn reclaim(&mut self) -> usize {
        if !self.retired.is_empty() {
            // Pairs with the fence in `enter`.
            fence(Ordering::SeqCst);
            if self.published.readers() == 0 {
                self.retired.clear();
            }
        }
        self.retired.len()
    }
}

impl<T> Drop for Publisher<'_, T> {
    fn drop(&mut self) {
        self.publish(None);
        // Still in a reader's hands: never freed rather than freed too early.
        std::mem::forget(std::mem::take(&mut self.retired));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn an_old_value_lives_until_its_reader_leaves() {
        let published = Published::new();
        let mut publisher = Publisher::new(&published);
        let first = Arc::new(1);
        publisher.publish(Some(Box::new(Arc::clone(&first))));
        let reading = published.enter();
        publisher.publish(Some(Box::new(Arc::new(2))));
        assert_eq!(reading.get().map(|value| **value), Some(1));
        assert_eq!(publisher.reclaim(), 1);
        assert_eq!(published.enter().get().map(|value| **value), Some(2));
        drop(reading);
        assert_eq!(publisher.reclaim(), 0);
        assert_eq!(Arc::strong_count(&first), 1);
        drop(publisher);
        assert!(published.enter().get().is_none());
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// loom's cell reports an access to a value that the publisher has already freed as a race with `Drop`.
    struct Watched(loom::cell::UnsafeCell<u32>);

    // SAFETY: the model only reads it concurrently; the writer is Drop, and that it is never concurrent is what the model checks.
    unsafe impl Sync for Watched {}

    impl Drop for Watched {
        fn drop(&mut self) {
            // SAFETY: Drop has the value to itself.
            self.0.with_mut(|value| unsafe { *value = 0 });
        }
    }

    #[test]
    fn loom_a_reader_never_sees_a_freed_value() {
        loom::model(|| {
            let published = Arc::new(Published::new());
            let mut publisher = Publisher::new(&published);
            publisher.publish(Some(Box::new(Watched(loom::cell::UnsafeCell::new(1)))));
            let reader = {
                let published = Arc::clone(&published);
                thread::spawn(move || {
                    let reading = published.enter();
                    if let Some(watched) = reading.get() {
                        // SAFETY: see Watched.
                        let value = watched.0.with(|value| unsafe { *value });
                        assert!(value == 1 || value == 2);
                    }
                })
            };
            publisher.publish(Some(Box::new(Watched(loom::cell::UnsafeCell::new(2)))));
            publisher.reclaim();
            reader.join().unwrap();
            assert_eq!(publisher.reclaim(), 0);
        });
    }
}
