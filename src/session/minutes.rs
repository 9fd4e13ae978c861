//! A recovered session's ticks, minute by minute: the statistics of the process that saw them are gone with it.

use std::collections::VecDeque;

use super::ticks::Ticks;
use crate::limits;
use crate::model::{MonotonicNanos, Retention};
use crate::profile::{WindowClock, WindowStats};

#[derive(Debug)]
struct Minute {
    window: u32,
    first: MonotonicNanos,
    last: MonotonicNanos,
    count: u32,
    mspt: Vec<f32>,
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Minutes {
    clock: WindowClock,
    retention: Retention,
    total: u64,
    minutes: VecDeque<Minute>,
}

impl Minutes {
    pub(super) fn new(clock: WindowClock, retention: Retention) -> Self {
        Minutes {
            clock,
            retention,
            total: 0,
            minutes: VecDeque::new(),
        }
    }

    /// Takes a tick, none of which may be earlier than the one before: when it was, and how many milliseconds the one before took.
    pub(super) fn add(&mut self, at: MonotonicNanos, mspt: f32) {
        self.total += 1;
        let window = self.clock.window_at(at);
        if self.minutes.back().is_none_or(|minute| minute.window != window) {
            let oldest = self.retention.oldest(window);
            while self.minutes.front().is_some_and(|minute| minute.window < oldest) {
                self.minutes.pop_front();
            }
            self.minutes.push_back(Minute {
                window,
                first: at,
                last: at,
                count: 0,
                mspt: Vec::new(),
            });
        }
        if let Some(minute) = self.minutes.back_mut() {
            minute.count += 1;
            minute.last = at;
            if minute.mspt.len() < limits::WINDOW_TICKS {
                minute.mspt.push(mspt);
            }
        }
    }

    /// All that were kept.
    pub(super) fn finish(self) -> Ticks {
        Ticks {
            total: self.total,
            windows: self.minutes.into_iter().map(statistics).collect(),
        }
    }
}

fn statistics(mut minute: Minute) -> (u32, WindowStats) {
    minute.mspt.sort_by(f32::total_cmp);
    let median = minute.mspt.get(minute.mspt.len() / 2).copied().unwrap_or(0.0);
    let longest = minute.mspt.last().copied().unwrap_or(0.0);
    // n ticks have n - 1 gaps between them.
    let seconds = minute.last.since(minute.first) as f64 / 1e9;
    let tps = if minute.count > 1 && seconds > 0.0 {
        f64::from(minute.count - 1) / seconds
    } else {
        0.0
    };
    let stats = WindowStats {
        ticks: minute.count,
        tps,
        mspt_median: f64::from(median),
        mspt_max: f64::from(longest),
        ..WindowStats::default()
    };
    (minute.window, stats)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::WallMillis;

    #[test]
    fn minutes_have_their_ticks_and_old_ones_go() {
        let clock = WindowClock::new(MonotonicNanos(0), WallMillis(0));
        let mut minutes = Minutes::new(clock, Retention::Minutes(2));
        for number in 0..3_600_u64 {
            minutes.add(
                MonotonicNanos(number * 50_000_000),
                if number == 1_300 { 900.0 } else { 10.0 },
            );
        }
        let Ticks { total, windows } = minutes.finish();
        assert_eq!(total, 3_600);
        let ticks: Vec<(u32, u32)> = windows.iter().map(|(id, stats)| (*id, stats.ticks)).collect();
        assert_eq!(ticks, [(1, 1_200), (2, 1_200)]);
        assert!((windows[0].1.tps - 20.0).abs() < 1e-6, "{:?}", windows[0]);
        assert_eq!((windows[0].1.mspt_median, windows[0].1.mspt_max), (10.0, 900.0));
    }
}
