//! A quantity that only grows, known at some instants, and on a straight line between them: ticks, processor time.
//!
//! Rates made of it do not depend on where a measurement happens to lie: a tick that began before a window counts by the part of it that lies inside.

use crate::model::MonotonicNanos;

/// What is known, oldest first, at increasing instants.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Growth(Vec<(MonotonicNanos, f64)>);

/// What it grew by in some time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Grown {
    pub(super) by: f64,
    /// How much of the time that was asked for is known.
    pub(super) seconds: f64,
}

impl Growth {
    pub(super) fn new(points: Vec<(MonotonicNanos, f64)>) -> Self {
        Growth(points)
    }

    /// Adds the newest point.
    pub(super) fn push(&mut self, at: MonotonicNanos, value: f64) {
        self.0.push((at, value));
    }

    pub(super) fn points(&self) -> &[(MonotonicNanos, f64)] {
        &self.0
    }

    /// How far back it is known at `now`.
    pub(super) fn known_seconds(&self, now: MonotonicNanos) -> f64 {
        self.0.first().map_or(0.0, |(first, _)| now.since(*first) as f64 / 1e9)
    }

    /// Between two instants, as far as it is known there. `None` where nothing is.
    pub(super) fn between(&self, from: MonotonicNanos, to: MonotonicNanos) -> Option<Grown> {
        let (first, last) = (self.0.first()?.0, self.0.last()?.0);
        let (from, to) = (from.max(first), to.min(last));
        if from >= to {
            return None;
        }
        Some(Grown {
            by: self.at(to)? - self.at(from)?,
            seconds: to.since(from) as f64 / 1e9,
        })
    }

    /// At an instant from the first to the last point.
    fn at(&self, instant: MonotonicNanos) -> Option<f64> {
        let after = self.0.partition_point(|(at, _)| *at < instant);
        let (end, end_value) = *self.0.get(after)?;
        let Some((start, start_value)) = after.checked_sub(1).and_then(|before| self.0.get(before)) else {
            return Some(end_value);
        };
        let part = instant.since(*start) as f64 / end.since(*start) as f64;
        Some(start_value + (end_value - start_value) * part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn growth() -> Growth {
        Growth::new(
            [(10, 0.0), (20, 4.0), (60, 8.0)]
                .map(|(seconds, value)| (MonotonicNanos(seconds * 1_000_000_000), value))
                .to_vec(),
        )
    }

    fn between(from: u64, to: u64) -> Option<(f64, f64)> {
        let nanos = |seconds| MonotonicNanos(seconds * 1_000_000_000);
        let grown = growth().between(nanos(from), nanos(to))?;
        Some((grown.by, grown.seconds))
    }

    #[test]
    fn a_part_between_two_points_grows_by_its_share() {
        assert_eq!(between(10, 60), Some((8.0, 50.0)));
        assert_eq!(between(15, 40), Some((4.0, 25.0)));
        assert_eq!(between(30, 40), Some((1.0, 10.0)));
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        assert_eq!(between(0, 20), Some((4.0, 10.0)));
        assert_eq!(between(40, 90), Some((2.0, 20.0)));
        assert_eq!(between(0, 10), None);
        assert_eq!(between(60, 90), None);
        assert_eq!(between(40, 20), None);
        assert_eq!(Growth::default().between(MonotonicNanos(0), MonotonicNanos(9)), None);
    }
}
