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
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use pyo3_ffi::{METH_FASTCALL, Py_ssize_t, PyCFunctionFast, PyMethodDef, PyMethodDefPointer, PyObject};

use super::calibrate;
use super::cold;
use super::context::{Context, tag};
use super::monitoring::Event;
use super::objects::{PythonError, Refs};

/// Distance in bytes from an entry's stack pointer to the eval frame's caller, by event. Set before callbacks are registered.
static DISTANCES: [AtomicU64; Event::COUNT] = [const { AtomicU64::new(0) }; Event::COUNT];

/// The object None. Set before callbacks are registered.
static NONE: AtomicPtr<PyObject> = AtomicPtr::new(std::ptr::null_mut());

/// Sets what the callbacks need. To be called before they are registered, with the interpreter's lock held.
pub(super) fn prepare(none: *mut PyObject, distances: [u64; Event::COUNT]) {
    // Relaxed: callbacks run with the interpreter's lock held, or after the pause of all threads that switches events on in a
    // free-threaded build; either orders this before them.
    NONE.store(none, Ordering::Relaxed);
    for (place, distance) in DISTANCES.iter().zip(distances) {
        place.store(distance, Ordering::Relaxed);
    }
}

/// What a handler gets: CPython's three arguments, the stack pointer at the entry, and the thread's context.
type Handler = unsafe extern "C-unwind" fn(
    *mut PyObject,
    *const *mut PyObject,
    Py_ssize_t,
    u64,
    &'static Context,
) -> *mut PyObject;

macro_rules! entry {
    ($name:ident, $handler:path) => {
        const _: Handler = $handler;

        /// Hands on the stack pointer, which on entry points at the return address, and the thread's context (see [`super::context`]).
        #[unsafe(naked)]
        unsafe extern "C-unwind" fn $name(
            _session: *mut PyObject,
            _arguments: *const *mut PyObject,
            _count: Py_ssize_t,
        ) -> *mut PyObject {
            naked_asm!(
                ".cfi_startproc",
                "mov rcx, rsp",
                "sub rsp, 8",
                ".cfi_adjust_cfa_offset 8",
                "lea rax, [rip + spark_thread_context@TLSDESC]",
                "call [rax + spark_thread_context@TLSCALL]",
                "add rsp, 8",
                ".cfi_adjust_cfa_offset -8",
                "mov r8, fs:[rax]",
                "jmp {handler}",
                ".cfi_endproc",
                handler = sym $handler,
            )
        }
    };
}

unsafe extern "C-unwind" fn on_enter<const EVENT: usize>(
    session: *mut PyObject,
    arguments: *const *mut PyObject,
    count: Py_ssize_t,
    stack_pointer: u64,
    context: &'static Context,
) -> *mut PyObject {
    // Relaxed: see `prepare`.
    let anchor = stack_pointer.wrapping_add(DISTANCES[EVENT].load(Ordering::Relaxed));
    if count >= 2 && context.is_of(session.addr()) {
        // SAFETY: `arguments` holds `count` objects, and that is more than none.
        let code = unsafe { *arguments }.addr() as u64;
        if let Some(id) = context.cached(code)
            && context.shadow().try_enter(anchor, id, tag(code))
        {
            context.count::<EVENT>();
            // Relaxed: see `prepare`.
            return NONE.load(Ordering::Relaxed);
        }
    }
    // A jump: this function keeps nothing on the stack.
    cold_enter::<EVENT>(session, arguments, count, anchor)
}

unsafe extern "C-unwind" fn on_leave<const EVENT: usize>(
    session: *mut PyObject,
    arguments: *const *mut PyObject,
    count: Py_ssize_t,
    stack_pointer: u64,
    context: &'static Context,
) -> *mut PyObject {
    // Relaxed: see `prepare`.
    let anchor = stack_pointer.wrapping_add(DISTANCES[EVENT].load(Ordering::Relaxed));
    if count >= 2 && context.is_of(session.addr()) {
        // SAFETY: `arguments` holds `count` objects, and that is more than none.
        let code = unsafe { *arguments }.addr() as u64;
        if context.shadow().try_leave(anchor, tag(code)) {
            context.count::<EVENT>();
            // Relaxed: see `prepare`.
            return NONE.load(Ordering::Relaxed);
        }
    }
    cold_leave::<EVENT>(session, arguments, count, anchor)
}

