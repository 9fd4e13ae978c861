//! What a reader remembers of one segment: frames and threads by their numbers. Every number comes from a file that anybody may have written.

use super::packer::{ENDED, NATIVE, OMITTED};
use super::wire::Cursor;
use crate::limits;
use crate::model::{ModuleId, StackEnd, ThreadKey};

/// Frames of one stack at most: both sides, the gap, and the end.
const DEPTH: u16 = (limits::LEAF_FRAMES + limits::ROOT_FRAMES + 2) as u16;

/// A frame of a stack that was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame {
    /// Stands for the missing root side of a stack that did not reach its root.
    Ended(StackEnd),
    /// Stands for this many frames that were left out of the middle.
    Omitted(u32),
    /// C, C++ or Rust code; that of the interpreter too.
    Native {
        /// The module that holds it, or [`ModuleId::NONE`].
        module: ModuleId,
        /// See [`crate::model::NativeFrame::rva`].
        rva: u64,
    },
}

impl Frame {
    fn of(what: u64, value: u64) -> Option<Frame> {
        Some(match what {
            ENDED => Frame::Ended(StackEnd::from_number(u8::try_from(value).ok()?)),
            OMITTED => Frame::Omitted(u32::try_from(value).ok()?),
            _ => Frame::Native {
                module: ModuleId::new(u32::try_from(what - NATIVE).ok()?),
                rva: value,
            },
        })
    }
}

#[derive(Clone, Copy, Debug)]
struct Node {
    frame: Frame,
    parent: u32,
    /// 0: the record with this frame was lost.
    depth: u16,
}

const HOLE: Node = Node {
    frame: Frame::Omitted(0),
    parent: 0,
    depth: 0,
};

/// The frames of a segment.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// Number 1 first.
    nodes: Vec<Node>,
}

impl Frames {
    pub(super) fn clear(&mut self) {
        self.nodes.clear();
    }

    /// Takes a record of frames. `None` when it is none; what came before the fault is kept.
    pub(super) fn take(&mut self, mut cursor: Cursor<'_>) -> Option<()> {
        let first = usize::try_from(cursor.number()?).ok()?;
        // Numbers only grow; some are missing where a record was lost.
        if first <= self.nodes.len() || first > limits::JOURNAL_NODES {
            return None;
        }
        self.nodes.resize(first - 1, HOLE);
        while !cursor.is_empty() {
            if self.nodes.len() >= limits::JOURNAL_NODES {
                return None;
            }
            let number = self.nodes.len() as u32 + 1;
            let parent = number.checked_sub(cursor.small().filter(|distance| *distance > 0)?)?;
            let frame = Frame::of(cursor.number()?, cursor.number()?)?;
            let depth = match parent {
                0 => Some(0),
                _ => self.node(parent).map(|node| node.depth),
            };
            // One whose caller is lost is lost with it.
            self.nodes.push(match depth {
                Some(depth) if depth >= DEPTH => return None,
                Some(depth) => Node {
                    frame,
                    parent,
                    depth: depth + 1,
                },
                None => HOLE,
            });
        }
        Some(())
    }

    fn node(&self, number: u32) -> Option<Node> {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        self.nodes.get(at).copied().filter(|node| node.depth > 0)
    }

    /// The stack with this leaf, root first; 0 is the one without frames. `false` when it is not known.
    pub(super) fn path(&self, leaf: u32, path: &mut Vec<Frame>) -> bool {
        path.clear();
        let mut at = leaf;
        // Callers have lower numbers, so this ends.
        while at != 0 {
            let Some(node) = self.node(at) else { return false };
            path.push(node.frame);
            at = node.parent;
        }
        path.reverse();
        true
    }
}

/// A thread of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadState {
    pub(super) key: ThreadKey,
    /// The leaf of its last stack.
    pub(super) leaf: Option<u32>,
}

/// The threads of a segment.
#[derive(Debug, Default)]
pub(super) struct Threads(Vec<Option<ThreadState>>);

impl Threads {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// A thread gets its number, or another name.
    pub(super) fn set(&mut self, number: u64, key: ThreadKey) -> Option<()> {
        let at = usize::try_from(number)
            .ok()
            .filter(|at| *at < limits::JOURNAL_THREADS)?;
        if at >= self.0.len() {
            self.0.resize(at + 1, None);
        }
        let place = self.0.get_mut(at)?;
        if place.is_none_or(|known| known.key != key) {
            *place = Some(ThreadState { key, leaf: None });
        }
        Some(())
    }

    pub(super) fn get(&mut self, number: u64) -> Option<&mut ThreadState> {
        self.0.get_mut(usize::try_from(number).ok()?)?.as_mut()
    }

    /// A record was lost that may have had a stack of any of them: what repeats it is not known.
    pub(super) fn forget_stacks(&mut self) {
        self.0.iter_mut().flatten().for_each(|thread| thread.leaf = None);
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<ThreadKey> {
        Some(self.0.get_mut(usize::try_from(number).ok()?)?.take()?.key)
    }
}
