//! The session that the callbacks work for.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Once};

use parking_lot::Mutex;

use super::api::Api;
use super::calibrate::{EvalFrames, StackWalk};
use super::codes::Codes;
use super::greenlets::Greenlets;
use super::layout::Layout;
use crate::limits::{DEGRADED_REASONS, WRONG_STACKS};
use crate::model::AuditFigures;
use crate::shadow::ShadowTable;

/// What the callbacks' cold path needs, alive for as long as any of them uses it.
pub(super) struct Live {
    pub(super) api: &'static Api,
    /// Address of the object that marks the session; see [`super::context`].
    pub(super) mark: usize,
    pub(super) table: &'static ShadowTable,
    pub(super) layout: Layout,
    pub(super) walk: Arc<dyn StackWalk>,
    pub(super) eval_frames: EvalFrames,
    pub(super) audits: Audits,
    pub(super) greenlets: Greenlets,
    pub(super) codes: Mutex<Codes>,
    /// Why names are no longer taken or callbacks no longer come, in a user's words; each reason once, as they came.
    degraded: Mutex<Vec<String>>,
    /// The most that were seen at once.
    pub(super) subinterpreters: AtomicU32,
    pub(super) cache_misses: AtomicU64,
    pub(super) registration_failures: AtomicU64,
    pub(super) callback_failures: AtomicU64,
    has_failed: AtomicBool,
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").field("mark", &self.mark).finish_non_exhaustive()
    }
}

/// What comparing shadow stacks with the interpreter's frames found, see [`super::audit`].
#[derive(Debug, Default)]
pub(super) struct Audits {
    made: AtomicU64,
    disagreed: AtomicU64,
    wrong: AtomicU64,
    missing: AtomicU64,
    delegating: AtomicU64,
    unplaced: AtomicU64,
    seeded: AtomicU64,
    placed: AtomicU64,
    wrong_stacks: Mutex<Vec<String>>,
}

impl Audits {
    /// One audit and how many frames it found to be what.
    pub(super) fn note(&self, [wrong, unplaced, missing, delegating]: [u64; 4]) {
        // Relaxed, here and below: figures.
        self.made.fetch_add(1, Ordering::Relaxed);
        self.disagreed.fetch_add(u64::from(wrong > 0), Ordering::Relaxed);
        self.wrong.fetch_add(wrong, Ordering::Relaxed);
        self.missing.fetch_add(missing, Ordering::Relaxed);
        self.delegating.fetch_add(delegating, Ordering::Relaxed);
        self.unplaced.fetch_add(unplaced, Ordering::Relaxed);
    }

    /// Keeps one of the first stacks with a wrong frame as text, which is made without a lock of ours.
    pub(super) fn keep_stack(&self, text: impl FnOnce() -> String) {
        if self.wrong_stacks.lock().len() >= WRONG_STACKS {
            return;
        }
        let text = text();
        let mut kept = self.wrong_stacks.lock();
        // Without the interpreter's lock another thread may have been here meanwhile.
        if kept.len() < WRONG_STACKS {
            kept.push(text);
        }
    }

    pub(super) fn wrong_stacks(&self) -> Vec<String> {
        self.wrong_stacks.lock().clone()
    }

    /// Frames that ran when their thread was first seen.
    pub(super) fn note_seeded(&self, frames: u64) {
        self.seeded.fetch_add(frames, Ordering::Relaxed);
    }

    /// Those of them whose place was found.
    pub(super) fn note_placed(&self, frames: u64) {
        self.placed.fetch_add(frames, Ordering::Relaxed);
    }

    pub(super) fn figures(&self) -> AuditFigures {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        AuditFigures {
            made: of(&self.made),
            disagreed: of(&self.disagreed),
            wrong_frames: of(&self.wrong),
            missing_frames: of(&self.missing),
            delegating_frames: of(&self.delegating),
            unplaced_frames: of(&self.unplaced),
            found_running: of(&self.seeded),
            found_running_placed: of(&self.placed),
        }
    }
}

static LIVE: Mutex<Option<Arc<Live>>> = Mutex::new(None);

