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

use super::frames::{FrameName, OWN_CLASS};
use super::ordered::{FOLDED, OrderedTree, add};
use super::profile::Profile;
use super::write::{write, written_bytes};
use crate::limits::{FOLD_ROUNDS, PROFILE_BYTES};

/// Compressed bytes of a time that is not zero, about. A zero hardly takes any.
const TIME_BYTES: i64 = 6;

/// Compressed bytes of a frame without its times, about.
const FRAME_BYTES: i64 = 12;

/// Of what would fit, aimed at: names compress unevenly, and a second round costs more than it brings.
const AIM: f64 = 0.95;

/// A frame's time and what it weighs in the size that is too large.
#[derive(Clone, Copy)]
struct Weight {
    nanos: u64,
    /// Less than nothing for the last of a caller's frames that stays: no other has to stand for it then.
    bytes: i64,
}

/// Folds the smallest frames of a profile that is larger than `limit` bytes as gzip, and says how many it folded; 0 when it fits.
pub fn fold(profile: &mut Profile, limit: u64) -> u64 {
    for _ in 0..FOLD_ROUNDS {
        let Some(part) = part_that_fits(profile, limit) else {
            break;
        };
        fold_to(profile, part * AIM);
    }
    let nodes = profile.threads.iter().flat_map(|thread| thread.tree.nodes());
    nodes.map(|node| u64::from(node.folded)).sum()
}

/// How much of the profile fits, 0 to 1; `None` when all of it does.
fn part_that_fits(profile: &Profile, limit: u64) -> Option<f64> {
    let raw = written_bytes(profile);
    if raw > PROFILE_BYTES {
        return Some(PROFILE_BYTES as f64 / raw as f64);
    }
    // Compressed it is never noticeably larger.
    if raw <= limit {
        return None;
    }
    let mut gzip = GzEncoder::new(Counter(0), Compression::fast());
    // A counter takes everything.
    let size = write(profile, &mut gzip)
        .and_then(|()| gzip.finish())
        .map_or(u64::MAX, |counter| counter.0);
    (size > limit).then(|| limit as f64 / size as f64)
}

/// Counts bytes of the profile as gzip, at the setting that is fast: no other makes it larger.
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

/// Folds the smallest frames so that about `part` of the size stays.
fn fold_to(profile: &mut Profile, part: f64) {
    let windows = profile.windows();
    let weights: Vec<Vec<Weight>> = profile
        .threads
        .iter()
        .map(|thread| weigh(&thread.tree, windows))
        .collect();
    let bound = bound(weights.iter().flatten().copied().collect(), part);
    for (thread, weights) in profile.threads.iter_mut().zip(&weights) {
        thread.tree = fold_tree(&thread.tree, weights, windows, bound);
    }
}

fn weigh(tree: &OrderedTree, windows: usize) -> Vec<Weight> {
    let mut weights: Vec<Weight> = Vec::with_capacity(tree.nodes().len());
    tree.walk_all(windows, |visit| {
        let times = visit.nanos.iter().filter(|nanos| **nanos > 0).count() as i64;
        let mut bytes = FRAME_BYTES + TIME_BYTES * times;
        // As long as not all that it calls stay, one frame stands for the others.
        let time_of = |place: &&u32| weights.get(**place as usize).map(|weight| weight.nanos);
        if let Some(last) = visit.children.iter().min_by_key(time_of)
            && let Some(last) = weights.get_mut(*last as usize)
        {
            let stand_in = FRAME_BYTES + TIME_BYTES * times / 2;
            last.bytes -= stand_in;
            bytes += stand_in;
        }
        weights.push(Weight {
            nanos: visit.nanos.iter().sum(),
            bytes,
        });
    });
    weights
}

/// The least time of a frame that stays when about `part` of the size is to stay.
fn bound(mut weights: Vec<Weight>, part: f64) -> u64 {
    weights.sort_unstable_by_key(|weight| std::cmp::Reverse(weight.nanos));
    let all: i64 = weights.iter().map(|weight| weight.bytes).sum();
    let mut left = (all as f64 * part) as i64;
    for weight in weights {
        left -= weight.bytes;
        if left < 0 {
            // Frames of the same time go together.
            return weight.nanos.saturating_add(1);
        }
    }
    0
}

/// A frame whose caller has not come yet.
struct Open {
    depth: u32,
    /// It and what it calls.
    frames: std::ops::Range<usize>,
    /// How many frames it stands for when it is folded; 0 when it stays.
    folded: u32,
}

/// The tree with what takes less than `bound` nanoseconds folded, and with what was folded before under the same callers.
fn fold_tree(tree: &OrderedTree, weights: &[Weight], windows: usize, bound: u64) -> OrderedTree {
    let mut result = OrderedTree::new(tree.bare().to_vec());
    let mut open: Vec<Open> = Vec::new();
    let mut sums = vec![0; windows];
    // One frame for all folded ones among `callees`.
    let mut stand_in = |callees: &[Open], depth: u32, result: &mut OrderedTree| {
        let count: u32 = callees.iter().map(|callee| callee.folded).sum();
        if count > 0 {
            for callee in callees.iter().filter(|callee| callee.folded > 0) {
                add(&mut sums, tree.own_times(callee.frames.start, callee.frames.end));
            }
            let times = sums.iter_mut().map(std::mem::take).enumerate();
            let own = times
                .filter(|(_, nanos)| *nanos > 0)
                .map(|(window, nanos)| (window as u32, nanos));
            result.push(FOLDED, depth, count, own);
        }
    };
    for ((index, node), weight) in tree.nodes().iter().enumerate().zip(weights) {
        let first_callee = open
            .iter()
            .rposition(|callee| callee.depth <= node.depth)
            .map_or(0, |before| before + 1);
        let callees = open.get(first_callee..).unwrap_or_default();
        let begin = callees.first().map_or(index, |callee| callee.frames.start);
        // What a frame calls takes no longer than it: below a folded one all are folded.
        let folded = if node.name == FOLDED || weight.nanos < bound {
            let below: u32 = callees.iter().map(|callee| callee.folded).sum();
            below + node.folded.max(1)
        } else {
            stand_in(callees, node.depth + 1, &mut result);
            result.push(
                node.name,
                node.depth,
                0,
                tree.own_times(index, index + 1).iter().copied(),
            );
            0
        };
        open.truncate(first_callee);
        open.push(Open {
            depth: node.depth,
            frames: begin..index + 1,
            folded,
        });
    }
    stand_in(&open, 0, &mut result);
    result
}

/// The name of a frame that stands for `count` folded ones.
pub fn folded_name(count: u32) -> FrameName {
    let noun = if count == 1 { "frame" } else { "frames" };
    FrameName {
        class: OWN_CLASS.to_owned(),
        method: format!("{count} smaller {noun} (folded): the profile is too large"),
        ..FrameName::default()
    }
}

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;
