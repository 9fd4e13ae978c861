//! A thread that takes the interpreter's lock.
//!
//! **Problem.** Waiting for the lock on a server thread can wait on any C extension. And a thread that waits for it while the interpreter ends
//! is ended by `pthread_exit` (CPython 3.12, 3.13) or waits for ever (3.12, and 3.14 and newer); whether the interpreter will end cannot be asked and
//! acted upon in one step ([`super::ending`] keeps our threads out before it does, as far as it can be told before).
//!
//! **Why not `sys::thread::spawn`.** It catches panics around its closure, and a `pthread_exit` that unwinds into a catch aborts the process.
//!
//! **Algorithm.** A raw pthread per piece of work, with all signals blocked. Until it has the lock its frames own nothing: no lock, no
//! destructor, only a pointer that nobody else gives up. It is detached; whoever wants the result waits on a condition with a time limit. Work that
//! was given up before it began is not begun; what was given up later is undone when it is done, because nobody is left to take its result.
//!
//! **Price.** One short-lived thread per start, freeze and stop of a session; a lost one leaks its stack.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::api::Api;
use super::ending;
use crate::limits::{ENDING_WORK_MILLIS, INTERPRETER_LOCK_SECONDS, INTERPRETER_WORK_SECONDS};

/// Why work with the lock was not done.
#[derive(Debug, thiserror::Error)]
pub(super) enum GilError {
    #[error("Python is ending or not running")]
    NotRunning,
    #[error("Python did not give its lock away within {INTERPRETER_LOCK_SECONDS} seconds")]
    NoLock,
    #[error("Python did not finish within {INTERPRETER_WORK_SECONDS} seconds")]
    Stuck,
    #[error("no thread could be started: {0}")]
    NoThread(std::io::Error),
}

/// How long is waited for the interpreter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GilPatience {
    /// For its lock.
    pub lock: Duration,
    /// For the work after that.
    pub work: Duration,
}

impl Default for GilPatience {
    fn default() -> Self {
        GilPatience {
            lock: Duration::from_secs(INTERPRETER_LOCK_SECONDS),
            work: Duration::from_secs(INTERPRETER_WORK_SECONDS),
        }
    }
}

enum Stage<F, T> {
    Waiting(F),
    Running,
    Done(T),
    NotRunning,
    GivenUp,
}

struct Shared<F, T> {
    api: &'static Api,
    /// For a result that nobody takes, with the lock held.
    undo: fn(T),
    stage: Mutex<Stage<F, T>>,
    changed: Condvar,
}

/// Runs `work` with the interpreter's lock held and gives its result: right here if this thread holds the lock already, else on a thread
/// of its own. `work` must not panic: nothing can catch it there.
pub(super) fn with_gil<T, F>(api: &'static Api, work: F) -> Result<T, GilError>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    with_gil_for(api, work, Some(GilPatience::default()), drop)
}

/// The same with limits of one's own. `undo` gets the result of work that comes to its end after that, with the lock held.
pub(super) fn with_gil_within<T, F>(
    api: &'static Api,
    work: F,
    patience: GilPatience,
    undo: fn(T),
) -> Result<T, GilError>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    with_gil_for(api, work, Some(patience), undo)
}

/// The same without a limit: for what must be done, however long the interpreter keeps its lock. To be called on a thread that has nothing else to do.
pub(super) fn with_gil_patiently<T, F>(api: &'static Api, work: F) -> Result<T, GilError>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    with_gil_for(api, work, None, drop)
}

fn with_gil_for<T, F>(api: &'static Api, work: F, patience: Option<GilPatience>, undo: fn(T)) -> Result<T, GilError>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    if !api.is_running() {
        return Err(GilError::NotRunning);
    }
    if api.is_held_here() {
        return here(api, work);
    }
    wait(&*hand_over(api, work, undo)?, patience)
}

/// Does `work` on this thread, which holds the lock of an interpreter: in the main one, which all that we have of Python is part of. A subinterpreter has
/// monitoring tools of its own, and they are none of ours.
fn here<T>(api: &'static Api, work: impl FnOnce() -> T) -> Result<T, GilError> {
    // SAFETY: this thread holds an interpreter's lock, so both may be asked. The new state is of the main interpreter and this thread's; it takes the place of
    // the present one, whose lock is given away meanwhile, and is cleared while it is in place and deleted when it no longer is.
    unsafe {
        let main = (api.PyInterpreterState_Main)();
        if (api.PyInterpreterState_Get)() == main {
            ending::expect(api);
            return Ok(work());
        }
        // The lock that this thread holds may be the subinterpreter's own.
        if !ending::door().enter() {
            return Err(GilError::NotRunning);
        }
        let state = (api.PyThreadState_New)(main);
        if state.is_null() {
            ending::door().leave();
            return Err(GilError::NoThread(std::io::ErrorKind::OutOfMemory.into()));
        }
        let theirs = (api.PyThreadState_Swap)(state);
        ending::expect(api);
        let result = work();
        (api.PyThreadState_Clear)(state);
        (api.PyThreadState_Swap)(theirs);
        (api.PyThreadState_Delete)(state);
        ending::door().leave();
        Ok(result)
    }
}

