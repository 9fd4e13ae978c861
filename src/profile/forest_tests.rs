use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::model::{CodeId, Tid};

fn thread(serial: u32) -> ThreadKey {
    ThreadKey {
        tid: Tid::new(100 + serial as i32),
        serial,
    }
}

fn frame(number: u32) -> FrameKey {
    FrameKey::Python(CodeId::new(number + 1))
}

fn total(threads: &[ThreadProfile]) -> u64 {
    threads.iter().map(|thread| thread.tree.total_nanos()).sum()
}

fn named(key: ThreadKey) -> String {
    format!("thread {}", key.serial)
}

/// Six hours in which each minute brings functions of its own, on 20 threads, some of which end.
#[test]
fn an_endless_session_of_six_hours_keeps_one_and_stays_as_large_as_that() {
    const MINUTES: u32 = 360;
    const KEPT: u32 = crate::limits::ENDLESS_MINUTES;
    let mut forest = Forest::new(Retention::Minutes(KEPT));
    let mut sizes: Vec<Room> = Vec::new();
    let mut booked: Vec<u64> = Vec::new();
    for minute in 0..MINUTES {
        booked.push(0);
        for sample in 0..2_000_u32 {
            // Threads 15 to 19 live for an hour each, one after the other in each place.
            let place = sample % 20;
            let serial = if place < 15 { place } else { place + 20 * (minute / 60) };
            let path: Vec<FrameKey> = (0..10)
                .map(|depth| frame(depth + if depth > 5 { minute * 100 + sample % 50 } else { 0 }))
                .collect();
            let nanos = 30_000_000 + u64::from(sample);
            forest.book(thread(serial), &path, minute, nanos, 0);
            booked[minute as usize] += nanos;
        }
        if minute % 60 == 59 {
            for place in 15..20 {
                let ending = thread(place + 20 * (minute / 60));
                forest.end(ending, named(ending));
            }
        }
        sizes.push(forest.used());
    }
    // Flat once the first hour is over.
    let most = sizes[60..].iter().map(|size| size.nodes).max().unwrap();
    let least = sizes[60..].iter().map(|size| size.nodes).min().unwrap();
    assert!(most <= least + least / 10, "{least} to {most} nodes");
    assert_eq!(forest.oldest(), MINUTES - KEPT);
    let threads = forest.into_threads(named);
    // Those that lived in the last hour, and no others.
    assert_eq!(threads.len(), 20);
    assert!(
        threads
            .iter()
            .all(|thread| thread.tree.windows().iter().all(|times| times.window >= MINUTES - KEPT))
    );
    let kept: u64 = booked[(MINUTES - KEPT) as usize..].iter().sum();
    // The halves of the samples at the edge belong to minutes that are forgotten.
    let found = total(&threads);
    assert!(found.abs_diff(kept) < 20 * 40_000_000, "{found} of {kept}");
    let nodes: usize = threads.iter().map(|thread| thread.tree.len()).sum();
    assert!(nodes <= most, "{nodes}");
}

#[test]
fn a_foreground_session_keeps_all() {
    let mut forest = Forest::new(Retention::All);
    for minute in 0..90 {
        forest.book(thread(0), &[frame(minute)], minute, 1_000, 0);
    }
    assert_eq!(forest.oldest(), 0);
    let threads = forest.into_threads(named);
    assert_eq!(total(&threads), 90_000);
    assert_eq!(threads[0].tree.windows().len(), 90);
    assert_eq!(threads[0].tree.len(), 90);
}

/// A thread that did not run for hours has its time in the oldest minute that is kept, and does not bring forgotten ones back.
#[test]
fn a_sample_that_stands_for_hours_stays_within_the_kept_minutes() {
    let mut forest = Forest::new(Retention::Minutes(5));
    forest.book(thread(0), &[frame(1)], 0, 1_000, 0);
    forest.book(thread(1), &[frame(1)], 300, 1_000, 0);
    forest.book(thread(0), &[frame(2)], 300, 1_000_000, 0);
    // Late by more than is kept.
    forest.book(thread(1), &[frame(3)], 7, 500, 0);
    let threads = forest.into_threads(named);
    let windows: Vec<u32> = threads
        .iter()
        .flat_map(|thread| thread.tree.windows())
        .map(|times| times.window)
        .collect();
    assert!(windows.iter().all(|window| (296..=300).contains(window)), "{windows:?}");
    assert_eq!(total(&threads), 1_000_000 + 1_000 + 500);
}

#[test]
fn all_threads_share_the_room_and_each_shows_where_it_is() {
    let mut forest = Forest::new(Retention::All);
    let threads = 3 + (SESSION_NODES / TREE_NODES) as u32;
    let mut nanos = 0;
    for serial in 0..threads {
        // One thread alone would fill its tree.
        for number in 0..TREE_NODES as u32 + 10 {
            forest.book(thread(serial), &[frame(serial), frame(number)], 0, 100, 0);
            nanos += 100;
        }
    }
    assert!(
        forest.used().nodes <= SESSION_NODES + threads as usize * (THREAD_NODES + 2),
        "{:?}",
        forest.used()
    );
    let profiles = forest.into_threads(named);
    assert_eq!(total(&profiles), nanos);
    for profile in &profiles {
        assert!(
            profile.tree.len() >= THREAD_NODES,
            "{} has {}",
            profile.name,
            profile.tree.len()
        );
        assert!(profile.tree.nodes().any(|node| node.key == FrameKey::Truncated));
    }
    assert!(profiles.last().unwrap().tree.len() <= THREAD_NODES + 2);
}

proptest! {
    #[test]
    fn no_time_is_lost_whatever_ends_or_is_forgotten(
        samples in vec((0..6_u32, vec(0..5_u32, 0..6), 0..12_u32, 0..1000_u64, any::<bool>()), 0..200),
        kept in 1..12_u32,
    ) {
        let mut forest = Forest::new(Retention::Minutes(kept));
        let mut all = Forest::new(Retention::All);
        let mut window = 0;
        let mut sum = 0;
        for (serial, codes, step, nanos, ends) in &samples {
            window += step / 4;
            let path: Vec<FrameKey> = codes.iter().copied().map(frame).collect();
            forest.book(thread(*serial), &path, window, *nanos, 0);
            all.book(thread(*serial), &path, window, *nanos, 0);
            sum += nanos;
            if *ends {
                forest.end(thread(*serial), named(thread(*serial)));
                all.end(thread(*serial), named(thread(*serial)));
            }
        }
        prop_assert_eq!(all.count(), all.used());
        prop_assert_eq!(forest.count(), forest.used());
        let oldest = forest.oldest();
        let threads = forest.into_threads(named);
        let whole = all.into_threads(named);
        prop_assert_eq!(total(&whole), sum);
        prop_assert!(threads.iter().flat_map(|thread| thread.tree.windows()).all(|times| times.window >= oldest));
        // Of the minutes after the oldest kept one, which may hold what was clamped to it, nothing differs.
        let newer = |threads: &[ThreadProfile]| -> u64 {
            let windows = threads.iter().flat_map(|thread| thread.tree.windows());
            windows.filter(|times| times.window > oldest).map(|times| times.total_nanos()).sum()
        };
        prop_assert_eq!(newer(&threads), newer(&whole));
    }
}
