//! What callbacks do on the first sight of a thread or of a code object. Runs with the interpreter's lock held, on the thread that the
//! event came from.
//!
//! Looking a code object up calls Python, which may run Python code of others (a finaliser), which causes callbacks of ours inside. So no lock
//! of ours is held over a Python call, a pending Python error is put aside and back, and registrations inside each other are bounded.
//! A thread's first event finds the functions that already ran on it, see [`super::audit`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3_ffi::{PyFrameObject, PyObject};

use super::audit::{Running, audit, each_frame, is_generator, place};
use super::context::{Context, tag};
use super::greenlets;
use super::live::{Live, enter_cold_path, leave_cold_path};
use super::objects::{Keep, read_name};
use super::paths::without_paths;
use crate::limits::{CODE_OBJECTS, CODE_TEXT_CHARS};
use crate::model::{CodeId, CodeInfo};
use crate::shadow::EntryCode;
use crate::sys::clock::monotonic;
use crate::sys::fault;
use crate::sys::thread::current_tid;

/// An enter event that is not ordinary: a new thread or code object, or a stack that heals or grows. See [`on_cold_path`] for what it returns.
#[must_use]
pub(super) fn enter<const EVENT: usize>(mark: *mut PyObject, code: *mut PyObject, anchor: u64) -> bool {
    let (address, context) = (code.addr() as u64, Context::current());
    if context.is_of(mark.addr())
        && let Some(running) = context.cached(address)
    {
        context.count::<EVENT>();
        let shadow = context.shadow();
        if shadow.is_watched() && shadow.innermost_anchor() != Some(anchor) {
            on_cold_path(mark, |live| greenlets::look(live, shadow, anchor));
        }
        if shadow.take_audit_request(anchor, monotonic) {
            on_cold_path(mark, |live| audit(live, context.shadow(), code.addr(), anchor));
        }
        // A session that ended meanwhile is not written to any more.
        if context.is_of(mark.addr()) {
            context.shadow().enter(anchor, running.code(), tag(address));
        }
        return false;
    }
    on_cold_path(mark, |live| {
        if is_foreign(live, code) {
            return;
        }
        let context = context_of(live, code, anchor, true);
        context.count::<EVENT>();
        let id = look_up(live, context, code, None);
        // A session that ended inside the look-up is not written to any more.
        if context.is_of(live.mark) {
            greenlets::look(live, context.shadow(), anchor);
            if context.shadow().take_audit_request(anchor, monotonic) {
                audit(live, context.shadow(), code.addr(), anchor);
            }
            context.shadow().enter(anchor, id, tag(address));
        }
    })
}

/// A leave event that is not ordinary: of a new thread, or of a frame that is not on top. See [`on_cold_path`] for what it returns.
#[must_use]
pub(super) fn leave<const EVENT: usize>(mark: *mut PyObject, code: *mut PyObject, anchor: u64) -> bool {
    let (address, context) = (code.addr() as u64, Context::current());
    if context.is_of(mark.addr()) && context.cached(address).is_some() {
        context.count::<EVENT>();
        context.shadow().leave(anchor, tag(address));
        return false;
    }
    on_cold_path(mark, |live| {
        if is_foreign(live, code) {
            return;
        }
        let context = context_of(live, code, anchor, false);
        context.count::<EVENT>();
        if context.is_of(live.mark) {
            context.shadow().leave(anchor, tag(address));
        }
    })
}

/// Runs `act` with the session with this mark, if it still goes on. Whether a Python error was pending before and is again: the interpreter has none pending when
/// it sends events, but Cython has while it closes a generator. To return an object then would be an error of its own; to fail with what is pending anyway
/// is what the generator waits for.
fn on_cold_path(mark: *mut PyObject, act: impl FnOnce(&Live)) -> bool {
    let mut is_pending = false;
    enter_cold_path();
    if let Some(live) = Live::of(mark.addr()) {
        // SAFETY: the lock is held; the error, if any, is ours between the two calls.
        let raised = unsafe { (live.api.PyErr_GetRaisedException)() };
        is_pending = !raised.is_null();
        // It must not unwind into the interpreter.
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            fault::point("callback");
            act(&live);
        }))
        .is_err();
        if panicked {
            live.fail();
        }
        // SAFETY: as above; null is allowed and clears what `act` may have left.
        unsafe { (live.api.PyErr_SetRaisedException)(raised) };
    }
    leave_cold_path();
    is_pending
}

