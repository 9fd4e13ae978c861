//! Start, freeze and stop of attribution.
//!
//! Everything that calls Python runs on a thread of its own ([`super::gil`]), one piece of work for each of the three. Stop order: events off, callbacks
//! unregistered, tool id free, no thread inside a callback, and only then is memory used again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::api::{Api, Runtime};
use super::calibrate::{Calibration, CalibrationError, StackWalk, calibrate};
use super::callbacks::{make_calibration, make_callbacks, prepare};
use super::context;
use super::greenlets;
use super::gil::{GilError, with_gil, with_gil_patiently, with_gil_soon};
use super::layout::Layout;
use super::live::{Live, nobody_inside};
use super::monitoring::{Event, Tool, ToolError};
use super::objects::{PythonError, Refs};
use super::watcher::Watcher;
use crate::limits::{CALLBACK_EXITS, SILENT_TOOL_CHECK_SECONDS, THREAD_RETRIES, TOOL_CHECK_SECONDS};
use crate::model::{CodeId, CodeInfo, EventCounts, PythonDiagnostics, PythonState};
use crate::shadow::ShadowTable;

/// Why Python could not be attached, or let go. Each text is fit for a server's owner.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct AttachError(#[from] Reason);

#[derive(Debug, thiserror::Error)]
enum Reason {
    #[error(transparent)]
    Lock(#[from] GilError),
    #[error(transparent)]
    Tool(#[from] ToolError),
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    #[error("a Python call failed: {0}")]
    Python(#[from] PythonError),
    #[error("another session is still attached to Python, or waits for its lock to let it go")]
    Attached,
    #[error("a callback of the previous session is still running")]
    StillInside,
}

/// Held by the session that is attached.
static ATTACHED: Mutex<bool> = Mutex::new(false);

/// What a session could not give back because no thread could be made for it. The next to attach does that first, so there is never more than one.
static LEFT_OVER: Mutex<Option<LeftOver>> = Mutex::new(None);

struct LeftOver {
    tool: Option<Tool>,
    watcher: Option<Watcher>,
}

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
struct Watch {
    looked: Mutex<Looked>,
    /// A visit is on its way or at work.
    visiting: AtomicBool,
    /// No visit may begin any more.
    over: AtomicBool,
}

#[derive(Debug)]
struct Looked {
    events: EventCounts,
    visited: Instant,
}

/// Takes a monitoring tool id, finds the anchors' distances, empties `table` and begins to follow Python. To be called without the
/// interpreter's lock, on a thread that may wait for it.
///
/// # Errors
/// [`AttachError`]; then nothing is left behind in the interpreter, and `table` is empty.
pub fn attach(
    runtime: Runtime,
    table: &'static ShadowTable,
    walk: Arc<dyn StackWalk>,
) -> Result<Attribution, AttachError> {
    {
        let mut attached = ATTACHED.lock();
        if *attached {
            return Err(Reason::Attached.into());
        }
        *attached = true;
    }
    let attempt = with_gil(runtime.api, move || begin(runtime.api, table, &walk));
    let result = attempt.map_err(Reason::from).and_then(|result| result);
    match result {
        Ok(Begun {
            live,
            tool,
            watcher,
            distances,
        }) => Ok(Attribution {
            runtime,
            live,
            tool: Some(Arc::new(Mutex::new(Some(tool)))),
            watcher: Some(watcher),
            distances,
            watch: Arc::new(Watch {
                looked: Mutex::new(Looked {
                    events: EventCounts::default(),
                    visited: Instant::now(),
                }),
                visiting: AtomicBool::new(false),
                over: AtomicBool::new(false),
            }),
        }),
        Err(reason) => {
            // Work that was begun and never came back may still come back: then nobody may attach beside it.
            *ATTACHED.lock() = matches!(reason, Reason::Lock(GilError::Stuck));
            Err(reason.into())
        }
    }
}

/// What a session holds of the interpreter's.
struct Begun {
    live: Arc<Live>,
    tool: Tool,
    watcher: Watcher,
    distances: [u64; Event::COUNT],
}

fn begin(api: &'static Api, table: &'static ShadowTable, walk: &Arc<dyn StackWalk>) -> Result<Begun, Reason> {
    end_left_over(api);
    if !nobody_inside() {
        return Err(Reason::StillInside);
    }
    table.reset();
    context::end_session();
    context::find_word();
    let mut refs = Refs::new(api);
    let result = begin_with(&mut refs, table, walk);
    refs.release();
    result
}

fn end_left_over(api: &'static Api) {
    let Some(LeftOver { tool, watcher }) = LEFT_OVER.lock().take() else {
        return;
    };
    let mut refs = Refs::new(api);
    // What cannot be given back now either is the interpreter's doing.
    if let Some(tool) = tool {
        let _ = tool.free(&mut refs);
    }
    if let Some(watcher) = watcher {
        let _ = watcher.clear(&mut refs);
    }
    refs.release();
}

fn begin_with(refs: &mut Refs, table: &'static ShadowTable, walk: &Arc<dyn StackWalk>) -> Result<Begun, Reason> {
    let layout = Layout::gather(refs)?;
    let mut tool = Tool::take(refs)?;
    // The reason is what matters; what cannot be given back either is the interpreter's doing.
    let watcher = match Watcher::set(refs) {
        Ok(watcher) => watcher,
        Err(reason) => {
            let _ = tool.free(refs);
            return Err(reason.into());
        }
    };
    match begin_with_tool(refs, &mut tool, layout, table, walk) {
        Ok((live, distances)) => Ok(Begun {
            live,
            tool,
            watcher,
            distances,
        }),
        Err(reason) => {
            Live::end();
            let _ = tool.free(refs);
            let _ = watcher.clear(refs);
            Err(reason)
        }
    }
}

fn begin_with_tool(
    refs: &mut Refs,
    tool: &mut Tool,
    layout: Layout,
    table: &'static ShadowTable,
    walk: &Arc<dyn StackWalk>,
) -> Result<(Arc<Live>, [u64; Event::COUNT]), Reason> {
    // SAFETY: the lock is held.
    let mark = unsafe { (refs.api.PyDict_New)() };
    let mark = refs.own(mark, "making the session's mark")?;
    prepare(refs.api.none, [0; Event::COUNT]);
    let probes = make_calibration(refs, mark)?;
    tool.register_all(refs, &probes)?;
    let Calibration { distances, eval_frames } = calibrate(refs, &**walk, |refs, on| tool.switch(refs, on))?;
    prepare(refs.api.none, distances);
    let callbacks = make_callbacks(refs, mark)?;
    let collector = refs.import(c"gc")?;
    let live = Arc::new(Live::new(
        refs.api,
        mark.addr(),
        table,
        layout,
        Arc::clone(walk),
        eval_frames,
    ));
    live.begin();
    // The callbacks that the tool keeps keep the mark.
    tool.register_all(refs, &callbacks)?;
    tool.switch(refs, true)?;
    match greenlets::find_begun(refs, &live, collector) {
        Ok(objects) => tool.keep(refs, &objects),
        Err(error) => {
            live.degrade(format!("it cannot be told which threads run greenlets: {error}"));
            table.distrust();
        }
    }
    Ok((live, distances))
}

impl Attribution {
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
        // AcqRel, with the Release store below: one visit at a time.
        if self.live.table.is_distrusted() || self.watch.visiting.swap(true, Ordering::AcqRel) {
            return;
        }
        let (api, live, watch) = (self.runtime.api, Arc::clone(&self.live), Arc::clone(&self.watch));
        let visit = move || {
            // SeqCst, with the store in `end_with`: either that waits for this visit, or this one does nothing.
            if !watch.over.load(Ordering::SeqCst) {
                check(api, &tool, &live);
            }
            watch.visiting.store(false, Ordering::Release);
        };
        if with_gil_soon(api, visit).is_err() {
            // Nothing was begun. Release: pairs with the swap above.
            self.watch.visiting.store(false, Ordering::Release);
        }
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
        let result = self.end_with(tool, watcher);
        *ATTACHED.lock() = false;
        result.map_err(AttachError::from)
    }

    fn end_with(&self, tool: Arc<Mutex<Option<Tool>>>, watcher: Option<Watcher>) -> Result<(), Reason> {
        let api = self.runtime.api;
        let watcher = Arc::new(Mutex::new(watcher));
        // SeqCst, with the load in the visit. One that is at work needs the lock to come to its end.
        self.watch.over.store(true, Ordering::SeqCst);
        for _ in 0..CALLBACK_EXITS {
            // SeqCst: see above.
            if !self.watch.visiting.load(Ordering::SeqCst) || api.is_held_here() || !api.is_running() {
                break;
            }
            self.pause();
        }
        let mut retries = 0;
        let freed = loop {
            let (tool, watcher, live) = (Arc::clone(&tool), Arc::clone(&watcher), Arc::clone(&self.live));
            let freed = with_gil_patiently(api, move || {
                let mut refs = Refs::new(api);
                // Taken out first: the locks are not held over Python calls that others could wait behind.
                let (tool, watcher) = (tool.lock().take(), watcher.lock().take());
                let freed = tool.map_or(Ok(()), |tool| tool.free(&mut refs));
                Live::end();
                let cleared = watcher.map_or(Ok(()), |watcher| watcher.clear(&mut refs));
                refs.release();
                (freed.and(cleared), let_go(&live))
            });
            if retries == THREAD_RETRIES || !matches!(freed, Err(GilError::NoThread(_))) {
                break freed;
            }
            retries += 1;
            self.pause();
        };
        let (freed, mut gone) = match freed {
            Err(GilError::NotRunning) => {
                // The interpreter has ended and with it tool id, watcher and callbacks.
                Live::end();
                self.live.table.reset();
                return Ok(());
            }
            Err(error @ GilError::NoThread(_)) => {
                // Callbacks still come, find no session, and their shadow stacks are read no more; the next to attach ends them.
                Live::end();
                self.live.table.distrust();
                let (tool, watcher) = (tool.lock().take(), watcher.lock().take());
                *LEFT_OVER.lock() = Some(LeftOver { tool, watcher });
                return Err(error.into());
            }
            other => other?,
        };
        // A thread that waits for the lock inside a callback needs it to get out.
        for _ in 0..CALLBACK_EXITS {
            if gone {
                break;
            }
            self.pause();
            let live = Arc::clone(&self.live);
            gone = with_gil_patiently(api, move || let_go(&live))?;
        }
        if !gone {
            return Err(Reason::StillInside);
        }
        freed.map_err(Reason::from)
    }

    fn pause(&self) {
        let nap = Duration::from_millis(10);
        // SAFETY: a valid timespec; being woken early by a signal does no harm.
        unsafe {
            let time = libc::timespec {
                tv_sec: 0,
                tv_nsec: nap.as_nanos() as libc::c_long,
            };
            libc::nanosleep(&time, std::ptr::null_mut());
        }
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

/// Lets go what callbacks used, if none is running: contexts, shadow stacks. Needs the interpreter's lock.
fn let_go(live: &Live) -> bool {
    if !nobody_inside() {
        return false;
    }
    context::end_session();
    live.table.reset();
    true
}

impl Drop for Attribution {
    fn drop(&mut self) {
        // There is nobody to tell.
        let _ = self.end();
    }
}
