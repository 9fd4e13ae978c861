//! Unwind data of one module, copied out of the module's memory.
//!
//! **Problem.** A handler that reads a module's own `.eh_frame` faults when the module is unloaded or its file is overwritten in that instant.
//!
//! **Algorithm.** When a module is first seen, `.eh_frame` is copied into anonymous memory, and an index of its entries by code address is built
//! from `.eh_frame_hdr`'s table, or by walking the section where there is none. The copy ends with the last entry that the table names: the section's
//! size is written nowhere in the running program, and what a table entry refers to (its CIE) always stands before it. Reads of the module go
//! through the kernel, which refuses instead of faulting when the module vanishes meanwhile.
//!
//! **Price.** One copy of the section and 8 bytes per function.
//!
//! **Assumptions.** Addresses within a module fit 32 bits.

use std::ops::Range;

use gimli::{
    BaseAddresses, CieOrFde, EhFrame, EndianSlice, LittleEndian, Register, RegisterRule, UnwindContext, UnwindSection,
};

use super::expression::evaluate;
use super::registers::{COUNT, RETURN_ADDRESS, Registers, STACK_POINTER};
use super::rule::{Fixed, Kind, Row, Rule};
use crate::limits;
use crate::sys::maps::Image;
use crate::sys::mem::AnonymousCopy;

/// gimli's scratch space. Large, so it lives in an unwinding context, not on a stack.
pub(super) type Scratch = UnwindContext<usize, Fixed>;

/// Unwind data of one module. Addresses here are as linked (svma).
#[derive(Debug)]
pub(super) struct UnwindData {
    eh_frame: AnonymousCopy,
    bases: BaseAddresses,
    /// What the 32-bit addresses of the index count from.
    base_svma: u64,
    /// First code address of each entry, ascending.
    starts: Box<[u32]>,
    /// Where in `.eh_frame` that entry is.
    entries: Box<[u32]>,
}

/// A frame after a step by [`UnwindData::interpret`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Interpreted {
    pub(super) registers: Registers,
    pub(super) cfa: u64,
}

impl UnwindData {
    /// Copies the unwind data of `image`; `read` reads this process's memory. `None` when there is none that can be used.
    pub(super) fn copy(image: &Image, read: &dyn Fn(u64, &mut [u8]) -> bool) -> Option<Self> {
        let header_svma = image.eh_frame_hdr.clone()?;
        image.segment_of(&header_svma).filter(|segment| segment.readable)?;
        let header_size = usize::try_from(header_svma.end - header_svma.start).ok()?;
        if header_size > limits::UNWIND_SECTION_BYTES {
            return None;
        }
        let mut header = vec![0; header_size];
        if !read(image.bias.wrapping_add(header_svma.start), &mut header) {
            return None;
        }
        UnwindData::build(image, header_svma.start, &header, read)
    }

    fn build(image: &Image, header_svma: u64, header: &[u8], read: &dyn Fn(u64, &mut [u8]) -> bool) -> Option<Self> {
        let base_svma = image.svma()?.start;
        let bases = BaseAddresses::default().set_eh_frame_hdr(header_svma);
        let parsed = gimli::EhFrameHdr::new(header, LittleEndian).parse(&bases, 8).ok()?;
        let eh_frame_svma = parsed.eh_frame_ptr().direct().ok()?;
        let bases = bases.set_eh_frame(eh_frame_svma);
        let segment = image
            .segment_of(&(eh_frame_svma..eh_frame_svma.checked_add(4)?))
            .filter(|segment| segment.readable)?;
        let room = segment.svma.end - eh_frame_svma;
        let read_svma = |svma: u64, into: &mut [u8]| read(image.bias.wrapping_add(svma), into);

        let mut index = table_index(&parsed, &bases, base_svma, eh_frame_svma..segment.svma.end);
        let length = match index.iter().map(|(_, entry)| *entry).max() {
            Some(last) => {
                let mut size = [0; 4];
                if !read_svma(eh_frame_svma + u64::from(last), &mut size) {
                    return None;
                }
                // The entry, its length field and the section's terminator.
                (u64::from(last) + 4 + u64::from(u32::from_le_bytes(size)) + 4).min(room)
            }
            None => room,
        };
        let length = usize::try_from(length)
            .ok()
            .filter(|length| *length <= limits::UNWIND_SECTION_BYTES)?;
        let eh_frame = AnonymousCopy::new(length, |bytes| read_svma(eh_frame_svma, bytes)).ok()?;
        if index.is_empty() {
            index = walked_index(eh_frame.bytes(), &bases, base_svma);
        }
        index.sort_unstable();
        index.dedup_by_key(|(start, _)| *start);
        (!index.is_empty()).then(|| UnwindData {
            eh_frame,
            bases,
            base_svma,
            starts: index.iter().map(|(start, _)| *start).collect(),
            entries: index.iter().map(|(_, entry)| *entry).collect(),
        })
    }