/// Whether this process was forked off the one whose session it is. A child inherits the session, and each of its locks as taken that another thread
/// held in that instant: whoever waits for one waits for ever. So callbacks find no session there, and touch none of its locks.
static FORKED: AtomicBool = AtomicBool::new(false);
static REGISTERED: Once = Once::new();

extern "C" fn note_fork() {
    // Relaxed: the child has only this thread yet.
    FORKED.store(true, Ordering::Relaxed);
}

/// Threads that are in a callback's cold path now, of this or an earlier session.
static INSIDE: AtomicU32 = AtomicU32::new(0);

impl Live {
    pub(super) fn new(
        api: &'static Api,
        mark: usize,
        table: &'static ShadowTable,
        layout: Layout,
        walk: Arc<dyn StackWalk>,
        eval_frames: EvalFrames,
    ) -> Live {
        Live {
            api,
            mark,
            table,
            layout,
            walk,
            eval_frames,
            audits: Audits::default(),
            greenlets: Greenlets::default(),
            codes: Mutex::new(Codes::default()),
            degraded: Mutex::new(Vec::new()),
            subinterpreters: AtomicU32::new(0),
            cache_misses: AtomicU64::new(0),
            registration_failures: AtomicU64::new(0),
            callback_failures: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
        }
    }

    /// Makes it the session that callbacks work for.
    pub(super) fn begin(self: &Arc<Self>) {
        REGISTERED.call_once(|| {
            // SAFETY: the function lives as long as the process: this library is never unloaded. Without memory the call fails and children have to do
            // without the mark.
            unsafe { libc::pthread_atfork(None, None, Some(note_fork)) };
        });
        // Relaxed: callbacks of this session are registered later, with the interpreter's lock held.
        FORKED.store(false, Ordering::Relaxed);
        *LIVE.lock() = Some(Arc::clone(self));
    }

    /// From now on callbacks find no session.
    pub(super) fn end() {
        *LIVE.lock() = None;
    }

    /// The session with this mark, if callbacks still work for it; never in a forked child.
    pub(super) fn of(mark: usize) -> Option<Arc<Live>> {
        Live::current().filter(|live| live.mark == mark)
    }

    /// The session that callbacks work for, if there is one; never in a forked child.
    pub(super) fn current() -> Option<Arc<Live>> {
        // Relaxed: set before the child's first callback, by the thread that the child began with.
        if FORKED.load(Ordering::Relaxed) {
            return None;
        }
        LIVE.lock().clone()
    }

    /// Notes why the session is not what it should be.
    pub(super) fn degrade(&self, reason: impl Into<String>) {
        let (reason, mut reasons) = (reason.into(), self.degraded.lock());
        if reasons.len() < DEGRADED_REASONS && !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }

    /// A callback has ended by a bug of ours: what the shadow stacks say from now on is not to be trusted.
    pub(super) fn fail(&self) {
        self.table.distrust();
        self.degrade("an internal error of the profiler");
        // Relaxed: a fact that once true stays true.
        self.has_failed.store(true, Ordering::Relaxed);
    }

    /// Whether [`Live::fail`] was called.
    pub(super) fn has_failed(&self) -> bool {
        // Relaxed: as it was stored.
        self.has_failed.load(Ordering::Relaxed)
    }

    /// The reasons given to [`Live::degrade`].
    pub(super) fn degraded(&self) -> Option<String> {
        let reasons = self.degraded.lock();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }
}

/// A thread enters a cold path. Not a guard: a thread that the ending interpreter ends inside must not count as gone.
pub(super) fn enter_cold_path() {
    // SeqCst, with the load in `nobody_inside`: either that sees this count, or this thread's later look for the session sees none.
    INSIDE.fetch_add(1, Ordering::SeqCst);
}

/// Ends what [`enter_cold_path`] began.
pub(super) fn leave_cold_path() {
    // Release, with the load in `nobody_inside`: who sees the count fall sees what was done inside.
    INSIDE.fetch_sub(1, Ordering::Release);
}

/// Whether no thread is in a cold path. Once events are off and [`Live::end`] was called, a yes stays true.
pub(super) fn nobody_inside() -> bool {
    // SeqCst, with the additions in `enter_cold_path`; Acquire is part of it, with the subtractions.
    INSIDE.load(Ordering::SeqCst) == 0
}
