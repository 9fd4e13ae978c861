//! Threads that swap stacks, with the real greenlet: every sample is judged, and none shows a function that does not run there or not in that greenlet.
//!
//! Each CPython runs in a child process of its own, which is this test binary again.

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

use std::sync::Mutex;

use endstone_spark::model::PythonState;
use endstone_spark::python::Attribution;
use harness::{Lab, PythonVersion};
use interpreter::Object;
use judged::{learn, sample, watch_me};
use session::{detach, python, run, session};
use verdict::Verdicts;

/// The release that has wheels for all versions that are followed.
const GREENLET: &str = "greenlet==3.5.6";

static LATE: Mutex<Option<Attribution>> = Mutex::new(None);

/// Seconds that each part is sampled.
fn seconds() -> u64 {
    session::torture_seconds(4)
}

fn judged(attribution: &Attribution, what: &str, source: &str) -> Verdicts {
    let verdicts = sample(attribution, || run(source));
    let figures = attribution.diagnostics();
    println!("{what}: {verdicts:?}\n{figures:?}");
    for text in &verdicts.texts {
        println!("{text}");
    }
    assert_eq!(figures.state, PythonState::Active);
    assert!(verdicts.judged > 500, "the sampler did not run");
    assert_eq!(verdicts.wrong, 0, "{what}");
    assert_eq!(figures.audits.disagreed, 0, "{what}");
    verdicts
}

/// Only the thread that swaps stacks is shown natively, and the others are followed as ever.
fn assert_one_swaps(attribution: &Attribution, verdicts: &Verdicts) {
    let figures = attribution.diagnostics();
    assert_eq!(figures.swapping_threads, 1, "{figures:?}");
    assert_eq!(figures.swapping.len(), 1, "{figures:?}");
    assert!(verdicts.without > 100, "it is shown natively: {verdicts:?}");
    assert!(verdicts.exact > 100, "others are followed: {verdicts:?}");
}

unsafe extern "C" fn begin(_module: Object, _nothing: Object) -> Object {
    *LATE.lock().unwrap() = Some(session());
    python().int(0)
}

fn greenlets_that_begin_in_a_session_are_shown_natively() {
    run("import sys\nassert 'greenlet' not in sys.modules");
    let attribution = session();
    let source = format!("swapping({})", seconds());
    let verdicts = judged(&attribution, "begun in the session", &source);
    assert_one_swaps(&attribution, &verdicts);
    detach(attribution);
}

fn greenlets_that_began_before_the_session_are_shown_natively() {
    run("two = begun()");
    let attribution = session();
    let source = format!("swapping({}, two)", seconds());
    let verdicts = judged(&attribution, "begun before the session", &source);
    assert_one_swaps(&attribution, &verdicts);
    detach(attribution);
}

fn a_session_that_begins_inside_a_greenlet_shows_it_natively() {
    run(
        "import greenlet\nlate = greenlet.greenlet(lambda: outer_of(3, lambda: (begin(), main_greenlet().switch())))\nlate.switch()",
    );
    let attribution = LATE.lock().unwrap().take().unwrap();
    let source = format!("swapping({}, [*two, late])", seconds());
    let verdicts = judged(&attribution, "from inside a greenlet", &source);
    assert_one_swaps(&attribution, &verdicts);
    detach(attribution);
    run("del two, late\nimport gc\ngc.collect()");
}

fn a_package_that_nobody_uses_costs_no_frame() {
    run("import sys\nassert 'greenlet' in sys.modules");
    let attribution = session();
    let verdicts = judged(
        &attribution,
        "loaded and not used",
        &format!("unchecked({})", seconds()),
    );
    let figures = attribution.diagnostics();
    assert_eq!(figures.swapping_threads, 0, "{figures:?}");
    assert!(figures.audits.made > 5 && figures.stale_dropped == 0, "{figures:?}");
    let poor = verdicts.torn + verdicts.without + verdicts.missing;
    assert!(poor * 100 <= verdicts.judged, "{poor} samples lack their Python part");
    detach(attribution);
}

#[test]
fn child() {
    let Some(library) = pythons::library_of_child() else {
        return;
    };
    let python = session::start(&library);
    python.add_function_of_one(c"learn", learn);
    python.add_function_of_one(c"watch_me", watch_me);
    python.add_function(c"begin", begin);
    run("def check():\n    pass\ndef through_cpp(function):\n    return max([1], key=lambda _: function() or 0)");
    run(include_str!("programs/truth.py"));
    run(include_str!("programs/greenlets.py"));
    run(
        "learning()\nimport _asyncio, _json, _heapq, _bisect, _contextvars, _datetime, _struct, _random, _socket, select, math",
    );
    greenlets_that_begin_in_a_session_are_shown_natively();
    greenlets_that_began_before_the_session_are_shown_natively();
    a_session_that_begins_inside_a_greenlet_shows_it_natively();
    a_package_that_nobody_uses_costs_no_frame();
    println!("child is done");
}

#[test]
fn no_sample_mixes_greenlets_on_any_python() {
    let lab = Lab::open().unwrap();
    pythons::in_children_with(&|minor, command| {
        let version: PythonVersion = minor.parse().unwrap();
        command.env("PYTHONPATH", lab.package(version, GREENLET).unwrap());
    });
}
