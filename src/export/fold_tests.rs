use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;

use super::*;
use crate::export::pb;
use crate::export::profile::encoded_name;

const WINDOWS: usize = 2;

/// A tree with these depths (each at most one deeper than what follows allows) and own times in two windows.
fn tree(frames: &[(u32, u64)]) -> OrderedTree {
    let mut tree = OrderedTree::new(vec![(1, 3)]);
    // From the end: the last frame is a root, and each one before is at most one deeper than the one after it.
    let mut after = 0;
    let mut depths: Vec<u32> = frames
        .iter()
        .rev()
        .enumerate()
        .map(|(index, (depth, _))| {
            after = if index == 0 { 0 } else { depth % (after + 2) };
            after
        })
        .collect();
    depths.reverse();
    for (name, ((_, own), depth)) in frames.iter().zip(depths).enumerate() {
        tree.push(name as u32, depth, 0, [(0, *own), (1, own / 2)]);
    }
    tree
}

fn profile(tree: OrderedTree) -> Profile {
    let names = tree.nodes().iter().map(|node| {
        encoded_name(&FrameName {
            class: format!("module_{:x}", u64::from(node.name) * 7919 % 997),
            method: format!(
                "function_{:x}",
                u64::from(node.name).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ),
            ..FrameName::default()
        })
    });
    Profile {
        names: names.collect(),
        rest: pb::SamplerData {
            time_windows: vec![1, 2],
            ..pb::SamplerData::default()
        },
        threads: vec![ThreadTree {
            name: "server".to_owned(),
            tree,
        }],
    }
}

fn gzip_bytes(profile: &Profile) -> u64 {
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    write(profile, &mut out).unwrap();
    out.finish().unwrap().len() as u64
}

/// Own times of all frames together, per window, each from the sums that are written.
fn self_time(tree: &OrderedTree) -> Vec<u64> {
    let mut inclusive: Vec<Vec<u64>> = Vec::new();
    let mut sum = vec![0; WINDOWS];
    add(&mut sum, tree.bare());
    tree.walk_all(WINDOWS, |visit| {
        for (window, nanos) in visit.nanos.iter().enumerate() {
            let below: u64 = visit
                .children
                .iter()
                .map(|child| inclusive[*child as usize][window])
                .sum();
            sum[window] += nanos
                .checked_sub(below)
                .expect("a frame has less time than those it calls");
        }
        inclusive.push(visit.nanos.to_vec());
    });
    sum
}

fn frames_in(tree: &OrderedTree) -> usize {
    tree.nodes().iter().map(|node| node.folded.max(1) as usize).sum()
}

#[test]
fn a_small_profile_stays_as_it_is() {
    let mut small = profile(tree(&[(0, 5), (1, 7), (0, 2)]));
    let before = small.clone();
    assert_eq!(fold(&mut small, 1 << 20), 0);
    assert_eq!(small, before);
}

#[test]
fn the_largest_frames_stay_and_the_rest_is_said() {
    let frames: Vec<(u32, u64)> = (0..20_000)
        .map(|index| (index * 31 % 23, u64::from(index % 100)))
        .collect();
    let mut profile = profile(tree(&frames));
    let before = profile.clone();
    let limit = gzip_bytes(&profile) / 4;
    let folded = fold(&mut profile, limit);
    let size = gzip_bytes(&profile);
    assert!(size <= limit, "{size} of {limit}");
    // A good part of what fits is used.
    assert!(size > limit / 2, "{size} of {limit}");
    let (tree, before) = (&profile.threads[0].tree, &before.threads[0].tree);
    let shown = tree.nodes().iter().filter(|node| node.folded == 0).count() as u64;
    assert_eq!(folded + shown, 20_000);
    assert_eq!(self_time(tree), self_time(before));
    let mut bytes = Vec::new();
    write(&profile, &mut bytes).unwrap();
    assert_eq!(bytes.len() as u64, written_bytes(&profile));
    let data = pb::SamplerData::decode(&bytes[..]).unwrap();
    let said = data.threads[0]
        .children
        .iter()
        .filter(|node| node.class_name == OWN_CLASS);
    assert!(said.clone().count() > 0);
    assert!(
        said.into_iter()
            .all(|node| node.method_name.contains("(folded): the profile is too large"))
    );
}

/// Thousands of frames that were seen in one sample each have the same time: not all of them go because some have to.
#[test]
fn of_frames_with_the_same_time_only_some_are_folded() {
    let mut profile = profile(tree(&(0..20_000).map(|index| (index % 5, 1_000)).collect::<Vec<_>>()));
    let limit = gzip_bytes(&profile) * 9 / 10;
    assert!(fold(&mut profile, limit) > 0);
    let size = gzip_bytes(&profile);
    assert!(size <= limit && size > limit * 8 / 10, "{size} of {limit}");
}

/// Minutes cost room even where nothing happened: a day of them is too much for the page long before it is too much for the network.
#[test]
fn what_is_small_as_gzip_and_large_in_the_viewer_is_folded() {
    let mut profile = profile(tree(&(0..60_000).map(|index| (index % 7, 1)).collect::<Vec<_>>()));
    profile.rest.time_windows = (0..1_440).collect();
    assert!(written_bytes(&profile) > PROFILE_BYTES);
    assert!(fold(&mut profile, u64::MAX / 2) > 0);
    let size = written_bytes(&profile);
    assert!(size <= PROFILE_BYTES && size > PROFILE_BYTES / 2, "{size}");
}

proptest! {
    #[test]
    fn folding_once_and_again_keeps_all_time(
        frames in vec((any::<u32>(), 0..1000_u64), 1..200),
        bounds in (0..3000_u64, 0..6000_u64),
    ) {
        let mut folded = tree(&frames);
        let before = self_time(&folded);
        for bound in [bounds.0, bounds.1] {
            let weights = weigh(&folded, WINDOWS, 0, Size::Gzip);
            folded = fold_tree(&folded, &weights, WINDOWS, (bound, 0));
            prop_assert_eq!(self_time(&folded), before.clone());
            prop_assert_eq!(frames_in(&folded), frames.len());
            let weights = weigh(&folded, WINDOWS, 0, Size::Gzip);
            for (node, weight) in folded.nodes().iter().zip(weights) {
                prop_assert!(node.folded > 0 || weight.time.0 >= bound);
            }
            // One frame for the folded ones of each caller.
            folded.walk_all(WINDOWS, |visit| {
                let stand_ins = visit.children.iter().filter(|child| folded.nodes()[**child as usize].folded > 0);
                assert!(stand_ins.count() <= 1);
            });
        }
    }
}
