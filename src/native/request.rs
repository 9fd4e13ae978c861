//! Asking a thread for its stack, and taking the answer.

use std::sync::atomic::Ordering;

use super::capture::Outcome;
use super::desk::{Desk, Life};
use super::handler::token;
use super::queue::{PythonKind, Queued, Shown, Stack};
use super::sampler::handler_in_place;
use super::thread::{Last, Thread};
use crate::limits;
use crate::model::{MonotonicNanos, SampleLoss, ThreadKey};
use crate::shadow::ShadowRead;
use crate::sync::{TakenBack, Ticket};
use crate::sys::{clock, mem, signal, task};

/// A request that a thread has not answered yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    ticket: Ticket,
    sent_at: MonotonicNanos,
}

impl Desk {
    /// Sends the signal.
    pub(super) fn ask(&mut self, thread: &mut Thread) -> Life {
        // Where our handler is not, ours must not arrive: a default action would end the process. So this is looked at before each signal.
        // Relaxed: a flag that only goes up.
        if self.shared.displaced.load(Ordering::Relaxed) || !handler_in_place() {
            if !self.shared.displaced.swap(true, Ordering::Relaxed) {
                signal::defuse(libc::SIGPROF);
            }
            self.lose(thread, SampleLoss::SendFailed);
            return Life::Goes;
        }
        let ThreadKey { tid, .. } = thread.key;
        let (bounds, program_break) = (thread.bounds, mem::program_break());
        let lent = self.owner.lend(tid.get() as u64, |capture| {
            capture.tid = tid;
            capture.stack = bounds;
            capture.program_break = program_break;
        });
        let Some(ticket) = lent else {
            self.lose(thread, SampleLoss::NoSlot);
            return Life::Goes;
        };
        match signal::send(self.engine.process, tid, libc::SIGPROF, token(ticket)) {
            Ok(()) => {
                thread.open = Some(Request {
                    ticket,
                    sent_at: clock::monotonic(),
                });
                Life::Goes
            }
            Err(error) => {
                self.owner.take_back(ticket);
                if error.raw_os_error() == Some(libc::ESRCH) {
                    return Life::Ended;
                }
                self.lose(thread, SampleLoss::SendFailed);
                Life::Goes
            }
        }
    }

    /// A request is open and not answered.
    pub(super) fn wait_on(&mut self, thread: &mut Thread, request: Request, now: MonotonicNanos) -> Life {
        let mut reason = None;
        if now.since(request.sent_at.max(thread.mask_looked_at)) >= limits::BLOCKED_CHECK_NANOS {
            thread.mask_looked_at = now;
            match task::blocks_signal(thread.key.tid, libc::SIGPROF) {
                Ok(true) => reason = Some(SampleLoss::Blocked),
                Err(error) if task::says_gone(&error) => return Life::Ended,
                // Or it is not known now.
                Ok(false) | Err(_) => {}
            }
        }
        if now.since(request.sent_at) >= limits::ANSWER_NANOS {
            reason = reason.or(Some(SampleLoss::TimedOut));
        }
        if let Some(reason) = reason
            && self.owner.take_back(request.ticket) == TakenBack::Free
        {
            thread.open = None;
            thread.blocked = reason == SampleLoss::Blocked;
            self.lose(thread, reason);
        }
        Life::Goes
    }

    /// Takes an answer. `false` when there is none yet.
    pub(super) fn collect(&mut self, thread: &mut Thread, request: Request) -> bool {
        if !self.owner.is_filled(request.ticket) {
            return false;
        }
        let mut stack = match thread.last.take().map(|last| last.what) {
            Some(Ok(stack)) => stack,
            _ => self.shared.queue.spare(),
        };
        let read = self.owner.reclaim(request.ticket, |capture| {
            self.figures.count_answer(capture);
            stack.frames.clear();
            stack.entries.clear();
            stack.frames.extend(capture.frames.kept());
            stack.omitted = capture.frames.omitted();
            stack.python = match capture.shadow {
                ShadowRead::NoStack => PythonKind::None,
                ShadowRead::Torn => PythonKind::Torn,
                ShadowRead::Frames { count, hidden } => {
                    stack.entries.extend_from_slice(capture.python.entries(count));
                    PythonKind::Frames { hidden }
                }
            };
            Answer {
                outcome: capture.outcome,
                started: capture.started,
                ended: capture.ended,
                sp: capture.sp,
                pc: capture.pc,
                control_block: capture.control_block,
                cut_a_call: capture.cut_a_call,
            }
        });
        let Some(answer) = read else {
            return false;
        };
        thread.open = None;
        self.stacks.learn(thread, answer.sp, answer.control_block);
        let cut_at_cpu = answer.cut_a_call.then(|| task::cpu_nanos(thread.key.tid)).flatten();
        let (what, shown) = match answer.outcome {
            Outcome::Lost(reason) => {
                self.lose(thread, reason);
                (Err(reason), false)
            }
            Outcome::Stack(end) => {
                stack.end = end;
                let weight = answer.started.since(thread.since);
                let sample = Queued {
                    thread: thread.key,
                    taken_at: answer.started,
                    weight_nanos: weight,
                    // It may have been asked before the last time was booked.
                    held_nanos: answer.started.since(request.sent_at).min(weight),
                    shown: Shown::Stack(self.copy_of(&stack)),
                };
                let shown = self.hand_over(sample, &stack);
                (Ok(stack), shown)
            }
        };
        // Time in our handler is nobody's. (Later already if the process was stopped since.)
        thread.since = thread.since.max(answer.ended);
        thread.last = Some(Last {
            what,
            shown,
            sp: answer.sp,
            pc: answer.pc,
            settled_cpu: None,
            cut_at_cpu,
        });
        true
    }

    /// A copy for the aggregator.
    pub(super) fn copy_of(&self, stack: &Stack) -> Stack {
        let mut copy = self.shared.queue.spare();
        copy.copy_from(stack);
        copy
    }

    /// Gives a sample to the aggregator. `false`: there was no room.
    pub(super) fn hand_over(&mut self, sample: Queued, stack: &Stack) -> bool {
        let taken = self.shared.queue.push(sample);
        if taken {
            self.figures.count_sample(stack);
        } else {
            self.figures.count_loss(SampleLoss::NoSlot);
        }
        taken
    }

    /// A thread has ended.
    pub(super) fn let_go(&mut self, thread: &mut Thread) {
        if let Some(request) = thread.open
            && !self.collect(thread, request)
        {
            self.owner.take_back(request.ticket);
            self.figures.count_loss(SampleLoss::ThreadGone);
        }
        self.shared.queue.push_end(thread.key);
    }

    /// A thread is not to be sampled any more: takes its answer if there is one; if not, and if `give_up`, it is waited for no longer. `true`: nothing is open.
    pub(super) fn withdraw(&mut self, thread: &mut Thread, give_up: bool) -> bool {
        let Some(request) = thread.open else {
            return true;
        };
        if self.collect(thread, request) {
            return true;
        }
        if give_up && self.owner.take_back(request.ticket) == TakenBack::Free {
            thread.open = None;
            self.lose(thread, SampleLoss::TimedOut);
        }
        thread.open.is_none()
    }
}

/// What the handler left in its slot, the frames apart.
struct Answer {
    outcome: Outcome,
    started: MonotonicNanos,
    ended: MonotonicNanos,
    sp: u64,
    pc: u64,
    control_block: u64,
    cut_a_call: bool,
}
