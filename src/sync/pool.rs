//! A few values that handlers borrow, the most recently used first.
//!
//! **Problem.** Unwinding needs a large scratch area with caches that are warm only if the same one is used again and again.
//!
//! **Algorithm.** A flag per value; a borrower takes the lowest free one. With few borrowers at a time it is nearly always the first, which is what
//! last-in first-out would give, without a list that a torn-away borrower could leave broken.
//!
//! **Price.** One compare-and-exchange, when the first is free.
//!
//! **Assumptions.** None: a borrower that never returns costs one value.

use super::primitive::{AtomicBool, Ordering, UnsafeCell};

#[derive(Debug)]
struct Place<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

/// See the module's text.
#[derive(Debug)]
pub struct Pool<T> {
    places: Box<[Place<T>]>,
}

// SAFETY: the value is reached only by the borrower whose exchange found `taken` false.
unsafe impl<T: Send> Sync for Pool<T> {}

impl<T> Pool<T> {
    /// A pool of these values.
    pub fn new(values: impl IntoIterator<Item = T>) -> Self {
        let places = values.into_iter().map(|value| Place {
            taken: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        });
        Pool {
            places: places.collect(),
        }
    }

    /// Runs `work` with the lowest free value; `None` when all are taken.
    pub fn borrow<R>(&self, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        // Acquire: pairs with the Release below, so that the last borrower's writes are seen. Relaxed on failure: nothing is read then.
        let take = |taken: &AtomicBool| taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        let place = self.places.iter().find(|place| take(&place.taken).is_ok())?;
        let result = place.value.with_mut(|value| {
            // SAFETY: our exchange turned `taken` from false to true, so until the store below nobody else gets here.
            work(unsafe { &mut *value })
        });
        // Release: pairs with the Acquire of the next borrower's exchange.
        place.taken.store(false, Ordering::Release);
        Some(result)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_value_is_lent() {
        let pool = Pool::new([1, 2]);
        let nested = pool.borrow(|first| {
            *first += 10;
            let second = pool.borrow(|second| {
                assert!(pool.borrow(|_| ()).is_none());
                *second
            });
            (*first, second)
        });
        assert_eq!(nested, Some((11, Some(2))));
        assert_eq!(pool.borrow(|first| *first), Some(11));
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    #[test]
    fn loom_a_value_has_one_borrower() {
        loom::model(|| {
            let pool = Arc::new(Pool::new([0u32]));
            let other = {
                let pool = Arc::clone(&pool);
                thread::spawn(move || pool.borrow(|value| *value += 1).is_some())
            };
            let mine = pool.borrow(|value| *value += 1).is_some();
            let theirs = other.join().unwrap();
            assert!(mine || theirs);
            assert_eq!(pool.borrow(|value| *value), Some(u32::from(mine) + u32::from(theirs)));
        });
    }
}
