//! A running attribution: figures, names, and whether its callbacks are still in place.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::api::{Api, Runtime};
use super::attach::{ATTACHED, AttachError, Begun};
use super::context;
use super::detach;
use super::gil::{with_gil, with_gil_soon};
use super::live::Live;
use super::monitoring::{Event, Tool};
use super::objects::Refs;
use super::watcher::Watcher;
use crate::limits::{SILENT_TOOL_CHECK_SECONDS, TOOL_CHECK_SECONDS};
use crate::model::{CodeId, CodeInfo, EventCounts, PythonDiagnostics, PythonState};

/// A running attribution. Dropping it detaches it.
#[derive(Debug)]
pub struct Attribution {
    runtime: Runtime,
    live: Arc<Live>,
    /// `None` once it was given back.
    tool: Option<Arc<Mutex<Option<Tool>>>>,
    /// As above.
    watcher: Option<Watcher>,
    distances: [u64; Event::COUNT],
    watch: Arc<Watch>,
}

/// What is known of the last looks at our tool id.
#[derive(Debug)]
pub(super) struct Watch {
    looked: Mutex<Looked>,
    /// A visit is on its way or at work.
    pub(super) visiting: AtomicBool,
    /// No visit may begin any more.
    pub(super) over: AtomicBool,
}

#[derive(Debug)]
struct Looked {
    events: EventCounts,
    visited: Instant,
}

/// A visit, from when it is decided upon to its end, whether it was made or not.
struct Visit(Arc<Watch>);

impl Drop for Visit {
    fn drop(&mut self) {
        // Release: pairs with the swap of whoever decides upon the next.
        self.0.visiting.store(false, Ordering::Release);
    }
}

impl Attribution {
    /// Looks after what has begun.
    pub(super) fn new(runtime: Runtime, begun: Begun) -> Self {
        Attribution {
            runtime,
            live: begun.live,
            tool: Some(Arc::new(Mutex::new(Some(begun.tool)))),
            watcher: Some(begun.watcher),
            distances: begun.distances,
            watch: Arc::new(Watch {
                looked: Mutex::new(Looked {
                    events: EventCounts::default(),
                    visited: Instant::now(),
                }),
                visiting: AtomicBool::new(false),
                over: AtomicBool::new(false),
            }),
        }
    }

    /// Figures and state, at any time, without the interpreter's lock.
    pub fn diagnostics(&self) -> PythonDiagnostics {
        let shadow = self.live.table.figures();
        let state = match self.live.degraded() {
            Some(reason) => PythonState::Degraded(reason),
            None => PythonState::Active,
        };
        let (codes, living_codes) = {
            let codes = self.live.codes.lock();
            (codes.by_category(), codes.living() as u64)
        };
        let (swapping_threads, swapping) = self.live.greenlets.swapping();
        PythonDiagnostics {
            state,
            version: self.runtime.version.to_owned(),
            implementation: "CPython".to_owned(),
            events: context::event_counts(self.live.mark),
            threads: shadow.threads,
            threads_refused: shadow.refused,
            threads_reused: shadow.reused,
            deepest: shadow.deepest,
            truncations: shadow.truncations,
            stale_dropped: shadow.stale_dropped,
            unmatched_leaves: shadow.unmatched_leaves,
            audits: self.live.audits.figures(),
            wrong_stacks: self.live.audits.wrong_stacks(),
            swapping_threads,
            swapping,
            codes,
            living_codes,
            // Relaxed, all: figures.
            subinterpreters: self.live.subinterpreters.load(Ordering::Relaxed),
            cache_misses: self.live.cache_misses.load(Ordering::Relaxed),
            registration_failures: self.live.registration_failures.load(Ordering::Relaxed),
            callback_failures: self.live.callback_failures.load(Ordering::Relaxed),
        }
    }

    /// Whether a callback has ended by a bug of ours; the session should end.
    pub fn has_failed(&self) -> bool {
        self.live.has_failed()
    }

    /// The distances in bytes that calibration found, in the order start, resume, throw, return, yield, unwind.
    pub fn anchor_distances(&self) -> [u64; Event::COUNT] {
        self.distances
    }

