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

/// Sleeps for so long, or shorter when a signal comes.
pub fn nanos(nanos: u64) {
    until(MonotonicNanos(super::clock::monotonic().0.saturating_add(nanos)));
}

/// Asks the kernel to wake the calling thread as exactly as it can, instead of within 50 microseconds.
pub fn be_exact() {
    // SAFETY: concerns this thread's timers only; 1 ns is the smallest slack (prctl(2)).
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) };
}

/// `struct sched_attr` in its first version (include/uapi/linux/sched/types.h).
#[repr(C)]
struct SchedulingAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const _: () = assert!(size_of::<SchedulingAttributes>() == 48);

/// Asks the scheduler to give the calling thread its processor often and briefly instead of rarely and for long: when it wakes on a machine whose processors
/// are all taken, it does not wait for the end of another thread's turn. It gets no more time than others do. Since Linux 6.12, for everybody;
/// without any effect before.
pub fn be_prompt() {
    // The shortest turn that the kernel grants (kernel/sched/syscalls.c).
    const TURN_NANOS: u64 = 100_000;
    // The niceness stays as it is (SCHED_FLAG_KEEP_PARAMS would keep the turn, too).
    // SAFETY: concerns this thread only; a priority cannot be told from an error, and either is harmless.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let attributes = SchedulingAttributes {
        size: size_of::<SchedulingAttributes>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: 0,
        nice,
        priority: 0,
        runtime: TURN_NANOS,
        deadline: 0,
        period: 0,
    };
    // SAFETY: a complete structure of the size it names, for the length of the call; a refusal leaves all as it was.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
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
