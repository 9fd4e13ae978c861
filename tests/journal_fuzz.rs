//! Journals made by cutting, joining, doubling and spoiling good ones, check sums put right more often than not, so that what lies behind them is reached. None may
//! panic, none may take memory, and all that is shown must be what others count on.
//!
//! `SPARK_FUZZ_INPUTS=20000000 cargo test --release --test journal_fuzz` runs as many as are asked for; `SPARK_FUZZ_SEED` repeats a run. Not coverage-guided: that
//! needs a nightly compiler.

mod fuzz;

use std::path::Path;

use endstone_spark::journal::{Event, Replay, SessionId};
use endstone_spark::limits;
use fuzz::Random;

type Record = (u8, Vec<u8>);

/// A good segment: its header and its records.
struct Good {
    session: u64,
    header: Vec<u8>,
    records: Vec<Record>,
}

fn corpus() -> Vec<Good> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/journal_corpus");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let goods: Vec<Good> = files.iter().map(|file| split(&std::fs::read(file).unwrap())).collect();
    assert!(goods.len() >= 3, "{files:?}");
    goods
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
        session: u64::from_le_bytes(bytes[12..20].try_into().unwrap()),
        header: bytes[..28].to_vec(),
        records,
    }
}

fn number(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 128 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

const EXTREMES: &[u64] = &[
    0,
    1,
    2,
    127,
    128,
    513,
    514,
    515,
    8_191,
    8_192,
    524_287,
    524_288,
    u32::MAX as u64,
    u32::MAX as u64 + 1,
    i64::MAX as u64,
    u64::MAX - 1,
    u64::MAX,
];

fn spoil(body: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(body.len() + 1);
    match random.below(7) {
        0 if at < body.len() => body[at] = random.next() as u8,
        1 => body.insert(at, random.next() as u8),
        2 if at < body.len() => drop(body.remove(at)),
        3 => body.truncate(at),
        4 => {
            let piece = body[at..].to_vec();
            body.extend(piece);
        }
        5 => {
            let extreme = number(EXTREMES[random.below(EXTREMES.len())]);
            let end = (at + random.below(3)).min(body.len());
            body.splice(at..end, extreme);
        }
        _ if at < body.len() => body[at] ^= 1 << random.below(8),
        _ => {}
    }
}

fn segment(goods: &[Good], random: &mut Random) -> (u64, Vec<u8>) {
    let good = &goods[random.below(goods.len())];
    let mut records: Vec<Record> = good.records.clone();
    for _ in 0..random.below(6) {
        let at = random.below(records.len());
        match random.below(8) {
            0 => drop(records.remove(at)),
            1 => records.insert(at, records[random.below(records.len())].clone()),
            2 => {
                let other = &goods[random.below(goods.len())].records;
                records.insert(at, other[random.below(other.len())].clone());
            }
            3 => records[at].0 = random.next() as u8 % 13,
            4 => records.truncate(at),
            5 => {
                let other = random.below(records.len());
                records.swap(at, other);
            }
            _ => {
                for _ in 0..=random.below(3) {
                    spoil(&mut records[at].1, random);
                }
            }
        }
        if records.is_empty() {
            break;
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
    if random.below(8) == 0 {
        for _ in 0..=random.below(4) {
            spoil(&mut bytes, random);
        }
    }
    (good.session, bytes)
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

/// The most memory that this process has had, in kB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn spoiled_journals_neither_panic_nor_take_memory() {
    let (inputs, mut random) = fuzz::inputs(50_000);
    let goods = corpus();
    let (mut samples, mut damaged, mut records) = (0, 0, 0);
    for _ in 0..inputs {
        let mut watch = Watch::default();
        let (session, bytes) = segment(&goods, &mut random);
        let mut replay = Replay::new(SessionId::new(session));
        // Now and then the same journal has another segment.
        for _ in 0..=usize::from(random.below(4) == 0) {
            let report = replay.segment(1, &bytes[..], &mut |event| watch.see(&event));
            damaged += report.damaged;
            records += report.records;
        }
        samples += watch.samples;
    }
    let peak = peak();
    println!("{records} records read, {damaged} damaged, {samples} samples shown; at most {peak} kB of memory");
    // Most inputs reach what lies behind the check sums.
    assert!(samples > inputs && damaged > inputs / 10);
    assert!(peak < 64 << 10, "{peak} kB");
}
