//! The `SIGPROF` handler: runs on the sampled thread, between two of its instructions.
//!
//! It may call only what is async-signal-safe (signal-safety(7)), and calls only this:
//! - `clock_gettime` (answered by the vdso), `gettid` by `syscall`, and `process_vm_readv`;
//! - the C library's `__errno_location`, `memcpy`, `memmove`, `memset` and `bcmp`, which keep no state (where the compiler has made calls of copies and comparisons);
//! - the previous handler, for signals that are not ours;
//! - our own code on memory that was made before the first signal: atomics, copies, gimli's reader of unwind data on fixed-size tables.
//!
//! No allocation, no lock, no logging, no formatting, no index that can panic, no thread-local of ours. (It reads the ABI's own word at `fs:0`, the address
//! of the thread control block, which exists before the thread's first instruction.) `errno` is put back. Tests count allocations
//! (`tests/native_allocations.rs`), damage unwind data (`src/native/unwind_tests.rs`) and hold this list against every instruction that can be reached, where they also
//! find `_Unwind_Resume`, behind assertions of gimli's that would have to fail first (`tests/native_handler.rs`).

use std::sync::atomic::Ordering;

use super::capture::{Capture, Outcome};
use super::costs::ticks;
use super::engine::{self, Engine, PREVIOUS};
use super::registers::{RED_ZONE, Registers};
use super::table::ModuleTable;
use super::unwind::walk;
use crate::limits;
use crate::model::SampleLoss;
use crate::sync::{Filling, Ticket};
use crate::sys::errno::KeepErrno;
use crate::sys::thread::current_tid;
use crate::sys::{clock, mem, signal};

/// Tells our values from those of anybody else who sends `SIGPROF` with one.
const MAGIC: u64 = 0x51a7;

/// The value that travels with a request.
pub(super) fn token(ticket: Ticket) -> u64 {
    MAGIC << 48 | ticket.to_bits()
}

fn ticket(value: u64) -> Option<Ticket> {
    (value >> 48 == MAGIC).then(|| Ticket::from_bits(value))
}

/// See the module's text.
pub(super) extern "C" fn on_sigprof(number: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let begun = ticks();
    let _errno = KeepErrno::new();
    if let Some(engine) = engine::get() {
        // SAFETY: `info` is what the kernel gave us.
        let value = unsafe { signal::sent_value(engine.process, info) };
        if let Some(ticket) = value.and_then(ticket) {
            // A request that is no longer open leaves its signal behind; a newer one to the same thread is then merged into it by the kernel.
            match engine.slots.claim(ticket).or_else(|| claim_own(engine)) {
                // SAFETY: `context` is what the kernel gave us.
                Some(filling) => unsafe { answer(engine, begun, filling, context) },
                // Relaxed: a figure.
                None => drop(engine.late.fetch_add(1, Ordering::Relaxed)),
            }
            return;
        }
        // SAFETY: as above.
        if unsafe { signal::details_lost(info) }
            && let Some(filling) = claim_own(engine)
        {
            // SAFETY: as above.
            unsafe { answer(engine, begun, filling, context) };
            return;
        }
        // Relaxed: a figure.
        engine.foreign.fetch_add(1, Ordering::Relaxed);
    }
    // Acquire: pairs with the Release in sys::signal.
    let previous = PREVIOUS.load(Ordering::Acquire);
    // SAFETY: null, or leaked by sys::signal; the arguments are those we got for this very signal.
    unsafe {
        if let Some(previous) = previous.as_ref() {
            previous.run(number, info, context);
        }
    }
}

fn claim_own(engine: &Engine) -> Option<Filling<'_, Capture>> {
    engine.slots.claim_label(current_tid().get() as u64)
}

/// # Safety
/// `context` is what the kernel gave to the handler.
unsafe fn answer(engine: &Engine, begun: u64, filling: Filling<'_, Capture>, context: *const libc::c_void) {
    let started = clock::monotonic();
    // SAFETY: the caller's promise.
    let registers = unsafe { Registers::from_context(context) };
    let modules = engine.modules.enter();
    filling.fill(|capture| {
        capture.started = started;
        capture.sp = registers.sp();
        capture.pc = registers.pc;
        capture.control_block = control_block();
        capture.cut_a_call = cut_a_call(modules.get(), &registers);
        capture.frames.clear();
        capture.marks.begun = begun;
        capture.marks.derived = 0;
        capture.marks.prepared = ticks();
        capture.outcome = capture_stack(engine, modules.get(), capture, registers);
        capture.marks.walked = ticks();
        if matches!(capture.outcome, Outcome::Stack(_)) {
            capture.shadow = engine.shadow.read(capture.tid, &mut capture.python);
            engine.shadow.ask_for_audit(capture.tid, started);
        }
        capture.ended = clock::monotonic();
        capture.marks.ended = ticks();
    });
}

