//! The process-wide table of shadow stacks.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::index::TidIndex;
use super::reader::{ReadBuffer, ShadowRead};
use super::stack::ShadowStack;
use crate::limits::PYTHON_THREADS;
use crate::model::{MonotonicNanos, Tid};

/// All threads' shadow stacks. About a megabyte of zeroes, of which only the pages in use are ever backed by memory; it is never freed, so a
/// straggling callback or handler can touch nothing that is gone.
///
/// A slot is given to a thread once per session and stays its own until [`ShadowTable::reset`], even when the thread ends. The kernel
/// reuses thread ids: the newest claim of an id is the one that readers find, and a dead thread's slot is never written again.
#[derive(Debug)]
pub struct ShadowTable {
    /// Twice as many words as slots.
    index: TidIndex<{ (PYTHON_THREADS * 2).next_power_of_two() }>,
    /// Slots given away.
    claimed: AtomicU32,
    /// Claims that found none free.
    refused: AtomicU64,
    /// Claims of a thread id that had a stack already: the kernel has given a dead thread's id to a new one.
    reused: AtomicU64,
    /// The stacks are no longer what runs; readers get none.
    distrusted: AtomicBool,
    /// All stacks are watched, see [`ShadowStack::is_watched`].
    watched: AtomicBool,
    stacks: [ShadowStack; PYTHON_THREADS],
}

/// What all stacks counted since the last reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ShadowFigures {
    /// Threads that own a shadow stack.
    pub threads: u32,
    /// Threads that found none free.
    pub refused: u64,
    /// Threads that got the id of a dead one.
    pub reused: u64,
    /// Deepest stack, hidden frames included.
    pub deepest: u32,
    /// How often a stack went beyond the cap.
    pub truncations: u64,
    /// Entries dropped because their eval frame had ended without an event.
    pub stale_dropped: u64,
    /// Leave events whose code was not on the stack.
    pub unmatched_leaves: u64,
}

static GLOBAL: ShadowTable = ShadowTable::new();

