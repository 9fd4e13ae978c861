//! Sessions begin and end: beside other tools, with callbacks in others' hands, on busy threads, in the middle of running code, and after the
//! interpreter's end. Each CPython runs in a child process, which is this test binary again.

#[path = "python/interpreter.rs"]
mod interpreter;
#[path = "python/pythons.rs"]
mod pythons;
#[path = "python/session.rs"]
mod session;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use endstone_spark::limits::{CODE_OBJECTS, CODE_TEXT_CHARS};
use endstone_spark::model::{Category, CodeId, CodeInfo, MonotonicNanos, PythonState};
use endstone_spark::native::Unwinder;
use endstone_spark::python::{Attribution, GilPatience, Runtime, StackWalk, attach, attach_within};
use endstone_spark::shadow::{ReadBuffer, ShadowRead, ShadowTable};
use endstone_spark::sys::thread::current_tid;
use interpreter::Object;
use session::{detach, python, run, try_attach};

/// The time that audits are asked for with: far in the future, so that none comes too soon after the last.
static AUDITS: AtomicU64 = AtomicU64::new(1 << 60);
static LATE: Mutex<Option<Attribution>> = Mutex::new(None);

/// The true names, and the ids and anchors of the shadow stack, if there was one.
type Check = (Vec<String>, Option<Vec<(CodeId, u64)>>);
static CHECKS: Mutex<Vec<Check>> = Mutex::new(Vec::new());

fn table(attribution: &Attribution) -> HashMap<CodeId, CodeInfo> {
    attribution.freeze().into_iter().collect()
}

fn degraded(attribution: &Attribution) -> String {
    attribution.freeze();
    match attribution.diagnostics().state {
        PythonState::Degraded(reason) => reason,
        state => panic!("{state:?}"),
    }
}

fn ids_are_taken_in_order_and_given_back() {
    run("occupy_all()");
    let error = try_attach().unwrap_err().to_string();
    assert!(
        error.starts_with("all six tool ids of sys.monitoring are in use by occupant"),
        "{error}"
    );
    run("assert tools() == ['occupant %d' % i for i in range(6)], tools()\nfree(4)");
    let attribution = try_attach().unwrap();
    run("assert M.get_tool(4) == 'spark', tools()");
    assert!(try_attach().unwrap_err().to_string().contains("another session"));
    detach(attribution);
    run("assert M.get_tool(4) is None, tools()\nfree(0, 1, 2, 3, 5)");
    let attribution = try_attach().unwrap();
    run("assert tools() == [None, None, 'spark', None, None, None], tools()");
    detach(attribution);
    run("assert tools() == [None] * 6, tools()");
}

/// Finds its way as the profiler does, once it is let.
struct Held(Mutex<std::sync::mpsc::Receiver<()>>);

impl StackWalk for Held {
    fn callers(&self, pc: u64, sp: u64, bp: u64, callers: &mut Vec<(u64, u64)>) -> bool {
        // Ended by whoever holds it.
        let _ = self.0.lock().unwrap().recv();
        session::unwinder().callers(pc, sp, bp, callers)
    }

    fn function_of(&self, address: u64) -> Option<u64> {
        StackWalk::function_of(&**session::unwinder(), address)
    }
}

/// A machine that had no time for it: the session is told that there is no Python, and what had begun leaves nothing behind when it is done.
fn what_attached_too_late_is_undone() {
    let (release, held) = std::sync::mpsc::channel();
    let walk = Arc::new(Held(Mutex::new(held)));
    let (late, busy) = python().unlocked(|| {
        let patience = GilPatience {
            lock: std::time::Duration::from_secs(600),
            work: std::time::Duration::ZERO,
        };
        let (runtime, table) = (Runtime::discover().unwrap(), ShadowTable::global());
        let late = attach_within(runtime, table, walk, patience).unwrap_err();
        let other: Arc<Unwinder> = Arc::clone(session::unwinder());
        let busy = attach(runtime, table, other).unwrap_err();
        drop(release);
        (late.to_string(), busy.to_string())
    });
    assert!(late.contains("did not finish"), "{late}");
    assert!(busy.contains("another session"), "{busy}");
    let attribution = loop {
        // Waits for the interpreter's lock, which the late one has.
        match try_attach() {
            Ok(attribution) => break attribution,
            Err(error) => assert!(error.to_string().contains("another session"), "{error}"),
        }
    };
    run("assert tools() == [None, None, 'spark', None, None, None], tools()");
    detach(attribution);
    run("assert tools() == [None] * 6, tools()");
}

