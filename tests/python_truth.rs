//! Python attribution against the truth: a real interpreter runs code of every kind, and wherever the program asks for it the shadow stack
//! is compared with the interpreter's own frames, and every anchor with the native stack.
//!
//! Each CPython runs in a child process of its own, which is this test binary again.

#[path = "python/interpreter.rs"]
mod interpreter;
#[path = "python/pythons.rs"]
mod pythons;
#[path = "python/unwinding.rs"]
mod unwinding;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use endstone_spark::model::{CodeId, PythonState};
use endstone_spark::python::{Runtime, attach};
use endstone_spark::shadow::{ReadBuffer, ShadowRead, ShadowTable};
use endstone_spark::sys::thread::current_tid;
use interpreter::{Interpreter, Object};
use unwinding::Unwinder;

const VERSIONS: [&str; 4] = ["3.12", "3.13", "3.14", "3.15"];
const CHILD: &str = "SPARK_TEST_LIBPYTHON";

/// One comparison: what the interpreter says, and what the shadow stack says.
struct Check {
    truth: Vec<String>,
    shadow: Result<(Vec<CodeId>, u32), ShadowRead>,
    /// Entries whose anchor is no native frame's.
    unplaced: usize,
    ordered: bool,
}

static PYTHON: OnceLock<Interpreter> = OnceLock::new();
static UNWINDER: OnceLock<Unwinder> = OnceLock::new();
static CHECKS: Mutex<Vec<Check>> = Mutex::new(Vec::new());

unsafe extern "C" fn check(_module: Object, _nothing: Object) -> Object {
    let python = PYTHON.get().unwrap();
    let mut buffer = ReadBuffer::new();
    let read = ShadowTable::global().read(current_tid(), &mut buffer);
    let mut frames = Vec::new();
    UNWINDER
        .get()
        .unwrap()
        .unwind_here(&mut |_, stack_pointer| frames.push(stack_pointer));
    let mut check = Check {
        truth: python.true_stack(),
        shadow: Err(read),
        unplaced: 0,
        ordered: true,
    };
    if let ShadowRead::Frames { count, hidden } = read {
        let entries = buffer.entries(count);
        check.unplaced = entries.iter().filter(|entry| !frames.contains(&entry.anchor)).count();
        check.ordered = entries.is_sorted_by(|outer, inner| outer.anchor >= inner.anchor);
        check.shadow = Ok((entries.iter().map(|entry| entry.code).collect(), hidden));
    }
    CHECKS.lock().unwrap().push(check);
    python.int(0)
}

/// The number of checks, and a text for each that failed.
fn judge(names: &HashMap<CodeId, String>) -> (usize, Vec<String>) {
    let checks = std::mem::take(&mut *CHECKS.lock().unwrap());
    let mut wrong = Vec::new();
    for check in &checks {
        match &check.shadow {
            Err(read) => wrong.push(format!("{read:?} in {:?}", check.truth)),
            Ok((codes, hidden)) => {
                let seen: Vec<&str> = codes
                    .iter()
                    .map(|code| names.get(code).map_or("?", String::as_str))
                    .collect();
                let deep = check.truth.len().saturating_sub(256);
                if seen != check.truth[..check.truth.len() - deep] || *hidden as usize != deep {
                    wrong.push(format!("truth  {:?}\n  shadow {seen:?} and {hidden}", check.truth));
                } else if check.unplaced > 0 || !check.ordered {
                    wrong.push(format!("{} of {seen:?} have no native frame", check.unplaced));
                }
            }
        }
    }
    (checks.len(), wrong)
}

/// The child: runs only when the parent asked for it.
#[test]
fn child() {
    let Some(library) = std::env::var_os(CHILD) else { return };
    let python = Interpreter::start(Path::new(&library));
    PYTHON.set(python).ok().unwrap();
    python.add_function(c"check", check);
    python.run(include_str!("programs/truth.py"));
    // All libraries that the program needs are loaded once it has run.
    let unwinder = UNWINDER.get_or_init(|| {
        python.run("import _asyncio, _json, _heapq, _bisect, _contextvars");
        Unwinder::new()
    });
    let runtime = Runtime::discover().unwrap();
    for round in 1..=3 {
        let attribution = python.unlocked(|| {
            let unwind = |pc, sp, bp, out: &mut Vec<(u64, u64)>| {
                unwinder.unwind(&mut unwinding::Cache::new_in(), pc, sp, bp, &mut |ra, sp| {
                    out.push((ra, sp))
                });
            };
            attach(runtime, ShadowTable::global(), Arc::new(unwind)).unwrap()
        });
        println!(
            "{} round {round}: distances {:?}",
            runtime.version(),
            attribution.anchor_distances()
        );
        python.run("everything()\non_threads()\neverything()");
        let names = attribution
            .freeze()
            .into_iter()
            .map(|(id, info)| (id, info.qualified_name))
            .collect();
        let figures = attribution.diagnostics();
        python.unlocked(|| attribution.detach()).unwrap();
        let (checks, wrong) = judge(&names);
        println!("{checks} checks, {} wrong; {figures:?}", wrong.len());
        for text in wrong.iter().take(10) {
            println!("{text}");
        }
        assert!(checks > 2_000, "the program did not run");
        assert!(wrong.is_empty());
        assert_eq!(figures.state, PythonState::Active);
        python.run("import sys\nassert all(sys.monitoring.get_tool(i) is None for i in range(6))");
    }
    println!("child is done");
}

#[test]
fn shadow_stacks_are_true_on_every_python() {
    let mut ran = 0;
    for minor in VERSIONS {
        let Some(python) = pythons::find(minor) else {
            println!("CPython {minor} with a shared library not found: NOT RUN");
            continue;
        };
        let mut command = python.this_program();
        command
            .args(["child", "--exact", "--nocapture", "--test-threads=1"])
            .env(CHILD, &python.library);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        println!(
            "--- {}\n{text}\n{}",
            python.version,
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(
            output.status.success() && text.contains("child is done"),
            "CPython {minor} failed: {}",
            output.status
        );
        ran += 1;
    }
    assert!(ran > 0, "no CPython from 3.12 on was found");
}
