//! A Python of the process that Endstone does not know of, so that it can be ended while plugins are still enabled. (Endstone never ends its own, and could not go on
//! without.)

use std::ffi::{c_int, c_void};

use crate::probes::python_function;

/// Starts it, and gives its lock away. On the main thread.
pub fn start() -> Result<(), &'static str> {
    // SAFETY: CPython's functions, with these signatures in every supported version.
    unsafe {
        let initialize = python_function!(c"Py_InitializeEx", fn(c_int));
        let save = python_function!(c"PyEval_SaveThread", fn() -> *mut c_void);
        // Without handlers for signals.
        initialize(0);
        // The thread's state is found again by `PyGILState_Ensure`.
        save();
    }
    Ok(())
}

/// Ends it, whatever it is doing. On the main thread.
pub fn finalise() -> String {
    end().map_or_else(str::to_owned, |code| format!("done, with {code}"))
}

fn end() -> Result<c_int, &'static str> {
    // SAFETY: as above; this thread's state is that of the main thread, which ends the interpreter with its lock held.
    unsafe {
        let is_initialized = python_function!(c"Py_IsInitialized", fn() -> c_int);
        let ensure = python_function!(c"PyGILState_Ensure", fn() -> c_int);
        let finalize = python_function!(c"Py_FinalizeEx", fn() -> c_int);
        if is_initialized() == 0 {
            return Err("Python is not started");
        }
        ensure();
        Ok(finalize())
    }
}
