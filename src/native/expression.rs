//! DWARF expressions as call frame information uses them: arithmetic on registers and words of the stack.
//!
//! Straight-line code only. A branch would make termination a question, on a machine where not terminating means a hung server; no compiler writes one into
//! call frame information.

use gimli::{EndianSlice, Expression, LittleEndian, Operation};

use super::registers::Registers;

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// Deepest stack of an expression. What compilers write (PLT entries, realigned frames, signal frames) needs 3.
const DEPTH: usize = 16;

/// The value of an expression, `None` when it needs something that is not known, not readable, or not straight arithmetic.
pub(super) fn evaluate(
    expression: Expression<Bytes<'_>>,
    encoding: gimli::Encoding,
    initial: Option<u64>,
    registers: &Registers,
    word: &mut dyn FnMut(u64) -> Option<u64>,
) -> Option<u64> {
    let mut stack = Stack {
        values: [0; DEPTH],
        depth: 0,
    };
    if let Some(value) = initial {
        stack.push(value)?;
    }
    let mut operations = expression.operations(encoding);
    while let Some(operation) = operations.next().ok()? {
        match operation {
            Operation::Nop => {}
            Operation::UnsignedConstant { value } => stack.push(value)?,
            Operation::SignedConstant { value } => stack.push(value as u64)?,
            Operation::RegisterOffset { register, offset, .. } => {
                let value = match register.0 {
                    super::registers::RETURN_ADDRESS => registers.pc,
                    number => registers.get(u8::try_from(number).ok()?)?,
                };
                stack.push(value.wrapping_add_signed(offset))?;
            }
            Operation::Deref {
                size: 8, space: false, ..
            } => {
                let address = stack.pop()?;
                stack.push(word(address)?)?;
            }
            Operation::PlusConstant { value } => stack.unary(|a| a.wrapping_add(value))?,
            Operation::Neg => stack.unary(u64::wrapping_neg)?,
            Operation::Not => stack.unary(|a| !a)?,
            Operation::Plus => stack.binary(u64::wrapping_add)?,
            Operation::Minus => stack.binary(u64::wrapping_sub)?,
            Operation::Mul => stack.binary(u64::wrapping_mul)?,
            Operation::And => stack.binary(|a, b| a & b)?,
            Operation::Or => stack.binary(|a, b| a | b)?,
            Operation::Xor => stack.binary(|a, b| a ^ b)?,
            Operation::Shl => stack.binary(|a, b| if b < 64 { a << b } else { 0 })?,
            Operation::Shr => stack.binary(|a, b| if b < 64 { a >> b } else { 0 })?,
            Operation::Shra => stack.binary(|a, b| (a as i64 >> b.min(63)) as u64)?,
            Operation::Eq => stack.binary(|a, b| u64::from(a == b))?,
            Operation::Ne => stack.binary(|a, b| u64::from(a != b))?,
            Operation::Ge => stack.binary(|a, b| u64::from(a as i64 >= b as i64))?,
            Operation::Gt => stack.binary(|a, b| u64::from(a as i64 > b as i64))?,
            Operation::Le => stack.binary(|a, b| u64::from(a as i64 <= b as i64))?,
            Operation::Lt => stack.binary(|a, b| u64::from((a as i64) < b as i64))?,
            Operation::Drop => {
                stack.pop()?;
            }
            Operation::Pick { index } => {
                let value = *stack.values.get(stack.depth.checked_sub(usize::from(index) + 1)?)?;
                stack.push(value)?;
            }
            _ => return None,
        }
    }
    stack.pop()
}

struct Stack {
    values: [u64; DEPTH],
    depth: usize,
}

impl Stack {
    fn push(&mut self, value: u64) -> Option<()> {
        *self.values.get_mut(self.depth)? = value;
        self.depth += 1;
        Some(())
    }

    fn pop(&mut self) -> Option<u64> {
        self.depth = self.depth.checked_sub(1)?;
        self.values.get(self.depth).copied()
    }

    fn unary(&mut self, work: impl FnOnce(u64) -> u64) -> Option<()> {
        let a = self.pop()?;
        self.push(work(a))
    }

    fn binary(&mut self, work: impl FnOnce(u64, u64) -> u64) -> Option<()> {
        let b = self.pop()?;
        let a = self.pop()?;
        self.push(work(a, b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(bytes: &[u8], registers: &Registers) -> Option<u64> {
        let encoding = gimli::Encoding {
            address_size: 8,
            format: gimli::Format::Dwarf32,
            version: 1,
        };
        let mut word = |address: u64| (address == 0x1000).then_some(99);
        evaluate(
            Expression(Bytes::new(bytes, LittleEndian)),
            encoding,
            None,
            registers,
            &mut word,
        )
    }

    #[test]
    fn the_linkers_plt_expression_gives_both_offsets() {
        // breg7 8, breg16 0, lit15, and, lit11, ge, lit3, shl, plus (what GNU ld writes for .plt)
        let plt = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        assert_eq!(run(&plt, &Registers::new(0x400_00a, 0x2000, 0)), Some(0x2008));
        assert_eq!(run(&plt, &Registers::new(0x400_00b, 0x2000, 0)), Some(0x2010));
    }

    #[test]
    fn a_realigned_frame_reads_its_word() {
        // breg6 -8, deref (what compilers write for frames that realign the stack)
        assert_eq!(run(&[0x76, 0x78, 0x06], &Registers::new(1, 2, 0x1008)), Some(99));
        assert_eq!(
            run(&[0x76, 0x70, 0x06], &Registers::new(1, 2, 0x1008)),
            None,
            "not readable"
        );
    }

    #[test]
    fn what_is_unknown_damaged_or_branching_has_no_value() {
        let registers = Registers::new(1, 2, 3);
        assert_eq!(run(&[], &registers), None);
        assert_eq!(run(&[0x70, 0], &registers), None, "rax is not known");
        assert_eq!(run(&[0x22], &registers), None, "nothing to add");
        assert_eq!(run(&[0x2f, 0xfd, 0xff], &registers), None, "a jump to itself");
        assert_eq!(run(&[0x31; DEPTH + 1], &registers), None, "too deep");
    }
}
