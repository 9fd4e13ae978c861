//! A moment after which something is not waited for any more, set while others already wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, MutexGuard};

use super::clock;

/// How often it is looked whether it has been set.
const LOOK: Duration = Duration::from_millis(20);

/// None at first. All copies are the same one.
#[derive(Clone, Debug)]
pub struct Deadline(Arc<AtomicU64>);

impl Default for Deadline {
    fn default() -> Self {
        Deadline(Arc::new(AtomicU64::new(u64::MAX)))
    }
}

impl Deadline {
    /// Sets it so far from now, or leaves an earlier one.
    pub fn set_in(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        // Relaxed: only the moment matters, nothing is handed over with it.
        self.0
            .fetch_min(clock::monotonic().0.saturating_add(nanos), Ordering::Relaxed);
    }

    /// Takes it back: nobody waits any more.
    pub fn lift(&self) {
        // Relaxed: as above.
        self.0.store(u64::MAX, Ordering::Relaxed);
    }

    /// Waits on `changed` while `waits` says so, at most for `limit`, and not after the deadline.
    pub fn wait_while<T>(
        &self,
        changed: &Condvar,
        guard: &mut MutexGuard<'_, T>,
        limit: Duration,
        mut waits: impl FnMut(&mut T) -> bool,
    ) {
        let mut left = limit;
        while !left.is_zero() && !self.is_over() && waits(guard) {
            let look = left.min(LOOK);
            changed.wait_while_for(guard, &mut waits, look);
            left -= look;
        }
    }

    /// Whether it has passed.
    pub fn is_over(&self) -> bool {
        // Relaxed: as above.
        clock::monotonic().0 >= self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_over_for_all_copies_once_it_has_passed_and_does_not_move_back() {
        let deadline = Deadline::default();
        let copy = deadline.clone();
        assert!(!copy.is_over());
        deadline.set_in(Duration::MAX);
        assert!(!copy.is_over());
        deadline.set_in(Duration::ZERO);
        assert!(copy.is_over());
        deadline.set_in(Duration::from_secs(3_600));
        assert!(copy.is_over());
        deadline.lift();
        assert!(!copy.is_over());
    }
}
