//! A session that runs: the sampler, the aggregator and Python attribution, wired together.
//!
//! Order at the start: Python first (the shadow stacks must be ready before a sample looks at them), then the aggregator, then the sampler. At the end
//! the reverse, with one step between: what Python code is called is frozen while monitoring is still on, so that no code object can have
//! died and left its id to another.

use std::time::Duration;

use parking_lot::Mutex;

use std::sync::Arc;

use super::aggregator::{Aggregated, Aggregator};
use super::books::{Books, OnlyTicks};
use super::control::StartRequest;
use super::eras::CodeEras;
use super::intake::Intake;
use super::python::PythonSide;
use super::state::Shared;
use super::tick_watch::TickWatch;
use super::watchdog::{StallNews, Watchdog};
use crate::journal::Feed;
use crate::limits;
use crate::model::{
    CodeId, CodeInfo, MonotonicNanos, PythonDiagnostics, PythonState, RecoveryFigures, Retention, SamplerDiagnostics,
    Stalls, ThreadChoice, TickFigures, Tid,
};
use crate::native::{self, Sampler, SamplerOptions, ThreadSelection};
use crate::profile::{MergeStats, Room, WindowClock};
use crate::shadow::ShadowTable;
use crate::sys::{Deadline, clock};

/// Why there is no Python in a session.
const NO_PYTHON: &str = "switched off by pythonAttribution in config.toml";
/// The same for a background session.
const NO_BACKGROUND_PYTHON: &str =
    "Python functions are not followed in the background (backgroundProfilerPython in config.toml)";

/// Who a session is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// Somebody who has started it and will stop it: nothing is forgotten.
    Asked,
    /// Whoever asks later what the last hour was like.
    Background,
}

impl Purpose {
    pub(super) fn retention(self) -> Retention {
        match self {
            Purpose::Asked => Retention::All,
            Purpose::Background => Retention::Minutes(limits::ENDLESS_MINUTES),
        }
    }
}

/// Why a session did not begin.
#[derive(Debug, thiserror::Error)]
pub(super) enum BeginError {
    /// The sampler could not be armed.
    #[error(transparent)]
    Sampler(#[from] native::StartError),
    /// A thread of ours could not be started.
    #[error("the system allows the server no further thread ({0})")]
    Thread(#[from] std::io::Error),
}

/// Figures of a session at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Figures {
    pub(super) sampler: SamplerDiagnostics,
    pub(super) python: PythonDiagnostics,
    pub(super) merge: MergeStats,
    /// What became of ticks, if only slow ones are kept.
    pub(super) ticks: Option<TickFigures>,
    /// Room that the trees take.
    pub(super) used: Room,
    /// CPU time of the sampler's and the aggregator's threads, in nanoseconds.
    pub(super) own_cpu_nanos: u64,
}

/// What a session leaves behind.
#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) request: StartRequest,
    pub(super) clock: WindowClock,
    pub(super) started_at: MonotonicNanos,
    pub(super) ended_at: MonotonicNanos,
    pub(super) server_thread: Tid,
    pub(super) figures: Figures,
    pub(super) aggregated: Option<Aggregated>,
    pub(super) codes: Vec<(CodeId, CodeInfo)>,
    pub(super) stalls: Stalls,
    /// Set when it was not this process that recorded it.
    pub(super) recovered: Option<Recovered>,
}

/// What is known of a session of a process that is gone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Recovered {
    pub(super) figures: RecoveryFigures,
    /// It ran the program that this process runs.
    pub(super) same_executable: bool,
}

/// The parts that end with the session.
#[derive(Debug)]
struct Parts {
    sampler: Option<Sampler>,
    aggregator: Option<Aggregator>,
    /// Unless its owner wants none.
    watchdog: Option<Watchdog>,
    /// The last figures, once the parts are gone.
    last: Figures,
}

