//! Sampling an embedded interpreter with every sample judged, and what its program calls for that.

use std::time::Duration;

use endstone_spark::native::{self, SamplerOptions, ThreadSelection};
use endstone_spark::python::{Attribution, Runtime};
use endstone_spark::shadow::ShadowTable;

use super::frames::Layout;
use super::interpreter::Object;
use super::session::python;
use super::truth;
use super::verdict::{Judge, Verdicts};

/// Samples all threads while `act` runs, and judges every sample.
pub fn sample(attribution: &Attribution, act: impl FnOnce()) -> Verdicts {
    let options = SamplerOptions {
        interval_nanos: 250_000,
        threads: ThreadSelection::All,
        ignore_sleeping: false,
    };
    let (mut sampler, mut source) = native::start(options, ShadowTable::global()).unwrap();
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut judge = Judge::new(attribution);
            while source.drain(Duration::from_millis(50), &mut |sample| judge.visit(sample)) {}
            judge.verdicts
        });
        // A program that fails must not leave the reader waiting.
        let acted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
        sampler.stop();
        let verdicts = reader.join().unwrap();
        match acted {
            Ok(()) => verdicts,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Major and minor version.
pub fn version(runtime: &Runtime) -> (u32, u32) {
    let mut numbers = runtime.version().split('.').map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap(), numbers.next().unwrap())
}

/// Finds out how this interpreter's frames lie in memory. Called with a code object by the function that it is of.
pub unsafe extern "C" fn learn(_module: Object, code: Object) -> Object {
    let python = python();
    let version = version(&Runtime::discover().unwrap());
    // SAFETY: the lock is held; `co_qualname` is kept alive by the code object.
    let name = unsafe {
        let name = (python.PyObject_GetAttrString)(code, c"co_qualname".as_ptr());
        (python.Py_DecRef)(name);
        name
    };
    let (_, line) = python.true_frames().pop().unwrap();
    truth::set_layout(Layout::find(python, version, code, name, line));
    python.int(0)
}

/// Samples of the calling thread are judged from now on, or no longer.
pub unsafe extern "C" fn watch_me(_module: Object, wanted: Object) -> Object {
    let python = python();
    // SAFETY: the lock is held; the argument is a bool, which is an int.
    let (wanted, state) = unsafe {
        (
            (python.PyLong_AsLong)(wanted) != 0,
            (python.PyGILState_GetThisThreadState)(),
        )
    };
    truth::watch(wanted.then_some(state as u64));
    python.int(0)
}
