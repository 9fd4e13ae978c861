//! What the kernel says of one thread of this process.

use std::fs;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::model::Tid;

fn read(tid: Tid, file: &str) -> io::Result<String> {
    fs::read(format!("/proc/self/task/{}/{file}", tid.get())).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether an answer about a thread says that it is gone. Any other error (no descriptor is free, no memory) says nothing about the thread.
pub fn says_gone(error: &io::Error) -> bool {
    // The folder is not there any more; the file was opened before the thread ended.
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH))
}

/// The thread's name, at most 15 bytes.
///
/// # Errors
/// See [`says_gone`].
pub fn name(tid: Tid) -> io::Result<String> {
    Ok(read(tid, "comm")?.trim_end_matches('\n').to_owned())
}

/// When the thread began, in clock ticks since boot: with the id, this tells two threads with one id apart.
///
/// # Errors
/// See [`says_gone`].
pub fn start_ticks(tid: Tid) -> io::Result<u64> {
    parse_start(&read(tid, "stat")?).ok_or_else(unreadable)
}

/// The name in parentheses may hold anything, so fields count from the last one; the start is field 22 (proc_pid_stat(5)).
fn parse_start(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// The processor on which the thread ran last. `None` when that cannot be known.
pub fn processor(tid: Tid) -> Option<usize> {
    parse_processor(&read(tid, "stat").ok()?)
}

/// Field 39, see [`parse_start`].
fn parse_processor(stat: &str) -> Option<usize> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(36)?.parse().ok()
}

/// Whether the thread with this id that began then may be alive: it is, or that cannot be known now.
pub fn may_live(tid: Tid, started: u64) -> bool {
    match start_ticks(tid) {
        Ok(ticks) => ticks == started,
        Err(error) => !says_gone(&error),
    }
}

/// Whether the thread blocks `signal`.
///
/// # Errors
/// See [`says_gone`].
pub fn blocks_signal(tid: Tid, signal: libc::c_int) -> io::Result<bool> {
    let mask = parse_blocked(&read(tid, "status")?).ok_or_else(unreadable)?;
    Ok(mask >> (signal - 1) & 1 == 1)
}

fn parse_blocked(status: &str) -> Option<u64> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

fn unreadable() -> io::Error {
    io::Error::from(io::ErrorKind::InvalidData)
}

/// All threads of this process.
///
/// # Errors
/// What reading the folder says; half a list is none.
pub fn all() -> io::Result<Vec<Tid>> {
    let mut tids = Vec::new();
    for entry in fs::read_dir("/proc/self/task")? {
        let name = entry?.file_name();
        let tid = name.to_str().and_then(|name| name.parse::<i32>().ok());
        tids.extend(tid.map(Tid::new));
    }
    Ok(tids)
}

/// CPU time the thread has used, in nanoseconds, exact also while it runs. `None` when it is gone.
pub fn cpu_nanos(tid: Tid) -> Option<u64> {
    // A thread's clock id is made from its id: `!tid << 3 | per-thread | scheduler's` (posix-timers_types.h, CPUCLOCK_*).
    const PER_THREAD_SCHEDULED: i32 = 4 | 2;
    // The kernel's ids stay below 2^22 (PID_MAX_LIMIT); a larger number would name one of the fixed clocks.
    if !(1..1 << 22).contains(&tid.get()) {
        return None;
    }
    let clock = (!tid.get()) << 3 | PER_THREAD_SCHEDULED;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to; an id of no living thread is refused by the kernel.
    let code = unsafe { libc::clock_gettime(clock, &mut time) };
    (code == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// How long the calling thread has waited for a processor while it could have run, in nanoseconds since its birth. `None` where the kernel does not count it.
pub fn nanos_in_line() -> Option<u64> {
    // Time on a processor, time in line, turns (Documentation/scheduler/sched-stats.rst).
    let line = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The calling thread's own stack. `None` when libc does not know. Not for signal handlers.
pub fn own_stack() -> Option<Range<u64>> {
    // SAFETY: an all-zero attribute object is only written to by pthread_getattr_np, and destroyed if that succeeded.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &mut attributes) != 0 {
            return None;
        }
        let mut start = std::ptr::null_mut();
        let mut size = 0;
        let code = libc::pthread_attr_getstack(&attributes, &mut start, &mut size);
        libc::pthread_attr_destroy(&mut attributes);
        (code == 0).then(|| start as u64..(start as u64).saturating_add(size as u64))
    }
}

/// How large the main thread's stack may grow, in bytes. Without a limit, Linux's default is assumed.
pub fn stack_limit() -> u64 {
    const DEFAULT: u64 = 8 << 20;
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is a valid rlimit to write to.
    let code = unsafe { libc::getrlimit(libc::RLIMIT_STACK, &mut limit) };
    if code == 0 && limit.rlim_cur != libc::RLIM_INFINITY {
        limit.rlim_cur
    } else {
        DEFAULT
    }
}

/// How many files this process may have open.
fn open_file_limit() -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is a valid rlimit to write to.
    let code = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    if code == 0 { limit.rlim_cur } else { 0 }
}

/// Where a thread is, as far as the kernel tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whereabouts {
    /// It runs, or is about to.
    Running,
    /// It waits in the kernel.
    Blocked {
        /// The stack pointer it entered with.
        sp: u64,
        /// The address it will go on at: just after the system call, or the instruction that faulted.
        pc: u64,
    },
    /// It has ended.
    Gone,
    /// The kernel does not say (no such file, or not allowed).
    Unknown,
}

