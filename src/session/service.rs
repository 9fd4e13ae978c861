//! The profiler as the plugin holds it: one object that lives from enable to disable.
//!
//! ```text
//!            start            armed                stop / timeout       uploaded, saved, or failed
//!   Idle ----------> Starting -------> Running ---------------------> Ending ----------------> Idle
//!    ^                  | failed          | cancel                                               |
//!    +------------------+-----------------+------------------------------------------------------+
//! ```
//!
//! Everything that takes time runs on one worker, in the order it was asked for. The server thread only ever takes a short lock: it leaves an order,
//! looks at the state, or fetches notices that are to be delivered. The worker lives from the first order until there is nothing left to do: one that
//! neither samples (in the background, too) nor saves has no thread but that of the statistics. An upload is a part of `Ending`: another thread talks to the server, the worker waits for it, and stops waiting when the plugin is disabled
//! or somebody asks for a file or for nothing at all instead.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::background;
use super::control::{
    Control, Destination, Ended, ExportStep, MonitorChange, Notice, Outgoing, Refusal, Requester, RunningInfo,
    SessionInfo, StartRequest, StopRequest,
};
use super::environment::Environment;
use super::health;
use super::journaling::Journaling;
use super::monitor::Monitor;
use super::recording::Recording;
use super::recover;
use super::state::{Ending, Interrupt, Order, Phase, Shared, State};
use super::tick_watch::TickGauge;
use super::ticks::{TickSample, TickWindows};
use super::worker;
use super::world::WorldDesk;
use crate::activity::ActivityLog;
use crate::limits;
use crate::model::{PastProfile, SlowTicks, Statistics, WallMillis};
use crate::python;
use crate::settings::Settings;
use crate::stats;
use crate::sys::{Deadline, clock, fault, thread};
use crate::upload::Uploader;

/// Name of the folder that holds journals, below the plugin's own.
const RECOVERY: &str = "recovery";

/// The profiler.
#[derive(Debug)]
pub struct Service {
    shared: Arc<Shared>,
    worker: Mutex<Option<thread::Worker>>,
    /// Makes a health report, or did.
    health: Mutex<Option<thread::Worker>>,
    /// The server has ticked, and the background profiler was ordered.
    background_ordered: AtomicBool,
    /// The thread of the statistics has failed, and that was told.
    statistics_failed: AtomicBool,
}

impl Service {
    /// A profiler that keeps its files below `folder`. Touches no file and starts no thread. To be made on the server thread: reads the environment.
    pub fn new(folder: PathBuf, settings: Settings, past: ActivityLog) -> Self {
        let statistics = Arc::new(stats::Service::new());
        let shared = Arc::new(Shared {
            journaling: Journaling::new(folder.join(RECOVERY), settings.recovery),
            folder,
            settings,
            uploader: Uploader::from_environment(),
            past,
            state: Mutex::default(),
            deadline: Deadline::default(),
            names_until: Deadline::default(),
            wake: Condvar::new(),
            ticks: TickWindows::new(Arc::clone(&statistics)),
            statistics,
            monitor: Monitor::default(),
            watch: Arc::default(),
            environment: Mutex::default(),
            world: WorldDesk::default(),
            outgoing: Mutex::default(),
        });
        Service {
            shared,
            worker: Mutex::new(None),
            health: Mutex::new(None),
            background_ordered: AtomicBool::new(false),
            statistics_failed: AtomicBool::new(false),
        }
    }

