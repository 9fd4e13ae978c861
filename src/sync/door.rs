//! A door that threads go in and out by, until it is closed.
//!
//! **Problem.** Whoever takes something down must know that nobody is using it and that nobody will begin to. Asking whether it still stands and then using it
//! are two steps, between which the scheduler may stop a thread for as long as it likes.
//!
//! **Algorithm.** A thread counts itself in before it looks whether the door is closed, and whoever closes it does so before it looks at the count: of the two, one sees the
//! other.
//!
//! **Price.** Two additions and a full fence for each visit.
//!
//! **Assumptions.** None: a thread that never comes out keeps the count above zero, so whoever waits for it must do that for a limited time.

use super::primitive::{AtomicBool, AtomicU64, Ordering, fence};

/// See the module's text.
#[derive(Debug)]
pub struct Door {
    closed: AtomicBool,
    inside: AtomicU64,
}

impl Door {
    /// An open one.
    #[cfg(not(loom))]
    #[allow(clippy::new_without_default, reason = "a default door says less than a new one")]
    pub const fn new() -> Self {
        Door {
            closed: AtomicBool::new(false),
            inside: AtomicU64::new(0),
        }
    }

    /// The same: loom's atomics are not made in constants.
    #[cfg(loom)]
    pub fn new() -> Self {
        Door {
            closed: AtomicBool::new(false),
            inside: AtomicU64::new(0),
        }
    }

    /// Whether the calling thread is inside now. If so, it is to [`leave`](Door::leave).
    pub fn enter(&self) -> bool {
        self.inside.fetch_add(1, Ordering::Relaxed);
        // SeqCst, with the fence in `close`: whichever of the two comes first, what stands before it is seen by what stands after the other.
        fence(Ordering::SeqCst);
        if self.closed.load(Ordering::Relaxed) {
            self.leave();
            return false;
        }
        true
    }

    /// The calling thread goes out.
    pub fn leave(&self) {
        // Release, with the load in `is_empty`: what was done inside is over for whoever finds nobody there.
        self.inside.fetch_sub(1, Ordering::Release);
    }

    /// Lets nobody in any more, for ever.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        // See `enter`.
        fence(Ordering::SeqCst);
    }

    /// Whether nobody is inside. Once that was so after [`close`](Door::close), nobody is, for ever; one who is turned away may still be counted for an instant.
    pub fn is_empty(&self) -> bool {
        self.inside.load(Ordering::Acquire) == 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn nobody_comes_in_by_a_closed_door_and_who_is_in_comes_out() {
        let door = Door::new();
        assert!(door.enter() && door.enter());
        door.leave();
        assert!(!door.is_empty());
        door.close();
        assert!(!door.enter());
        assert!(!door.is_empty());
        door.leave();
        assert!(door.is_empty());
        assert!(!door.enter() && door.is_empty());
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use super::super::primitive::UnsafeCell;
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    struct House {
        door: Door,
        /// True while it stands.
        stands: UnsafeCell<bool>,
    }

    // SAFETY: `stands` is read inside only, and written by whoever closed the door and found nobody inside; loom looks for accesses at the same time.
    unsafe impl Sync for House {}

    #[test]
    fn loom_nobody_is_inside_when_it_is_taken_down() {
        loom::model(|| {
            let house = Arc::new(House {
                door: Door::new(),
                stands: UnsafeCell::new(true),
            });
            let visitors: Vec<_> = (0..2)
                .map(|_| {
                    let house = Arc::clone(&house);
                    thread::spawn(move || {
                        if house.door.enter() {
                            // SAFETY: see above; loom's cell checks it.
                            assert!(house.stands.with(|stands| unsafe { *stands }));
                            house.door.leave();
                        }
                    })
                })
                .collect();
            house.door.close();
            if house.door.is_empty() {
                // SAFETY: see above; loom's cell checks it.
                house.stands.with_mut(|stands| unsafe { *stands = false });
            }
            for visitor in visitors {
                visitor.join().unwrap();
            }
        });
    }
}