#[cold]
#[inline(never)]
extern "C-unwind" fn cold_enter<const EVENT: usize>(
    session: *mut PyObject,
    arguments: *const *mut PyObject,
    count: Py_ssize_t,
    anchor: u64,
) -> *mut PyObject {
    if count >= 2 {
        // SAFETY: `arguments` holds `count` objects, and that is more than none.
        cold::enter::<EVENT>(session, unsafe { *arguments }, anchor);
    }
    // Relaxed: see `prepare`.
    NONE.load(Ordering::Relaxed)
}

#[cold]
#[inline(never)]
extern "C-unwind" fn cold_leave<const EVENT: usize>(
    session: *mut PyObject,
    arguments: *const *mut PyObject,
    count: Py_ssize_t,
    anchor: u64,
) -> *mut PyObject {
    if count >= 2 {
        // SAFETY: `arguments` holds `count` objects, and that is more than none.
        cold::leave::<EVENT>(session, unsafe { *arguments }, anchor);
    }
    // Relaxed: see `prepare`.
    NONE.load(Ordering::Relaxed)
}

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
    // Relaxed: see `prepare`.
    NONE.load(Ordering::Relaxed)
}

const START: usize = Event::Start as usize;
const RESUME: usize = Event::Resume as usize;
const THROW: usize = Event::Throw as usize;
const RETURN: usize = Event::Return as usize;
const YIELD: usize = Event::Yield as usize;
const UNWIND: usize = Event::Unwind as usize;

entry!(start, on_enter::<START>);
entry!(resume, on_enter::<RESUME>);
entry!(throw, on_enter::<THROW>);
entry!(ret, on_leave::<RETURN>);
entry!(yielded, on_leave::<YIELD>);
entry!(unwind, on_leave::<UNWIND>);
entry!(calibrate_start, on_calibration::<START>);
entry!(calibrate_resume, on_calibration::<RESUME>);
entry!(calibrate_throw, on_calibration::<THROW>);
entry!(calibrate_return, on_calibration::<RETURN>);
entry!(calibrate_yield, on_calibration::<YIELD>);
entry!(calibrate_unwind, on_calibration::<UNWIND>);

/// Six method definitions. Function objects point at them for as long as anybody keeps one.
struct Definitions([PyMethodDef; Event::COUNT]);

// SAFETY: constants; the pointers in them are to constants and functions.
unsafe impl Sync for Definitions {}

/// What an entry is, and what CPython declares it to be.
type Entry = unsafe extern "C-unwind" fn(*mut PyObject, *const *mut PyObject, Py_ssize_t) -> *mut PyObject;

const fn as_c(entry: Entry) -> PyCFunctionFast {
    // SAFETY: the two differ in whether the arguments may be written, and in that ours may be unwound through, which C code allows.
    unsafe { std::mem::transmute::<Entry, PyCFunctionFast>(entry) }
}

macro_rules! definitions {
    ($($name:literal $entry:ident),*) => {
        Definitions([$(PyMethodDef {
            ml_name: $name.as_ptr(),
            ml_meth: PyMethodDefPointer { PyCFunctionFast: as_c($entry) },
            ml_flags: METH_FASTCALL,
            ml_doc: std::ptr::null(),
        }),*])
    };
}

static CALLBACKS: Definitions = definitions!(
    c"spark_start" start, c"spark_resume" resume, c"spark_throw" throw,
    c"spark_return" ret, c"spark_yield" yielded, c"spark_unwind" unwind
);

static CALIBRATION: Definitions = definitions!(
    c"spark_calibrate_start" calibrate_start, c"spark_calibrate_resume" calibrate_resume,
    c"spark_calibrate_throw" calibrate_throw, c"spark_calibrate_return" calibrate_return,
    c"spark_calibrate_yield" calibrate_yield, c"spark_calibrate_unwind" calibrate_unwind
);

/// Makes function objects of the session with this mark, which becomes their `self`.
fn make(
    refs: &mut Refs,
    definitions: &'static Definitions,
    session: *mut PyObject,
) -> Result<[*mut PyObject; Event::COUNT], PythonError> {
    let mut functions = [std::ptr::null_mut(); Event::COUNT];
    for (definition, function) in definitions.0.iter().zip(&mut functions) {
        // SAFETY: the lock is held; the definition is a static; the function takes its own reference to `session`.
        let made = unsafe { (refs.api.PyCFunction_NewEx)(definition, session, std::ptr::null_mut()) };
        *function = refs.own(made, "making a callback")?;
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
