//! Puts the Python frames of a sample where they belong in its native stack.
//!
//! # Problem
//! One C eval frame of CPython 3.11 or newer can run many Python frames, and C code can call back into Python at any depth: the two stacks
//! cannot be zipped by counting. Names of native frames do not help either: a server's libpython is usually stripped, and tail-call
//! interpreters have no single eval function.
//!
//! # Algorithm
//! Every Python entry carries its *anchor*: the canonical frame address (CFA) of the C frame that evaluates it. Both stacks are walked once
//! from the root towards the leaf. CFAs fall on the way, and so do anchors, hence one pass decides all: an entry whose anchor is above the
//! CFA of the native frame at hand can match nothing any more; one whose anchor equals it belongs there. All entries with that anchor
//! replace the native frame, outermost first. A frame with an unknown CFA (0) decides nothing.
//!
//! # What is never done
//! An entry that matches nothing is dropped and counted, never placed near something similar: a Python frame in a profile is right or
//! absent.
//!
//! # Eval frames between two events
//! A function's entry appears with the event of its start and goes with that of its end, a few nanoseconds inside of its eval frame's life. A sample
//! taken there ends in an eval frame without an entry. Which native frame is one is told by its caller: an address that called an eval frame once calls
//! eval frames always. In a sample whose entries were all placed such a leaf becomes a [`FrameKey::Eval`]. A sample that lost an entry tells nothing,
//! there the frame may run any function.
//!
//! # Price
//! One comparison per frame and entry, and a hash look-up per sample; no allocation once the path's buffer has grown to the deepest stack seen.
//!
//! # Assumptions
//! CFAs fall strictly from root to leaf (the unwinder ends a stack that does not move towards its root), anchors never rise from outer to
//! inner (the shadow stack drops entries that would). Input that breaks this loses Python frames to the counters, and stays in order.

use super::frame::FrameKey;
use super::hash::IdMap;
use crate::limits::{CARRIERS, LEAF_FRAMES};
use crate::model::{NativeFrame, PythonEntry, PythonPart, Sample, StackEnd};

/// What became of Python entries. All entries of a sample are in exactly one of the first five.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MergeStats {
    /// Stand in the merged stack.
    pub placed: u64,
    /// Matched no native frame.
    pub missed: u64,
    /// Had no anchor yet.
    pub unanchored: u64,
    /// Run in a native frame that was left out of the middle: right, but not shown.
    pub in_gap: u64,
    /// Lie beyond the point where the native stack could not be followed further.
    pub beyond_end: u64,
    /// Deeper frames that the shadow stack counted but did not keep. Not among the entries.
    pub hidden: u64,
}

impl MergeStats {
    /// Adds another sample's figures to these.
    pub fn add(&mut self, other: &MergeStats) {
        self.placed += other.placed;
        self.missed += other.missed;
        self.unanchored += other.unanchored;
        self.in_gap += other.in_gap;
        self.beyond_end += other.beyond_end;
        self.hidden += other.hidden;
    }
}

/// A merged stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Merged<'a> {
    /// Root first.
    pub path: &'a [FrameKey],
    /// What became of this sample's Python entries.
    pub stats: MergeStats,
}

/// Merges samples, one after the other, into the same buffer.
#[derive(Debug, Default)]
pub struct Merger {
    path: Vec<FrameKey>,
    /// Addresses that called an eval frame.
    carriers: IdMap<FrameKey, ()>,
}

