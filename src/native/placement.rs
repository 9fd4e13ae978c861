//! The processor that the sampler thread leaves to the thread it samples.
//!
//! **Problem.** Where the sampler wakes up is the kernel's choice, and on a small machine that is often the processor of the thread that is sampled, though
//! another one is idle. That thread then waits for all that the sampler does: on a virtual machine with two processors a signal from the same one took 35 microseconds
//! of a thread, and one from the other 16 (docs/performance.md).
//!
//! **Algorithm.** With one thread to sample, the sampler allows itself every processor that it was allowed when it began but the one on which that thread ran
//! last. This is looked at as often as threads are.
//!
//! **Price.** One file of `/proc` is read per look, and a system call made when the thread has moved.
//!
//! **Limits.** A thread that moves is shared with until the next look. With several threads to sample, or a single processor, nothing is done: somebody has
//! to make room.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::model::Tid;
use crate::sys::task;

/// Where the calling thread may run.
pub(super) struct Placement {
    /// Whom to leave a processor to, until that turns out to be impossible.
    of: Option<Tid>,
    allowed: CpuSet,
    left: Option<usize>,
}

impl Placement {
    /// For the calling thread, which is to leave `of` a processor.
    pub(super) fn new(of: Option<Tid>) -> Self {
        let allowed = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
        Placement {
            of: of.filter(|_| allowed.count() > 1),
            allowed,
            left: None,
        }
    }

    /// Looks where the other thread runs. On the thread that called [`Placement::new`].
    pub(super) fn look(&mut self) {
        let Some(processor) = self.of.and_then(task::processor) else {
            return;
        };
        if self.left == Some(processor) {
            return;
        }
        let mut others = self.allowed;
        if processor < CpuSet::MAX_CPU {
            others.unset(processor);
        }
        // Refused when somebody has meanwhile confined this process to that one.
        match sched_setaffinity(None, &others) {
            Ok(()) => self.left = Some(processor),
            Err(_) => self.of = None,
        }
    }
}
