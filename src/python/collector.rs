//! How long Python's garbage collector takes, by `gc.callbacks` (documented in the library's reference): a list of functions that the collector calls before and
//! after each collection.
//!
//! Ours is a C function that reads the clock and adds to three counters, so a collection costs a fraction of a microsecond more than it takes anyway. It stands in the
//! list from the plugin's start to its end; what cannot be put there or taken out again, because the interpreter never gives its lock away, costs nobody anything.

use std::ffi::c_long;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use pyo3_ffi::{Py_ssize_t, PyObject};

use super::api::{Api, Runtime};
use super::function::Function;
use super::gil::with_gil_soon;
use super::objects::{PythonError, Refs, read_text};
use crate::model::CollectionTimes;
use crate::sys::clock;

/// CPython has three generations, and two or three from 3.14 on.
const GENERATIONS: usize = 3;

/// What collections of one generation took.
#[derive(Debug)]
struct Counter {
    collections: AtomicU64,
    nanos: AtomicU64,
    longest: AtomicU64,
}

static COUNTERS: [Counter; GENERATIONS] = [const {
    Counter {
        collections: AtomicU64::new(0),
        nanos: AtomicU64::new(0),
        longest: AtomicU64::new(0),
    }
}; GENERATIONS];

/// When the collection that runs began, by the monotonic clock; 0 when none does. Collections do not nest: the collector runs one at a time.
static BEGAN: AtomicU64 = AtomicU64::new(0);

/// Whether collections are to be timed. Read with the interpreter's lock held by whoever puts our function into the list or takes it out.
static WANTED: AtomicBool = AtomicBool::new(false);

/// Our function while it stands in the list, else null. Changed with the interpreter's lock held; we own a reference.
static LISTED: AtomicPtr<PyObject> = AtomicPtr::new(std::ptr::null_mut());

static CALLBACK: Function = Function::new(c"spark_collection", on_collection);

/// Begins to time collections, or ends it, as soon as the interpreter gives its lock away. Nobody waits for that. Without a Python nothing happens.
pub fn time_collections(wanted: bool) {
    let Ok(Runtime { api, .. }) = Runtime::discover() else {
        return;
    };
    // Release, with the Acquire in `change`: whoever gets the lock last sees the last wish.
    WANTED.store(wanted, Ordering::Release);
    // It cannot be had where Python is not running, and then there is nothing to time.
    let _ = with_gil_soon(api, move || {
        let mut refs = Refs::new(api);
        // Without it reports say nothing of times.
        let _ = change(&mut refs);
        refs.release();
    });
}

/// Whether collections are being timed.
pub(super) fn is_timing() -> bool {
    // Relaxed: a figure.
    !LISTED.load(Ordering::Relaxed).is_null()
}

/// What collections of this generation took.
pub(super) fn times(generation: usize) -> Option<CollectionTimes> {
    let counter = COUNTERS.get(generation)?;
    // Relaxed: figures that belong together only nearly.
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Some(CollectionTimes {
        collections: read(&counter.collections),
        nanos: read(&counter.nanos),
        longest_nanos: read(&counter.longest),
    })
}

/// Puts our function into the list, or takes it out. Needs the interpreter's lock.
fn change(refs: &mut Refs) -> Result<(), PythonError> {
    // Acquire: see `time_collections`.
    let wanted = WANTED.load(Ordering::Acquire);
    // Relaxed: the lock orders it.
    let listed = LISTED.load(Ordering::Relaxed);
    if wanted != listed.is_null() {
        return Ok(());
    }
    let gc = refs.import(c"gc")?;
    let list = refs.attribute(gc, c"callbacks")?;
    if !wanted {
        refs.method(list, c"remove", &[listed])?;
        LISTED.store(std::ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: the lock is held, and the reference is the one that was kept below.
        unsafe { (refs.api.Py_DecRef)(listed) };
        return Ok(());
    }
    // Relaxed: the callback runs with the lock held.
    BEGAN.store(0, Ordering::Relaxed);
    let function = CALLBACK.object(refs, std::ptr::null_mut())?;
    refs.method(list, c"append", &[function])?;
    // SAFETY: the lock is held and the function is alive; this reference is kept until it is taken out.
    unsafe { (refs.api.Py_IncRef)(function) };
    LISTED.store(function, Ordering::Relaxed);
    Ok(())
}

/// Called by the collector with `"start"` or `"stop"` and a dict that names the generation, with the interpreter's lock held.
unsafe extern "C-unwind" fn on_collection(
    _self: *mut PyObject,
    arguments: *const *mut PyObject,
    count: Py_ssize_t,
) -> *mut PyObject {
    let Some(api) = Api::found() else {
        return std::ptr::null_mut();
    };
    if count == 2 {
        // SAFETY: the caller passes that many arguments, alive for the call.
        let (phase, info) = unsafe { (*arguments, *arguments.add(1)) };
        let now = clock::monotonic().0;
        if read_text(api, phase).as_deref() == Some("start") {
            // Relaxed, here and below: the interpreter's lock orders collections; where there is none, they are figures.
            BEGAN.store(now, Ordering::Relaxed);
        } else {
            let began = BEGAN.swap(0, Ordering::Relaxed);
            if began != 0 {
                add(generation(api, info), now.saturating_sub(began));
            }
        }
    }
    api.none
}

fn generation(api: &Api, info: *mut PyObject) -> Option<usize> {
    // SAFETY: the lock is held and `info` is alive; anything but a dict gives null, and the number found is borrowed from it. An error (no such key sets none)
    // is cleared: a callback must not leave one behind.
    unsafe {
        let number = (api.PyDict_GetItemString)(info, c"generation".as_ptr());
        if number.is_null() {
            (api.PyErr_Clear)();
            return None;
        }
        let number: c_long = (api.PyLong_AsLong)(number);
        (api.PyErr_Clear)();
        usize::try_from(number).ok()
    }
}

fn add(generation: Option<usize>, nanos: u64) {
    let Some(counter) = generation.and_then(|generation| COUNTERS.get(generation)) else {
        return;
    };
    // Relaxed: figures.
    counter.collections.fetch_add(1, Ordering::Relaxed);
    counter.nanos.fetch_add(nanos, Ordering::Relaxed);
    counter.longest.fetch_max(nanos, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_python_times_nothing() {
        time_collections(true);
        assert!(!is_timing());
    }

    #[test]
    fn each_generation_has_its_own_times() {
        let before = times(1).unwrap();
        for nanos in [5, 30, 10] {
            add(Some(1), nanos);
        }
        add(Some(GENERATIONS), 1_000);
        add(None, 1_000);
        let after = times(1).unwrap();
        assert_eq!(after.collections - before.collections, 3);
        assert_eq!(after.nanos - before.nanos, 45);
        assert_eq!(after.longest_nanos, 30);
        assert_eq!(times(GENERATIONS), None);
    }
}
