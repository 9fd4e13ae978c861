//! Whether a thread still has the stack of its last sample, found out without disturbing it.
//!
//! A thread that has not run since a known moment has the same stack as then. The question is what "a known moment" is. At the sample itself it is not:
//! after our handler the thread runs on, if only to wait again. So, when a thread waits again (`/proc/self/task/TID/syscall`), its place is compared with
//! the last sample: the same stack pointer, the same system call, the same return address in the stack at each frame, the same shadow stack. Its CPU
//! clock, read before and after the comparison, shows that it did not run meanwhile. Then the stack is the last one for sure, and this CPU time is the
//! known moment: as long as it does not move, nothing else is looked at. A thread that polls, wakes and waits again in the same place is recognised without a
//! signal too. Where the kernel does not show the file, every sample is taken by a signal.
//!
//! **The way back.** A signal makes some system calls return (EINTR), and the thread usually goes straight back. On a full machine it may wait for a processor on
//! that way for longer than the interval, and asked again it would be cut short again as soon as it sleeps. So a thread whose call we have cut short is left
//! alone until it has settled, or has used more CPU than a way back takes ([`limits::WAY_BACK_NANOS`]): then it works, and is asked as any other.

use std::sync::atomic::Ordering;

use super::engine::Engine;
use super::queue::{PythonKind, Stack};
use super::thread::{Last, Thread};
use crate::limits;
use crate::model::MonotonicNanos;
use crate::shadow::{ReadBuffer, ShadowRead};
use crate::sys::mem;
use crate::sys::task::{self, Whereabouts};

/// What is known of a thread that may have the stack of its last sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stillness {
    /// It has not run.
    Untouched,
    /// It has run, and waits with that stack again.
    SamePlace,
    /// We have woken it, and it is on its way back.
    OnItsWayBack,
    /// Nothing.
    Unknown,
}

/// See the module's text.
pub(super) struct StillnessCheck {
    engine: &'static Engine,
    shadow: Box<ReadBuffer>,
}

/// What one comparison found.
enum Comparison {
    Same,
    Running,
    Different,
}

impl StillnessCheck {
    pub(super) fn new(engine: &'static Engine) -> Self {
        StillnessCheck {
            engine,
            shadow: Box::new(ReadBuffer::new()),
        }
    }

    /// `cpu` is its CPU time of just now.
    pub(super) fn of(&mut self, thread: &mut Thread, mut cpu: u64, now: MonotonicNanos) -> Stillness {
        let used = cpu.saturating_sub(thread.cpu);
        let Some(last) = &mut thread.last else {
            return Stillness::Unknown;
        };
        if last.settled_cpu == Some(cpu) {
            return Stillness::Untouched;
        }
        last.settled_cpu = None;
        let way_back = last
            .cut_at_cpu
            .is_some_and(|cut| cpu.saturating_sub(cut) < limits::WAY_BACK_NANOS);
        if !way_back {
            last.cut_at_cpu = None;
            // A thread that ran for most of the time is not worth the look.
            if used > now.since(thread.since) / 2 {
                return Stillness::Unknown;
            }
        }
        // It may fall asleep between two of the looks; then they are worth repeating.
        for _ in 0..limits::SETTLING_LOOKS {
            match self.compare(thread) {
                Comparison::Same => {}
                Comparison::Running if way_back => return Stillness::OnItsWayBack,
                Comparison::Running | Comparison::Different => return Stillness::Unknown,
            }
            let Some(after) = task::cpu_nanos(thread.key.tid) else {
                return Stillness::Unknown;
            };
            if after == cpu {
                thread.cpu = cpu;
                if let Some(last) = &mut thread.last {
                    last.settled_cpu = Some(cpu);
                    last.cut_at_cpu = None;
                }
                return Stillness::SamePlace;
            }
            cpu = after;
        }
        if way_back {
            Stillness::OnItsWayBack
        } else {
            Stillness::Unknown
        }
    }

    fn compare(&mut self, thread: &Thread) -> Comparison {
        // Relaxed: written once, before.
        let can_read = self.engine.can_read.load(Ordering::Relaxed);
        let Some(last) = thread.last.as_ref().filter(|_| can_read) else {
            return Comparison::Different;
        };
        let (sp, pc) = match thread.syscall.whereabouts() {
            Whereabouts::Blocked { sp, pc } => (sp, pc),
            Whereabouts::Running => return Comparison::Running,
            Whereabouts::Gone | Whereabouts::Unknown => return Comparison::Different,
        };
        // Interrupted in a system call that is made again, the thread was at the instruction itself (2 bytes), else just behind it.
        let same = sp == last.sp && (pc == last.pc || pc == last.pc.wrapping_add(2)) && self.same_callers(thread, last);
        if same { Comparison::Same } else { Comparison::Different }
    }

    fn same_callers(&mut self, thread: &Thread, last: &Last) -> bool {
        // Where nothing could be captured, nothing is shown.
        let Ok(stack) = &last.what else {
            return true;
        };
        stack.omitted == 0 && self.same_returns(stack) && self.same_python(thread, stack)
    }

    fn same_returns(&self, stack: &Stack) -> bool {
        let pairs = stack.frames.iter().zip(stack.frames.iter().skip(1));
        let returns = pairs.map(|(frame, caller)| (frame.cfa.wrapping_sub(8), caller.address.wrapping_add(1)));
        mem::own_words_are(self.engine.process, returns)
    }

    fn same_python(&mut self, thread: &Thread, stack: &Stack) -> bool {
        match (self.engine.shadow.read(thread.key.tid, &mut self.shadow), stack.python) {
            (ShadowRead::NoStack, PythonKind::None) => true,
            (ShadowRead::Frames { count, hidden }, PythonKind::Frames { hidden: before }) => {
                hidden == before && self.shadow.entries(count) == stack.entries
            }
            _ => false,
        }
    }
}