fn other_tools_keep_working() {
    run("begin_other()");
    let attribution = try_attach().unwrap();
    run("before = other_calls\nwork()\nassert other_calls > before");
    assert_eq!(attribution.diagnostics().state, PythonState::Active);
    assert!(attribution.diagnostics().events.start > 100);
    detach(attribution);
    run("before = other_calls\nwork()\nassert other_calls > before\nend_other()");
}

fn tampering_is_noticed_and_not_answered() {
    let attribution = try_attach().unwrap();
    run("M.register_callback(2, M.events.PY_START, None)");
    assert_eq!(
        degraded(&attribution),
        "our sys.monitoring callbacks were replaced by other code"
    );
    detach(attribution);
    run("assert tools() == [None] * 6");

    // The same while the session runs, which nobody asks for then.
    let attribution = try_attach().unwrap();
    run("work()\nM.register_callback(2, M.events.PY_START, None)");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while attribution.diagnostics().state == PythonState::Active {
        assert!(std::time::Instant::now() < deadline, "nobody noticed");
        python().unlocked(|| {
            attribution.look_after();
            std::thread::sleep(std::time::Duration::from_millis(50));
        });
    }
    assert_eq!(
        attribution.diagnostics().state,
        PythonState::Degraded("our sys.monitoring callbacks were replaced by other code".to_owned())
    );
    assert_eq!(
        ShadowTable::global().read(current_tid(), &mut ReadBuffer::new()),
        ShadowRead::NoStack,
        "what is on the shadow stacks is not trusted any more"
    );
    detach(attribution);

    let attribution = try_attach().unwrap();
    run("M.set_events(2, M.events.PY_START)");
    assert_eq!(
        degraded(&attribution),
        "our sys.monitoring events were switched off by other code"
    );
    detach(attribution);

    let attribution = try_attach().unwrap();
    run("M.free_tool_id(2)");
    assert_eq!(degraded(&attribution), "our sys.monitoring tool id 2 was freed");
    run("M.use_tool_id(2, 'spark')");
    detach(attribution);
    run("assert M.get_tool(2) == 'spark', 'it is not ours to free'\nM.free_tool_id(2)");
}

fn callbacks_in_others_hands_do_no_harm() {
    let attribution = try_attach().unwrap();
    run("steal()\nmisuse()\nwork()\nmisuse()");
    let figures = attribution.diagnostics();
    assert!(
        figures.callback_failures > 0,
        "arguments that are no code objects are counted: {figures:?}"
    );
    detach(attribution);
    run("misuse()");
    let attribution = try_attach().unwrap();
    let before = attribution.diagnostics().events;
    run("import gc\nfor callback in kept: callback(work.__code__, 0)");
    let after = attribution.diagnostics().events;
    assert!(
        after.start - before.start < 100 && after.throw == before.throw,
        "old callbacks reach no new session"
    );
    detach(attribution);
    run("kept.clear()");
}

/// Children are forked while another thread holds the lock on the functions' names nearly always.
fn forked_children_wait_for_no_lock() {
    let attribution = try_attach().unwrap();
    run("many_functions(2_000)");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // The limit: `run` may panic, and the scope waits for this thread.
            let began = std::time::Instant::now();
            while !over.load(Ordering::Relaxed) && began.elapsed() < std::time::Duration::from_secs(300) {
                attribution.codes();
            }
        });
        run("children = forked(200)");
        over.store(true, Ordering::Relaxed);
    });
    run("assert children == [0] * 200, children");
    let figures = attribution.diagnostics();
    assert_eq!((figures.state, figures.registration_failures), (PythonState::Active, 0));
    detach(attribution);
}

