//! Each thread has its own shadow stack in every session, in whatever order threads come to call Python. Regression: a thread that kept its place from an earlier
//! session wrote into the stack of the thread that had the place now, and had none itself.

#[path = "python/interpreter.rs"]
mod interpreter;
#[path = "python/pythons.rs"]
mod pythons;
#[path = "python/session.rs"]
mod session;

use std::collections::HashSet;
use std::sync::Mutex;

use endstone_spark::model::Tid;
use endstone_spark::shadow::{ReadBuffer, ShadowRead, ShadowTable};
use endstone_spark::sys::thread::current_tid;
use interpreter::Object;
use session::{detach, python, session};

/// Thread and number of Python frames on its shadow stack, as each call of `look` found it; `None` for no stack.
static SEEN: Mutex<Vec<(Tid, Option<usize>)>> = Mutex::new(Vec::new());

/// Called from Python, one function deep.
unsafe extern "C" fn look(_module: Object, _arguments: Object) -> Object {
    let mut buffer = ReadBuffer::new();
    let frames = match ShadowTable::global().read(current_tid(), &mut buffer) {
        ShadowRead::Frames { count, .. } => Some(count),
        ShadowRead::NoStack | ShadowRead::Torn => None,
    };
    SEEN.lock().unwrap().push((current_tid(), frames));
    python().int(0)
}

#[test]
fn child() {
    let Some(library) = pythons::library_of_child() else {
        return;
    };
    let python = session::start(&library);
    python.add_function(c"look", look);
    python.run(include_str!("programs/slots.py"));
    // Each session has another thread call first: the one that had the last place before.
    for order in ["'ABC'", "'CAB'", "'BCA'", "'CBA'"] {
        let attribution = session();
        SEEN.lock().unwrap().clear();
        python.run(&format!("in_order({order})"));
        let seen = std::mem::take(&mut *SEEN.lock().unwrap());
        assert_eq!(seen.len(), 6, "{seen:?}");
        assert_eq!(
            seen.iter().map(|(tid, _)| *tid).collect::<HashSet<_>>().len(),
            3,
            "{seen:?}"
        );
        for (tid, frames) in &seen {
            // A thread's own loop is older than the session and may be there or not; the function that looks is always there.
            assert!(
                frames.is_some_and(|count| count >= 1),
                "order {order}: {tid:?} has {frames:?} in {seen:?}"
            );
        }
        detach(attribution);
    }
    python.run("end()");
    println!("child is done");
}

#[test]
fn every_thread_has_its_own_stack_in_every_session() {
    pythons::in_children();
}
