//! Numbers and texts as bytes. Numbers have seven bits in each byte, the lowest first, and a set eighth bit in all bytes but the last.

/// Appends a number.
pub(super) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a number that may be negative: its sign is the lowest bit.
pub(super) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put(out, ((number << 1) ^ (number >> 63)) as u64);
}

/// Appends bytes after their count.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// What is left to read of a record. Every call gives `None` when it does not hold what is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a>(pub(super) &'a [u8]);

impl<'a> Cursor<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has room for one bit.
            if shift == 63 && bits > 1 {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    pub(super) fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    pub(super) fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Bytes after their count, of which there are at most `most`.
    pub(super) fn bytes(&mut self, most: usize) -> Option<&'a [u8]> {
        let count = usize::try_from(self.number()?).ok().filter(|count| *count <= most)?;
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    /// A text of at most `most` bytes; what is not UTF-8 in it is replaced.
    pub(super) fn text(&mut self, most: usize) -> Option<String> {
        Some(String::from_utf8_lossy(self.bytes(most)?).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let numbers = [
            0,
            1,
            127,
            128,
            16_383,
            16_384,
            u64::from(u32::MAX),
            u64::MAX - 1,
            u64::MAX,
        ];
        for number in numbers {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            put_signed(&mut bytes, number as i64);
            let mut cursor = Cursor(&bytes);
            assert_eq!(cursor.number(), Some(number));
            assert_eq!(cursor.signed(), Some(number as i64));
            assert!(cursor.is_empty());
        }
        let mut short = Vec::new();
        put_signed(&mut short, -3);
        assert_eq!(short.len(), 1);
    }

    #[test]
    fn what_is_no_number_or_text_is_refused() {
        for bytes in [&[][..], &[0x80], &[0xff; 9], &[0xff; 11]] {
            assert_eq!(Cursor(bytes).number(), None, "{bytes:?}");
        }
        let largest = [[0xff; 9].as_slice(), &[1]].concat();
        assert_eq!(Cursor(&largest).number(), Some(u64::MAX));
        let larger = [[0xff; 9].as_slice(), &[2]].concat();
        assert_eq!(Cursor(&larger).number(), None);
        assert_eq!(Cursor(&[3, b'a', b'b']).bytes(10), None);
        assert_eq!(Cursor(&[3, b'a', b'b', b'c']).bytes(2), None);
        assert_eq!(Cursor(&[3, b'a', 0xff, b'c']).text(3).as_deref(), Some("a\u{fffd}c"));
    }
}
