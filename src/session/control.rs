//! What the commands ask of a session, and what it answers. Plain data and one trait: `command` knows no more of a session than this.

use std::path::PathBuf;

use super::watchdog::StallNews;
use crate::model::{
    MonitorEvent, PastProfile, PythonDiagnostics, PythonState, SamplerDiagnostics, SlowTicks, Statistics, ThreadChoice,
    TickFigures, View, WallMillis,
};

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
    /// Keep only ticks that take longer than so many milliseconds.
    pub only_ticks_over_millis: Option<u64>,
    /// What the profile will show.
    pub view: View,
    /// Whether the profile goes to a file, not to the viewer's server, however the session ends.
    pub save_to_file: bool,
    /// One line for the profile's page, unless the session is ended with another.
    pub comment: Option<String>,
    /// Who asked.
    pub requested_by: Requester,
}

impl StartRequest {
    /// Samples the server thread until it is stopped, and uploads the profile.
    pub fn new(interval_micros: u64, requested_by: Requester) -> Self {
        StartRequest {
            interval_micros,
            timeout_seconds: None,
            threads: ThreadChoice::Server,
            ignore_sleeping: false,
            only_ticks_over_millis: None,
            view: View::default(),
            save_to_file: false,
            comment: None,
            requested_by,
        }
    }
}

/// A session to stop and export.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StopRequest {
    /// Where the profile goes.
    pub to: Destination,
    /// One line for the profile's page.
    pub comment: Option<String>,
    /// Who asked.
    pub requested_by: Requester,
}

impl StopRequest {
    /// What a session that ends without being asked to is ended with: what it was started with decides the rest.
    pub(super) fn by_itself(requested_by: Requester) -> Self {
        StopRequest {
            to: Destination::AsStarted,
            comment: None,
            requested_by,
        }
    }
}

/// Where a profile goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Destination {
    /// As the session was started: to the viewer's server unless a file was asked for.
    #[default]
    AsStarted,
    /// To a file.
    File,
    /// To the viewer's server.
    Server,
}

/// What a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// A session, running or about to.
    Session,
    /// The wait of this many finished profiles that could not be saved.
    Wait(usize),
    /// The upload of a finished profile.
    Upload,
    /// Nothing: a profile is made of what the background profiler has, and that goes on.
    Nothing,
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
    /// The last session is being exported; what is being done for it.
    Exporting(ExportStep),
    /// There is none to cancel but that in the background.
    OnlyBackground,
    /// It was told to end already.
    EndingAlready,
    /// It was stopped already: there is nothing to cancel any more.
    TooLate,
    /// The server has not ticked yet, so its thread is not known.
    ServerThreadUnknown,
    /// The plugin is being disabled.
    ShuttingDown,
    /// A health report is being made.
    HealthAlready,
    /// The system gives us no thread; its reason.
    NoThread(String),
}

/// What is being done for a session that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExportStep {
    /// Names are looked up and the profile is put together.
    Naming,
    /// It is being written to a file.
    Writing,
    /// It is on its way to the viewer's server.
    Uploading {
        /// Bytes that have left.
        sent: u64,
        /// Bytes in all.
        bytes: u64,
    },
}

/// The state of things.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SessionInfo {
    /// The session that runs.
    pub running: Option<RunningInfo>,
    /// Whether one is about to run.
    pub starting: bool,
    /// What is being done for one that has ended.
    pub exporting: Option<ExportStep>,
    /// Finished profiles that could not be written yet.
    pub unsaved: usize,
    /// The session in the background, while it runs.
    pub background: Option<BackgroundInfo>,
}

/// The background profiler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BackgroundInfo {
    /// Seconds that it can show.
    pub kept_seconds: u64,
    /// Samples with a stack since it began.
    pub samples: u64,
    /// Time between samples, in microseconds.
    pub interval_micros: u64,
    /// What Python frames it has.
    pub python: PythonState,
    /// Nanoseconds since it began.
    pub elapsed_nanos: u64,
    /// CPU time of its own threads in that time, in nanoseconds.
    pub own_nanos: u64,
    /// Time of the server thread that its samples took, in nanoseconds.
    pub server_nanos: u64,
    /// Memory of its call trees, about.
    pub bytes: u64,
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
    /// The ticks so far, if only those that take longer than so many milliseconds are kept.
    pub slow_ticks: Option<(u64, TickFigures)>,
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

    /// Ends the session and exports it. While its profile is being uploaded: breaks that off when a file is asked for instead.
    ///
    /// # Errors
    /// There is none, or it is ending already; nothing has changed.
    fn stop(&self, request: StopRequest) -> Result<Ended, Refusal>;

    /// Ends the session and drops what it found, also while that is being uploaded. Profiles that are kept from before stay. Without a session it is they that go.
    ///
    /// # Errors
    /// There is none, or it is ending already; nothing has changed.
    fn cancel(&self, by: &Requester) -> Result<Ended, Refusal>;

    /// The state of things.
    fn info(&self) -> SessionInfo;

    /// The server now and over its last minutes.
    fn statistics(&self) -> Statistics;

    /// Switches the tick monitor on, or off when it is on.
    fn toggle_monitor(&self, slow: SlowTicks, by: &Requester) -> MonitorChange;

    /// Makes a health report and sends it to the viewer's server.
    ///
    /// # Errors
    /// One is being made already, or the plugin is being disabled; nothing has changed.
    fn report_health(&self, by: &Requester) -> Result<(), Refusal>;

    /// The profiles and reports that were made, newest first, and what time it is.
    fn activity(&self) -> (WallMillis, Vec<PastProfile>);
}

