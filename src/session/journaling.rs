//! The journal of the session that runs, and the folder of all of them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::control::{Requester, StartRequest};
use super::environment::Environment;
use super::recording::Purpose;
use super::ticks::TickSample;
use crate::journal::{Feed, Journal, OpenError, Owner, PluginRecord, RecoveryFolder, SessionHead, TickFeed};
use crate::limits;
use crate::model::{ThreadChoice, ThreadNames, Tid};
use crate::sys::thread::Worker;
use crate::sys::{LockError, clock, process_uptime_millis, sleep};

/// See the module's text.
#[derive(Debug)]
pub(super) struct Journaling {
    path: PathBuf,
    is_on: bool,
    /// Open from when it is first needed until the plugin's end.
    folder: Mutex<Option<Arc<RecoveryFolder>>>,
    running: Mutex<Option<(Journal, TickFeed)>>,
    /// Why there is none for this session.
    problem: Mutex<Option<String>>,
    recovery: Mutex<Option<Worker>>,
    ends: AtomicBool,
}

impl Journaling {
    /// Touches no file.
    pub(super) fn new(path: PathBuf, is_on: bool) -> Self {
        Journaling {
            path,
            is_on,
            folder: Mutex::default(),
            running: Mutex::default(),
            problem: Mutex::default(),
            recovery: Mutex::default(),
            ends: AtomicBool::new(false),
        }
    }

    /// Whether what a crash leaves is recovered.
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether there may be something to recover: the folder is there and its owner wants it.
    pub(super) fn has_folder(&self) -> bool {
        self.is_on && self.path.symlink_metadata().is_ok()
    }

    /// The folder, opened if it is not.
    pub(super) fn folder(&self) -> Result<Arc<RecoveryFolder>, OpenError> {
        let mut folder = self.folder.lock();
        if let Some(folder) = &*folder {
            return Ok(Arc::clone(folder));
        }
        let opened = Arc::new(RecoveryFolder::open(&self.path)?);
        *folder = Some(Arc::clone(&opened));
        Ok(opened)
    }

    /// The same, waited for while threads of this process still have it that an earlier end of the plugin has left to themselves. `None` when the plugin's end
    /// has begun.
    pub(super) fn wait_for_folder(&self) -> Result<Option<Arc<RecoveryFolder>>, OpenError> {
        loop {
            match self.folder() {
                Err(OpenError::Lock(LockError::ThisProcess)) if self.ends() => return Ok(None),
                Err(OpenError::Lock(LockError::ThisProcess)) => sleep::nanos(limits::RECOVERY_LOOK_MILLIS * 1_000_000),
                other => return other.map(Some),
            }
        }
    }

    /// Begins a journal for a session that is about to begin, and gives the end that takes samples. Without one the session goes on.
    pub(super) fn begin(
        &self,
        request: &StartRequest,
        purpose: Purpose,
        server_thread: Tid,
        environment: &Environment,
    ) -> Option<Feed> {
        if !self.is_on {
            return None;
        }
        let ticks = TickFeed::default();
        let head = head(request, purpose, server_thread, environment);
        let begun = self
            .folder()
            .map_err(|error| error.to_string())
            .and_then(|folder| Journal::begin(&folder, head, ticks.clone()).map_err(|error| error.to_string()));
        match begun {
            Ok((journal, feed)) => {
                *self.running.lock() = Some((journal, ticks));
                Some(feed)
            }
            Err(why) => {
                *self.problem.lock() = Some(why);
                None
            }
        }
    }

    /// Takes one tick. On the server thread.
    pub(super) fn tick(&self, tick: &TickSample) {
        if let Some((_, ticks)) = &*self.running.lock() {
            ticks.push(tick.at, tick.mspt);
        }
    }

    /// Why a crash would lose the session, the first time it is asked after that came about.
    pub(super) fn problem_to_tell(&self) -> Option<String> {
        let journal = self.running.lock();
        let of_journal = journal.as_ref().and_then(|(journal, _)| journal.problem_to_tell());
        drop(journal);
        of_journal.or_else(|| self.problem.lock().take())
    }

    /// Whether the thread that writes has ended by a bug of ours.
    pub(super) fn has_failed(&self) -> bool {
        let running = self.running.lock();
        running.as_ref().is_some_and(|(journal, _)| journal.has_failed())
    }

    /// The journal of the session that has just ended.
    pub(super) fn take(&self) -> Option<Journal> {
        self.problem.lock().take();
        self.running.lock().take().map(|(journal, _)| journal)
    }

    /// Nobody wants it.
    pub(super) fn cancel(&self) {
        if let Some(journal) = self.take() {
            journal.discard();
        }
    }

    /// The thread that recovers.
    pub(super) fn set_recovery(&self, worker: Worker) {
        *self.recovery.lock() = Some(worker);
    }

    /// Whether the plugin's end has begun.
    pub(super) fn ends(&self) -> bool {
        // Acquire: pairs with the Release in `end`; nothing else hangs on it.
        self.ends.load(Ordering::Acquire)
    }

    /// Tells what recovers to end.
    pub(super) fn begin_end(&self) {
        // Release: pairs with the Acquire in `ends`.
        self.ends.store(true, Ordering::Release);
    }

    /// Waits so long for what recovers, and lets others have the folder once nobody here uses it.
    pub(super) fn end(&self, limit: Duration) {
        if let Some(worker) = self.recovery.lock().take() {
            // What it has not done yet the next start does.
            worker.join_timeout(limit);
        }
        self.folder.lock().take();
    }
}

fn head(request: &StartRequest, purpose: Purpose, server_thread: Tid, environment: &Environment) -> SessionHead {
    let names = match &request.threads {
        ThreadChoice::Server | ThreadChoice::All => Vec::new(),
        ThreadChoice::Named(names) => names.texts(),
    };
    SessionHead {
        started_at: clock::monotonic(),
        started: clock::wall(),
        server_uptime_millis: process_uptime_millis().unwrap_or(0),
        interval_micros: request.interval_micros,
        server_thread: Some(server_thread),
        all_threads: request.threads == ThreadChoice::All,
        thread_names: names,
        names_are_patterns: matches!(request.threads, ThreadChoice::Named(ThreadNames::Patterns(_))),
        ignore_sleeping: request.ignore_sleeping,
        only_ticks_over_millis: request.only_ticks_over_millis,
        in_background: purpose == Purpose::Background,
        view: request.view,
        owner: match &request.requested_by {
            Requester::Console => Owner::Console,
            Requester::Player { name, unique_id } => Owner::Player {
                name: name.clone(),
                unique_id: *unique_id,
            },
        },
        comment: request.comment.clone().unwrap_or_default(),
        server_name: environment.server_name.clone(),
        server_version: environment.server_version.clone(),
        minecraft_version: environment.minecraft_version.clone(),
        plugins: environment
            .plugins
            .iter()
            .map(|plugin| PluginRecord {
                name: plugin.name.clone(),
                version: plugin.version.clone(),
                authors: plugin.authors.clone(),
                description: plugin.description.clone(),
                native_stem: plugin.native_stem.clone(),
            })
            .collect(),
    }
}
