//! Sleeping to a point in time.

use crate::model::MonotonicNanos;

/// Sleeps until `deadline`; returns at once when it has passed.
pub fn until(deadline: MonotonicNanos) {
    let time = libc::timespec {
        tv_sec: (deadline.0 / 1_000_000_000) as i64,
        tv_nsec: (deadline.0 % 1_000_000_000) as i64,
    };
    // SAFETY: `time` is a valid timespec; an absolute sleep needs no place for the rest. An early return (a signal) only makes one round early.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &time, std::ptr::null_mut()) };
}

/// Asks the kernel to wake the calling thread as exactly as it can, instead of within 50 microseconds.
pub fn be_exact() {
    // SAFETY: concerns this thread's timers only; 1 ns is the smallest slack (prctl(2)).
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::clock::monotonic;

    #[test]
    fn a_sleep_ends_after_its_deadline() {
        be_exact();
        let deadline = MonotonicNanos(monotonic().0 + 1_000_000);
        until(deadline);
        assert!(monotonic() >= deadline);
        until(MonotonicNanos(0));
    }
}
