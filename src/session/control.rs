//! What the commands ask of a session, and what it answers. Plain data and one trait: `command` knows no more of a session than this.

use std::path::PathBuf;

use crate::model::{PythonDiagnostics, PythonState, SamplerDiagnostics, ThreadChoice, View};

/// A session to start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StartRequest {
    /// Time between samples, in microseconds.
    pub interval_micros: u64,
    /// Seconds after which the session stops and exports by itself.
    pub timeout_seconds: Option<u64>,
    /// Which threads.
    pub threads: ThreadChoice,
    /// Leave out the time in which a thread waits.
    pub ignore_sleeping: bool,
    /// What the profile will show.
    pub view: View,
    /// Who asked.
    pub requested_by: Requester,
}

/// A session to stop and export.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StopRequest {
    /// Whether a file was asked for.
    pub save_to_file: bool,
    /// One line for the profile's page.
    pub comment: Option<String>,
    /// Who asked.
    pub requested_by: Requester,
}

impl StopRequest {
    /// What a session that ends without being asked to is ended with.
    pub(super) fn by_itself(requested_by: Requester) -> Self {
        StopRequest {
            save_to_file: true,
            comment: None,
            requested_by,
        }
    }
}

/// Who gave a command. Enough to find them again later: no pointer to a sender is ever kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Requester {
    /// The server's console.
    Console,
    /// A player.
    Player {
        /// The name at that time.
        name: String,
        /// The id, in the order of its bytes.
        unique_id: [u8; 16],
    },
}

impl Requester {
    /// A name to show.
    pub fn display_name(&self) -> String {
        match self {
            Requester::Console => "the console".to_owned(),
            Requester::Player { name, .. } => name.clone(),
        }
    }
}

/// Why a command changed nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// There is a session already.
    AlreadyRunning {
        /// Who started it.
        by: String,
        /// For how long it has been running.
        since_seconds: u64,
    },
    /// There is no session.
    NotRunning,
    /// The last session is being exported.
    Exporting,
    /// The server has not ticked yet, so its thread is not known.
    ServerThreadUnknown,
    /// The plugin is being disabled.
    ShuttingDown,
    /// The system gives us no thread; its reason.
    NoThread(String),
}

/// The state of things.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SessionInfo {
    /// The session that runs.
    pub running: Option<RunningInfo>,
    /// Whether one is about to run.
    pub starting: bool,
    /// Whether one is being exported.
    pub exporting: bool,
    /// Finished profiles that could not be written yet.
    pub unsaved: usize,
}

/// A session that runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunningInfo {
    /// Seconds since it began.
    pub elapsed_seconds: u64,
    /// Samples with a stack.
    pub samples: u64,
    /// Samples without one.
    pub lost: u64,
    /// Time between samples, in microseconds.
    pub interval_micros: u64,
    /// Threads that are sampled.
    pub threads: u32,
    /// The Python side.
    pub python: PythonDiagnostics,
    /// The native side.
    pub sampler: SamplerDiagnostics,
    /// Who started it.
    pub started_by: Requester,
    /// Seconds until it stops by itself.
    pub timeout_left_seconds: Option<u64>,
}

/// A session, as commands see it. No call takes longer than a lock: what needs time goes on elsewhere and ends in a [`Notice`].
pub trait Control {
    /// Begins a session.
    ///
    /// # Errors
    /// One is there already, or the time is wrong; nothing has changed.
    fn start(&self, request: StartRequest) -> Result<(), Refusal>;

    /// Ends the session and exports it.
    ///
    /// # Errors
    /// There is none, or it is ending already; nothing has changed.
    fn stop(&self, request: StopRequest) -> Result<(), Refusal>;

    /// Ends the session and drops what it found.
    ///
    /// # Errors
    /// There is none, or it is ending already; nothing has changed.
    fn cancel(&self, by: &Requester) -> Result<(), Refusal>;

    /// The state of things.
    fn info(&self) -> SessionInfo;
}

/// The result of work that took its time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// Samples are being taken.
    Started {
        /// Time between samples, in microseconds.
        interval_micros: u64,
        /// Threads that are sampled.
        threads: u32,
        /// What Python frames can be expected.
        python: PythonState,
    },
    /// No session began; why, in a user's words.
    StartFailed(String),
    /// Sampling has ended; names are looked up and the profile is written.
    Exporting {
        /// Samples with a stack.
        samples: u64,
    },
    /// The profile was too large; its smallest parts were folded.
    Folded {
        /// Frames that are no longer shown one by one.
        frames: u64,
    },
    /// The profile is on disk.
    Saved {
        /// The file.
        path: PathBuf,
        /// Samples with a stack.
        samples: u64,
        /// Size of the file.
        bytes: u64,
    },
    /// The profile is not on disk.
    SaveFailed {
        /// Why, in a user's words.
        reason: String,
        /// Profiles that are kept in memory for another try, this one among them; 0 when it is lost.
        kept: usize,
        /// Whether an older one had to be given up for it.
        dropped: bool,
    },
    /// The session was ended and dropped on request.
    Cancelled,
    /// The session's time was up; it is being exported.
    TimedOut,
    /// The session ended for another reason, given in a user's words.
    Stopped(String),
    /// Python frames are no longer recorded; why, in a user's words.
    PythonLost(String),
    /// Audits found this many Python frames that did not run. They were taken out; samples since the audit before may show them.
    PythonDoubted(u64),
}

/// A notice and whom it is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// Who asked for the work.
    pub to: Requester,
    /// How it went.
    pub notice: Notice,
}