/// Whether the thread was waiting in a system call that now returns EINTR (one that is made again stands before its instruction, with the call's number
/// in that register).
#[inline(always)]
fn cut_a_call(table: Option<&ModuleTable>, registers: &Registers) -> bool {
    const EINTR: u64 = (-libc::EINTR as i64) as u64;
    const SYSCALL: [u8; 2] = [0x0f, 0x05];
    let instruction = registers.pc.wrapping_sub(SYSCALL.len() as u64);
    registers.get(0) == Some(EINTR)
        && table
            .and_then(|table| table.find_with_range(registers.pc))
            .is_some_and(|(range, entry)| {
                // SAFETY: both bytes lie in the same code as the instruction that this thread has been at just now, so they are mapped, and
                // that code can be read.
                entry.readable
                    && range.contains(&instruction)
                    && unsafe { (instruction as *const [u8; 2]).read() } == SYSCALL
            })
}

fn capture_stack(engine: &Engine, table: Option<&ModuleTable>, capture: &mut Capture, registers: Registers) -> Outcome {
    let sp = registers.sp();
    // Relaxed: set before the first signal.
    let can_read = engine.can_read.load(Ordering::Relaxed);
    if !enough_stack(engine, capture, sp, can_read) {
        return Outcome::Lost(SampleLoss::SmallStack);
    }
    // The thread runs on this stack now, so all of it from here to its end is mapped and stays so.
    let direct = if capture.stack.holds(sp) {
        sp.saturating_sub(RED_ZONE)..capture.stack.high.saturating_sub(7)
    } else {
        0..0
    };
    let word = |address: u64| {
        if direct.contains(&address) {
            // SAFETY: the 8 bytes from `address` lie in this thread's own stack between its stack pointer (less the red zone, and at least
            // HANDLER_STACK_BYTES are mapped below) and its end, and only this thread writes there, which is in this handler now.
            Some(unsafe { (address as *const u64).read_unaligned() })
        } else if can_read {
            mem::read_own_word(engine.process, address)
        } else {
            None
        }
    };
    let Some(table) = table else {
        // The session has ended.
        return Outcome::Lost(SampleLoss::TimedOut);
    };
    let (frames, marks) = (&mut capture.frames, &mut capture.marks);
    engine
        .contexts
        .borrow(|context| {
            let before = context.misses;
            let end = walk(table, context, registers, word, |frame| frames.push(frame));
            marks.derived = context.misses - before;
            end
        })
        .map_or(Outcome::Lost(SampleLoss::Busy), Outcome::Stack)
}

/// Whether this handler may use [`limits::HANDLER_STACK_BYTES`] below the interrupted frame.
fn enough_stack(engine: &Engine, capture: &Capture, sp: u64, can_read: bool) -> bool {
    let bounds = &capture.stack;
    if bounds.floor <= sp && sp < bounds.high {
        return sp - bounds.floor >= limits::HANDLER_STACK_BYTES;
    }
    // An unknown stack: somebody's fiber, an alternate stack, or a thread's first sample. In the heap or among the program's variables, what lies below
    // is somebody else's sooner or later. Elsewhere, if the pages below are all there, no guard page is near.
    sp >= capture.program_break
        && can_read
        && (1..=limits::HANDLER_STACK_BYTES / PAGE)
            .all(|page| mem::read_own_word(engine.process, sp.wrapping_sub(page * PAGE) & !7).is_some())
}

const PAGE: u64 = 4096;

/// The address of the thread control block (System V psABI, 3.4.6: the word at `fs:0` points to itself).
#[inline(always)]
fn control_block() -> u64 {
    let address: u64;
    // SAFETY: every thread of a Linux x86-64 program has `fs:0` from its start; this only reads it.
    unsafe {
        std::arch::asm!("mov {}, fs:0", out(reg) address, options(nostack, readonly, preserves_flags));
    }
    address
}
