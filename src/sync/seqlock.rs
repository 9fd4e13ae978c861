//! A stack of word pairs with one writer, that others can copy while it changes.
//!
//! **Problem.** A thread pushes and pops millions of entries a second. A signal handler on that same thread, or a test on another one, wants
//! a consistent copy at any instant.
//!
//! **Why not a lock.** A handler that interrupts the holder of a lock waits for itself.
//!
//! **Algorithm.** A sequence lock whose sequence number shares one word with the length: `state = version << 32 | length`. The writer first
//! writes the entries above the length, where no reader looks, and then publishes version and length in one store. A reader takes the
//! state, copies the entries below that length and takes the state again: the same state means the copy is the stack as it was. There is
//! no odd "being written" phase, because the visible entries are never changed in place: a pop publishes a smaller length before a push
//! writes above it. A handler that interrupts its own thread's writer therefore always gets a consistent copy; only a reader on
//! another thread can see the state move and has to give up.
//!
//! **Price.** A push is three plain moves on x86-64 and a pop is one. A reader makes one attempt and never waits.
//!
//! **Assumptions.** One writer at a time. The version wraps after 2^32 changes: a reader on another thread would have to sleep through
//! exactly that many, a handler on the writer's own thread through none.

use super::primitive::{AtomicU64, Ordering};

/// One change of version.
const VERSION: u64 = 1 << 32;

/// The bits of the state that hold the length.
const LENGTH: u64 = VERSION - 1;

/// Version and length at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State(u64);

impl State {
    /// The length, counted entries included.
    #[inline(always)]
    pub fn length(self) -> u32 {
        (self.0 & LENGTH) as u32
    }
}

/// Why a copy was not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadError {
    /// The stack changed while it was copied.
    Torn,
}

/// See the module's text. `N` is the number of stored entries. The length may be greater: entries from `N` on are counted, not stored.
#[derive(Debug)]
#[repr(C)]
pub struct SeqStack<const N: usize> {
    state: AtomicU64,
    entries: [[AtomicU64; 2]; N],
}

impl<const N: usize> SeqStack<N> {
    /// An empty stack.
    #[cfg(not(loom))]
    #[allow(clippy::new_without_default)] // Statics are made of these; nobody wants one on the stack.
    pub const fn new() -> Self {
        SeqStack {
            state: AtomicU64::new(0),
            entries: [const { [const { AtomicU64::new(0) }; 2] }; N],
        }
    }

    /// An empty stack.
    #[cfg(loom)]
    pub fn new() -> Self {
        SeqStack {
            state: AtomicU64::new(0),
            entries: std::array::from_fn(|_| [AtomicU64::new(0), AtomicU64::new(0)]),
        }
    }

    /// The writer's own view.
    #[inline(always)]
    pub fn state(&self) -> State {
        // Relaxed: only the writer changes it, and it asks itself.
        State(self.state.load(Ordering::Relaxed))
    }

    /// The writer's own view of the stored entry at `index`, counted from the bottom.
    #[inline(always)]
    pub fn entry(&self, index: u32) -> Option<[u64; 2]> {
        let [first, second] = self.entries.get(index as usize)?;
        // Relaxed: only the writer changes it, and it asks itself.
        Some([first.load(Ordering::Relaxed), second.load(Ordering::Relaxed)])
    }

    /// Writer: puts an entry on top of `state`, which must be the present one; beyond `N` it is only counted.
    #[inline(always)]
    pub fn push(&self, state: State, entry: [u64; 2]) {
        if let Some([first, second]) = self.entries.get(state.length() as usize) {
            // Release, with the Acquire loads in `read`: who sees this word also sees the pop that made room for it, and so a moved state.
            first.store(entry[0], Ordering::Release);
            second.store(entry[1], Ordering::Release);
        }
        // Release, with the Acquire load of the state in `read`: who sees the length also sees the entry.
        self.state.store(state.0.wrapping_add(VERSION + 1), Ordering::Release);
    }

    /// Writer: puts an entry on top of `state`, which must be the present one, if the first word of the topmost entry is `suitable`; else nothing is
    /// done and the answer is `false`. The same as looking and pushing, without a look at the bounds.
    ///
    /// # Safety
    /// The state's length must be at least 1 and below `N`.
    #[inline(always)]
    pub unsafe fn push_onto(&self, state: State, entry: [u64; 2], suitable: impl FnOnce(u64) -> bool) -> bool {
        let length = state.length() as usize;
        debug_assert!((1..N).contains(&length));
        // SAFETY: both are below `N`, as the caller promises.
        let ([below, _], [first, second]) = unsafe {
            (
                self.entries.get_unchecked(length - 1),
                self.entries.get_unchecked(length),
            )
        };
        // Relaxed: only the writer changes it, and it asks itself.
        if !suitable(below.load(Ordering::Relaxed)) {
            return false;
        }
        // Release, all three: see `push`.
        first.store(entry[0], Ordering::Release);
        second.store(entry[1], Ordering::Release);
        self.state.store(state.0.wrapping_add(VERSION + 1), Ordering::Release);
        true
    }

    /// Writer: forgets the entries from `length` on, if there are any. `state` must be the present one.
    #[inline(always)]
    pub fn truncate(&self, state: State, length: u32) {
        let surplus = state.length().saturating_sub(length);
        if surplus > 0 {
            let after = state.0.wrapping_add(VERSION - u64::from(surplus));
            // Release, with the Acquire load of the state in `read`; `push` says why a later entry cannot be seen without it.
            self.state.store(after, Ordering::Release);
        }
    }

