//! The worker: carries out orders one after the other, looks after a running session, and goes when there is nothing left to do.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Duration;

use super::background;
use super::control::{Destination, Notice, Requester, StartRequest, StopRequest};
use super::recording::{Purpose, Recorded, Recording};
use super::report::{self, Windows};
use super::server::Inquiry;
use super::state::{Ending, Order, Phase, Shared};
use super::unsaved::Unsaved;
use super::upload::{self, Sent};
use crate::export::Kind;
use crate::limits;
use crate::model::{PastKind, PastProfile, ProfilePlace, clean_text};
use crate::sys::{clock, fault};

/// How often a running session is looked after.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// Told when the worker failed.
const PANICKED: &str = "an internal error of the profiler; the server is not affected. Please report it with the text on the server's error output";

/// Told when the call trees of a session are gone.
const LOST: &str = "what was put together of it is lost by an internal error";

/// Told when our signal handler was replaced during a session.
const DISPLACED: &str =
    "another library has taken over the SIGPROF signal, so no more samples can be taken; what was sampled is saved";

/// The same for the background profiler.
const DISPLACED_BACKGROUND: &str = "another library has taken over the SIGPROF signal, so no more samples can be taken";

/// Why the worker woke.
enum Wake {
    Order(Order),
    TimeUp(Arc<Recording>),
    Displaced(Arc<Recording>),
    Failed(Arc<Recording>),
    BackgroundFailed,
    PythonLost(Requester, String),
    PythonDoubted(Requester, u64),
    Background(Arc<Recording>),
    BackgroundDisplaced,
    NoJournal(Requester, String),
    ShutDown,
    BackgroundShutDown,
    NothingLeft,
}

/// Runs until there is nothing left to do.
pub(super) fn run(shared: &Shared) {
    // What a panic left half done is dropped with the phase: signals and monitoring are restored by the parts' own Drop.
    if panic::catch_unwind(AssertUnwindSafe(|| work(shared))).is_err() {
        let by = {
            let mut state = shared.state.lock();
            let by = match std::mem::take(&mut state.phase) {
                Phase::Starting { by, .. } => by,
                Phase::Running(recording) => recording.request().requested_by.clone(),
                Phase::Idle | Phase::Ending(_) => Requester::Console,
            };
            state.orders.clear();
            state.interrupt = None;
            state.has_worker = false;
            state.background.recording = None;
            by
        };
        shared.ticks.end(clock::monotonic());
        shared.world.end();
        // What is on disk stays there for the next start.
        drop(shared.journaling.take());
        shared.send(&by, Notice::Stopped(PANICKED.to_owned()));
    }
}

fn work(shared: &Shared) {
    loop {
        background::begin(shared);
        match next(shared) {
            Wake::Order(Order::Background) => {}
            Wake::Background(recording) => background::look_after(shared, &recording),
            Wake::BackgroundDisplaced => background::give_up(shared, DISPLACED_BACKGROUND.to_owned()),
            Wake::BackgroundFailed => background::give_up(shared, PANICKED.to_owned()),
            Wake::BackgroundShutDown => background::end(shared),
            Wake::Order(Order::Start(request)) => start(shared, request),
            Wake::Order(Order::Stop(request)) => stop(shared, &request),
            Wake::Order(Order::Cancel(by)) => cancel(shared, &by),
            Wake::TimeUp(recording) => end(shared, &recording.request().requested_by, Some(Notice::TimedOut)),
            Wake::Displaced(recording) => {
                end(
                    shared,
                    &recording.request().requested_by,
                    Some(Notice::Stopped(DISPLACED.to_owned())),
                );
            }
            Wake::Failed(recording) => {
                let by = &recording.request().requested_by;
                end(shared, by, Some(Notice::Stopped(PANICKED.to_owned())));
            }
            Wake::PythonDoubted(by, frames) => shared.send(&by, Notice::PythonDoubted(frames)),
            Wake::NoJournal(by, why) => shared.send(&by, Notice::NoJournal(why)),
            Wake::PythonLost(by, why) => shared.send(&by, Notice::PythonLost(why)),
            Wake::ShutDown => end(shared, &Requester::Console, None),
            Wake::NothingLeft => return,
        }
    }
}

/// Ends a session that nobody asked to end.
fn end(shared: &Shared, by: &Requester, why: Option<Notice>) {
    if let Some(why) = why {
        shared.send(by, why);
    }
    stop(shared, &StopRequest::by_itself(by.clone()));
}

