//! Python attribution against the truth: a real interpreter runs code of every kind. Wherever the program asks for it the shadow stack
//! is compared with the interpreter's own frames, and every anchor with the native stack. Then the real sampler takes samples at random instants, and each
//! is compared with the frames that the interpreter had at that instant, and with where on the C stack it evaluated them.
//!
//! `SPARK_TORTURE_SECONDS` makes the second part longer, `SPARK_TEST_PYTHON` names one CPython.
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

use std::collections::HashMap;
use std::ffi::c_void;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering};

use endstone_spark::model::{CodeId, PythonState};
use endstone_spark::python::Runtime;
use endstone_spark::shadow::{ReadBuffer, ShadowRead, ShadowTable};
use endstone_spark::sys::thread::current_tid;
use frames::{Frame, identity};
use interpreter::{Interpreter, Object};
use judged::{learn, sample, version, watch_me};
use session::{python, unwind_here};

/// One comparison: what the interpreter says, and what the shadow stack says.
struct Check {
    /// Names, and whether the function has come further than the instruction that it begins with.
    truth: Vec<(String, bool)>,
    shadow: Result<(Vec<CodeId>, u32), ShadowRead>,
    /// Entries whose anchor is no native frame's.
    unplaced: usize,
    ordered: bool,
}

static CHECKS: Mutex<Vec<Check>> = Mutex::new(Vec::new());

/// What the samples' judge reads in memory is what the public API says.
fn check_own_reading(python: &Interpreter, truth: &[(String, u32, u8)]) {
    let Some(layout) = truth::layout() else { return };
    let mut read = vec![Frame::default(); truth::DEPTH];
    // SAFETY: the lock is held by this thread, whose state it is.
    let count = unsafe { frames::walk(layout, (python.PyGILState_GetThisThreadState)() as u64, &mut read) };
    let read: Vec<u64> = read[..count.unwrap_or_else(|| panic!("frames cannot be read: {truth:?}"))]
        .iter()
        .rev()
        .filter(|frame| frame.entry == 0)
        .map(|frame| frame.identity)
        .collect();
    let said: Vec<u64> = truth
        .iter()
        .map(|(name, first, _)| identity(name.as_bytes(), *first))
        .collect();
    assert!(read == said, "frames are not read as they are: {truth:?}");
}

unsafe extern "C" fn check(_module: Object, _nothing: Object) -> Object {
    let python = python();
    let mut buffer = ReadBuffer::new();
    let read = ShadowTable::global().read(current_tid(), &mut buffer);
    let mut frames = Vec::new();
    unwind_here(&mut frames);
    let truth = python.true_frames_and_instructions();
    check_own_reading(python, &truth);
    let mut check = Check {
        truth: truth
            .into_iter()
            .map(|(name, _, at)| (name, i32::from(at) != RESUME.load(Ordering::Relaxed)))
            .collect(),
        shadow: Err(read),
        unplaced: 0,
        ordered: true,
    };
    if let ShadowRead::Frames { count, hidden } = read {
        let entries = buffer.entries(count);
        check.unplaced = entries
            .iter()
            .filter(|entry| !frames.iter().any(|frame| frame.1 == entry.anchor))
            .count();
        check.ordered = entries.is_sorted_by(|outer, inner| outer.anchor >= inner.anchor);
        check.shadow = Ok((entries.iter().map(|entry| entry.code).collect(), hidden));
    }
    CHECKS.lock().unwrap().push(check);
    python.int(0)
}

/// Since this minor version of CPython 3, functions that are being entered may be missing. A garbage collection that is due runs in the instruction
/// `RESUME`, which a function begins and a generator goes on with; there, and before the start event, finalisers and callbacks run whose caller is a frame
/// that no event has told of. 3.12 sends the event first.
const COLLECTS_WHILE_ENTERING: u32 = 13;

/// The number of the instruction `RESUME` in this interpreter.
static RESUME: AtomicI32 = AtomicI32::new(-1);

/// Called with [`RESUME`].
unsafe extern "C" fn resume_is(_module: Object, number: Object) -> Object {
    let python = python();
    // SAFETY: the lock is held; the argument is an int.
    let number = unsafe { (python.PyLong_AsLong)(number) };
    RESUME.store(number as i32, Ordering::Relaxed);
    python.int(0)
}

/// Whether these are the same but for functions that are still at their instruction `RESUME`, see [`COLLECTS_WHILE_ENTERING`].
fn all_but_entering(truth: &[(String, bool)], seen: &[&str]) -> bool {
    let mut seen = seen.iter().peekable();
    let fits = truth.iter().all(|(name, begun)| {
        let is_there = seen.next_if(|seen| **seen == name).is_some();
        is_there || !begun
    });
    fits && seen.next().is_none()
}

