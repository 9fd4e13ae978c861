//! What CPython calls at every event: the hot path.
//!
//! **Problem.** The callbacks run once per call and once per return of every Python function in the server, so each instruction counts; and
//! they must know exactly where on the stack CPython called them, because the eval frame's address is found from there.
//!
//! **Algorithm.** Each event has an entry of a few instructions that hands its own stack pointer and its thread's context on as more arguments. So the distance from there
//! to the eval frame does not depend on what the compiler makes of the rest, and the calibration's callbacks have the same distance as these. An
//! enter looks its code object's id up in the thread's cache and pushes; a leave pops. Everything else is in [`super::cold`].
//!
//! **Assumptions.** x86-64, System V calling convention. CPython calls a `METH_FASTCALL` function with (self, arguments, their number) and
//! always the same way for one event. Events come with two to four arguments, of which the first is the code object.

use std::arch::naked_asm;
use std::mem::offset_of;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU64, Ordering};

use pyo3_ffi::{Py_ssize_t, PyObject};

use super::calibrate;
use super::cold;
use super::context::{Context, tag, word_offset};
use super::function::Function;
use super::monitoring::Event;
use super::objects::{PythonError, Refs};

/// What all callbacks need, in one cache line. Set before they are registered.
#[repr(C, align(64))]
struct Ready {
    /// Distance in bytes from an entry's stack pointer to the eval frame's caller, by event.
    distances: [AtomicU64; Event::COUNT],
    /// Distance from the thread pointer to the thread-local word, where that is the same for all threads; else 0.
    word: AtomicI64,
    /// The object None.
    none: AtomicPtr<PyObject>,
}

static READY: Ready = Ready {
    distances: [const { AtomicU64::new(0) }; Event::COUNT],
    word: AtomicI64::new(0),
    none: AtomicPtr::new(std::ptr::null_mut()),
};

/// Sets what the callbacks need. To be called before they are registered, with the interpreter's lock held.
pub(super) fn prepare(none: *mut PyObject, distances: [u64; Event::COUNT]) {
    // Relaxed: callbacks run with the interpreter's lock held, or after the pause of all threads that switches events on in a
    // free-threaded build; either orders this before them.
    READY.none.store(none, Ordering::Relaxed);
    for (place, distance) in READY.distances.iter().zip(distances) {
        place.store(distance, Ordering::Relaxed);
    }
    if let Some(offset) = word_offset() {
        // Relaxed: every thread that can tell finds the same, and callbacks can do without it.
        READY.word.store(offset, Ordering::Relaxed);
    }
}

/// What a handler gets: CPython's three arguments, the address of the eval frame's caller, and the thread's context.
type Handler = unsafe extern "C-unwind" fn(
    *mut PyObject,
    *const *mut PyObject,
    Py_ssize_t,
    u64,
    &'static Context,
) -> *mut PyObject;

macro_rules! entry {
    ($name:ident, $event:ident, $handler:ident) => {
        const _: Handler = $handler::<$event>;

        /// Hands on where the eval frame's caller is, from the stack pointer, which on entry points at the return address; and the thread's
        /// context: its word lies where [`READY`] says, or else where the TLS descriptor does.
        #[unsafe(naked)]
        unsafe extern "C-unwind" fn $name(
            _session: *mut PyObject,
            _arguments: *const *mut PyObject,
            _count: Py_ssize_t,
        ) -> *mut PyObject {
            naked_asm!(
                ".cfi_startproc",
                "mov rcx, [rip + {ready} + {distance}]",
                "mov rax, [rip + {ready} + {word}]",
                "add rcx, rsp",
                "test rax, rax",
                "jz 3f",
                "2:",
                "mov r8, fs:[rax]",
                "jmp {handler}",
                "3:",
                "sub rsp, 8",
                ".cfi_adjust_cfa_offset 8",
                "lea rax, [rip + spark_thread_context@TLSDESC]",
                "call [rax + spark_thread_context@TLSCALL]",
                "add rsp, 8",
                ".cfi_adjust_cfa_offset -8",
                "jmp 2b",
                ".cfi_endproc",
                ready = sym READY,
                distance = const offset_of!(Ready, distances) + $event * size_of::<AtomicU64>(),
                word = const offset_of!(Ready, word),
                handler = sym $handler::<$event>,
            )
        }
    };
}

unsafe extern "C-unwind" fn on_enter<const EVENT: usize>(
    session: *mut PyObject,
    arguments: *const *mut PyObject,
    count: Py_ssize_t,
    anchor: u64,
    context: &'static Context,
) -> *mut PyObject {
    if count < 2 {
        return none();
    }
    // SAFETY: `arguments` holds `count` objects, and that is more than none.
    let code = unsafe { *arguments };
    if context.is_own(session.addr())
        && let Some(entry) = context.cached(code.addr() as u64)
        && context.shadow().try_enter(anchor, entry)
    {
        context.count::<EVENT>();
        return none();
    }
    // A jump: this function keeps nothing on the stack.
    cold_enter::<EVENT>(session, code, anchor)
}