fn next(shared: &Shared) -> Wake {
    let mut state = shared.state.lock();
    loop {
        fault::point("worker");
        if let Some(order) = state.orders.pop_front() {
            return Wake::Order(order);
        }
        let Phase::Running(recording) = &state.phase else {
            let Some(recording) = state.background.recording.clone() else {
                state.has_worker = false;
                return Wake::NothingLeft;
            };
            if state.shutting_down {
                return Wake::BackgroundShutDown;
            }
            if std::mem::take(&mut state.has_failed) || recording.has_failed() || shared.journaling.has_failed() {
                return Wake::BackgroundFailed;
            }
            if recording.is_displaced() {
                return Wake::BackgroundDisplaced;
            }
            shared.wake.wait_for(&mut state, LOOK_AFTER);
            if state.orders.is_empty() && !state.shutting_down {
                return Wake::Background(recording);
            }
            continue;
        };
        if state.shutting_down {
            return Wake::ShutDown;
        }
        let left = recording.time_left().unwrap_or(LOOK_AFTER);
        if left.is_zero() {
            return Wake::TimeUp(Arc::clone(recording));
        }
        if state.has_failed || recording.has_failed() || shared.journaling.has_failed() {
            return Wake::Failed(Arc::clone(recording));
        }
        if recording.is_displaced() {
            return Wake::Displaced(Arc::clone(recording));
        }
        recording.look_after();
        if let Some(news) = recording.stall_to_tell() {
            shared.send(&Requester::Console, Notice::stalled(news, false));
        }
        shared.ticks.look_after(clock::monotonic());
        if let Some(frames) = recording.python_doubt_to_tell() {
            return Wake::PythonDoubted(recording.request().requested_by.clone(), frames);
        }
        if let Some(why) = recording.python_loss_to_tell() {
            return Wake::PythonLost(recording.request().requested_by.clone(), why);
        }
        if let Some(why) = shared.journaling.problem_to_tell() {
            return Wake::NoJournal(recording.request().requested_by.clone(), why);
        }
        shared.wake.wait_for(&mut state, left.min(LOOK_AFTER));
    }
}

fn start(shared: &Shared, request: StartRequest) {
    let by = request.requested_by.clone();
    // What failed before it began is none of its business.
    shared.state.lock().has_failed = false;
    let Some(server_thread) = shared.statistics.server_thread() else {
        shared.state.lock().phase = Phase::Idle;
        shared.send(&by, Notice::StartFailed("the server has not ticked yet".to_owned()));
        return;
    };
    background::end(shared);
    let feed = shared.journaling.begin(
        &request,
        Purpose::Asked,
        server_thread,
        &shared.environment.lock().clone(),
    );
    match Recording::begin(shared, request, Purpose::Asked, server_thread, feed) {
        Ok(recording) => {
            shared.ticks.begin(recording.clock(), recording.retention());
            shared.world.begin(recording.clock(), recording.retention());
            let figures = recording.figures();
            let notice = Notice::Started {
                interval_micros: recording.request().interval_micros,
                threads: figures.sampler.threads,
                python: figures.python.state,
            };
            shared.state.lock().phase = Phase::Running(Arc::new(recording));
            shared.send(&by, notice);
        }
        Err(error) => {
            shared.journaling.cancel();
            shared.state.lock().phase = Phase::Idle;
            shared.send(&by, Notice::StartFailed(error.to_string()));
        }
    }
}

/// What there is to end.
enum ToEnd {
    Session(Arc<Recording>),
    /// Nothing: it goes on.
    Background(Arc<Recording>),
    Unsaved,
}

/// Takes what is to be ended out of the state; `None` when there is nothing (a start that failed was told already).
fn take(shared: &Shared) -> Option<ToEnd> {
    let mut state = shared.state.lock();
    state.has_failed = false;
    let ending = match std::mem::take(&mut state.phase) {
        Phase::Running(recording) => ToEnd::Session(recording),
        _ if !state.unsaved.is_empty() => ToEnd::Unsaved,
        _ => ToEnd::Background(state.background.recording.clone()?),
    };
    state.phase = Phase::Ending(Ending::Naming);
    Some(ending)
}

