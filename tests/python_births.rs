//! Sessions that begin and end at awkward moments of other threads: while Python threads are born and die, and while a thread is inside another tool's
//! callback. Each CPython runs in a child process, which is this test binary again.

#[path = "python/interpreter.rs"]
mod interpreter;
#[path = "python/pythons.rs"]
mod pythons;
#[path = "python/session.rs"]
mod session;

use std::sync::{Arc, Mutex};

use endstone_spark::model::{CodeId, PythonState};
use endstone_spark::native::Unwinder;
use endstone_spark::python::{Attribution, Runtime, attach};
use endstone_spark::shadow::ShadowTable;
use interpreter::Object;
use session::{ask_for_audit, detach, python, qualified_names, run, session, shadow_stack};

/// The true names, and the ids on the shadow stack, if there was one.
type Check = (Vec<String>, Option<Vec<CodeId>>);
static CHECKS: Mutex<Vec<Check>> = Mutex::new(Vec::new());

/// The session that a second thread began.
static ELSEWHERE: Mutex<Option<Attribution>> = Mutex::new(None);

/// Compares later, and asks for an audit as the sampler's handler does after a sample.
unsafe extern "C" fn check(_module: Object, _nothing: Object) -> Object {
    CHECKS.lock().unwrap().push((python().true_stack(), shadow_stack()));
    ask_for_audit();
    python().int(0)
}

/// Judges the checks so far, of which the session saw all. To be called with the lock, so that no thread checks meanwhile. How many had a stack, and how
/// many had none yet.
fn judge(attribution: &Attribution) -> (usize, usize) {
    let names = qualified_names(attribution);
    let checks = std::mem::take(&mut *CHECKS.lock().unwrap());
    let (mut stacks, mut none) = (0, 0);
    for (truth, shadow) in checks {
        match shadow {
            Some(shadow) => {
                let seen: Vec<_> = shadow.iter().map(|code| names[code].as_str()).collect();
                assert_eq!(seen, truth);
                stacks += 1;
            }
            None => none += 1,
        }
    }
    let figures = attribution.diagnostics();
    assert_eq!(figures.state, PythonState::Active);
    assert_eq!(
        (
            figures.audits.disagreed,
            figures.audits.missing_frames,
            figures.stale_dropped,
            figures.registration_failures,
            figures.callback_failures
        ),
        (0, 0, 0, 0, 0),
        "{figures:?}"
    );
    (stacks, none)
}

fn no_session() {
    assert!(
        CHECKS.lock().unwrap().drain(..).all(|(_, shadow)| shadow.is_none()),
        "a stack without a session"
    );
}

fn sessions_begin_and_end_while_threads_are_born_and_die() {
    run("begin_births()");
    let (mut stacks, mut audits) = (0, 0);
    for _ in 0..25 {
        // Threads live on between sessions, and the first checks of one may be of threads of which no event has come.
        CHECKS.lock().unwrap().clear();
        let attribution = session();
        run("await_births(20)");
        stacks += judge(&attribution).0;
        let figures = attribution.diagnostics();
        assert!(figures.threads >= 4, "{figures:?}");
        audits += figures.audits.made;
        detach(attribution);
        CHECKS.lock().unwrap().clear();
        assert_eq!(ShadowTable::global().figures().threads, 0);
        run("await_births(3)");
        no_session();
    }
    run("end_births()\nprint(born, 'threads were born')");
    println!("{stacks} stacks were compared, {audits} audits made");
    assert!(stacks > 1_000 && audits > 100, "the threads did nothing");
}

/// Begins a session on a second thread, while the caller is wherever it is.
unsafe extern "C" fn begin_elsewhere(_module: Object, _nothing: Object) -> Object {
    let walk: Arc<Unwinder> = Arc::clone(session::unwinder());
    let begun = python().unlocked(|| {
        let began = std::thread::spawn(|| attach(Runtime::discover().unwrap(), ShadowTable::global(), walk));
        began.join().unwrap().unwrap()
    });
    CHECKS.lock().unwrap().clear();
    *ELSEWHERE.lock().unwrap() = Some(begun);
    python().int(0)
}

/// Judges that session, and ends it on a second thread.
unsafe extern "C" fn end_elsewhere(_module: Object, _nothing: Object) -> Object {
    let attribution = ELSEWHERE.lock().unwrap().take().unwrap();
    let (stacks, none) = judge(&attribution);
    assert!(stacks >= 3, "{stacks} checks with a stack, {none} without");
    python().unlocked(|| {
        std::thread::spawn(move || attribution.detach().unwrap())
            .join()
            .unwrap()
    });
    python().int(0)
}

fn sessions_begin_and_end_while_a_thread_is_inside_another_tools_callback() {
    run("under_monitoring()\nunder_tracing()\nunder_profiling()");
    assert!(ELSEWHERE.lock().unwrap().is_none());
    no_session();
    run("assert all(sys.monitoring.get_tool(i) is None for i in range(6))");
}

#[test]
fn child() {
    let Some(library) = pythons::library_of_child() else {
        return;
    };
    let python = session::start(&library);
    python.add_function(c"check", check);
    python.add_function(c"begin_elsewhere", begin_elsewhere);
    python.add_function(c"end_elsewhere", end_elsewhere);
    run(include_str!("programs/births.py"));
    sessions_begin_and_end_while_a_thread_is_inside_another_tools_callback();
    sessions_begin_and_end_while_threads_are_born_and_die();
    println!("child is done");
}

#[test]
fn sessions_begin_and_end_at_any_moment_of_other_threads_on_every_python() {
    pythons::in_children();
}
