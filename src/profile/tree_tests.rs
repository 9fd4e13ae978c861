use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::model::CodeId;

fn path(codes: &[u32]) -> Vec<FrameKey> {
    codes.iter().map(|code| FrameKey::Python(CodeId::new(*code))).collect()
}

/// Every stack with its time per window, as the tree holds it.
fn stacks(tree: &Tree) -> BTreeMap<(u32, Vec<FrameKey>), u64> {
    let mut paths: Vec<Vec<FrameKey>> = Vec::new();
    for node in tree.nodes() {
        let mut path = node.parent.map(|parent| paths[parent].clone()).unwrap_or_default();
        path.push(node.key);
        paths.push(path);
    }
    let mut all = BTreeMap::new();
    for times in tree.windows() {
        for (node, nanos) in &times.self_nanos {
            assert!(
                all.insert((times.window, paths[*node as usize].clone()), *nanos)
                    .is_none(),
                "a node twice"
            );
        }
        if times.bare_nanos > 0 {
            all.insert((times.window, Vec::new()), times.bare_nanos);
        }
    }
    all
}

#[test]
fn equal_prefixes_share_nodes() {
    let mut tree = Tree::new();
    tree.add(&path(&[1, 2, 3]), 0, 10);
    tree.add(&path(&[1, 2, 4]), 0, 20);
    tree.add(&path(&[1, 2]), 0, 5);
    tree.add(&path(&[1, 2, 3]), 0, 1);
    assert_eq!(tree.len(), 4);
    assert_eq!(tree.total_nanos(), 36);
    let stacks = stacks(&tree);
    assert_eq!(stacks[&(0, path(&[1, 2, 3]))], 11);
    assert_eq!(stacks[&(0, path(&[1, 2]))], 5);
}

#[test]
fn a_stack_without_frames_keeps_its_time() {
    let mut tree = Tree::new();
    tree.add(&[], 3, 7);
    assert_eq!((tree.len(), tree.total_nanos()), (0, 7));
    assert_eq!(tree.windows()[0].bare_nanos, 7);
}

#[test]
fn a_full_tree_says_so_below_the_deepest_frame_it_knows() {
    let mut tree = Tree::with_capacity(3);
    tree.add(&path(&[1, 2, 3]), 0, 10);
    tree.add(&path(&[1, 2, 9, 8]), 0, 4);
    tree.add(&path(&[1, 2, 7]), 0, 2);
    tree.add(&path(&[1, 2, 3]), 0, 1);
    tree.add(&path(&[5]), 0, 3);
    let mut truncated = path(&[1, 2]);
    truncated.push(FrameKey::Truncated);
    let stacks = stacks(&tree);
    assert_eq!(stacks[&(0, truncated)], 6);
    assert_eq!(stacks[&(0, vec![FrameKey::Truncated])], 3);
    assert_eq!(stacks[&(0, path(&[1, 2, 3]))], 11);
    assert_eq!((tree.total_nanos(), tree.truncated_nanos()), (20, 9));
}

#[test]
fn a_tree_without_room_for_times_says_so_and_keeps_them() {
    let mut tree = Tree::new();
    tree.limit(Room { nodes: 100, times: 3 });
    tree.add(&path(&[1, 2]), 0, 1);
    tree.add(&path(&[1]), 0, 2);
    tree.add(&path(&[1, 2]), 1, 4);
    tree.add(&path(&[1]), 1, 8);
    tree.add(&path(&[1, 2]), 1, 16);
    // Late, and with no time of its own in that window either.
    tree.add(&path(&[1, 2, 3]), 0, 32);
    tree.add(&path(&[1, 2]), 2, 64);
    let truncated = vec![FrameKey::Truncated];
    assert_eq!(
        stacks(&tree),
        BTreeMap::from([
            ((0, path(&[1, 2])), 1),
            ((0, path(&[1])), 2),
            ((1, path(&[1, 2])), 20),
            ((1, truncated.clone()), 8),
            ((0, truncated.clone()), 32),
            ((2, truncated), 64),
        ])
    );
    assert_eq!((tree.total_nanos(), tree.truncated_nanos()), (127, 104));
    // One for each window more than there was room for.
    assert_eq!(tree.used().times, 6);
    tree.forget_before(1);
    assert_eq!(tree.used().times, 3);
    assert_eq!(tree.total_nanos(), 92);
}

#[test]
fn late_samples_are_booked_in_their_own_window() {
    let mut tree = Tree::new();
    tree.add(&path(&[1]), 4, 1);
    tree.add(&path(&[1, 2]), 5, 2);
    tree.add(&path(&[1]), 4, 10);
    tree.add(&path(&[3]), 4, 20);
    tree.add(&path(&[1]), 2, 40);
    let windows: Vec<(u32, u64)> = tree
        .windows()
        .iter()
        .map(|times| (times.window, times.total_nanos()))
        .collect();
    assert_eq!(windows, [(2, 40), (4, 31), (5, 2)]);
}

#[test]
fn forgotten_windows_take_their_frames_along() {
    let mut tree = Tree::new();
    tree.add(&path(&[1, 2, 3]), 0, 1);
    tree.add(&path(&[1, 4]), 1, 2);
    tree.forget_before(1);
    assert_eq!(stacks(&tree), BTreeMap::from([((1, path(&[1, 4])), 2)]));
    assert_eq!(tree.len(), 2);
    tree.add(&path(&[1, 4]), 1, 5);
    tree.add(&path(&[1, 2]), 2, 7);
    assert_eq!((tree.len(), tree.total_nanos()), (3, 14));
}

proptest! {
    #[test]
    fn time_is_kept_exactly_by_stack_and_window(
        samples in vec((vec(1..5_u32, 0..8), 0..5_u32, 0..1000_u64), 0..200),
        forget in 0..6_u32,
    ) {
        let mut tree = Tree::new();
        let mut expected = BTreeMap::new();
        for (codes, window, nanos) in &samples {
            let path = path(codes);
            tree.add(&path, *window, *nanos);
            *expected.entry((*window, path)).or_insert(0) += nanos;
        }
        expected.retain(|_, nanos| *nanos > 0);
        let with_time = |tree: &Tree| {
            let mut stacks = stacks(tree);
            stacks.retain(|_, nanos| *nanos > 0);
            stacks
        };
        prop_assert_eq!(with_time(&tree), expected.clone());

        tree.forget_before(forget);
        expected.retain(|(window, _), _| *window >= forget);
        prop_assert_eq!(with_time(&tree), expected);
        for (index, node) in tree.nodes().enumerate() {
            prop_assert!(node.parent.is_none_or(|parent| parent < index));
        }
    }

    #[test]
    fn a_full_tree_loses_no_time(samples in vec((vec(1..9_u32, 0..12), 0..3_u32, 1..1000_u64), 0..200)) {
        let mut tree = Tree::with_capacity(20);
        let mut total = 0;
        for (codes, window, nanos) in &samples {
            tree.add(&path(codes), *window, *nanos);
            total += nanos;
        }
        prop_assert_eq!(tree.total_nanos(), total);
        prop_assert!(tree.len() <= 40);
    }
}
