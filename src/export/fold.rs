//! Makes a profile small enough for the viewer.
//!
//! # Problem
//! The viewer's server refuses uploads above a size, and a browser takes ever longer with every frame. A profile that is too large is one with very many
//! frames of very little time each.
//!
//! # Algorithm
//! A frame's time is at least that of each frame below it, so "all frames with at least so much time" is a tree that contains the root. The bound is
//! chosen so that the part of the size stays that has to, by the size measured; what is below it becomes, under each frame that stays, one frame that
//! says how many it stands for. Its time is theirs, so all sums stay as they are. Names compress unevenly, so the size is measured again, and the bound
//! raised until it fits.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::pb;
use super::save::write;
use crate::limits::FOLD_ROUNDS;

/// Counts bytes.
#[derive(Default)]
struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.0 += buffer.len() as u64;
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Size of a profile as gzip, in bytes, at the setting that is fast: no other makes it larger.
fn gzip_bytes(data: &pb::SamplerData) -> u64 {
    let mut encoder = GzEncoder::new(Counter::default(), Compression::fast());
    // A counter takes everything.
    match write(data, &mut encoder).and_then(|()| encoder.finish()) {
        Ok(counter) => counter.0,
        Err(_) => u64::MAX,
    }
}

/// Folds the smallest frames of a profile that is larger than `limit` bytes as gzip, and says how many it folded; 0 when it fits.
pub fn fold(data: &mut pb::SamplerData, limit: u64) -> u64 {
    // Compressed it is never noticeably larger.
    if prost::Message::encoded_len(data) as u64 <= limit {
        return 0;
    }
    for _ in 0..FOLD_ROUNDS {
        let size = gzip_bytes(data);
        if size <= limit {
            break;
        }
        let bound = bound(data, limit as f64 / size as f64 * 0.95);
        for thread in &mut data.threads {
            fold_thread(thread, bound);
        }
    }
    data.threads.iter().map(folded_frames).sum()
}

/// The least time of a frame that stays when about `part` of the compressed size is to stay.
fn bound(data: &pb::SamplerData, part: f64) -> f64 {
    let mut frames: Vec<(f64, usize)> = Vec::new();
    for node in data.threads.iter().flat_map(|thread| &thread.children) {
        // A time that is not zero hardly compresses; names, references and zeros do.
        let times = node.times.iter().filter(|time| **time > 0.0).count();
        frames.push((total(node), TIME_BYTES * times + FRAME_BYTES));
    }
    frames.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    let all: usize = frames.iter().map(|(_, weight)| weight).sum();
    let mut left = all as f64 * part;
    for (time, weight) in frames {
        left -= weight as f64;
        if left < 0.0 {
            // Frames of the same time go together.
            return time.next_up();
        }
    }
    0.0
}

/// Compressed bytes of a time that is not zero, about.
const TIME_BYTES: usize = 6;

/// Compressed bytes of a frame without its times, about.
const FRAME_BYTES: usize = 12;

/// Frames that folded ones stand for.
fn folded_frames(thread: &pb::ThreadNode) -> u64 {
    thread.children.iter().filter_map(folded_count).sum()
}

fn folded_count(node: &pb::StackTraceNode) -> Option<u64> {
    if node.class_name != CLASS {
        return None;
    }
    node.method_name.strip_suffix(WORDS)?.trim_end().parse().ok()
}

fn total(node: &pb::StackTraceNode) -> f64 {
    node.times.iter().sum()
}

/// Folds what has less than `bound` milliseconds.
fn fold_thread(thread: &mut pb::ThreadNode, bound: f64) {
    let mut old: Vec<Option<pb::StackTraceNode>> = std::mem::take(&mut thread.children).into_iter().map(Some).collect();
    let mut kept: Vec<pb::StackTraceNode> = Vec::new();
    // Old index, and the place in `kept` of the frame that called it.
    let mut todo: Vec<(i32, Option<usize>)> = Vec::new();
    let roots = std::mem::take(&mut thread.children_refs);
    let mut root_refs = Vec::new();
    split(&mut old, &roots, bound, None, &mut todo, &mut kept, &mut root_refs);
    while let Some((index, parent)) = todo.pop() {
        let Some(mut node) = take(&mut old, index) else {
            continue;
        };
        let refs = std::mem::take(&mut node.children_refs);
        let place = kept.len();
        kept.push(node);
        let list = match parent.and_then(|parent| kept.get_mut(parent)) {
            Some(parent) => &mut parent.children_refs,
            None => &mut root_refs,
        };
        list.push(i32::try_from(place).unwrap_or(i32::MAX));
        let mut own = Vec::new();
        split(&mut old, &refs, bound, Some(place), &mut todo, &mut kept, &mut own);
        if let Some(node) = kept.get_mut(place) {
            node.children_refs = own;
        }
    }
    thread.children = kept;
    thread.children_refs = root_refs;
}

fn take(old: &mut [Option<pb::StackTraceNode>], index: i32) -> Option<pb::StackTraceNode> {
    old.get_mut(usize::try_from(index).ok()?)?.take()
}

