//! Sessions end where and when it is awkward: inside a subinterpreter, and while the interpreter ends.
//!
//! Each CPython runs in a child process for each of these, which is this test binary again.

#[path = "python/interpreter.rs"]
mod interpreter;
#[path = "python/pythons.rs"]
mod pythons;
#[path = "python/session.rs"]
mod session;

use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use endstone_spark::model::PythonState;
use endstone_spark::native::Unwinder;
use endstone_spark::python::{Runtime, attach};
use endstone_spark::shadow::ShadowTable;
use session::{python, run, session as begin, unwinder};

/// In a child: which end is tried.
const END: &str = "SPARK_TEST_END";
/// In a child: the library to load before libpython.
const DOORWAY: &str = "SPARK_TEST_DOORWAY";

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

fn no_session_can_begin() {
    let again = attach(
        Runtime::discover().unwrap(),
        ShadowTable::global(),
        Arc::clone(unwinder()) as Arc<Unwinder>,
    );
    assert!(again.unwrap_err().to_string().contains("not running"));
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
/// gone then, and nothing else. (`sys.setswitchinterval` sees to it that the lock is not given away before, and our function in `atexit`'s list would let that thread come out.)
fn an_interpreter_that_ends_meanwhile_is_not_waited_for() {
    let attribution = begin();
    run("work()\nsys.setswitchinterval(0.5)\nimport atexit\natexit._clear()");
    let tasks = || std::fs::read_dir("/proc/self/task").unwrap().count();
    // The thread that began the session may not be gone yet. This one and the test program's own stay.
    while tasks() > 2 {
        std::thread::yield_now();
    }
    let ending = std::thread::spawn(move || attribution.detach().map_err(|error| error.to_string()));
    // The thread itself, and the one that waits for the lock.
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
    no_session_can_begin();
}

/// What stands before CPython's function that waits for the lock (`tests/programs/doorway.c`).
struct Doorway(*mut libc::c_void);

impl Doorway {
    /// To be loaded before libpython.
    fn load(path: &str) -> Self {
        let path = CString::new(path).unwrap();
        // SAFETY: a string; the library runs no code of its own when it is loaded.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        assert!(!handle.is_null());
        Doorway(handle)
    }

    fn find(&self, name: &CStr) -> *mut libc::c_void {
        // SAFETY: the library stays loaded.
        let found = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        assert!(!found.is_null(), "{name:?}");
        found
    }

    /// Hands on to this libpython, which is loaded.
    fn open(&self, library: &Path) {
        let library = CString::new(library.to_str().unwrap()).unwrap();
        // SAFETY: the function of this name has this type.
        let open = unsafe {
            std::mem::transmute::<*mut libc::c_void, extern "C" fn(*const libc::c_char) -> libc::c_int>(
                self.find(c"doorway_open"),
            )
        };
        assert_eq!(open(library.as_ptr()), 0);
    }

    fn call(&self, name: &CStr) -> libc::c_int {
        // SAFETY: the functions that are called by name have no arguments; of those without a result it is not looked at.
        let function =
            unsafe { std::mem::transmute::<*mut libc::c_void, extern "C" fn() -> libc::c_int>(self.find(name)) };
        function()
    }
}

/// Begins to end a session, whose thread stands before the lock when this returns.
fn end_a_session_at(doorway: &Doorway, hold: &CStr) -> JoinHandle<Result<(), String>> {
    let attribution = begin();
    run("work()");
    doorway.call(hold);
    let ending = std::thread::spawn(move || attribution.detach().map_err(|error| error.to_string()));
    while doorway.call(c"doorway_waiting") == 0 {
        std::thread::yield_now();
    }
    ending
}

/// A thread of ours has seen that Python runs, and is stopped before it asks for the lock, until Python has ended: so it must not end before. (CPython 3.14 ended the process:
/// "gilstate_tss_set: failed to set current tstate".)
fn an_interpreter_that_ends_waits_for_who_is_on_the_way_to_its_lock(doorway: &Doorway) {
    let ending = end_a_session_at(doorway, c"doorway_hold");
    python().finish();
    assert!(
        doorway.call(c"doorway_passed") >= 1,
        "the interpreter has ended without waiting"
    );
    doorway.call(c"doorway_ended");
    assert_eq!(ending.join().unwrap(), Ok(()));
    no_session_can_begin();
}

/// The same, and the thread never goes on.
fn an_interpreter_that_ends_does_not_wait_for_ever(doorway: &Doorway) {
    let ending = end_a_session_at(doorway, c"doorway_hold_for_good");
    python().finish();
    assert_eq!(doorway.call(c"doorway_passed"), 0);
    assert_eq!(ending.join().unwrap(), Ok(()));
    no_session_can_begin();
}

#[test]
fn child() {
    let (Some(library), Ok(end)) = (pythons::library_of_child(), std::env::var(END)) else {
        return;
    };
    let doorway = std::env::var(DOORWAY).ok().map(|path| Doorway::load(&path));
    session::start(&library);
    if let Some(doorway) = &doorway {
        doorway.open(&library);
    }
    run(include_str!("programs/lifecycle.py"));
    match (end.as_str(), doorway) {
        ("subinterpreter", _) => a_session_ends_in_the_main_interpreter_wherever_it_is_ended(),
        ("meanwhile", _) => an_interpreter_that_ends_meanwhile_is_not_waited_for(),
        ("on the way", Some(doorway)) => an_interpreter_that_ends_waits_for_who_is_on_the_way_to_its_lock(&doorway),
        ("stuck on the way", Some(doorway)) => an_interpreter_that_ends_does_not_wait_for_ever(&doorway),
        (other, _) => panic!("{other}"),
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

fn in_children_with_a_doorway(end: &str) {
    let doorway = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("doorway {end}.so"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/doorway.c");
    harness::peers::compile(&source, &doorway).unwrap();
    pythons::in_children_with(&|_, command| {
        command.env(END, end).env(DOORWAY, &doorway);
    });
}

#[test]
fn python_does_not_end_while_a_thread_of_ours_is_on_the_way_to_its_lock() {
    in_children_with_a_doorway("on the way");
}

#[test]
fn python_ends_though_a_thread_of_ours_is_stuck_on_the_way_to_its_lock() {
    in_children_with_a_doorway("stuck on the way");
}
