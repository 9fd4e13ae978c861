//! Notices when the server stands still while a session runs.
//!
//! **Problem.** A server that hangs has no tick that is slow: it has none at all, and whoever counts ticks hears of it when it is over, if it ever is.
//!
//! **Algorithm.** A thread looks at the newest tick once a second, and whenever it would be time to call its absence a stall. It waits for nobody else, so a
//! worker that is busy or a disk that does not answer changes nothing. What it finds goes into the journal at once, because a server that hangs is one that is killed next.
//! Sampling does not care whether the server ticks: the stack it hangs in is in the profile as any other.
//!
//! Time in which the process as a whole did not run (a debugger, a machine that sleeps) is not the server's: a look that comes much too late counts as one that came in time.
//!
//! **Price.** One look a second, some microseconds.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::journal::TickFeed;
use crate::limits;
use crate::model::{MonotonicNanos, Stall, Stalls, Tick};
use crate::stats;
use crate::sys::thread::{self, Worker};
use crate::sys::{clock, fault};

const MILLI: u64 = 1_000_000;

/// A stall that is over, to be told, and how many before it were not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct StallNews {
    pub(super) nanos: u64,
    pub(super) untold: u64,
}

#[derive(Debug, Default)]
struct State {
    ends: bool,
    stalls: Stalls,
    news: News,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

/// See the module's text. Ends with its owner.
#[derive(Debug)]
pub(super) struct Watchdog {
    shared: Arc<Shared>,
    worker: Option<Worker>,
}

impl Watchdog {
    /// Begins to watch; ticks that take longer than `limit_seconds` are stalls.
    ///
    /// # Errors
    /// No thread can be started.
    pub(super) fn start(
        statistics: Arc<stats::Service>,
        limit_seconds: u64,
        started_at: MonotonicNanos,
        journal: Option<TickFeed>,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let worker = thread::spawn("spark-watchdog", {
            let shared = Arc::clone(&shared);
            move || run(&shared, &statistics, limit_seconds, started_at, journal.as_ref())
        })?;
        Ok(Watchdog {
            shared,
            worker: Some(worker),
        })
    }

    /// What there was so far.
    pub(super) fn stalls(&self) -> Stalls {
        self.shared.state.lock().stalls.clone()
    }

    /// A stall that is over, if one is to be told of now.
    pub(super) fn news(&self, now: MonotonicNanos) -> Option<StallNews> {
        self.shared.state.lock().news.take(now)
    }

    /// Whether it has ended by a bug of ours.
    pub(super) fn has_failed(&self) -> bool {
        self.worker.as_ref().is_some_and(Worker::has_panicked)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.shared.state.lock().ends = true;
        self.shared.wake.notify_all();
        if let Some(worker) = self.worker.take() {
            worker.join();
        }
    }
}

fn run(
    shared: &Shared,
    statistics: &stats::Service,
    limit_seconds: u64,
    started_at: MonotonicNanos,
    journal: Option<&TickFeed>,
) {
    let mut next = statistics.tick_number();
    let mut clock = StallClock::new(limit_seconds * 1_000 * MILLI, started_at);
    loop {
        fault::point("watchdog");
        let ticks = statistics.ticks(next);
        next = ticks.last().map_or(next, |last| last.number + 1);
        let now = clock::monotonic();
        let found = clock.look(now, &ticks);
        let mut state = shared.state.lock();
        for stall in found.into_iter().flatten() {
            if let Some(journal) = journal {
                journal.stall(stall);
            }
            state.stalls.take(stall);
            state.news.add(&stall);
        }
        if state.ends {
            return;
        }
        shared
            .wake
            .wait_for(&mut state, Duration::from_nanos(clock.planned.max(MILLI)));
        if state.ends {
            return;
        }
    }
}

/// For how long no tick has come.
#[derive(Debug)]
struct StallClock {
    limit: u64,
    /// The last tick, or the session's start.
    last: MonotonicNanos,
    /// Nanoseconds since then in which this process ran.
    passed: u64,
    looked: MonotonicNanos,
    /// Nanoseconds from that look to the next.
    planned: u64,
    is_stalled: bool,
}

impl StallClock {
    fn new(limit: u64, started_at: MonotonicNanos) -> Self {
        StallClock {
            limit,
            last: started_at,
            passed: 0,
            looked: started_at,
            planned: 0,
            is_stalled: false,
        }
    }

    /// `ticks` are those since the look before. Gives the end of a stall, and the begin or the whole of another one.
    fn look(&mut self, now: MonotonicNanos, ticks: &[Tick]) -> [Option<Stall>; 2] {
        let slept = now.since(self.looked);
        let is_late = slept > self.planned + limits::PAUSE_NANOS;
        let mut found = [None, None];
        if let (Some(first), Some(last)) = (ticks.first(), ticks.last()) {
            if self.is_stalled {
                found[0] = Some(Stall {
                    began: self.last,
                    ended: Some(first.at),
                });
            }
            self.is_stalled = false;
            self.last = last.at;
            self.passed = now.since(last.at).min(slept);
        } else {
            self.passed += if is_late { self.planned } else { slept };
        }
        if !self.is_stalled && self.passed >= self.limit {
            self.is_stalled = true;
            found[1] = Some(Stall {
                began: self.last,
                ended: None,
            });
        }
        self.looked = now;
        self.planned = self.wait();
        found
    }

