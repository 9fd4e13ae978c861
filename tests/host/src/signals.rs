//! A signal with an empty handler for the server thread, again and again: what a profiler that interrupts as often costs at the very least.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const SIGNAL: libc::c_int = libc::SIGUSR2;

extern "C" fn nothing(_signal: libc::c_int) {}

/// The thread that sends them. None when dropped.
#[derive(Debug)]
pub struct Signals {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Signals {
    /// Sends the calling thread a signal so often.
    ///
    /// # Errors
    /// If there can be no handler or no thread.
    pub fn start(every: Duration) -> io::Result<Signals> {
        // SAFETY: an all-zero record is a valid one, with an empty mask; the handler does nothing at all, and nobody else here uses this signal.
        let installed = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as *const () as libc::sighandler_t;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(SIGNAL, &raw const action, std::ptr::null_mut())
        };
        if installed != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: these only ask who is calling.
        let (process, thread) = unsafe { (libc::getpid(), libc::gettid()) };
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let send = move || {
            // SAFETY: changes nothing but how exactly this thread sleeps.
            unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
            while !stopped.load(Ordering::Relaxed) {
                std::thread::sleep(every);
                // SAFETY: numbers only; a thread that has ended gets none.
                unsafe { libc::syscall(libc::SYS_tgkill, process, thread, SIGNAL) };
            }
        };
        let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(send)?;
        Ok(Signals {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It does not panic, and nobody could be told.
            let _ = thread.join();
        }
    }
}