/// `/proc/self/task/TID/syscall`, kept open: the open file stays with that very thread even when the kernel gives its id to another.
#[derive(Debug)]
pub struct SyscallFile(Option<OwnedFd>);

impl SyscallFile {
    /// Opens the file of `tid`. Where there is none, or where it would take a descriptor of the upper half of those that this process may have (they are
    /// the server's), all answers are [`Whereabouts::Unknown`].
    pub fn open(tid: Tid) -> Self {
        let path = format!("/proc/self/task/{}/syscall\0", tid.get());
        // SAFETY: a NUL-terminated path.
        let fd = unsafe { libc::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC) };
        // SAFETY: just opened, owned by nobody else.
        let file = (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) });
        SyscallFile(file.filter(|_| fd as u64 <= open_file_limit() / 2))
    }

    /// Where the thread is now.
    pub fn whereabouts(&self) -> Whereabouts {
        let Some(file) = &self.0 else {
            return Whereabouts::Unknown;
        };
        let mut line = [0; 256];
        // SAFETY: `line` is writable for its length and the descriptor is open.
        let read = unsafe { libc::pread(file.as_raw_fd(), line.as_mut_ptr().cast(), line.len(), 0) };
        if read < 0 {
            return match io::Error::last_os_error().raw_os_error() {
                Some(libc::ESRCH) => Whereabouts::Gone,
                _ => Whereabouts::Unknown,
            };
        }
        line.get(..read as usize)
            .and_then(parse_whereabouts)
            .unwrap_or(Whereabouts::Unknown)
    }
}

/// `running`, or `NUMBER [six arguments] SP PC` (proc_pid_syscall(5)).
fn parse_whereabouts(line: &[u8]) -> Option<Whereabouts> {
    let line = std::str::from_utf8(line).ok()?;
    if line.trim_end() == "running" {
        return Some(Whereabouts::Running);
    }
    let mut fields = line.split_ascii_whitespace().rev();
    let mut hex = || u64::from_str_radix(fields.next()?.strip_prefix("0x")?, 16).ok();
    let pc = hex()?;
    let sp = hex()?;
    Some(Whereabouts::Blocked { sp, pc })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::thread::current_tid;

    #[test]
    fn the_calling_thread_is_described() {
        let tid = current_tid();
        assert!(name(tid).is_ok());
        let here = 0_u8;
        assert!(own_stack().unwrap().contains(&((&raw const here) as u64)));
        assert!(start_ticks(tid).unwrap() > 0);
        assert!(processor(tid).is_some());
        assert!(!blocks_signal(tid, libc::SIGPROF).unwrap());
        let started = start_ticks(tid).unwrap();
        assert!(may_live(tid, started) && !may_live(tid, started + 1));
        assert!(all().unwrap().contains(&tid));
        let before = cpu_nanos(tid).unwrap();
        let mut work = 1_u64;
        while cpu_nanos(tid).unwrap() == before {
            work = work.wrapping_mul(3);
        }
        assert!(std::hint::black_box(work) != 0);
        // It is in the very call that asks.
        assert!(matches!(
            SyscallFile::open(tid).whereabouts(),
            Whereabouts::Blocked { sp, .. } if own_stack().unwrap().contains(&sp)
        ));
    }

    #[test]
    fn the_processor_is_told_whatever_a_thread_is_called() {
        let fields: Vec<String> = (3..=52).map(|field| field.to_string()).collect();
        let stat = format!("7 (a ) b) {}", fields.join(" "));
        assert_eq!(parse_processor(&stat), Some(39));
        assert_eq!(parse_start(&stat), Some(22));
        assert_eq!(parse_processor("7 (a) S 1 2"), None);
    }

    #[test]
    fn a_thread_that_never_was_is_gone() {
        let nobody = Tid::new(i32::MAX);
        assert!(name(nobody).is_err_and(|error| says_gone(&error)));
        assert_eq!(cpu_nanos(nobody), None);
        assert!(start_ticks(nobody).is_err_and(|error| says_gone(&error)));
        assert!(blocks_signal(nobody, libc::SIGPROF).is_err_and(|error| says_gone(&error)));
        assert!(!may_live(nobody, 1));
        assert_eq!(SyscallFile::open(nobody).whereabouts(), Whereabouts::Unknown);
    }

    #[test]
    fn only_two_errors_say_that_a_thread_is_gone() {
        for code in [libc::ENOENT, libc::ESRCH] {
            assert!(says_gone(&io::Error::from_raw_os_error(code)));
        }
        for code in [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::EACCES, libc::EINTR] {
            assert!(!says_gone(&io::Error::from_raw_os_error(code)));
        }
        assert!(!says_gone(&unreadable()));
    }

    #[test]
    fn whereabouts_are_read_from_the_end() {
        let blocked = parse_whereabouts(b"7 0x1 0x2 0x3 0x4 0x5 0x6 0x7ffd10 0x7f20\n");
        assert_eq!(
            blocked,
            Some(Whereabouts::Blocked {
                sp: 0x7ffd10,
                pc: 0x7f20
            })
        );
        assert_eq!(
            parse_whereabouts(b"-1 0x10 0x20\n"),
            Some(Whereabouts::Blocked { sp: 0x10, pc: 0x20 })
        );
        assert_eq!(parse_whereabouts(b"running\n"), Some(Whereabouts::Running));
        assert_eq!(parse_whereabouts(b""), None);
    }
}
