//! Threads that swap their stacks: greenlets.
//!
//! **Problem.** A greenlet's part of the C stack is copied away when it is left and copied back when it goes on, while the interpreter is given other
//! frames; no event tells of it. Anchors mean nothing then: at one address there is the frame of one greenlet now and of another later. (Code that gives
//! each of its threads of execution a stack of its own does no such harm: no two of them share an address.)
//!
//! **Algorithm.** A thread that swaps stacks is shown natively. To have begun with it, it must be seen at the first Python function that runs in
//! a greenlet. Nothing is looked for before the package `greenlet` is imported, which is seen by its module's own code object. From then on every enter
//! takes the long way, and there an event that does not come from the eval frame of the innermost entry is looked at: a greenlet's first frame is called by
//! greenlet's library, so a return address into it lies on the stack between the two. That is a look at some hundred words; only where a word looks
//! like one are the frames unwound, which tells for certain. So nothing that runs in a greenlet ever gets onto a shadow stack.
//!
//! Samples between a switch and the next event are the sampler's business (`native/swaps.rs`): it shows no Python frames beside a native stack that goes through that
//! library.
//!
//! **Greenlets that began before the session** are not seen beginning. The session looks for them among the objects that the garbage collector knows;
//! a thread whose greenlet they descend from, by greenlet's own word, swaps stacks.
//!
//! **Price.** Nothing without the package. With it some tens of nanoseconds per enter, and a few hundred where C code calls into Python.
//!
//! **Assumption.** The first thing a greenlet runs is a Python function, or compiled code that calls one before it switches away.

use std::cell::Cell;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use pyo3_ffi::PyObject;

use super::calibrate::callers_of_this;
use super::live::Live;
use super::objects::{PythonError, Refs};
use crate::limits::{SCANNED_STACK_BYTES, SWAPPING_THREADS};
use crate::shadow::ShadowStack;
use crate::sys::maps::{self, LoadCounters};
use crate::sys::{task, thread};

/// The package.
const PACKAGE: &str = "greenlet";

/// How the file of its library begins.
const LIBRARY: &str = "_greenlet.";

/// What a session knows of greenlets.
#[derive(Debug, Default)]
pub(super) struct Greenlets {
    /// Where the library's code is; 0 and 0 while it is not loaded.
    code: (AtomicU64, AtomicU64),
    /// What was loaded when it was last looked for.
    looked: Mutex<Option<LoadCounters>>,
    begun: OnceLock<Begun>,
    swapping: Mutex<Swapping>,
}

/// Greenlets that began before the session.
#[derive(Debug, Default)]
struct Begun {
    /// `greenlet.getcurrent`. The monitoring tool keeps it alive, and all of `roots`.
    get_current: usize,
    /// Addresses of the greenlets that stand for the threads they belong to.
    roots: Vec<usize>,
}

/// Threads that swap stacks.
#[derive(Clone, Debug, Default)]
struct Swapping {
    count: u64,
    /// Of the first [`SWAPPING_THREADS`].
    names: Vec<String>,
}

impl Greenlets {
    /// The library's code, if it is loaded.
    fn code(&self) -> Option<Range<u64>> {
        // Relaxed: with the interpreter's lock held; without one, the two are written once.
        let known = || self.code.0.load(Ordering::Relaxed)..self.code.1.load(Ordering::Relaxed);
        if known().end == 0 {
            let mut looked = self.looked.lock();
            if *looked != Some(maps::load_counters()) {
                let (images, counters) = maps::images();
                *looked = Some(counters);
                let is_it = |image: &&maps::Image| {
                    let name = image.loader_name.file_name().unwrap_or_default();
                    name.as_encoded_bytes().starts_with(LIBRARY.as_bytes())
                };
                let place = images.iter().find(is_it).and_then(|image| {
                    let svma = image.svma()?;
                    Some((image.bias.wrapping_add(svma.start), image.bias.wrapping_add(svma.end)))
                });
                if let Some((start, end)) = place {
                    self.code.0.store(start, Ordering::Relaxed);
                    self.code.1.store(end, Ordering::Relaxed);
                }
            }
        }
        Some(known()).filter(|code| code.end != 0)
    }

    /// How many threads swap stacks, and the names of the first of them.
    pub(super) fn swapping(&self) -> (u64, Vec<String>) {
        let swapping = self.swapping.lock().clone();
        (swapping.count, swapping.names)
    }
}

/// A function of this module was seen for the first time.
pub(super) fn note_module(live: &Live, module: &str) {
    if module == PACKAGE {
        live.table.watch();
    }
}

/// Looks at a thread's stack at an enter event from `anchor`, before that is entered.
pub(super) fn look(live: &Live, shadow: &ShadowStack, anchor: u64) {
    let innermost = shadow.innermost_anchor();
    if innermost == Some(anchor) || !shadow.is_watched() {
        return;
    }
    let Some(code) = live.greenlets.code() else { return };
    if !is_plain(live, anchor, innermost.filter(|at| *at > anchor), &code) {
        give_up(live, shadow);
    }
}

/// Looks at a thread that was never seen before, at an event from `anchor`, before its stack gets anything.
pub(super) fn look_at_new(live: &Live, shadow: &ShadowStack, anchor: u64) {
    if !shadow.is_watched() {
        return;
    }
    let Some(code) = live.greenlets.code() else { return };
    if !is_plain(live, anchor, None, &code) || descends(live).unwrap_or(true) {
        give_up(live, shadow);
    }
}

/// From now on this thread is shown natively.
pub(super) fn give_up(live: &Live, shadow: &ShadowStack) {
    shadow.abandon();
    let name = task::name(thread::current_tid()).unwrap_or_default();
    let mut swapping = live.greenlets.swapping.lock();
    swapping.count += 1;
    if swapping.names.len() < SWAPPING_THREADS && !swapping.names.contains(&name) {
        swapping.names.push(name);
    }
}

