//! Registers of x86-64, numbered as DWARF does (System V psABI, figure 3.36). The only file that knows the processor and the layout of a signal frame.

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", target_pointer_width = "64")))]
compile_error!(
    "the profiler unwinds x86-64 Linux stacks only: native/registers.rs, native/rule.rs and the signal frame need another processor's counterpart"
);

use std::mem::offset_of;

/// Number of general registers.
pub(super) const COUNT: usize = 16;
/// rbx, rbp and r12 to r15: those that a function keeps for its caller.
pub(super) const CALLEE_SAVED: [u8; 6] = [3, 6, 12, 13, 14, 15];
/// rbp.
pub(super) const FRAME_POINTER: u8 = 6;
/// rsp.
pub(super) const STACK_POINTER: u8 = 7;
/// The column of the return address.
pub(super) const RETURN_ADDRESS: u16 = 16;
/// Bytes below the stack pointer that a function may use without moving it; the kernel leaves them alone.
pub(super) const RED_ZONE: u64 = 128;

const fn mask(registers: &[u8]) -> u16 {
    let mut mask = 0;
    let mut at = 0;
    while at < registers.len() {
        mask |= 1 << registers[at];
        at += 1;
    }
    mask
}

const KEPT_BY_CALLS: u16 = mask(&CALLEE_SAVED) | 1 << STACK_POINTER;

/// What is known of the registers of one frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Registers {
    /// Where it is.
    pub pc: u64,
    values: [u64; COUNT],
    known: u16,
}

impl Registers {
    /// Only the program counter, stack pointer and frame pointer are known.
    pub fn new(pc: u64, sp: u64, bp: u64) -> Self {
        let mut registers = Registers {
            pc,
            values: [0; COUNT],
            known: 0,
        };
        registers.set(STACK_POINTER, sp);
        registers.set(FRAME_POINTER, bp);
        registers
    }

    /// The stack pointer.
    #[inline(always)]
    pub fn sp(&self) -> u64 {
        self.values[STACK_POINTER as usize]
    }

    /// The register with this DWARF number, if its value is known.
    #[inline(always)]
    pub(super) fn get(&self, register: u8) -> Option<u64> {
        let value = self.values.get(usize::from(register))?;
        (self.known >> register & 1 == 1).then_some(*value)
    }

    #[inline(always)]
    pub(super) fn set(&mut self, register: u8, value: u64) {
        if let Some(place) = self.values.get_mut(usize::from(register)) {
            *place = value;
            self.known |= 1 << register;
        }
    }

    pub(super) fn forget(&mut self, register: u8) {
        if usize::from(register) < COUNT {
            self.known &= !(1 << register);
        }
    }

    /// Forgets what a call does not keep.
    #[inline(always)]
    pub(super) fn keep_callee_saved(&mut self) {
        self.known &= KEPT_BY_CALLS;
    }

    /// The interrupted registers, from a handler's third argument.
    ///
    /// # Safety
    /// `context` is what the kernel gave to a `SA_SIGINFO` handler.
    pub unsafe fn from_context(context: *const libc::c_void) -> Self {
        // SAFETY: the caller's promise: it points to a ucontext_t.
        let saved = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
        Registers::from_saved(saved.map(|value| value as u64))
    }

    /// The registers that the signal frame at `sp` holds, where the signal's trampoline runs with its stack pointer at `sp`: the frame begins with the
    /// ucontext (linux/arch/x86/include/asm/sigframe.h, the trampoline's address is popped already).
    pub(super) fn from_signal_frame(sp: u64, mut word: impl FnMut(u64) -> Option<u64>) -> Option<Self> {
        let base = sp.checked_add(offset_of!(libc::ucontext_t, uc_mcontext) as u64)?;
        let mut saved = [0; 23];
        for (index, place) in saved.iter_mut().enumerate().take(SAVED.len() + 1) {
            *place = word(base.checked_add(8 * index as u64)?)?;
        }
        Some(Registers::from_saved(saved))
    }

    fn from_saved(saved: [u64; 23]) -> Self {
        let mut registers = Registers {
            pc: saved[SAVED.len()],
            values: [0; COUNT],
            known: u16::MAX,
        };
        for (register, value) in SAVED.iter().zip(saved) {
            registers.set(*register, value);
        }
        registers
    }
}

/// DWARF numbers in the order in which the kernel saves registers: r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp; rip follows.
const SAVED: [u8; COUNT] = [8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7];

const _: () = assert!(offset_of!(libc::ucontext_t, uc_mcontext) == 40);
const _: () = assert!(libc::REG_RDI == 8 && libc::REG_RBP == 10 && libc::REG_RSP == 15 && libc::REG_RIP == 16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_frame_is_read_in_the_kernels_order() {
        // Word n of the saved registers holds n.
        let registers = Registers::from_signal_frame(1000, |address| Some((address - 1040) / 8)).unwrap();
        assert_eq!(registers.pc, 16);
        assert_eq!(registers.sp(), 15);
        assert_eq!(registers.get(FRAME_POINTER), Some(10));
        assert_eq!(registers.get(0), Some(13));
        assert_eq!(registers.get(8), Some(0));
        assert_eq!(Registers::from_signal_frame(u64::MAX - 8, |_| Some(0)), None);
    }

    #[test]
    fn a_call_keeps_what_the_abi_says() {
        let mut registers = Registers::from_signal_frame(0, |_| Some(1)).unwrap();
        registers.keep_callee_saved();
        let known: Vec<u8> = (0..16).filter(|register| registers.get(*register).is_some()).collect();
        assert_eq!(known, [3, 6, 7, 12, 13, 14, 15]);
        registers.forget(6);
        assert_eq!(registers.get(6), None);
        assert_eq!(registers.get(200), None);
    }
}
