//! Where sessions and reports ask for a look at the world, and the server thread leaves what it saw.
//!
//! The server thread looks only when somebody wants to know: at the end of a session, for a health report, and once in every minute of a session for its counts.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::limits;
use crate::model::{MonotonicNanos, Retention, World, WorldCounts};
use crate::profile::WindowClock;

/// What the server thread is to look at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Survey {
    /// Everything.
    Whole,
    /// How much there is.
    Counts,
}

/// The desk.
#[derive(Debug, Default)]
pub struct WorldDesk {
    state: Mutex<State>,
    delivered: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// How often the world was delivered; even when there was none.
    deliveries: u64,
    /// Up to which delivery somebody waits.
    wanted: u64,
    world: Option<Arc<World>>,
    counting: Option<Counting>,
}

/// The counts of a session.
#[derive(Debug)]
struct Counting {
    clock: WindowClock,
    retention: Retention,
    windows: VecDeque<(u32, WorldCounts)>,
}

/// A place in the queue for a look at the world.
#[derive(Clone, Copy, Debug)]
pub struct Ticket(u64);

impl WorldDesk {
    /// What is to be looked at now. On the server thread, once a tick.
    pub fn wanted(&self, now: MonotonicNanos) -> Option<Survey> {
        let state = self.state.lock();
        if state.wanted > state.deliveries {
            return Some(Survey::Whole);
        }
        let counting = state.counting.as_ref()?;
        let window = counting.clock.window_at(now);
        let is_counted = counting.windows.back().is_some_and(|(last, _)| *last >= window);
        (!is_counted).then_some(Survey::Counts)
    }

    /// Takes a whole look; `None` when no world is loaded or it cannot be looked at.
    pub fn deliver(&self, world: Option<World>) {
        let mut state = self.state.lock();
        state.deliveries += 1;
        state.world = world.map(Arc::new);
        self.delivered.notify_all();
    }

    /// Takes the counts of this moment.
    pub fn count(&self, now: MonotonicNanos, counts: WorldCounts) {
        let mut state = self.state.lock();
        let Some(counting) = &mut state.counting else { return };
        let window = counting.clock.window_at(now);
        if counting.windows.back().is_some_and(|(last, _)| *last >= window) {
            return;
        }
        let oldest = counting.retention.oldest(window);
        while counting.windows.front().is_some_and(|(first, _)| *first < oldest)
            || counting.windows.len() >= limits::COUNTED_MINUTES
        {
            counting.windows.pop_front();
        }
        counting.windows.push_back((window, counts));
    }

    /// Asks for a look. One that is on its way will do.
    pub fn ask(&self) -> Ticket {
        let mut state = self.state.lock();
        state.wanted = state.deliveries + 1;
        Ticket(state.wanted)
    }

    /// Waits for the look that was asked for, at most [`limits::SURVEY_WAIT_MILLIS`] and as long as `goes_on` says so. `None` when there is no world, or the server did
    /// not tick in that time.
    pub(super) fn wait(&self, ticket: Ticket, goes_on: impl Fn() -> bool) -> Option<Arc<World>> {
        let end = Instant::now() + Duration::from_millis(limits::SURVEY_WAIT_MILLIS);
        let mut state = self.state.lock();
        while state.deliveries < ticket.0 {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                // Nobody waits any more; another who still does asks for no less.
                return None;
            }
            let look = left.min(Duration::from_millis(limits::UPLOAD_LOOK_MILLIS));
            self.delivered.wait_for(&mut state, look);
            if !parking_lot::MutexGuard::unlocked(&mut state, &goes_on) {
                return None;
            }
        }
        state.world.clone()
    }

    /// Begins to count for a session.
    pub(super) fn begin(&self, clock: WindowClock, retention: Retention) {
        self.state.lock().counting = Some(Counting {
            clock,
            retention,
            windows: VecDeque::new(),
        });
    }

    /// The counts so far, by window.
    pub(super) fn counts(&self) -> Vec<(u32, WorldCounts)> {
        let state = self.state.lock();
        let counting = state.counting.as_ref();
        counting.map_or_else(Vec::new, |counting| counting.windows.iter().copied().collect())
    }

    /// Ends it, and gives the counts by window.
    pub(super) fn end(&self) -> Vec<(u32, WorldCounts)> {
        let counting = self.state.lock().counting.take();
        counting.map_or_else(Vec::new, |counting| counting.windows.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::WallMillis;

    fn at_second(second: u64) -> MonotonicNanos {
        MonotonicNanos(second * 1_000_000_000)
    }

    fn counts(players: u32) -> WorldCounts {
        WorldCounts {
            players,
            ..WorldCounts::default()
        }
    }

    #[test]
    fn nothing_is_looked_at_unless_somebody_wants_it() {
        let desk = WorldDesk::default();
        assert_eq!(desk.wanted(at_second(0)), None);
        let ticket = desk.ask();
        assert_eq!(desk.wanted(at_second(0)), Some(Survey::Whole));
        // Another who asks meanwhile gets the same.
        let other = desk.ask();
        desk.deliver(Some(World::default()));
        assert_eq!(desk.wanted(at_second(0)), None);
        assert!(desk.wait(ticket, || true).is_some());
        assert!(desk.wait(other, || true).is_some());
        let ticket = desk.ask();
        desk.deliver(None);
        assert_eq!(desk.wait(ticket, || true), None, "no world is loaded");
    }

    #[test]
    fn a_wait_ends_when_nobody_wants_it() {
        let desk = WorldDesk::default();
        let ticket = desk.ask();
        assert_eq!(desk.wait(ticket, || false), None);
    }

    #[test]
    fn each_minute_of_a_session_is_counted_once() {
        let desk = WorldDesk::default();
        desk.count(at_second(1), counts(1));
        desk.begin(WindowClock::new(at_second(10), WallMillis(0)), Retention::Minutes(2));
        for second in [10, 69, 70, 71, 200, 201] {
            if desk.wanted(at_second(second)) == Some(Survey::Counts) {
                desk.count(at_second(second), counts(second as u32));
            }
        }
        assert_eq!(desk.wanted(at_second(249)), None);
        assert_eq!(desk.wanted(at_second(250)), Some(Survey::Counts));
        desk.count(at_second(250), counts(250));
        assert_eq!(desk.end(), [(3, counts(200)), (4, counts(250))]);
        assert_eq!(desk.wanted(at_second(400)), None);
    }
}
