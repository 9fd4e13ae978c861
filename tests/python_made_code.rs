//! Code that Python makes at run time: the trampolines of its support for `perf`, and what its JIT compiles. No unwind data tells of either, so stacks may end
//! there; but what is shown is true, nothing crashes, and where stacks end is counted.
//!
//! Each CPython runs in a child process, which is this test binary again. `SPARK_TORTURE_SECONDS` makes it longer.

#[path = "python/frames.rs"]
mod frames;
#[path = "python/interpreter.rs"]
mod interpreter;
#[path = "python/judged.rs"]
mod judged;
#[path = "python/pythons.rs"]
mod pythons;
#[path = "python/session.rs"]
mod session;
#[path = "python/truth.rs"]
mod truth;
#[path = "python/verdict.rs"]
mod verdict;

use endstone_spark::model::PythonState;
use judged::{learn, sample, watch_me};
use session::{detach, run, session};

/// Which kind a child has switched on.
const KIND: &str = "SPARK_TEST_MADE_CODE";

/// Seconds that each is sampled.
fn seconds() -> u64 {
    session::torture_seconds(2)
}

#[test]
fn child() {
    let Some(library) = pythons::library_of_child() else {
        return;
    };
    let python = session::start(&library);
    python.add_function_of_one(c"learn", learn);
    python.add_function_of_one(c"watch_me", watch_me);
    let jit = std::env::var(KIND).unwrap() == "jit";
    if jit {
        run(
            "import sys\nif not hasattr(sys, '_jit') or not sys._jit.is_available():\n    print('no JIT in this build: NOT RUN\\nchild is done')\n    import os; sys.stdout.flush(); os._exit(0)",
        );
        run("assert sys._jit.is_enabled()");
    } else {
        run("import sys\nsys.activate_stack_trampoline('perf')\nassert sys.is_stack_trampoline_active()");
    }
    run("def check():\n    pass\ndef through_cpp(function):\n    return max([1], key=lambda _: function() or 0)");
    // With trampolines CPython itself cannot run code whose file has no name in UTF-8: it begins with an error pending.
    run(&include_str!("programs/truth.py").replace("\\ud800", ""));
    run(
        "learning()\nimport _asyncio, _json, _heapq, _bisect, _contextvars, _datetime, _struct, _random, _socket, select, math",
    );
    for round in 1..=2 {
        let attribution = session();
        let source = format!("unchecked({})", seconds());
        let verdicts = sample(&attribution, || run(&source));
        let figures = attribution.diagnostics();
        println!("round {round}: {verdicts:?}\n{figures:?}");
        for text in &verdicts.texts {
            println!("{text}");
        }
        println!(
            "{} of {} stacks are not whole: deeper than what is kept, or without their root",
            verdicts.cut, verdicts.judged
        );
        assert_eq!(figures.state, PythonState::Active);
        assert!(verdicts.judged > 200, "the sampler did not run");
        assert_eq!(verdicts.wrong, 0);
        assert_eq!(figures.audits.disagreed, 0, "{figures:?}");
        let poor = verdicts.torn + verdicts.without + verdicts.missing;
        assert!(poor * 50 <= verdicts.judged, "{poor} samples lack their Python part");
        detach(attribution);
    }
    println!("child is done");
}

#[test]
fn with_perf_trampolines_no_stack_is_wrong_on_any_python() {
    pythons::in_children_with(&|_, command| {
        command.env(KIND, "trampolines").env("PYTHON_JIT", "0");
    });
}

#[test]
fn with_the_jit_no_stack_is_wrong_on_any_python() {
    pythons::in_children_with(&|_, command| {
        command.env(KIND, "jit").env("PYTHON_JIT", "1");
    });
}