impl ShadowTable {
    /// The only table that callbacks and handlers use.
    pub fn global() -> &'static ShadowTable {
        &GLOBAL
    }

    /// A table of its own, for a test.
    #[allow(clippy::new_without_default)] // A megabyte is made on purpose or not at all.
    pub const fn new() -> Self {
        ShadowTable {
            index: TidIndex::new(),
            claimed: AtomicU32::new(0),
            refused: AtomicU64::new(0),
            reused: AtomicU64::new(0),
            distrusted: AtomicBool::new(false),
            watched: AtomicBool::new(false),
            stacks: [const { ShadowStack::new() }; PYTHON_THREADS],
        }
    }

    /// Gives the calling thread, whose id is `tid`, an empty stack; `None` when all are taken (counted). The number tells slots apart and is
    /// below [`PYTHON_THREADS`].
    pub fn claim(&self, tid: Tid) -> Option<(usize, &ShadowStack)> {
        let more = |claimed: u32| (claimed < PYTHON_THREADS as u32).then(|| claimed + 1);
        // Relaxed: the number alone makes the slot this thread's; `reset` runs when no thread claims.
        let number = self.claimed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        let slot = number
            .ok()
            .and_then(|number| Some((number as usize, self.stacks.get(number as usize)?)));
        match slot {
            Some((_, stack)) => {
                stack.open();
                // Relaxed: with the interpreter's lock held, as in `watch`.
                if self.watched.load(Ordering::Relaxed) {
                    stack.watch();
                }
            }
            None => {
                // Relaxed: a figure.
                self.refused.fetch_add(1, Ordering::Relaxed);
            }
        }
        if self.index.find(tid).is_some() {
            // Relaxed: a figure.
            self.reused.fetch_add(1, Ordering::Relaxed);
        }
        // Without a slot too: a dead thread with the same id must not be taken for this one.
        self.index.set(tid, slot.map(|(number, _)| number));
        slot
    }

    /// One bounded attempt to copy the stack of `tid`. Async-signal-safe: loads and stores only.
    #[inline]
    pub fn read(&self, tid: Tid, out: &mut ReadBuffer) -> ShadowRead {
        // Relaxed: it takes effect soon; nothing else depends on it.
        if self.distrusted.load(Ordering::Relaxed) {
            return ShadowRead::NoStack;
        }
        match self.index.find(tid).and_then(|slot| self.stacks.get(slot)) {
            Some(stack) => stack.read(out),
            None => ShadowRead::NoStack,
        }
    }

    /// Handler, on the thread `tid` itself: asks for an audit of its stack at its next enter event. Async-signal-safe.
    #[inline]
    pub fn ask_for_audit(&self, tid: Tid, now: MonotonicNanos) {
        if let Some(stack) = self.index.find(tid).and_then(|slot| self.stacks.get(slot)) {
            stack.ask_for_audit(now);
        }
    }

    /// From now on, and until the next reset, readers get no frames: events no longer come as they should, so what is on the stacks is no longer
    /// what runs.
    pub fn distrust(&self) {
        // Relaxed: see `read`.
        self.distrusted.store(true, Ordering::Relaxed);
    }

    /// Whether [`ShadowTable::distrust`] was called since the last reset.
    pub fn is_distrusted(&self) -> bool {
        // Relaxed: see `read`.
        self.distrusted.load(Ordering::Relaxed)
    }

    /// From now on, and until the next reset, each enter event of every thread takes the long way. With the interpreter's lock held, so that no other
    /// thread is in a callback; in a free-threaded build one that is may take the short way until its stack next grows.
    pub fn watch(&self) {
        // Relaxed, all: see above.
        self.watched.store(true, Ordering::Relaxed);
        let claimed = self.claimed.load(Ordering::Relaxed) as usize;
        self.stacks.iter().take(claimed).for_each(ShadowStack::watch);
    }

    /// Whether [`ShadowTable::watch`] was called since the last reset.
    pub fn is_watched(&self) -> bool {
        // Relaxed: see `watch`.
        self.watched.load(Ordering::Relaxed)
    }

    /// Frees all slots. No callback may run meanwhile; readers may.
    pub fn reset(&self) {
        self.index.clear();
        // Relaxed, here and below: the caller made sure that no thread claims; what makes that sure also orders this.
        let claimed = self.claimed.load(Ordering::Relaxed) as usize;
        self.stacks.iter().take(claimed).for_each(ShadowStack::close);
        self.refused.store(0, Ordering::Relaxed);
        self.reused.store(0, Ordering::Relaxed);
        self.distrusted.store(false, Ordering::Relaxed);
        self.watched.store(false, Ordering::Relaxed);
        self.claimed.store(0, Ordering::Relaxed);
    }

    /// The counts, at any time, from any thread.
    pub fn figures(&self) -> ShadowFigures {
        // Relaxed: figures, not an order.
        let threads = self.claimed.load(Ordering::Relaxed);
        let none = ShadowFigures {
            threads,
            refused: self.refused.load(Ordering::Relaxed),
            reused: self.reused.load(Ordering::Relaxed),
            ..ShadowFigures::default()
        };
        let stacks = self.stacks.iter().take(threads as usize);
        stacks.map(ShadowStack::figures).fold(none, |sum, one| ShadowFigures {
            deepest: sum.deepest.max(one.deepest),
            truncations: sum.truncations + one.truncations,
            stale_dropped: sum.stale_dropped + one.stale_dropped,
            unmatched_leaves: sum.unmatched_leaves + one.unmatched_leaves,
            ..sum
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CodeId;

    static TABLE: ShadowTable = ShadowTable::new();

    #[test]
    fn slots_are_kept_until_reset_and_the_newest_claim_of_an_id_wins() {
        let mut buffer = ReadBuffer::new();
        let (_, first) = TABLE.claim(Tid::new(10)).unwrap();
        first.enter(1000, CodeId::new(1), 1);
        assert_eq!(
            TABLE.read(Tid::new(10), &mut buffer),
            ShadowRead::Frames { count: 1, hidden: 0 }
        );
        assert_eq!(TABLE.read(Tid::new(11), &mut buffer), ShadowRead::NoStack);

        let (_, second) = TABLE.claim(Tid::new(10)).unwrap();
        assert!(!std::ptr::eq(first, second));
        assert_eq!(
            TABLE.read(Tid::new(10), &mut buffer),
            ShadowRead::Frames { count: 0, hidden: 0 }
        );

        for n in 2..PYTHON_THREADS as i32 {
            assert!(TABLE.claim(Tid::new(100 + n)).is_some());
        }
        second.enter(1000, CodeId::new(1), 1);
        assert!(TABLE.claim(Tid::new(10)).is_none());
        assert_eq!(TABLE.read(Tid::new(10), &mut buffer), ShadowRead::NoStack);
        assert_eq!(TABLE.figures().refused, 1);
        assert_eq!(TABLE.figures().reused, 2);
        assert_eq!(TABLE.figures().threads, PYTHON_THREADS as u32);

        TABLE.reset();
        assert_eq!(TABLE.figures(), ShadowFigures::default());
        assert_eq!(TABLE.read(Tid::new(102), &mut buffer), ShadowRead::NoStack);
        second.enter(1000, CodeId::new(1), 1);
        assert_eq!(second.depth(), 0);
    }
}