/// Whether no greenlet began between the stack addresses `from` and `to`, or the thread's first frame.
fn is_plain(live: &Live, from: u64, to: Option<u64>, code: &Range<u64>) -> bool {
    let own = own_stack();
    let end = to.unwrap_or(own.end).min(own.end);
    if own.contains(&from) && end.saturating_sub(from) <= SCANNED_STACK_BYTES {
        // SAFETY: aligned, and between a frame that is on this thread's own stack and another, or the stack's end, where all is mapped and only this
        // thread writes.
        let word = |address: u64| unsafe { std::ptr::with_exposed_provenance::<u64>(address as usize).read() };
        let mut words = (from.next_multiple_of(8)..end.saturating_sub(7)).step_by(8);
        if !words.any(|address| code.contains(&word(address))) {
            return true;
        }
    }
    let mut chain = Vec::with_capacity(64);
    let whole = callers_of_this(&*live.walk, &mut chain);
    let is_in = |(address, _): &(u64, u64)| code.contains(&address.wrapping_sub(1));
    let reached = chain.iter().position(|(_, at)| to.is_some_and(|to| *at >= to));
    let seen = chain
        .get(..reached.map_or(chain.len(), |last| last + 1))
        .unwrap_or_default();
    (whole || reached.is_some()) && !seen.iter().any(is_in)
}

/// The calling thread's stack, asked for once: for the main thread the C library reads a file. Empty if it does not know.
fn own_stack() -> Range<u64> {
    thread_local! {
        // Without a destructor: nothing runs for it when a thread ends.
        static OWN: Cell<Option<(u64, u64)>> = const { Cell::new(None) };
    }
    let (start, end) = OWN.get().unwrap_or_else(|| {
        let own = task::own_stack().map_or((0, 0), |own| (own.start, own.end));
        OWN.set(Some(own));
        own
    });
    start..end
}

/// Whether greenlets that began before the session belong to this thread; `None` when greenlet does not say, or it is not known yet which there are.
fn descends(live: &Live) -> Option<bool> {
    let begun = live.greenlets.begun.get()?;
    if begun.roots.is_empty() {
        return Some(false);
    }
    let mut refs = Refs::new(live.api);
    let get_current = std::ptr::with_exposed_provenance_mut::<PyObject>(begun.get_current);
    let root = refs
        .call(get_current, &[], "asking for the current greenlet")
        .and_then(|current| root_of(&mut refs, current));
    let descends = root.ok().map(|root| begun.roots.contains(&root.addr()));
    refs.release();
    descends
}

/// The greenlet that stands for the thread to which `greenlet` belongs.
fn root_of(refs: &mut Refs, greenlet: *mut PyObject) -> Result<*mut PyObject, PythonError> {
    let mut root = greenlet;
    loop {
        let parent = refs.attribute(root, c"parent")?;
        if parent == refs.api.none {
            return Ok(root);
        }
        root = parent;
    }
}

/// Looks whether greenlets are there already, once events come and before anything is done for one. Gives the objects that must stay alive during the session.
/// `collector` is the module `gc`.
pub(super) fn find_begun(
    refs: &mut Refs,
    live: &Live,
    collector: *mut PyObject,
) -> Result<Vec<*mut PyObject>, PythonError> {
    let (begun, kept) = begun(refs, live, collector)?;
    // A session begins once.
    let _ = live.greenlets.begun.set(begun);
    Ok(kept)
}

fn begun(refs: &mut Refs, live: &Live, collector: *mut PyObject) -> Result<(Begun, Vec<*mut PyObject>), PythonError> {
    // SAFETY: the lock is held; both results are borrowed, from `sys` and from the dict that it keeps.
    let (package, library) = unsafe {
        let modules = (refs.api.PySys_GetObject)(c"modules".as_ptr());
        if modules.is_null() {
            return Ok(Default::default());
        }
        let find = |name: &'static std::ffi::CStr| (refs.api.PyDict_GetItemString)(modules, name.as_ptr());
        (find(c"greenlet"), find(c"greenlet._greenlet"))
    };
    if !package.is_null() || !library.is_null() {
        live.table.watch();
    }
    if library.is_null() {
        return Ok(Default::default());
    }
    let kind = refs.attribute(library, c"greenlet")?;
    let get_current = refs.attribute(library, c"getcurrent")?;
    let is_begun = refs.attribute(kind, c"__bool__")?;
    let objects = refs.method(collector, c"get_objects", &[])?;
    let mut roots = Vec::new();
    // SAFETY: the lock is held; the list is ours and nobody else's, and keeps what is in it alive.
    let count = unsafe { (refs.api.PyList_Size)(objects) };
    for index in 0..count {
        // SAFETY: as above; the type is a new reference, given back at once to an object that keeps it.
        let object = unsafe {
            let object = (refs.api.PyList_GetItem)(objects, index);
            let its = (refs.api.PyObject_Type)(object);
            (refs.api.Py_DecRef)(its);
            ((refs.api.PyType_IsSubtype)(its, kind) != 0).then_some(object)
        };
        let Some(object) = object else { continue };
        let begun = refs.call(is_begun, &[object], "asking whether a greenlet has begun")?;
        if refs.read_int(begun, "asking whether a greenlet has begun")? == 0 {
            continue;
        }
        let root = root_of(refs, object)?;
        if root != object && !roots.contains(&root) {
            roots.push(root);
        }
    }
    let begun = Begun {
        get_current: get_current.expose_provenance(),
        roots: roots.iter().map(|root| root.addr()).collect(),
    };
    roots.push(get_current);
    Ok((begun, roots))
}