unsafe extern "C-unwind" fn on_leave<const EVENT: usize>(
    session: *mut PyObject,
    arguments: *const *mut PyObject,
    count: Py_ssize_t,
    anchor: u64,
    context: &'static Context,
) -> *mut PyObject {
    if count < 2 {
        return none();
    }
    // SAFETY: `arguments` holds `count` objects, and that is more than none.
    let code = unsafe { *arguments };
    if context.is_own(session.addr()) && context.shadow().try_leave(anchor, tag(code.addr() as u64)) {
        context.count::<EVENT>();
        return none();
    }
    cold_leave::<EVENT>(session, code, anchor)
}

/// What every callback returns, but with an error that was pending before it was called.
#[inline(always)]
fn none() -> *mut PyObject {
    // Relaxed: see `prepare`.
    READY.none.load(Ordering::Relaxed)
}

#[cold]
#[inline(never)]
extern "C-unwind" fn cold_enter<const EVENT: usize>(
    session: *mut PyObject,
    code: *mut PyObject,
    anchor: u64,
) -> *mut PyObject {
    if cold::enter::<EVENT>(session, code, anchor) {
        return std::ptr::null_mut();
    }
    none()
}

#[cold]
#[inline(never)]
extern "C-unwind" fn cold_leave<const EVENT: usize>(
    session: *mut PyObject,
    code: *mut PyObject,
    anchor: u64,
) -> *mut PyObject {
    if cold::leave::<EVENT>(session, code, anchor) {
        return std::ptr::null_mut();
    }
    none()
}

/// While calibrating, the distances are 0: what stands for the anchor is the stack pointer.
unsafe extern "C-unwind" fn on_calibration<const EVENT: usize>(
    _session: *mut PyObject,
    arguments: *const *mut PyObject,
    count: Py_ssize_t,
    stack_pointer: u64,
    _context: &'static Context,
) -> *mut PyObject {
    if count >= 2 {
        // SAFETY: `arguments` holds `count` objects, and that is more than none.
        calibrate::record(EVENT, unsafe { *arguments }.addr() as u64, stack_pointer);
    }
    none()
}

const START: usize = Event::Start as usize;
const RESUME: usize = Event::Resume as usize;
const THROW: usize = Event::Throw as usize;
const RETURN: usize = Event::Return as usize;
const YIELD: usize = Event::Yield as usize;
const UNWIND: usize = Event::Unwind as usize;

entry!(start, START, on_enter);
entry!(resume, RESUME, on_enter);
entry!(throw, THROW, on_enter);
entry!(ret, RETURN, on_leave);
entry!(yielded, YIELD, on_leave);
entry!(unwind, UNWIND, on_leave);
entry!(calibrate_start, START, on_calibration);
entry!(calibrate_resume, RESUME, on_calibration);
entry!(calibrate_throw, THROW, on_calibration);
entry!(calibrate_return, RETURN, on_calibration);
entry!(calibrate_yield, YIELD, on_calibration);
entry!(calibrate_unwind, UNWIND, on_calibration);

macro_rules! functions {
    ($($name:literal $entry:ident),*) => {
        [$(Function::new($name, $entry)),*]
    };
}

static CALLBACKS: [Function; Event::COUNT] = functions!(
    c"spark_start" start, c"spark_resume" resume, c"spark_throw" throw,
    c"spark_return" ret, c"spark_yield" yielded, c"spark_unwind" unwind
);

static CALIBRATION: [Function; Event::COUNT] = functions!(
    c"spark_calibrate_start" calibrate_start, c"spark_calibrate_resume" calibrate_resume,
    c"spark_calibrate_throw" calibrate_throw, c"spark_calibrate_return" calibrate_return,
    c"spark_calibrate_yield" calibrate_yield, c"spark_calibrate_unwind" calibrate_unwind
);

/// Makes function objects of the session with this mark, which becomes their `self`.
fn make(
    refs: &mut Refs,
    definitions: &'static [Function; Event::COUNT],
    session: *mut PyObject,
) -> Result<[*mut PyObject; Event::COUNT], PythonError> {
    let mut functions = [std::ptr::null_mut(); Event::COUNT];
    for (definition, function) in definitions.iter().zip(&mut functions) {
        *function = definition.object(refs, session)?;
    }
    Ok(functions)
}

/// The session's callbacks.
pub(super) fn make_callbacks(
    refs: &mut Refs,
    session: *mut PyObject,
) -> Result<[*mut PyObject; Event::COUNT], PythonError> {
    make(refs, &CALLBACKS, session)
}

/// The calibration's callbacks.
pub(super) fn make_calibration(
    refs: &mut Refs,
    session: *mut PyObject,
) -> Result<[*mut PyObject; Event::COUNT], PythonError> {
    make(refs, &CALIBRATION, session)
}
