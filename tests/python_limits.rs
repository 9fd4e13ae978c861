//! The limits and rules of following Python: which events are used, how deep and how many threads are followed, what is on while a session runs and
//! nothing after it. Each CPython runs in a child process, which is this test binary again.

#[path = "python/interpreter.rs"]
mod interpreter;
#[path = "python/pythons.rs"]
mod pythons;
#[path = "python/session.rs"]
mod session;

use std::collections::HashMap;
use std::sync::Mutex;

use endstone_spark::limits::{PYTHON_FRAMES, PYTHON_THREADS};
use endstone_spark::model::{CodeId, PythonState, Tid};
use endstone_spark::shadow::{ReadBuffer, ShadowRead, ShadowTable};
use endstone_spark::sys::thread::current_tid;
use interpreter::Object;
use session::{detach, python, run, session};

/// What each call of `look` found: the thread, the innermost code ids that are visible, and how many frames are hidden.
type Seen = (Tid, Option<(Vec<CodeId>, u32)>);
static SEEN: Mutex<Vec<Seen>> = Mutex::new(Vec::new());

unsafe extern "C" fn look(_module: Object, _nothing: Object) -> Object {
    let mut buffer = ReadBuffer::new();
    let found = match ShadowTable::global().read(current_tid(), &mut buffer) {
        ShadowRead::Frames { count, hidden } => {
            Some((buffer.entries(count).iter().map(|entry| entry.code).collect(), hidden))
        }
        ShadowRead::NoStack | ShadowRead::Torn => None,
    };
    SEEN.lock().unwrap().push((current_tid(), found));
    python().int(0)
}

fn seen() -> Vec<Seen> {
    std::mem::take(&mut *SEEN.lock().unwrap())
}

fn only_six_events_are_used_and_only_during_a_session() {
    run("assert_untouched()");
    let attribution = session();
    run("assert_six_events()");
    detach(attribution);
    run("assert_untouched()");
}

fn frames_beyond_the_visible_ones_are_counted() {
    let attribution = session();
    // `look`, called by the innermost of as many frames: those of `down`, and the module's.
    let depth = PYTHON_FRAMES + 150;
    run(&format!("down({depth})\nlook()\ndown(3)"));
    let seen = seen();
    let names: HashMap<CodeId, String> = attribution
        .codes()
        .into_iter()
        .map(|(id, info)| (id, info.qualified_name))
        .collect();
    let (visible, hidden) = seen[0].1.as_ref().unwrap();
    assert_eq!(visible.len(), PYTHON_FRAMES);
    assert!(visible[1..].iter().all(|id| names[id] == "down"), "{names:?}");
    assert_eq!(*hidden as usize, 1 + depth + 1 - PYTHON_FRAMES);
    // Back at its base, and right again.
    assert_eq!(seen[1].1.as_ref().unwrap().0.len(), 1);
    assert_eq!(seen[2].1.as_ref().unwrap().0.len(), 5);
    let figures = attribution.diagnostics();
    assert_eq!(figures.deepest as usize, depth + 2);
    assert_eq!(figures.truncations, 1);
    assert_eq!((figures.stale_dropped, figures.unmatched_leaves), (0, 0), "{figures:?}");
    detach(attribution);
}

fn as_many_threads_as_there_are_slots_are_followed() {
    let attribution = session();
    // One after the other, so that most are dead when the last begins: a slot stays taken. This thread has one too.
    run(&format!("one_after_the_other({})", PYTHON_THREADS + 20));
    let figures = attribution.diagnostics();
    assert_eq!(figures.threads as usize, PYTHON_THREADS);
    let seen = seen();
    assert_eq!(seen.len(), PYTHON_THREADS + 20);
    let followed = seen.iter().filter(|(_, found)| found.is_some()).count();
    assert!(
        followed >= PYTHON_THREADS - 1 && followed < seen.len(),
        "{followed} of {} threads",
        seen.len()
    );
    assert!(seen[0].1.is_some() && seen[seen.len() - 1].1.is_none());
    assert!(figures.threads_refused >= 20, "{figures:?}");
    assert_eq!(figures.state, PythonState::Active);
    detach(attribution);

    let attribution = session();
    run("one_after_the_other(3)");
    assert!(
        self::seen().iter().all(|(_, found)| found.is_some()),
        "all slots are free again"
    );
    let figures = attribution.diagnostics();
    assert!(figures.threads <= 4 && figures.threads_refused == 0, "{figures:?}");
    detach(attribution);
}

fn names_are_frozen_while_monitoring_is_still_on() {
    let attribution = session();
    run("down(1)");
    let frozen = attribution.freeze();
    assert!(frozen.iter().any(|(_, info)| info.qualified_name == "down"));
    run("assert_six_events()");
    let before = attribution.diagnostics().events.start;
    run("down(1)");
    assert!(attribution.diagnostics().events.start > before);
    detach(attribution);
    run("assert_untouched()");
}

/// The events of one of each kind are counted under their own names.
fn events_are_counted_by_kind() {
    let attribution = session();
    run("one_of_each()");
    let before = attribution.diagnostics().events;
    run("one_of_each()");
    let after = attribution.diagnostics().events;
    // `run` adds the module's own start and return.
    assert_eq!(
        [
            after.start - before.start,
            after.resume - before.resume,
            after.throw - before.throw,
            after.ret - before.ret,
            after.yielded - before.yielded,
            after.unwind - before.unwind,
        ],
        [5, 2, 1, 4, 3, 1],
        "{before:?} {after:?}"
    );
    detach(attribution);
}

#[test]
fn child() {
    let Some(library) = pythons::library_of_child() else {
        return;
    };
    session::start(&library).add_function(c"look", look);
    run(include_str!("programs/limits.py"));
    only_six_events_are_used_and_only_during_a_session();
    events_are_counted_by_kind();
    frames_beyond_the_visible_ones_are_counted();
    as_many_threads_as_there_are_slots_are_followed();
    names_are_frozen_while_monitoring_is_still_on();
    println!("child is done");
}

#[test]
fn the_limits_of_following_hold_on_every_python() {
    pythons::in_children();
}
