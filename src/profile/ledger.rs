//! Who gets the time between two samples.
//!
//! **Problem.** A sample is an instant, a profile wants durations. Giving the whole time since the previous sample to the new stack is right only while the
//! distance of samples does not depend on what the thread does. It does: on a busy machine the sampler is woken later while the server sleeps than while
//! it works, and what a server does first in a tick then gets the end of its sleep as well (measured with 9 runnable processes on 2 processors: 32.7 %
//! for a function that took 30.0 %).
//!
//! **Algorithm.** Every instant belongs to the sample that is nearest in time: half of the time between two samples goes to the earlier stack, half to the
//! later one. A change of stacks is equally likely anywhere between the two, however far apart they are, so the halves are right on average. The sum
//! is the time that passed, exactly.

use super::frame::FrameKey;
use super::tree::Tree;

/// One thread's tree and the stack that waits for its second half.
#[derive(Debug, Default)]
pub struct Ledger {
    tree: Tree,
    last: Vec<FrameKey>,
    last_window: Option<u32>,
}

impl Ledger {
    /// Books a sample: its stack, root first, its window, and the time in nanoseconds since the previous sample of this thread.
    pub fn book(&mut self, path: &[FrameKey], window: u32, nanos: u64) {
        let earlier = match self.last_window {
            Some(last) if last != window || self.last != path => {
                self.tree.add(&self.last, last, nanos / 2);
                nanos / 2
            }
            // The first sample has nobody to share with, and a stack shares with itself.
            _ => 0,
        };
        self.tree.add(path, window, nanos - earlier);
        if self.last != path {
            self.last.clear();
            self.last.extend_from_slice(path);
        }
        self.last_window = Some(window);
    }

    /// The tree. What passed after the last sample is nobody's.
    pub fn into_tree(self) -> Tree {
        self.tree
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CodeId;

    const A: [FrameKey; 1] = [FrameKey::Python(CodeId::new(1))];
    const B: [FrameKey; 1] = [FrameKey::Python(CodeId::new(2))];

    fn times(tree: &Tree, key: FrameKey) -> Vec<(u32, u64)> {
        let node = tree.nodes().position(|node| node.key == key).unwrap() as u32;
        let of_node = |window: &super::super::WindowTimes| {
            window
                .self_nanos
                .iter()
                .find(|(at, _)| *at == node)
                .map(|(_, nanos)| (window.window, *nanos))
        };
        tree.windows().iter().filter_map(of_node).collect()
    }

    #[test]
    fn the_time_between_two_stacks_is_shared() {
        let mut ledger = Ledger::default();
        ledger.book(&A, 0, 10);
        ledger.book(&A, 0, 4);
        ledger.book(&B, 0, 5);
        ledger.book(&A, 0, 7);
        let tree = ledger.into_tree();
        assert_eq!(times(&tree, A[0]), [(0, 10 + 4 + 2 + 4)]);
        assert_eq!(times(&tree, B[0]), [(0, 3 + 3)]);
        assert_eq!(tree.total_nanos(), 26);
    }

    #[test]
    fn each_half_stays_in_its_window() {
        let mut ledger = Ledger::default();
        ledger.book(&A, 0, 10);
        ledger.book(&A, 1, 8);
        ledger.book(&B, 2, 6);
        let tree = ledger.into_tree();
        assert_eq!(times(&tree, A[0]), [(0, 14), (1, 4 + 3)]);
        assert_eq!(times(&tree, B[0]), [(2, 3)]);
    }

    /// A thread that sleeps 30 and works 20, sampled every 7 while it sleeps and every 2 while it works, with each phase of the two: the work has its share.
    #[test]
    fn shares_are_right_when_the_distance_of_samples_depends_on_what_runs() {
        let (mut found, mut all) = (0, 0);
        for phase in 0..1_000 {
            let mut ledger = Ledger::default();
            let mut last = phase;
            let mut now = phase;
            for _ in 0..500 {
                let works = now % 50_000 >= 30_000;
                ledger.book(if works { &A } else { &B }, 0, now - last);
                last = now;
                now += if works { 2_003 } else { 7_001 };
            }
            let tree = ledger.into_tree();
            found += times(&tree, A[0]).first().map_or(0, |(_, nanos)| *nanos);
            all += tree.total_nanos();
        }
        let share = found as f64 / all as f64;
        // The whole distance for the later stack would give 0.4 plus half of 5,000 of 50,000.
        assert!((0.385..0.415).contains(&share), "{share}");
    }
}
