//! Notice of the death of code objects.
//!
//! CPython tells up to eight watchers when a code object is made or about to be freed (`PyCode_AddWatcher`, public since 3.12). That is the moment to forget
//! its address: the next object there is another one. Watchers belong to one interpreter and see its code only; that of subinterpreters sends us no
//! events either.
//!
//! The notice comes on whichever thread drops the last reference, inside any Python call, with a Python error possibly pending. So it calls nothing of
//! Python's, and waits only for locks that are never held over a Python call.

use std::ffi::c_int;

use pyo3_ffi::PyCodeObject;

use super::context;
use super::live::Live;
use super::objects::{PythonError, Refs};

/// `PY_CODE_EVENT_DESTROY` of `Include/cpython/code.h`, the second of the two kinds of notice.
const DESTROY: c_int = 1;

/// A place among the interpreter's watchers that is ours until [`Watcher::clear`].
#[derive(Debug)]
pub(super) struct Watcher(c_int);

unsafe extern "C-unwind" fn notice(event: c_int, code: *mut PyCodeObject) -> c_int {
    if event == DESTROY
        && let Some(live) = Live::current()
        && live.codes.lock().forget(code.addr() as u64)
    {
        context::forget(live.mark, code.addr() as u64);
    }
    0
}

impl Watcher {
    /// Takes a place. Needs the interpreter's lock, as [`Watcher::clear`] does.
    pub(super) fn set(refs: &mut Refs) -> Result<Watcher, PythonError> {
        // SAFETY: the lock is held; the function is part of a library that is never unloaded.
        let id = unsafe { (refs.api.PyCode_AddWatcher)(notice) };
        if id < 0 {
            return Err(refs.error("watching the life of code objects"));
        }
        Ok(Watcher(id))
    }

    /// Gives the place back.
    pub(super) fn clear(self, refs: &mut Refs) -> Result<(), PythonError> {
        // SAFETY: the lock is held.
        if unsafe { (refs.api.PyCode_ClearWatcher)(self.0) } < 0 {
            return Err(refs.error("no longer watching the life of code objects"));
        }
        Ok(())
    }
}