impl Recorded {
    /// Samples that the profile is made of.
    pub(super) fn samples(&self) -> u64 {
        match self.figures.ticks {
            Some(ticks) => ticks.samples_kept,
            None => self.figures.sampler.samples,
        }
    }
}

/// A running session.
#[derive(Debug)]
pub(super) struct Recording {
    request: StartRequest,
    purpose: Purpose,
    server_thread: Tid,
    clock: WindowClock,
    started_at: MonotonicNanos,
    parts: Mutex<Parts>,
    python: Mutex<PythonSide>,
    /// Of the attachments to Python.
    eras: Arc<CodeEras>,
    watch: Arc<TickWatch>,
    /// After which the interpreter is not waited for.
    deadline: Deadline,
    /// Whether the session began before the interpreter had answered.
    python_was_awaited: bool,
    python_loss_told: Mutex<bool>,
    python_doubt_told: Mutex<bool>,
}

impl Recording {
    /// Begins to sample.
    ///
    /// # Errors
    /// The sampler cannot be armed or a thread not be started; everything is as before. Python that cannot be attributed is no error.
    pub(super) fn begin(
        shared: &Shared,
        request: StartRequest,
        purpose: Purpose,
        server_thread: Tid,
        feed: Option<Feed>,
    ) -> Result<Self, BeginError> {
        let (settings, watch) = (&shared.settings, &shared.watch);
        let table = ShadowTable::global();
        let python = match purpose {
            _ if !settings.python_attribution => PythonSide::switched_off(NO_PYTHON),
            Purpose::Background if !settings.background_profiler_python => {
                PythonSide::switched_off(NO_BACKGROUND_PYTHON)
            }
            Purpose::Asked | Purpose::Background => PythonSide::attach(table, &shared.deadline),
        };
        let started_at = clock::monotonic();
        let window_clock = WindowClock::new(started_at, clock::wall());
        let options = SamplerOptions {
            interval_nanos: request.interval_micros * 1_000,
            threads: match &request.threads {
                ThreadChoice::Server => ThreadSelection::Tids(vec![server_thread]),
                ThreadChoice::All => ThreadSelection::All,
                ThreadChoice::Named(names) => ThreadSelection::Named(names.clone()),
            },
            ignore_sleeping: request.ignore_sleeping,
        };
        let watchdog = match settings.stall_seconds {
            0 => None,
            limit => {
                let journal = feed.as_ref().map(Feed::ticks);
                match Watchdog::start(Arc::clone(&shared.statistics), limit, started_at, journal) {
                    Ok(watchdog) => Some(watchdog),
                    Err(error) => {
                        python.end();
                        return Err(error.into());
                    }
                }
            }
        };
        let (only, look) = match request.only_ticks_over_millis {
            None => (None, None),
            Some(millis) => {
                watch.begin();
                let only = OnlyTicks {
                    over_nanos: millis * 1_000_000,
                    since: started_at,
                    watch: Arc::clone(watch),
                };
                let watch = Arc::clone(watch);
                let look: native::Look = Box::new(move || watch.look());
                (Some(only), Some(look))
            }
        };
        let (sampler, source) = match native::start_with_look(options, table, look) {
            Ok(started) => started,
            Err(error) => {
                watch.end();
                python.end();
                return Err(error.into());
            }
        };
        let books = Books::new(window_clock, purpose.retention(), only);
        let eras = Arc::<CodeEras>::default();
        let aggregator = match Aggregator::start(source, Intake::new(books, Arc::clone(&eras)), feed) {
            Ok(aggregator) => aggregator,
            Err(error) => {
                drop(sampler);
                watch.end();
                python.end();
                return Err(error.into());
            }
        };
        Ok(Recording {
            request,
            purpose,
            server_thread,
            clock: window_clock,
            started_at,
            parts: Mutex::new(Parts {
                sampler: Some(sampler),
                aggregator: Some(aggregator),
                watchdog,
                last: Figures::default(),
            }),
            python_was_awaited: python.diagnostics().state == PythonState::Attaching,
            python: Mutex::new(python),
            eras,
            watch: Arc::clone(watch),
            deadline: shared.deadline.clone(),
            python_loss_told: Mutex::new(false),
            python_doubt_told: Mutex::new(false),
        })
    }

