//! How often a thread is looked at.
//!
//! **Problem.** A server has hundreds of threads that wait for minutes. Asking each for its CPU time 250 times a second costs as much as sampling the few that
//! work, and shows nothing.
//!
//! **Why not the process's clock.** It would show at once whether anything ran at all, but something always does: the server's own thread, and ours.
//!
//! **Algorithm.** A thread that has not run for [`limits::IDLE_LOOKS`] looks in a row is looked at half as often, and so on, down to one look in
//! [`limits::IDLE_LOOK_NANOS`]. What it is given for the time between is exact: its CPU clock says that it did not run. When it has run, the next look
//! comes after the same distance once more, and only then every round is a look again. So the two times that meet at that sample, half of
//! which it gets each (`profile/ledger.rs`), are equally long, as they are everywhere else, and work that is shorter than the distance and
//! found by chance counts for what the missed work took as well.
//!
//! **Price.** A thread that wakes after seconds of sleep is seen up to [`limits::IDLE_LOOK_NANOS`] late, and with a coarser grain for that long.

use crate::limits;

/// See the module's text. Distances are in rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rhythm {
    distance: u32,
    /// Rounds to pass by before the next look.
    pass: u32,
    /// Looks in a row at which it had not run.
    still: u32,
    /// It has run at the last look, and the distance is to be kept once.
    woken: bool,
}

impl Rhythm {
    /// Every round is a look.
    pub(super) fn new() -> Self {
        Rhythm {
            distance: 1,
            pass: 0,
            still: 0,
            woken: false,
        }
    }

    /// The longest distance for rounds of this length in nanoseconds.
    pub(super) fn longest(interval: u64) -> u32 {
        u32::try_from(limits::IDLE_LOOK_NANOS / interval.max(1))
            .unwrap_or(u32::MAX)
            .max(1)
    }

    /// To be asked once a round: whether to look at the thread in this one.
    #[inline]
    pub(super) fn is_due(&mut self) -> bool {
        match self.pass.checked_sub(1) {
            Some(left) => {
                self.pass = left;
                false
            }
            None => true,
        }
    }

    /// It was looked at and had not run since the last look.
    pub(super) fn stood_still(&mut self, longest: u32) {
        self.wake_if_woken();
        self.still += 1;
        if self.still.is_multiple_of(limits::IDLE_LOOKS) && self.distance.saturating_mul(2) <= longest {
            self.distance *= 2;
        }
        self.pass = self.distance - 1;
    }

    /// It was looked at and had run.
    pub(super) fn ran(&mut self) {
        self.still = 0;
        if !self.wake_if_woken() {
            self.woken = self.distance > 1;
        }
        self.pass = self.distance - 1;
    }

    fn wake_if_woken(&mut self) -> bool {
        let woken = std::mem::take(&mut self.woken);
        if woken {
            (self.distance, self.still) = (1, 0);
        }
        woken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds in which a look falls.
    fn looks(rounds: u32, rhythm: &mut Rhythm, mut ran: impl FnMut(u32) -> bool) -> Vec<u32> {
        let mut looks = Vec::new();
        for round in 0..rounds {
            if rhythm.is_due() {
                looks.push(round);
                if ran(round) {
                    rhythm.ran();
                } else {
                    rhythm.stood_still(16);
                }
            }
        }
        looks
    }

    #[test]
    fn a_thread_that_works_once_a_tick_is_looked_at_in_every_round() {
        let mut rhythm = Rhythm::new();
        // 50 ms at 4 ms.
        assert_eq!(looks(1_000, &mut rhythm, |round| round % 12 == 0).len(), 1_000);
    }

    #[test]
    fn a_thread_that_sleeps_for_long_is_looked_at_less_and_less_down_to_a_limit() {
        let mut rhythm = Rhythm::new();
        let looks = looks(10_000, &mut rhythm, |_| false);
        let distances: Vec<u32> = looks.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(distances.is_sorted());
        assert_eq!(distances[..16], [[1; 15].as_slice(), &[2]].concat());
        assert_eq!(distances.last(), Some(&16));
        assert!(looks.len() < 10_000 / 16 + 4 * 16);
    }

    #[test]
    fn after_waking_the_distance_is_kept_once() {
        let mut rhythm = Rhythm::new();
        looks(5_000, &mut rhythm, |_| false);
        let woken = looks(200, &mut rhythm, |_| true);
        assert_eq!(woken[1] - woken[0], 16);
        assert!(woken.windows(2).skip(1).all(|pair| pair[1] - pair[0] == 1), "{woken:?}");
    }

    #[test]
    fn long_intervals_leave_nothing_to_save() {
        assert_eq!(Rhythm::longest(4_000_000), 16);
        assert_eq!(Rhythm::longest(100_000), 640);
        assert_eq!(Rhythm::longest(1_000_000_000), 1);
    }

    /// A thread that works 3 rounds of every 150 or so: its share is right although most of its work is never seen.
    #[test]
    fn rare_short_work_keeps_its_share() {
        let mut rhythm = Rhythm::new();
        let mut random = 1_u64;
        let mut next = 0;
        let mut works_until = 0;
        let (mut truth, mut found, mut all) = (0_u64, 0_f64, 0_u64);
        let mut last: Option<(u32, bool)> = None;
        let mut ran_since = false;
        for round in 0..4_000_000_u32 {
            if round == next {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                works_until = round + 3;
                next = round + 1_000 + (random >> 33) as u32 % 1_000;
            }
            let works = round < works_until;
            ran_since |= works;
            truth += u64::from(works);
            all += 1;
            if !rhythm.is_due() {
                continue;
            }
            if let Some((before, worked)) = last {
                let half = f64::from(round - before) / 2.0;
                found += half * f64::from(u8::from(works)) + half * f64::from(u8::from(worked));
            }
            last = Some((round, works));
            if std::mem::take(&mut ran_since) {
                rhythm.ran();
            } else {
                rhythm.stood_still(16);
            }
        }
        let (truth, found) = (truth as f64 / all as f64, found / all as f64);
        assert!((found / truth - 1.0).abs() < 0.15, "{found}, not {truth}");
    }
}
