//! Journals that something has happened to.

use endstone_spark::journal::{SegmentError, SessionId};

use super::independent;
use super::random::Random;
use super::support::{Seen, files, read, write_one};

fn whole(batches: usize) -> (SessionId, Vec<u8>) {
    let root = tempfile::tempdir().unwrap();
    let (session, _) = write_one(root.path(), 9, batches);
    let bytes = std::fs::read(&files(root.path(), ".journal")[0]).unwrap();
    (session, bytes)
}

/// Where each record begins, and where the last one ends.
fn record_starts(bytes: &[u8]) -> Vec<usize> {
    let mut starts = vec![28];
    let mut at = 28;
    while at < bytes.len() {
        at += 9 + u32::from_le_bytes(bytes[at + 1..at + 5].try_into().unwrap()) as usize;
        starts.push(at);
    }
    assert_eq!(*starts.last().unwrap(), bytes.len());
    starts
}

fn assert_as_counted(seen: &Seen, counts: &independent::Counts, what: &str) {
    assert_eq!(
        (seen.samples, seen.micros, seen.ticks, seen.modules),
        (counts.samples, counts.micros, counts.ticks, counts.modules.len() as u64),
        "{what}"
    );
}

#[test]
fn cut_at_any_of_500_places_every_complete_record_is_read() {
    let (session, bytes) = whole(40);
    let mut random = Random::of(77, 0);
    for _ in 0..500 {
        let length = random.below(bytes.len() + 1);
        let cut = &bytes[..length];
        let seen = read(session, 1, cut);
        assert_as_counted(&seen, &independent::count(cut), &format!("cut at {length}"));
        // What a file system may leave: the right length, and zeros.
        let mut zeros = cut.to_vec();
        zeros.resize(length + 5_000, 0);
        if length >= 28 {
            assert_eq!(read(session, 1, &zeros).samples, seen.samples, "zeros from {length} on");
        }
    }
}

#[test]
fn a_changed_bit_costs_its_record_and_what_needs_it_and_nothing_else_changes() {
    let (session, bytes) = whole(6);
    let starts = record_starts(&bytes);
    let good = read(session, 1, &bytes);
    for bit in (28 * 8..bytes.len() * 8).step_by(13) {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let seen = read(session, 1, &changed);
        let report = &seen.reports[0];
        assert!(
            report.damaged > 0 || report.is_cut || report.unknown > 0,
            "bit {bit} was not noticed"
        );
        // All that is shown is true.
        let mut rest = good.taken.iter();
        for sample in &seen.taken {
            assert!(rest.any(|whole| whole == sample), "bit {bit} made up {sample:?}");
        }
    }
    // A record whose length is right is lost alone.
    let samples = starts.iter().find(|at| bytes[**at] == 6).unwrap();
    let mut changed = bytes.clone();
    changed[samples + 7] ^= 1;
    let seen = read(session, 1, &changed);
    assert!(seen.reports[0].damaged >= 1);
    // Repetitions of a stack that was in it are lost as well.
    assert!(
        (good.samples - 120..=good.samples - 60).contains(&seen.samples),
        "{}",
        seen.samples
    );
}

#[test]
fn other_files_are_refused_with_a_reason() {
    let (session, bytes) = whole(2);
    let error = |bytes: &[u8], session: SessionId, sequence: u32| {
        let mut seen = read(session, sequence, bytes);
        assert_eq!((seen.samples, seen.modules), (0, 0));
        seen.reports.remove(0).error
    };
    assert!(
        error(&[], session, 1).is_none(),
        "an empty file is a journal that was just begun"
    );
    assert!(matches!(error(&bytes[..20], session, 1), Some(SegmentError::Damaged)));
    assert!(matches!(error(&[b'x'; 5_000], session, 1), Some(SegmentError::Foreign)));
    assert!(matches!(error(&bytes, session, 2), Some(SegmentError::Misnamed)));
    let mut newer = bytes.clone();
    newer[8] = 9;
    assert!(matches!(error(&newer, session, 1), Some(SegmentError::Newer(9))));
    newer[8] = 0;
    assert!(matches!(error(&newer, session, 1), Some(SegmentError::Damaged)));
}

#[test]
fn a_sparse_giant_is_read_in_a_moment() {
    let (session, bytes) = whole(2);
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("giant");
    std::fs::write(&path, &bytes).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(4 << 30).unwrap();
    let mut samples = 0;
    let report = endstone_spark::journal::Replay::new(session).segment(
        1,
        std::io::BufReader::new(std::fs::File::open(&path).unwrap()),
        &mut |event| {
            if let endstone_spark::journal::Event::Sample(sample) = event {
                samples += u64::from(sample.count);
            }
        },
    );
    assert!(report.is_cut);
    assert_eq!(samples, 120);
}

#[test]
fn records_of_a_kind_that_is_not_known_are_passed_over() {
    let (session, bytes) = whole(2);
    let mut changed = bytes[..record_starts(&bytes)[1]].to_vec();
    let mut record = vec![200, 3, 0, 0, 0, 1, 2, 3];
    let sum = crc32fast::hash(&record).to_le_bytes();
    record.extend(sum);
    changed.extend(&record);
    changed.extend(&bytes[record_starts(&bytes)[1]..]);
    let seen = read(session, 1, &changed);
    assert_eq!(
        (seen.samples, seen.reports[0].unknown, seen.reports[0].damaged),
        (120, 1, 0)
    );
}

/// Small journals of version 1, kept: whoever changes the format must go on reading them.
#[test]
fn kept_journals_are_read_by_both_readers() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus/journal");
    let (mut dropped, mut stalls) = (0, 0);
    for file in files(&folder, ".journal") {
        let bytes = std::fs::read(&file).unwrap();
        let counts = independent::count(&bytes);
        let seen = read(SessionId::new(counts.session), counts.sequence, &bytes);
        assert_as_counted(&seen, &counts, &file.display().to_string());
        assert_eq!(seen.reports[0].records, counts.records);
        assert!(counts.samples > 0);
        dropped += seen.dropped;
        stalls += seen.stalls.len();
    }
    assert!(dropped > 0 && stalls > 0);
}
