//! Start of attribution. What calls Python runs on a thread of its own ([`super::gil`]).

use std::sync::Arc;

use parking_lot::Mutex;

use super::api::{Api, Runtime};
use super::attribution::Attribution;
use super::calibrate::{Calibration, CalibrationError, StackWalk, calibrate};
use super::callbacks::{make_calibration, make_callbacks, prepare};
use super::context;
use super::detach::{end_left_over, let_go};
use super::gil::{GilError, GilPatience, with_gil_within};
use super::greenlets;
use super::layout::Layout;
use super::live::{Live, nobody_inside};
use super::monitoring::{Event, Tool, ToolError};
use super::objects::{PythonError, Refs};
use super::watcher::Watcher;
use crate::shadow::ShadowTable;

/// Why Python could not be attached, or let go. Each text is fit for a server's owner.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct AttachError(#[from] Reason);

#[derive(Debug, thiserror::Error)]
pub(super) enum Reason {
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
pub(super) static ATTACHED: Mutex<bool> = Mutex::new(false);

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
    attach_within(runtime, table, walk, GilPatience::default())
}

/// [`attach`], waiting no longer than this.
///
/// # Errors
/// As there. What had begun and did not end in time is undone when it ends; until then nobody can attach.
pub fn attach_within(
    runtime: Runtime,
    table: &'static ShadowTable,
    walk: Arc<dyn StackWalk>,
    patience: GilPatience,
) -> Result<Attribution, AttachError> {
    {
        let mut attached = ATTACHED.lock();
        if *attached {
            return Err(Reason::Attached.into());
        }
        *attached = true;
    }
    let attempt = with_gil_within(runtime.api, move || begin(runtime.api, table, &walk), patience, undo);
    let result = attempt.map_err(Reason::from).and_then(|result| result);
    match result {
        Ok(begun) => Ok(Attribution::new(runtime, begun)),
        Err(reason) => {
            // Work that was begun may still come to its end: nobody may attach beside it, and `undo` says when it is over.
            if !matches!(reason, Reason::Lock(GilError::Stuck)) {
                *ATTACHED.lock() = false;
            }
            Err(reason.into())
        }
    }
}

/// What a session holds of the interpreter's.
pub(super) struct Begun {
    pub(super) live: Arc<Live>,
    pub(super) tool: Tool,
    pub(super) watcher: Watcher,
    pub(super) distances: [u64; Event::COUNT],
}

/// Ends what has begun when nobody waited for it any more. Needs the interpreter's lock.
fn undo(result: Result<Begun, Reason>) {
    if let Ok(begun) = result {
        let mut refs = Refs::new(begun.live.api);
        Live::end();
        // There is nobody to tell.
        let _ = begun.tool.free(&mut refs);
        let _ = begun.watcher.clear(&mut refs);
        refs.release();
        if !let_go(&begun.live) {
            // The next to attach finds out whether callbacks still run.
            begun.live.table.distrust();
        }
    }
    *ATTACHED.lock() = false;
}

fn begin(api: &'static Api, table: &'static ShadowTable, walk: &Arc<dyn StackWalk>) -> Result<Begun, Reason> {
    end_left_over(api);
    if !nobody_inside() {
        return Err(Reason::StillInside);
    }
    table.reset();
    context::end_session();
    let mut refs = Refs::new(api);
    let result = begin_with(&mut refs, table, walk);
    refs.release();
    result
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
