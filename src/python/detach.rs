//! The end of an attribution: what the session holds of the interpreter is given back, and then its memory may be used again.
//!
//! Stop order: events off, callbacks unregistered, tool id free, no thread inside a callback, and only then is memory used again. What could not be
//! given back is left over for the next session.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;

use super::api::Api;
use super::attach::Reason;
use super::attribution::Watch;
use super::context;
use super::gil::{GilError, with_gil_patiently};
use super::live::{Live, nobody_inside};
use super::monitoring::Tool;
use super::objects::Refs;
use super::watcher::Watcher;
use crate::limits::{CALLBACK_EXITS, THREAD_RETRIES};

/// What a session could not give back because no thread could be made for it, or the door to the interpreter was closed. The next to attach does that first, so there is never more than one.
static LEFT_OVER: Mutex<Option<LeftOver>> = Mutex::new(None);

struct LeftOver {
    tool: Option<Tool>,
    watcher: Option<Watcher>,
}

/// Gives back what an earlier session could not. Needs the interpreter's lock.
pub(super) fn end_left_over(api: &'static Api) {
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

/// Ends the session `live`, whose callbacks the tool holds. Waits for the interpreter's lock as long as it takes, unless this thread holds it.
pub(super) fn end(
    api: &'static Api,
    live: &Arc<Live>,
    watch: &Watch,
    tool: Arc<Mutex<Option<Tool>>>,
    watcher: Option<Watcher>,
) -> Result<(), Reason> {
    let watcher = Arc::new(Mutex::new(watcher));
    // SeqCst, with the load in the visit. One that is at work needs the lock to come to its end.
    watch.over.store(true, Ordering::SeqCst);
    for _ in 0..CALLBACK_EXITS {
        // SeqCst: see above.
        if !watch.visiting.load(Ordering::SeqCst) || api.is_held_here() || !api.is_running() {
            break;
        }
        pause();
    }
    let mut retries = 0;
    let freed = loop {
        let (tool, watcher, live) = (Arc::clone(&tool), Arc::clone(&watcher), Arc::clone(live));
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
        pause();
    };
    let (freed, mut gone) = match freed {
        Err(error @ (GilError::NotRunning | GilError::NoThread(_))) => {
            let left = LeftOver {
                tool: tool.lock().take(),
                watcher: watcher.lock().take(),
            };
            return leave(api, live, Some(left), error);
        }
        other => other?,
    };
    // A thread that waits for the lock inside a callback needs it to get out.
    for _ in 0..CALLBACK_EXITS {
        if gone {
            break;
        }
        pause();
        let asked = with_gil_patiently(api, {
            let live = Arc::clone(live);
            move || let_go(&live)
        });
        gone = match asked {
            Err(error @ GilError::NotRunning) => return leave(api, live, None, error),
            other => other?,
        };
    }
    if !gone {
        return Err(Reason::StillInside);
    }
    freed.map_err(Reason::from)
}

/// What becomes of a session whose interpreter cannot be asked any more, for this reason.
fn leave(api: &'static Api, live: &Live, left: Option<LeftOver>, why: GilError) -> Result<(), Reason> {
    Live::end();
    if matches!(why, GilError::NotRunning) && !api.is_running() {
        // It ends or has ended, and with it tool id, watcher and callbacks.
        live.table.reset();
        return Ok(());
    }
    // Callbacks that still come find no session, and their shadow stacks are read no more. The next to attach ends them, unless the interpreter ends before.
    live.table.distrust();
    if left.is_some() {
        *LEFT_OVER.lock() = left;
    }
    Err(why.into())
}

fn pause() {
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

/// Lets go what callbacks used, if none is running: contexts, shadow stacks. Needs the interpreter's lock.
pub(super) fn let_go(live: &Live) -> bool {
    if !nobody_inside() {
        return false;
    }
    context::end_session();
    live.table.reset();
    true
}
