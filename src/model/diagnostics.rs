//! Figures that say how good a session's data is. They go into the profile's metadata and, in short, into `spark profiler info`.

use super::code::Category;
use super::loss::Losses;
use super::sample::StackEnd;

/// Whether Python frames are attributed, and if not, why.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum PythonState {
    /// There is no Python in the process.
    #[default]
    Absent,
    /// Python is here but cannot be attributed; the text says why in a user's words.
    Unsupported(String),
    /// The session waits for the interpreter.
    Attaching,
    /// Frames are attributed.
    Active,
    /// Frames were attributed and no longer are; the text says why in a user's words. Those seen before are kept.
    Degraded(String),
}

/// How often each monitoring event arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EventCounts {
    /// PY_START
    pub start: u64,
    /// PY_RESUME
    pub resume: u64,
    /// PY_THROW
    pub throw: u64,
    /// PY_RETURN
    pub ret: u64,
    /// PY_YIELD
    pub yielded: u64,
    /// PY_UNWIND
    pub unwind: u64,
}

/// What comparing shadow stacks with the interpreter's own frames found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AuditFigures {
    /// Comparisons.
    pub made: u64,
    /// Those that found a wrong frame. Samples of the thread since its last audit may show it.
    pub disagreed: u64,
    /// Entries that the interpreter did not run, taken out.
    pub wrong_frames: u64,
    /// Frames that the interpreter ran and no event had told of; a profile lacks them.
    pub missing_frames: u64,
    /// Generators and coroutines on the interpreter's list without an entry: most of them only pass an exception on and run nothing.
    pub delegating_frames: u64,
    /// Entries without a place on the native stack, which no profile shows, that the interpreter did not run; taken out. Most are generators that only passed an
    /// exception on when their thread was first seen.
    pub unplaced_frames: u64,
    /// Frames that already ran when their thread was first seen.
    pub found_running: u64,
    /// Those of them whose place on the native stack was found.
    pub found_running_placed: u64,
}

/// The Python side of a session.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PythonDiagnostics {
    /// State at the time of asking.
    pub state: PythonState,
    /// e.g. `3.13.0`, empty without Python.
    pub version: String,
    /// e.g. `CPython`, empty without Python.
    pub implementation: String,
    /// How often each event arrived.
    pub events: EventCounts,
    /// Threads that own a shadow stack.
    pub threads: u32,
    /// Threads that found none free.
    pub threads_refused: u64,
    /// Threads that got the id of a thread that had died.
    pub threads_reused: u64,
    /// Deepest Python stack seen.
    pub deepest: u32,
    /// How often a stack went beyond the cap.
    pub truncations: u64,
    /// Entries dropped because their eval frame had ended without an event.
    pub stale_dropped: u64,
    /// Leave events whose code was not on the stack.
    pub unmatched_leaves: u64,
    /// See [`AuditFigures`].
    pub audits: AuditFigures,
    /// Of the first audits that found a wrong frame: what the shadow stack had, the wrong ones in brackets, and what ran. Innermost functions only.
    pub wrong_stacks: Vec<String>,
    /// Threads that swap their stacks (greenlets), or whose events do not tell what they run; they are shown natively.
    pub swapping_threads: u64,
    /// Names of the first of them.
    pub swapping: Vec<String>,
    /// Functions by category, in the order of [`Category::ALL`]. Code objects that show the same count once.
    pub codes: [u32; Category::ALL.len()],
    /// Code objects that were seen and are alive.
    pub living_codes: u64,
    /// Most interpreters beside the main one that were seen at once; what they run is shown natively.
    pub subinterpreters: u32,
    /// Look-ups that a thread's cache did not answer; the enter events less these are its hits.
    pub cache_misses: u64,
    /// Code objects that could not be registered.
    pub registration_failures: u64,
    /// Anything a callback could not do.
    pub callback_failures: u64,
}

