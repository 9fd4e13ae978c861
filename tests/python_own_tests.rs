//! CPython's own tests of generators, coroutines, tracing and threads give the same results with a session active, samples and all, as without.
//!
//! Each CPython runs its tests in two child processes, which are this test binary again. They are part of its standard library; Debian has them in
//! `libpython3.x-testsuite`.

#[path = "python/interpreter.rs"]
mod interpreter;
#[path = "python/pythons.rs"]
mod pythons;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use endstone_spark::model::PythonState;
use endstone_spark::native::{self, SamplerOptions, ThreadSelection, current_modules_unwinder};
use endstone_spark::python::{Runtime, attach};
use endstone_spark::shadow::ShadowTable;
use interpreter::Interpreter;

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
    let python = Interpreter::start(&library);
    python.run(include_str!("programs/own_tests.py"));
    let modules = MODULES.join(" ");
    if std::env::var_os(SESSION).is_none() {
        python.run(&format!("run('{modules}')"));
    } else {
        with_session(&python, &modules);
    }
    println!("child is done");
}

fn with_session(python: &Interpreter, modules: &str) {
    // All of the tests' libraries are loaded before the unwinder looks at them.
    python.run(&format!("load('{modules}')"));
    let runtime = Runtime::discover().unwrap();
    let attribution = python.unlocked(|| {
        let walk = Arc::new(current_modules_unwinder());
        attach(runtime, ShadowTable::global(), walk).unwrap()
    });
    let options = SamplerOptions {
        interval_nanos: 2_000_000,
        threads: ThreadSelection::Tids(vec![endstone_spark::sys::thread::current_tid()]),
        ignore_sleeping: false,
    };
    let (mut sampler, mut source) = native::start(options, ShadowTable::global()).unwrap();
    let reader = std::thread::spawn(move || while source.drain(Duration::from_millis(100), &mut |_| {}) {});
    python.run(&format!("run('{modules}')"));
    sampler.stop();
    reader.join().unwrap();
    let figures = attribution.diagnostics();
    python.unlocked(|| attribution.detach()).unwrap();
    println!("{figures:?}");
    assert_eq!(figures.state, PythonState::Active);
    assert!(figures.audits.made > 20, "{:?}", figures.audits);
    assert_eq!(figures.audits.disagreed, 0, "{:?}", figures.audits);
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
    let mut ran = 0;
    for minor in pythons::wanted() {
        let Some(python) = pythons::find(minor) else {
            println!("CPython {minor} with a shared library not found: NOT RUN");
            continue;
        };
        let Some(without) = outcomes(&python, false) else {
            println!("CPython {minor} has no tests of its own installed: NOT RUN");
            continue;
        };
        let with = outcomes(&python, true).unwrap();
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
        ran += 1;
    }
    println!("{ran} CPythons ran their own tests");
}
