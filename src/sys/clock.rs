//! Clocks. All are async-signal-safe; the first two are answered by the vdso without entering the kernel.

use crate::model::{MonotonicNanos, WallMillis};

fn read(clock: libc::clockid_t) -> libc::timespec {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec to write to; all clocks used here exist on every Linux, so the call cannot fail, and if it did `now` stays 0.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now
}

/// Now, on the clock that is never set.
pub fn monotonic() -> MonotonicNanos {
    let now = read(libc::CLOCK_MONOTONIC);
    MonotonicNanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// Now, as the calendar has it. For dates only: an administrator or NTP may set it at any time.
pub fn wall() -> WallMillis {
    let now = read(libc::CLOCK_REALTIME);
    WallMillis(now.tv_sec * 1_000 + now.tv_nsec / 1_000_000)
}

/// Processor time that this process has used, threads that have ended included, in nanoseconds. `None` where that is not known.
pub fn process_nanos() -> Option<u64> {
    let used = read(libc::CLOCK_PROCESS_CPUTIME_ID);
    let nanos = used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64;
    // Whoever asks has used some.
    (nanos > 0).then_some(nanos)
}
