//! Unwinding outside of signal handlers.

use std::fmt;
use std::ops::Range;

use parking_lot::Mutex;

use super::modules::Modules;
use super::registers::Registers;
use super::table::ModuleTable;
use super::unwind::{Context, walk};
use crate::model::StackEnd;
use crate::sys::{mem, task};

/// Walks stacks of the calling thread, by the modules that were loaded when this was made.
pub struct Unwinder {
    process: i32,
    can_read: bool,
    table: ModuleTable,
    context: Mutex<Context>,
}

impl fmt::Debug for Unwinder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unwinder").finish_non_exhaustive()
    }
}

/// An unwinder that knows what is loaded now.
pub fn current_modules_unwinder() -> Unwinder {
    let process = std::process::id() as i32;
    let table = Modules::new(process)
        .refresh()
        .map(|(table, _)| table)
        .unwrap_or_default();
    Unwinder {
        process,
        can_read: mem::can_read_own(process),
        table,
        context: Mutex::new(Context::new()),
    }
}

impl Unwinder {
    /// From a frame of the calling thread that is still on its stack, calls out all callers: pairs of (return address, stack pointer after the
    /// return, which is the CFA of the frame that returns). The stack above `sp` must not change meanwhile, or the result is meaningless.
    pub fn unwind(&self, pc: u64, sp: u64, bp: u64, callers: &mut Vec<(u64, u64)>) -> StackEnd {
        let direct = match task::own_stack().filter(|stack| stack.contains(&sp)) {
            Some(stack) => sp..stack.end.saturating_sub(7),
            None => 0..0,
        };
        self.callers(Registers::new(pc, sp, bp), direct, callers)
    }

    /// From the interrupted registers that a signal's handler was given, calls out all callers, as [`Unwinder::unwind`] does: what the sampler's own
    /// handler sees at that instruction. Words of `stack` are read directly. Allocates nothing as long as `callers` has room.
    ///
    /// # Safety
    /// `context` is what the kernel gave to this handler, and `stack` is mapped and is not written by others meanwhile.
    pub unsafe fn unwind_interrupted(
        &self,
        context: *const libc::c_void,
        stack: Range<u64>,
        callers: &mut Vec<(u64, u64)>,
    ) -> StackEnd {
        // SAFETY: the caller's promise.
        let registers = unsafe { Registers::from_context(context) };
        self.callers(registers, stack.start..stack.end.saturating_sub(7), callers)
    }

    fn callers(&self, registers: Registers, direct: Range<u64>, callers: &mut Vec<(u64, u64)>) -> StackEnd {
        let word = |address| self.word(&direct, address);
        let mut waiting = None;
        walk(&self.table, &mut self.context.lock(), registers, word, |frame| {
            if let Some(cfa) = waiting.replace(frame.cfa) {
                callers.push((frame.address.wrapping_add(1), cfa));
            }
        })
    }

    /// Where the function begins that holds this address, as far as unwind data tells: a function split in two counts as two.
    pub fn function_of(&self, address: u64) -> Option<u64> {
        let entry = self.table.find(address)?;
        let start = entry.unwind.as_ref()?.function_of(address.wrapping_sub(entry.bias))?;
        Some(start.wrapping_add(entry.bias))
    }

    fn word(&self, direct: &Range<u64>, address: u64) -> Option<u64> {
        if direct.contains(&address) {
            // SAFETY: within the calling thread's own stack, between a frame that is on it and its end, or by the promise of `unwind_interrupted`.
            Some(unsafe { (address as *const u64).read_unaligned() })
        } else if self.can_read {
            mem::read_own_word(self.process, address)
        } else {
            None
        }
    }
}
