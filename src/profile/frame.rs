//! One frame of a merged stack, before it has a name.

use crate::model::{CodeId, ModuleId, StackEnd};

/// A frame of a merged stack.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum FrameKey {
    /// C, C++ or Rust code.
    Native {
        /// The module that holds it, or [`ModuleId::NONE`].
        module: ModuleId,
        /// See [`crate::model::NativeFrame::rva`].
        rva: u64,
    },
    /// A frame of the interpreter's eval function in which no Python function runs yet, or none any more.
    Eval {
        /// As in [`FrameKey::Native`].
        module: ModuleId,
        /// As in [`FrameKey::Native`].
        rva: u64,
    },
    /// A Python function.
    Python(CodeId),
    /// Stands for frames that were left out of the middle: at least so many, fewer than twice as many (see [`FrameKey::omitted`]).
    Omitted(u32),
    /// Stands for the missing root side of a stack that did not reach its root.
    Ended(StackEnd),
    /// Stands for everything below a frame whose own children found no room in the tree.
    Truncated,
}

impl FrameKey {
    /// The frame that stands for `count` omitted ones.
    ///
    /// The count is rounded down to a power of two. A recursion is caught at a different depth in every sample; with exact counts no two
    /// of those stacks would share a frame beyond the gap, and the tree would grow by a whole stack with every sample.
    pub fn omitted(count: u32) -> FrameKey {
        FrameKey::Omitted(count.checked_ilog2().map_or(0, |bits| 1 << bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omitted_counts_are_rounded_down_to_a_power_of_two() {
        let rounded = |count| FrameKey::omitted(count);
        assert_eq!(rounded(0), FrameKey::Omitted(0));
        assert_eq!(rounded(1), FrameKey::Omitted(1));
        assert_eq!(rounded(4095), FrameKey::Omitted(2048));
        assert_eq!(rounded(u32::MAX), FrameKey::Omitted(1 << 31));
    }
}
