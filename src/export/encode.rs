//! From a snapshot to a profile.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::frames::{FrameNames, NativeNames};
use super::layout::Layout;
use super::metadata::ProfileMetadata;
use super::pb;
use super::profile::{Profile, ThreadTree, encoded_name};
use super::shorten::bounded;
use super::sources::Sources;
use crate::limits::NAME_CHARS;
use crate::model::{Grouping, Module, ModuleId};
use crate::profile::{FrameKey, Snapshot, ThreadProfile};

/// Names and orders a snapshot. Native frames are named by `native`, a [`crate::symbol::Symbolizer`]. The same input gives the same profile.
///
/// Every time in the result is a sum of sampled times: frames that are left out, folded or cut give theirs to the frames that stand for
/// them.
pub fn encode(snapshot: &Snapshot, native: &mut dyn NativeNames, metadata: &ProfileMetadata) -> Profile {
    native.prepare(&modules_with_frames(snapshot));
    let mut names = FrameNames::new(snapshot, native, metadata.view.show_interpreter);
    let layouts: Vec<(String, Layout)> = groups(&snapshot.threads, metadata.view.grouping)
        .into_iter()
        .map(|(name, members)| {
            let mut layout = Layout::default();
            for thread in members {
                layout.add(&thread.tree, &mut names);
            }
            (name, layout.cut(&mut names))
        })
        .collect();

    let (first_window, windows) = window_range(snapshot);
    let rank = ranks(&names);
    let threads = layouts
        .into_iter()
        .map(|(name, layout)| ThreadTree {
            name,
            tree: layout.ordered(&rank, first_window),
        })
        .collect();
    let sources = Sources::of(&names, snapshot, &metadata.sources);
    let mut metadata = metadata.encode(names.unknown_codes(), &names.coverage());
    metadata.sources = sources.metadata;
    Profile {
        rest: pb::SamplerData {
            metadata: Some(metadata),
            threads: Vec::new(),
            class_sources: sources.by_class,
            method_sources: sources.by_method,
            line_sources: BTreeMap::new(),
            time_windows: (0..windows as u32)
                .map(|offset| snapshot.clock.epoch_minute(first_window + offset))
                .collect(),
            time_window_statistics: window_statistics(snapshot, first_window, windows),
            channel_info: None,
        },
        names: names.names().iter().map(encoded_name).collect(),
        threads,
    }
}

/// Modules that a frame lies in. A server loads some hundred libraries; most of them never show up.
fn modules_with_frames(snapshot: &Snapshot) -> Vec<Arc<Module>> {
    let nodes = snapshot.threads.iter().flat_map(|thread| thread.tree.nodes());
    let used: HashSet<ModuleId> = nodes
        .filter_map(|node| match node.key {
            FrameKey::Native { module, .. } | FrameKey::Eval { module, .. } => Some(module),
            _ => None,
        })
        .collect();
    let modules = snapshot.modules.iter().filter(|module| used.contains(&module.id));
    modules.map(Arc::clone).collect()
}

/// First window and number of windows, without a gap, of everything in the snapshot; at least one.
fn window_range(snapshot: &Snapshot) -> (u32, usize) {
    let sampled = snapshot
        .threads
        .iter()
        .flat_map(|thread| thread.tree.windows())
        .map(|times| times.window);
    let figured = (0..snapshot.windows.len() as u32).map(|offset| snapshot.first_window + offset);
    let (first, last) = sampled
        .chain(figured)
        .fold(None, |range: Option<(u32, u32)>, window| {
            let (first, last) = range.unwrap_or((window, window));
            Some((first.min(window), last.max(window)))
        })
        .unwrap_or((snapshot.first_window, snapshot.first_window));
    (first, (last - first) as usize + 1)
}

fn window_statistics(snapshot: &Snapshot, first_window: u32, windows: usize) -> BTreeMap<i32, pb::WindowStatistics> {
    (0..windows as u32)
        .map(|offset| {
            let window = first_window + offset;
            let stats = window
                .checked_sub(snapshot.first_window)
                .and_then(|index| snapshot.windows.get(index as usize))
                .copied()
                .unwrap_or_default();
            let start = snapshot.clock.wall_start(window).0;
            let encoded = pb::WindowStatistics {
                ticks: count(stats.ticks),
                cpu_process: finite(stats.cpu_process.unwrap_or(0.0)),
                cpu_system: finite(stats.cpu_system.unwrap_or(0.0)),
                tps: finite(stats.tps),
                mspt_median: finite(stats.mspt_median),
                mspt_max: finite(stats.mspt_max),
                players: count(stats.players.unwrap_or(0)),
                entities: count(stats.entities.unwrap_or(0)),
                tile_entities: 0,
                chunks: count(stats.chunks.unwrap_or(0)),
                start_time: start,
                end_time: start.saturating_add(i64::from(stats.duration_millis)),
                duration: count(stats.duration_millis),
            };
            (snapshot.clock.epoch_minute(window), encoded)
        })
        .collect()
}

fn count(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// The viewer prints NaN as it is, and refuses negative numbers.
fn finite(number: f64) -> f64 {
    if number.is_finite() { number.max(0.0) } else { 0.0 }
}

/// Place of each name in the order of names.
fn ranks(names: &FrameNames<'_>) -> Vec<u32> {
    let names = names.names();
    let mut order: Vec<u32> = (0..names.len() as u32).collect();
    order.sort_unstable_by_key(|id| names.get(*id as usize));
    let mut ranks = vec![0; names.len()];
    for (rank, id) in order.iter().enumerate() {
        if let Some(slot) = ranks.get_mut(*id as usize) {
            *slot = rank as u32;
        }
    }
    ranks
}

/// Threads that share a tree, in order of their first member, with the name to show. No name comes twice.
fn groups(threads: &[ThreadProfile], grouping: Grouping) -> Vec<(String, Vec<&ThreadProfile>)> {
    let mut groups: Vec<(String, Vec<&ThreadProfile>)> = Vec::new();
    for thread in threads {
        let pool = match grouping {
            // No thread has a name with a slash and this long.
            Grouping::ByPool if thread.alone => format!("{}/alone among the others", thread.name),
            Grouping::ByPool => folded(&thread.name),
            Grouping::Separate => format!("{}/{}", thread.key.tid.get(), thread.key.serial),
            Grouping::AllInOne => String::new(),
        };
        match groups.iter_mut().find(|(name, _)| *name == pool) {
            Some((_, members)) => members.push(thread),
            None => groups.push((pool, vec![thread])),
        }
    }
    let mut taken: Vec<String> = Vec::new();
    for (name, members) in &mut groups {
        let first = members.first().map_or("", |thread| thread.name.as_str());
        let count = members.iter().map(|thread| thread.members).sum::<u32>();
        let shown = match (grouping, count) {
            (Grouping::AllInOne, _) => "All".to_owned(),
            (Grouping::Separate, 2..) => format!("{first} ({count} threads)"),
            (_, 1) => first.to_owned(),
            (_, count) => format!("{name} ({count} threads)"),
        };
        let shown = bounded(
            if shown.trim().is_empty() {
                "unnamed thread"
            } else {
                &shown
            },
            NAME_CHARS,
        );
        let mut unique = shown.clone();
        let mut number = 2;
        while taken.contains(&unique) {
            unique = format!("{shown} #{number}");
            number += 1;
        }
        taken.push(unique.clone());
        *name = unique;
    }
    groups
}

/// A thread's name with each number replaced by `#`.
fn folded(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            _ if !c.is_ascii_digit() => out.push(c),
            _ if out.ends_with('#') => {}
            _ => out.push('#'),
        }
    }
    out
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
