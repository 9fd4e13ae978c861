//! Installing a signal handler beside the host's, and sending a signal to one thread.

use std::io;
use std::mem::offset_of;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::model::Tid;

/// A handler installed with `SA_SIGINFO`.
pub type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// What a signal did before we came. Lives as long as the process, because a handler may be looking at it at any time.
#[derive(Clone, Copy)]
pub struct Previous(libc::sigaction);

impl std::fmt::Debug for Previous {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Previous")
            .field("handler", &self.0.sa_sigaction)
            .field("flags", &self.0.sa_flags)
            .finish_non_exhaustive()
    }
}

impl Previous {
    fn same(&self, other: &libc::sigaction) -> bool {
        // The mask is left out: libc's sigset_t has more bits than the kernel fills.
        self.0.sa_sigaction == other.sa_sigaction && self.0.sa_flags == other.sa_flags
    }

    /// Runs the previous handler, as the kernel would have. `false` when there is none: a default action or "ignore" is not carried out on its
    /// behalf, for the default of `SIGPROF` ends the process.
    ///
    /// Async-signal-safe as far as the previous handler is.
    ///
    /// # Safety
    /// Only from a handler for the same signal, with the arguments that one got.
    pub unsafe fn run(&self, signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) -> bool {
        let address = self.0.sa_sigaction;
        if address == libc::SIG_DFL || address == libc::SIG_IGN || address == libc::SIG_ERR {
            return false;
        }
        if self.0.sa_flags & libc::SA_SIGINFO != 0 {
            // SAFETY: the host installed this address with SA_SIGINFO, so it is a function of this type.
            let handler = unsafe { std::mem::transmute::<usize, Handler>(address) };
            handler(signal, info, context);
        } else {
            // SAFETY: the host installed this address without SA_SIGINFO, so it is a function of this type.
            let handler = unsafe { std::mem::transmute::<usize, extern "C" fn(libc::c_int)>(address) };
            handler(signal);
        }
        true
    }
}

fn query(signal: libc::c_int) -> io::Result<libc::sigaction> {
    let mut current = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null new action only asks; `current` is writable and large enough.
    let code = unsafe { libc::sigaction(signal, std::ptr::null(), current.as_mut_ptr()) };
    if code != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeroed is a valid sigaction, and the call has filled it.
    Ok(unsafe { current.assume_init() })
}

fn replace(signal: libc::c_int, new: &libc::sigaction) -> io::Result<libc::sigaction> {
    let mut old = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: both point to valid actions for the length of the call.
    let code = unsafe { libc::sigaction(signal, new, old.as_mut_ptr()) };
    if code != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeroed is a valid sigaction, and the call has filled it.
    Ok(unsafe { old.assume_init() })
}

/// Whether the kernel would call `handler` for `signal` now, as it is meant to be called.
pub fn is_installed(signal: libc::c_int, handler: Handler) -> bool {
    query(signal)
        .is_ok_and(|current| current.sa_sigaction == handler as usize && current.sa_flags & libc::SA_SIGINFO != 0)
}

/// Whether the kernel would call a handler for `signal` now, and another one than `handler`.
pub fn has_other_handler(signal: libc::c_int, handler: Handler) -> bool {
    query(signal).is_ok_and(|current| ![libc::SIG_DFL, libc::SIG_IGN, handler as usize].contains(&current.sa_sigaction))
}

/// If `signal` has its default action now, discards it wherever it is pending: where the default ends the process, what was sent for the sake of a handler
/// must not arrive any more.
pub fn defuse(signal: libc::c_int) {
    if !query(signal).is_ok_and(|current| current.sa_sigaction == libc::SIG_DFL) {
        return;
    }
    // SAFETY: an all-zero sigaction is valid.
    let mut ignore: libc::sigaction = unsafe { std::mem::zeroed() };
    ignore.sa_sigaction = libc::SIG_IGN;
    // To ignore a signal discards what is pending in all threads. Then the action that was there is put back; and should somebody have installed
    // another in between, that one.
    let Ok(mut action) = replace(signal, &ignore) else {
        return;
    };
    while let Ok(between) = replace(signal, &action)
        && between.sa_sigaction != libc::SIG_IGN
        && between.sa_sigaction != action.sa_sigaction
    {
        action = between;
    }
}

/// Whether the action was put back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Restored {
    /// As it was before.
    Yes,
    /// Somebody else has installed a handler over ours: nothing was touched, and theirs may still call ours.
    Displaced,
}

/// Our handler, installed. [`Installed::restore`] puts the previous one back, and so does dropping it.
#[derive(Debug)]
pub struct Installed {
    signal: libc::c_int,
    handler: Handler,
    previous: &'static Previous,
    done: bool,
}

impl Installed {
    /// Installs `handler` with `SA_SIGINFO | SA_RESTART` and all other signals blocked while it runs, except those that a fault raises. (A host's
    /// handler that jumped out of ours would leave it half done.) Never on an alternate stack: those are sized for somebody else's handler.
    ///
    /// What was there before is stored in `previous` first, so that the handler can pass foreign signals on from its first call. If `handler` is there
    /// already (somebody displaced it during an earlier time, and has put it back since), what it displaced then still counts as the previous action.
    ///
    /// # Errors
    /// What `sigaction` says.
    pub fn install(
        signal: libc::c_int,
        handler: Handler,
        previous: &'static AtomicPtr<Previous>,
    ) -> io::Result<Installed> {
        let before = query(signal)?;
        let mut kept = keep_unless_own(previous, &before, handler);
        // SAFETY: an all-zero sigaction is valid; it is filled below.
        let mut new: libc::sigaction = unsafe { std::mem::zeroed() };
        new.sa_sigaction = handler as usize;
        new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        // SAFETY: the set is a valid object of ours.
        unsafe {
            libc::sigfillset(&mut new.sa_mask);
            for fault in [
                libc::SIGSEGV,
                libc::SIGBUS,
                libc::SIGILL,
                libc::SIGFPE,
                libc::SIGTRAP,
                libc::SIGABRT,
            ] {
                libc::sigdelset(&mut new.sa_mask, fault);
            }
        }
        let replaced = replace(signal, &new)?;
        if !kept.same(&replaced) {
            // Somebody was quicker between the two calls.
            kept = keep_unless_own(previous, &replaced, handler);
        }
        Ok(Installed {
            signal,
            handler,
            previous: kept,
            done: false,
        })
    }