    /// Takes one tick. On the server thread.
    pub fn on_tick(&self, tick: TickSample) {
        fault::point("tick");
        self.shared.journaling.tick(&tick);
        self.shared.watch.task(tick.at, tick.mspt);
        let statistics = &self.shared.statistics;
        statistics.tick(tick.at, tick.tid, tick.mspt);
        // Relaxed: written and read on the server thread.
        if statistics.has_failed() && !self.statistics_failed.swap(true, Ordering::Relaxed) {
            self.shared.send(&Requester::Console, Notice::StatisticsStopped);
        }
        // The tick that is over is the one before the newest.
        if let Some(number) = statistics.tick_number().checked_sub(2)
            && let Some((to, event)) = self.shared.monitor.tick(tick.at, number, tick.mspt)
        {
            self.shared.send(&to, Notice::Monitor(event));
        }
        // Relaxed: written and read on the server thread.
        if self.shared.settings.background_profiler && !self.background_ordered.load(Ordering::Relaxed) {
            self.order_background();
        }
    }

    /// Orders the background profiler in the first tick.
    fn order_background(&self) {
        // The worker may hold it at this moment; the next tick will do.
        let Some(mut state) = self.shared.state.try_lock() else {
            return;
        };
        if state.shutting_down {
            return;
        }
        // Relaxed: as above.
        self.background_ordered.store(true, Ordering::Relaxed);
        if let Err(Refusal::NoThread(why)) = self.order(&mut state, Order::Background) {
            drop(state);
            self.shared.send(&Requester::Console, Notice::BackgroundStopped(why));
        }
    }

    /// Begins to make profiles of what crashes have left, on a thread of its own. What comes of it is told as ever.
    pub fn recover(&self) {
        recover::begin(&self.shared);
    }

    /// The statistics: to be started and fed by the plugin.
    pub fn statistics_service(&self) -> &stats::Service {
        &self.shared.statistics
    }

    /// Switches the tick monitor off: whoever it tells has left.
    pub fn stop_monitor(&self) {
        self.shared.monitor.stop();
    }

    /// Sets what says how long the last tick took, on any thread. It is called from when it is needed until [`Service::shutdown`] begins, and never after.
    /// Without it ticks are known by [`Service::on_tick`] alone.
    pub fn set_tick_gauge(&self, gauge: TickGauge) {
        self.shared.watch.set_gauge(gauge);
    }

    /// The settings of this run.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// What is wrong with the environment: a line for the log.
    pub fn environment_problem(&self) -> Option<&str> {
        self.shared.uploader.problem()
    }

    /// A call into the profiler has ended by a bug of ours: so does the session that runs, saved as far as it can be. On the server thread.
    pub fn fail(&self) {
        self.shared.state.lock().has_failed = true;
        self.shared.wake.notify_all();
    }

    /// Notices to deliver, oldest first. On the server thread.
    pub fn take_outgoing(&self) -> Vec<Outgoing> {
        std::mem::take(&mut *self.shared.outgoing.lock())
    }

    /// Begins to time Python's garbage collector, unless the owner wants nothing of Python. Does not wait.
    pub fn time_collections(&self) {
        if self.shared.settings.python_attribution {
            python::time_collections(true);
        }
    }

    /// Where the server thread is asked for the world.
    pub fn world(&self) -> &WorldDesk {
        &self.shared.world
    }

    /// What is known of the server, its plugins included.
    pub fn set_environment(&self, environment: Environment) {
        *self.shared.environment.lock() = environment;
    }

