//! What the interpreter runs at the very instant of a sample.
//!
//! The sampler's signal handler is wrapped: `sigaction` of this program, which stands before the C library's, installs a handler for SIGPROF that first
//! notes the interpreter's frames and the time, then calls the sampler's. A sample carries its time, so each is compared with what was noted around it. The
//! sampler itself knows nothing of this and asks the same `sigaction` whether its handler is still in place.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};

use endstone_spark::sys::clock::monotonic;

use super::frames::{Frame, Layout, walk};

/// Frames noted of one sample. The driver's deepest recursion stays below, also where each of its calls is an evaluation with a mark of its own.
pub const DEPTH: usize = 1_024;

/// Notes kept: a reader that looks every 100 ms is never this far behind.
const NOTES: usize = 2_048;

/// Threads watched at the same time.
const THREADS: usize = 16;

/// In place of a number of frames.
const UNKNOWN: usize = usize::MAX;

struct Note {
    /// The number of the note, 0 while it is written.
    number: AtomicU64,
    tid: AtomicI32,
    before: AtomicU64,
    after: AtomicU64,
    count: AtomicUsize,
    frames: std::cell::UnsafeCell<[Frame; DEPTH]>,
}

// SAFETY: `frames` is written only by the handler that took the note's number, and read only by who sees that number in place.
unsafe impl Sync for Note {}

static NEXT: AtomicU64 = AtomicU64::new(1);
static NOTE: [Note; NOTES] = [const {
    Note {
        number: AtomicU64::new(0),
        tid: AtomicI32::new(0),
        before: AtomicU64::new(0),
        after: AtomicU64::new(0),
        count: AtomicUsize::new(0),
        frames: std::cell::UnsafeCell::new(
            [Frame {
                identity: 0,
                entry: 0,
                is_generator: false,
            }; DEPTH],
        ),
    }
}; NOTES];

static WATCHED: [(AtomicI32, AtomicU64); THREADS] = [const { (AtomicI32::new(0), AtomicU64::new(0)) }; THREADS];
static LAYOUT: OnceLock<Layout> = OnceLock::new();
static SAMPLERS: AtomicUsize = AtomicUsize::new(0);

fn tid() -> i32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// Sets how frames are read; the first call counts.
pub fn set_layout(layout: Layout) {
    let _ = LAYOUT.set(layout);
}

/// See [`set_layout`].
#[allow(dead_code)] // Each program that uses this file uses its own part.
pub fn layout() -> Option<&'static Layout> {
    LAYOUT.get()
}

/// From now on the calling thread's frames are noted, or, with no state, no longer.
pub fn watch(thread_state: Option<u64>) {
    let me = tid();
    match thread_state {
        Some(state) => {
            let free = WATCHED
                .iter()
                .find(|(tid, _)| tid.compare_exchange(0, -1, Ordering::AcqRel, Ordering::Relaxed).is_ok());
            let (tid, place) = free.expect("too many threads are watched");
            place.store(state, Ordering::Relaxed);
            tid.store(me, Ordering::Release);
        }
        None => {
            for (tid, _) in &WATCHED {
                if tid.load(Ordering::Relaxed) == me {
                    tid.store(0, Ordering::Release);
                }
            }
        }
    }
}