/// New threads with the default stack, such as ours that take the interpreter's lock, cannot be made while `act` runs.
fn without_new_threads(act: impl FnOnce()) {
    unsafe extern "C" {
        fn pthread_getattr_default_np(attributes: *mut libc::pthread_attr_t) -> libc::c_int;
        fn pthread_setattr_default_np(attributes: *const libc::pthread_attr_t) -> libc::c_int;
    }
    let mut size = 0;
    // SAFETY: attributes are made before they are used; a stack larger than the address space is refused with EAGAIN when a thread is made.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        assert_eq!(pthread_getattr_default_np(&mut attributes), 0);
        assert_eq!(libc::pthread_attr_getstacksize(&attributes, &mut size), 0);
        assert_eq!(libc::pthread_attr_setstacksize(&mut attributes, 1 << 48), 0);
        assert_eq!(pthread_setattr_default_np(&attributes), 0);
        act();
        assert_eq!(libc::pthread_attr_setstacksize(&mut attributes, size), 0);
        assert_eq!(pthread_setattr_default_np(&attributes), 0);
        libc::pthread_attr_destroy(&mut attributes);
    }
}

fn what_could_not_be_given_back_is_given_back_by_the_next() {
    let attribution = try_attach().unwrap();
    run("work()");
    without_new_threads(|| {
        let refused = "no thread could be started";
        let error = python().unlocked(|| attribution.detach()).unwrap_err();
        assert!(error.to_string().contains(refused), "{error}");
        assert_eq!(
            ShadowTable::global().read(current_tid(), &mut ReadBuffer::new()),
            ShadowRead::NoStack,
            "what is on the shadow stacks is not trusted any more"
        );
        run("assert M.get_tool(2) == 'spark'\nwork()\nmade_anew(10, int)");
        let error = try_attach().unwrap_err();
        assert!(error.to_string().contains(refused), "{error}");
    });
    let attribution = try_attach().unwrap();
    run("assert tools() == [None, None, 'spark', None, None, None], tools()\nwork()");
    assert_eq!(attribution.diagnostics().state, PythonState::Active);
    detach(attribution);
    run("assert tools() == [None] * 6, tools()");
}

fn odd_names_become_presentable() {
    let attribution = try_attach().unwrap();
    run("odd()");
    let all = table(&attribution);
    for info in all.values() {
        for text in [&info.module, &info.qualified_name, &info.file] {
            assert!(text.chars().count() <= CODE_TEXT_CHARS);
            assert!(!text.chars().any(char::is_control), "{text:?}");
        }
        assert!(!info.module.is_empty() && !info.qualified_name.is_empty());
        assert!(!info.file.starts_with('/'), "{}", info.file);
    }
    let named = |start: &str| {
        all.values()
            .any(|info| info.qualified_name.starts_with(start) && info.first_line == 7)
    };
    assert!(named("lone \\ud800 surrogate"), "{all:?}");
    assert!(named("xxxx") && named("line\u{fffd}break") && named("<unknown>"));
    detach(attribution);
}