    /// Nanoseconds until the next look.
    fn wait(&self) -> u64 {
        if self.is_stalled {
            return limits::STALL_LOOK_MILLIS * MILLI;
        }
        let left = self.limit.saturating_sub(self.passed);
        left.min(limits::WATCHDOG_LOOK_MILLIS * MILLI)
    }
}

/// What is to be told of stalls.
#[derive(Debug, Default)]
struct News {
    over: Option<u64>,
    untold: u64,
    told_at: Option<MonotonicNanos>,
}

impl News {
    fn add(&mut self, stall: &Stall) {
        let Some(ended) = stall.ended else { return };
        if self.over.replace(ended.since(stall.began)).is_some() {
            self.untold += 1;
        }
    }

    fn take(&mut self, now: MonotonicNanos) -> Option<StallNews> {
        let is_soon = |told: MonotonicNanos| now.since(told) < limits::STALL_REPORT_NANOS;
        if self.told_at.is_some_and(is_soon) {
            return None;
        }
        let nanos = self.over.take()?;
        self.told_at = Some(now);
        Some(StallNews {
            nanos,
            untold: std::mem::take(&mut self.untold),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000 * MILLI;

    fn at(millis: u64) -> MonotonicNanos {
        MonotonicNanos(millis * MILLI)
    }

    fn tick(millis: u64) -> Tick {
        Tick {
            number: 0,
            at: at(millis),
            millis: None,
        }
    }

    fn stall(began: u64, ended: Option<u64>) -> Option<Stall> {
        Some(Stall {
            began: at(began),
            ended: ended.map(at),
        })
    }

    #[test]
    fn a_stall_begins_at_the_last_tick_and_ends_at_the_next() {
        let mut clock = StallClock::new(2 * SECOND, at(0));
        assert_eq!(clock.look(at(0), &[]), [None, None]);
        assert_eq!(clock.look(at(1_000), &[tick(300), tick(950)]), [None, None]);
        assert_eq!(clock.planned, SECOND);
        assert_eq!(clock.look(at(2_000), &[]), [None, None]);
        assert_eq!(clock.planned, 950 * MILLI, "not a moment later than it is one");
        assert_eq!(clock.look(at(2_950), &[]), [None, stall(950, None)]);
        assert_eq!(clock.planned, limits::STALL_LOOK_MILLIS * MILLI);
        assert_eq!(clock.look(at(3_000), &[]), [None, None], "it is told once");
        assert_eq!(
            clock.look(at(8_100), &[tick(8_020), tick(8_060)]),
            [stall(950, Some(8_020)), None]
        );
        assert_eq!(clock.look(at(9_000), &[tick(8_900)]), [None, None]);
    }

    #[test]
    fn a_server_that_never_ticks_in_a_session_stalls_from_its_start() {
        let mut clock = StallClock::new(2 * SECOND, at(500));
        for millis in [500, 1_500] {
            assert_eq!(clock.look(at(millis), &[]), [None, None]);
        }
        assert_eq!(clock.look(at(2_500), &[]), [None, stall(500, None)]);
    }

    #[test]
    fn a_process_that_was_stopped_as_a_whole_has_not_stalled() {
        let mut clock = StallClock::new(2 * SECOND, at(0));
        assert_eq!(clock.look(at(0), &[]), [None, None]);
        assert_eq!(clock.look(at(1_000), &[tick(990)]), [None, None]);
        // A minute in which nobody ran.
        assert_eq!(clock.look(at(61_000), &[]), [None, None]);
        assert_eq!(clock.look(at(61_100), &[tick(61_010)]), [None, None]);
    }

    #[test]
    fn stalls_that_follow_each_other_are_told_once_a_minute_and_counted() {
        let mut news = News::default();
        assert_eq!(news.take(at(0)), None);
        news.add(&stall(0, None).unwrap());
        assert_eq!(news.take(at(100)), None, "it is not over");
        news.add(&stall(0, Some(7_000)).unwrap());
        let told = |seconds: u64, untold| {
            Some(StallNews {
                nanos: seconds * SECOND,
                untold,
            })
        };
        assert_eq!(news.take(at(7_000)), told(7, 0));
        for began in [10_000, 20_000, 30_000] {
            news.add(&stall(began, Some(began + 8_000)).unwrap());
            assert_eq!(news.take(at(began + 8_000)), None);
        }
        assert_eq!(news.take(at(66_999)), None);
        assert_eq!(news.take(at(67_000)), told(8, 2));
        assert_eq!(news.take(at(200_000)), None);
    }

    #[test]
    fn a_thread_of_its_own_finds_a_stall_and_writes_it_down() {
        let statistics = Arc::new(stats::Service::new());
        let tick = || statistics.tick(clock::monotonic(), crate::model::Tid::new(7), 1.0);
        tick();
        let started = clock::monotonic();
        let watchdog = Watchdog::start(Arc::clone(&statistics), 1, started, None).unwrap();
        while watchdog.stalls().count == 0 {
            std::thread::yield_now();
        }
        assert_eq!(watchdog.stalls().newest[0].ended, None);
        tick();
        while watchdog.stalls().newest.iter().any(|stall| stall.ended.is_none()) {
            std::thread::yield_now();
        }
        let stall = watchdog.stalls().newest[0];
        assert_eq!(stall.began, started);
        let nanos = stall.ended.unwrap().since(started);
        assert!(nanos >= SECOND, "{nanos}");
        assert!(
            watchdog
                .news(clock::monotonic())
                .is_some_and(|news| news.nanos >= SECOND)
        );
    }
}