/// Whether an event is of a code object that no eval frame runs, and then counts it: functions that Cython compiled with profiling on send events like
/// Python's, from frames of their own. Their anchors are anywhere on the stack, and would pass for an event of an eval frame further out, which drops
/// what is inside. In a profile they are the native functions that they are. Looked at once for each code object that the interpreter runs: a foreign one
/// never gets an id.
fn is_foreign(live: &Live, code: *mut PyObject) -> bool {
    if live.codes.lock().find(code.addr() as u64).is_some() {
        return false;
    }
    let api = live.api;
    // SAFETY: the lock is held; `code` is alive for the call. The frame is borrowed from the thread, and the code object that it runs is a new reference,
    // given back at once: the frame keeps it alive.
    let runs = unsafe {
        if (api.PyObject_IsInstance)(code, api.code_type) != 1 {
            // For `register` to count.
            (api.PyErr_Clear)();
            return false;
        }
        let frame = (api.PyEval_GetFrame)();
        if frame.is_null() {
            std::ptr::null_mut()
        } else {
            let runs = (api.PyFrame_GetCode)(frame).cast::<PyObject>();
            (api.Py_DecRef)(runs);
            runs
        }
    };
    if runs != code {
        add_one(&live.callback_failures);
    }
    runs != code
}

fn add_one(counter: &AtomicU64) {
    // Relaxed: a figure.
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The thread's context in this session. On first sight of the thread that means a slot, and the functions already running on it, without
/// the one that `entering` reports.
fn context_of(live: &Live, code: *mut PyObject, anchor: u64, entering: bool) -> &'static Context {
    let context = Context::current();
    if context.is_of(live.mark) {
        return context;
    }
    let slot = live.table.claim(current_tid());
    let context = Context::adopt(live.mark, slot);
    if let Some((_, shadow)) = slot {
        greenlets::look_at_new(live, shadow, anchor);
        let mut running = running_frames(live, context);
        if entering && running.last().is_some_and(|(innermost, ..)| *innermost == code.addr()) {
            running.pop();
        }
        shadow.seed(running.iter().map(|(_, id, frame)| (*id, frame.tag)));
        live.audits.note_seeded(running.len() as u64);
        let running: Vec<Running> = running.into_iter().map(|(.., frame)| frame).collect();
        place(live, shadow, anchor, &running);
    }
    context
}

/// The Python frames of this thread, outermost first: each code object's address and id, and the frame.
fn running_frames(live: &Live, context: &Context) -> Vec<(usize, CodeId, Running)> {
    let mut frames = Vec::new();
    each_frame(live.api, |frame, code| {
        let running = Running {
            tag: tag(code.addr() as u64),
            is_generator: is_generator(live.api, frame),
        };
        frames.push((code.addr(), look_up(live, context, code, Some(frame)), running));
    });
    frames.reverse();
    frames
}

/// The id of a code object that is alive for the call. `frame` is a frame that runs it, if one is at hand; else the current one is tried.
fn look_up(live: &Live, context: &Context, code: *mut PyObject, frame: Option<*mut PyFrameObject>) -> CodeId {
    let address = code.addr() as u64;
    if let Some(running) = context.cached(address) {
        return running.code();
    }
    add_one(&live.cache_misses);
    let known = live.codes.lock().find(address);
    let id = known.or_else(|| {
        let id = if context.begin_registration() {
            register(live, code, frame)
        } else {
            refuse(
                live,
                "functions had to be named in the middle of naming others; those seen later have no name",
            );
            None
        };
        context.end_registration();
        id
    });
    match id {
        Some(id) => {
            context.remember(address, EntryCode::new(id, tag(address)));
            id
        }
        // Not remembered: nobody would tell when something else is at the address.
        None => {
            add_one(&live.registration_failures);
            CodeId::NONE
        }
    }
}

/// From now on no function is named that has no name yet, and the session says why: a table with holes that nobody can tell would be worth less.
fn refuse(live: &Live, why: impl Into<String>) {
    live.codes.lock().close();
    live.degrade(why);
}