fn code_belongs_to_whom_it_belongs() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().display();
    run(&format!(
        "install('{root}', 'endstone-shop-keeper', 'shopkeeping', 'shop-keeper')\ninstall('{root}', 'helper', 'helper')"
    ));
    let attribution = try_attach().unwrap();
    run(&format!(
        "work_in('shopkeeping')\nwork_in('helper')\ninstall('{root}', 'endstone-late', 'endstone_late', 'late')\nwork_in('endstone_late')"
    ));
    let all = table(&attribution);
    let placed = |module: &str, name: &str| {
        let info = all
            .values()
            .find(|info| info.module == module && info.qualified_name.ends_with(name))
            .unwrap();
        (info.category, info.plugin.as_deref(), info.file.as_str())
    };
    let keeper = Some("shop_keeper");
    assert_eq!(
        placed("shopkeeping", "work"),
        (Category::Plugin, keeper, "site-packages/shopkeeping/__init__.py")
    );
    assert_eq!(
        placed("shopkeeping", "__init__"),
        (Category::Plugin, keeper, "<string>")
    );
    assert_eq!(
        placed("helper", "work"),
        (Category::Dependency, None, "site-packages/helper/__init__.py")
    );
    assert_eq!(
        placed("endstone_late", "work"),
        (
            Category::Plugin,
            Some("late"),
            "site-packages/endstone_late/__init__.py"
        )
    );
    assert_eq!(
        placed("importlib._bootstrap", "_find_and_load").0,
        Category::StandardLibrary
    );
    assert_eq!(placed("importlib", "import_module").0, Category::StandardLibrary);
    assert_eq!(placed("__main__", "work_in"), (Category::Unknown, None, "<string>"));
    let counted = attribution.diagnostics().codes;
    assert_eq!(counted.iter().sum::<u32>() as usize, all.len());
    assert!(counted[0] >= 5, "{counted:?}");
    detach(attribution);
}

fn code_objects_are_let_go() {
    run("counted(); before = references()");
    for _ in 0..3 {
        let attribution = try_attach().unwrap();
        run("counted(); assert references() == before, 'a session keeps no code object'");
        assert!(
            table(&attribution)
                .values()
                .any(|info| info.qualified_name == "counted")
        );
        detach(attribution);
        run("assert references() == before, references()");
    }
}

fn addresses_that_are_used_again_inherit_no_name() {
    let attribution = try_attach().unwrap();
    run("made_anew(3_000, check)");
    for (truth, shadow) in seen_by_checks(&attribution) {
        assert_eq!(truth, shadow);
    }
    let figures = attribution.diagnostics();
    assert_eq!((figures.audits.disagreed, figures.registration_failures), (0, 0));
    assert!(figures.living_codes < 500, "{}", figures.living_codes);
    detach(attribution);
}

/// More code objects than a session can name (each round makes two), without an end to the names or to the memory.
fn an_endless_session_grows_with_nothing() {
    let attribution = try_attach().unwrap();
    run("made_anew(5_000, int)\nbefore = resident()");
    let before = attribution.diagnostics();
    run(&format!(
        "made_anew({}, int)\ngrown = resident() - before",
        CODE_OBJECTS * 5 / 8
    ));
    let after = attribution.diagnostics();
    assert_eq!(after.state, PythonState::Active);
    assert_eq!(after.codes, before.codes, "what shows the same has one id");
    assert!(after.living_codes <= before.living_codes + 10, "{before:?} {after:?}");
    run("print('grown by', grown, 'bytes')\nassert grown < 4 << 20, grown");
    detach(attribution);
}

/// Checks of this session so far, each with what the shadow stack showed.
fn seen_by_checks(attribution: &Attribution) -> Vec<(Vec<String>, Vec<String>)> {
    let names = table(attribution);
    let name = |(code, _): &(CodeId, u64)| names[code].qualified_name.clone();
    let checks = std::mem::take(&mut *CHECKS.lock().unwrap());
    let seen = checks
        .into_iter()
        .map(|(truth, shadow)| (truth, shadow.unwrap_or_default().iter().map(name).collect()));
    seen.collect()
}