    /// Ends a running session, saving its profile, and ends the worker. Waits at most [`limits::SHUTDOWN_MILLIS`]; `false` when the worker needs longer
    /// and was left to itself.
    pub fn shutdown(&self) -> bool {
        let end = Instant::now() + Duration::from_millis(limits::SHUTDOWN_MILLIS);
        for (deadline, millis) in [
            (&self.shared.deadline, limits::SHUTDOWN_INTERPRETER_MILLIS),
            (&self.shared.names_until, limits::SHUTDOWN_NAMES_MILLIS),
        ] {
            deadline.set_in(Duration::from_millis(millis));
        }
        self.shared.journaling.begin_end();
        self.shared.watch.close();
        let recording = {
            let mut state = self.shared.state.lock();
            state.shutting_down = true;
            // What a broken off upload has just left behind waits in `Ending`.
            if matches!(state.phase, Phase::Idle | Phase::Ending(_)) && !state.unsaved.is_empty() {
                // The last chance to write it. Without a thread there is none.
                let _ = self.order(&mut state, Order::Stop(StopRequest::by_itself(Requester::Console)));
            }
            match &state.phase {
                Phase::Running(recording) => Some(Arc::clone(recording)),
                _ => state.background.recording.clone(),
            }
        };
        if let Some(recording) = recording {
            recording.release_python_here();
        }
        self.shared.wake.notify_all();
        python::time_collections(false);
        let left = || end.saturating_duration_since(Instant::now());
        let ends_in_time = |worker: &Mutex<Option<thread::Worker>>| match worker.lock().take() {
            Some(worker) => worker.join_timeout(left()),
            None => true,
        };
        let worker_ended = ends_in_time(&self.worker);
        let ended = worker_ended & ends_in_time(&self.health);
        if worker_ended {
            // What it has not saved is for the next start. One that was left to itself saves it and needs its journal until then.
            drop(self.shared.journaling.take());
        } else {
            // It has all the time it needs now.
            self.shared.names_until.lift();
        }
        self.shared.journaling.end(left());
        // Last: the session's windows were made of it. What it found is gone with the plugin, so nobody needs to know if its thread is left to itself.
        self.shared.statistics.stop();
        ended
    }

    /// Leaves an order that ends something: the session, or the wait of a profile that could not be written.
    fn end(&self, state: &mut State, order: Order) -> Result<Ended, Refusal> {
        let in_background = state.background.recording.is_some();
        let ended = match &state.phase {
            Phase::Idle if state.unsaved.is_empty() => Ended::Nothing,
            Phase::Idle => Ended::Wait(state.unsaved.len()),
            _ => Ended::Session,
        };
        match &state.phase {
            Phase::Idle if state.unsaved.is_empty() && !in_background => Err(Refusal::NotRunning),
            Phase::Idle if state.unsaved.is_empty() && matches!(order, Order::Cancel(_)) => {
                Err(Refusal::OnlyBackground)
            }
            Phase::Ending(Ending::Naming | Ending::Writing) if matches!(order, Order::Cancel(_)) => {
                Err(Refusal::TooLate)
            }
            Phase::Ending(ending) => Err(Refusal::Exporting(ending.step())),
            _ if matches!(order, Order::Cancel(_)) && state.is_stopped_already() => Err(Refusal::TooLate),
            _ if state.ends_already() => Err(Refusal::EndingAlready),
            Phase::Idle | Phase::Starting { .. } | Phase::Running(_) => self.order(state, order).map(|()| ended),
        }
    }

    /// Leaves an order, and starts a worker for it when there is none.
    fn order(&self, state: &mut State, order: Order) -> Result<(), Refusal> {
        if !state.has_worker {
            let shared = Arc::clone(&self.shared);
            let worker = thread::spawn("spark-worker", move || worker::run(&shared))
                .map_err(|error| Refusal::NoThread(error.to_string()))?;
            *self.worker.lock() = Some(worker);
            state.has_worker = true;
        }
        state.orders.push_back(order);
        self.shared.wake.notify_all();
        Ok(())
    }
}

impl Control for Service {
    fn start(&self, request: StartRequest) -> Result<(), Refusal> {
        let mut state = self.shared.state.lock();
        if state.shutting_down {
            return Err(Refusal::ShuttingDown);
        }
        let now = clock::monotonic();
        match &state.phase {
            Phase::Idle => {}
            Phase::Starting { by, since } => {
                return Err(Refusal::AlreadyRunning {
                    by: by.display_name(),
                    since_seconds: now.since(*since) / 1_000_000_000,
                });
            }
            Phase::Running(recording) => {
                return Err(Refusal::AlreadyRunning {
                    by: recording.request().requested_by.display_name(),
                    since_seconds: recording.elapsed_seconds(),
                });
            }
            Phase::Ending(ending) => return Err(Refusal::Exporting(ending.step())),
        }
        if self.shared.statistics.server_thread().is_none() {
            return Err(Refusal::ServerThreadUnknown);
        }
        let by = request.requested_by.clone();
        self.order(&mut state, Order::Start(request))?;
        // The worker cannot have looked yet: the lock is held.
        state.phase = Phase::Starting { by, since: now };
        Ok(())
    }

