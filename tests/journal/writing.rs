//! What is written comes back.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use endstone_spark::journal::{Event, Journal, RecoveryFolder, Replay, TickFeed};
use endstone_spark::limits;
use endstone_spark::model::{MonotonicNanos, Stall};

use super::independent;
use super::random::Random;
use super::support::{Load, START, files, flush, give_fresh, head, key, modules, next_start, read, write_one};

/// Runs of repetitions are one entry: samples of the same stack and thread in a row are put together before both sides are compared.
fn joined(taken: &[super::support::Taken]) -> Vec<(u32, Vec<endstone_spark::journal::Frame>, u64)> {
    let mut by_thread: std::collections::BTreeMap<u32, Vec<(Vec<endstone_spark::journal::Frame>, u64)>> =
        std::collections::BTreeMap::new();
    for sample in taken {
        let of_thread = by_thread.entry(sample.thread.serial).or_default();
        match of_thread.last_mut() {
            Some((path, micros)) if *path == sample.path => *micros += sample.micros,
            _ => of_thread.push((sample.path.clone(), sample.micros)),
        }
    }
    by_thread
        .into_iter()
        .flat_map(|(thread, runs)| runs.into_iter().map(move |(path, micros)| (thread, path, micros)))
        .collect()
}

#[test]
fn every_sample_comes_back_with_its_native_stack_and_its_time() {
    let root = tempfile::tempdir().unwrap();
    let (session, taken) = write_one(root.path(), 1, 50);
    let file = &files(root.path(), ".journal")[0];
    let bytes = std::fs::read(file).unwrap();
    let seen = read(session, 1, &bytes);
    assert_eq!(seen.samples, taken.len() as u64);
    let (before, after) = (joined(&taken), joined(&seen.taken));
    assert_eq!(before.len(), after.len());
    for (before, after) in before.iter().zip(&after) {
        assert_eq!((before.0, &before.1), (after.0, &after.1));
        // Rounding moves a microsecond from one sample to the next.
        assert!(before.2.abs_diff(after.2) <= 30, "{} and {}", before.2, after.2);
    }
    assert_eq!((seen.modules, seen.ticks, seen.dropped, seen.ended), (30, 50, 0, false));
    assert_eq!(seen.threads.len(), 6);
    assert!(seen.threads.contains(&(key(3), "thread 3".to_owned())));
    let report = &seen.reports[0];
    assert!(report.damaged == 0 && report.unknown == 0 && !report.is_cut && report.error.is_none());

    let counts = independent::count(&bytes);
    assert_eq!(
        (counts.samples, counts.micros, counts.ticks, counts.modules.len() as u64),
        (seen.samples, seen.micros, seen.ticks, seen.modules)
    );
    assert_eq!(counts.records, report.records);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(file), 0o600);
}

#[test]
fn a_journal_in_a_new_folder_is_for_its_owner_alone() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("spark/recovery");
    write_one(&folder, 1, 1);
    let mode = std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);
}

#[test]
fn a_journal_stays_within_its_budget_and_each_segment_can_be_read_alone() {
    let root = tempfile::tempdir().unwrap();
    let recovery = Arc::new(RecoveryFolder::open(root.path()).unwrap());
    let (journal, mut feed) = Journal::begin(&recovery, head(), TickFeed::default()).unwrap();
    let modules = modules(40);
    let mut random = Random::of(3, 0);
    // Until the oldest segment had to go. What the writer has no time for is dropped.
    while files(root.path(), ".journal")
        .first()
        .is_none_or(|oldest| oldest.to_string_lossy().ends_with("-000001.journal"))
    {
        give_fresh(&mut feed, &mut random, 1_000);
        flush(&mut feed, &modules);
    }
    drop(feed);
    drop(journal);
    let (_copy, recovery) = next_start(root.path());
    let found = recovery.found().remove(0);
    assert!(
        (limits::JOURNAL_BYTES / 2..=limits::JOURNAL_BYTES).contains(&found.bytes),
        "{} bytes",
        found.bytes
    );
    assert!(
        found.segments.len() > 5 && found.segments[0] > 1,
        "{:?}",
        found.segments
    );
    let last = *found.segments.last().unwrap();
    let bytes = std::fs::read(files(root.path(), ".journal").pop().unwrap()).unwrap();
    let seen = read(found.session, last, &bytes);
    let report = &seen.reports[0];
    assert!(report.damaged == 0 && report.error.is_none(), "{report:?}");
    assert_eq!((seen.modules, seen.threads.len()), (40, 40));
    let mut replay = Replay::new(found.session);
    let (mut samples, mut told) = (0, 0);
    for sequence in found.segments {
        let file = recovery.open_segment(found.session, sequence).unwrap();
        let report = replay.segment(sequence, std::io::BufReader::new(file), &mut |event| match event {
            Event::Sample(_) => samples += 1,
            Event::Module(_) => told += 1,
            _ => {}
        });
        assert!(report.damaged == 0 && report.error.is_none(), "{report:?}");
    }
    assert!(samples > 100_000, "{samples}");
    assert_eq!(told, 40, "a module is told once");
}

