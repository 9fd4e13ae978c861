use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::limits::ROOT_FRAMES;
use crate::model::{CodeId, ModuleId, MonotonicNanos, ThreadKey, Tid};

fn native(rva: u64, cfa: u64) -> NativeFrame {
    NativeFrame {
        module: ModuleId::new(1),
        rva,
        cfa,
    }
}

fn entry(anchor: u64, code: u32) -> PythonEntry {
    PythonEntry {
        anchor,
        code: CodeId::new(code),
    }
}

fn sample<'a>(native: &'a [NativeFrame], entries: &'a [PythonEntry]) -> Sample<'a> {
    Sample {
        thread: ThreadKey {
            tid: Tid::new(1),
            serial: 0,
        },
        taken_at: MonotonicNanos(0),
        weight_nanos: 4_000_000,
        held_nanos: 0,
        native,
        omitted: 0,
        end: StackEnd::Root,
        python: PythonPart::Frames { entries, hidden: 0 },
        repeated: false,
    }
}

/// `n7` is the native frame with address 7, `p7` the Python frame with code 7.
fn text(path: &[FrameKey]) -> String {
    let words: Vec<String> = path
        .iter()
        .map(|key| match key {
            FrameKey::Native { rva, .. } => format!("n{rva}"),
            FrameKey::Eval { rva, .. } => format!("eval{rva}"),
            FrameKey::Python(code) => format!("p{}", code.get()),
            FrameKey::Omitted(count) => format!("omitted{count}"),
            FrameKey::Ended(end) => format!("ended({})", end.name()),
            FrameKey::Truncated => "truncated".to_owned(),
        })
        .collect();
    words.join(" ")
}

fn merged(sample: &Sample<'_>) -> (String, MergeStats) {
    let mut merger = Merger::new();
    let merged = merger.merge(sample);
    (text(merged.path), merged.stats)
}

#[test]
fn native_frames_alone_are_turned_root_first() {
    let frames = [native(3, 10), native(2, 20), native(1, 30)];
    let mut only_native = sample(&frames, &[]);
    only_native.python = PythonPart::None;
    assert_eq!(merged(&only_native), ("n1 n2 n3".to_owned(), MergeStats::default()));
    only_native.python = PythonPart::Torn;
    assert_eq!(merged(&only_native).0, "n1 n2 n3");
}

#[test]
fn python_frames_replace_the_native_frame_that_runs_them() {
    let frames = [native(4, 10), native(3, 20), native(2, 30), native(1, 40)];
    let entries = [entry(30, 1), entry(30, 2), entry(10, 3)];
    let (path, stats) = merged(&sample(&frames, &entries));
    assert_eq!(path, "n1 p1 p2 n3 p3");
    assert_eq!(stats.placed, 3);
}

#[test]
fn entries_that_match_nothing_are_dropped_and_counted() {
    let frames = [native(2, 20), native(1, 40)];
    let entries = [
        entry(50, 1),
        entry(40, 2),
        entry(30, 3),
        entry(0, 4),
        entry(20, 5),
        entry(15, 6),
    ];
    let (path, stats) = merged(&sample(&frames, &entries));
    assert_eq!(path, "p2 p5");
    assert_eq!((stats.placed, stats.missed, stats.unanchored), (2, 3, 1));
}

#[test]
fn a_native_frame_without_a_cfa_takes_no_python_frame() {
    let frames = [native(3, 10), native(2, 0), native(1, 30)];
    let entries = [entry(0, 1), entry(10, 2)];
    assert_eq!(merged(&sample(&frames, &entries)).0, "n1 n2 p2");
}

#[test]
fn an_unfinished_stack_names_its_reason_at_the_root() {
    let frames = [native(2, 20), native(1, 40)];
    let entries = [entry(60, 1), entry(40, 2), entry(30, 3)];
    let mut unfinished = sample(&frames, &entries);
    unfinished.end = StackEnd::NoUnwindData;
    let (path, stats) = merged(&unfinished);
    assert_eq!(path, "ended(no unwind data) p2 n2");
    assert_eq!((stats.placed, stats.missed, stats.beyond_end), (1, 1, 1));
}