    fn stop(&self, request: StopRequest) -> Result<Ended, Refusal> {
        let mut state = self.shared.state.lock();
        if request.to == Destination::File && state.interrupt_upload(Interrupt::Save) {
            return Ok(Ended::Upload);
        }
        self.end(&mut state, Order::Stop(request))
    }

    fn cancel(&self, by: &Requester) -> Result<Ended, Refusal> {
        let mut state = self.shared.state.lock();
        if state.interrupt_upload(Interrupt::Drop(by.clone())) {
            return Ok(Ended::Upload);
        }
        self.end(&mut state, Order::Cancel(by.clone()))
    }

    fn statistics(&self) -> Statistics {
        self.shared.statistics.snapshot()
    }

    fn toggle_monitor(&self, slow: SlowTicks, by: &Requester) -> MonitorChange {
        self.shared.monitor.toggle(slow, by)
    }

    fn report_health(&self, by: &Requester) -> Result<(), Refusal> {
        let mut state = self.shared.state.lock();
        if state.shutting_down {
            return Err(Refusal::ShuttingDown);
        }
        if state.health_is_made {
            return Err(Refusal::HealthAlready);
        }
        let (shared, by) = (Arc::clone(&self.shared), by.clone());
        let worker = thread::spawn("spark-health", move || health::run(&shared, &by))
            .map_err(|error| Refusal::NoThread(error.to_string()))?;
        *self.health.lock() = Some(worker);
        state.health_is_made = true;
        Ok(())
    }

    fn activity(&self) -> (WallMillis, Vec<PastProfile>) {
        let now = clock::wall();
        (now, self.shared.past.entries(now))
    }

    fn info(&self) -> SessionInfo {
        let (recording, in_background, info) = {
            let state = self.shared.state.lock();
            let recording = match &state.phase {
                Phase::Running(recording) => Some(Arc::clone(recording)),
                Phase::Idle | Phase::Starting { .. } | Phase::Ending(_) => None,
            };
            let info = SessionInfo {
                running: None,
                starting: matches!(state.phase, Phase::Starting { .. }),
                exporting: match &state.phase {
                    Phase::Ending(ending) => Some(ending.step()),
                    _ => None,
                },
                unsaved: state.unsaved.len(),
                background: None,
            };
            (recording, state.background.recording.clone(), info)
        };
        let running = recording.as_ref().and_then(|recording| running_info(recording));
        SessionInfo {
            // A recording that does not answer is being ended at this moment.
            exporting: info
                .exporting
                .or((recording.is_some() && running.is_none()).then_some(ExportStep::Naming)),
            running,
            background: in_background.and_then(|recording| background::info(&recording)),
            ..info
        }
    }
}

fn running_info(recording: &Recording) -> Option<RunningInfo> {
    let figures = recording.figures_now()?;
    let request = recording.request();
    let elapsed_seconds = recording.elapsed_seconds();
    Some(RunningInfo {
        elapsed_seconds,
        samples: figures.sampler.samples,
        lost: figures.sampler.losses.total(),
        interval_micros: request.interval_micros,
        threads: figures.sampler.threads,
        python: figures.python,
        sampler: figures.sampler,
        slow_ticks: request.only_ticks_over_millis.zip(figures.ticks),
        started_by: request.requested_by.clone(),
        timeout_left_seconds: request
            .timeout_seconds
            .map(|limit| limit.saturating_sub(elapsed_seconds)),
    })
}
