//! What following Python costs: nanoseconds added per call and return, beside C callbacks that do nothing (the least that `sys.monitoring`
//! can cost), cProfile, viztracer, callbacks written in Python, and such that call C through ctypes. All in one run, taken in turns: the
//! medians of what each adds to the run with nothing of the same round.
//!
//! `cargo bench --bench callbacks [-- 3.13 [WORK...]]`, half a minute for each CPython; with SPARK_BENCH_JSON=FILE it writes the same as JSON. Nothing is
//! asserted, for machines differ.

#[path = "../../tests/python/interpreter.rs"]
mod interpreter;
#[path = "../../tests/python/pythons.rs"]
mod pythons;
#[path = "../../tests/python/session.rs"]
mod session;
mod table;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use interpreter::Object;

const CHILD: &str = "SPARK_BENCH_LIBPYTHON";
/// Names of the work to measure, with spaces between; none for all.
const WORK: &str = "SPARK_BENCH_WORK";
/// Where a child leaves its figures.
const RESULT: &str = "SPARK_BENCH_RESULT";
/// How many rounds, if not [`ROUNDS`]: one is enough to count instructions.
const WANTED_ROUNDS: &str = "SPARK_BENCH_ROUNDS";
/// The folder with viztracer, for `sys.path`.
const VIZTRACER: &str = "SPARK_BENCH_VIZTRACER";
/// Processes for each CPython: where code and objects happen to lie differs from one to the next, and with it what they cost.
const PROCESSES: usize = 3;
/// In each process.
const ROUNDS: usize = 21;
/// The first of them, in which what is much slower is measured too.
const SLOW_ROUNDS: usize = 2;

static NONE: AtomicUsize = AtomicUsize::new(0);

/// Does nothing, as cheaply as a callback can.
unsafe extern "C" fn nothing(_module: Object, _arguments: Object) -> Object {
    std::ptr::with_exposed_provenance_mut(NONE.load(Ordering::Relaxed))
}

fn child(library: &Path) {
    let python = session::start(library);
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
    let wanted = std::env::var(WANTED_ROUNDS).ok();
    let rounds = wanted.and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS);
    for round in 0..rounds {
        // In another order each time: what one leaves behind is not always the same one's.
        for turn in 0..3 {
            match (round + turn) % 3 {
                0 => python.run("measure('alone')"),
                1 => python.run("with_callbacks('no-op C', nothing)"),
                _ => {
                    let attribution = session::session();
                    python.run("measure('ours')");
                    session::detach(attribution);
                }
            }
        }
        if round < SLOW_ROUNDS {
            python.run("slow_ones()");
        }
    }
    let result = std::env::var(RESULT).unwrap_or_default();
    python.run(&format!("write('{result}')"));
}

/// What one process measured.
fn measured(python: &pythons::Python, work: &[String], viztracer: Option<&Path>) -> table::Measured {
    let result = std::env::temp_dir().join(format!("spark-bench-{}", std::process::id()));
    let mut command = python.this_program();
    command
        .env(CHILD, &python.library)
        .env(WORK, work.join(" "))
        .env(RESULT, &result);
    if let Some(folder) = viztracer {
        command.env(VIZTRACER, folder);
    }
    assert!(command.status().unwrap().success());
    let text = std::fs::read_to_string(&result).unwrap();
    std::fs::remove_file(&result).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn viztracer(minor: &str) -> Result<PathBuf, String> {
    let version = minor.parse().map_err(|_| format!("{minor} is no version"))?;
    let lab = harness::Lab::open().map_err(|error| error.to_string())?;
    harness::peers::viztracer(&lab, version).map_err(|error| error.to_string())
}

fn main() {
    if let Some(library) = std::env::var_os(CHILD) {
        return child(Path::new(&library));
    }
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let (versions, work): (Vec<_>, Vec<_>) = arguments.into_iter().partition(|word| word.starts_with("3."));
    let mut all = Vec::new();
    for minor in ["3.12", "3.13", "3.14", "3.15"] {
        if !versions.is_empty() && !versions.iter().any(|version| version == minor) {
            continue;
        }
        let Some(python) = pythons::find(minor) else {
            println!("CPython {minor} with a shared library not found: not measured");
            continue;
        };
        let viztracer = viztracer(minor);
        if let Err(reason) = &viztracer {
            println!("viztracer is not measured on {minor}: {reason}");
        }
        let viztracer = viztracer.ok();
        let processes: Vec<_> = (0..PROCESSES)
            .map(|_| measured(&python, &work, viztracer.as_deref()))
            .collect();
        let table = table::Table::of(&processes);
        table.print();
        all.push(table);
    }
    if let Some(path) = std::env::var_os("SPARK_BENCH_JSON") {
        let json = serde_json::json!({ "unit": "nanoseconds per call and return", "pythons": all });
        std::fs::write(path, format!("{json:#}\n")).unwrap();
    }
}
