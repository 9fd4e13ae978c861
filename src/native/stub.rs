//! Linkage stubs that no unwind data describes.
//!
//! **Problem.** Calls between modules go through stubs (`.plt`), and lld, unlike GNU's linkers, writes no unwind data for them. A frame pointer there is the
//! caller's own, and following it leaves the caller out.
//!
//! **Algorithm.** A stub is told by its bytes, and these say how much it has pushed (System V psABI x86-64, 5.2, and the variants for control-flow enforcement
//! with `endbr64` and `bnd`). A bare `ret` is of the same kind.
//!
//! **Assumptions.** Only asked about instructions that run now and that no unwind data covers.

/// Bytes that are looked at before and from the instruction on.
const BEFORE: usize = 8;
const BYTES: usize = 24;

const ENDBR64: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
const BND: &[u8] = &[0xf2];
/// `push imm32`: the number of the symbol.
const PUSH_NUMBER: u8 = 0x68;
/// `push [rip + rel32]`: the loader's own word.
const PUSH_WORD: [u8; 2] = [0xff, 0x35];
/// `jmp [rip + rel32]`.
const JUMP_WORD: [u8; 2] = [0xff, 0x25];
/// `jmp rel32`.
const JUMP: u8 = 0xe9;
const RETURN: u8 = 0xc3;

/// If the instruction at `pc` is part of a stub: how many bytes above the stack pointer the return address of its caller lies. `word` reads code.
#[inline(never)]
pub(super) fn return_address_offset(pc: u64, word: &mut impl FnMut(u64) -> Option<u64>) -> Option<u64> {
    let mut bytes = [0; BYTES];
    for (index, piece) in bytes.chunks_exact_mut(8).enumerate() {
        let address = pc.wrapping_sub(BEFORE as u64).wrapping_add(8 * index as u64);
        piece.copy_from_slice(&word(address)?.to_le_bytes());
    }
    let (before, from) = bytes.split_at_checked(BEFORE)?;
    offset(before, from)
}

fn offset(before: &[u8], from: &[u8]) -> Option<u64> {
    let from = from.strip_prefix(ENDBR64).unwrap_or(from);
    let code = from.strip_prefix(BND).unwrap_or(from);
    match code {
        [RETURN, ..] => Some(0),
        // `rep ret`
        [0xf3, RETURN, ..] => Some(0),
        _ if code.starts_with(&JUMP_WORD) => Some(if ends_in(before, &PUSH_WORD, 6) { 16 } else { 0 }),
        _ if code.starts_with(&PUSH_WORD) && jumps(code.get(6..)?, &JUMP_WORD) => Some(8),
        [PUSH_NUMBER, ..] if jumps(code.get(5..)?, &[JUMP]) => Some(0),
        [JUMP, ..] if ends_in(before, &[PUSH_NUMBER], 5) => Some(8),
        _ => None,
    }
}

/// If the instruction at `pc`, or the one that a callee will return to there, is part of the code that CPython makes for each function when it supports `perf`
/// (Python/asm_trampoline.S: up to 3.13 `sub rsp, 8; call rcx; add rsp, 8; ret`, since then `endbr64; push rbp; mov rbp, rsp; call rcx; pop rbp; ret`): how
/// many bytes above the stack pointer the return address of its caller lies. Where the frame pointer leads there, it is left to that.
#[inline(never)]
pub(super) fn trampoline_offset(pc: u64, word: &mut impl FnMut(u64) -> Option<u64>) -> Option<u64> {
    // Never what stands before: nothing may be mapped there.
    match word(pc)?.to_le_bytes() {
        [0x48, 0x83, 0xec, 8, 0xff, 0xd1, 0x48, 0x83] => Some(0),
        [0xff, 0xd1, 0x48, 0x83, 0xc4, 8, RETURN, _] => Some(8),
        [0x48, 0x83, 0xc4, 8, RETURN, ..] => Some(8),
        [0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5] => Some(0),
        [0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, RETURN] => Some(0),
        [0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, RETURN, _] => Some(8),
        [RETURN, ..] => Some(0),
        _ => None,
    }
}

/// Whether an instruction of this opcode and length ends where `bytes` end.
fn ends_in(bytes: &[u8], opcode: &[u8], length: usize) -> bool {
    bytes
        .len()
        .checked_sub(length)
        .and_then(|at| bytes.get(at..))
        .is_some_and(|instruction| instruction.starts_with(opcode))
}