/// Makes a profile, and says what is to be said of it.
fn make(shared: &Shared, request: &StopRequest, recorded: Recorded, windows: Windows, inquiry: Inquiry) -> Unsaved {
    let by = &request.requested_by;
    shared.send(
        by,
        Notice::Exporting {
            samples: recorded.samples(),
        },
    );
    if let (Some(over_millis), Some(ticks)) = (recorded.request.only_ticks_over_millis, recorded.figures.ticks) {
        shared.send(by, Notice::SlowTicks { over_millis, ticks });
    }
    let environment = shared.environment.lock().clone();
    let server = inquiry.end(shared);
    let comment = request.comment.clone();
    let made = report::make(
        recorded,
        windows,
        &environment,
        server,
        &shared.settings,
        comment,
        &shared.names_until,
    );
    if made.folded > 0 {
        shared.send(by, Notice::Folded { frames: made.folded });
    }
    made
}

fn stop(shared: &Shared, request: &StopRequest) {
    let by = &request.requested_by;
    let new = match take(shared) {
        Some(ToEnd::Session(recording)) => {
            // Asked before anything else: the answers need some ticks.
            let inquiry = Inquiry::begin(shared);
            recording.wait_for_tick(|| !shared.state.lock().shutting_down);
            let recorded = recording.finish();
            let windows = Windows {
                ticks: shared.ticks.end(recorded.ended_at),
                counts: shared.world.end(),
            };
            let journal = shared.journaling.take();
            if recorded.aggregated.is_none() {
                // A bug of ours. The journal is left for the next start.
                shared.state.lock().phase = Phase::Idle;
                return shared.send(
                    by,
                    Notice::SaveFailed {
                        reason: LOST.to_owned(),
                        kept: 0,
                        dropped: false,
                        recoverable: journal.is_some(),
                    },
                );
            }
            if let Some(why) = recording.python_loss_to_tell() {
                shared.send(by, Notice::PythonLost(why));
            }
            let mut made = make(shared, request, recorded, windows, inquiry);
            made.journal = journal.map(Box::new);
            Some(made)
        }
        Some(ToEnd::Background(recording)) => {
            let inquiry = Inquiry::begin(shared);
            let Some(mut recorded) = recording.copy() else {
                shared.state.lock().phase = Phase::Idle;
                return;
            };
            recorded.request.requested_by = by.clone();
            let windows = Windows {
                ticks: shared.ticks.copy(recorded.ended_at),
                counts: shared.world.counts(),
            };
            let mut made = make(shared, request, recorded, windows, inquiry);
            made.kind = PastKind::Background;
            Some(made)
        }
        Some(ToEnd::Unsaved) => None,
        None => return,
    };
    let mut waiting = std::mem::take(&mut shared.state.lock().unsaved);
    let kept = waiting.len();
    if let (None, Some(comment)) = (&new, &request.comment) {
        // Without a session it is about those that are kept.
        waiting.iter_mut().for_each(|profile| profile.comment(comment));
    }
    waiting.extend(new);
    for (number, profile) in waiting.iter_mut().enumerate() {
        // `upload` decides for good only about the session that it ends. One from before that it fails to send is for a file as ever.
        profile.for_file = match request.to {
            Destination::File => true,
            Destination::Server if number >= kept => false,
            Destination::Server | Destination::AsStarted => profile.for_file,
        };
    }
    let waiting = upload(shared, request, waiting, kept);
    let last = save(shared, by, waiting);
    shared.state.lock().phase = Phase::Idle;
    if let Some(notice) = last {
        shared.send(by, notice);
    }
}