type Action = unsafe extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// Async-signal-safe: loads, stores, `gettid` and the clock.
unsafe extern "C" fn note_and_sample(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let sampler = SAMPLERS.load(Ordering::Acquire);
    // SAFETY: `sigaction` below stored it before this handler was installed.
    let sampler = unsafe { std::mem::transmute::<usize, Action>(sampler) };
    let me = tid();
    let state = WATCHED
        .iter()
        .find(|(tid, _)| tid.load(Ordering::Acquire) == me)
        .map(|(_, state)| state.load(Ordering::Relaxed));
    let (Some(state), Some(layout)) = (state, LAYOUT.get()) else {
        // SAFETY: the arguments are the kernel's own.
        return unsafe { sampler(signal, info, context) };
    };
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let note = &NOTE[number as usize % NOTES];
    note.number.store(0, Ordering::Release);
    note.tid.store(me, Ordering::Relaxed);
    // SAFETY: a watched thread's state lives until it is watched no more, and this is that thread; the note is this handler's.
    let count = unsafe { walk(layout, state, &mut *note.frames.get()) };
    note.count.store(count.unwrap_or(UNKNOWN), Ordering::Relaxed);
    note.before.store(monotonic().0, Ordering::Relaxed);
    // SAFETY: the arguments are the kernel's own.
    unsafe { sampler(signal, info, context) };
    note.after.store(monotonic().0, Ordering::Relaxed);
    note.number.store(number, Ordering::Release);
}

/// Gives the frames, innermost first, that the thread `tid` ran when a sample of this time was taken. `None` if that thread was not watched then, false
/// if its frames could not be told.
pub fn at(tid: i32, taken_at: u64, seen: &mut Vec<Frame>) -> Option<bool> {
    let newest = NEXT.load(Ordering::Acquire);
    for number in (newest.saturating_sub(NOTES as u64).max(1)..newest).rev() {
        let note = &NOTE[number as usize % NOTES];
        if note.tid.load(Ordering::Relaxed) != tid || note.before.load(Ordering::Relaxed) > taken_at {
            continue;
        }
        // The sample may be here before its handler has ended.
        let mut patience = 1_000_000_u32;
        while note.number.load(Ordering::Acquire) != number && patience > 0 {
            patience -= 1;
            std::hint::spin_loop();
        }
        let is_it = note.number.load(Ordering::Acquire) == number
            && (note.before.load(Ordering::Relaxed)..=note.after.load(Ordering::Relaxed)).contains(&taken_at);
        if !is_it {
            return None;
        }
        // SAFETY: the number is in place, so the handler has written the frames and is done; it is not overwritten for thousands of samples.
        let frames = unsafe { &*note.frames.get() };
        seen.clear();
        let frames = frames.get(..note.count.load(Ordering::Relaxed));
        seen.extend_from_slice(frames.unwrap_or_default());
        return Some(frames.is_some());
    }
    None
}

type SigAction = unsafe extern "C" fn(libc::c_int, *const libc::sigaction, *mut libc::sigaction) -> libc::c_int;

/// Stands before the C library's function of this name in all that is linked into this program.
///
/// # Safety
/// As that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(
    signal: libc::c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> libc::c_int {
    static NEXT_ONE: AtomicUsize = AtomicUsize::new(0);
    if NEXT_ONE.load(Ordering::Relaxed) == 0 {
        // SAFETY: a NUL-terminated name.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, c"sigaction".as_ptr()) };
        NEXT_ONE.store(found as usize, Ordering::Relaxed);
    }
    // SAFETY: the C library's function of this name.
    let next = unsafe { std::mem::transmute::<usize, SigAction>(NEXT_ONE.load(Ordering::Relaxed)) };
    if signal != libc::SIGPROF {
        // SAFETY: the caller's arguments.
        return unsafe { next(signal, new, old) };
    }
    // SAFETY: pointers are null or the caller's; the copy is ours.
    unsafe {
        let before = SAMPLERS.load(Ordering::Acquire);
        let wrapped = if new.is_null() || (*new).sa_sigaction <= libc::SIG_IGN {
            None
        } else {
            let mut wrapped = *new;
            SAMPLERS.store((*new).sa_sigaction, Ordering::Release);
            wrapped.sa_sigaction = note_and_sample as *const () as usize;
            Some(wrapped)
        };
        let new = wrapped.as_ref().map_or(new, std::ptr::from_ref);
        let result = next(signal, new, old);
        if result == 0 && !old.is_null() && (*old).sa_sigaction == note_and_sample as *const () as usize {
            (*old).sa_sigaction = before;
        }
        result
    }
}
