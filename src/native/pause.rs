//! Times in which the whole process did not run.
//!
//! **Problem.** A process can be stopped (`SIGSTOP`, a debugger, a frozen control group), and so can its machine. The clock goes on; a profile that gives this
//! time to the functions that happened to run would show a hang that never was.
//!
//! **Algorithm.** The sampler itself sleeps to a planned time. When it comes far too late, it was either kept waiting for a processor, as on a
//! full machine, and then the others were too and the time is theirs; or it could not run at all. The kernel tells: waiting for a processor is counted per thread
//! (`/proc/thread-self/schedstat`).
//!
//! **Assumptions.** Pauses shorter than [`limits::PAUSE_NANOS`] are not noticed, and where the kernel does not count waiting, none is. The clock used everywhere
//! does not count a suspended machine in the first place.

use crate::limits;
use crate::model::MonotonicNanos;

/// See the module's text.
#[derive(Debug)]
pub(super) struct PauseWatch {
    /// When the present turn of the sampler's loop began.
    begun: MonotonicNanos,
    /// How long it was to sleep in it.
    planned: u64,
    /// How long the sampler had waited for processors when it was last asked for.
    waited: Option<u64>,
}

impl PauseWatch {
    /// `waited` is how long the calling thread has waited for processors, in nanoseconds.
    pub(super) fn new(now: MonotonicNanos, waited: Option<u64>) -> Self {
        PauseWatch {
            begun: now,
            planned: 0,
            waited,
        }
    }

    /// The thread goes to sleep now.
    pub(super) fn sleeps(&mut self, now: MonotonicNanos, until: MonotonicNanos) {
        self.planned = until.since(now);
    }

    /// A newer reading.
    pub(super) fn has_waited(&mut self, waited: Option<u64>) {
        self.waited = waited;
    }

    /// A turn begins. How long the process was stopped in the last one, in nanoseconds. `waited` is only called when something took long.
    pub(super) fn turn(&mut self, now: MonotonicNanos, waited: impl FnOnce() -> Option<u64>) -> Option<u64> {
        let unplanned = now.since(self.begun).saturating_sub(self.planned);
        (self.begun, self.planned) = (now, 0);
        if unplanned < limits::PAUSE_NANOS {
            return None;
        }
        let before = std::mem::replace(&mut self.waited, waited());
        let in_line = self.waited?.saturating_sub(before?);
        (in_line < unplanned / 2).then_some(unplanned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn watch() -> PauseWatch {
        let mut watch = PauseWatch::new(MonotonicNanos(0), Some(100));
        watch.sleeps(MonotonicNanos(1_000), MonotonicNanos(SECOND));
        watch
    }

    #[test]
    fn a_long_sleep_that_was_planned_is_no_pause() {
        assert_eq!(watch().turn(MonotonicNanos(SECOND + 50_000), || panic!()), None);
    }

    #[test]
    fn a_process_that_was_stopped_is_told_from_a_full_machine() {
        let late = MonotonicNanos(4 * SECOND);
        assert_eq!(watch().turn(late, || Some(50_000)), Some(3 * SECOND + 1_000));
        assert_eq!(watch().turn(late, || Some(3 * SECOND)), None, "it stood in line");
        assert_eq!(watch().turn(late, || None), None, "the kernel does not tell");
    }

    #[test]
    fn a_stop_in_the_middle_of_work_is_noticed_too_and_only_once() {
        let mut watch = watch();
        watch.turn(MonotonicNanos(SECOND), || panic!());
        // It worked until 5 s, then planned a millisecond.
        watch.sleeps(MonotonicNanos(5 * SECOND), MonotonicNanos(5 * SECOND + 1_000_000));
        let after = MonotonicNanos(5 * SECOND + 1_000_000);
        assert_eq!(watch.turn(after, || Some(100)), Some(4 * SECOND));
        assert_eq!(watch.turn(after, || panic!()), None);
    }
}
