//! A second reader of the format, made from its description and sharing nothing with the first. It counts.

use std::collections::HashSet;

/// What one segment holds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    pub session: u64,
    pub sequence: u32,
    pub records: u64,
    pub samples: u64,
    pub micros: u64,
    pub modules: HashSet<u64>,
    pub threads: HashSet<(u64, u64)>,
    pub ticks: u64,
    /// Begin, and length plus one or 0.
    pub stalls: Vec<(u64, u64)>,
    pub dropped: u64,
    pub ended: bool,
}

/// The usual CRC-32 (reflected, polynomial 0xEDB88320), bit by bit.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            if sum & 1 == 1 { sum >> 1 ^ 0xEDB8_8320 } else { sum >> 1 }
        })
    })
}

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn number(&mut self) -> u64 {
        let mut number = 0;
        for place in 0.. {
            let byte = self.0[0];
            self.0 = &self.0[1..];
            number |= u64::from(byte & 127) << (7 * place);
            if byte < 128 {
                break;
            }
        }
        number
    }

    fn signed(&mut self) -> i64 {
        let number = self.number();
        (number >> 1) as i64 ^ -((number & 1) as i64)
    }
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().unwrap())
}

/// Counts what the complete records of a segment hold. The file may end anywhere.
pub fn count(file: &[u8]) -> Counts {
    let mut counts = Counts::default();
    if file.len() < 28 {
        return counts;
    }
    assert_eq!(&file[..8], b"spark-j\n");
    assert_eq!(file[8..12], [1, 0, 0, 0]);
    assert_eq!(word(&file[24..28]), crc(&file[..24]));
    counts.session = u64::from_le_bytes(file[12..20].try_into().unwrap());
    counts.sequence = word(&file[20..24]);
    let mut at = 28;
    while at + 5 <= file.len() {
        let length = word(&file[at + 1..at + 5]) as usize;
        let end = at + 5 + length;
        if end + 4 > file.len() {
            break;
        }
        assert_eq!(word(&file[end..end + 4]), crc(&file[at..end]), "record at {at}");
        record(file[at], Bytes(&file[at + 5..end]), &mut counts);
        counts.records += 1;
        at = end + 4;
    }
    counts
}

fn record(kind: u8, mut body: Bytes<'_>, counts: &mut Counts) {
    match kind {
        2 => {
            counts.modules.insert(body.number());
        }
        3 => {
            let _number = body.number();
            let tid = body.number();
            counts.threads.insert((tid, body.number()));
        }
        6 => {
            body.number();
            while !body.0.is_empty() {
                let _thread = body.number();
                let is_repeat = body.number() == 0;
                counts.samples += if is_repeat { body.number() } else { 1 };
                let passed = body.signed();
                counts.micros += (passed + body.signed()) as u64;
                if !is_repeat {
                    body.number();
                }
            }
        }
        7 => {
            body.number();
            while !body.0.is_empty() {
                body.number();
                body.number();
                counts.ticks += 1;
            }
        }
        8 => counts.dropped += body.number(),
        10 => {
            let began = body.number();
            counts.stalls.push((began, body.number()));
        }
        9 => counts.ended = true,
        1 | 4 | 5 => {}
        _ => panic!("a record of an unknown kind, {kind}"),
    }
}