    /// What all code ids stand for, by id, as far as they are known now. Needs no lock of the interpreter.
    pub fn codes(&self) -> Vec<(CodeId, CodeInfo)> {
        self.live.codes.lock().table()
    }

    /// What all code ids stand for, by id. Monitoring goes on. Asks the interpreter whether our callbacks are still in place; if not, or if it
    /// does not answer, the state says so from now on.
    pub fn freeze(&self) -> Vec<(CodeId, CodeInfo)> {
        if let Some(tool) = self.tool.clone() {
            let (api, live) = (self.runtime.api, Arc::clone(&self.live));
            if let Err(error) = with_gil(api, move || check(api, &tool, &live)) {
                self.live.degrade(error.to_string());
            }
        }
        self.codes()
    }

    /// To be called about once a second while the session runs; does not wait. Makes sure that our callbacks are still in place, and if not, the state
    /// says so and the shadow stacks are read no more.
    ///
    /// That is asked with the interpreter's lock, on a thread of its own. Events that keep coming are a good sign, so then it is asked rarely; a Python
    /// that is silent does not need its lock.
    pub fn look_after(&self) {
        let Some(tool) = self.tool.clone() else { return };
        {
            let mut looked = self.watch.looked.lock();
            let events = context::event_counts(self.live.mark);
            let moving = events.start != looked.events.start && events.ret != looked.events.ret;
            looked.events = events;
            let seconds = if moving {
                TOOL_CHECK_SECONDS
            } else {
                SILENT_TOOL_CHECK_SECONDS
            };
            if looked.visited.elapsed() < Duration::from_secs(seconds) {
                return;
            }
            looked.visited = Instant::now();
        }
        // AcqRel, with the Release store of [`Visit`]: one at a time.
        if self.live.table.is_distrusted() || self.watch.visiting.swap(true, Ordering::AcqRel) {
            return;
        }
        let (api, live, visit) = (self.runtime.api, Arc::clone(&self.live), Visit(Arc::clone(&self.watch)));
        // Where the interpreter cannot be asked any more, the visit ends with the work that is not done.
        let _ = with_gil_soon(api, move || {
            // SeqCst, with the store in `detach::end`, which began after this visit was decided upon: either that waits for it, or this does nothing.
            if !visit.0.over.load(Ordering::SeqCst) {
                check(api, &tool, &live);
            }
        });
    }

    /// Ends it: monitoring off, tool id free. Runs here if this thread holds the interpreter's lock, else waits for it as long as
    /// it takes: monitoring must not stay on because other code kept the lock.
    ///
    /// # Errors
    /// [`AttachError`] when the interpreter did not let us end properly; the server is safe all the same, as callbacks that still come find no
    /// session. When no thread could be made for it, the next [`attach`] ends it.
    pub fn detach(mut self) -> Result<(), AttachError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), AttachError> {
        let Some(tool) = self.tool.take() else { return Ok(()) };
        let watcher = self.watcher.take();
        let result = detach::end(self.runtime.api, &self.live, &self.watch, tool, watcher);
        *ATTACHED.lock() = false;
        result.map_err(AttachError::from)
    }
}

impl Drop for Attribution {
    fn drop(&mut self) {
        // There is nobody to tell.
        let _ = self.end();
    }
}

/// Asks whether our callbacks are in place, and stops trusting the shadow stacks when they are not. Needs the interpreter's lock.
fn check(api: &'static Api, tool: &Mutex<Option<Tool>>, live: &Live) {
    // Relaxed: a figure.
    live.subinterpreters.fetch_max(api.subinterpreters(), Ordering::Relaxed);
    let mut refs = Refs::new(api);
    // Only references are counted with the lock on the tool held: the check itself calls Python, which others could wait behind.
    let handle = tool.lock().as_ref().map(|tool| tool.handle(&mut refs));
    let answer = handle.map(|handle| handle.and_then(|handle| handle.check(&mut refs)));
    match answer {
        None | Some(Ok(Ok(()))) => {}
        Some(Ok(Err(changed))) => {
            live.degrade(changed);
            live.table.distrust();
        }
        Some(Err(error)) => live.degrade(error.to_string()),
    }
    refs.release();
}
