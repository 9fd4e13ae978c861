//! Keeping forks and the loader's lock apart.
//!
//! `dl_iterate_phdr` holds a lock of the loader. A child that was forked by another thread in that instant inherits the lock as taken and would hang
//! in its first `dlopen` or C++ exception. So our own calls and forks exclude each other: `pthread_atfork` runs a handler before each fork
//! that waits until our call is over, some ten microseconds.

use std::sync::Once;

/// A lock of pthread's, because it must survive `fork`: the child makes it anew.
struct Gate(std::cell::UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: pthread mutexes are made to be shared; the cell is only ever handed to pthread functions.
unsafe impl Sync for Gate {}

static GATE: Gate = Gate(std::cell::UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
static REGISTERED: Once = Once::new();

extern "C" fn close() {
    // SAFETY: a statically initialised mutex; this thread does not hold it, for `never_during` does not call fork.
    unsafe { libc::pthread_mutex_lock(GATE.0.get()) };
}

extern "C" fn open() {
    // SAFETY: locked by `close` on this thread.
    unsafe { libc::pthread_mutex_unlock(GATE.0.get()) };
}

extern "C" fn renew() {
    // SAFETY: in the child there is one thread, and it is the one that locked the mutex; nobody waits on it here.
    unsafe {
        libc::pthread_mutex_init(GATE.0.get(), std::ptr::null());
    }
}

/// Runs `work` while no fork of this process can begin. `work` must not fork.
pub fn never_during<R>(work: impl FnOnce() -> R) -> R {
    REGISTERED.call_once(|| {
        // SAFETY: the three functions live as long as the process: this library is never unloaded. Without memory the call fails and forks are as
        // they were without us.
        unsafe { libc::pthread_atfork(Some(close), Some(open), Some(renew)) };
    });
    close();
    let result = work();
    open();
    result
}
