//! Walking a stack from its leaf to its root.
//!
//! **Problem.** In a signal handler, from nothing but registers and memory, find every caller and know whether the root was really reached.
//!
//! **Why not a ready-made unwinder.** libgcc's locks, allocates and reads unwind data where the linker put it. framehop (0.16, by its source) allocates
//! nothing, but where unwind data is missing, damaged or beyond it, it silently follows frame pointers and remembers that as the rule for the
//! address, so a wrong root looks like a right one; expressions that read memory are beyond it (frames that realign the stack, signal frames),
//! its evaluator has no step limit, and its cache must be renewed before a 16-bit count of module changes wraps. This walk uses the same reader of
//! unwind data (gimli) with its own small rules, and says of every stack why it ends.
//!
//! **Algorithm.** Look the address up in the module table; take the [`Rule`] for it from the cache ([`RuleCache`]) or derive it from unwind data; step. Where unwind data says nothing, linkage stubs are
//! told by their bytes ([`stub`]); else a frame
//! pointer is followed only if the result is plausible: it points up the stack, and the word beside it is an address in some module's code. A step must
//! move the stack pointer up; only signal frames may move it elsewhere.
//!
//! **Price.** See docs/performance.md: some ten nanoseconds per frame when the rule is cached, some hundreds when it must be derived.
//!
//! **Assumptions.** The reader of memory refuses what cannot be read.

use std::ops::Range;

use super::cache::RuleCache;
use super::cfi::Scratch;
use super::registers::{FRAME_POINTER, Registers, STACK_POINTER};
use super::rule::{Kind, Rule};
use super::stub;
use super::table::{Entry, ModuleTable};
use crate::limits;
use crate::model::{ModuleId, StackEnd};

/// One frame as the walk finds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RawFrame {
    /// The address to look up: of the instruction that runs, or of the call that is under way (return address - 1).
    pub(super) address: u64,
    /// The stack pointer in the caller just before the call, 0 when not known.
    pub(super) cfa: u64,
    pub(super) module: ModuleId,
}

/// Scratch space and remembered rules of one walk at a time. Large, and worth keeping warm.
#[derive(Debug)]
pub(super) struct Context {
    rules: RuleCache,
    scratch: Box<Scratch>,
    /// How often a rule had to be derived.
    pub(super) misses: u64,
}

impl Context {
    pub(super) fn new() -> Self {
        Context {
            rules: RuleCache::new(),
            scratch: Box::new(Scratch::new_in()),
            misses: 0,
        }
    }

    /// `exact`: `address` is where a thread was interrupted, not where a call is under way.
    #[inline(always)]
    fn rule(&mut self, entry: &Entry, address: u64, exact: bool) -> Rule {
        if !exact && let Some(rule) = self.rules.at_call(entry.id, address) {
            return rule;
        }
        self.rule_of_range(entry, address, exact)
    }

    #[inline(never)]
    fn rule_of_range(&mut self, entry: &Entry, address: u64, exact: bool) -> Rule {
        let rule = match self.rules.around(entry.id, address) {
            Some(rule) => rule,
            None => {
                self.misses += 1;
                let (rule, range) = derive(entry, address, &mut self.scratch);
                self.rules.keep_range(entry.id, address, range, rule);
                rule
            }
        };
        if !exact {
            self.rules.keep_call(entry.id, address, rule);
        }
        rule
    }
}

/// The rule and from where to where it holds.
#[inline(never)]
fn derive(entry: &Entry, address: u64, scratch: &mut Scratch) -> (Rule, Range<u64>) {
    match &entry.unwind {
        Some(unwind) => {
            let (rule, svma) = unwind.rule(address.wrapping_sub(entry.bias), scratch);
            (
                rule,
                svma.start.wrapping_add(entry.bias)..svma.end.wrapping_add(entry.bias),
            )
        }
        None => (Rule::plain(Kind::Missing), address..address.saturating_add(1)),
    }
}

/// The code range of the frame before: callers mostly are in the same one, and a comparison of registers is all it takes then.
struct Near<'a> {
    start: u64,
    length: u64,
    entry: Option<&'a Entry>,
}

impl<'a> Near<'a> {
    const fn new() -> Self {
        Near {
            start: 0,
            length: 0,
            entry: None,
        }
    }