/// The same for work whose result nobody waits for; always on a thread of its own.
pub(super) fn with_gil_soon<F>(api: &'static Api, work: F) -> Result<(), GilError>
where
    F: FnOnce() + Send + 'static,
{
    if !api.is_running() {
        return Err(GilError::NotRunning);
    }
    hand_over(api, work, drop).map(|_| ())
}

fn hand_over<T, F>(api: &'static Api, work: F, undo: fn(T)) -> Result<Arc<Shared<F, T>>, GilError>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    let shared = Arc::new(Shared {
        api,
        undo,
        stage: Mutex::new(Stage::Waiting(work)),
        changed: Condvar::new(),
    });
    let for_thread = Arc::into_raw(Arc::clone(&shared)).cast_mut();
    if let Err(error) = start(entry::<T, F>, for_thread.cast()) {
        // SAFETY: from `into_raw` above; no thread was made to take it.
        drop(unsafe { Arc::from_raw(for_thread) });
        return Err(GilError::NoThread(error));
    }
    Ok(shared)
}

/// How often a waiting thread looks whether the interpreter still runs.
const LOOK: Duration = Duration::from_millis(50);

fn wait<F, T>(shared: &Shared<F, T>, patience: Option<GilPatience>) -> Result<T, GilError> {
    let began = Instant::now();
    let mut running = None;
    let mut not_running = None;
    let mut stage = shared.stage.lock();
    loop {
        match std::mem::replace(&mut *stage, Stage::GivenUp) {
            Stage::Done(result) => return Ok(result),
            Stage::NotRunning => return Err(GilError::NotRunning),
            Stage::GivenUp => return Err(GilError::Stuck),
            present @ (Stage::Waiting(_) | Stage::Running) => {
                let waiting = matches!(present, Stage::Waiting(_));
                let limit = patience.map(|patience| match waiting {
                    true => patience.lock,
                    false => patience.work,
                });
                let since = match waiting {
                    true => began,
                    false => *running.get_or_insert_with(Instant::now),
                };
                if waiting && !shared.api.is_running() {
                    // The thread may be gone. If it is not and comes back, it finds its work given up.
                    return Err(GilError::NotRunning);
                }
                if !shared.api.is_running() {
                    // Its work may still be done, or it has lost the lock in the middle and is gone like any other.
                    let since = *not_running.get_or_insert_with(Instant::now);
                    if since.elapsed() > Duration::from_millis(ENDING_WORK_MILLIS) {
                        return Err(GilError::NotRunning);
                    }
                }
                if limit.is_some_and(|limit| since.elapsed() > limit) {
                    return Err(if waiting { GilError::NoLock } else { GilError::Stuck });
                }
                *stage = present;
                shared.changed.wait_for(&mut stage, LOOK);
            }
        }
    }
}

/// The thread. Up to `PyGILState_Ensure` no frame owns anything that a `pthread_exit` would have to drop: the count that keeps `Shared` alive is
/// taken up only after it, and a thread that is lost there leaks it, and is counted inside the door for ever.
extern "C-unwind" fn entry<T, F: FnOnce() -> T>(argument: *mut c_void) -> *mut c_void {
    let shared = argument.cast_const().cast::<Shared<F, T>>();
    // SAFETY: `with_gil` gave this thread a count, which is not given back yet.
    let api = unsafe { (*shared).api };
    if !ending::door().enter() {
        // SAFETY: that count, taken up once.
        refuse(unsafe { Arc::from_raw(shared) });
        return std::ptr::null_mut();
    }
    if api.is_running() {
        // SAFETY: the interpreter is initialised and, once it knows of the door, waits for this thread before it ends; see the module's text for what may happen here if it has waited
        // for too long.
        let state = unsafe { (api.PyGILState_Ensure)() };
        ending::expect(api);
        // SAFETY: that count, taken up once.
        serve(unsafe { Arc::from_raw(shared) });
        // SAFETY: pairs with the Ensure above, on the same thread.
        unsafe { (api.PyGILState_Release)(state) };
    } else {
        // SAFETY: that count, taken up once.
        refuse(unsafe { Arc::from_raw(shared) });
    }
    ending::door().leave();
    std::ptr::null_mut()
}

fn refuse<F, T>(shared: Arc<Shared<F, T>>) {
    let before = std::mem::replace(&mut *shared.stage.lock(), Stage::NotRunning);
    shared.changed.notify_all();
    drop(before);
}

fn serve<T, F: FnOnce() -> T>(shared: Arc<Shared<F, T>>) {
    let before = std::mem::replace(&mut *shared.stage.lock(), Stage::Running);
    let Stage::Waiting(work) = before else {
        // Given up: nobody looks at the stage any more.
        return;
    };
    let result = work();
    let mut stage = shared.stage.lock();
    if matches!(*stage, Stage::GivenUp) {
        drop(stage);
        (shared.undo)(result);
        return;
    }
    *stage = Stage::Done(result);
    drop(stage);
    shared.changed.notify_all();
}

fn start(entry: extern "C-unwind" fn(*mut c_void) -> *mut c_void, argument: *mut c_void) -> std::io::Result<()> {
    // SAFETY: differs from what pthread_create's declaration wants only in that it may be unwound through, which C's caller allows:
    // pthread_exit does just that.
    let entry = unsafe {
        std::mem::transmute::<extern "C-unwind" fn(*mut c_void) -> *mut c_void, extern "C" fn(*mut c_void) -> *mut c_void>(
            entry,
        )
    };
    let mut thread: libc::pthread_t = 0;
    // SAFETY: the sets are plain data, filled before use; the mask that the new thread inherits is put back at once; the handle is
    // detached once and not used again.
    let code = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        let masked = libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before) == 0;
        let code = libc::pthread_create(&mut thread, std::ptr::null(), entry, argument);
        if masked {
            libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        }
        if code == 0 {
            libc::pthread_detach(thread);
        }
        code
    };
    if code == 0 {
        Ok(())
    } else {
        Err(std::io::Error::from_raw_os_error(code))
    }
}