#[test]
fn a_stack_without_frames_keeps_its_reason() {
    let entries = [entry(60, 1)];
    let mut empty = sample(&[], &entries);
    empty.end = StackEnd::UnreadableStack;
    let (path, stats) = merged(&empty);
    assert_eq!(path, "ended(unreadable stack)");
    assert_eq!((stats.missed, stats.beyond_end), (0, 1));
}

#[test]
fn python_frames_of_the_omitted_middle_are_counted_apart() {
    // The leaf side ends with CFA 16 * 256; the gap holds CFAs up to 100,000; the root side starts there.
    let mut frames: Vec<NativeFrame> = (1..=LEAF_FRAMES as u64).map(|n| native(n, 16 * n)).collect();
    frames.push(native(1001, 100_000));
    frames.push(native(1002, 100_016));
    let entries = [
        entry(100_016, 1),
        entry(100_008, 2),
        entry(50_000, 3),
        entry(40_000, 4),
        entry(16 * 256, 5),
        entry(24, 6),
        entry(16, 7),
    ];
    let mut deep = sample(&frames, &entries);
    deep.omitted = 5_000;
    let (path, stats) = merged(&deep);
    assert!(path.starts_with("p1 n1001 omitted4096 p5 n255 "), "{path}");
    assert!(path.ends_with(" n2 p7"), "{path}");
    assert_eq!((stats.placed, stats.in_gap, stats.missed), (3, 2, 2));
}

#[test]
fn hidden_frames_are_counted() {
    let frames = [native(1, 10)];
    let entries = [entry(10, 1)];
    let mut deep = sample(&frames, &entries);
    deep.python = PythonPart::Frames {
        entries: &entries,
        hidden: 44,
    };
    assert_eq!(merged(&deep).1.hidden, 44);
}

#[test]
fn the_buffer_is_reused() {
    let frames: Vec<NativeFrame> = (1..=100).map(|n| native(n, 16 * n)).collect();
    let mut merger = Merger::new();
    merger.merge(&sample(&frames, &[]));
    let (address, capacity) = (merger.path.as_ptr(), merger.path.capacity());
    for depth in [1, 50, 100] {
        merger.merge(&sample(&frames[..depth], &[]));
        assert_eq!((merger.path.as_ptr(), merger.path.capacity()), (address, capacity));
    }
}

/// A stack as it really is: native frames with the Python frames each one runs.
#[derive(Clone, Debug)]
struct Truth {
    /// Root first: how many Python frames the native frame runs.
    python: Vec<usize>,
    gap: usize,
}

fn truth() -> impl Strategy<Value = Truth> {
    let frame = prop_oneof![3 => Just(0_usize), 2 => 1..4_usize];
    (vec(frame, 0..700), Just(0)).prop_map(|(python, _)| Truth {
        gap: python.len().saturating_sub(LEAF_FRAMES + ROOT_FRAMES),
        python,
    })
}

struct Captured {
    native: Vec<NativeFrame>,
    entries: Vec<PythonEntry>,
    expected: Vec<FrameKey>,
    in_gap: u64,
}

impl Truth {
    fn capture(&self) -> Captured {
        let total = self.python.len();
        let gap = if self.gap == 0 {
            0..0
        } else {
            ROOT_FRAMES..total - LEAF_FRAMES
        };
        let mut captured = Captured {
            native: Vec::new(),
            entries: Vec::new(),
            expected: Vec::new(),
            in_gap: 0,
        };
        for (index, &count) in self.python.iter().enumerate() {
            let cfa = 0x7000_0000 - 48 * index as u64;
            let frame = native(index as u64, cfa);
            for _ in 0..count {
                captured.entries.push(entry(cfa, captured.entries.len() as u32 + 1));
            }
            if gap.contains(&index) {
                captured.in_gap += count as u64;
                if index == gap.start {
                    captured.expected.push(FrameKey::omitted(gap.len() as u32));
                }
                continue;
            }
            captured.native.insert(0, frame);
            match count {
                0 => captured.expected.push(FrameKey::Native {
                    module: frame.module,
                    rva: frame.rva,
                }),
                _ => captured.expected.extend(
                    captured.entries[captured.entries.len() - count..]
                        .iter()
                        .map(|entry| FrameKey::Python(entry.code)),
                ),
            }
        }
        captured
    }
}

