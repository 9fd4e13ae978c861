//! Sessions end where and when it is awkward: inside a subinterpreter, and while the interpreter ends.
//!
//! Each CPython runs in a child process for each of these, which is this test binary again.

#[path = "python/interpreter.rs"]
mod interpreter;
#[path = "python/pythons.rs"]
mod pythons;
#[path = "python/session.rs"]
mod session;

use std::sync::Arc;

use endstone_spark::model::PythonState;
use endstone_spark::native::Unwinder;
use endstone_spark::python::{Runtime, attach};
use endstone_spark::shadow::ShadowTable;
use session::{python, run, session as begin, unwinder};

/// In a child: which end is tried.
const END: &str = "SPARK_TEST_END";

/// Ends that come from inside a subinterpreter, where monitoring is another's.
fn a_session_ends_in_the_main_interpreter_wherever_it_is_ended() {
    for own_lock in [false, true] {
        let attribution = begin();
        run("work()");
        python().in_a_subinterpreter(own_lock, || {
            run(
                "import sys\nM = sys.monitoring\nM.use_tool_id(2, 'theirs')\nseen = []\n\
                 M.register_callback(2, M.events.PY_START, lambda code, offset: seen.append(code))\n\
                 M.set_events(2, M.events.PY_START)\ndef called():\n    pass\ncalled()\nassert len(seen) == 1, seen",
            );
            attribution.freeze();
            assert_eq!(attribution.diagnostics().state, PythonState::Active);
            attribution.detach().unwrap();
            run("assert M.get_tool(2) == 'theirs', M.get_tool(2)\nassert M.get_events(2) == M.events.PY_START\ncalled()\nassert seen.count(called.__code__) == 2, seen");
        });
        run("assert tools() == [None] * 6, tools()");
        run("assert [M.get_events(i) for i in range(6) if not M.use_tool_id(i, 'look')] == [0] * 6\nfree(*range(6))");
    }
}

/// Threads of this process that wait for something.
fn asleep() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let stats = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok());
    // The state comes after the name, which ends with the last parenthesis.
    stats
        .filter(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S')))
        .count()
}

/// A session is ended by another thread that waits for the interpreter's lock when the interpreter ends: that thread, or the one that waits for it, may be
/// gone then, and nothing else. (`sys.setswitchinterval` sees to it that the lock is not given away before.)
fn an_interpreter_that_ends_meanwhile_is_not_waited_for() {
    let attribution = begin();
    run("work()\nsys.setswitchinterval(0.5)");
    let tasks = || std::fs::read_dir("/proc/self/task").unwrap().count();
    // The thread that began the session may not be gone yet. This one and the test program's own stay.
    while tasks() > 2 {
        std::thread::yield_now();
    }
    let ending = std::thread::spawn(move || attribution.detach().map_err(|error| error.to_string()));
    // The thread itself, and the one that waits for the lock. One that were still on its way there when the interpreter has ended would be CPython 3.14's end of the process (docs/architecture.md,
    // "Known limits").
    while tasks() < 4 {
        std::thread::yield_now();
    }
    let mut looks = 0;
    while looks < 5 {
        std::thread::sleep(std::time::Duration::from_millis(2));
        looks = if asleep() >= 3 { looks + 1 } else { 0 };
    }
    python().finish();
    let ended = ending.join().unwrap();
    println!("a session that was being ended: {ended:?}");
    assert!(!Runtime::discover().unwrap().is_running());
    let again = attach(
        Runtime::discover().unwrap(),
        ShadowTable::global(),
        Arc::clone(unwinder()) as Arc<Unwinder>,
    );
    assert!(again.unwrap_err().to_string().contains("not running"));
}

#[test]
fn child() {
    let (Some(library), Ok(end)) = (pythons::library_of_child(), std::env::var(END)) else {
        return;
    };
    session::start(&library);
    run(include_str!("programs/lifecycle.py"));
    match end.as_str() {
        "subinterpreter" => a_session_ends_in_the_main_interpreter_wherever_it_is_ended(),
        "meanwhile" => an_interpreter_that_ends_meanwhile_is_not_waited_for(),
        other => panic!("{other}"),
    }
    println!("child is done");
}

fn in_children(end: &str) {
    pythons::in_children_with(&|_, command| {
        command.env(END, end);
    });
}

#[test]
fn a_session_that_is_ended_in_a_subinterpreter_ends_in_the_main_one() {
    in_children("subinterpreter");
}

#[test]
fn a_session_that_is_being_ended_when_python_ends_is_not_waited_for() {
    in_children("meanwhile");
}