/// The number of checks, a text for each that failed, and how many lacked functions that were being entered.
fn judge(names: &HashMap<CodeId, String>) -> (usize, Vec<String>, usize) {
    let checks = std::mem::take(&mut *CHECKS.lock().unwrap());
    let mut wrong = Vec::new();
    let mut entering = 0;
    for check in &checks {
        match &check.shadow {
            Err(read) => wrong.push(format!("{read:?} in {:?}", check.truth)),
            Ok((codes, hidden)) => {
                let seen: Vec<&str> = codes
                    .iter()
                    .map(|code| names.get(code).map_or("?", String::as_str))
                    .collect();
                let deep = check.truth.len().saturating_sub(256);
                let visible = &check.truth[..check.truth.len() - deep];
                let same = visible.iter().map(|(name, _)| name.as_str()).eq(seen.iter().copied());
                entering += usize::from(!same && all_but_entering(visible, &seen));
                if !same && !all_but_entering(visible, &seen) || *hidden as usize != deep {
                    wrong.push(format!("truth  {:?}\n  shadow {seen:?} and {hidden}", check.truth));
                } else if check.unplaced > 0 || !check.ordered {
                    wrong.push(format!("{} of {seen:?} have no native frame", check.unplaced));
                }
            }
        }
    }
    (checks.len(), wrong, entering)
}

/// Seconds that real samples are taken of each CPython.
fn seconds() -> u64 {
    session::torture_seconds(15)
}

/// Python's way through C++.
fn add_through_cpp(python: &Interpreter) {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("through.so");
    let status = Command::new("c++")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/through.cpp"))
        .status();
    if !status.is_ok_and(|status| status.success()) {
        println!("there is no C++ compiler (c++): calls through C++ are NOT RUN");
        python.run("def through_cpp(function):\n    return max([1], key=lambda _: function() or 0)");
        return;
    }
    let library = std::ffi::CString::new(library.to_str().unwrap()).unwrap();
    // SAFETY: the library's only initialisers are the C++ library's own; the function has this signature.
    let through = unsafe {
        let handle = libc::dlopen(library.as_ptr(), libc::RTLD_NOW);
        assert!(!handle.is_null(), "{:?}", std::ffi::CStr::from_ptr(libc::dlerror()));
        let found = libc::dlsym(handle, c"through_cpp".as_ptr());
        assert!(!found.is_null());
        std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Object, Object) -> Object>(found)
    };
    python.add_function_of_one(c"through_cpp", through);
}

/// The child: runs only when the parent asked for it.
#[test]
fn child() {
    let Some(library) = pythons::library_of_child() else {
        return;
    };
    let python = session::start(&library);
    python.add_function(c"check", check);
    python.add_function_of_one(c"learn", learn);
    python.add_function_of_one(c"resume_is", resume_is);
    python.run("import opcode\nresume_is(opcode.opmap['RESUME'])");
    python.add_function_of_one(c"watch_me", watch_me);
    add_through_cpp(python);
    python.run(include_str!("programs/truth.py"));
    python.run("learning()");
    // All libraries that the program needs are loaded before the unwinder looks at them.
    python.run(
        "import _asyncio, _json, _heapq, _bisect, _contextvars, _datetime, _struct, _random, _socket, select, math",
    );
    let runtime = Runtime::discover().unwrap();
    for round in 1..=2 {
        let attribution = session::session();
        println!(
            "{} round {round}: distances {:?}",
            runtime.version(),
            attribution.anchor_distances()
        );
        python.run("everything()\non_threads()\neverything()");
        // The second session shows that the first left nothing behind, and lasts.
        let seconds = if round == 1 { 3 } else { seconds() };
        let verdicts = sample(&attribution, || python.run(&format!("unchecked({seconds})")));
        let names = session::qualified_names(&attribution);
        let figures = attribution.diagnostics();
        session::detach(attribution);
        let (checks, wrong, entering) = judge(&names);
        println!(
            "{checks} checks, {} wrong, {entering} while entering; {figures:?}",
            wrong.len()
        );
        println!("{verdicts:?}");
        for text in wrong.iter().take(10).chain(&verdicts.texts) {
            println!("{text}");
        }
        assert!(checks > 2_000, "the program did not run");
        assert!(wrong.is_empty());
        let may_lack = |lacking: u64, of: u64| {
            if version(&runtime).1 >= COLLECTS_WHILE_ENTERING {
                // One in a hundred, and one more: where there are few, that one may be among them.
                lacking <= of / 100 + 1
            } else {
                lacking == 0
            }
        };
        assert!(may_lack(entering as u64, checks as u64), "{entering}");
        assert!(verdicts.judged > 500, "the sampler did not run");
        assert!(verdicts.untold * 50 < verdicts.judged, "{verdicts:?}");
        assert_eq!(verdicts.wrong, 0);
        assert_eq!(
            verdicts.places.len(),
            1,
            "all frames have the same place in their evaluation"
        );
        let poor = verdicts.torn + verdicts.without + verdicts.missing;
        assert!(poor * 100 <= verdicts.judged, "{poor} samples lack their Python part");
        assert_eq!(figures.state, PythonState::Active);
        let audits = figures.audits;
        assert!(audits.made >= 5, "samples ask for audits: {audits:?}");
        assert_eq!(audits.disagreed, 0, "{audits:?}");
        assert!(may_lack(audits.missing_frames, audits.made), "{audits:?}");
        python.run("import sys\nassert all(sys.monitoring.get_tool(i) is None for i in range(6))");
    }
    println!("child is done");
}

#[test]
fn shadow_stacks_are_true_on_every_python() {
    pythons::in_children();
}