    fn python(&self) -> PythonSide {
        self.python.lock().clone()
    }

    /// Attaches to Python anew if most shadow stacks are taken: a thread keeps its own until an attachment ends, also when the thread has ended. Waits for the interpreter as
    /// at the start. What was found stays, under the names it has.
    pub(super) fn renew_python(&self) {
        let python = self.python();
        let before = python.diagnostics();
        if before.state != PythonState::Active || (before.threads as usize) < limits::RENEWED_STACKS {
            return;
        }
        let table = ShadowTable::global();
        // While callbacks go, the stacks are no longer what runs.
        table.distrust();
        let ended = python.end();
        self.eras.end(clock::monotonic(), ended.codes);
        *self.python.lock() = PythonSide::attach(table, &self.deadline);
    }

    /// What was asked for.
    pub(super) fn request(&self) -> &StartRequest {
        &self.request
    }

    /// The session's windows.
    pub(super) fn clock(&self) -> WindowClock {
        self.clock
    }

    /// Which of them are kept.
    pub(super) fn retention(&self) -> Retention {
        self.purpose.retention()
    }

    /// Nanoseconds since the start.
    pub(super) fn elapsed_nanos(&self) -> u64 {
        clock::monotonic().since(self.started_at)
    }

    /// Whole seconds since the start.
    pub(super) fn elapsed_seconds(&self) -> u64 {
        self.elapsed_nanos() / 1_000_000_000
    }

    /// Lets Python go; sampling goes on, and what was found stays.
    pub(super) fn end_python(&self) {
        self.python().end();
    }

    /// Time until the session is to end by itself, if it is.
    pub(super) fn time_left(&self) -> Option<Duration> {
        let limit = Duration::from_secs(self.request.timeout_seconds?);
        let elapsed = Duration::from_nanos(clock::monotonic().since(self.started_at));
        Some(limit.saturating_sub(elapsed))
    }

    /// True when another library has replaced our signal handler.
    pub(super) fn is_displaced(&self) -> bool {
        self.parts.lock().sampler.as_ref().is_some_and(Sampler::is_displaced)
    }

    /// Whether a part of it has ended by a bug of ours; it should end, too.
    pub(super) fn has_failed(&self) -> bool {
        let parts = self.parts.lock();
        parts.sampler.as_ref().is_some_and(Sampler::has_failed)
            || parts.aggregator.as_ref().is_some_and(Aggregator::has_failed)
            || parts.watchdog.as_ref().is_some_and(Watchdog::has_failed)
            || self.python().has_failed()
    }

    /// A stall that is over, if one is to be told of now.
    pub(super) fn stall_to_tell(&self) -> Option<StallNews> {
        let parts = self.parts.try_lock()?;
        parts.watchdog.as_ref()?.news(clock::monotonic())
    }

    /// Why Python frames are no longer recorded, the first time it is asked after that happened.
    pub(super) fn python_loss_to_tell(&self) -> Option<String> {
        let why = match self.python().diagnostics().state {
            PythonState::Degraded(why) => why,
            // It was promised at the start.
            PythonState::Unsupported(why) if self.python_was_awaited => why,
            _ => return None,
        };
        let told = std::mem::replace(&mut *self.python_loss_told.lock(), true);
        (!told).then_some(why)
    }

    /// To be called about once a second: see [`PythonSide::look_after`].
    pub(super) fn look_after(&self) {
        self.python().look_after();
    }

    /// How many Python frames were wrong, the first time it is asked after an audit found some.
    pub(super) fn python_doubt_to_tell(&self) -> Option<u64> {
        let audits = self.python().diagnostics().audits;
        if audits.disagreed == 0 {
            return None;
        }
        let told = std::mem::replace(&mut *self.python_doubt_told.lock(), true);
        (!told).then_some(audits.wrong_frames)
    }