impl Merger {
    /// A merger with an empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Merges one sample.
    pub fn merge(&mut self, sample: &Sample<'_>) -> Merged<'_> {
        let (entries, hidden) = match sample.python {
            PythonPart::Frames { entries, hidden } => (entries, hidden),
            PythonPart::None | PythonPart::Torn => (&[][..], 0),
        };
        let stats = MergeStats {
            hidden: u64::from(hidden),
            ..MergeStats::default()
        };
        self.path.clear();
        let mut walk = Walk {
            entries,
            path: &mut self.path,
            stats,
        };

        let leaf_count = match sample.omitted {
            0 => sample.native.len(),
            _ => sample.native.len().min(LEAF_FRAMES),
        };
        let (leaf_side, root_side) = sample.native.split_at(leaf_count);

        if sample.end != StackEnd::Root {
            walk.path.push(FrameKey::Ended(sample.end));
            let outermost = if root_side.is_empty() { leaf_side } else { root_side };
            walk.skip_above(outermost.iter().rev(), |stats| &mut stats.beyond_end);
        }
        walk.frames(root_side);
        if sample.omitted > 0 {
            walk.path.push(FrameKey::omitted(sample.omitted));
            walk.skip_above(leaf_side.iter().rev(), |stats| &mut stats.in_gap);
        }
        walk.frames(leaf_side);
        walk.rest_is_missed();

        let stats = walk.stats;
        let whole = matches!(sample.python, PythonPart::Frames { .. })
            && sample.end == StackEnd::Root
            && stats.missed + stats.unanchored + stats.hidden == 0;
        self.learn();
        if whole {
            self.mark_eval_leaf();
        }
        Merged {
            path: &self.path,
            stats,
        }
    }

    /// Remembers who called the eval frames of this path.
    fn learn(&mut self) {
        for pair in self.path.windows(2) {
            if let [caller @ FrameKey::Native { .. }, FrameKey::Python(_)] = pair
                && self.carriers.len() < CARRIERS
            {
                self.carriers.insert(*caller, ());
            }
        }
    }

    /// Marks a leaf that is an eval frame between two events.
    fn mark_eval_leaf(&mut self) {
        if let [.., caller, leaf] = self.path.as_mut_slice()
            && let FrameKey::Native { module, rva } = *leaf
            && matches!(caller, FrameKey::Native { module: of_caller, .. } if *of_caller == module)
            && self.carriers.contains_key(caller)
        {
            *leaf = FrameKey::Eval { module, rva };
        }
    }
}

/// The state of one walk from the root towards the leaf.
struct Walk<'a> {
    /// Entries that are not decided yet, outermost first.
    entries: &'a [PythonEntry],
    path: &'a mut Vec<FrameKey>,
    stats: MergeStats,
}

impl<'a> Walk<'a> {
    /// The next undecided entry with an anchor; those without are counted on the way.
    fn peek(&mut self) -> Option<PythonEntry> {
        while let Some((entry, rest)) = self.entries.split_first() {
            if entry.anchor != 0 {
                return Some(*entry);
            }
            self.stats.unanchored += 1;
            self.entries = rest;
        }
        None
    }

    fn advance(&mut self) {
        self.entries = self.entries.get(1..).unwrap_or_default();
    }

    /// Counts the entries that lie above everything in `frames_from_root`, which is the next stretch of native frames. Stops at the first
    /// frame whose CFA is known.
    fn skip_above<'f>(
        &mut self,
        mut frames_from_root: impl Iterator<Item = &'f NativeFrame>,
        counter: fn(&mut MergeStats) -> &mut u64,
    ) {
        let top = frames_from_root
            .find(|frame| frame.cfa != 0)
            .map_or(0, |frame| frame.cfa);
        while let Some(entry) = self.peek() {
            if entry.anchor <= top {
                break;
            }
            *counter(&mut self.stats) += 1;
            self.advance();
        }
    }

    /// Appends a stretch of native frames, given leaf first, with the Python frames that belong there.
    fn frames(&mut self, leaf_first: &[NativeFrame]) {
        for frame in leaf_first.iter().rev() {
            if !self.place_at(frame.cfa) {
                self.path.push(FrameKey::Native {
                    module: frame.module,
                    rva: frame.rva,
                });
            }
        }
    }

    /// Appends the Python frames whose anchor is `cfa`; false when there are none.
    fn place_at(&mut self, cfa: u64) -> bool {
        let mut placed = false;
        while cfa != 0
            && let Some(entry) = self.peek()
            && entry.anchor >= cfa
        {
            if entry.anchor == cfa {
                self.path.push(FrameKey::Python(entry.code));
                self.stats.placed += 1;
                placed = true;
            } else {
                self.stats.missed += 1;
            }
            self.advance();
        }
        placed
    }

    fn rest_is_missed(&mut self) {
        while self.peek().is_some() {
            self.stats.missed += 1;
            self.advance();
        }
    }
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
