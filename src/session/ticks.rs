//! What the server's ticks looked like while a session ran.
//!
//! Fed once a tick from the server thread, so a tick costs one uncontended lock and two stores, and allocates nothing once a window has begun.

use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::limits;
use crate::model::{MonotonicNanos, Retention, Tid};
use crate::profile::{WindowClock, WindowStats};

/// One tick, as the server thread reports it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TickSample {
    /// When it was reported.
    pub at: MonotonicNanos,
    /// The thread that ticks.
    pub tid: Tid,
    /// How long the last whole tick took, in milliseconds, as the server measured it.
    pub mspt: f32,
    /// Ticks per second, as the server measured it.
    pub tps: f32,
}

/// The ticks of a session.
#[derive(Debug, Default)]
pub(super) struct Ticks {
    pub(super) total: u64,
    /// The windows that had a tick.
    pub(super) windows: Vec<(u32, WindowStats)>,
}

/// The ticks of one window.
#[derive(Clone, Debug)]
struct Window {
    id: u32,
    first: MonotonicNanos,
    last: MonotonicNanos,
    count: u32,
    mspt: Vec<f32>,
}

#[derive(Debug, Default)]
struct State {
    server_thread: Option<Tid>,
    recording: Option<Recording>,
}

#[derive(Clone, Debug)]
struct Recording {
    clock: WindowClock,
    retention: Retention,
    total: u64,
    windows: VecDeque<Window>,
}

/// The tick clock.
#[derive(Debug, Default)]
pub struct TickClock(Mutex<State>);

impl TickClock {
    /// Takes one tick. On the server thread.
    pub fn record(&self, tick: TickSample) {
        let mut state = self.0.lock();
        state.server_thread = Some(tick.tid);
        let Some(recording) = &mut state.recording else { return };
        recording.total += 1;
        let id = recording.clock.window_at(tick.at);
        if recording.windows.back().is_none_or(|window| window.id != id) {
            let oldest = recording.retention.oldest(id);
            while recording.windows.front().is_some_and(|window| window.id < oldest) {
                recording.windows.pop_front();
            }
            recording.windows.push_back(Window {
                id,
                first: tick.at,
                last: tick.at,
                count: 0,
                mspt: Vec::with_capacity(limits::WINDOW_TICKS),
            });
        }
        if let Some(window) = recording.windows.back_mut() {
            window.count += 1;
            window.last = tick.at;
            if window.mspt.len() < limits::WINDOW_TICKS && tick.mspt.is_finite() {
                window.mspt.push(tick.mspt);
            }
        }
    }

    /// The thread that ticks, once it has ticked.
    pub fn server_thread(&self) -> Option<Tid> {
        self.0.lock().server_thread
    }

    /// Begins to keep ticks for a session.
    pub fn begin(&self, clock: WindowClock, retention: Retention) {
        self.0.lock().recording = Some(Recording {
            clock,
            retention,
            total: 0,
            windows: VecDeque::new(),
        });
    }

    /// The ticks so far.
    pub(super) fn copy(&self) -> Ticks {
        let recording = self.0.lock().recording.clone();
        ticks(recording)
    }

    /// Ends it.
    pub(super) fn end(&self) -> Ticks {
        let recording = self.0.lock().recording.take();
        ticks(recording)
    }
}

fn ticks(recording: Option<Recording>) -> Ticks {
    let Some(recording) = recording else {
        return Ticks::default();
    };
    Ticks {
        total: recording.total,
        windows: recording.windows.into_iter().map(statistics).collect(),
    }
}

fn statistics(mut window: Window) -> (u32, WindowStats) {
    window.mspt.sort_by(f32::total_cmp);
    let median = window.mspt.get(window.mspt.len() / 2).copied().unwrap_or(0.0);
    let longest = window.mspt.last().copied().unwrap_or(0.0);
    // n ticks have n - 1 gaps between them.
    let seconds = window.last.since(window.first) as f64 / 1e9;
    let tps = if window.count > 1 && seconds > 0.0 {
        f64::from(window.count - 1) / seconds
    } else {
        0.0
    };
    let stats = WindowStats {
        ticks: window.count,
        tps,
        mspt_median: f64::from(median),
        mspt_max: f64::from(longest),
        ..WindowStats::default()
    };
    (window.id, stats)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::WallMillis;

    fn tick(at_millis: u64, mspt: f32) -> TickSample {
        TickSample {
            at: MonotonicNanos(at_millis * 1_000_000),
            tid: Tid::new(7),
            mspt,
            tps: 20.0,
        }
    }

    #[test]
    fn windows_count_their_own_ticks() {
        let clock = TickClock::default();
        clock.begin(WindowClock::new(MonotonicNanos(0), WallMillis(0)), Retention::All);
        for number in 0..2_400 {
            clock.record(tick(number * 50, if number == 1_300 { 900.0 } else { 10.0 }));
        }
        let Ticks { total, windows } = clock.end();
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
    fn an_endless_session_keeps_the_newest_minutes() {
        let clock = TickClock::default();
        clock.begin(
            WindowClock::new(MonotonicNanos(0), WallMillis(0)),
            Retention::Minutes(2),
        );
        for second in 0..300 {
            clock.record(tick(second * 1_000, 10.0));
        }
        let Ticks { total, windows } = clock.end();
        assert_eq!(total, 300);
        assert_eq!(windows.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [3, 4]);
    }

    #[test]
    fn nothing_is_kept_outside_a_session() {
        let clock = TickClock::default();
        clock.record(tick(0, 1.0));
        assert_eq!(clock.server_thread(), Some(Tid::new(7)));
        assert_eq!(clock.end().total, 0);
    }
}
