//! Starting and stopping the capture, and what is shared while it runs.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::engine;
use super::handler::on_sigprof;
use super::queue::Queue;
use super::rounds::Rounds;
use super::source::SampleSource;
use super::threads::ThreadSelection;
use crate::model::{Module, SamplerDiagnostics, ThreadKey};
use crate::shadow::ShadowTable;
use crate::sys::signal::{self, Installed, Restored};
use crate::sys::task;
use crate::sys::thread::{self, Worker};

/// What to sample, and how often.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SamplerOptions {
    /// Time between two samples of one thread, in nanoseconds.
    pub interval_nanos: u64,
    /// Which threads.
    pub threads: ThreadSelection,
    /// Leave out the time in which a thread waits.
    pub ignore_sleeping: bool,
}

/// Why sampling cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// One capture at a time.
    #[error("a profiler is already running in this process")]
    AlreadyRunning,
    /// A child of `fork` has our memory but not our threads.
    #[error("this process was forked from the one that is profiled; it cannot be profiled itself")]
    Forked,
    /// Our handler may be part of somebody else's chain since an earlier session; installed again it would call itself.
    #[error(
        "another library has taken over the SIGPROF signal during an earlier session; native profiling works again when that library lets go of the signal, at \
         the latest after a restart of the server"
    )]
    SignalTaken,
    /// The system refused.
    #[error("cannot install the SIGPROF handler: {0}")]
    Signal(#[source] io::Error),
    /// The system refused.
    #[error("cannot start the sampler thread: {0}")]
    Thread(#[source] io::Error),
}

/// Called on the sampler's thread right before and right after each round, so that whoever wants to know what a sample belongs to can look at what changes. It
/// must not wait.
pub type Look = Box<dyn FnMut() + Send>;

/// How a capture ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StopReport {
    /// The action that `SIGPROF` had before is back. `false`: another library has installed its own meanwhile, which was left alone.
    pub signal_restored: bool,
    /// The sampler thread has ended. `false`: it did not within seconds and was left to itself; it sends no signal any more.
    pub thread_ended: bool,
}

/// What the sampler thread and the others share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) stop: AtomicBool,
    pub(super) displaced: AtomicBool,
    pub(super) queue: Queue,
    pub(super) figures: Mutex<SamplerDiagnostics>,
    pub(super) names: Mutex<HashMap<ThreadKey, String>>,
    pub(super) modules: Mutex<Vec<Arc<Module>>>,
}

/// True from the moment when another library was seen to have replaced our handler: from then on ours may be in its chain.
static CHAINED: AtomicBool = AtomicBool::new(false);

/// A running capture. Dropping it stops it.
#[derive(Debug)]
pub struct Sampler {
    shared: Arc<Shared>,
    worker: Option<Worker>,
    installed: Option<Installed>,
}

/// Starts sampling. Samples come out of the [`SampleSource`].
///
/// # Errors
/// See [`StartError`].
pub fn start(options: SamplerOptions, table: &'static ShadowTable) -> Result<(Sampler, SampleSource), StartError> {
    start_with_look(options, table, None)
}

/// As [`start`], with something to call around each round.
///
/// # Errors
/// See [`StartError`].
pub fn start_with_look(
    options: SamplerOptions,
    table: &'static ShadowTable,
    look: Option<Look>,
) -> Result<(Sampler, SampleSource), StartError> {
    let engine = engine::get_or_make(table);
    if engine.process != std::process::id() as i32 {
        return Err(StartError::Forked);
    }
    // Once it was in a chain, any handler may be one that remembers it. Where none is, or ours was put back, nobody calls it.
    // Relaxed: a fact that once true stays true.
    if CHAINED.load(Ordering::Relaxed) && signal::has_other_handler(libc::SIGPROF, on_sigprof) {
        return Err(StartError::SignalTaken);
    }
    let owner = engine.slots.own().ok_or(StartError::AlreadyRunning)?;
    let installed = Installed::install(libc::SIGPROF, on_sigprof, &engine::PREVIOUS).map_err(StartError::Signal)?;
    let shared = Arc::new(Shared::default());
    let mut rounds = Rounds::new(engine, owner, Arc::clone(&shared), options, look);
    rounds.look_first();
    let worker = thread::spawn("spark-sampler", move || rounds.run()).map_err(StartError::Thread)?;
    let source = SampleSource::new(Arc::clone(&shared), table);
    let sampler = Sampler {
        shared,
        worker: Some(worker),
        installed: Some(installed),
    };
    Ok((sampler, source))
}

impl Sampler {
    /// The figures so far.
    pub fn figures(&self) -> SamplerDiagnostics {
        self.shared.figures.lock().clone()
    }

    /// CPU time that the sampler's thread has used, in nanoseconds; 0 once it has ended.
    pub fn cpu_nanos(&self) -> u64 {
        let tid = self.worker.as_ref().and_then(Worker::tid);
        tid.and_then(task::cpu_nanos).unwrap_or(0)
    }

    /// Whether another library has replaced our handler. No sample is taken from then on; the session should end.
    pub fn is_displaced(&self) -> bool {
        // Relaxed: a flag that only goes up.
        self.shared.displaced.load(Ordering::Relaxed)
    }

    /// Whether the sampler's thread has ended by a bug of ours. No sample is taken from then on; the session should end.
    pub fn has_failed(&self) -> bool {
        self.worker.as_ref().is_some_and(Worker::has_panicked)
    }

    /// Stops sampling, waits for handlers that are running, and restores what `SIGPROF` did before. The [`SampleSource`] still gives what was captured.
    pub fn stop(&mut self) -> StopReport {
        self.finish()
    }

    fn finish(&mut self) -> StopReport {
        // Release: pairs with the Acquire in the sampler's loop.
        self.shared.stop.store(true, Ordering::Release);
        let thread_ended = self
            .worker
            .take()
            .is_none_or(|worker| worker.join_timeout(Duration::from_secs(5)));
        self.shared.queue.close();
        let restored = self.installed.take().map_or(Restored::Yes, Installed::restore);
        if restored == Restored::Displaced {
            // Relaxed: see `start`.
            CHAINED.store(true, Ordering::Relaxed);
        }
        StopReport {
            signal_restored: restored == Restored::Yes,
            thread_ended,
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        if self.worker.is_some() {
            self.finish();
        }
    }
}

/// Whether a signal sent now would reach our handler.
pub(super) fn handler_in_place() -> bool {
    signal::is_installed(libc::SIGPROF, on_sigprof)
}