/// What became of the tick monitor.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum MonitorChange {
    /// It is on, and tells of these ticks.
    Started(SlowTicks),
    /// It is off.
    Stopped,
}

/// The result of work that took its time.
#[derive(Clone, PartialEq, Debug)]
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
    /// Only slow ticks were kept.
    SlowTicks {
        /// Those over so many milliseconds.
        over_millis: u64,
        /// How many there were.
        ticks: TickFigures,
    },
    /// The profile is being sent to the viewer's server.
    Uploading {
        /// The server.
        host: String,
        /// Bytes to send.
        bytes: u64,
    },
    /// It is there.
    Uploaded {
        /// Where to look at it.
        link: String,
    },
    /// It is not there; it is saved to a file instead.
    UploadFailed {
        /// Why, in a user's words.
        reason: String,
    },
    /// The profile is being written to a file.
    Writing,
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
        /// The page that shows it.
        viewer: String,
    },
    /// The profile is not on disk.
    SaveFailed {
        /// Why, in a user's words.
        reason: String,
        /// Profiles that are kept in memory for another try, this one among them; 0 when it is lost.
        kept: usize,
        /// Whether an older one had to be given up for it.
        dropped: bool,
        /// Whether the next start recovers what it can of one that is lost.
        recoverable: bool,
    },
    /// The profile that was saved at the plugin's end lacks names, for want of time; the next start makes another of its journal.
    Unnamed,
    /// The profile is there, but the list of past profiles could not be written; why, in a user's words.
    NotListed(String),
    /// What a session had sampled when the server ended is a profile now.
    Recovered {
        /// The file.
        path: PathBuf,
        /// Samples with a stack.
        samples: u64,
        /// How long the session had run, in seconds.
        seconds: u64,
        /// Parts that could not be read and are kept as they are.
        unreadable: usize,
        /// It is the background profiler's last hour.
        in_background: bool,
        /// The page that shows it.
        viewer: String,
    },
    /// What a session had sampled when the server ended could not be made a profile; why, in a user's words.
    NotRecovered(String),
    /// Whether there is anything to recover is not known: the folder cannot be used; why, in a user's words.
    NoRecovery(String),
    /// Files that could not be read of earlier journals were removed to make room for newer ones: their names.
    UnreadableRemoved(Vec<String>),
    /// Profiles were removed to make room for a new one: their names.
    ProfilesRemoved(Vec<String>),
    /// A crash of the server would lose the session; why, in a user's words.
    NoJournal(String),
    /// A crash of the server would lose what the background profiler has; why, in a user's words.
    NoBackgroundJournal(String),
    /// The tick monitor has something to say; to whoever switched it on and nobody else.
    Monitor(MonitorEvent),
    /// The health report is on the viewer's server.
    HealthUploaded {
        /// Where to look at it.
        link: String,
    },
    /// It is not there but on disk.
    HealthSaved {
        /// Why, in a user's words.
        reason: String,
        /// The file.
        path: PathBuf,
        /// The page that shows it.
        viewer: String,
    },
    /// There is none; why, in a user's words.
    HealthFailed(String),
    /// The session was ended and dropped on request.
    Cancelled,
    /// The session's time was up; it is being exported.
    TimedOut,
    /// The session ended for another reason, given in a user's words.
    Stopped(String),
    /// Python frames are no longer recorded; why, in a user's words.
    PythonLost(String),
    /// The thread that reads the system's figures has ended by a bug of ours.
    StatisticsStopped,
    /// The background profiler is off for this run; why, in a user's words.
    BackgroundStopped(String),
    /// The background profiler follows Python no more: its callbacks took so many thousandths of a thread.
    BackgroundPythonOff {
        /// Thousandths.
        per_mille: u64,
    },
    /// The server thread did not tick for a while, and does again.
    Stalled {
        /// For how long, in nanoseconds.
        nanos: u64,
        /// How many stalls before it were not told.
        untold: u64,
        /// The session is the one in the background.
        in_background: bool,
    },
    /// Audits found this many Python frames that did not run. They were taken out; samples since the audit before may show them.
    PythonDoubted(u64),
}

impl Notice {
    pub(super) fn stalled(news: StallNews, in_background: bool) -> Self {
        Notice::Stalled {
            nanos: news.nanos,
            untold: news.untold,
            in_background,
        }
    }
}

/// A notice and whom it is for.
#[derive(Clone, PartialEq, Debug)]
pub struct Outgoing {
    /// Who asked for the work.
    pub to: Requester,
    /// How it went.
    pub notice: Notice,
}