    #[inline(always)]
    fn find(&mut self, table: &'a ModuleTable, address: u64) -> Option<&'a Entry> {
        if address.wrapping_sub(self.start) >= self.length {
            *self = Near::search(table, address);
        }
        self.entry
    }

    #[inline(never)]
    fn search(table: &'a ModuleTable, address: u64) -> Self {
        match table.find_with_range(address) {
            Some((range, entry)) => Near {
                start: range.start,
                length: range.end.saturating_sub(range.start),
                entry: Some(entry),
            },
            None => Near::new(),
        }
    }
}

/// Calls `visit` with every frame from the leaf on, and says why the stack ends.
#[inline]
pub(super) fn walk(
    table: &ModuleTable,
    context: &mut Context,
    mut registers: Registers,
    mut word: impl FnMut(u64) -> Option<u64>,
    mut visit: impl FnMut(RawFrame),
) -> StackEnd {
    let mut signal_frames = 0;
    let mut near = Near::new();
    // The program counter of the leaf and of interrupted frames is exact; all others are return addresses.
    let mut exact = true;
    for _ in 0..limits::UNWIND_STEPS {
        let address = if exact {
            registers.pc
        } else {
            registers.pc.wrapping_sub(1)
        };
        let entry = near.find(table, address);
        let sp = registers.sp();
        let rule = entry.map_or(Rule::plain(Kind::Missing), |entry| context.rule(entry, address, exact));
        let module = entry.map_or(ModuleId::NONE, |entry| entry.id);
        let mut frame = RawFrame {
            address,
            cfa: 0,
            module,
        };
        let stepped = match rule.kind {
            Kind::Offset | Kind::Deref => by_rule(&rule, &mut registers, sp, &mut word),
            Kind::Root => Err(StackEnd::Root),
            Kind::Signal if signal_frames < limits::SIGNAL_FRAMES => {
                signal_frames += 1;
                match Registers::from_signal_frame(sp, &mut word) {
                    Some(interrupted) => {
                        registers = interrupted;
                        frame.cfa = registers.sp();
                        visit(frame);
                        exact = true;
                        continue;
                    }
                    None => Err(StackEnd::UnreadableStack),
                }
            }
            Kind::Signal => Err(StackEnd::NoProgress),
            Kind::Interpret => match entry {
                Some(entry) => interpret(entry, context, address, exact, &mut registers, &mut word),
                None => Err(StackEnd::UnknownModule),
            },
            Kind::Missing => (|| {
                if exact
                    && entry.is_some()
                    && let Some(cfa) = out_of_stub(&mut registers, sp, &mut word)
                {
                    return Ok(cfa);
                }
                if entry.is_none()
                    && let Some(cfa) = out_of_trampoline(table, &mut registers, sp, &mut word)
                {
                    return Ok(cfa);
                }
                by_frame_pointer(table, &mut registers, sp, &mut word).ok_or(if entry.is_some() {
                    StackEnd::NoUnwindData
                } else {
                    StackEnd::UnknownModule
                })
            })(),
        };
        match stepped {
            Ok(cfa) => {
                frame.cfa = cfa;
                visit(frame);
            }
            Err(end) => {
                visit(frame);
                return end;
            }
        }
        if registers.pc == 0 {
            // Thread starts and `_start` of some C libraries mark the end with a zero return address.
            return StackEnd::Root;
        }
        exact = false;
    }
    StackEnd::TooDeep
}

#[inline(always)]
fn by_rule(
    rule: &Rule,
    registers: &mut Registers,
    sp: u64,
    word: &mut impl FnMut(u64) -> Option<u64>,
) -> Result<u64, StackEnd> {
    let cfa = rule.cfa(registers, word).ok_or(StackEnd::NoUnwindData)?;
    if cfa <= sp || cfa % 8 != 0 {
        return Err(StackEnd::NoProgress);
    }
    let pc = word(cfa.wrapping_sub(8)).ok_or(StackEnd::UnreadableStack)?;
    rule.restore(registers, cfa, word).ok_or(StackEnd::UnreadableStack)?;
    registers.pc = pc;
    registers.keep_callee_saved();
    registers.set(STACK_POINTER, cfa);
    Ok(cfa)
}

#[inline(never)]
fn interpret(
    entry: &Entry,
    context: &mut Context,
    address: u64,
    exact: bool,
    registers: &mut Registers,
    word: &mut impl FnMut(u64) -> Option<u64>,
) -> Result<u64, StackEnd> {
    let unwind = entry.unwind.as_ref().ok_or(StackEnd::NoUnwindData)?;
    let svma = address.wrapping_sub(entry.bias);
    let caller = unwind
        .interpret(svma, &mut context.scratch, registers, word)
        .ok_or(StackEnd::NoUnwindData)?;
    // Just before `longjmp` or an exception jumps, the stack pointer is that of the place it jumps to already.
    let progress = match caller.registers.sp().checked_sub(registers.sp()) {
        Some(0) => exact && caller.registers.pc != registers.pc,
        other => other.is_some(),
    };
    if !progress || caller.registers.sp() % 8 != 0 {
        return Err(StackEnd::NoProgress);
    }
    *registers = caller.registers;
    registers.keep_callee_saved();
    Ok(caller.cfa)
}

/// Out of a linkage stub without unwind data, to its caller.
#[inline(never)]
fn out_of_stub(registers: &mut Registers, sp: u64, word: &mut impl FnMut(u64) -> Option<u64>) -> Option<u64> {
    let slot = sp.checked_add(stub::return_address_offset(registers.pc, word)?)?;
    let pc = word(slot)?;
    out_to(pc, slot, registers)
}

/// Out of code that Python made for `perf`, to its caller, which is code of a module.
#[inline(never)]
fn out_of_trampoline(
    table: &ModuleTable,
    registers: &mut Registers,
    sp: u64,
    word: &mut impl FnMut(u64) -> Option<u64>,
) -> Option<u64> {
    let slot = sp.checked_add(stub::trampoline_offset(registers.pc, word)?)?;
    let pc = word(slot)?;
    table.find(pc.wrapping_sub(1))?;
    out_to(pc, slot, registers)
}

/// To the caller `pc`, whose address is in `slot`.
fn out_to(pc: u64, slot: u64, registers: &mut Registers) -> Option<u64> {
    let cfa = slot.checked_add(8)?;
    registers.pc = pc;
    registers.keep_callee_saved();
    registers.set(STACK_POINTER, cfa);
    Some(cfa)
}

/// Follows the frame pointer, if what it leads to is plausible.
#[inline(never)]
fn by_frame_pointer(
    table: &ModuleTable,
    registers: &mut Registers,
    sp: u64,
    word: &mut impl FnMut(u64) -> Option<u64>,
) -> Option<u64> {
    let frame = registers.get(FRAME_POINTER)?;
    if frame < sp || frame % 8 != 0 {
        return None;
    }
    let cfa = frame.checked_add(16)?;
    let pc = word(frame + 8)?;
    table.find(pc.wrapping_sub(1))?;
    let outer = word(frame)?;
    let sp_and_frame = Registers::new(pc, cfa, outer);
    *registers = sp_and_frame;
    Some(cfa)
}
