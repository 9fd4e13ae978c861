//! What a profile or a report says of the server.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::interpreter::Question;
use super::state::Shared;
use super::world::Ticket;
use crate::export::ServerReport;
use crate::limits;
use crate::model::{MonotonicNanos, Statistics, WindowStatistics};
use crate::settings::server_properties;
use crate::sys::{Machine, clock};

/// The game's own settings, in the server's folder.
const PROPERTIES: &str = "server.properties";

/// Said where the server thread answered nothing.
const NO_TICK: &str = "not looked at: the server did not tick for two seconds";

/// Whole minutes that a report shows: those of the statistics' history.
const HISTORY_MINUTES: u64 = 14;

/// What was asked of the server thread, as early as possible: it needs some ticks to answer.
#[derive(Debug)]
pub(super) struct Inquiry {
    world: Option<Ticket>,
}

impl Inquiry {
    /// Asks for the world. A server that is being stopped ticks no more: it is not asked.
    pub(super) fn begin(shared: &Shared) -> Self {
        let goes_on = !shared.state.lock().shutting_down;
        Inquiry {
            world: goes_on.then(|| shared.world.ask()),
        }
    }

    /// Waits for the answer, as long as the plugin is not being disabled, and puts the rest to it. Asks the interpreter, which runs Python code: to be called when no
    /// session follows it any more. One that may hold the interpreter's lock because it is being stopped is not asked. Reads files.
    pub(super) fn end(self, shared: &Shared) -> ServerReport {
        let python = self.world.is_some().then(Question::ask);
        let still = Stillness::new(shared);
        let world = self.world.and_then(|ticket| {
            shared
                .world
                .wait(ticket, || !shared.state.lock().shutting_down && !still.is_too_long())
        });
        let python = match python {
            Some(question) => question.answer(&shared.deadline),
            None => crate::python::interpreter_unasked("the server is being stopped"),
        };
        let statistics = complete(shared);
        let environment = shared.environment.lock().clone();
        // The plugin's folder is `plugins/spark` in the server's.
        let folder = shared.folder.ancestors().nth(2).unwrap_or(&shared.folder);
        ServerReport {
            endstone_version: environment.server_version,
            minecraft_version: environment.minecraft_version,
            brand: environment.server_name,
            machine: Machine::read(),
            statistics: Some(statistics),
            world_problem: (world.is_none() && still.is_too_long()).then_some(NO_TICK),
            world: world.map(|world| (*world).clone()),
            python,
            properties: server_properties(&folder.join(PROPERTIES)),
        }
    }
}

/// How long the server has not ticked.
struct Stillness<'a> {
    shared: &'a Shared,
    /// The last tick, and when it was first seen.
    last: Cell<(u64, Instant)>,
}

impl<'a> Stillness<'a> {
    fn new(shared: &'a Shared) -> Self {
        Stillness {
            shared,
            last: Cell::new((shared.statistics.tick_number(), Instant::now())),
        }
    }

    /// Whether it answers no question that is worth waiting for.
    fn is_too_long(&self) -> bool {
        let (number, since) = self.last.get();
        let newest = self.shared.statistics.tick_number();
        if newest != number {
            self.last.set((newest, Instant::now()));
            return false;
        }
        since.elapsed() >= Duration::from_millis(limits::STILL_SERVER_MILLIS)
    }
}

/// The server's last minutes. In the first seconds of a server, waits until the kernel has been asked for the second time: shares of processors are known only
/// then, and without them the viewer could not show the rest.
fn complete(shared: &Shared) -> Statistics {
    let end = Instant::now() + Duration::from_millis(limits::FIRST_READING_MILLIS);
    loop {
        let statistics = shared.statistics.snapshot();
        // Nobody asks it where its memory is not known.
        let is_complete = statistics.cpu.system.last_1m.is_some() || statistics.memory.process_resident_bytes.is_none();
        let left = end.saturating_duration_since(Instant::now());
        let mut state = shared.state.lock();
        if is_complete || state.shutting_down || left.is_zero() {
            return statistics;
        }
        let look = left.min(Duration::from_millis(limits::UPLOAD_LOOK_MILLIS));
        shared.wake.wait_for(&mut state, look);
    }
}

/// The last quarter of an hour, by minutes since the Unix epoch, oldest first; the running minute is the last.
pub(super) fn last_minutes(shared: &Shared) -> Vec<(i64, WindowStatistics)> {
    let (now, wall) = (clock::monotonic(), clock::wall());
    let into_minute = wall.0.rem_euclid(60_000).unsigned_abs() * 1_000_000;
    let minute = wall.0.div_euclid(60_000);
    let starts = (0..=HISTORY_MINUTES).rev().filter_map(|ago| {
        let start = now.0.checked_sub(into_minute + ago * limits::WINDOW_NANOS)?;
        Some((minute - ago as i64, MonotonicNanos(start)))
    });
    starts
        .map(|(minute, start)| {
            let end = MonotonicNanos(start.0.saturating_add(limits::WINDOW_NANOS));
            (minute, shared.statistics.window(start, end, now))
        })
        .collect()
}