/// The native side of a session, merged samples included.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SamplerDiagnostics {
    /// Samples with a stack, repeated ones included.
    pub samples: u64,
    /// Samples that repeated the previous stack of an idle thread.
    pub repeated: u64,
    /// Samples lost, by reason.
    pub losses: Losses,
    /// Native stacks by how they ended, in the order of [`StackEnd::ALL`].
    pub ends: [u64; StackEnd::ALL.len()],
    /// Threads that are sampled now.
    pub threads: u32,
    /// Threads that were sampled at any time.
    pub threads_ever: u32,
    /// Threads that were not sampled because there were too many.
    pub threads_refused: u64,
    /// Rounds of sampling.
    pub rounds: u64,
    /// Rounds that were not done when the next one was due: the interval was stretched.
    pub rounds_late: u64,
    /// Measured mean distance of rounds in nanoseconds, 0 before the first.
    pub interval_nanos: u64,
    /// Samples left out because the thread waited and such time was not wanted.
    pub asleep: u64,
    /// The time they stand for, in nanoseconds, of all threads together.
    pub asleep_nanos: u64,
    /// Time in which the whole process did not run, although it could have, in nanoseconds: it was stopped (`SIGSTOP`), or its machine was. It is in no sample.
    pub stopped_nanos: u64,
    /// System calls that a request of ours cut short: they returned EINTR.
    pub interrupted_calls: u64,
    /// Signals that were not ours and were passed on.
    pub foreign_signals: u64,
    /// Shadow stacks found.
    pub python_snapshots: u64,
    /// Shadow stacks that were being written.
    pub python_torn: u64,
    /// Samples with at least one Python frame placed.
    pub attributed: u64,
    /// Python entries placed at a native frame.
    pub entries_placed: u64,
    /// Python entries with no native frame to stand at.
    pub entries_missed: u64,
    /// Python entries that had no anchor yet.
    pub entries_unanchored: u64,
    /// The handler, from its first to its last instruction.
    pub handler: HandlerCost,
    /// Its parts: finding its slot and its registers;
    pub handler_prepare: HandlerCost,
    /// walking the native stack;
    pub handler_walk: HandlerCost,
    /// copying the shadow stack and handing over.
    pub handler_python: HandlerCost,
    /// All its runs together, in nanoseconds.
    pub handler_total_nanos: u64,
    /// Frames that these walked over.
    pub frames_walked: u64,
    /// Unwinding rules that were not remembered and had to be derived for that.
    pub rules_derived: u64,
}

/// How long a part of the handler took, in nanoseconds; 0 when not measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HandlerCost {
    /// Half of the runs took less.
    pub median_nanos: u64,
    /// 99 of 100 took less.
    pub p99_nanos: u64,
}

/// How a profile was made from what a crash had left.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RecoveryFigures {
    /// Files that were read.
    pub segments: u64,
    /// Files of the session's beginning that were given up while it ran, to stay within the room there is.
    pub segments_given_up: u64,
    /// Records that were understood.
    pub records: u64,
    /// Records that were damaged.
    pub damaged: u64,
    /// Samples that could not be written in time while the session ran.
    pub samples_dropped: u64,
}

/// What became of ticks and their samples where only slow ticks are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TickFigures {
    /// Ticks that began and ended in the session.
    pub seen: u64,
    /// Those of them that were slow enough.
    pub kept: u64,
    /// The longest of them, in nanoseconds.
    pub longest_nanos: u64,
    /// Samples of slow ticks.
    pub samples_kept: u64,
    /// All others that were looked at, also those below.
    pub samples_dropped: u64,
    /// Samples of which it was not certain whether a slow tick was over when they were taken.
    pub samples_uncertain: u64,
    /// Samples whose tick had not ended when the session did.
    pub samples_unfinished: u64,
    /// Samples that found no room to wait for the end of their tick. They are in no other figure.
    pub samples_without_room: u64,
}
