//! The interpreter of this process, and sessions that follow it.

// Each program that uses this file uses its own part.
#![allow(dead_code)]

use std::path::Path;
use std::sync::{Arc, OnceLock};

use endstone_spark::native::{Unwinder, current_modules_unwinder};
use endstone_spark::python::{AttachError, Attribution, Runtime, attach};
use endstone_spark::shadow::ShadowTable;

use super::interpreter::Interpreter;

static PYTHON: OnceLock<Interpreter> = OnceLock::new();
static UNWINDER: OnceLock<Arc<Unwinder>> = OnceLock::new();

/// Starts this library's interpreter on this thread, which then holds the lock. Once per process.
pub fn start(library: &Path) -> &'static Interpreter {
    PYTHON.set(Interpreter::start(library)).ok().unwrap();
    python()
}

/// The interpreter that runs.
pub fn python() -> &'static Interpreter {
    PYTHON.get().unwrap()
}

/// Knows the modules that were loaded when it was first asked for.
pub fn unwinder() -> &'static Arc<Unwinder> {
    UNWINDER.get_or_init(|| Arc::new(current_modules_unwinder()))
}

/// A session, if it can begin. To be called with the lock.
pub fn try_attach() -> Result<Attribution, AttachError> {
    python().unlocked(|| {
        let walk: Arc<Unwinder> = Arc::clone(unwinder());
        attach(Runtime::discover().unwrap(), ShadowTable::global(), walk)
    })
}

/// A session. To be called with the lock.
pub fn session() -> Attribution {
    try_attach().unwrap()
}

/// Ends it. To be called with the lock.
pub fn detach(attribution: Attribution) {
    python().unlocked(|| attribution.detach()).unwrap();
}

/// Runs source text in `__main__`; an exception is printed and fails the test.
pub fn run(source: &str) {
    python().run(source);
}