fn audits_find_and_repair_what_lost_events_left() {
    let attribution = try_attach().unwrap();
    run("lose_leaves()");
    let seen = seen_by_checks(&attribution);
    assert_eq!(seen[0].1.iter().filter(|name| *name == "lost").count(), 3, "{seen:?}");
    for (truth, shadow) in &seen[1..] {
        assert_eq!(truth, shadow);
    }
    let audits = attribution.diagnostics().audits;
    assert_eq!(
        (audits.disagreed, audits.wrong_frames, audits.missing_frames),
        (1, 3, 0),
        "{audits:?}"
    );

    run("lose_enters()");
    let seen = seen_by_checks(&attribution);
    assert_eq!(seen[0].0.last().unwrap(), "lose_enters.<locals>.inner");
    assert_eq!(seen[0].0[..seen[0].0.len() - 1], seen[0].1);
    assert!(!seen[1].1.contains(&"lose_enters.<locals>.inner".to_owned()));
    assert_eq!(seen[2].0, seen[2].1);
    let audits = attribution.diagnostics().audits;
    assert_eq!((audits.disagreed, audits.missing_frames), (1, 1), "{audits:?}");

    run("delegate()");
    let seen = seen_by_checks(&attribution);
    let outer = "delegate.<locals>.outer".to_owned();
    assert!(seen[0].0.contains(&outer) && !seen[0].1.contains(&outer), "{seen:?}");
    assert_eq!(seen[1].0, seen[1].1);
    let audits = attribution.diagnostics().audits;
    assert_eq!(
        (audits.disagreed, audits.missing_frames, audits.delegating_frames),
        (1, 1, 1),
        "{audits:?}"
    );
    detach(attribution);
}

fn a_tracing_function_that_raises_costs_no_frame() {
    let attribution = try_attach().unwrap();
    run("raising_trace()");
    let seen = seen_by_checks(&attribution);
    assert_eq!(seen.len(), 101);
    for (truth, shadow) in &seen {
        assert_eq!(truth, shadow);
    }
    let figures = attribution.diagnostics();
    assert_eq!(
        (figures.unmatched_leaves, figures.audits.disagreed),
        (100, 0),
        "the leaves come all the same: {figures:?}"
    );
    detach(attribution);
}

fn subinterpreters_are_left_alone_and_reported() {
    let attribution = try_attach().unwrap();
    let before = attribution.diagnostics().events.start;
    run("made = in_a_subinterpreter()");
    for (truth, shadow) in seen_by_checks(&attribution) {
        assert_eq!(truth, shadow);
    }
    let figures = attribution.diagnostics();
    assert!(
        figures.events.start - before < 3_000,
        "their calls are not ours: {figures:?}"
    );
    assert_eq!((figures.state, figures.subinterpreters), (PythonState::Active, 1));
    detach(attribution);
    run("leave_the_subinterpreter(*made)");
}

/// Asks for an audit of the calling thread at its next call, however short ago the last was.
unsafe extern "C" fn ask(_module: Object, _nothing: Object) -> Object {
    AUDITS.fetch_add(1_000_000_000, Ordering::Relaxed);
    ShadowTable::global().ask_for_audit(current_tid(), MonotonicNanos(AUDITS.load(Ordering::Relaxed)));
    python().int(0)
}

unsafe extern "C" fn ask_not(_module: Object, _nothing: Object) -> Object {
    python().int(0)
}

fn what_an_audit_costs() {
    let attribution = try_attach().unwrap();
    for depth in [5, 50] {
        run(&format!(
            "print('an audit of {depth} frames:', round(nanoseconds_of_an_audit({depth})), 'ns')"
        ));
    }
    let audits = attribution.diagnostics().audits;
    assert!(audits.made >= 8_000 && audits.disagreed == 0, "{audits:?}");
    detach(attribution);
}

/// Sessions that follow each other in the test of code objects that must not leak.
fn cycles() -> usize {
    let wanted = std::env::var("SPARK_TEST_CYCLES");
    wanted.ok().and_then(|wanted| wanted.parse().ok()).unwrap_or(60)
}