    /// Puts the previous action back if ours is still there. On the way the signal is ignored for an instant, which discards what is pending in
    /// every thread, blocked ones too: none of our signals can arrive after this. (Nor can a foreign one of that instant.)
    pub fn restore(mut self) -> Restored {
        self.put_back()
    }

    fn put_back(&mut self) -> Restored {
        self.done = true;
        if !is_installed(self.signal, self.handler) {
            defuse(self.signal);
            return Restored::Displaced;
        }
        // SAFETY: an all-zero sigaction is valid.
        let mut ignore: libc::sigaction = unsafe { std::mem::zeroed() };
        ignore.sa_sigaction = libc::SIG_IGN;
        let _ = replace(self.signal, &ignore);
        match replace(self.signal, &self.previous.0) {
            Ok(_) => Restored::Yes,
            Err(_) => Restored::Displaced,
        }
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        if !self.done {
            self.put_back();
        }
    }
}

/// As [`keep`]; if `action` is our own handler, what is stored stays.
fn keep_unless_own(
    previous: &'static AtomicPtr<Previous>,
    action: &libc::sigaction,
    handler: Handler,
) -> &'static Previous {
    if action.sa_sigaction == handler as usize {
        // Acquire: pairs with the Release store in `keep`.
        let stored = previous.load(Ordering::Acquire);
        // SAFETY: null, or a Box that was leaked by `keep`.
        if let Some(stored) = unsafe { stored.as_ref() } {
            return stored;
        }
    }
    keep(previous, action)
}

/// Stores `action` where handlers look. What was stored before is never freed; an equal one is used again, so that many sessions cost nothing.
fn keep(previous: &'static AtomicPtr<Previous>, action: &libc::sigaction) -> &'static Previous {
    // Acquire: pairs with the Release store below.
    let stored = previous.load(Ordering::Acquire);
    // SAFETY: null, or a Box that was leaked below.
    if let Some(stored) = unsafe { stored.as_ref() }
        && stored.same(action)
    {
        return stored;
    }
    let leaked: &'static mut Previous = Box::leak(Box::new(Previous(*action)));
    // Release: pairs with the Acquire loads here and in the handler.
    previous.store(leaked, Ordering::Release);
    leaked
}

/// The kernel's `siginfo_t` as `sigqueue` fills it (asm-generic/siginfo.h, `_rt`).
#[repr(C, align(8))]
struct QueuedInfo {
    signo: i32,
    errno: i32,
    code: i32,
    _pad: i32,
    pid: i32,
    uid: u32,
    value: u64,
    _rest: [u64; 12],
}

const _: () = assert!(size_of::<QueuedInfo>() == size_of::<libc::siginfo_t>());
const _: () = assert!(align_of::<QueuedInfo>() == align_of::<libc::siginfo_t>());
const _: () = assert!(offset_of!(QueuedInfo, pid) == 16 && offset_of!(QueuedInfo, value) == 24);

/// Sends `signal` with `value` to one thread of this process.
///
/// # Errors
/// `ESRCH` when the thread is gone, `EAGAIN` or `EPERM` when the kernel refuses.
pub fn send(process: i32, tid: Tid, signal: libc::c_int, value: u64) -> io::Result<()> {
    let mut info = QueuedInfo {
        signo: signal,
        errno: 0,
        code: libc::SI_QUEUE,
        _pad: 0,
        pid: process,
        // SAFETY: getuid takes nothing and cannot fail.
        uid: unsafe { libc::getuid() },
        value,
        _rest: [0; 12],
    };
    // SAFETY: `info` is a complete siginfo_t in the kernel's layout (asserted above) for the length of the call.
    let code = unsafe { libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, tid.get(), signal, &raw mut info) };
    if code == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The value that came with a signal sent by [`send`] from this process, `None` for any other signal or when the kernel has lost the value.
/// Async-signal-safe.
///
/// # Safety
/// `info` is what the kernel gave to a `SA_SIGINFO` handler, or null.
pub unsafe fn sent_value(process: i32, info: *const libc::siginfo_t) -> Option<u64> {
    // SAFETY: the caller's promise; the layouts are the same (asserted above).
    let info = unsafe { info.cast::<QueuedInfo>().as_ref()? };
    (info.code == libc::SI_QUEUE && info.pid == process).then_some(info.value)
}

/// Whether the kernel delivered this signal without its details, as it does when `RLIMIT_SIGPENDING` is used up: it then looks like a `kill` by
/// process 0. Async-signal-safe.
///
/// # Safety
/// As for [`sent_value`].
pub unsafe fn details_lost(info: *const libc::siginfo_t) -> bool {
    // SAFETY: the caller's promise; the layouts are the same (asserted above).
    unsafe { info.cast::<QueuedInfo>().as_ref() }.is_some_and(|info| info.code == libc::SI_USER && info.pid == 0)
}