#[test]
fn a_stall_comes_back_and_one_that_goes_on_is_in_every_segment() {
    let root = tempfile::tempdir().unwrap();
    let recovery = Arc::new(RecoveryFolder::open(root.path()).unwrap());
    let (journal, mut feed) = Journal::begin(&recovery, head(), TickFeed::default()).unwrap();
    let modules = modules(40);
    let stall = |began: u64, ended: Option<u64>| Stall {
        began: MonotonicNanos(START + began * 1_000),
        ended: ended.map(|ended| MonotonicNanos(START + ended * 1_000)),
    };
    let told = [
        stall(7_000, None),
        stall(7_000, Some(9_000_500)),
        stall(20_000_000, None),
    ];
    for stall in told {
        feed.ticks().stall(stall);
        flush(&mut feed, &modules);
    }
    let mut random = Random::of(3, 0);
    while files(root.path(), ".journal").len() < 2 {
        give_fresh(&mut feed, &mut random, 1_000);
        flush(&mut feed, &modules);
    }
    drop(feed);
    drop(journal);
    let all = files(root.path(), ".journal");
    let (_copy, recovery) = next_start(root.path());
    let session = recovery.found()[0].session;
    for (sequence, expected) in [(1, &told[..]), (2, &told[2..])] {
        let bytes = std::fs::read(&all[sequence as usize - 1]).unwrap();
        assert_eq!(read(session, sequence, &bytes).stalls, expected, "segment {sequence}");
        let counted: Vec<(u64, u64)> = expected
            .iter()
            .map(|stall| {
                let micros = |at: MonotonicNanos| (at.0 - START) / 1_000;
                let began = micros(stall.began);
                (began, stall.ended.map_or(0, |ended| micros(ended) - began + 1))
            })
            .collect();
        assert_eq!(independent::count(&bytes).stalls, counted);
    }
}

#[test]
fn a_discarded_journal_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let recovery = Arc::new(RecoveryFolder::open(root.path()).unwrap());
    let (journal, mut feed) = Journal::begin(&recovery, head(), TickFeed::default()).unwrap();
    Load::new(3, 4, 4).give(&mut feed, 10);
    flush(&mut feed, &modules(3));
    drop(feed);
    journal.discard();
    assert_eq!(files(root.path(), ""), [root.path().join("lock")]);
}

#[test]
fn a_folder_that_cannot_be_written_ends_the_journal_with_one_reason() {
    let root = tempfile::tempdir().unwrap();
    let recovery = Arc::new(RecoveryFolder::open(root.path()).unwrap());
    std::fs::remove_dir_all(root.path()).unwrap();
    let (journal, mut feed) = Journal::begin(&recovery, head(), TickFeed::default()).unwrap();
    let told = loop {
        Load::new(3, 4, 4).give(&mut feed, 10);
        flush(&mut feed, &modules(3));
        if let Some(told) = journal.problem_to_tell() {
            break told;
        }
        std::thread::yield_now();
    };
    assert!(told.contains("could not be written"), "{told}");
    assert_eq!(journal.problem_to_tell(), None);
    drop(feed);
    journal.discard();
}