fn jumps(code: &[u8], opcode: &[u8]) -> bool {
    code.strip_prefix(BND).unwrap_or(code).starts_with(opcode)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The offset at each of these instructions, which stand one behind the other.
    fn offsets(instructions: &[&[u8]]) -> Vec<Option<u64>> {
        let mut code = vec![0x90; 64];
        let mut places = Vec::new();
        for instruction in instructions {
            places.push(code.len() as u64);
            code.extend_from_slice(instruction);
        }
        code.extend_from_slice(&[0x90; 64]);
        let mut word = |at: u64| {
            code.get(at as usize..)?
                .first_chunk()
                .map(|bytes| u64::from_le_bytes(*bytes))
        };
        places
            .into_iter()
            .map(|place| return_address_offset(place, &mut word))
            .collect()
    }

    #[test]
    fn the_stubs_of_all_linkers_are_known() {
        let entry: [&[u8]; 3] = [&[0xff, 0x25, 1, 2, 3, 4], &[0x68, 1, 0, 0, 0], &[0xe9, 1, 2, 3, 4]];
        assert_eq!(offsets(&entry), [Some(0), Some(0), Some(8)]);
        let first: [&[u8]; 2] = [&[0xff, 0x35, 1, 2, 3, 4], &[0xff, 0x25, 1, 2, 3, 4]];
        assert_eq!(offsets(&first), [Some(8), Some(16)]);
        let enforced: [&[u8]; 3] = [
            &[0xf3, 0x0f, 0x1e, 0xfa],
            &[0x68, 1, 0, 0, 0],
            &[0xf2, 0xe9, 1, 2, 3, 4],
        ];
        assert_eq!(offsets(&enforced), [Some(0), Some(0), Some(8)]);
        let second: [&[u8]; 2] = [&[0xf3, 0x0f, 0x1e, 0xfa], &[0xf2, 0xff, 0x25, 1, 2, 3, 4]];
        assert_eq!(offsets(&second), [Some(0), Some(0)]);
        let bound: [&[u8]; 2] = [&[0xff, 0x35, 1, 2, 3, 4], &[0xf2, 0xff, 0x25, 1, 2, 3, 4]];
        assert_eq!(offsets(&bound), [Some(8), Some(16)]);
        assert_eq!(offsets(&[&[0xc3]]), [Some(0)]);
    }

    #[test]
    fn the_trampolines_of_all_pythons_are_known() {
        let at_each = |instructions: &[&[u8]]| -> Vec<Option<u64>> {
            let mut code = instructions.concat();
            code.extend_from_slice(&[0; 8]);
            let mut word = |at: u64| {
                let bytes = code.get(at as usize..)?.first_chunk()?;
                Some(u64::from_le_bytes(*bytes))
            };
            let places = (0..instructions.len()).map(|count| instructions[..count].concat().len() as u64);
            places.map(|place| trampoline_offset(place, &mut word)).collect()
        };
        let (call, ret): (&[u8], &[u8]) = (&[0xff, 0xd1], &[0xc3]);
        let plain: [&[u8]; 4] = [&[0x48, 0x83, 0xec, 8], call, &[0x48, 0x83, 0xc4, 8], ret];
        assert_eq!(at_each(&plain), [Some(0), Some(8), Some(8), Some(0)]);
        let (enforced, push, set, pop): (&[u8], &[u8], &[u8], &[u8]) =
            (&[0xf3, 0x0f, 0x1e, 0xfa], &[0x55], &[0x48, 0x89, 0xe5], &[0x5d]);
        let framed = at_each(&[enforced, push, set, call, pop, ret]);
        assert_eq!(
            framed,
            [Some(0), Some(0), Some(8), None, None, Some(0)],
            "the rest has a frame pointer"
        );
        assert_eq!(
            at_each(&[push, set, &[0x48, 0x83, 0xec, 32]]),
            [None; 3],
            "an ordinary function"
        );
        assert_eq!(trampoline_offset(0x1000, &mut |_| None), None);
    }

    #[test]
    fn other_code_is_no_stub() {
        let code: [&[u8]; 4] = [&[0x55], &[0x48, 0x89, 0xe5], &[0xe9, 1, 2, 3, 4], &[0x68, 1, 0, 0, 0]];
        assert_eq!(offsets(&code), [None; 4]);
        assert_eq!(return_address_offset(0x1000, &mut |_| None), None);
    }
}
