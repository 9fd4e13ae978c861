//! What following Python costs: nanoseconds added per call and return, beside C callbacks that do nothing (the least that `sys.monitoring`
//! can cost), cProfile, callbacks written in Python, and such that call C through ctypes. All in one run, taken in turns: the
//! medians of what each adds to the run with nothing of the same round.
//!
//! `cargo bench --bench callbacks [-- 3.13 [WORK...]]`; with SPARK_BENCH_JSON=FILE it writes the same as JSON. Nothing is asserted, for machines differ.

#[path = "../../tests/python/interpreter.rs"]
mod interpreter;
#[path = "../../tests/python/pythons.rs"]
mod pythons;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use endstone_spark::native::{Unwinder, current_modules_unwinder};
use endstone_spark::python::{Runtime, attach};
use endstone_spark::shadow::ShadowTable;
use interpreter::{Interpreter, Object};

const CHILD: &str = "SPARK_BENCH_LIBPYTHON";
/// Names of the work to measure, with spaces between; none for all.
const WORK: &str = "SPARK_BENCH_WORK";
/// Where a child leaves its figures.
const RESULT: &str = "SPARK_BENCH_RESULT";
/// How many rounds, if not [`ROUNDS`]: one is enough to count instructions.
const WANTED_ROUNDS: &str = "SPARK_BENCH_ROUNDS";
const ROUNDS: usize = 25;
/// The last of them, in which what is much slower is measured too.
const SLOW_ROUNDS: usize = 5;

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
    python.run(include_str!("work.py"));
    python.run(include_str!("modes.py"));
    let wanted = std::env::var(WORK).unwrap_or_default();
    if !wanted.is_empty() {
        python.run(&format!("WORK = {{name: WORK[name] for name in '{wanted}'.split()}}"));
    }
    let unwinder = Arc::new(current_modules_unwinder());
    let runtime = Runtime::discover().unwrap();
    let wanted = std::env::var(WANTED_ROUNDS).ok();
    let rounds = wanted.and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS);
    for left in (0..rounds).rev() {
        python.run("measure('base')\nwith_callbacks('no-op C', nothing)");
        let attribution = python.unlocked(|| {
            let walk: Arc<Unwinder> = Arc::clone(&unwinder);
            attach(runtime, ShadowTable::global(), walk).unwrap()
        });
        python.run("measure('ours')");
        python.unlocked(|| attribution.detach()).unwrap();
        if left < SLOW_ROUNDS {
            python.run("slow_ones()");
        }
    }
    let result = std::env::var(RESULT).unwrap_or_default();
    python.run(&format!("write('{result}')"));
}

fn main() {
    if let Some(library) = std::env::var_os(CHILD) {
        return child(Path::new(&library));
    }
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let (versions, work): (Vec<_>, Vec<_>) = arguments.into_iter().partition(|word| word.starts_with("3."));
    let result = std::env::temp_dir().join(format!("spark-bench-{}", std::process::id()));
    let mut all = Vec::new();
    for minor in ["3.12", "3.13", "3.14", "3.15"] {
        if !versions.is_empty() && !versions.iter().any(|version| version == minor) {
            continue;
        }
        let Some(python) = pythons::find(minor) else {
            println!("CPython {minor} with a shared library not found: not measured");
            continue;
        };
        let mut command = python.this_program();
        command
            .env(CHILD, &python.library)
            .env(WORK, work.join(" "))
            .env(RESULT, &result);
        assert!(command.status().unwrap().success());
        let text = std::fs::read_to_string(&result).unwrap();
        all.push(serde_json::from_str::<serde_json::Value>(&text).unwrap());
        std::fs::remove_file(&result).unwrap();
    }
    if let Some(path) = std::env::var_os("SPARK_BENCH_JSON") {
        let json = serde_json::json!({ "unit": "nanoseconds per call and return", "pythons": all });
        std::fs::write(path, format!("{json:#}\n")).unwrap();
    }
}
