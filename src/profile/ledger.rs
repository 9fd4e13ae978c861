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
//!
//! One part of it is known better. A thread that waits for a processor answers when it gets one, but it has not moved since it was asked: that time
//! belongs to the later stack, and only what is before it is shared. With eight busy threads on two processors this is most of all time.

use super::frame::FrameKey;
use super::tree::{Room, Tree};

/// One thread's tree and the stack that waits for its second half.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    tree: Tree,
    last: Vec<FrameKey>,
    last_window: Option<u32>,
    /// The oldest window that is kept.
    oldest: u32,
}

impl Ledger {
    /// Books a sample: its stack, root first, its window, the time in nanoseconds since the previous sample of this thread, and how much of that, at its
    /// end, is certainly this stack's.
    pub fn book(&mut self, path: &[FrameKey], window: u32, nanos: u64, held: u64) {
        // What belongs to a window that is forgotten is booked in the oldest that is kept.
        let window = window.max(self.oldest);
        let earlier = match self.last_window.map(|last| last.max(self.oldest)) {
            Some(last) if last != window || self.last != path => {
                let half = nanos.saturating_sub(held) / 2;
                self.tree.add(&self.last, last, half);
                half
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

    /// Books time that is all this stack's.
    pub fn add(&mut self, path: &[FrameKey], window: u32, nanos: u64) {
        self.tree.add(path, window.max(self.oldest), nanos);
    }

    /// The tree so far.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Sets the most room that the tree may take.
    pub fn limit(&mut self, room: Room) {
        self.tree.limit(room);
    }

    /// Forgets all windows before `first`.
    pub fn forget_before(&mut self, first: u32) {
        self.oldest = first;
        self.tree.forget_before(first);
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
        ledger.book(&A, 0, 10, 0);
        ledger.book(&A, 0, 4, 0);
        ledger.book(&B, 0, 5, 0);
        ledger.book(&A, 0, 7, 0);
        let tree = ledger.into_tree();
        assert_eq!(times(&tree, A[0]), [(0, 10 + 4 + 2 + 4)]);
        assert_eq!(times(&tree, B[0]), [(0, 3 + 3)]);
        assert_eq!(tree.total_nanos(), 26);
    }

    #[test]
    fn time_in_which_the_thread_stood_still_already_is_not_shared() {
        let mut ledger = Ledger::default();
        ledger.book(&A, 0, 10, 0);
        ledger.book(&B, 0, 100, 94);
        // Longer than all of it: the sample before was taken after the request.
        ledger.book(&A, 0, 5, 9);
        let tree = ledger.into_tree();
        assert_eq!(times(&tree, A[0]), [(0, 10 + 3 + 5)]);
        assert_eq!(times(&tree, B[0]), [(0, 97)]);
    }

    #[test]
    fn each_half_stays_in_its_window() {
        let mut ledger = Ledger::default();
        ledger.book(&A, 0, 10, 0);
        ledger.book(&A, 1, 8, 0);
        ledger.book(&B, 2, 6, 0);
        let tree = ledger.into_tree();
        assert_eq!(times(&tree, A[0]), [(0, 14), (1, 4 + 3)]);
        assert_eq!(times(&tree, B[0]), [(2, 3)]);
    }

    /// A thread that sleeps 30 and works 20, sampled every 7 or so while it sleeps and every 2 or so while it works: the work has its share.
    #[test]
    fn shares_are_right_when_the_distance_of_samples_depends_on_what_runs() {
        let mut ledger = Ledger::default();
        let mut whole_to_the_later = 0;
        let mut random = 1_u64;
        let (mut last, mut now) = (0, 0);
        for _ in 0..1_000_000 {
            let works = now % 50_000 >= 30_000;
            ledger.book(if works { &A } else { &B }, 0, now - last, 0);
            whole_to_the_later += if works { now - last } else { 0 };
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            last = now;
            now += (random >> 33) % if works { 4_000 } else { 14_000 };
        }
        let tree = ledger.into_tree();
        let share = |nanos: u64| nanos as f64 / tree.total_nanos() as f64;
        let found = share(times(&tree, A[0])[0].1);
        assert!((0.395..0.405).contains(&found), "{found}");
        assert!(
            share(whole_to_the_later) > 0.43,
            "the sampling is not uneven enough to show the difference"
        );
    }
}
