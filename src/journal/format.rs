//! The frame of a segment: its header and its records. `docs/journal.md` has the whole.

use super::folder::SessionId;
use super::wire;

/// The first bytes of every segment. The line break shows a file that was sent as text.
pub(super) const MAGIC: [u8; 8] = *b"spark-j\n";

/// Version of the format that is written. Kinds of records may be added without a new one: a reader passes over those that it does not know.
pub(super) const VERSION: u16 = 1;

/// Bytes of a header: magic, version, two zero bytes, session, sequence, check sum.
pub(super) const HEADER_BYTES: usize = 28;

/// What a record is. Zero is none, so that a file whose end was never written, which reads as zeros, ends there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    Head = 1,
    Module = 2,
    Thread = 3,
    ThreadEnded = 4,
    Frames = 5,
    Samples = 6,
    Ticks = 7,
    Dropped = 8,
    End = 9,
    Stall = 10,
}

impl Kind {
    pub(super) fn of(number: u8) -> Option<Kind> {
        Some(match number {
            1 => Kind::Head,
            2 => Kind::Module,
            3 => Kind::Thread,
            4 => Kind::ThreadEnded,
            5 => Kind::Frames,
            6 => Kind::Samples,
            7 => Kind::Ticks,
            8 => Kind::Dropped,
            9 => Kind::End,
            10 => Kind::Stall,
            _ => return None,
        })
    }
}

/// Which segment of which session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub(super) session: SessionId,
    pub(super) sequence: u32,
}

/// What the first bytes of a file are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Opening {
    Ours(Header),
    Newer(u16),
    Damaged,
    Foreign,
}

impl Header {
    pub(super) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let fields: [&[u8]; 5] = [
            &MAGIC,
            &VERSION.to_le_bytes(),
            &[0, 0],
            &self.session.number().to_le_bytes(),
            &self.sequence.to_le_bytes(),
        ];
        let body = fields.concat();
        let sum = crc32fast::hash(&body).to_le_bytes();
        for (to, from) in bytes.iter_mut().zip(body.iter().chain(&sum)) {
            *to = *from;
        }
        bytes
    }

    pub(super) fn decode(bytes: &[u8; HEADER_BYTES]) -> Opening {
        let (body, sum) = bytes.split_at(HEADER_BYTES - 4);
        let Some((magic, rest)) = body.split_first_chunk::<8>() else {
            return Opening::Foreign;
        };
        if *magic != MAGIC {
            return Opening::Foreign;
        }
        let fields = || {
            let (version, rest) = rest.split_first_chunk::<2>()?;
            let (_, rest) = rest.split_first_chunk::<2>()?;
            let (session, rest) = rest.split_first_chunk::<8>()?;
            let (sequence, _) = rest.split_first_chunk::<4>()?;
            let header = Header {
                session: SessionId::new(u64::from_le_bytes(*session)),
                sequence: u32::from_le_bytes(*sequence),
            };
            Some((u16::from_le_bytes(*version), header))
        };
        match fields() {
            // A newer header may have another layout, its sum elsewhere.
            Some((version, _)) if version > VERSION => Opening::Newer(version),
            Some((VERSION, header)) if sum == crc32fast::hash(body).to_le_bytes() => Opening::Ours(header),
            _ => Opening::Damaged,
        }
    }
}

/// Appends a record with what `fill` appends.
pub(super) fn record(out: &mut Vec<u8>, kind: Kind, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.push(kind as u8);
    out.extend_from_slice(&[0; 4]);
    let body = out.len();
    fill(out);
    let length = (out.len() - body) as u32;
    if let Some(place) = out.get_mut(start + 1..body) {
        place.copy_from_slice(&length.to_le_bytes());
    }
    let sum = crc32fast::hash(out.get(start..).unwrap_or_default());
    out.extend_from_slice(&sum.to_le_bytes());
}

/// Appends a record that holds one number.
pub(super) fn number_record(out: &mut Vec<u8>, kind: Kind, number: u64) {
    record(out, kind, |out| wire::put(out, number));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_and_every_changed_bit_is_noticed() {
        let header = Header {
            session: SessionId::new(0x1234_5678_9abc_def0),
            sequence: 77,
        };
        let bytes = header.encode();
        assert_eq!(Header::decode(&bytes), Opening::Ours(header));
        for bit in 0..HEADER_BYTES * 8 {
            let mut changed = bytes;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(!matches!(Header::decode(&changed), Opening::Ours(_)), "bit {bit}");
        }
        assert_eq!(Header::decode(&[0; HEADER_BYTES]), Opening::Foreign);
        let mut newer = bytes;
        newer[8] = 2;
        assert_eq!(Header::decode(&newer), Opening::Newer(2));
    }

    #[test]
    fn kinds_have_their_numbers() {
        let known: Vec<u8> = (0..=255).filter(|number| Kind::of(*number).is_some()).collect();
        assert_eq!(known, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert!(
            known
                .iter()
                .all(|number| Kind::of(*number).map(|kind| kind as u8) == Some(*number))
        );
    }
}
