//! From a kernel thread id to a slot, readable in a signal handler.
//!
//! Open addressing with linear probing over single words (`tid << 32 | slot + 1`), twice as many as there are slots, so that a probe always
//! ends at a free word and mostly at the first one. Words are filled and overwritten, never removed, until [`TidIndex::clear`].

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::Tid;

/// See the module's text. At most half of the words may ever be in use.
#[derive(Debug)]
pub(super) struct TidIndex<const WORDS: usize> {
    words: [AtomicU64; WORDS],
}

impl<const WORDS: usize> TidIndex<WORDS> {
    #[cfg(not(loom))]
    pub(super) const fn new() -> Self {
        TidIndex {
            words: [const { AtomicU64::new(0) }; WORDS],
        }
    }

    #[cfg(loom)]
    pub(super) fn new() -> Self {
        TidIndex {
            words: std::array::from_fn(|_| AtomicU64::new(0)),
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::limits::PYTHON_THREADS;

    const WORDS: usize = PYTHON_THREADS * 2;

    #[test]
    fn colliding_ids_are_told_apart() {
        let index = TidIndex::<WORDS>::new();
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
        let index = TidIndex::<WORDS>::new();
        index.set(Tid::new(5), Some(1));
        index.set(Tid::new(5), Some(2));
        assert_eq!(index.find(Tid::new(5)), Some(2));
        index.set(Tid::new(5), None);
        assert_eq!(index.find(Tid::new(5)), None);
        index.clear();
        assert_eq!(index.find(Tid::new(5)), None);
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use loom::sync::Arc;
    use loom::thread;

    use super::{Tid, TidIndex};

    /// Two threads whose ids begin at the same word take their slots at the same time, as they may in a free-threaded build: each finds its own, and a
    /// handler on a third sees each slot or none, never the other's.
    #[test]
    fn loom_threads_that_come_at_the_same_time_keep_their_slots() {
        loom::model(|| {
            let index = Arc::new(TidIndex::<4>::new());
            let (one, other) = (Tid::new(5), Tid::new(9));
            let arriving = {
                let index = Arc::clone(&index);
                thread::spawn(move || {
                    index.set(other, Some(1));
                    assert_eq!(index.find(other), Some(1));
                })
            };
            let looking = {
                let index = Arc::clone(&index);
                thread::spawn(move || {
                    assert!(matches!(index.find(one), None | Some(0)));
                    assert!(matches!(index.find(other), None | Some(1)));
                })
            };
            index.set(one, Some(0));
            assert_eq!(index.find(one), Some(0));
            arriving.join().unwrap();
            looking.join().unwrap();
            assert_eq!((index.find(one), index.find(other)), (Some(0), Some(1)));
        });
    }

    /// A dead thread's id is given to a new thread while a handler looks: it sees the old slot or the new one.
    #[test]
    fn loom_an_id_that_is_used_again_leads_to_one_of_its_slots() {
        loom::model(|| {
            let index = Arc::new(TidIndex::<2>::new());
            index.set(Tid::new(5), Some(0));
            let arriving = {
                let index = Arc::clone(&index);
                thread::spawn(move || index.set(Tid::new(5), Some(1)))
            };
            assert!(matches!(index.find(Tid::new(5)), Some(0 | 1)));
            arriving.join().unwrap();
            assert_eq!(index.find(Tid::new(5)), Some(1));
        });
    }
}
