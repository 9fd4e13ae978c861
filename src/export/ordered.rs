//! One thread's frames in the order of export.
//!
//! # Problem
//! The format wants one number per frame and minute, callees included: 200,000 frames of an hour are 12 million numbers, nearly all of them zero, and they
//! are needed once, in order, to be written.
//!
//! # Algorithm
//! Callees come before their callers, so a frame's sums are complete when its turn comes. What is under way is only the frames between the current one and
//! the root: one row of sums for each level of depth. The numbers are made while walking and kept nowhere.

use std::convert::Infallible;

/// A name that is no index: the frame stands for folded ones.
pub const FOLDED: u32 = u32::MAX;

/// One frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderedNode {
    /// Index of the name, or [`FOLDED`].
    pub name: u32,
    /// 0 for root frames.
    pub depth: u32,
    /// End of its part of the times, which begins where the frame before ends.
    pub times_end: u32,
    /// How many frames were folded into it; 0 for any other.
    pub folded: u32,
}

/// One thread's frames: callees before their callers, siblings by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OrderedTree {
    nodes: Vec<OrderedNode>,
    /// Window (counted from the profile's first) and the nanoseconds in which a frame was leaf-most, frame by frame.
    times: Vec<(u32, u64)>,
    /// The same of stacks without any frame.
    bare: Vec<(u32, u64)>,
}

/// A frame whose sums are complete.
#[derive(Clone, Copy, Debug)]
pub struct Visit<'a> {
    /// The frame.
    pub node: &'a OrderedNode,
    /// Nanoseconds per window, callees included.
    pub nanos: &'a [u64],
    /// Places of its callees.
    pub children: &'a [u32],
}

/// What remains after the last frame.
#[derive(Debug, Default)]
pub struct Whole {
    /// Nanoseconds of the thread per window.
    pub nanos: Vec<u64>,
    /// Places of the root frames.
    pub roots: Vec<u32>,
}

impl OrderedTree {
    /// A tree with only this time, of stacks without any frame.
    pub fn new(bare: Vec<(u32, u64)>) -> Self {
        OrderedTree {
            bare,
            ..Self::default()
        }
    }

    /// Appends a frame with its own time by window. Its callees stand right before it, one level deeper.
    pub fn push(&mut self, name: u32, depth: u32, folded: u32, own: impl IntoIterator<Item = (u32, u64)>) {
        self.times.extend(own);
        self.nodes.push(OrderedNode {
            name,
            depth,
            times_end: self.times.len() as u32,
            folded,
        });
    }

    /// All frames.
    pub fn nodes(&self) -> &[OrderedNode] {
        &self.nodes
    }

    /// The time of stacks without any frame.
    pub fn bare(&self) -> &[(u32, u64)] {
        &self.bare
    }

    /// The own times of a run of frames, from the one at `first` up to the one before `end`.
    pub fn own_times(&self, first: usize, end: usize) -> &[(u32, u64)] {
        let end_of = |count: usize| {
            let last = count.checked_sub(1).and_then(|last| self.nodes.get(last));
            last.map_or(0, |node| node.times_end as usize)
        };
        self.times.get(end_of(first)..end_of(end)).unwrap_or_default()
    }

    /// Shows each frame with its sums over `windows` windows; times outside of them are left out. Ends at the first error.
    pub fn walk<E>(&self, windows: usize, mut visit: impl FnMut(Visit<'_>) -> Result<(), E>) -> Result<Whole, E> {
        /// What is under way at one depth: the frames whose caller has not come yet.
        struct Level {
            nanos: Vec<u64>,
            frames: Vec<u32>,
        }
        let level = || Level {
            nanos: vec![0; windows],
            frames: Vec::new(),
        };
        let mut levels = vec![level(), level()];
        for (index, node) in self.nodes.iter().enumerate() {
            let depth = node.depth as usize;
            while levels.len() < depth + 2 {
                levels.push(level());
            }
            let Some([own, below]) = levels.get_mut(depth..depth + 2) else {
                continue;
            };
            add(&mut below.nanos, self.own_times(index, index + 1));
            visit(Visit {
                node,
                nanos: &below.nanos,
                children: &below.frames,
            })?;
            for (sum, nanos) in own.nanos.iter_mut().zip(&mut below.nanos) {
                *sum += std::mem::take(nanos);
            }
            own.frames.push(index as u32);
            below.frames.clear();
        }
        let mut roots = levels.swap_remove(0);
        add(&mut roots.nanos, &self.bare);
        Ok(Whole {
            nanos: roots.nanos,
            roots: roots.frames,
        })
    }

    /// The same for a look that cannot fail.
    pub fn walk_all(&self, windows: usize, mut visit: impl FnMut(Visit<'_>)) -> Whole {
        let result = self.walk(windows, |frame| {
            visit(frame);
            Ok::<(), Infallible>(())
        });
        match result {
            Ok(whole) => whole,
        }
    }
}

/// Adds times by window.
pub fn add(sums: &mut [u64], times: &[(u32, u64)]) {
    for (window, nanos) in times {
        if let Some(sum) = sums.get_mut(*window as usize) {
            *sum += nanos;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_complete_when_a_frame_is_shown() {
        let mut tree = OrderedTree::new(vec![(1, 5)]);
        tree.push(10, 2, 0, [(0, 1), (1, 2)]);
        tree.push(11, 2, 0, [(1, 4)]);
        tree.push(12, 1, 0, [(0, 8)]);
        tree.push(13, 0, 0, []);
        tree.push(14, 0, 0, [(0, 16), (7, 1000)]);
        let mut seen = Vec::new();
        let whole = tree.walk_all(2, |visit| {
            seen.push((visit.node.name, visit.nanos.to_vec(), visit.children.to_vec()));
        });
        let expected: [(u32, &[u64], &[u32]); 5] = [
            (10, &[1, 2], &[]),
            (11, &[0, 4], &[]),
            (12, &[9, 6], &[0, 1]),
            (13, &[9, 6], &[2]),
            (14, &[16, 0], &[]),
        ];
        for ((name, nanos, children), seen) in expected.into_iter().zip(&seen) {
            assert_eq!((name, nanos, children), (seen.0, &seen.1[..], &seen.2[..]));
        }
        assert_eq!((whole.nanos, whole.roots), (vec![25, 11], vec![3, 4]));
        assert_eq!(tree.own_times(1, 3), [(1, 4), (0, 8)]);
    }
}