fn many_sessions_leak_no_code_object_and_no_memory() {
    run(
        "before = references_of_busy()\nswitch = sys.getswitchinterval()\nsys.setswitchinterval(0.0002)\nbegin_threads()",
    );
    for cycle in 0..cycles() {
        if cycle == cycles() / 3 {
            run("warm = resident()");
        }
        let attribution = try_attach().unwrap();
        run("work()\nmade_anew(5, int)");
        detach(attribution);
    }
    run("grown = resident() - warm\nprint('grown by', grown, 'bytes once warm')\nassert grown < 2 << 20, grown");
    run(
        "end_threads()\nsys.setswitchinterval(switch)\nassert references_of_busy() == before, (before, references_of_busy())",
    );
    run("assert tools() == [None] * 6");
}

fn sessions_follow_each_other_on_busy_threads() {
    run("begin_threads()");
    for _ in 0..12 {
        let attribution = try_attach().unwrap();
        run("work()");
        let figures = attribution.diagnostics();
        assert_eq!(figures.state, PythonState::Active);
        assert!(figures.threads <= 10, "slots of earlier sessions are free: {figures:?}");
        let codes = figures.codes.iter().sum::<u32>();
        assert!(codes < 60, "nothing of earlier sessions is here: {codes}");
        detach(attribution);
        assert_eq!(ShadowTable::global().figures().threads, 0);
    }
    run("end_threads()");
}

unsafe extern "C" fn begin(_module: Object, _nothing: Object) -> Object {
    *LATE.lock().unwrap() = Some(try_attach().unwrap());
    python().int(0)
}

unsafe extern "C" fn check(_module: Object, _nothing: Object) -> Object {
    let python = python();
    let mut buffer = ReadBuffer::new();
    let shadow = match ShadowTable::global().read(current_tid(), &mut buffer) {
        ShadowRead::Frames { count, .. } => Some(
            buffer
                .entries(count)
                .iter()
                .map(|entry| (entry.code, entry.anchor))
                .collect(),
        ),
        _ => None,
    };
    CHECKS.lock().unwrap().push((python.true_stack(), shadow));
    // As the sampler's handler does, but after each sample.
    AUDITS.fetch_add(1_000_000_000, Ordering::Relaxed);
    ShadowTable::global().ask_for_audit(current_tid(), MonotonicNanos(AUDITS.load(Ordering::Relaxed)));
    python.int(0)
}

/// A thread's first functions and its `run`: in one eval frame, or from 3.14 on in two.
fn assert_thread_is_placed(names: &[&str], shadow: &[(CodeId, u64)], version: &str) {
    let place = |name: &str| {
        let index = names.iter().position(|seen| *seen == name)?;
        Some(shadow[index].1)
    };
    let Some(inner) = place("Thread._bootstrap_inner") else {
        return;
    };
    let run = place("Thread.run").unwrap();
    assert_eq!(place("Thread._bootstrap"), Some(inner));
    assert_eq!(place("late_plain"), Some(run));
    let minor: u32 = version.split('.').nth(1).unwrap().parse().unwrap();
    assert_eq!(
        (minor >= 14, minor < 14),
        (inner > run, inner == run),
        "{names:?} {shadow:x?}"
    );
}

unsafe extern "C" fn end(_module: Object, _nothing: Object) -> Object {
    let attribution = LATE.lock().unwrap().take().unwrap();
    let names = table(&attribution);
    let figures = attribution.diagnostics();
    let checks = std::mem::take(&mut *CHECKS.lock().unwrap());
    let (mut anchored, mut unanchored, mut none) = (0, 0, 0);
    for (truth, shadow) in &checks {
        let Some(shadow) = shadow else {
            none += 1;
            continue;
        };
        let seen: Vec<_> = shadow
            .iter()
            .map(|(code, _)| names[code].qualified_name.as_str())
            .collect();
        assert_eq!(seen, *truth);
        assert_thread_is_placed(&seen, shadow, &figures.version);
        unanchored += shadow.iter().filter(|(_, anchor)| *anchor == 0).count();
        anchored += shadow.iter().filter(|(_, anchor)| *anchor != 0).count();
    }
    println!(
        "late: {} checks, {none} before the first event, {anchored} entries anchored, {unanchored} not, {:?}",
        checks.len(),
        figures.audits
    );
    // A frame at a wrong place is dropped as stale when its true eval frame is heard of.
    assert_eq!((figures.stale_dropped, figures.unmatched_leaves), (0, 0));
    assert_eq!((figures.audits.disagreed, figures.audits.missing_frames), (0, 0));
    assert!(figures.audits.found_running_placed > 0, "{:?}", figures.audits);
    if checks[0].0.iter().any(|name| name == "late_plain") {
        assert_eq!(figures.audits.found_running_placed, figures.audits.found_running);
        assert_eq!(unanchored, 0, "all run in one eval frame");
    }
    assert!(checks.len() - none >= 3 && anchored + unanchored > 10);
    // This thread holds the lock: the end runs right here.
    attribution.detach().unwrap();
    python().int(0)
}

