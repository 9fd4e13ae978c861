//! The tick monitor that somebody has switched on.

use parking_lot::Mutex;

use super::control::{MonitorChange, Requester};
use crate::model::{MonitorEvent, MonotonicNanos, SlowTicks};
use crate::stats::TickMonitor;

/// It and whom it tells. Used by the server thread only, so its lock is free whenever it is taken.
#[derive(Debug, Default)]
pub(super) struct Monitor(Mutex<Option<(Requester, TickMonitor)>>);

impl Monitor {
    /// Switches it on, or off when it is on.
    pub(super) fn toggle(&self, slow: SlowTicks, by: &Requester) -> MonitorChange {
        let mut monitor = self.0.lock();
        match monitor.take() {
            Some(_) => MonitorChange::Stopped,
            None => {
                *monitor = Some((by.clone(), TickMonitor::new(slow)));
                MonitorChange::Started(slow)
            }
        }
    }

    /// Switches it off.
    pub(super) fn stop(&self) {
        *self.0.lock() = None;
    }

    /// Takes a tick that is over; what is to be told of it, and to whom.
    pub(super) fn tick(&self, at: MonotonicNanos, number: u64, millis: f32) -> Option<(Requester, MonitorEvent)> {
        let mut monitor = self.0.lock();
        let (by, monitor) = monitor.as_mut()?;
        let event = monitor.tick(at, number, f64::from(millis))?;
        Some((by.clone(), event))
    }
}
