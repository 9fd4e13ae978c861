//! How to get from a frame to its caller, small enough to cache.

use gimli::{
    CfaRule, EndianSlice, LittleEndian, Operation, Register, RegisterRule, UnwindContextStorage, UnwindTableRow,
};

use super::registers::{CALLEE_SAVED, COUNT, RETURN_ADDRESS, Registers, STACK_POINTER};

/// Fixed room for gimli's tables, so that nothing is allocated while unwinding: more rules than x86-64 has columns that compilers use, and deeper than
/// any `DW_CFA_remember_state` nesting that compilers write (1).
#[derive(Debug)]
pub(super) struct Fixed;

impl UnwindContextStorage<usize> for Fixed {
    type Rules = [(Register, RegisterRule<usize>); 32];
    type Stack = [UnwindTableRow<usize, Self>; 6];
}

/// A row of unwind data.
pub(super) type Row = UnwindTableRow<usize, Fixed>;

/// What kind of step a frame needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    /// `CFA = register + offset`, return address just below it.
    Offset,
    /// `CFA = *(register + offset)`, return address just below it: frames that realign the stack.
    Deref,
    /// The first frame of its stack: there is no caller.
    Root,
    /// A signal's trampoline: the interrupted registers are in the signal frame.
    Signal,
    /// Anything else that unwind data can say: evaluated anew each time.
    Interpret,
    /// There is no (usable) unwind data here.
    Missing,
}

/// The step from one address to its caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rule {
    pub(super) kind: Kind,
    register: u8,
    /// Where the caller's value of each register of [`CALLEE_SAVED`] is: words from the CFA, 0 when the register was not touched.
    saved: [i8; CALLEE_SAVED.len()],
    offset: i32,
}

impl Rule {
    /// A rule of a kind that needs no numbers.
    pub(super) const fn plain(kind: Kind) -> Self {
        Rule {
            kind,
            register: STACK_POINTER,
            saved: [0; CALLEE_SAVED.len()],
            offset: 0,
        }
    }

    /// The rule that says what `row` says, or [`Kind::Interpret`] when it does not fit.
    pub(super) fn from_row(
        row: &Row,
        section: &gimli::EhFrame<EndianSlice<'_, LittleEndian>>,
        encoding: gimli::Encoding,
    ) -> Self {
        match row.register(Register(RETURN_ADDRESS)) {
            Some(RegisterRule::Undefined) => return Rule::plain(Kind::Root),
            Some(RegisterRule::Offset(-8)) => {}
            // No rule for the return address: whoever wrote this did not describe how to return.
            None => return Rule::plain(Kind::Missing),
            Some(_) => return Rule::plain(Kind::Interpret),
        }
        Rule::fitting(row, section, encoding).unwrap_or(Rule::plain(Kind::Interpret))
    }

    fn fitting(
        row: &Row,
        section: &gimli::EhFrame<EndianSlice<'_, LittleEndian>>,
        encoding: gimli::Encoding,
    ) -> Option<Self> {
        let (kind, register, offset) = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => (Kind::Offset, *register, *offset),
            CfaRule::Expression(expression) => {
                let mut operations = expression.get(section).ok()?.operations(encoding);
                let Operation::RegisterOffset { register, offset, .. } = operations.next().ok()?? else {
                    return None;
                };
                let Operation::Deref {
                    size: 8, space: false, ..
                } = operations.next().ok()??
                else {
                    return None;
                };
                operations
                    .next()
                    .ok()?
                    .is_none()
                    .then_some((Kind::Deref, register, offset))?
            }
        };
        let register = u8::try_from(register.0)
            .ok()
            .filter(|register| usize::from(*register) < COUNT)?;
        let offset = i32::try_from(offset).ok()?;
        let mut saved = [0; CALLEE_SAVED.len()];
        for (column, rule) in row.registers() {
            match rule {
                RegisterRule::SameValue => continue,
                RegisterRule::Offset(_) if column.0 == RETURN_ADDRESS => continue,
                RegisterRule::Offset(from_cfa) => {
                    // A caller-saved register's place (rare, hand-written) is of no use to the caller; the stack pointer's is.
                    let Some(index) = CALLEE_SAVED.iter().position(|known| u16::from(*known) == column.0) else {
                        if column.0 == u16::from(STACK_POINTER) {
                            return None;
                        }
                        continue;
                    };
                    if from_cfa % 8 != 0 || *from_cfa == 0 {
                        return None;
                    }
                    *saved.get_mut(index)? = i8::try_from(from_cfa / 8).ok()?;
                }
                _ if column.0 >= COUNT as u16 && column.0 != RETURN_ADDRESS => continue,
                _ => return None,
            }
        }
        Some(Rule {
            kind,
            register,
            saved,
            offset,
        })
    }

    /// The CFA by this rule ([`Kind::Offset`] or [`Kind::Deref`]).
    #[inline(always)]
    pub(super) fn cfa(&self, registers: &Registers, word: &mut impl FnMut(u64) -> Option<u64>) -> Option<u64> {
        // Nearly all code has its CFA from the stack pointer, which is always known.
        let base = if self.register == STACK_POINTER {
            registers.sp()
        } else {
            registers.get(self.register)?
        };
        let address = base.wrapping_add_signed(i64::from(self.offset));
        if self.kind == Kind::Deref {
            word(address)
        } else {
            Some(address)
        }
    }

    /// Replaces the callee-saved registers by the caller's. `None` when a word cannot be read.
    #[inline(always)]
    pub(super) fn restore(
        &self,
        registers: &mut Registers,
        cfa: u64,
        word: &mut impl FnMut(u64) -> Option<u64>,
    ) -> Option<()> {
        if self.saved == [0; CALLEE_SAVED.len()] {
            return Some(());
        }
        for (register, words) in CALLEE_SAVED.iter().zip(self.saved) {
            if words != 0 {
                registers.set(*register, word(cfa.wrapping_add_signed(i64::from(words) * 8))?);
            }
        }
        Some(())
    }
}

const _: () = assert!(size_of::<Rule>() == 12);
