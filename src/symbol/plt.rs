//! Names for linkage stubs.
//!
//! A call to another library goes through a stub of its own, a jump through a table that the dynamic linker fills. A sample can catch a
//! thread there, and stubs have no symbols. Each says itself which table entry it jumps through, and the relocations say whose that is.

use std::collections::HashMap;

/// Bytes of one stub. Linkers write 16; without lazy binding (`.plt.got`) 8 are possible.
const STUB_BYTES: [usize; 2] = [16, 8];

/// `jmp *displacement(%rip)`, the instruction that every stub on x86-64 has.
const JUMP: [u8; 2] = [0xff, 0x25];

/// What may stand before it: nothing, `bnd`, `endbr64`, or both.
const PREFIXES: [&[u8]; 4] = [&[], &[0xf2], &[0xf3, 0x0f, 0x1e, 0xfa], &[0xf3, 0x0f, 0x1e, 0xfa, 0xf2]];

/// A stub: where it begins and ends, and what the relocation for its table entry names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stub<T> {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// Where it leads.
    pub target: T,
}

/// The stubs in a section of them that is linked at `address`. `targets` maps addresses of table entries to what they are for. Code that
/// does not look like a stub, as at the start of a lazily bound section, is passed over.
pub fn stubs<T: Copy>(section: &[u8], address: u64, targets: &HashMap<u64, T>) -> Vec<Stub<T>> {
    let found = |bytes: usize| -> Vec<Stub<T>> {
        let stub = |(index, code): (usize, &[u8])| {
            let start = address.wrapping_add((index * bytes) as u64);
            Some(Stub {
                start,
                end: start.checked_add(bytes as u64)?,
                target: *targets.get(&table_entry(code, start)?)?,
            })
        };
        section.chunks_exact(bytes).enumerate().filter_map(stub).collect()
    };
    // The wrong size finds at most every second stub.
    let [long, short] = STUB_BYTES.map(found);
    if short.len() > long.len() { short } else { long }
}

/// The address of the table entry that a stub jumps through.
fn table_entry(code: &[u8], start: u64) -> Option<u64> {
    let at = PREFIXES
        .iter()
        .find(|prefix| code.strip_prefix(**prefix).is_some_and(|rest| rest.starts_with(&JUMP)))?
        .len();
    let displacement = code.get(at + 2..at + 6)?.try_into().ok()?;
    let next_instruction = start.wrapping_add(at as u64 + 6);
    Some(next_instruction.wrapping_add_signed(i64::from(i32::from_le_bytes(displacement))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `endbr64`, a jump through the entry at `entry`, filled up with zeros.
    fn stub(start: u64, entry: u64, bytes: usize, prefix: &[u8]) -> Vec<u8> {
        let mut code = prefix.to_vec();
        let displacement = entry as i64 - (start as i64 + prefix.len() as i64 + 6);
        code.extend(JUMP);
        code.extend((displacement as i32).to_le_bytes());
        code.resize(bytes, 0);
        code
    }

    #[test]
    fn stubs_of_both_sizes_are_found() {
        const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
        let targets = HashMap::from([(0x9000, 'a'), (0x9008, 'b')]);
        for (bytes, prefix) in [(16, &ENDBR64[..]), (16, &[]), (8, &[])] {
            let mut section = vec![0x90; bytes];
            section.extend(stub(0x1000 + bytes as u64, 0x9008, bytes, prefix));
            section.extend(stub(0x1000 + 2 * bytes as u64, 0x9000, bytes, prefix));
            section.extend(stub(0x1000 + 3 * bytes as u64, 0x9010, bytes, prefix));
            let found: Vec<(u64, char)> = stubs(&section, 0x1000, &targets)
                .iter()
                .map(|stub| (stub.start, stub.target))
                .collect();
            let at = |number: u64| 0x1000 + number * bytes as u64;
            assert_eq!(found, [(at(1), 'b'), (at(2), 'a')], "{bytes}");
        }
    }

    #[test]
    fn code_that_is_cut_off_is_no_stub() {
        let targets = HashMap::from([(0, 'a')]);
        assert!(stubs(&[0xff, 0x25, 1, 2], 0, &targets).is_empty());
        assert!(
            stubs(
                &[0; 14].into_iter().chain(JUMP).collect::<Vec<u8>>(),
                u64::MAX - 4,
                &targets
            )
            .is_empty()
        );
    }
}