    /// Any thread, or a handler on the writer's own: copies the stored entries through `put(index, entry)` and returns the length, counted
    /// entries included. Makes one attempt, of at most `N` steps.
    ///
    /// # Errors
    /// [`ReadError::Torn`] when the writer changed the stack meanwhile; what `put` got is then meaningless.
    #[inline]
    pub fn read(&self, mut put: impl FnMut(usize, [u64; 2])) -> Result<u32, ReadError> {
        // Acquire, with the Release stores of the state: the entries below this length are written.
        let before = self.state.load(Ordering::Acquire);
        let length = before & LENGTH;
        for (index, [first, second]) in self.entries.iter().enumerate().take(length as usize) {
            // Acquire, with the Release stores in `push`: an entry that is newer than `before` makes the next state load show it.
            put(index, [first.load(Ordering::Acquire), second.load(Ordering::Acquire)]);
        }
        // Relaxed: the Acquire loads above keep it behind them, and order it after any push or pop they saw.
        if self.state.load(Ordering::Relaxed) == before {
            Ok(length as u32)
        } else {
            Err(ReadError::Torn)
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn copy<const N: usize>(stack: &SeqStack<N>) -> (Vec<[u64; 2]>, u32) {
        let mut entries = Vec::new();
        let length = stack.read(|_, entry| entries.push(entry)).unwrap();
        (entries, length)
    }

    #[test]
    fn a_reader_gets_what_was_pushed() {
        let stack = SeqStack::<4>::new();
        assert_eq!(stack.state().length(), 0);
        stack.push(stack.state(), [1, 2]);
        stack.push(stack.state(), [3, 4]);
        assert_eq!(copy(&stack), (vec![[1, 2], [3, 4]], 2));
        stack.truncate(stack.state(), 1);
        assert_eq!(copy(&stack), (vec![[1, 2]], 1));
    }

    #[test]
    fn entries_beyond_the_store_are_counted() {
        let stack = SeqStack::<2>::new();
        (1..=5).for_each(|n| stack.push(stack.state(), [n, n]));
        assert_eq!(copy(&stack), (vec![[1, 1], [2, 2]], 5));
        stack.truncate(stack.state(), 1);
        stack.push(stack.state(), [9, 9]);
        assert_eq!(copy(&stack), (vec![[1, 1], [9, 9]], 2));
    }

    #[test]
    fn an_entry_is_put_on_a_suitable_one_only() {
        let stack = SeqStack::<2>::new();
        stack.push(stack.state(), [5, 6]);
        // SAFETY: there is one entry, and room for two.
        unsafe {
            assert!(!stack.push_onto(stack.state(), [1, 1], |_| false));
            assert!(stack.push_onto(stack.state(), [7, 8], |top| top == 5));
        }
        assert_eq!(copy(&stack), (vec![[5, 6], [7, 8]], 2));
    }

    #[test]
    fn truncate_never_grows() {
        let stack = SeqStack::<2>::new();
        stack.push(stack.state(), [1, 1]);
        stack.truncate(stack.state(), 7);
        assert_eq!(copy(&stack), (vec![[1, 1]], 1));
    }

    #[test]
    fn a_change_during_the_copy_is_noticed() {
        let stack = SeqStack::<4>::new();
        stack.push(stack.state(), [1, 1]);
        let read = stack.read(|_, _| {
            stack.truncate(stack.state(), 0);
            stack.push(stack.state(), [2, 2]);
        });
        assert_eq!(read, Err(ReadError::Torn));
    }

    #[test]
    fn the_version_wraps_into_nothing_else() {
        let stack = SeqStack::<4>::new();
        stack.state.store(u64::MAX << 32, Ordering::Relaxed);
        stack.push(stack.state(), [1, 1]);
        assert_eq!(copy(&stack), (vec![[1, 1]], 1));
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use loom::sync::Arc;
    use loom::thread;

    use super::SeqStack;

    /// A reader on another thread, which is more than a handler on the writer's own, sees the stack as it was at one moment, or nothing.
    #[test]
    fn loom_a_copy_is_the_stack_as_it_was() {
        loom::model(|| {
            let stack = Arc::new(SeqStack::<2>::new());
            stack.push(stack.state(), [1, 1]);
            let writer = {
                let stack = Arc::clone(&stack);
                thread::spawn(move || {
                    stack.truncate(stack.state(), 0);
                    stack.push(stack.state(), [2, 2]);
                    stack.push(stack.state(), [3, 3]);
                })
            };
            let mut copy = Vec::new();
            if let Ok(length) = stack.read(|_, entry| copy.push(entry)) {
                let possible: [&[[u64; 2]]; 4] = [&[[1, 1]], &[], &[[2, 2]], &[[2, 2], [3, 3]]];
                assert_eq!(copy.len(), length as usize);
                assert!(possible.contains(&copy.as_slice()), "{copy:?}");
            }
            writer.join().unwrap();
        });
    }

    /// Entries beyond the store are counted in one step with the version.
    #[test]
    fn loom_counted_entries_are_seen_whole() {
        loom::model(|| {
            let stack = Arc::new(SeqStack::<1>::new());
            let writer = {
                let stack = Arc::clone(&stack);
                thread::spawn(move || {
                    stack.push(stack.state(), [1, 1]);
                    stack.push(stack.state(), [9, 9]);
                    stack.truncate(stack.state(), 0);
                    stack.push(stack.state(), [2, 2]);
                })
            };
            let mut copy = Vec::new();
            if let Ok(length) = stack.read(|_, entry| copy.push(entry)) {
                match length {
                    0 => assert!(copy.is_empty()),
                    1 => assert!(copy == [[1, 1]] || copy == [[2, 2]], "{copy:?}"),
                    _ => assert_eq!((copy.as_slice(), length), (&[[1, 1]][..], 2)),
                }
            }
            writer.join().unwrap();
        });
    }
}