/// Puts the callees that stay on `todo`, and one frame for the others into `kept` and `refs`.
fn split(
    old: &mut [Option<pb::StackTraceNode>],
    callees: &[i32],
    bound: f64,
    parent: Option<usize>,
    todo: &mut Vec<(i32, Option<usize>)>,
    kept: &mut Vec<pb::StackTraceNode>,
    refs: &mut Vec<i32>,
) {
    let time_of = |old: &[Option<pb::StackTraceNode>], index: i32| {
        let node = usize::try_from(index).ok().and_then(|index| old.get(index)?.as_ref());
        node.map_or(0.0, total)
    };
    let (small, large): (Vec<i32>, Vec<i32>) = callees.iter().partition(|index| time_of(old, **index) < bound);
    todo.extend(large.iter().rev().map(|index| (*index, parent)));
    let mut times: Vec<f64> = Vec::new();
    let mut count = 0;
    for index in small {
        let Some(node) = take(old, index) else { continue };
        times.resize(node.times.len(), 0.0);
        times.iter_mut().zip(&node.times).for_each(|(sum, time)| *sum += time);
        count += folded_count(&node).unwrap_or(1);
        let mut below = node.children_refs;
        while let Some(index) = below.pop() {
            if let Some(node) = take(old, index) {
                count += folded_count(&node).unwrap_or(1);
                below.extend(node.children_refs);
            }
        }
    }
    if count == 0 {
        return;
    }
    refs.push(i32::try_from(kept.len()).unwrap_or(i32::MAX));
    kept.push(pb::StackTraceNode {
        class_name: CLASS.to_owned(),
        method_name: format!("{count} {WORDS}"),
        times,
        ..pb::StackTraceNode::default()
    });
}

const CLASS: &str = "[spark]";
const WORDS: &str = "smaller frames (folded): the profile is too large";

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// A thread whose frame `n + 1` was called by `parents[n] % (n + 1)`, with its own time in two windows. Whole numbers: their sums are exact.
    fn thread(frames: &[(usize, u32)]) -> pb::ThreadNode {
        let mut nodes: Vec<pb::StackTraceNode> = frames
            .iter()
            .enumerate()
            .map(|(index, (_, own))| pb::StackTraceNode {
                class_name: format!("module_{:x}", index * 7919 % 997),
                method_name: format!("function_{:x}", (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
                times: vec![f64::from(*own), f64::from(own / 2)],
                ..pb::StackTraceNode::default()
            })
            .collect();
        let mut refs = Vec::new();
        let mut times = vec![0.0; 2];
        for index in (0..frames.len()).rev() {
            let own = nodes[index].times.clone();
            let (list, sums) = if index == 0 || frames[index].0.is_multiple_of(17) {
                (&mut refs, &mut times)
            } else {
                let parent = &mut nodes[frames[index].0 % index];
                (&mut parent.children_refs, &mut parent.times)
            };
            list.push(index as i32);
            sums.iter_mut().zip(own).for_each(|(sum, time)| *sum += time);
        }
        pb::ThreadNode {
            name: "server".to_owned(),
            children: nodes,
            times,
            children_refs: refs,
        }
    }

    fn data(thread: pb::ThreadNode) -> pb::SamplerData {
        pb::SamplerData {
            threads: vec![thread],
            ..pb::SamplerData::default()
        }
    }

    /// Sum of what all frames took themselves, per window; panics on a bad reference, a frame reached twice or one never reached.
    fn self_time(thread: &pb::ThreadNode) -> Vec<f64> {
        let mut sum = thread.times.clone();
        let mut seen = vec![false; thread.children.len()];
        let mut todo = thread.children_refs.clone();
        let add = |sum: &mut [f64], times: &[f64], sign: f64| {
            sum.iter_mut().zip(times).for_each(|(sum, time)| *sum += sign * time);
        };
        for root in &thread.children_refs {
            add(&mut sum, &thread.children[*root as usize].times, -1.0);
        }
        while let Some(index) = todo.pop() {
            let node = &thread.children[index as usize];
            assert!(!std::mem::replace(&mut seen[index as usize], true));
            add(&mut sum, &node.times, 1.0);
            let mut own = node.times.clone();
            for child in &node.children_refs {
                add(&mut sum, &thread.children[*child as usize].times, -1.0);
                add(&mut own, &thread.children[*child as usize].times, -1.0);
            }
            assert!(
                own.iter().all(|time| *time >= 0.0),
                "a frame has less time than those it calls"
            );
            todo.extend(&node.children_refs);
        }
        assert!(seen.iter().all(|seen| *seen));
        sum
    }

    #[test]
    fn a_small_profile_stays_as_it_is() {
        let mut small = data(thread(&[(0, 5), (1, 7), (0, 2)]));
        let before = small.clone();
        assert_eq!(fold(&mut small, 1 << 20), 0);
        assert_eq!(small, before);
    }

    #[test]
    fn the_largest_frames_stay_and_the_rest_is_said() {
        let frames: Vec<(usize, u32)> = (0..20_000).map(|index| (index * 31, (index % 100) as u32)).collect();
        let mut data = data(thread(&frames));
        let before = data.clone();
        let limit = gzip_bytes(&data) / 4;
        let folded = fold(&mut data, limit);
        assert!(gzip_bytes(&data) <= limit);
        let thread = &data.threads[0];
        let shown = thread.children.iter().filter(|node| node.class_name != CLASS).count() as u64;
        assert_eq!(folded + shown, 20_000);
        // A good part of what fits is used.
        assert!(gzip_bytes(&data) > limit / 3, "{} of {limit}", gzip_bytes(&data));
        assert_eq!(self_time(thread), self_time(&before.threads[0]));
    }

    proptest! {
        #[test]
        fn folding_keeps_all_time(frames in vec((any::<usize>(), 0..1000_u32), 1..200), bound in 0.0..3000.0_f64) {
            let mut folded = thread(&frames);
            let before = self_time(&folded);
            prop_assert_eq!(&before, &folded.times);
            fold_thread(&mut folded, bound);
            prop_assert_eq!(self_time(&folded), before);
            let kept = folded.children.iter().filter(|node| node.class_name != CLASS).count() as u64;
            prop_assert_eq!(kept + folded_frames(&folded), frames.len() as u64);
        }
    }
}
