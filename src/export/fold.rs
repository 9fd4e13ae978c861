//! Makes a profile small enough for the viewer.
//!
//! # Problem
//! The viewer's server refuses uploads above a size, and a browser takes ever longer with every frame. A profile that is too large is one with very many
//! frames of very little time each.
//!
//! # Algorithm
//! A frame's time is at least that of each frame below it, so "all frames with at least so much time" is a tree that contains the root. The bound is
//! chosen so that the part of the size stays that has to, by the size measured; what is below it becomes, under each frame that stays, one frame that
//! says how many it stands for. Its time is theirs, so all sums stay as they are. What a frame weighs as gzip is only known about: the size is measured
//! after each try, and the next one is aimed by it.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::frames::{FrameName, OWN_CLASS};
use super::ordered::{FOLDED, OrderedTree, add};
use super::profile::{Profile, ThreadTree};
use super::write::{write, written_bytes};
use crate::limits::{FOLD_ROUNDS, PROFILE_BYTES};

/// Compressed bytes of a time that is not zero, about. A zero hardly takes any.
const TIME_BYTES: u64 = 6;

/// Compressed bytes of a frame without its times, about.
const FRAME_BYTES: u64 = 12;

/// Of what would fit, aimed at: names compress unevenly.
const AIM: f64 = 0.95;

/// Of what would fit, enough to stop at.
const ENOUGH: f64 = 0.75;

/// Further tries once something fits.
const BETTER_ROUNDS: usize = 2;

/// What frames are compared by: nanoseconds, and for equal ones the place among all frames, at which a caller stands behind what it calls. So a caller is
/// never less than what it calls, and no two are equal.
type Time = (u64, u32);

/// A frame's time and what it weighs in the size that is too large.
#[derive(Clone, Copy)]
struct Weight {
    time: Time,
    /// Of the frame itself.
    bytes: u64,
    /// Of the frame that stands for those of its callees that are folded: at least as much as the least of them.
    stand_in: u64,
    /// It is the least of its caller's: when it stays, all of them do, and it takes the place of the one that stood for it.
    is_least: bool,
}

/// The size that is too large.
#[derive(Clone, Copy)]
enum Size {
    /// On the network.
    Gzip,
    /// In the viewer's page.
    Raw,
}

/// How many times larger than it may be a profile is, in the size in which it is the most; up to 1 it fits.
struct Excess {
    size: Size,
    times: f64,
}

/// Folds the smallest frames of a profile that is larger than `limit` bytes as gzip, and says how many it folded; 0 when it fits.
pub fn fold(profile: &mut Profile, limit: u64) -> u64 {
    let excess = measure(profile, limit);
    if excess.times <= 1.0 {
        return 0;
    }
    let windows = profile.windows();
    let whole = std::mem::take(&mut profile.threads);
    let mut first = 0;
    let weights: Vec<Vec<Weight>> = whole
        .iter()
        .map(|thread| {
            let weights = weigh(&thread.tree, windows, first, excess.size);
            first += weights.len() as u32;
            weights
        })
        .collect();
    let mut falling: Vec<Weight> = weights.iter().flatten().copied().collect();
    falling.sort_unstable_by_key(|weight| std::cmp::Reverse(weight.time));
    let folded = |part: f64| -> Vec<ThreadTree> {
        let bound = bound(&falling, part);
        let threads = whole.iter().zip(&weights);
        let fold = |(thread, weights): (&ThreadTree, &Vec<Weight>)| ThreadTree {
            name: thread.name.clone(),
            tree: fold_tree(&thread.tree, weights, windows, bound),
        };
        threads.map(fold).collect()
    };

    // Parts of the weights that are known to fit, and to be too much.
    let (mut fits, mut too_much) = (0.0, 1.0);
    let mut part = AIM / excess.times;
    let mut best = None;
    let mut rounds = FOLD_ROUNDS;
    while rounds > 0 {
        rounds -= 1;
        profile.threads = folded(part);
        let times = measure(profile, limit).times;
        if times <= 1.0 {
            fits = part;
            best = Some(std::mem::take(&mut profile.threads));
            if times >= ENOUGH {
                break;
            }
            rounds = rounds.min(BETTER_ROUNDS);
        } else {
            too_much = part;
        }
        // By the rule of three, or by halves where that leads out of what is known.
        let guess = part * AIM / times;
        part = if guess > fits && guess < too_much {
            guess
        } else {
            (fits + too_much) / 2.0
        };
    }
    profile.threads = best.unwrap_or_else(|| folded(0.0));
    let nodes = profile.threads.iter().flat_map(|thread| thread.tree.nodes());
    nodes.map(|node| u64::from(node.folded)).sum()
}

