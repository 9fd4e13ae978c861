//! Nobody of ours is in the interpreter when it ends.
//!
//! **Problem.** A thread that asks whether Python runs and then for its lock can be stopped by the scheduler between the two until the interpreter has ended altogether. CPython 3.14 ends the
//! process when such a thread goes on ("gilstate_tss_set: failed to set current tstate"); others crash.
//!
//! **Algorithm.** Our threads go to the interpreter through a [`Door`], which a function closes that `atexit` (documented in the library's reference) calls before the
//! interpreter begins to end. It gives the lock away until all who are inside have come out, for a limited time. Whoever has not come out then works with the lock or waits for it; what becomes
//! of such a thread is CPython's matter and the text of [`super::gil`].
//!
//! **Price.** One function in `atexit`'s list from the first use of the interpreter to its end.
//!
//! **Assumptions.** A thread gets a processor within the limited time. A Python whose `atexit` functions were called ends: for us it has ended for good, whoever called them. Nobody
//! takes our function out of the list (`atexit._clear()`); then it is as if there were no door. What other threads do with the lock meanwhile does
//! not wait for what the ending thread holds: other functions of that list give the lock away, too.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use pyo3_ffi::{Py_ssize_t, PyObject};

use super::api::Api;
use super::function::Function;
use super::objects::{PythonError, Refs};
use crate::limits::ENDING_WORK_MILLIS;
use crate::sync::Door;

/// To the interpreter.
static DOOR: Door = Door::new();

/// Whether the function stands in the list. Changed with the interpreter's lock held.
static LISTED: AtomicBool = AtomicBool::new(false);

/// The process in which it was put there: a child made by `fork` has none of the threads that may be inside.
static PROCESS: AtomicU32 = AtomicU32::new(0);

static CALLBACK: Function = Function::new(c"spark_ending", on_ending);

/// The door that every thread of ours goes to the interpreter's lock by.
pub(super) fn door() -> &'static Door {
    &DOOR
}

/// Sees to it that the door is closed when the interpreter ends. Needs the lock of the main interpreter. If it cannot be done it is tried again the next time.
pub(super) fn expect(api: &'static Api) {
    // Relaxed, here and below: the lock orders it. Where there is none, or it is given away while the function is registered, the function may come to stand there twice, which does no harm.
    if LISTED.load(Ordering::Relaxed) {
        return;
    }
    PROCESS.store(std::process::id(), Ordering::Relaxed);
    let mut refs = Refs::new(api);
    LISTED.store(register(&mut refs).is_ok(), Ordering::Relaxed);
    refs.release();
}

fn register(refs: &mut Refs) -> Result<(), PythonError> {
    let function = CALLBACK.object(refs, std::ptr::null_mut())?;
    let atexit = refs.import(c"atexit")?;
    refs.method(atexit, c"register", &[function])?;
    Ok(())
}

/// Called by `atexit` with the interpreter's lock held.
unsafe extern "C-unwind" fn on_ending(
    _self: *mut PyObject,
    _arguments: *const *mut PyObject,
    _count: Py_ssize_t,
) -> *mut PyObject {
    door().close();
    let Some(api) = Api::found() else {
        return std::ptr::null_mut();
    };
    if PROCESS.load(Ordering::Relaxed) == std::process::id() && !door().is_empty() {
        // SAFETY: the lock is held by this thread, which takes it again before it goes on.
        let state = unsafe { (api.PyEval_SaveThread)() };
        wait();
        // SAFETY: the state that was just given away, on the same thread.
        unsafe { (api.PyEval_RestoreThread)(state) };
    }
    api.none
}

/// Until nobody is inside, or for as long as work is waited for while the interpreter ends. Counted in naps, not by a clock: where a machine gives this process no time, it gives none to those inside
/// either. Not on a condition: a thread that CPython takes away in the middle could hold its lock.
fn wait() {
    for _ in 0..ENDING_WORK_MILLIS {
        if door().is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
