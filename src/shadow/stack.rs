//! One thread's shadow stack: what its callbacks write.
//!
//! **Problem.** CPython reports that Python functions are entered and left, but not always: a generator that is closed early, or a
//! thread that was inside functions before monitoring began, gives a leave without an enter or the reverse. The stack must stay right, or become right
//! again, whatever comes.
//!
//! **Algorithm.** Every event carries an *anchor*: the address on the C stack of the frame that evaluates the Python frame. C stacks grow
//! downwards and eval frames nest, so anchors never grow from outer to inner entries. An event from anchor `a` proves that nothing deeper
//! than `a` runs any more: entries with a lower anchor are stale, whatever became of their leave event, and are dropped and counted. A
//! leave takes its own entry, found by anchor and tag, with whatever stale entries stand above it; a leave that finds none changes nothing else.
//!
//! **Price.** In the ordinary case an enter is two loads, two compares and three stores, a leave two loads, two compares and one store.
//!
//! **Assumptions.** Only the thread that claimed the stack calls `enter`, `leave` and `seed`. A second writer could not break memory safety,
//! only the contents.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use super::reader::{ReadBuffer, ShadowRead};
use crate::limits::{AUDIT_NANOS, PLACING_TRIES, PYTHON_FRAMES};
use crate::model::{CodeId, MonotonicNanos, PythonEntry};
use crate::sync::SeqStack;

/// Entries in store: the floor and the visible frames.
const STORED: usize = PYTHON_FRAMES + 1;

/// Anchor of the floor and of entries whose anchor is not known: above every stack address, so that no event takes it for stale.
const UNANCHORED: u64 = u64::MAX;

/// The floor, an entry below all frames that matches no event and spares a test for "empty".
const FLOOR: [u64; 2] = [UNANCHORED, 0];

/// Length of a stack without frames: the floor.
const EMPTY: u32 = 1;

/// See the module's text.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct ShadowStack {
    truncations: AtomicU64,
    stale_dropped: AtomicU64,
    unmatched_leaves: AtomicU64,
    /// Every enter takes the long way: the thread may begin to swap stacks.
    watched: AtomicBool,
    /// Audits that found a wrong frame.
    disagreements: AtomicU8,
    /// When the stack was last compared with the interpreter's own frames, in monotonic nanoseconds.
    audited_at: AtomicU64,
    /// A sample was taken and the stack is to be compared again.
    audit_wanted: AtomicBool,
    /// Enter events that still take the long way in search of one from further out than `tried`.
    tries: AtomicU32,
    tried: AtomicU64,
    /// Greatest number of frames so far, hidden ones included.
    deepest: AtomicU32,
    hot: Hot,
}

/// What the ordinary case reads and writes: one cache line, and that of the topmost entry.
#[derive(Debug)]
#[repr(C, align(64))]
struct Hot {
    known: KnownDepth,
    /// Each entry is an anchor and a [`EntryCode`].
    entries: SeqStack<STORED>,
}

/// Stacks of fewer frames than this take another without bookkeeping. Never above [`PYTHON_FRAMES`], on which [`ShadowStack::try_enter`] relies.
#[derive(Debug)]
struct KnownDepth(AtomicU32);

impl KnownDepth {
    fn set(&self, frames: u32) {
        // Relaxed, here and below: this thread's own and its handler's.
        self.0.store(frames.min(PYTHON_FRAMES as u32), Ordering::Relaxed);
    }