/// How large a profile is.
fn measure(profile: &Profile, limit: u64) -> Excess {
    let of = |size: Size, bytes: u64, limit: u64| Excess {
        size,
        times: bytes as f64 / limit.max(1) as f64,
    };
    let raw = written_bytes(profile);
    if raw > PROFILE_BYTES {
        return of(Size::Raw, raw, PROFILE_BYTES);
    }
    // Compressed it is never noticeably larger.
    if raw <= limit {
        return of(Size::Gzip, raw, limit);
    }
    // At the setting of an upload.
    let mut gzip = GzEncoder::new(Counter(0), Compression::default());
    // A counter takes everything.
    let written = write(profile, &mut gzip).and_then(|()| gzip.finish());
    of(Size::Gzip, written.map_or(u64::MAX, |counter| counter.0), limit)
}

/// Counts bytes of the profile as gzip.
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

/// Weights of the frames of a tree, whose first one has the place `first` among all.
fn weigh(tree: &OrderedTree, windows: usize, first: u32, size: Size) -> Vec<Weight> {
    let mut weights: Vec<Weight> = Vec::with_capacity(tree.nodes().len());
    tree.walk_all(windows, |visit| {
        let bytes = match size {
            Size::Gzip => FRAME_BYTES + TIME_BYTES * visit.nanos.iter().filter(|nanos| **nanos > 0).count() as u64,
            Size::Raw => FRAME_BYTES + 8 * windows as u64,
        };
        let time_of = |place: &&u32| weights.get(**place as usize).map(|weight| weight.time);
        let least = visit.children.iter().min_by_key(time_of);
        let mut stand_in = 0;
        if let Some(least) = least.and_then(|place| weights.get_mut(*place as usize)) {
            least.is_least = true;
            stand_in = least.bytes;
        }
        weights.push(Weight {
            time: (visit.nanos.iter().sum(), first + weights.len() as u32),
            bytes,
            stand_in,
            is_least: false,
        });
    });
    weights
}

/// The least time of a frame that stays when about `part` of the size is to stay. `falling`: the longest time first.
fn bound(falling: &[Weight], part: f64) -> Time {
    let more = |weight: &Weight| weight.stand_in + if weight.is_least { 0 } else { weight.bytes };
    let all: u64 = falling.iter().map(more).sum();
    let mut left = (all as f64 * part) as u64;
    for weight in falling {
        match left.checked_sub(more(weight)) {
            Some(less) => left = less,
            // The first one that is folded.
            None => return (weight.time.0, weight.time.1 + 1),
        }
    }
    (0, 0)
}

/// A frame whose caller has not come yet.
struct Open {
    depth: u32,
    /// It and what it calls.
    frames: std::ops::Range<usize>,
    /// How many frames it stands for when it is folded; 0 when it stays.
    folded: u32,
}

/// The tree with what is less than `bound` folded, and with what was folded before under the same callers.
fn fold_tree(tree: &OrderedTree, weights: &[Weight], windows: usize, bound: Time) -> OrderedTree {
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
        let folded = if node.name == FOLDED || weight.time < bound {
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
