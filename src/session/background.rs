//! The background profiler: a session that nobody has started, which keeps the last hour.
//!
//! It runs whenever no other session does: from the server's first tick on, and again after each session that somebody asked for. (The native side can sample for
//! one session at a time.) It is never saved by itself: `profiler stop` makes a profile of a copy of what it has, and it goes on meanwhile. At the plugin's end
//! it is dropped. It has a journal like any session, so that a crash, which nobody can have foreseen, leaves its last hour to the next start.
//!
//! What goes wrong is told once: a server whose `SIGPROF` is taken should not hear of it after every profile.

use std::sync::Arc;

use super::control::{BackgroundInfo, Notice, Requester, StartRequest};
use super::recording::{Purpose, Recording};
use super::state::{Phase, Shared};
use crate::limits;
use crate::model::{EventCounts, PythonState};
use crate::settings::Settings;
use crate::sys::clock;

/// Memory of one frame of a call tree and of one of its times, in bytes.
const NODE_BYTES: usize = 70;
const TIME_BYTES: usize = 16;

/// What is remembered of it.
#[derive(Debug, Default)]
pub(super) struct Background {
    /// The session, while it runs.
    pub(super) recording: Option<Arc<Recording>>,
    /// It does not come back in this run, and the reason was told.
    given_up: bool,
    /// That a crash would lose it was told.
    no_journal_told: bool,
    /// Python was switched off for its cost, and that was told.
    python_given_up: bool,
    /// Events when callbacks were looked at last, and second of the session.
    looked: (u64, u64),
}

pub(super) fn request(settings: &Settings) -> StartRequest {
    StartRequest::new(settings.background_profiler_interval * 1_000, Requester::Console)
}

/// Begins it, unless it is not wanted or cannot be now. On the worker.
pub(super) fn begin(shared: &Shared) {
    if !shared.settings.background_profiler {
        return;
    }
    let Some(server_thread) = shared.statistics.server_thread() else {
        return;
    };
    {
        let state = shared.state.lock();
        let background = &state.background;
        if state.shutting_down || background.given_up || background.recording.is_some() {
            return;
        }
        if !matches!(state.phase, Phase::Idle) || !state.orders.is_empty() {
            // Somebody wants a session: it comes after that.
            return;
        }
    }
    let request = request(&shared.settings);
    let environment = shared.environment.lock().clone();
    let feed = shared
        .journaling
        .begin(&request, Purpose::Background, server_thread, &environment);
    let begun = Recording::begin(shared, request, Purpose::Background, server_thread, feed);
    match begun {
        Ok(recording) => {
            shared.ticks.begin(recording.clock(), recording.retention());
            shared.world.begin(recording.clock(), recording.retention());
            let background = &mut shared.state.lock().background;
            background.looked = (0, 0);
            background.recording = Some(Arc::new(recording));
        }
        Err(error) => {
            shared.journaling.cancel();
            give_up(shared, error.to_string());
        }
    }
}

/// Ends it, if it runs; what it has is dropped. On the worker.
pub(super) fn end(shared: &Shared) {
    let recording = shared.state.lock().background.recording.take();
    if let Some(recording) = recording {
        drop(recording.finish());
        shared.journaling.cancel();
        shared.ticks.end(clock::monotonic());
        shared.world.end();
    }
}

/// Ends it for this run of the server, and tells why.
pub(super) fn give_up(shared: &Shared, why: String) {
    end(shared);
    let given_up = std::mem::replace(&mut shared.state.lock().background.given_up, true);
    if !given_up {
        shared.send(&Requester::Console, Notice::BackgroundStopped(why));
    }
}

/// To be called about once a second.
pub(super) fn look_after(shared: &Shared, recording: &Recording) {
    recording.look_after();
    shared.ticks.look_after(clock::monotonic());
    recording.renew_python();
    if let Some(news) = recording.stall_to_tell() {
        shared.send(&Requester::Console, Notice::stalled(news, true));
    }
    if let Some(why) = shared.journaling.problem_to_tell() {
        let told = std::mem::replace(&mut shared.state.lock().background.no_journal_told, true);
        if !told {
            shared.send(&Requester::Console, Notice::NoBackgroundJournal(why));
        }
    }
    let figures = recording.figures();
    if figures.python.state != PythonState::Active {
        return;
    }
    let (events, second) = (total(&figures.python.events), recording.elapsed_seconds());
    let (events_before, second_before) = shared.state.lock().background.looked;
    let seconds = second.saturating_sub(second_before);
    if seconds < limits::BACKGROUND_CALLBACK_SECONDS {
        return;
    }
    shared.state.lock().background.looked = (events, second);
    let nanos = events.saturating_sub(events_before) * limits::CALLBACK_NANOS;
    if nanos <= seconds * 1_000_000 * limits::BACKGROUND_CALLBACK_PERMILLE {
        return;
    }
    recording.end_python();
    let told = std::mem::replace(&mut shared.state.lock().background.python_given_up, true);
    if !told {
        let per_mille = nanos / (seconds * 1_000_000);
        shared.send(&Requester::Console, Notice::BackgroundPythonOff { per_mille });
    }
}

fn total(events: &EventCounts) -> u64 {
    events.start + events.resume + events.throw + events.ret + events.yielded + events.unwind
}

/// How it is doing; `None` while it is being ended.
pub(super) fn info(recording: &Recording) -> Option<BackgroundInfo> {
    let figures = recording.figures_now()?;
    let seconds = recording.elapsed_seconds();
    let kept_seconds = seconds.min(u64::from(limits::ENDLESS_MINUTES) * 60);
    Some(BackgroundInfo {
        kept_seconds,
        samples: figures.sampler.samples,
        interval_micros: recording.request().interval_micros,
        python: figures.python.state,
        elapsed_nanos: recording.elapsed_nanos(),
        own_nanos: figures.own_cpu_nanos,
        server_nanos: figures.sampler.handler_total_nanos,
        bytes: (figures.used.nodes * NODE_BYTES + figures.used.times * TIME_BYTES) as u64,
    })
}
