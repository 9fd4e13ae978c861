//! When the next round is due.
//!
//! **Problem.** A server ticks every 50 ms by the same clock that a sampler would sleep by. With a fixed interval of 4 ms the samples of every second tick fall on
//! the same 25 places of its work, for as long as both clocks run: a part that takes 30 % of the tick is then seen at 28 % or at 32 %, however long the
//! profile is.
//!
//! **Algorithm.** Time is cut into intervals of fixed length, and one round falls at a random place of each. Every place of the tick is met equally often, and no two
//! rounds are further apart than two intervals.
//!
//! **Assumption.** Samples carry the measured time since the previous one, so that an uneven distance changes no total.

use crate::model::MonotonicNanos;

/// The times of rounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cadence {
    interval: u64,
    /// Where the interval of the next round begins.
    begin: MonotonicNanos,
    /// Where the first interval began, and how many have passed.
    first: MonotonicNanos,
    passed: u64,
    random: u64,
    /// When the next round is due.
    pub(super) deadline: MonotonicNanos,
}

impl Cadence {
    /// The first round is due at once.
    pub(super) fn new(now: MonotonicNanos, interval: u64) -> Self {
        // Zero is the one state that the generator cannot leave.
        Cadence {
            interval: interval.max(1),
            begin: now,
            first: now,
            passed: 0,
            random: now.0 | 1,
            deadline: now,
        }
    }

    /// To be called after a round, with the time then: a round that took longer than its interval, or a machine that slept, is not made up for. `true`:
    /// so it was, and the interval is stretched.
    pub(super) fn advance(&mut self, now: MonotonicNanos) -> bool {
        let planned = MonotonicNanos(self.begin.0 + self.interval);
        let late = now > planned;
        self.begin = planned.max(now);
        self.passed += 1;
        let place = self.next_random() % self.interval;
        self.deadline = MonotonicNanos(self.begin.0 + place);
        late
    }

    /// A time that is not to count.
    pub(super) fn leave_out(&mut self, nanos: u64) {
        self.first = MonotonicNanos(self.first.0 + nanos).min(self.begin);
    }

    /// How long intervals were on average, in nanoseconds; the planned length before the first has passed.
    pub(super) fn mean(&self) -> u64 {
        self.begin
            .since(self.first)
            .checked_div(self.passed)
            .unwrap_or(self.interval)
    }

    /// Marsaglia's xorshift64: good enough to be out of step with a server, and nothing else is asked of it.
    fn next_random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: u64 = 4_000_000;

    #[test]
    fn one_round_falls_into_each_interval() {
        let mut cadence = Cadence::new(MonotonicNanos(1_000), INTERVAL);
        assert_eq!(cadence.deadline, MonotonicNanos(1_000));
        for number in 1..10_000 {
            assert!(!cadence.advance(cadence.deadline));
            assert_eq!((cadence.deadline.0 - 1_000) / INTERVAL, number);
        }
    }

    #[test]
    fn every_place_of_a_tick_is_met_equally_often() {
        const TICK: u64 = 50_000_000;
        let mut cadence = Cadence::new(MonotonicNanos(0), INTERVAL);
        let mut within = 0;
        for _ in 0..100_000 {
            cadence.advance(cadence.deadline);
            within += u64::from(cadence.deadline.0 % TICK < TICK * 3 / 10);
        }
        assert!(
            (29_500..30_500).contains(&within),
            "{within} of 100,000 rounds in 30 % of the tick"
        );
    }

    #[test]
    fn lost_time_is_not_made_up_for() {
        let mut cadence = Cadence::new(MonotonicNanos(0), INTERVAL);
        let late = MonotonicNanos(100 * INTERVAL);
        assert!(cadence.advance(late));
        assert!(cadence.deadline >= late && cadence.deadline.since(late) < INTERVAL);
        assert_eq!(cadence.mean(), 100 * INTERVAL);
        (0..100).for_each(|_| assert!(!cadence.advance(cadence.deadline)));
        assert!(cadence.mean() < 2 * INTERVAL);
        cadence.leave_out(99 * INTERVAL);
        assert_eq!(cadence.mean(), INTERVAL);
    }
}
