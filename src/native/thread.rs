//! One sampled thread.

use std::io;

use super::capture::StackBounds;
use super::queue::Stack;
use super::request::Request;
use super::rhythm::Rhythm;
use crate::model::{MonotonicNanos, SampleLoss, ThreadKey, Tid};
use crate::sys::task::{self, SyscallFile, Whereabouts};

/// What a thread answered last, and where it stood.
#[derive(Debug)]
pub(super) struct Last {
    /// Its stack, or why there is none.
    pub(super) what: Result<Stack, SampleLoss>,
    /// Whether the aggregator has it.
    pub(super) shown: bool,
    pub(super) sp: u64,
    pub(super) pc: u64,
    /// CPU time at a moment when the thread was known to wait in exactly this place. While it stays the same, so does the stack.
    pub(super) settled_cpu: Option<u64>,
    /// CPU time when this answer was taken, if the request has cut a system call short and the thread was not seen settled since.
    pub(super) cut_at_cpu: Option<u64>,
}

/// One thread's life.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) key: ThreadKey,
    /// In clock ticks: what tells it from another thread with its id.
    pub(super) started: u64,
    pub(super) name: String,
    /// When it was first seen.
    pub(super) born: MonotonicNanos,
    /// When its name was last read.
    pub(super) named_at: MonotonicNanos,
    /// `false` while its name is not one that was asked for.
    pub(super) wanted: bool,
    pub(super) syscall: SyscallFile,
    pub(super) bounds: StackBounds,
    pub(super) bounds_looked_at: Option<MonotonicNanos>,
    pub(super) open: Option<Request>,
    /// Up to here its time is accounted for.
    pub(super) since: MonotonicNanos,
    /// CPU time at the last signal, to tell a busy thread from one that mostly waits.
    pub(super) cpu: u64,
    /// It has run since the set of threads was last looked at.
    pub(super) ran: bool,
    pub(super) rhythm: Rhythm,
    pub(super) last: Option<Last>,
    /// CPU time at a moment when it was known to wait.
    pub(super) waiting_cpu: Option<u64>,
    pub(super) blocked: bool,
    /// When the signal mask was last looked at.
    pub(super) mask_looked_at: MonotonicNanos,
}

impl Thread {
    /// # Errors
    /// When it is gone already ([`task::says_gone`]), or not enough can be known of it now.
    pub(super) fn new(tid: Tid, serial: u32, name: String, now: MonotonicNanos) -> io::Result<Self> {
        Ok(Thread {
            key: ThreadKey { tid, serial },
            started: task::start_ticks(tid)?,
            name,
            born: now,
            named_at: now,
            wanted: true,
            syscall: SyscallFile::open(tid),
            bounds: StackBounds::default(),
            bounds_looked_at: None,
            open: None,
            since: now,
            cpu: task::cpu_nanos(tid).ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?,
            ran: false,
            rhythm: Rhythm::new(),
            last: None,
            waiting_cpu: None,
            blocked: task::blocks_signal(tid, libc::SIGPROF)?,
            mask_looked_at: now,
        })
    }

    /// Whether the thread that has this id now is this one, as far as can be known now.
    pub(super) fn lives(&self) -> bool {
        match self.syscall.whereabouts() {
            // The file stays with its thread, whoever has the id now.
            Whereabouts::Running | Whereabouts::Blocked { .. } => true,
            Whereabouts::Gone => false,
            Whereabouts::Unknown => task::may_live(self.key.tid, self.started),
        }
    }
}
