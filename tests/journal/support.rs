//! Sessions that were never taken, and what journals say of them.

use std::path::Path;
use std::sync::Arc;

use endstone_spark::journal::{
    Event, Feed, Frame, Journal, RecoveryFolder, Replay, SegmentReport, SessionHead, SessionId, TickFeed,
};
use endstone_spark::model::{
    BuildId, Module, ModuleId, MonotonicNanos, NativeFrame, PythonEntry, PythonPart, Sample, StackEnd, Stall,
    ThreadKey, Tid, WallMillis,
};

use super::random::Random;

pub const START: u64 = 5_000_000_000;

pub fn key(serial: u32) -> ThreadKey {
    ThreadKey {
        tid: Tid::new(100 + serial as i32),
        serial,
    }
}

pub fn head() -> SessionHead {
    SessionHead {
        started_at: MonotonicNanos(START),
        started: WallMillis(1_795_981_203_000),
        interval_micros: 4_000,
        server_name: "Endstone".to_owned(),
        ..SessionHead::default()
    }
}

pub fn modules(count: u32) -> Vec<Arc<Module>> {
    (1..=count)
        .map(|number| {
            Arc::new(Module {
                id: ModuleId::new(number),
                path: format!("/nowhere/lib{number}.so").into(),
                avma: u64::from(number) << 32..(u64::from(number) << 32) + 4096,
                base_svma: 0,
                build_id: BuildId::new(&[number as u8; 20]),
                device: 5,
                inode: u64::from(number),
            })
        })
        .collect()
}

/// A sample as it was taken, and as it should come back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Taken {
    pub thread: ThreadKey,
    pub path: Vec<Frame>,
    pub micros: u64,
}

/// A session of some threads whose stacks share beginnings.
pub struct Load {
    random: Random,
    pub now: u64,
    stacks: Vec<Vec<NativeFrame>>,
    last: Vec<Option<usize>>,
}

impl Load {
    pub fn new(seed: u64, threads: usize, stacks: usize) -> Self {
        let mut random = Random::of(seed, 0);
        let stacks = (0..stacks)
            .map(|_| {
                let depth = 10 + random.below(40);
                // Leaf first; the root side is common.
                let mut stack: Vec<NativeFrame> = (0..depth)
                    .map(|level| NativeFrame {
                        module: ModuleId::new(1 + (level as u32 * 7) % 20),
                        rva: 0x1000 * level as u64 + (random.next() % (1 + level as u64 / 8)) * 16,
                        cfa: 0x7fff_0000 - level as u64 * 64,
                    })
                    .collect();
                stack.reverse();
                stack
            })
            .collect();
        Load {
            random,
            now: START,
            stacks,
            last: vec![None; threads],
        }
    }

    /// Gives the feed some samples, and tells which.
    pub fn give(&mut self, feed: &mut Feed, count: usize) -> Vec<Taken> {
        let mut taken = Vec::new();
        for _ in 0..count {
            let thread = self.random.below(self.last.len());
            let passed = 3_000_000 + self.random.next() % 2_000_000;
            self.now += passed;
            let repeats = self.random.below(3) == 0 && self.last[thread].is_some();
            let stack = match self.last[thread] {
                Some(stack) if repeats => stack,
                _ => self.random.below(self.stacks.len()),
            };
            self.last[thread] = Some(stack);
            let native = &self.stacks[stack];
            let end = StackEnd::ALL[stack % StackEnd::ALL.len()];
            feed.sample(&Sample {
                thread: key(thread as u32),
                taken_at: MonotonicNanos(self.now),
                weight_nanos: passed,
                held_nanos: passed / 3,
                native,
                omitted: 0,
                end,
                python: PythonPart::Frames {
                    entries: &[PythonEntry {
                        anchor: native[0].cfa,
                        code: endstone_spark::model::CodeId::new(7),
                    }],
                    hidden: 0,
                },
                repeated: repeats,
            });
            let mut path = Vec::new();
            if end != StackEnd::Root {
                path.push(Frame::Ended(end));
            }
            path.extend(native.iter().rev().map(|frame| Frame::Native {
                module: frame.module,
                rva: frame.rva,
            }));
            taken.push(Taken {
                thread: key(thread as u32),
                path,
                micros: passed / 1_000,
            });
        }
        taken
    }
}

