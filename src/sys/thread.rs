//! Threads of our own.
//!
//! `std::thread::spawn` on a host thread registers a thread-local destructor there, which ties the host's thread to our code for the rest of its life
//! (measured: Endstone then cannot unload us cleanly). So every thread is a raw pthread whose closure catches its own panics. All signals are blocked in
//! it from its first instruction: the host's signals are not ours to take, and `SIGPROF` must never land on the sampler itself.

use std::ffi::CString;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::deadline::Deadline;
use super::task;
use crate::model::Tid;

/// The kernel's id of the calling thread. Async-signal-safe.
pub fn current_tid() -> Tid {
    // SAFETY: gettid takes no argument and cannot fail.
    Tid::new(unsafe { libc::syscall(libc::SYS_gettid) } as i32)
}

/// The kernel ids of all threads of ours, to leave them out of profiles: those that exist when this is called, the ones that are just being made or just
/// ending among them. May wait a moment for the former to have an id.
pub fn own_tids() -> Vec<Tid> {
    // A thread begins within a millisecond; on a machine that gives it no time for a tenth of a second it is left out.
    for _ in 0..1_000 {
        if let Some(tids) = own_tids_if_all_known() {
            return tids;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    known_tids(&OWN.lock())
}

fn own_tids_if_all_known() -> Option<Vec<Tid>> {
    let mut own = OWN.lock();
    own.retain(|thread| {
        let Some(tid) = thread.known_tid() else { return true };
        // Relaxed: written before the id, which is read with Acquire.
        let started = thread.started.load(Ordering::Relaxed);
        // An ended body does not mean that the kernel has let go of the thread.
        !*thread.ended.lock() || task::may_live(tid, started)
    });
    own.iter()
        .all(|thread| thread.known_tid().is_some())
        .then(|| known_tids(&own))
}

fn known_tids(own: &[Arc<Shared>]) -> Vec<Tid> {
    own.iter().filter_map(|thread| thread.known_tid()).collect()
}

/// From just before a thread is made until the kernel has let go of it.
static OWN: Mutex<Vec<Arc<Shared>>> = Mutex::new(Vec::new());

/// What a worker and its owner share.
#[derive(Debug)]
struct Shared {
    tid: AtomicI32,
    /// In clock ticks since boot.
    started: AtomicU64,
    panicked: AtomicBool,
    ended: Mutex<bool>,
    signal: Condvar,
}

impl Shared {
    /// `None` before the thread has begun.
    fn known_tid(&self) -> Option<Tid> {
        // Acquire: pairs with the Release store in `run`.
        match self.tid.load(Ordering::Acquire) {
            0 => None,
            tid => Some(Tid::new(tid)),
        }
    }
}

/// A running thread. Dropping it detaches the thread.
#[derive(Debug)]
pub struct Worker {
    handle: libc::pthread_t,
    shared: Arc<Shared>,
    joined: bool,
}

// SAFETY: a pthread_t may be joined from any thread; the rest is an Arc of Sync data.
unsafe impl Send for Worker {}

struct Start {
    name: CString,
    shared: Arc<Shared>,
    body: Box<dyn FnOnce() + Send>,
}

/// Marks the thread as ended, whether its body returned or panicked.
struct Ended(Arc<Shared>);

impl Drop for Ended {
    fn drop(&mut self) {
        *self.0.ended.lock() = true;
        self.0.signal.notify_all();
    }
}

extern "C" fn run(argument: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: `argument` is the Box<Start> that `spawn` gave up to this thread, and only this thread.
    let start = unsafe { Box::from_raw(argument.cast::<Start>()) };
    let Start { name, shared, body } = *start;
    // SAFETY: `name` is a NUL-terminated string of at most 15 bytes, and pthread_self is this living thread.
    unsafe { libc::pthread_setname_np(libc::pthread_self(), name.as_ptr()) };
    // Relaxed: published by the store below.
    shared
        .started
        .store(task::start_ticks(current_tid()).unwrap_or(0), Ordering::Relaxed);
    // Release: pairs with the Acquire load in `known_tid`.
    shared.tid.store(current_tid().get(), Ordering::Release);
    let ended = Ended(shared);
    // A panic has been reported by the panic hook already; the owner sees the thread end.
    if panic::catch_unwind(AssertUnwindSafe(body)).is_err() {
        // Relaxed: a fact that once true stays true.
        ended.0.panicked.store(true, Ordering::Relaxed);
    }
    drop(ended);
    std::ptr::null_mut()
}

/// Starts a thread called `name` (the kernel keeps 15 bytes) with all signals blocked.
///
/// # Errors
/// What `pthread_create` says: no memory, or the limit on threads is reached.
pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<Worker> {
    let mut short: Vec<u8> = name.bytes().filter(|byte| *byte != 0).collect();
    short.truncate(15);
    let shared = Arc::new(Shared {
        tid: AtomicI32::new(0),
        started: AtomicU64::new(0),
        panicked: AtomicBool::new(false),
        ended: Mutex::new(false),
        signal: Condvar::new(),
    });
    let start = Box::new(Start {
        name: CString::new(short).unwrap_or_default(),
        shared: Arc::clone(&shared),
        body: Box::new(body),
    });
    let argument = Box::into_raw(start);
    // Before the thread can be seen by anybody.
    OWN.lock().push(Arc::clone(&shared));
    let mut handle: libc::pthread_t = 0;
    // SAFETY: sigset_t is plain data, filled before it is used; pthread_sigmask writes `before`.
    let (code, mask_code) = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        // The child inherits the mask; the parent's is put back at once.
        let mask_code = libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let code = libc::pthread_create(&mut handle, std::ptr::null(), run, argument.cast());
        if mask_code == 0 {
            libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        }
        (code, mask_code)
    };
    debug_assert_eq!(mask_code, 0, "pthread_sigmask fails only on an unknown `how`");
    if code != 0 {
        // SAFETY: no thread was made, so the box is still ours alone.
        drop(unsafe { Box::from_raw(argument) });
        OWN.lock().retain(|thread| !Arc::ptr_eq(thread, &shared));
        return Err(io::Error::from_raw_os_error(code));
    }
    Ok(Worker {
        handle,
        shared,
        joined: false,
    })
}

impl Worker {
    /// The thread's kernel id, `None` before it has begun.
    pub fn tid(&self) -> Option<Tid> {
        self.shared.known_tid()
    }

    /// True when the body has returned.
    pub fn is_finished(&self) -> bool {
        *self.shared.ended.lock()
    }

    /// True when the body has panicked.
    pub fn has_panicked(&self) -> bool {
        // Relaxed: as it was stored.
        self.shared.panicked.load(Ordering::Relaxed)
    }

    /// Waits for the thread's end.
    pub fn join(mut self) {
        self.joined = true;
        // SAFETY: the handle is of a joinable thread that nobody else joins: `self` is consumed and `joined` keeps Drop away.
        unsafe { libc::pthread_join(self.handle, std::ptr::null_mut()) };
    }

    /// Waits at most `limit`. `false`: it still runs and is left to itself.
    pub fn join_timeout(self, limit: Duration) -> bool {
        let mut ended = self.shared.ended.lock();
        if !*ended {
            self.shared.signal.wait_while_for(&mut ended, |ended| !*ended, limit);
        }
        let finished = *ended;
        drop(ended);
        if finished {
            self.join();
        }
        finished
    }

    /// As [`Worker::join_timeout`], but not after the deadline, which may be set meanwhile.
    pub fn join_until(self, limit: Duration, deadline: &Deadline) -> bool {
        deadline.wait_while(&self.shared.signal, &mut self.shared.ended.lock(), limit, |ended| {
            !*ended
        });
        self.join_timeout(Duration::ZERO)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if !self.joined {
            // SAFETY: joinable and not joined, see `join`; after this the handle is not used again.
            unsafe { libc::pthread_detach(self.handle) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_worker_runs_with_all_signals_blocked_and_is_known_while_it_lives() {
        let (report, reported) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let worker = spawn("spark-test-long-name", move || {
            // SAFETY: reads the mask of this thread into a valid set.
            let blocked = unsafe {
                let mut mask: libc::sigset_t = std::mem::zeroed();
                libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut mask);
                libc::sigismember(&mask, libc::SIGPROF) == 1 && libc::sigismember(&mask, libc::SIGTERM) == 1
            };
            report.send((current_tid(), blocked)).unwrap();
            let _ = released.recv();
        })
        .unwrap();
        let (tid, blocked) = reported.recv().unwrap();
        assert!(blocked);
        assert_eq!(worker.tid(), Some(tid));
        assert!(own_tids().contains(&tid));
        assert!(!worker.is_finished());
        drop(release);
        worker.join();
        while own_tids().contains(&tid) {
            // The kernel removes a thread a moment after it was joined.
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_thread_of_ours_is_known_from_its_first_to_its_last_moment() {
        let listed_but_unknown = || {
            // Listed first: what is made in between is not in the list.
            let listed = task::all().unwrap();
            let own = own_tids();
            listed
                .into_iter()
                .filter(|tid| !own.contains(tid) && task::name(*tid).ok().as_deref() == Some("spark-brief"))
                .collect::<Vec<_>>()
        };
        for _ in 0..300 {
            let worker = spawn("spark-brief", || ()).unwrap();
            assert_eq!(listed_but_unknown(), []);
            worker.join();
            assert_eq!(listed_but_unknown(), []);
        }
    }

    #[test]
    fn a_panic_ends_the_worker_and_nothing_else() {
        let worker = spawn("spark-panics", || panic!("on purpose")).unwrap();
        while !worker.is_finished() {
            std::thread::yield_now();
        }
        assert!(worker.has_panicked());
        assert!(worker.join_timeout(Duration::from_secs(20)));
    }

    #[test]
    fn joining_with_a_limit_gives_up() {
        let (release, released) = mpsc::channel::<()>();
        let worker = spawn("spark-waits", move || {
            let _ = released.recv();
        })
        .unwrap();
        assert!(!worker.join_timeout(Duration::from_millis(1)));
        drop(release);
    }

    #[test]
    fn a_deadline_that_is_set_meanwhile_ends_the_wait() {
        let (release, released) = mpsc::channel::<()>();
        let deadline = Deadline::default();
        let setter = deadline.clone();
        let worker = spawn("spark-waits", move || {
            setter.set_in(Duration::ZERO);
            let _ = released.recv();
        })
        .unwrap();
        assert!(!worker.join_until(Duration::from_secs(3_600), &deadline));
        drop(release);
        let brief = spawn("spark-brief", || ()).unwrap();
        assert!(brief.join_until(Duration::from_secs(3_600), &Deadline::default()));
    }
}
