//! A sample as it reaches the aggregator.

use super::frame::{NativeFrame, PythonEntry};
use super::ids::ThreadKey;
use super::time::MonotonicNanos;

/// Why the native stack ends where it ends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum StackEnd {
    /// The thread's first frame was reached.
    Root = 0,
    /// An address outside all modules, and no plausible frame pointer.
    UnknownModule = 1,
    /// The unwind data of the last frame is missing, damaged or not supported.
    NoUnwindData = 2,
    /// A stack word could not be read.
    UnreadableStack = 3,
    /// The unwinder did not move towards the root.
    NoProgress = 4,
    /// The unwinder was given up after its step limit.
    TooDeep = 5,
}

impl StackEnd {
    /// All ends, in the order of their numbers.
    pub const ALL: [StackEnd; 6] = [
        StackEnd::Root,
        StackEnd::UnknownModule,
        StackEnd::NoUnwindData,
        StackEnd::UnreadableStack,
        StackEnd::NoProgress,
        StackEnd::TooDeep,
    ];

    /// The end with this number; an unknown number is [`StackEnd::NoProgress`].
    pub fn from_number(number: u8) -> StackEnd {
        StackEnd::ALL
            .get(usize::from(number))
            .copied()
            .unwrap_or(StackEnd::NoProgress)
    }

    /// A name for metadata and for the frame that stands in for the missing root.
    pub const fn name(self) -> &'static str {
        match self {
            StackEnd::Root => "root",
            StackEnd::UnknownModule => "unknown module",
            StackEnd::NoUnwindData => "no unwind data",
            StackEnd::UnreadableStack => "unreadable stack",
            StackEnd::NoProgress => "no progress",
            StackEnd::TooDeep => "too deep",
        }
    }
}

/// The Python side of a sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PythonPart<'a> {
    /// Python attribution is off, or this thread has not run Python in this session.
    None,
    /// The shadow stack was being written when the signal came: the native part stands alone.
    Torn,
    /// The shadow stack, outermost first.
    Frames {
        /// The visible entries.
        entries: &'a [PythonEntry],
        /// How many deeper frames there were beyond the cap.
        hidden: u32,
    },
}

/// One stack at one instant.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// Whose stack.
    pub thread: ThreadKey,
    /// When it was taken.
    pub taken_at: MonotonicNanos,
    /// Time this sample stands for, in nanoseconds: measured since that thread's previous sample.
    pub weight_nanos: u64,
    /// The last part of that time, in nanoseconds, in which the thread certainly had this stack already: it was asked then and had not run on until it answered.
    pub held_nanos: u64,
    /// Leaf first. When `omitted` is not 0 the gap lies after the first [`crate::limits::LEAF_FRAMES`].
    pub native: &'a [NativeFrame],
    /// Native frames left out of the middle.
    pub omitted: u32,
    /// Why the native stack ends.
    pub end: StackEnd,
    /// The Python part, of the same instant.
    pub python: PythonPart<'a>,
    /// True when nothing was captured now: the thread used no CPU since its previous sample, whose stack is repeated.
    pub repeated: bool,
}