/// Gives the feed samples whose frames have not been seen before: many bytes with little work.
pub fn give_fresh(feed: &mut Feed, random: &mut Random, count: usize) {
    for number in 0..count {
        let native: Vec<NativeFrame> = (0..40)
            .map(|level| NativeFrame {
                module: ModuleId::new(1 + level),
                rva: random.next() % (1 << 27),
                cfa: 0,
            })
            .collect();
        feed.sample(&Sample {
            thread: key(number as u32 % 40),
            taken_at: MonotonicNanos(START + number as u64),
            weight_nanos: 4_000_000,
            held_nanos: 0,
            native: &native,
            omitted: 0,
            end: StackEnd::Root,
            python: PythonPart::None,
            repeated: false,
        });
    }
}

pub fn flush(feed: &mut Feed, modules: &[Arc<Module>]) {
    feed.flush(|| modules.to_vec(), |key| format!("thread {}", key.serial));
}

/// A journal of one segment, whole, in `folder`.
pub fn write_one(folder: &Path, seed: u64, batches: usize) -> (SessionId, Vec<Taken>) {
    let recovery = Arc::new(RecoveryFolder::open(folder).unwrap());
    let ticks = TickFeed::default();
    let (journal, mut feed) = Journal::begin(&recovery, head(), ticks.clone()).unwrap();
    let modules = modules(30);
    let mut load = Load::new(seed, 6, 50);
    let mut taken = Vec::new();
    for _ in 0..batches {
        taken.extend(load.give(&mut feed, 60));
        ticks.push(MonotonicNanos(load.now), 12.5);
        flush(&mut feed, &modules);
    }
    drop(feed);
    drop(journal);
    let (_copy, next) = next_start(folder);
    let found = next.found();
    assert_eq!(found.len(), 1);
    (found[0].session, taken)
}

/// The journals of a folder as the next server finds them. (On a disk that is very busy a journal's own process holds on to it, because its thread may still be at work.)
pub fn next_start(folder: &Path) -> (tempfile::TempDir, RecoveryFolder) {
    let copy = tempfile::tempdir().unwrap();
    for file in files(folder, ".journal") {
        std::fs::copy(&file, copy.path().join(file.file_name().unwrap())).unwrap();
    }
    let recovery = RecoveryFolder::open(copy.path()).unwrap();
    (copy, recovery)
}

/// What a reader shows of a journal.
#[derive(Debug, Default)]
pub struct Seen {
    pub samples: u64,
    pub micros: u64,
    pub modules: u64,
    pub ticks: u64,
    pub stalls: Vec<Stall>,
    pub dropped: u64,
    pub ended: bool,
    pub threads: Vec<(ThreadKey, String)>,
    pub taken: Vec<Taken>,
    pub reports: Vec<SegmentReport>,
}

impl Seen {
    pub fn take(&mut self, event: &Event<'_>) {
        match event {
            Event::Sample(sample) => {
                self.samples += u64::from(sample.count);
                self.micros += sample.weight_nanos / 1_000;
                self.taken.push(Taken {
                    thread: sample.thread,
                    path: sample.path.to_vec(),
                    micros: sample.weight_nanos / 1_000,
                });
            }
            Event::Module(_) => self.modules += 1,
            Event::Thread(key, name) => self.threads.push((*key, name.clone())),
            Event::Tick(..) => self.ticks += 1,
            Event::Stall(stall) => self.stalls.push(*stall),
            Event::Dropped(count) => self.dropped += count,
            Event::End => self.ended = true,
            Event::Head(_) | Event::ThreadEnded(..) => {}
        }
    }
}

/// Reads one segment.
pub fn read(session: SessionId, sequence: u32, bytes: &[u8]) -> Seen {
    let mut seen = Seen::default();
    let report = Replay::new(session).segment(sequence, bytes, &mut |event| seen.take(&event));
    seen.reports.push(report);
    seen
}

/// Reads all segments of a journal.
pub fn read_all(folder: &RecoveryFolder, session: SessionId) -> Seen {
    let found = folder
        .found()
        .into_iter()
        .find(|found| found.session == session)
        .unwrap();
    let mut replay = Replay::new(session);
    let mut seen = Seen::default();
    for sequence in found.segments {
        let file = folder.open_segment(session, sequence).unwrap();
        let report = replay.segment(sequence, std::io::BufReader::new(file), &mut |event| seen.take(&event));
        seen.reports.push(report);
    }
    seen
}

/// The files of a folder whose names end like this, in order.
pub fn files(folder: &Path, ending: &str) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .collect();
    files.sort();
    files
}
