//! The tick monitor: learns how long ticks take, then tells of slow ones.

use crate::limits;
use crate::model::{MonitorEvent, MonotonicNanos, SlowTicks};

/// Watches ticks for somebody.
#[derive(Clone, Debug)]
pub struct TickMonitor {
    slow: SlowTicks,
    /// What the ticks of the baseline were.
    ticks: u64,
    sum: f64,
    min: f64,
    max: f64,
    reported: Option<MonotonicNanos>,
    unreported: u64,
}

impl TickMonitor {
    /// One that has seen nothing yet.
    pub fn new(slow: SlowTicks) -> Self {
        TickMonitor {
            slow,
            ticks: 0,
            sum: 0.0,
            min: f64::INFINITY,
            max: 0.0,
            reported: None,
            unreported: 0,
        }
    }

    /// Takes a tick that is over: when it was, its number, and how long it took in milliseconds. On the server thread; does not allocate.
    pub fn tick(&mut self, at: MonotonicNanos, number: u64, millis: f64) -> Option<MonitorEvent> {
        if !millis.is_finite() {
            return None;
        }
        if self.ticks < limits::MONITOR_BASELINE_TICKS {
            self.ticks += 1;
            self.sum += millis;
            self.min = self.min.min(millis);
            self.max = self.max.max(millis);
            return (self.ticks == limits::MONITOR_BASELINE_TICKS).then(|| MonitorEvent::Ready {
                mean: self.mean(),
                min: self.min,
                max: self.max,
            });
        }
        let mean = self.mean();
        let percent_over = (mean > 0.0).then(|| (millis / mean - 1.0) * 100.0);
        let is_slow = match self.slow {
            SlowTicks::PercentOver(limit) => percent_over.is_some_and(|percent| percent >= limit),
            SlowTicks::Millis(limit) => millis >= limit,
        };
        if !is_slow {
            return None;
        }
        if self
            .reported
            .is_some_and(|reported| at.since(reported) < limits::MONITOR_REPORT_NANOS)
        {
            self.unreported += 1;
            return None;
        }
        self.reported = Some(at);
        Some(MonitorEvent::Slow {
            number,
            millis,
            percent_over,
            unreported: std::mem::take(&mut self.unreported),
        })
    }

    fn mean(&self) -> f64 {
        self.sum / self.ticks as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_baseline(slow: SlowTicks) -> TickMonitor {
        let mut monitor = TickMonitor::new(slow);
        for number in 0..119 {
            // 5 and 15 in turn, beginning with 5.
            let millis = if number % 2 == 0 { 5.0 } else { 15.0 };
            assert_eq!(monitor.tick(MonotonicNanos(number), number, millis), None);
        }
        assert_eq!(
            monitor.tick(MonotonicNanos(119), 119, 15.0),
            Some(MonitorEvent::Ready {
                mean: 10.0,
                min: 5.0,
                max: 15.0
            })
        );
        monitor
    }

    #[test]
    fn a_tick_is_slow_from_the_limit_on() {
        let mut monitor = after_baseline(SlowTicks::PercentOver(100.0));
        assert_eq!(monitor.tick(MonotonicNanos(1_000), 120, 19.9), None);
        assert_eq!(
            monitor.tick(MonotonicNanos(2_000), 121, 20.0),
            Some(MonitorEvent::Slow {
                number: 121,
                millis: 20.0,
                percent_over: Some(100.0),
                unreported: 0
            })
        );
        let mut monitor = after_baseline(SlowTicks::Millis(60.0));
        assert_eq!(monitor.tick(MonotonicNanos(1_000), 120, 59.9), None);
        let event = monitor.tick(MonotonicNanos(2_000), 121, 60.0);
        assert!(
            matches!(event, Some(MonitorEvent::Slow { percent_over: Some(percent), .. }) if (percent - 500.0).abs() < 1e-9),
            "{event:?}"
        );
    }

    #[test]
    fn many_slow_ticks_are_counted_between_two_reports() {
        let mut monitor = after_baseline(SlowTicks::Millis(60.0));
        let mut shown = Vec::new();
        for number in 120..150 {
            // Fifty milliseconds apart: a report every ten ticks.
            let at = MonotonicNanos(number * 50_000_000);
            match monitor.tick(at, number, 70.0) {
                Some(MonitorEvent::Slow { number, unreported, .. }) => shown.push((number, unreported)),
                Some(other) => panic!("{other:?}"),
                None => {}
            }
        }
        assert_eq!(shown, [(120, 0), (130, 9), (140, 9)]);
    }

    #[test]
    fn ticks_of_unknown_length_are_no_ticks() {
        let mut monitor = TickMonitor::new(SlowTicks::Millis(1.0));
        for number in 0..500 {
            assert_eq!(monitor.tick(MonotonicNanos(number), number, f64::NAN), None);
        }
    }
}