fn an_id_that_others_freed_or_took_is_left_clean() {
    let attribution = try_attach().unwrap();
    run("M.free_tool_id(2)");
    detach(attribution);
    run("assert M.get_tool(2) is None\nM.use_tool_id(2, 'look')\nassert M.get_events(2) == 0, M.get_events(2)");
    run("assert M.register_callback(2, M.events.PY_START, None) is None\nM.free_tool_id(2)");

    let attribution = try_attach().unwrap();
    run("M.free_tool_id(2)\nM.use_tool_id(2, 'other')\nM.register_callback(2, M.events.PY_START, other_callback)");
    detach(attribution);
    run("assert M.get_tool(2) == 'other'");
    run("assert M.register_callback(2, M.events.PY_START, None) is other_callback, 'theirs is left'");
    run("assert M.register_callback(2, M.events.PY_RETURN, None) is None, 'ours is gone'");
    run("M.set_events(2, 0)\nM.free_tool_id(2)");
}

/// The child: runs only when the parent asked for it.
#[test]
fn child() {
    let Some(library) = pythons::library_of_child() else {
        return;
    };
    let python = session::start(&library);
    python.add_function(c"begin", begin);
    python.add_function(c"check", check);
    python.add_function(c"check_lost", check);
    python.add_function(c"end", end);
    python.add_function(c"ask", ask);
    python.add_function(c"ask_not", ask_not);
    python.run(include_str!("programs/lifecycle.py"));
    ids_are_taken_in_order_and_given_back();
    what_attached_too_late_is_undone();
    other_tools_keep_working();
    tampering_is_noticed_and_not_answered();
    an_id_that_others_freed_or_took_is_left_clean();
    callbacks_in_others_hands_do_no_harm();
    forked_children_wait_for_no_lock();
    what_could_not_be_given_back_is_given_back_by_the_next();
    odd_names_become_presentable();
    code_belongs_to_whom_it_belongs();
    code_objects_are_let_go();
    addresses_that_are_used_again_inherit_no_name();
    an_endless_session_grows_with_nothing();
    audits_find_and_repair_what_lost_events_left();
    a_tracing_function_that_raises_costs_no_frame();
    subinterpreters_are_left_alone_and_reported();
    what_an_audit_costs();
    run(
        "late_plain()\nlate_in_a_thread()\nlate_nested()\nlate_generator()\nlate_delegating()\nlate_exception()\nlate_loop()",
    );
    sessions_follow_each_other_on_busy_threads();
    many_sessions_leak_no_code_object_and_no_memory();

    // An interpreter that ends under a session takes nothing with it, and is not waited for.
    let attribution = try_attach().unwrap();
    run("work()");
    python.finish();
    assert!(!Runtime::discover().unwrap().is_running());
    assert!(!attribution.freeze().is_empty());
    attribution.detach().unwrap();
    assert!(
        attach(
            Runtime::discover().unwrap(),
            ShadowTable::global(),
            Arc::clone(session::unwinder()) as Arc<Unwinder>
        )
        .unwrap_err()
        .to_string()
        .contains("not running")
    );
    println!("child is done");
}

#[test]
fn sessions_leave_nothing_behind_on_every_python() {
    pythons::in_children();
}
