//! Journals: check sums are put right more often than not, so that what lies behind them is reached.

use std::sync::atomic::{AtomicU64, Ordering};

use endstone_spark::journal::{Event, Replay, SessionId};
use endstone_spark::limits;

use super::mutate::{Format, Numbers};
use super::random::Random;
use super::run::fuzz;
use super::target::{Target, corpus};

/// Numbers at which the reader's limits are.
const EXTREMES: &[u64] = &[127, 128, 513, 514, 515, 8_191, 8_192, 524_287, 524_288];

type Record = (u8, Vec<u8>);

/// A good segment: its header and its records.
struct Good {
    header: Vec<u8>,
    records: Vec<Record>,
}

fn split(bytes: &[u8]) -> Good {
    let mut records = Vec::new();
    let mut at = 28;
    while at < bytes.len() {
        let length = u32::from_le_bytes(bytes[at + 1..at + 5].try_into().unwrap()) as usize;
        records.push((bytes[at], bytes[at + 5..at + 5 + length].to_vec()));
        at += 9 + length;
    }
    Good {
        header: bytes[..28].to_vec(),
        records,
    }
}

/// What everybody behind the reader counts on.
#[derive(Default)]
struct Watch {
    samples: u64,
    total: u64,
    tick: u64,
    modules: usize,
}

impl Watch {
    fn see(&mut self, event: &Event<'_>) {
        match event {
            Event::Sample(sample) => {
                self.samples += 1;
                assert!(sample.path.len() <= limits::LEAF_FRAMES + limits::ROOT_FRAMES + 2);
                assert!(sample.held_nanos <= sample.weight_nanos);
                self.total = self.total.checked_add(sample.weight_nanos).unwrap();
            }
            Event::Tick(at, _) => {
                assert!(at.0 >= self.tick);
                self.tick = at.0;
            }
            Event::Module(module) => {
                self.modules += 1;
                assert!(module.avma.start <= module.avma.end && self.modules <= limits::JOURNAL_MODULES);
            }
            Event::Thread(_, name) | Event::ThreadEnded(_, name) => {
                assert!(name.chars().count() <= limits::COMMENT_CHARS && !name.chars().any(char::is_control));
            }
            Event::Head(head) => assert!(head.plugins.len() <= limits::PLUGINS),
            Event::Stall(stall) => assert!(stall.ended.is_none_or(|ended| ended >= stall.began)),
            Event::Dropped(_) | Event::End => {}
        }
    }
}

struct Journals {
    seeds: Vec<Vec<u8>>,
    goods: Vec<Good>,
    records: AtomicU64,
    damaged: AtomicU64,
    samples: AtomicU64,
}

impl Journals {
    fn format(&self, numbers: Numbers) -> Format<'_> {
        Format {
            numbers,
            extremes: EXTREMES,
            words: &[],
            seeds: &[],
            longest: 1 << 20,
        }
    }

    fn records(&self, records: &mut Vec<Record>, random: &mut Random) {
        let at = random.below(records.len());
        match random.below(8) {
            0 => drop(records.remove(at)),
            1 => records.insert(at, records[random.below(records.len())].clone()),
            2 => {
                let other = &random.one_of(&self.goods).records;
                records.insert(at, random.one_of(other).clone());
            }
            3 => records[at].0 = random.next() as u8 % 13,
            4 => records.truncate(at),
            5 => {
                let other = random.below(records.len());
                records.swap(at, other);
            }
            _ => {
                for _ in 0..=random.below(3) {
                    self.format(Numbers::Packed).spoil(&mut records[at].1, random);
                }
            }
        }
    }
}

impl Target for Journals {
    const TEST: &'static str = "journal::spoiled_journals_neither_panic_nor_take_memory";
    const INPUTS: u64 = 50_000;
    const MEMORY_BYTES: u64 = 64 << 20;

    fn seeds(&self) -> &[Vec<u8>] {
        &self.seeds
    }

    fn make(&self, random: &mut Random) -> Vec<u8> {
        let good = random.one_of(&self.goods);
        let mut records: Vec<Record> = good.records.clone();
        for _ in 0..random.below(6) {
            if !records.is_empty() {
                self.records(&mut records, random);
            }
        }
        let mut bytes = good.header.clone();
        for (kind, body) in &records {
            let start = bytes.len();
            bytes.push(*kind);
            bytes.extend((body.len() as u32).to_le_bytes());
            bytes.extend(body);
            let sum = crc32fast::hash(&bytes[start..]);
            bytes.extend(sum.to_le_bytes());
        }
        if random.once_in(8) {
            for _ in 0..=random.below(4) {
                self.format(Numbers::Binary).spoil(&mut bytes, random);
            }
        }
        bytes
    }

    fn check(&self, input: &[u8]) {
        let mut watch = Watch::default();
        let session = input
            .get(12..20)
            .map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
        let mut replay = Replay::new(SessionId::new(session));
        // Now and then the same journal has another segment.
        for _ in 0..=usize::from(Random::of_bytes(input).once_in(4)) {
            let report = replay.segment(1, input, &mut |event| watch.see(&event));
            // Relaxed, here and below: counts.
            self.damaged.fetch_add(report.damaged, Ordering::Relaxed);
            self.records.fetch_add(report.records, Ordering::Relaxed);
        }
        self.samples.fetch_add(watch.samples, Ordering::Relaxed);
    }

    fn finish(&self, inputs: u64) -> String {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (records, damaged, samples) = (count(&self.records), count(&self.damaged), count(&self.samples));
        // Most inputs reach what lies behind the check sums.
        assert!(
            samples > inputs && damaged > inputs / 10,
            "{samples} samples, {damaged} damaged"
        );
        format!("{records} records read, {damaged} damaged, {samples} samples shown")
    }
}

#[test]
fn spoiled_journals_neither_panic_nor_take_memory() {
    let seeds = corpus("journal");
    fuzz(&Journals {
        goods: seeds.iter().map(|bytes| split(bytes)).collect(),
        seeds,
        records: AtomicU64::new(0),
        damaged: AtomicU64::new(0),
        samples: AtomicU64::new(0),
    });
}
