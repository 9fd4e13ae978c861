//! What following Python costs: added nanoseconds per call and return, beside C callbacks that do nothing (the least that `sys.monitoring`
//! can cost), cProfile, and callbacks written in Python. All in one run, taken in turns, the best of several.
//!
//! `cargo bench --bench callbacks [-- 3.13]`

#[path = "../tests/python/interpreter.rs"]
mod interpreter;
#[path = "../tests/python/pythons.rs"]
mod pythons;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use endstone_spark::native::{Unwinder, current_modules_unwinder};
use endstone_spark::python::{Runtime, attach};
use endstone_spark::shadow::ShadowTable;
use interpreter::{Interpreter, Object};

const CHILD: &str = "SPARK_BENCH_LIBPYTHON";
const ROUNDS: usize = 7;

static NONE: AtomicUsize = AtomicUsize::new(0);

/// Does nothing, as cheaply as a callback can.
unsafe extern "C" fn nothing(_module: Object, _arguments: Object) -> Object {
    std::ptr::with_exposed_provenance_mut(NONE.load(Ordering::Relaxed))
}

fn child(library: &Path) {
    let python = Interpreter::start(library);
    // SAFETY: a NUL-terminated name; the address of an immortal object.
    NONE.store(
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_Py_NoneStruct".as_ptr()) }.expose_provenance(),
        Ordering::Relaxed,
    );
    python.add_fast_function(c"nothing", nothing);
    python.run(include_str!("callbacks.py"));
    let unwinder = Arc::new(current_modules_unwinder());
    let runtime = Runtime::discover().unwrap();
    for _ in 0..ROUNDS {
        python.run("measure('base')\nwith_callbacks('no-op C', nothing)");
        let attribution = python.unlocked(|| {
            let walk: Arc<Unwinder> = Arc::clone(&unwinder);
            attach(runtime, ShadowTable::global(), walk).unwrap()
        });
        python.run("measure('ours')");
        python.unlocked(|| attribution.detach()).unwrap();
    }
    python.run("others()\nreport()");
}

fn main() {
    if let Some(library) = std::env::var_os(CHILD) {
        return child(Path::new(&library));
    }
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument.starts_with("3."))
        .collect();
    for minor in ["3.12", "3.13", "3.14", "3.15"] {
        if !wanted.is_empty() && !wanted.iter().any(|version| version == minor) {
            continue;
        }
        match pythons::find(minor) {
            Some(python) => {
                let status = python.this_program().env(CHILD, &python.library).status().unwrap();
                assert!(status.success());
            }
            None => println!("CPython {minor} with a shared library not found: not measured"),
        }
    }
}
