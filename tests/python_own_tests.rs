//! CPython's own tests of generators, coroutines, tracing and threads give the same results with a session active, samples and all, as without.
//!
//! Each CPython runs its tests in two child processes, which are this test binary again. They are part of its standard library; Debian has them in
//! `libpython3.x-testsuite`.

#[path = "python/interpreter.rs"]
mod interpreter;
#[path = "python/pythons.rs"]
mod pythons;
#[path = "python/session.rs"]
mod session;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use endstone_spark::model::PythonState;
use endstone_spark::native::{self, SamplerOptions, ThreadSelection};
use endstone_spark::shadow::{ReadBuffer, ShadowRead, ShadowTable};
use endstone_spark::sys::thread::current_tid;
use interpreter::{Interpreter, Object};

const MODULES: [&str; 6] = [
    "test_generators",
    "test_coroutines",
    "test_asyncgen",
    "test_contextlib",
    "test_sys_settrace",
    "test_threading",
];

/// In a child: whether it runs with a session, or without.
const SESSION: &str = "SPARK_TEST_SESSION";

/// The child: runs only when the parent asked for it.
#[test]
fn child() {
    let Some(library) = pythons::library_of_child() else {
        return;
    };
    let python = session::start(&library);
    python.run(include_str!("programs/own_tests.py"));
    let modules = MODULES.join(" ");
    if std::env::var_os(SESSION).is_none() {
        python.run(&format!("run('{modules}')"));
    } else {
        with_session(python, &modules);
    }
    println!("child is done");
}

fn with_session(python: &Interpreter, modules: &str) {
    // All of the tests' libraries are loaded before the unwinder looks at them.
    python.run(&format!("load('{modules}')"));
    python.add_function(c"depth", depth);
    assert_eq!(followed(), None, "no session, no stack");
    let attribution = session::session();
    let options = SamplerOptions {
        interval_nanos: 2_000_000,
        threads: ThreadSelection::Tids(vec![current_tid()]),
        ignore_sleeping: false,
    };
    let (mut sampler, mut source) = native::start(options, ShadowTable::global()).unwrap();
    let reader = std::thread::spawn(move || while source.drain(Duration::from_millis(100), &mut |_| {}) {});
    python.run(&format!("run('{modules}')"));
    sampler.stop();
    reader.join().unwrap();
    python.run("assert compared > 600 and not astray, (compared, astray)");
    assert_eq!(followed(), Some(0), "all that was entered was left");
    let figures = attribution.diagnostics();
    session::detach(attribution);
    println!("{figures:?}");
    assert_eq!(figures.state, PythonState::Active);
    assert!(figures.audits.made > 20, "{:?}", figures.audits);
    assert_eq!(figures.audits.disagreed, 0, "{:?}", figures.audits);
}

/// Frames on this thread's shadow stack, if it has one.
fn followed() -> Option<i64> {
    match ShadowTable::global().read(current_tid(), &mut ReadBuffer::new()) {
        ShadowRead::Frames { count, hidden } => Some(count as i64 + i64::from(hidden)),
        ShadowRead::NoStack | ShadowRead::Torn => None,
    }
}

/// The same for the program, -1 for none.
unsafe extern "C" fn depth(_module: Object, _nothing: Object) -> Object {
    session::python().int(followed().unwrap_or(-1))
}

/// Outcome by test. `None` when this CPython has no tests.
fn outcomes(python: &pythons::Python, session: bool) -> Option<BTreeMap<String, String>> {
    let mut command = pythons::child_of(python);
    if session {
        command.env(SESSION, "1");
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    if text.contains("the tests are not installed") {
        return None;
    }
    assert!(
        output.status.success() && text.contains("child is done"),
        "CPython {}: {}\n{text}\n{}",
        python.version,
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    if let Some(figures) = text.lines().find(|line| line.starts_with("PythonDiagnostics")) {
        println!("{figures}");
    }
    let lines = text.lines().filter_map(|line| line.strip_prefix("outcome "));
    Some(
        lines
            .filter_map(|line| line.rsplit_once(' '))
            .map(|(test, outcome)| (test.to_owned(), outcome.to_owned()))
            .collect(),
    )
}

#[test]
fn an_interpreters_own_tests_do_not_notice_a_session() {
    if pythons::library_of_child().is_some() {
        return;
    }
    let mut there = Vec::new();
    for minor in pythons::wanted() {
        match pythons::find(minor) {
            Some(python) => there.push((minor, python)),
            None => println!("CPython {minor} with a shared library not found: NOT RUN"),
        }
    }
    let ran = AtomicUsize::new(0);
    harness::at_once(there, |(minor, python)| {
        if compare(minor, &python) {
            ran.fetch_add(1, Ordering::Relaxed);
        }
    });
    println!("{} CPythons ran their own tests", ran.into_inner());
}

/// Runs one CPython's own tests without a session and with one, and compares. `false` when it has none.
fn compare(minor: &str, python: &pythons::Python) -> bool {
    let Some(without) = outcomes(python, false) else {
        println!("CPython {minor} has no tests of its own installed: NOT RUN");
        return false;
    };
    let with = outcomes(python, true).unwrap();
    let passed = without.values().filter(|outcome| *outcome == "passed").count();
    println!("CPython {minor}: {} tests, {passed} passed", without.len());
    assert!(passed > 300, "CPython {minor}: the tests did not run: {without:?}");
    let different: Vec<_> = without
        .keys()
        .chain(with.keys())
        .filter(|test| without.get(*test) != with.get(*test))
        .map(|test| (test, without.get(test), with.get(test)))
        .collect();
    assert!(different.is_empty(), "CPython {minor}: {different:#?}");
    true
}