proptest! {
    #[test]
    fn a_true_stack_is_restored_exactly(truth in truth()) {
        let captured = truth.capture();
        let mut sample = sample(&captured.native, &captured.entries);
        sample.omitted = truth.gap as u32;
        let mut merger = Merger::new();
        let merged = merger.merge(&sample);
        prop_assert_eq!(merged.path, &captured.expected[..]);
        prop_assert_eq!(merged.stats.in_gap, captured.in_gap);
        prop_assert_eq!(merged.stats.missed + merged.stats.unanchored, 0);
    }

    /// Whatever the input, order holds, nothing appears twice, and every entry is accounted for.
    #[test]
    fn odd_input_never_duplicates_nor_reorders(
        cfas in vec(0..40_u64, 0..600),
        anchors in vec(0..40_u64, 0..60),
        omitted in prop_oneof![Just(0_u32), 1..9000_u32],
        end in 0..6_u8,
    ) {
        let frames: Vec<NativeFrame> =
            cfas.iter().enumerate().map(|(index, &cfa)| native((cfas.len() - index) as u64, cfa)).collect();
        let entries: Vec<PythonEntry> =
            anchors.iter().enumerate().map(|(index, &anchor)| entry(anchor, index as u32 + 1)).collect();
        let mut sample = sample(&frames, &entries);
        sample.omitted = omitted;
        sample.end = StackEnd::from_number(end);
        let mut merger = Merger::new();
        let Merged { path, stats } = merger.merge(&sample);

        let natives: Vec<u64> =
            path.iter().filter_map(|key| if let FrameKey::Native { rva, .. } = key { Some(*rva) } else { None }).collect();
        let pythons: Vec<u32> =
            path.iter().filter_map(|key| if let FrameKey::Python(code) = key { Some(code.get()) } else { None }).collect();
        prop_assert!(natives.is_sorted_by(|a, b| a < b));
        prop_assert!(pythons.is_sorted_by(|a, b| a < b));
        prop_assert_eq!(pythons.len() as u64, stats.placed);
        prop_assert_eq!(
            stats.placed + stats.missed + stats.unanchored + stats.in_gap + stats.beyond_end,
            entries.len() as u64
        );
        // Only a frame that Python frames stand for is missing.
        for frame in &frames {
            let shown = natives.contains(&frame.rva);
            let replaced = pythons.iter().any(|code| entries[*code as usize - 1].anchor == frame.cfa);
            prop_assert!(shown || replaced);
        }
        let ended = path.iter().filter(|key| matches!(key, FrameKey::Ended(_))).count();
        prop_assert_eq!(ended, usize::from(sample.end != StackEnd::Root));
    }
}

#[test]
fn an_eval_frame_between_two_events_is_told_by_its_caller() {
    let mut merger = Merger::new();
    let mut path = |native: &[NativeFrame], entries: &[PythonEntry], hidden: u32| {
        let mut sample = sample(native, entries);
        sample.python = PythonPart::Frames { entries, hidden };
        text(merger.merge(&sample).path)
    };
    let stack = [native(30, 60), native(20, 80), native(10, 100)];
    let entering = [
        native(33, 40),
        native(20, 45),
        native(31, 60),
        native(20, 80),
        native(10, 100),
    ];
    // Nothing is known of the caller yet.
    assert_eq!(path(&stack, &[], 0), "n10 n20 n30");
    assert_eq!(path(&stack, &[entry(60, 1)], 0), "n10 n20 p1");
    assert_eq!(path(&stack, &[], 0), "n10 n20 eval30");
    assert_eq!(path(&entering, &[entry(60, 1)], 0), "n10 n20 p1 n20 eval33");
    // It runs a function whose entry was lost.
    assert_eq!(path(&entering, &[entry(60, 1), entry(41, 2)], 0), "n10 n20 p1 n20 n33");
    assert_eq!(path(&entering, &[entry(60, 1), entry(0, 2)], 0), "n10 n20 p1 n20 n33");
    assert_eq!(path(&entering, &[entry(60, 1)], 1), "n10 n20 p1 n20 n33");
    // Not a leaf: what it calls shows what it is doing.
    let inner = [
        native(50, 30),
        native(33, 40),
        native(20, 45),
        native(31, 60),
        native(20, 80),
        native(10, 100),
    ];
    assert_eq!(path(&inner, &[entry(60, 1)], 0), "n10 n20 p1 n20 n33 n50");
}