    fn section(&self) -> EhFrame<EndianSlice<'_, LittleEndian>> {
        let mut section = EhFrame::new(self.eh_frame.bytes(), LittleEndian);
        section.set_address_size(8);
        section
    }

    /// Runs `work` on the row that covers `svma`, and on whether it belongs to a signal's trampoline.
    fn with_row<R>(
        &self,
        svma: u64,
        scratch: &mut Scratch,
        work: impl FnOnce(&Row, &EhFrame<EndianSlice<'_, LittleEndian>>, gimli::Encoding, bool) -> R,
    ) -> Option<R> {
        let address = u32::try_from(svma.checked_sub(self.base_svma)?).ok()?;
        let at = self.starts.partition_point(|start| *start <= address).checked_sub(1)?;
        let offset = *self.entries.get(at)? as usize;
        let size = self.eh_frame.bytes().get(offset..)?.first_chunk::<4>()?;
        if u32::from_le_bytes(*size) > limits::UNWIND_ENTRY_BYTES {
            return None;
        }
        let section = self.section();
        let entry = section
            .fde_from_offset(&self.bases, gimli::EhFrameOffset(offset), EhFrame::cie_from_offset)
            .ok()?;
        if !entry.contains(svma) || entry.cie().return_address_register().0 != RETURN_ADDRESS {
            return None;
        }
        let encoding = entry.cie().encoding();
        let signal = entry.is_signal_trampoline();
        let row = entry
            .unwind_info_for_address(&section, &self.bases, scratch, svma)
            .ok()?;
        Some(work(row, &section, encoding, signal))
    }

    /// Where the function that holds `svma` begins, as far as unwind data tells: a function split in two counts as two.
    pub(super) fn function_of(&self, svma: u64) -> Option<u64> {
        let address = u32::try_from(svma.checked_sub(self.base_svma)?).ok()?;
        let at = self.starts.partition_point(|start| *start <= address).checked_sub(1)?;
        Some(self.base_svma + u64::from(*self.starts.get(at)?))
    }

    /// The rule at `svma`, and from where to where it holds.
    pub(super) fn rule(&self, svma: u64, scratch: &mut Scratch) -> (Rule, Range<u64>) {
        self.with_row(svma, scratch, |row, section, encoding, signal| {
            let rule = if signal {
                Rule::plain(Kind::Signal)
            } else {
                Rule::from_row(row, section, encoding)
            };
            (rule, row.start_address()..row.end_address())
        })
        .unwrap_or((Rule::plain(Kind::Missing), svma..svma.saturating_add(1)))
    }

    /// One step by everything that unwind data can say. `None` when it needs what is not known or not readable.
    pub(super) fn interpret(
        &self,
        svma: u64,
        scratch: &mut Scratch,
        registers: &Registers,
        word: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Option<Interpreted> {
        self.with_row(svma, scratch, |row, section, encoding, _| {
            let cfa = match row.cfa() {
                gimli::CfaRule::RegisterAndOffset { register, offset } => registers
                    .get(u8::try_from(register.0).ok()?)?
                    .wrapping_add_signed(*offset),
                gimli::CfaRule::Expression(expression) => {
                    evaluate(expression.get(section).ok()?, encoding, None, registers, word)?
                }
            };
            let mut value = |column: u16, rule: Option<RegisterRule<usize>>| match rule {
                Some(RegisterRule::SameValue) | None if column == RETURN_ADDRESS => None,
                Some(RegisterRule::SameValue) | None => registers.get(column as u8),
                Some(RegisterRule::Offset(offset)) => word(cfa.wrapping_add_signed(offset)),
                Some(RegisterRule::ValOffset(offset)) => Some(cfa.wrapping_add_signed(offset)),
                Some(RegisterRule::Register(Register(RETURN_ADDRESS))) => Some(registers.pc),
                Some(RegisterRule::Register(other)) => registers.get(u8::try_from(other.0).ok()?),
                Some(RegisterRule::Expression(expression)) => {
                    let address = evaluate(expression.get(section).ok()?, encoding, Some(cfa), registers, word)?;
                    word(address)
                }
                Some(RegisterRule::ValExpression(expression)) => {
                    evaluate(expression.get(section).ok()?, encoding, Some(cfa), registers, word)
                }
                _ => None,
            };
            let pc = value(RETURN_ADDRESS, row.register(Register(RETURN_ADDRESS)))?;
            let mut caller = *registers;
            caller.pc = pc;
            for column in 0..COUNT as u8 {
                let rule = row.register(Register(u16::from(column)));
                if column == STACK_POINTER && rule.is_none() {
                    caller.set(column, cfa);
                    continue;
                }
                match value(u16::from(column), rule) {
                    Some(value) => caller.set(column, value),
                    None if column == STACK_POINTER => return None,
                    None => caller.forget(column),
                }
            }
            Some(Interpreted { registers: caller, cfa })
        })?
    }
}

/// The index from the header's own table: (code address, entry). Entries that point outside `section` are left out.
fn table_index(
    header: &gimli::ParsedEhFrameHdr<EndianSlice<'_, LittleEndian>>,
    bases: &BaseAddresses,
    base_svma: u64,
    section: Range<u64>,
) -> Vec<(u32, u32)> {
    let mut index = Vec::new();
    let Some(table) = header.table() else {
        return index;
    };
    let mut rows = table.iter(bases);
    while let Ok(Some((start, entry))) = rows.next() {
        let placed = (|| {
            let entry = entry.direct().ok().filter(|entry| section.contains(entry))?;
            let start = u32::try_from(start.direct().ok()?.checked_sub(base_svma)?).ok()?;
            Some((start, u32::try_from(entry - section.start).ok()?))
        })();
        index.extend(placed);
        if index.len() > limits::UNWIND_ENTRIES {
            return Vec::new();
        }
    }
    index
}

/// The index by walking all entries.
fn walked_index(section: &[u8], bases: &BaseAddresses, base_svma: u64) -> Vec<(u32, u32)> {
    let mut eh_frame = EhFrame::new(section, LittleEndian);
    eh_frame.set_address_size(8);
    let mut index = Vec::new();
    let mut entries = eh_frame.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        if let CieOrFde::Fde(partial) = entry
            && let Ok(entry) = partial.parse(EhFrame::cie_from_offset)
            && let Some(start) = entry.initial_address().checked_sub(base_svma)
            && let (Ok(start), Ok(offset)) = (u32::try_from(start), u32::try_from(entry.offset()))
        {
            index.push((start, offset));
        }
        if index.len() > limits::UNWIND_ENTRIES {
            return Vec::new();
        }
    }
    index
}