/// Uploads the profiles that are meant for it, oldest first, and gives back those that are to be saved: the others, and those that did not arrive. When the reason is
/// no matter of the one profile, those after it are not tried: they would not arrive either. The first `kept` are from before this session.
fn upload(shared: &Shared, request: &StopRequest, waiting: Vec<Unsaved>, kept: usize) -> Vec<Unsaved> {
    let by = &request.requested_by;
    let mut left = Vec::new();
    let mut goes_on = true;
    let mut waiting = waiting.into_iter().enumerate();
    while let Some((_, mut next)) = waiting.next() {
        goes_on = goes_on && !shared.state.lock().shutting_down;
        if !goes_on || !next.is_to_upload(request.to) {
            left.push(next);
            continue;
        }
        match upload::send(shared, by, &next) {
            Sent::Done(link) => {
                remember(shared, by, &next, ProfilePlace::Link(link.clone()));
                next.discard_journal();
                shared.send(by, Notice::Uploaded { link });
            }
            Sent::Failed(failure) => {
                shared.send(by, Notice::UploadFailed { reason: failure.reason });
                goes_on = failure.others_may_arrive;
                left.push(next);
            }
            Sent::Instead => {
                // The rest too: who asks for a file means the session just ended, whichever profile was on its way.
                next.for_file = true;
                left.push(next);
                left.extend(waiting.map(|(_, other)| Unsaved {
                    for_file: true,
                    ..other
                }));
                return left;
            }
            Sent::Dropped(by) => {
                // This one goes, and the one of the session that was ended; nothing was said of the others.
                next.discard_journal();
                for (other, mut profile) in waiting {
                    if other < kept {
                        left.push(profile);
                    } else {
                        profile.discard_journal();
                    }
                }
                shared.send(&by, Notice::Cancelled);
                let mut state = shared.state.lock();
                if state.shutting_down {
                    // The last chance to write them.
                    return left;
                }
                state.unsaved = left;
                return Vec::new();
            }
        }
    }
    left
}

/// Adds a profile to the list of past ones.
pub(super) fn remember(shared: &Shared, by: &Requester, profile: &Unsaved, place: ProfilePlace) {
    let now = clock::wall();
    let entry = PastProfile {
        time: now.0,
        user: clean_text(&profile.user, limits::NAME_CHARS),
        kind: profile.kind,
        seconds: profile.seconds,
        samples: profile.samples,
        place,
    };
    shared.list(by, entry, now);
}

/// Writes profiles, oldest first. From the first that cannot be written on they are kept, and it is told why. What is to be said in the end is given back, to
/// be said when nothing is in the way of another session any more: who reads it may ask for one at once.
#[must_use]
fn save(shared: &Shared, by: &Requester, waiting: Vec<Unsaved>) -> Option<Notice> {
    if waiting.is_empty() {
        return None;
    }
    let mut last = None;
    shared.state.lock().phase = Phase::Ending(Ending::Writing);
    let mut waiting = waiting.into_iter();
    while let Some(next) = waiting.next() {
        shared.send(by, Notice::Writing);
        match report::save(&shared.folder, next, Kind::Asked, &shared.settings) {
            Ok(mut saved) => {
                remember(shared, by, &saved.profile, ProfilePlace::File(saved.place()));
                if saved.profile.is_named {
                    saved.profile.discard_journal();
                } else if saved.profile.journal.take().is_some() {
                    // What was kept of it stays for the next start, which has the time.
                    shared.send(by, Notice::Unnamed);
                }
                if let Some(removal) = saved.removal.take() {
                    shared.send(by, removal);
                }
                if let Some(before) = last.replace(saved.notice(&shared.settings.viewer)) {
                    shared.send(by, before);
                }
            }
            Err(failed) => {
                let mut kept: Vec<Unsaved> = std::iter::once(failed.unsaved).chain(waiting).collect();
                let excess = kept.len().saturating_sub(limits::UNSAVED_PROFILES);
                kept.drain(..excess);
                let mut state = shared.state.lock();
                // Nobody asks again after the plugin's end.
                let number = if state.shutting_down { 0 } else { kept.len() };
                state.unsaved = kept;
                drop(state);
                if let Some(before) = last {
                    shared.send(by, before);
                }
                return Some(Notice::SaveFailed {
                    reason: failed.reason,
                    kept: number,
                    dropped: excess > 0,
                    recoverable: shared.journaling.is_on(),
                });
            }
        }
    }
    last
}

fn cancel(shared: &Shared, by: &Requester) {
    match take(shared) {
        Some(ToEnd::Session(recording)) => {
            drop(recording.finish());
            shared.ticks.end(clock::monotonic());
            shared.world.end();
            shared.journaling.cancel();
        }
        Some(ToEnd::Unsaved) => {
            let waiting = std::mem::take(&mut shared.state.lock().unsaved);
            waiting.into_iter().for_each(|mut profile| profile.discard_journal());
        }
        // What was to be cancelled has never begun.
        Some(ToEnd::Background(_)) => {
            shared.state.lock().phase = Phase::Idle;
            return;
        }
        None => return,
    }
    shared.state.lock().phase = Phase::Idle;
    shared.send(by, Notice::Cancelled);
}
