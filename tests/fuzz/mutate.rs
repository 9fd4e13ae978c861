//! Spoiling what is good, as all targets do it.

use super::random::Random;

/// How a format writes its numbers.
#[derive(Clone, Copy)]
pub enum Numbers {
    /// In decimal digits.
    Text,
    /// Seven bits a byte, the lowest first.
    Packed,
    /// In one, two, four or eight bytes, the lowest first.
    Binary,
}

/// What is known of a format: it reaches places that chance alone would not find.
pub struct Format<'a> {
    pub numbers: Numbers,
    /// Numbers at which something ends or begins, besides those of every format.
    pub extremes: &'a [u64],
    /// Pieces that mean something.
    pub words: &'a [&'a [u8]],
    /// Good inputs, of which parts are taken.
    pub seeds: &'a [Vec<u8>],
    /// No input grows beyond this many bytes.
    pub longest: usize,
}

const EXTREMES: &[u64] = &[
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    i64::MAX as u64,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];

impl Format<'_> {
    /// A good input with one change more than so many at most.
    pub fn spoiled_seed(&self, changes: usize, random: &mut Random) -> Vec<u8> {
        let mut bytes = random.one_of(self.seeds).clone();
        for _ in 0..=random.below(changes) {
            self.spoil(&mut bytes, random);
        }
        bytes
    }

    /// Puts in a word up to so many times: long or deep, up to what is read and beyond.
    pub fn swell(&self, bytes: &mut Vec<u8>, times: usize, random: &mut Random) {
        let piece = random.one_of(self.words).repeat(1 + random.below(times));
        let at = random.below(bytes.len() + 1);
        bytes.splice(at..at, piece);
        bytes.truncate(self.longest);
    }

    /// Makes one change somewhere.
    pub fn spoil(&self, bytes: &mut Vec<u8>, random: &mut Random) {
        let at = random.below(bytes.len() + 1);
        let few = (at + random.below(9)).min(bytes.len());
        match random.below(12) {
            0 if at < bytes.len() => bytes[at] = random.next() as u8,
            1 => bytes.insert(at, random.next() as u8),
            2 => drop(bytes.drain(at..few)),
            3 if random.once_in(4) => bytes.truncate(at),
            4 => {
                let end = at + random.below(bytes.len() - at + 1);
                let piece = bytes[at..end].to_vec();
                let to = random.below(bytes.len() + 1);
                bytes.splice(to..to, piece);
            }
            5 | 6 => {
                let number = self.number(random);
                // In the place of another one, more often than not.
                let end = if random.once_in(4) { at } else { at + number.len() };
                bytes.splice(at..end.min(bytes.len()), number);
            }
            7 if !self.words.is_empty() => {
                let word = *random.one_of(self.words);
                let end = if random.once_in(2) { at } else { at + word.len() };
                bytes.splice(at..end.min(bytes.len()), word.iter().copied());
            }
            8 if !self.seeds.is_empty() => {
                let seed = random.one_of(self.seeds);
                let from = random.below(seed.len() + 1);
                let to = (from + 1 + random.below(64)).min(seed.len());
                let end = (at + to.saturating_sub(from)).min(bytes.len());
                bytes.splice(at..end, seed[from.min(to)..to].iter().copied());
            }
            9 => {
                let end = (at + 1 + random.below(32)).min(bytes.len());
                let byte = random.next() as u8;
                bytes[at.min(end)..end].fill(byte);
            }
            _ if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            _ => {}
        }
        bytes.truncate(self.longest);
    }

    fn number(&self, random: &mut Random) -> Vec<u8> {
        let known = random.below(EXTREMES.len() + self.extremes.len());
        let number = *EXTREMES
            .get(known)
            .unwrap_or_else(|| &self.extremes[known - EXTREMES.len()]);
        match self.numbers {
            Numbers::Text => number.to_string().into_bytes(),
            Numbers::Packed => packed(number),
            Numbers::Binary => number.to_le_bytes()[..1 << random.below(4)].to_vec(),
        }
    }
}

fn packed(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 128 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}
