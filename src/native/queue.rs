//! Samples on their way from the sampler to the aggregator.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::unwind::RawFrame;
use crate::limits;
use crate::model::{MonotonicNanos, PythonEntry, StackEnd, ThreadKey};

/// The Python part of a [`Stack`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum PythonKind {
    /// No shadow stack.
    #[default]
    None,
    /// It was being written.
    Torn,
    /// The stack's entries, and how many deeper ones there were.
    Frames {
        /// Entries beyond the cap.
        hidden: u32,
    },
}

/// A captured stack.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Stack {
    pub(super) frames: Vec<RawFrame>,
    pub(super) omitted: u32,
    pub(super) end: StackEnd,
    pub(super) python: PythonKind,
    pub(super) entries: Vec<PythonEntry>,
}

impl Stack {
    pub(super) fn new() -> Self {
        Stack {
            frames: Vec::new(),
            omitted: 0,
            end: StackEnd::Root,
            python: PythonKind::None,
            entries: Vec::new(),
        }
    }

    /// Becomes equal to `other` within its own memory.
    pub(super) fn copy_from(&mut self, other: &Stack) {
        self.frames.clone_from(&other.frames);
        self.entries.clone_from(&other.entries);
        (self.omitted, self.end, self.python) = (other.omitted, other.end, other.python);
    }
}

/// What a queued sample shows.
#[derive(Debug)]
pub(super) enum Shown {
    /// This stack.
    Stack(Stack),
    /// The thread's last one again.
    Repeated,
    /// Nothing: the thread has ended.
    End,
}

#[derive(Debug)]
pub(super) struct Queued {
    pub(super) thread: ThreadKey,
    pub(super) taken_at: MonotonicNanos,
    pub(super) weight_nanos: u64,
    pub(super) held_nanos: u64,
    pub(super) shown: Shown,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Queued>,
    /// Stacks whose memory is used again.
    spare: Vec<Stack>,
    closed: bool,
}

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

impl Queue {
    /// An empty stack to fill, with the memory of an old one if there is one.
    pub(super) fn spare(&self) -> Stack {
        self.state.lock().spare.pop().unwrap_or_else(Stack::new)
    }

    /// Adds a sample. `false`: there is no room, the aggregator does not keep up.
    #[must_use]
    pub(super) fn push(&self, sample: Queued) -> bool {
        let mut state = self.state.lock();
        if state.waiting.len() >= limits::QUEUED_SAMPLES {
            return false;
        }
        state.waiting.push_back(sample);
        // One wake-up for many samples: the reader looks by itself after its own wait.
        if state.waiting.len() == limits::QUEUED_SAMPLES / 4 {
            self.changed.notify_one();
        }
        true
    }

    /// Says that a thread has ended. Always taken: who looks at samples keeps something for each thread that lives.
    pub(super) fn push_end(&self, thread: ThreadKey) {
        self.state.lock().waiting.push_back(Queued {
            thread,
            taken_at: MonotonicNanos(0),
            weight_nanos: 0,
            held_nanos: 0,
            shown: Shown::End,
        });
    }

    /// No more will come.
    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_all();
    }

    /// Waits until many samples are there, or none will come any more, but at most `wait`; then takes all into `into`. `false` when there will be no
    /// more after these.
    pub(super) fn take(&self, wait: Duration, into: &mut VecDeque<Queued>) -> bool {
        let until = Instant::now() + wait;
        let mut state = self.state.lock();
        while !state.closed && state.waiting.len() < limits::QUEUED_SAMPLES / 4 {
            if self.changed.wait_until(&mut state, until).timed_out() {
                break;
            }
        }
        into.append(&mut state.waiting);
        !state.closed
    }

    /// Gives a stack's memory back.
    pub(super) fn give_back(&self, mut stack: Stack) {
        stack.frames.clear();
        stack.entries.clear();
        let mut state = self.state.lock();
        if state.spare.len() < limits::SPARE_STACKS {
            state.spare.push(stack);
        }
    }
}
