//! A session and the other tools that look at Python code do not disturb each other: `sys.setprofile`, `sys.settrace`, debuggers, coverage, cProfile.
//! Each CPython runs in a child process, which is this test binary again.

#[path = "python/interpreter.rs"]
mod interpreter;
#[path = "python/pythons.rs"]
mod pythons;
#[path = "python/session.rs"]
mod session;

use endstone_spark::model::PythonState;
use endstone_spark::python::Attribution;
use interpreter::Object;
use session::{detach, python, run, session};

/// Asks for an audit of this thread, as the sampler does after a sample.
unsafe extern "C" fn ask(_module: Object, _nothing: Object) -> Object {
    session::ask_for_audit();
    python().int(0)
}

/// Its callbacks came all, its stacks agree with the interpreter, and they are back at their base.
fn assert_true(attribution: &Attribution) {
    run("ask()\nwork()\nask()\nwork()");
    attribution.freeze();
    let figures = attribution.diagnostics();
    assert_eq!(figures.state, PythonState::Active);
    assert!(figures.audits.made >= 2, "{:?}", figures.audits);
    assert_eq!(
        (
            figures.audits.disagreed,
            figures.audits.missing_frames,
            figures.stale_dropped
        ),
        (0, 0, 0),
        "{figures:?}"
    );
    assert!(figures.events.start >= 22, "{:?}", figures.events);
}

fn each_tool_sees_what_it_sees_without_us() {
    run("all_of_them()");
    let attribution = session();
    run("all_of_them()");
    assert_true(&attribution);
    detach(attribution);
    run("all_of_them()");
}

fn a_session_that_begins_and_ends_under_another_tool_leaves_it_working() {
    run("coverage = Coverage()\ncoverage.__enter__()");
    let attribution = session();
    run("assert work() == EXPECTED");
    assert_true(&attribution);
    detach(attribution);
    run("M.restart_events()\ncoverage.lines.clear()\nwork()\nassert len(coverage.lines) == 5, coverage.lines");
    run("coverage.__exit__()");
}

/// CPython's own limit: cProfile has the id that is meant for profilers or none at all. Whoever is first has it.
fn cprofile_and_a_session_go_together_when_cprofile_is_first() {
    run("assert profile() == [10]");
    run("running_profile.enable()");
    let attribution = session();
    run("assert M.get_tool(M.PROFILER_ID) != 'spark', M.get_tool(M.PROFILER_ID)\nwork()");
    assert_true(&attribution);
    detach(attribution);
    run("running_profile.disable()");
    run("assert [e.callcount for e in running_profile.getstats() if e.code is leaf.__code__][0] >= 10");

    let attribution = session();
    run("assert M.get_tool(M.PROFILER_ID) == 'spark'");
    run(
        "error = profile_beside()\nassert error in ('Another profiling tool is already active', 'tool 2 is already in use'), error",
    );
    assert_true(&attribution);
    detach(attribution);
    run("assert profile() == [10]");
}

#[test]
fn child() {
    let Some(library) = pythons::library_of_child() else {
        return;
    };
    session::start(&library).add_function(c"ask", ask);
    run(include_str!("programs/beside.py"));
    each_tool_sees_what_it_sees_without_us();
    a_session_that_begins_and_ends_under_another_tool_leaves_it_working();
    cprofile_and_a_session_go_together_when_cprofile_is_first();
    println!("child is done");
}

#[test]
fn a_session_and_other_tools_leave_each_other_alone_on_every_python() {
    pythons::in_children();
}
