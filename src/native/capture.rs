//! One capture slot: what is asked of a thread, and its answer.

use super::costs::Marks;
use super::unwind::RawFrame;
use crate::limits::{LEAF_FRAMES, ROOT_FRAMES};
use crate::model::{ModuleId, MonotonicNanos, SampleLoss, StackEnd, Tid};
use crate::shadow::{ReadBuffer, ShadowRead};

/// What is known of a thread's stack. All zero when nothing is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct StackBounds {
    /// Down to here the stack may grow.
    pub(super) floor: u64,
    /// From here on it is mapped for sure, as long as the thread lives.
    pub(super) low: u64,
    /// Its end.
    pub(super) high: u64,
}

impl StackBounds {
    /// Whether a stack pointer is in the part that is mapped for sure.
    #[inline]
    pub(super) fn holds(&self, sp: u64) -> bool {
        self.low <= sp && sp < self.high
    }
}

/// What the handler met.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// A stack was captured; it ends like this.
    Stack(StackEnd),
    /// Nothing was captured.
    Lost(SampleLoss),
}

/// The frames of one stack: the first [`LEAF_FRAMES`] as they come, the last [`ROOT_FRAMES`] of the rest in a ring.
#[derive(Debug)]
pub(super) struct Frames {
    leaf: [RawFrame; LEAF_FRAMES],
    root: [RawFrame; ROOT_FRAMES],
    total: usize,
}

const NO_FRAME: RawFrame = RawFrame {
    address: 0,
    cfa: 0,
    module: ModuleId::NONE,
};

impl Frames {
    const fn new() -> Self {
        Frames {
            leaf: [NO_FRAME; LEAF_FRAMES],
            root: [NO_FRAME; ROOT_FRAMES],
            total: 0,
        }
    }

    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.total = 0;
    }

    /// Adds the next frame towards the root.
    #[inline(always)]
    pub(super) fn push(&mut self, frame: RawFrame) {
        let place = match self.total.checked_sub(LEAF_FRAMES) {
            None => self.leaf.get_mut(self.total),
            Some(beyond) => self.root.get_mut(beyond % ROOT_FRAMES),
        };
        if let Some(place) = place {
            *place = frame;
        }
        self.total += 1;
    }

    /// Frames that were walked over.
    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// Frames between the leaf-most and the root-most that were not kept.
    pub(super) fn omitted(&self) -> u32 {
        self.total.saturating_sub(LEAF_FRAMES + ROOT_FRAMES) as u32
    }

    /// The kept frames, leaf first.
    pub(super) fn kept(&self) -> impl Iterator<Item = &RawFrame> {
        let leaf = self.leaf.iter().take(self.total);
        let beyond = self.total.saturating_sub(LEAF_FRAMES);
        // A ring that is not full begins at 0; a full one begins where the next frame would go.
        let begin = if beyond > ROOT_FRAMES { beyond % ROOT_FRAMES } else { 0 };
        let root = self.root.iter().cycle().skip(begin).take(beyond.min(ROOT_FRAMES));
        leaf.chain(root)
    }
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Capture {
    /// Request: who is to answer.
    pub(super) tid: Tid,
    /// Request: its stack.
    pub(super) stack: StackBounds,
    /// Request: where the memory of `brk` ends, the C library's `[heap]`.
    pub(super) program_break: u64,
    pub(super) outcome: Outcome,
    pub(super) started: MonotonicNanos,
    pub(super) ended: MonotonicNanos,
    pub(super) marks: Marks,
    pub(super) sp: u64,
    pub(super) pc: u64,
    /// The signal has cut a system call short, which returns EINTR now.
    pub(super) cut_a_call: bool,
    /// The thread control block, which lies in the mapping of the thread's own stack.
    pub(super) control_block: u64,
    pub(super) frames: Frames,
    pub(super) shadow: ShadowRead,
    pub(super) python: ReadBuffer,
}

impl Capture {
    pub(super) fn new() -> Self {
        Capture {
            tid: Tid::new(0),
            stack: StackBounds::default(),
            program_break: 0,
            outcome: Outcome::Lost(SampleLoss::Busy),
            started: MonotonicNanos(0),
            ended: MonotonicNanos(0),
            marks: Marks::default(),
            sp: 0,
            pc: 0,
            cut_a_call: false,
            control_block: 0,
            frames: Frames::new(),
            shadow: ShadowRead::NoStack,
            python: ReadBuffer::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept_of(total: u64) -> (Vec<u64>, u32) {
        let mut frames = Frames::new();
        (0..total).for_each(|address| frames.push(RawFrame { address, ..NO_FRAME }));
        (frames.kept().map(|frame| frame.address).collect(), frames.omitted())
    }

    #[test]
    fn short_stacks_are_kept_whole() {
        for total in [0, 1, 255, 256, 257, 511, 512] {
            assert_eq!(kept_of(total), ((0..total).collect(), 0), "{total} frames");
        }
    }

    #[test]
    fn deep_stacks_keep_both_ends() {
        for total in [513, 600, 768, 1000, 16_384] {
            let (kept, omitted) = kept_of(total);
            let expected: Vec<u64> = (0..256).chain(total - 256..total).collect();
            assert_eq!(kept, expected, "{total} frames");
            assert_eq!(u64::from(omitted), total - 512);
        }
    }
}