    /// Figures up to now, or those of the end.
    pub(super) fn figures(&self) -> Figures {
        self.figures_of(&self.parts.lock())
    }

    /// The same without ever waiting; `None` while the session is being ended.
    pub(super) fn figures_now(&self) -> Option<Figures> {
        self.parts.try_lock().map(|parts| self.figures_of(&parts))
    }

    fn figures_of(&self, parts: &Parts) -> Figures {
        let (Some(sampler), Some(aggregator)) = (&parts.sampler, &parts.aggregator) else {
            return parts.last.clone();
        };
        let merged = aggregator.figures();
        let mut diagnostics = sampler.figures();
        merged.complete(&mut diagnostics);
        Figures {
            sampler: diagnostics,
            python: self.python().diagnostics(),
            merge: merged.merge,
            ticks: merged.ticks,
            used: merged.used,
            own_cpu_nanos: sampler.cpu_nanos() + aggregator.cpu_nanos(),
        }
    }

    /// All that it has found so far; it goes on. `None` when it is being ended.
    pub(super) fn copy(&self) -> Option<Recorded> {
        let parts = self.parts.lock();
        let aggregated = parts.aggregator.as_ref()?.copy()?;
        let (figures, codes) = (self.figures_of(&parts), self.python().codes());
        let stalls = parts.watchdog.as_ref().map(Watchdog::stalls);
        Some(self.recorded(clock::monotonic(), figures, Some(aggregated), codes, stalls))
    }

    fn recorded(
        &self,
        ended_at: MonotonicNanos,
        figures: Figures,
        aggregated: Option<Aggregated>,
        codes: Vec<(CodeId, CodeInfo)>,
        stalls: Option<Stalls>,
    ) -> Recorded {
        Recorded {
            request: self.request.clone(),
            clock: self.clock,
            started_at: self.started_at,
            ended_at,
            server_thread: self.server_thread,
            figures,
            aggregated,
            codes: self.eras.all(codes),
            stalls: stalls.unwrap_or_default(),
            recovered: None,
        }
    }

    /// Waits for the end of the tick that runs, where only slow ones are kept: it may be the one that was waited for. At most [`limits::LAST_TICK_MILLIS`], and as long as
    /// `goes_on` says so.
    pub(super) fn wait_for_tick(&self, goes_on: impl Fn() -> bool) {
        if self.request.only_ticks_over_millis.is_some() {
            self.watch
                .wait_for_end(Duration::from_millis(limits::LAST_TICK_MILLIS), goes_on);
        }
    }

    /// Lets Python go from the calling thread if nobody else could, see [`PythonSide::end_if_lock_is_held_here`].
    pub(super) fn release_python_here(&self) {
        self.python().end_if_lock_is_held_here();
    }

    /// Ends sampling and puts everything back as it was. The second call returns an empty result.
    pub(super) fn finish(&self) -> Recorded {
        let mut parts = self.parts.lock();
        let mut last = self.figures_of(&parts);
        if let Some(millis) = self.request.only_ticks_over_millis {
            // Before the aggregator looks for the last time.
            self.watch.cut(clock::monotonic(), millis * 1_000_000);
        }
        if let Some(mut sampler) = parts.sampler.take() {
            sampler.stop();
            last.sampler = sampler.figures();
        }
        let ended_at = clock::monotonic();
        let stalls = parts.watchdog.take().map(|watchdog| watchdog.stalls());
        let aggregated = parts.aggregator.take().and_then(|aggregator| {
            let (merged, aggregated) = aggregator.finish();
            merged.complete(&mut last.sampler);
            last.merge = merged.merge;
            last.ticks = merged.ticks;
            aggregated
        });
        self.watch.end();
        let python = self.python().end();
        last.python = python.diagnostics;
        parts.last = last.clone();
        self.recorded(ended_at, last, aggregated, python.codes, stalls)
    }
}
