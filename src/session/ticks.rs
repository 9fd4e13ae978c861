//! What the server was like while a session ran, minute by minute.
//!
//! The figures are the statistics' own, so that a profile and `/spark tps` say the same. They reach back a quarter of an hour; a session may be longer. So each window is
//! taken down soon after its end, by the worker, which looks after a session once a second.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::limits;
use crate::model::{MonotonicNanos, Retention, Tid};
use crate::profile::{WindowClock, WindowStats};
use crate::stats;

/// One tick, as the server thread reports it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TickSample {
    /// When it was reported.
    pub at: MonotonicNanos,
    /// The thread that ticks.
    pub tid: Tid,
    /// How long the last whole tick took, in milliseconds, as the server measured it.
    pub mspt: f32,
}

/// The ticks of a session.
#[derive(Debug, Default)]
pub(super) struct Ticks {
    pub(super) total: u64,
    /// The windows that had a tick.
    pub(super) windows: Vec<(u32, WindowStats)>,
}

#[derive(Clone, Debug)]
struct Recording {
    clock: WindowClock,
    retention: Retention,
    /// Ticks before the session.
    before: u64,
    /// The first window that was not taken down yet.
    next: u32,
    windows: VecDeque<(u32, WindowStats)>,
}

/// Takes down the windows of a session.
#[derive(Debug)]
pub(super) struct TickWindows {
    statistics: Arc<stats::Service>,
    recording: Mutex<Option<Recording>>,
}

impl TickWindows {
    pub(super) fn new(statistics: Arc<stats::Service>) -> Self {
        TickWindows {
            statistics,
            recording: Mutex::new(None),
        }
    }

    /// Begins a session's.
    pub(super) fn begin(&self, clock: WindowClock, retention: Retention) {
        *self.recording.lock() = Some(Recording {
            clock,
            retention,
            before: self.statistics.tick_number(),
            next: 0,
            windows: VecDeque::new(),
        });
    }

    /// Takes down what has ended long enough before `now` to be complete. To be called every few minutes at least.
    pub(super) fn look_after(&self, now: MonotonicNanos) {
        if let Some(recording) = &mut *self.recording.lock() {
            recording.take_down(now, limits::WINDOW_SETTLES_NANOS, &self.statistics);
        }
    }

    /// The ticks so far.
    pub(super) fn copy(&self, now: MonotonicNanos) -> Ticks {
        self.ticks(self.recording.lock().clone(), now)
    }

    /// Ends it.
    pub(super) fn end(&self, now: MonotonicNanos) -> Ticks {
        self.ticks(self.recording.lock().take(), now)
    }

    fn ticks(&self, recording: Option<Recording>, now: MonotonicNanos) -> Ticks {
        let Some(mut recording) = recording else {
            return Ticks::default();
        };
        recording.take_down(now, 0, &self.statistics);
        let newest = recording.clock.window_at(now);
        recording.take(newest, now, now, &self.statistics);
        let ticks = self.statistics.ticks(recording.before);
        let last = ticks.iter().rev().find(|tick| tick.at <= now);
        Ticks {
            total: last.map_or(0, |last| last.number + 1 - recording.before),
            windows: recording.windows.into(),
        }
    }
}

impl Recording {
    fn take_down(&mut self, now: MonotonicNanos, settles_nanos: u64, statistics: &stats::Service) {
        while self.clock.end_of(self.next).0.saturating_add(settles_nanos) <= now.0 {
            self.take(self.next, self.clock.end_of(self.next), now, statistics);
            self.next += 1;
        }
    }

    fn take(&mut self, window: u32, end: MonotonicNanos, now: MonotonicNanos, statistics: &stats::Service) {
        let oldest = self.retention.oldest(window);
        while self.windows.front().is_some_and(|(id, _)| *id < oldest) {
            self.windows.pop_front();
        }
        let found = statistics.window(self.clock.start_of(window), end, now);
        if found.ticks == 0 {
            return;
        }
        let stats = WindowStats {
            ticks: found.ticks,
            tps: found.tps.unwrap_or(0.0),
            mspt_median: found.mspt_median.unwrap_or(0.0),
            mspt_max: found.mspt_max.unwrap_or(0.0),
            cpu_process: found.cpu_process,
            cpu_system: found.cpu_system,
            ..WindowStats::default()
        };
        self.windows.push_back((window, stats));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::WallMillis;

    const TID: Tid = Tid::new(7);

    fn at_millis(millis: u64) -> MonotonicNanos {
        MonotonicNanos(millis * 1_000_000)
    }

    fn windows() -> (Arc<stats::Service>, TickWindows) {
        let statistics = Arc::new(stats::Service::new());
        let windows = TickWindows::new(Arc::clone(&statistics));
        (statistics, windows)
    }

    #[test]
    fn windows_count_their_own_ticks() {
        let (statistics, windows) = windows();
        // One from before the session, and what follows says how long it took.
        statistics.tick(at_millis(0), TID, 500.0);
        windows.begin(WindowClock::new(at_millis(50), WallMillis(0)), Retention::All);
        for number in 1..=2_400 {
            statistics.tick(at_millis(number * 50), TID, if number == 1_302 { 900.0 } else { 10.0 });
        }
        let Ticks { total, windows } = windows.end(at_millis(120_049));
        assert_eq!(total, 2_400);
        assert_eq!(
            windows.iter().map(|(id, stats)| (*id, stats.ticks)).collect::<Vec<_>>(),
            [(0, 1_200), (1, 1_200)]
        );
        assert!((windows[0].1.tps - 20.0).abs() < 1e-6, "{:?}", windows[0]);
        assert_eq!((windows[0].1.mspt_median, windows[0].1.mspt_max), (10.0, 10.0));
        assert_eq!((windows[1].1.mspt_median, windows[1].1.mspt_max), (10.0, 900.0));
    }

    #[test]
    fn a_session_longer_than_the_history_has_all_its_windows() {
        let (statistics, windows) = windows();
        windows.begin(WindowClock::new(at_millis(0), WallMillis(0)), Retention::All);
        // An hour at 5 ticks a second, each minute's as long as its number says.
        for number in 0..18_000 {
            let minute = (number.max(1) - 1) / 300;
            statistics.tick(at_millis(number * 200), TID, minute as f32);
            windows.look_after(at_millis(number * 200));
        }
        let Ticks { windows, .. } = windows.end(at_millis(3_599_999));
        assert_eq!(windows.len(), 60);
        for (id, stats) in windows {
            assert_eq!((stats.ticks, stats.mspt_median), (300, f64::from(id)), "window {id}");
        }
    }

    #[test]
    fn an_endless_session_keeps_the_newest_minutes() {
        let (statistics, windows) = windows();
        windows.begin(WindowClock::new(at_millis(0), WallMillis(0)), Retention::Minutes(2));
        for second in 0..300 {
            statistics.tick(at_millis(second * 1_000), TID, 10.0);
            windows.look_after(at_millis(second * 1_000));
        }
        let Ticks { total, windows } = windows.end(at_millis(299_500));
        assert_eq!(total, 300);
        assert_eq!(windows.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [3, 4]);
    }

    #[test]
    fn nothing_is_kept_outside_a_session() {
        let (statistics, windows) = windows();
        statistics.tick(at_millis(0), TID, 1.0);
        assert_eq!(windows.end(at_millis(1)).total, 0);
    }
}
