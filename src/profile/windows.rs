//! Windows: the minutes of a profile.

use crate::limits::WINDOW_NANOS;
use crate::model::{MonotonicNanos, WallMillis};

/// Maps instants to windows. Windows are minutes of the session, counted from 0 on the monotonic clock: a step of the wall clock neither
/// repeats nor skips one. A window gets the wall clock's minute of the session's start plus its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowClock {
    started_at: MonotonicNanos,
    started_wall: WallMillis,
}

impl WindowClock {
    /// Windows of a session that started at this instant, on both clocks.
    pub fn new(started_at: MonotonicNanos, started_wall: WallMillis) -> Self {
        WindowClock {
            started_at,
            started_wall,
        }
    }

    /// The window an instant lies in; an instant before the start lies in the first.
    pub fn window_at(&self, instant: MonotonicNanos) -> u32 {
        u32::try_from(instant.since(self.started_at) / WINDOW_NANOS).unwrap_or(u32::MAX)
    }

    /// When a window begins.
    pub fn start_of(&self, window: u32) -> MonotonicNanos {
        MonotonicNanos(
            self.started_at
                .0
                .saturating_add(u64::from(window).saturating_mul(WINDOW_NANOS)),
        )
    }

    /// When it is over.
    pub fn end_of(&self, window: u32) -> MonotonicNanos {
        MonotonicNanos(self.start_of(window).0.saturating_add(WINDOW_NANOS))
    }

    /// Minutes since the Unix epoch that stand for a window in the viewer.
    pub fn epoch_minute(&self, window: u32) -> i32 {
        let minute = self.started_wall.0.div_euclid(60_000).saturating_add(i64::from(window));
        i32::try_from(minute).unwrap_or(i32::MAX)
    }

    /// When the window begins, by the wall clock of the session's start.
    pub fn wall_start(&self, window: u32) -> WallMillis {
        let offset = i64::from(window).saturating_mul((WINDOW_NANOS / 1_000_000) as i64);
        WallMillis(self.started_wall.0.saturating_add(offset))
    }
}

/// The server's state over one window. Figures that nobody measured stay `None`; spark's format has no word for "unknown", there they are 0.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct WindowStats {
    /// Ticks that ended in the window.
    pub ticks: u32,
    /// Ticks per second.
    pub tps: f64,
    /// Milliseconds per tick, median.
    pub mspt_median: f64,
    /// Milliseconds of the longest tick.
    pub mspt_max: f64,
    /// Share of all processors used by the server, 0 to 1.
    pub cpu_process: Option<f64>,
    /// Share of all processors used by everything, 0 to 1.
    pub cpu_system: Option<f64>,
    /// Players online, asked once in the window.
    pub players: Option<u32>,
    /// Entities loaded, asked once in the window.
    pub entities: Option<u32>,
    /// Chunks loaded, asked once in the window.
    pub chunks: Option<u32>,
    /// How much of the window the session covers, in milliseconds: 60,000 except for the last.
    pub duration_millis: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000_000_000;

    #[test]
    fn windows_are_minutes_since_the_start() {
        let clock = WindowClock::new(MonotonicNanos(5), WallMillis(120_000 + 59_999));
        assert_eq!(clock.window_at(MonotonicNanos(0)), 0);
        assert_eq!(clock.window_at(MonotonicNanos(4 + MINUTE)), 0);
        assert_eq!(clock.window_at(MonotonicNanos(5 + MINUTE)), 1);
        assert_eq!(clock.start_of(1), MonotonicNanos(5 + MINUTE));
        assert_eq!(clock.end_of(0), clock.start_of(1));
        assert_eq!(clock.epoch_minute(0), 2);
        assert_eq!(clock.epoch_minute(7), 9);
        assert_eq!(clock.wall_start(1), WallMillis(239_999));
    }

    #[test]
    fn extreme_clocks_do_not_overflow() {
        let clock = WindowClock::new(MonotonicNanos(0), WallMillis(i64::MAX));
        assert_eq!(clock.epoch_minute(u32::MAX), i32::MAX);
        assert_eq!(clock.wall_start(u32::MAX), WallMillis(i64::MAX));
        let late = WindowClock::new(MonotonicNanos(u64::MAX - 1), WallMillis(0));
        assert_eq!(late.end_of(u32::MAX), MonotonicNanos(u64::MAX));
        assert_eq!(clock.window_at(MonotonicNanos(u64::MAX)), (u64::MAX / MINUTE) as u32);
    }
}