    #[inline(always)]
    fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a stack counted since it was claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct StackFigures {
    pub(super) deepest: u32,
    pub(super) truncations: u64,
    pub(super) stale_dropped: u64,
    pub(super) unmatched_leaves: u64,
}

/// Adds to a counter that only this thread writes.
fn count(counter: &AtomicU64, by: u64) {
    // Relaxed twice: one writer; readers want the figure, not an order.
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

/// What an entry says besides its anchor: which code object runs, and its tag. One word, so that it can be kept ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntryCode(u64);

impl EntryCode {
    /// `tag` is what the leave event of the same code object will carry; equal tags of different code objects do harm only when an event is
    /// missing.
    pub fn new(code: CodeId, tag: u32) -> Self {
        EntryCode(u64::from(code.get()) << 32 | u64::from(tag))
    }

    /// As a word.
    #[inline(always)]
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// From [`EntryCode::to_bits`].
    #[inline(always)]
    pub fn from_bits(word: u64) -> Self {
        EntryCode(word)
    }

    /// The code object's id.
    pub fn code(self) -> CodeId {
        CodeId::new((self.0 >> 32) as u32)
    }

    #[inline(always)]
    fn tag(self) -> u32 {
        self.0 as u32
    }
}

fn tag_of(word: u64) -> u32 {
    EntryCode(word).tag()
}

impl ShadowStack {
    /// A stack that nobody has claimed: it ignores events and readers find none.
    #[allow(clippy::new_without_default)] // Statics are made of these; nobody wants one on the stack.
    pub const fn new() -> Self {
        ShadowStack {
            truncations: AtomicU64::new(0),
            stale_dropped: AtomicU64::new(0),
            unmatched_leaves: AtomicU64::new(0),
            watched: AtomicBool::new(false),
            disagreements: AtomicU8::new(0),
            audited_at: AtomicU64::new(0),
            audit_wanted: AtomicBool::new(false),
            tries: AtomicU32::new(0),
            tried: AtomicU64::new(0),
            deepest: AtomicU32::new(0),
            hot: Hot {
                known: KnownDepth(AtomicU32::new(0)),
                entries: SeqStack::new(),
            },
        }
    }

    /// Makes it an empty stack of a thread that has just claimed it.
    pub(super) fn open(&self) {
        self.close();
        self.hot.entries.push(self.hot.entries.state(), FLOOR);
    }

    /// Makes it nobody's stack: events are ignored and readers find none.
    pub(super) fn close(&self) {
        self.hot.entries.truncate(self.hot.entries.state(), 0);
        self.hot.known.set(0);
        // Relaxed: nobody writes the stack now; readers want figures, not an order.
        self.deepest.store(0, Ordering::Relaxed);
        self.truncations.store(0, Ordering::Relaxed);
        self.stale_dropped.store(0, Ordering::Relaxed);
        self.unmatched_leaves.store(0, Ordering::Relaxed);
        self.audit_wanted.store(false, Ordering::Relaxed);
        self.watched.store(false, Ordering::Relaxed);
        self.disagreements.store(0, Ordering::Relaxed);
        self.audited_at.store(0, Ordering::Relaxed);
        self.tries.store(0, Ordering::Relaxed);
    }

    /// From now on, and until it is closed, each enter takes the long way.
    pub(super) fn watch(&self) {
        // Relaxed: this thread's own, or that of a thread that is not in a callback while the interpreter's lock is held here.
        self.watched.store(true, Ordering::Relaxed);
        self.hot.known.set(0);
    }

    /// Whether it is somebody's, and enters take the long way so that the thread can be looked at.
    pub fn is_watched(&self) -> bool {
        // Relaxed: this thread's own.
        self.watched.load(Ordering::Relaxed) && self.hot.entries.state().length() >= EMPTY
    }

    /// Makes it a stack that ignores events, and of which readers find none, until it is closed; its figures stay. For a thread whose events do not say
    /// what its stack holds.
    pub fn abandon(&self) {
        self.hot.entries.truncate(self.hot.entries.state(), 0);
        // Relaxed: this thread's own.
        self.hot.known.set(0);
    }

    /// The anchor of the innermost frame that is stored; `None` when no event has told it, and without frames.
    pub fn innermost_anchor(&self) -> Option<u64> {
        let top = self.hot.entries.state().length().min(STORED as u32).checked_sub(1)?;
        let [anchor, _] = self.hot.entries.entry(top)?;
        (anchor != UNANCHORED).then_some(anchor)
    }

    /// Counts an audit that found a wrong frame; how many there were.
    pub fn count_disagreement(&self) -> u8 {
        // Relaxed: this thread's own.
        let before = self.disagreements.load(Ordering::Relaxed);
        self.disagreements.store(before.saturating_add(1), Ordering::Relaxed);
        before.saturating_add(1)
    }

    /// Handler, on the stack's own thread: lets the next enter take the long way, where [`ShadowStack::take_audit_request`] finds what was asked
    /// for; not more often than [`AUDIT_NANOS`] allows. The short way pays nothing for it: it looks at the known depth anyway.
    #[inline]
    pub(super) fn ask_for_audit(&self, now: MonotonicNanos) {
        // Relaxed, all of it: one thread, whose writer this handler interrupts. A writer that was about to raise the known depth undoes the
        // request, and the next sample asks again.
        if now.0.saturating_sub(self.audited_at.load(Ordering::Relaxed)) >= AUDIT_NANOS {
            self.audit_wanted.store(true, Ordering::Relaxed);
            self.hot.known.set(0);
        }
    }

    /// Whether an audit is wanted at this enter event; if a sample wanted it, it is taken as done at `now()`.
    pub fn take_audit_request(&self, anchor: u64, now: impl FnOnce() -> MonotonicNanos) -> bool {
        // Relaxed, all of it: this thread and its handler.
        if self.hot.entries.state().length() < EMPTY {
            return false;
        }
        if self.audit_wanted.load(Ordering::Relaxed) {
            self.audited_at.store(now().0, Ordering::Relaxed);
            self.audit_wanted.store(false, Ordering::Relaxed);
            self.tries.store(0, Ordering::Relaxed);
            self.back_to_the_short_way();
            return true;
        }
        match self.tries.load(Ordering::Relaxed) {
            0 => false,
            tries => {
                self.tries.store(tries - 1, Ordering::Relaxed);
                if tries == 1 {
                    self.back_to_the_short_way();
                }
                anchor > self.tried.load(Ordering::Relaxed)
            }
        }
    }

    /// Frames without an anchor could not be placed by an event from `anchor`: some of the next enter events are looked at, in case one comes
    /// from further out.
    pub fn try_from_further_out(&self, anchor: u64) {
        // Relaxed: this thread's own.
        self.tried.store(anchor, Ordering::Relaxed);
        self.tries.store(PLACING_TRIES, Ordering::Relaxed);
        self.hot.known.set(0);
    }

    fn back_to_the_short_way(&self) {
        // Relaxed: this thread and its handler.
        if !self.watched.load(Ordering::Relaxed) {
            self.hot.known.set(self.deepest.load(Ordering::Relaxed));
        }
    }

    /// What the writer sees of its own frames, outermost first: tag, and whether the anchor is known. Without hidden frames.
    pub fn tags(&self) -> impl Iterator<Item = (u32, bool)> {
        self.stored().map(|[anchor, word]| (tag_of(word), anchor != UNANCHORED))
    }

    /// The code objects of the frames that [`ShadowStack::tags`] shows.
    pub fn codes(&self) -> impl Iterator<Item = CodeId> {
        self.stored().map(|[_, word]| EntryCode(word).code())
    }

    /// Anchors and words, outermost first. On the writer's thread.
    fn stored(&self) -> impl Iterator<Item = [u64; 2]> {
        let stored = self.hot.entries.state().length().min(STORED as u32);
        (EMPTY..stored).filter_map(|index| self.hot.entries.entry(index))
    }

    /// Takes out the stored frames that `keep(index)` does not want; hidden frames go with the last stored one. Meanwhile readers see fewer
    /// frames, never others.
    pub fn retain(&self, mut keep: impl FnMut(usize) -> bool) {
        let stored = self.hot.entries.state().length().min(STORED as u32);
        let first = (EMPTY..stored).find(|index| !keep((index - EMPTY) as usize));
        let Some(first) = first else { return };
        let kept: Vec<[u64; 2]> = (first + 1..stored)
            .filter(|index| keep((index - EMPTY) as usize))
            .filter_map(|index| self.hot.entries.entry(index))
            .collect();
        self.hot.entries.truncate(self.hot.entries.state(), first);
        for entry in kept {
            self.hot.entries.push(self.hot.entries.state(), entry);
        }
    }

    /// Gives `anchor` to the outermost `frames` that have none yet, and tells how many those were.
    pub fn place(&self, anchor: u64, frames: usize) -> u32 {
        let length = self.hot.entries.state().length();
        if length < EMPTY || length > STORED as u32 {
            return 0;
        }
        let mut all: Vec<[u64; 2]> = (EMPTY..length)
            .filter_map(|index| self.hot.entries.entry(index))
            .collect();
        let mut placed = 0;
        for entry in all.iter_mut().take(frames).filter(|entry| entry[0] == UNANCHORED) {
            entry[0] = anchor;
            placed += 1;
        }
        if placed > 0 {
            self.hot.entries.truncate(self.hot.entries.state(), EMPTY);
            for entry in all {
                self.hot.entries.push(self.hot.entries.state(), entry);
            }
        }
        placed
    }

    /// The ordinary case of [`ShadowStack::enter`]; `false` when it is not ordinary, and nothing was done.
    #[inline(always)]
    pub fn try_enter(&self, anchor: u64, entry: EntryCode) -> bool {
        let entries = &self.hot.entries;
        let state = entries.state();
        // One comparison for three things: a stack that is closed (its length is 0), one that was never as deep, one whose next frame is hidden.
        if state.length().wrapping_sub(EMPTY) >= self.hot.known.get() {
            return false;
        }
        // SAFETY: the length is at least `EMPTY`, and at most `PYTHON_FRAMES` as known depths are, so below `STORED`.
        unsafe { entries.push_onto(state, [anchor, entry.0], |top| top >= anchor) }
    }

    /// The ordinary case of [`ShadowStack::leave`]; `false` when it is not ordinary, and nothing was done.
    #[inline(always)]
    pub fn try_leave(&self, anchor: u64, tag: u32) -> bool {
        let state = self.hot.entries.state();
        let top = state.length().wrapping_sub(1);
        let ordinary = self
            .hot
            .entries
            .entry(top)
            .is_some_and(|[at, word]| at == anchor && EntryCode(word).tag() == tag);
        if ordinary {
            self.hot.entries.truncate(state, top);
        }
        ordinary
    }

    /// A Python frame was entered (started, resumed or thrown into) at `anchor`; for `tag` see [`EntryCode::new`].
    pub fn enter(&self, anchor: u64, code: CodeId, tag: u32) {
        if self.hot.entries.state().length() < EMPTY {
            return;
        }
        self.drop_deeper_than(anchor);
        let state = self.hot.entries.state();
        self.hot.entries.push(state, [anchor, EntryCode::new(code, tag).0]);
        let length = state.length();
        if length == STORED as u32 {
            count(&self.truncations, 1);
        }
        // The floor is not a frame: a length before the push is the number of frames after it.
        // Relaxed: this thread's own figures.
        if length > self.deepest.load(Ordering::Relaxed) {
            self.deepest.store(length, Ordering::Relaxed);
            self.back_to_the_short_way();
        }
    }

    /// A Python frame was left (returned, yielded or unwound) at `anchor`.
    pub fn leave(&self, anchor: u64, tag: u32) {
        if self.hot.entries.state().length() < EMPTY {
            return;
        }
        self.drop_deeper_than(anchor);
        let state = self.hot.entries.state();
        let length = state.length();
        if length > STORED as u32 {
            // A hidden frame: which one cannot be told, so its leave is taken for the innermost.
            self.hot.entries.truncate(state, length - 1);
            return;
        }
        for index in (EMPTY..length).rev() {
            let Some([at, word]) = self.hot.entries.entry(index) else {
                break;
            };
            if at > anchor && at != UNANCHORED {
                break;
            }
            if tag_of(word) == tag {
                count(&self.stale_dropped, u64::from(length - 1 - index));
                self.hot.entries.truncate(state, index);
                return;
            }
        }
        count(&self.unmatched_leaves, 1);
    }

    /// Drops the entries that are deeper than `anchor`, hidden ones included.
    pub fn drop_deeper_than(&self, anchor: u64) {
        let state = self.hot.entries.state();
        let length = state.length();
        let mut kept = length;
        // Hidden frames are at least as deep as the innermost stored one, so they go when that one goes.
        let mut index = length.min(STORED as u32);
        while let Some([at, _]) = index.checked_sub(1).and_then(|top| self.hot.entries.entry(top)) {
            if at >= anchor {
                break;
            }
            index -= 1;
            kept = index;
        }
        if kept < length {
            count(&self.stale_dropped, u64::from(length - kept));
            self.hot.entries.truncate(state, kept);
        }
    }

    /// Puts frames that ran before the session, outermost first, on a stack that has none yet. They have no anchor; readers get it as 0.
    pub fn seed(&self, frames: impl IntoIterator<Item = (CodeId, u32)>) {
        if self.hot.entries.state().length() == EMPTY {
            for (code, tag) in frames {
                self.enter(UNANCHORED, code, tag);
            }
        }
    }

    /// Frames on the stack, hidden ones included.
    pub fn depth(&self) -> u32 {
        self.hot.entries.state().length().saturating_sub(EMPTY)
    }

    /// One attempt to copy the stack; at most [`PYTHON_FRAMES`] steps.
    #[inline]
    pub fn read(&self, out: &mut ReadBuffer) -> ShadowRead {
        let read = self.hot.entries.read(|index, [anchor, word]| {
            if let Some(index) = index.checked_sub(EMPTY as usize) {
                let anchor = if anchor == UNANCHORED { 0 } else { anchor };
                let code = EntryCode(word).code();
                out.put(index, PythonEntry { anchor, code });
            }
        });
        match read {
            Err(_) => ShadowRead::Torn,
            Ok(0) => ShadowRead::NoStack,
            Ok(length) => {
                let frames = length - EMPTY;
                let hidden = frames.saturating_sub(PYTHON_FRAMES as u32);
                ShadowRead::Frames {
                    count: (frames - hidden) as usize,
                    hidden,
                }
            }
        }
    }

    pub(super) fn figures(&self) -> StackFigures {
        // Relaxed: figures, not an order.
        StackFigures {
            deepest: self.deepest.load(Ordering::Relaxed),
            truncations: self.truncations.load(Ordering::Relaxed),
            stale_dropped: self.stale_dropped.load(Ordering::Relaxed),
            unmatched_leaves: self.unmatched_leaves.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
#[path = "stack_tests.rs"]
mod tests;
