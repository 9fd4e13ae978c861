//! Python's memory runs out inside our callbacks, at each place where they ask for some: what runs in the server sees nothing of it, and events go on.
//!
//! The truth is a tool that does nothing: with it, and with a session in its place, the same calls are made, and no more of them fail with a session. Each CPython that has
//! `_testcapi` runs in a child process, which is this test binary again.

#[path = "python/interpreter.rs"]
mod interpreter;
#[path = "python/pythons.rs"]
mod pythons;
#[path = "python/session.rs"]
mod session;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use endstone_spark::model::{CodeId, PythonState};
use endstone_spark::python::{Attribution, Runtime};
use interpreter::Object;
use session::{ask_for_audit, detach, python, qualified_names, run, session, shadow_stack};

/// The true names, and the ids on the shadow stack, if there was one.
type Check = (Vec<String>, Option<Vec<CodeId>>);
static CHECKS: Mutex<Vec<Check>> = Mutex::new(Vec::new());

unsafe extern "C" fn check(_module: Object, _nothing: Object) -> Object {
    CHECKS.lock().unwrap().push((python().true_stack(), shadow_stack()));
    python().int(0)
}

/// Asks for an audit at the thread's next call.
unsafe extern "C" fn ask(_module: Object, _nothing: Object) -> Object {
    ask_for_audit();
    python().int(0)
}

unsafe extern "C" fn nothing(_module: Object, _arguments: Object) -> Object {
    python().int(0)
}

/// Every stack is true but for functions that could not be named.
fn judge(attribution: &Attribution) -> usize {
    let names = qualified_names(attribution);
    let checks = std::mem::take(&mut *CHECKS.lock().unwrap());
    for (truth, shadow) in &checks {
        let shadow = shadow.as_ref().expect("a thread lost its stack");
        assert_eq!(shadow.len(), truth.len(), "{truth:?}");
        for (code, name) in shadow.iter().zip(truth) {
            assert_eq!(names.get(code), Some(name), "{truth:?}");
        }
    }
    checks.len()
}

/// How often each kind of calls fails.
fn failures() -> Vec<u64> {
    CALLS
        .map(|call| {
            run(&format!(
                "failed = {call}\nprint(\"{call}:\", failed, 'of', PLACES)\nassert failed < PLACES\nsay(failed)"
            ));
            SAID.load(Ordering::Relaxed)
        })
        .into()
}

/// With our session's audits in the middle of what fails.
const CALLS: [&str; 4] = [
    "attempts('outer', False)",
    "attempts('outer', True)",
    "attempts('known', False)",
    "attempts('known', True)",
];

static SAID: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" fn say(_module: Object, number: Object) -> Object {
    // SAFETY: the lock is held; the argument is an int.
    let number = unsafe { (python().PyLong_AsLong)(number) };
    SAID.store(number as u64, Ordering::Relaxed);
    python().int(0)
}

#[test]
fn child() {
    let Some(library) = pythons::library_of_child() else {
        return;
    };
    let python = session::start(&library);
    python.add_function(c"check", check);
    python.add_function(c"ask", ask);
    python.add_fast_function(c"nothing", nothing);
    python.add_function_of_one(c"say", say);
    run(include_str!("programs/memory.py"));
    if Runtime::discover().unwrap().version().starts_with("3.15.") {
        // CPython 3.15.0 dies of it with a tool that does nothing too, so there is nothing to compare with.
        println!("CPython 3.15 does not bear it without us either: NOT RUN\nchild is done");
        return;
    }
    run("begin_other()");
    let without_us = failures();
    run("end_other()");
    CHECKS.lock().unwrap().clear();

    let attribution = session();
    run("look()");
    let with_us = failures();
    let figures = attribution.diagnostics();
    println!("without us {without_us:?}, with us {with_us:?}, {figures:?}");
    assert!(judge(&attribution) > 400);
    // Fewer is right: what our callbacks have given back saves the interpreter from asking for memory.
    for (call, (with_us, without_us)) in CALLS.iter().zip(with_us.iter().zip(&without_us)) {
        assert!(
            with_us <= without_us,
            "{call}: what runs out of memory in a callback is nobody else's"
        );
    }
    assert!(without_us.iter().sum::<u64>() > 0, "nothing ran out at all");
    assert_eq!(figures.state, PythonState::Active);
    assert_eq!(figures.audits.disagreed, 0, "{figures:?}");
    assert!(
        figures.registration_failures + figures.callback_failures > 0,
        "nothing ran out inside a callback"
    );
    let before = figures.events.start;
    run("after()");
    judge(&attribution);
    assert!(attribution.diagnostics().events.start >= before + 7, "events go on");
    detach(attribution);
    println!("child is done");
}

#[test]
fn memory_that_runs_out_in_a_callback_is_nobody_elses_on_every_python() {
    pythons::in_children();
}
