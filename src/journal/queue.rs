//! What waits to be written: bounded, and never waited for by whoever fills it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::limits;
use crate::model::{Module, ModuleId, MonotonicNanos, StackEnd, Stall, ThreadKey};

/// One tick.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Tick {
    pub(super) at: MonotonicNanos,
    /// How long the tick before took, in milliseconds, as the server measured it.
    pub(super) mspt: f32,
}

/// A stack that differs from the thread's previous one. Its frames are a run of [`Batch::frames`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stack {
    pub(super) first: usize,
    pub(super) count: usize,
    pub(super) omitted: u32,
    pub(super) end: StackEnd,
}

/// A sample, or several of one thread that repeat the stack before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Item {
    pub(super) thread: ThreadKey,
    pub(super) taken_at: MonotonicNanos,
    pub(super) weight_nanos: u64,
    pub(super) held_nanos: u64,
    /// `None`: the one before, `repeats` times.
    pub(super) stack: Option<Stack>,
    pub(super) repeats: u32,
}

/// What came in a fraction of a second.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) modules: Vec<Arc<Module>>,
    pub(super) threads: Vec<(ThreadKey, String)>,
    pub(super) items: Vec<Item>,
    /// Of all stacks, each leaf first.
    pub(super) frames: Vec<(ModuleId, u64)>,
    pub(super) ended: Vec<(ThreadKey, String)>,
    pub(super) ticks: Vec<Tick>,
    pub(super) stalls: Vec<Stall>,
    /// Samples that found no room since the last batch.
    pub(super) dropped: u64,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.modules.is_empty()
            && self.threads.is_empty()
            && self.items.is_empty()
            && self.ended.is_empty()
            && self.ticks.is_empty()
            && self.stalls.is_empty()
            && self.dropped == 0
    }

    /// Samples in it.
    pub(super) fn samples(&self) -> u64 {
        self.items.iter().map(|item| u64::from(item.repeats.max(1))).sum()
    }
}

#[derive(Debug, Default)]
struct State {
    batches: VecDeque<Batch>,
    /// In all of them.
    frames: usize,
    closed: bool,
    abandoned: bool,
}

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
}

impl Queue {
    /// Takes the batch, leaving an empty one; `false` when there is no room, and it stays.
    pub(super) fn push(&self, batch: &mut Batch) -> bool {
        let mut state = self.state.lock();
        let is_full = state.batches.len() >= limits::JOURNAL_BATCHES || state.frames >= limits::JOURNAL_QUEUE_FRAMES;
        if is_full || state.closed {
            return false;
        }
        state.frames += batch.frames.len();
        state.batches.push_back(std::mem::take(batch));
        drop(state);
        self.filled.notify_one();
        true
    }

    /// The oldest batch, waited for; `None` once the queue is closed and empty.
    pub(super) fn pop(&self) -> Option<Batch> {
        let mut state = self.state.lock();
        loop {
            if let Some(batch) = state.batches.pop_front() {
                state.frames -= batch.frames.len();
                return Some(batch);
            }
            if state.closed {
                return None;
            }
            self.filled.wait_for(&mut state, Duration::from_secs(1));
        }
    }

    /// Nothing comes any more.
    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.filled.notify_all();
    }

    /// Nobody writes any more: what waits goes.
    pub(super) fn abandon(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.abandoned = true;
        state.batches.clear();
        state.frames = 0;
        self.filled.notify_all();
    }

    /// Whether what was written is not wanted either.
    pub(super) fn is_abandoned(&self) -> bool {
        self.state.lock().abandoned
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state.lock().closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(frames: usize) -> Batch {
        Batch {
            frames: vec![(ModuleId::NONE, 0); frames],
            dropped: 1,
            ..Batch::default()
        }
    }

    #[test]
    fn a_full_queue_gives_back_and_a_closed_one_is_emptied_first() {
        let queue = Queue::default();
        for _ in 0..limits::JOURNAL_BATCHES {
            assert!(queue.push(&mut batch(1)));
        }
        let mut refused = batch(3);
        assert!(!queue.push(&mut refused));
        assert_eq!(refused.frames.len(), 3);
        queue.pop().unwrap();
        assert!(queue.push(&mut batch(limits::JOURNAL_QUEUE_FRAMES)));
        queue.pop().unwrap();
        assert!(!queue.push(&mut batch(1)), "too many frames wait");
        queue.close();
        assert!(!queue.push(&mut batch(1)));
        let left = std::iter::from_fn(|| queue.pop()).count();
        assert_eq!(left, limits::JOURNAL_BATCHES - 1);
    }
}