/// Gives a code object an id; `None` when that cannot be done now.
fn register(live: &Live, code: *mut PyObject, frame: Option<*mut PyFrameObject>) -> Option<CodeId> {
    let api = live.api;
    // SAFETY: the lock is held; both objects are alive.
    if unsafe { (api.PyObject_IsInstance)(code, api.code_type) } != 1 {
        // SAFETY: the lock is held.
        unsafe { (api.PyErr_Clear)() };
        add_one(&live.callback_failures);
        return None;
    }
    let module = module_of(live, code, frame);
    greenlets::note_module(live, &module);
    let name = attribute_text(live, code, c"co_qualname", Keep::Start);
    let name = if name.is_empty() {
        attribute_text(live, code, c"co_name", Keep::Start)
    } else {
        name
    };
    let file = attribute_text(live, code, c"co_filename", Keep::End);
    let first_line = first_line(live, code);
    // Pure Rust: a mistake in it costs names, not the server its life.
    let described = catch_unwind(AssertUnwindSafe(|| describe(live, module, name, &file, first_line)));
    let Ok(info) = described else {
        refuse(
            live,
            "a function's name could not be read; functions seen later have no name",
        );
        return None;
    };
    let (id, was_closed) = {
        let mut codes = live.codes.lock();
        (codes.insert(code.addr() as u64, info), codes.is_closed())
    };
    if id == CodeId::NONE {
        add_one(&live.registration_failures);
        if !was_closed {
            refuse(
                live,
                format!(
                    "this server ran more than {CODE_OBJECTS} different Python functions; those seen later have no name"
                ),
            );
        }
    }
    Some(id)
}

fn describe(live: &Live, module: String, qualified_name: String, file: &str, first_line: u32) -> CodeInfo {
    let place = live.layout.classify(&module, file);
    CodeInfo {
        module: named(&module),
        qualified_name: named(&qualified_name),
        file: place.shown,
        first_line,
        category: place.category,
        plugin: place.plugin,
    }
}

fn named(name: &str) -> String {
    let shown = without_paths(name);
    if shown.is_empty() {
        "<unknown>".to_owned()
    } else {
        shown
    }
}

/// `__name__` of the globals of the frame that runs `code`.
fn module_of(live: &Live, code: *mut PyObject, frame: Option<*mut PyFrameObject>) -> String {
    let api = live.api;
    // SAFETY: the lock is held. The frame is borrowed from the caller or from the thread, which runs it during this call; code and globals are
    // new references and given back; the name is borrowed from the globals while they are ours.
    unsafe {
        let frame = frame.unwrap_or_else(|| (api.PyEval_GetFrame)());
        if frame.is_null() {
            return String::new();
        }
        let running = (api.PyFrame_GetCode)(frame).cast::<PyObject>();
        (api.Py_DecRef)(running);
        if running != code {
            return String::new();
        }
        let globals = (api.PyFrame_GetGlobals)(frame);
        if globals.is_null() {
            (api.PyErr_Clear)();
            return String::new();
        }
        let name = (api.PyDict_GetItemString)(globals, c"__name__".as_ptr());
        let module = read_name(api, name, CODE_TEXT_CHARS, Keep::Start);
        (api.Py_DecRef)(globals);
        module
    }
}

fn attribute_text(live: &Live, code: *mut PyObject, name: &std::ffi::CStr, keep: Keep) -> String {
    let api = live.api;
    // SAFETY: the lock is held and `code` is alive; the value is ours until it is given back.
    unsafe {
        let value = (api.PyObject_GetAttrString)(code, name.as_ptr());
        if value.is_null() {
            (api.PyErr_Clear)();
            return String::new();
        }
        let text = read_name(api, value, CODE_TEXT_CHARS, keep);
        (api.Py_DecRef)(value);
        text
    }
}

fn first_line(live: &Live, code: *mut PyObject) -> u32 {
    let api = live.api;
    // SAFETY: the lock is held and `code` is alive; the value is ours until it is given back.
    unsafe {
        let value = (api.PyObject_GetAttrString)(code, c"co_firstlineno".as_ptr());
        let line = if value.is_null() { 0 } else { (api.PyLong_AsLong)(value) };
        if !value.is_null() {
            (api.Py_DecRef)(value);
        }
        (api.PyErr_Clear)();
        u32::try_from(line).unwrap_or(0)
    }
}
