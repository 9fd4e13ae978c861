//! From a kernel thread id to a slot, readable in a signal handler.
//!
//! Open addressing with linear probing over single words (`tid << 32 | slot + 1`), twice as many as there are slots, so that a probe always
//! ends at a free word and mostly at the first one. Words are filled and overwritten, never removed, until [`TidIndex::clear`].

use std::sync::atomic::{AtomicU64, Ordering};

use crate::limits::PYTHON_THREADS;
use crate::model::Tid;

/// Words of the index: at most half of them are ever in use.
const WORDS: usize = (PYTHON_THREADS * 2).next_power_of_two();

/// See the module's text.
#[derive(Debug)]
pub(super) struct TidIndex {
    words: [AtomicU64; WORDS],
}

impl TidIndex {
    pub(super) const fn new() -> Self {
        TidIndex {
            words: [const { AtomicU64::new(0) }; WORDS],
        }
    }

    /// The words in the order in which `tid` is looked for.
    fn probe(&self, tid: Tid) -> impl Iterator<Item = &AtomicU64> {
        // Kernel ids count up: neighbours get neighbouring words, and no two of 512 live threads in a row share one.
        let start = tid.get() as usize % WORDS;
        let (before, from) = self.words.split_at_checked(start).unwrap_or((&self.words, &[]));
        from.iter().chain(before)
    }

    /// The slot of `tid`, if it has one.
    #[inline]
    pub(super) fn find(&self, tid: Tid) -> Option<usize> {
        for word in self.probe(tid) {
            // Acquire, with the Release stores in `set`: the slot's stack was opened before.
            let word = word.load(Ordering::Acquire);
            if word == 0 {
                return None;
            }
            if (word >> 32) as u32 == tid.get() as u32 {
                return (word as u32 as usize).checked_sub(1);
            }
        }
        None
    }

    /// Points `tid` at `slot`, or at none; the newest call for a thread id wins. Only a thread itself does this for its own id.
    pub(super) fn set(&self, tid: Tid, slot: Option<usize>) {
        let new = u64::from(tid.get() as u32) << 32 | slot.map_or(0, |slot| slot as u64 + 1);
        for word in self.probe(tid) {
            // Relaxed: only compared here; what it points at is not followed.
            let mut seen = word.load(Ordering::Relaxed);
            if seen == 0 {
                // Release, with the Acquire load in `find`. Another thread may take this word first; then it is looked at again.
                match word.compare_exchange(0, new, Ordering::Release, Ordering::Relaxed) {
                    Ok(_) => return,
                    Err(other) => seen = other,
                }
            }
            if (seen >> 32) as u32 == tid.get() as u32 {
                // Release, with the Acquire load in `find`.
                word.store(new, Ordering::Release);
                return;
            }
        }
    }

    /// Forgets all.
    pub(super) fn clear(&self) {
        // Relaxed: a handler that still sees an old word reads a stack that is being emptied, which is safe at any time.
        self.words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colliding_ids_are_told_apart() {
        let index = TidIndex::new();
        let ids: Vec<Tid> = (0..PYTHON_THREADS as i32)
            .map(|n| Tid::new(7 + n * WORDS as i32))
            .collect();
        for (slot, tid) in ids.iter().enumerate() {
            index.set(*tid, Some(slot));
        }
        for (slot, tid) in ids.iter().enumerate() {
            assert_eq!(index.find(*tid), Some(slot));
        }
        assert_eq!(index.find(Tid::new(7 + PYTHON_THREADS as i32 * WORDS as i32)), None);
    }

    #[test]
    fn the_newest_slot_of_an_id_wins_and_can_be_taken_away() {
        let index = TidIndex::new();
        index.set(Tid::new(5), Some(1));
        index.set(Tid::new(5), Some(2));
        assert_eq!(index.find(Tid::new(5)), Some(2));
        index.set(Tid::new(5), None);
        assert_eq!(index.find(Tid::new(5)), None);
        index.clear();
        assert_eq!(index.find(Tid::new(5)), None);
    }
}
