//! One decision about one thread: take its answer, show its last stack again, or ask it.
//!
//! A thread that has not run since a known moment has the same stack as then: it is not disturbed, its last stack is shown again. The question is what
//! "a known moment" is. At the sample itself it is not: after our handler the thread runs on, if only to wait again. So, when a thread waits again
//! (`/proc/self/task/TID/syscall`), its place is compared with the last sample: the same stack pointer, the same system call, the same
//! return address in the stack at each frame, the same shadow stack. Its CPU clock, read before and after the comparison, shows that it did not run
//! meanwhile. Then the stack is the last one for sure, and this CPU time is the known moment: as long as it does not move, nothing else is
//! looked at. A thread that polls, wakes and waits again in the same place is recognised without a signal too. Where the kernel does not show the
//! file, every sample is taken by a signal.
//!
//! When time asleep is to be left out, a thread that waits is not asked at all: the kernel's file, or an unmoved CPU clock since it last said so, is enough.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::bounds::bounds;
use super::capture::{Capture, Outcome};
use super::costs::Costs;
use super::engine::Engine;
use super::handler::token;
use super::queue::{PythonKind, Queued, Shown};
use super::rhythm::Rhythm;
use super::sampler::{Shared, handler_in_place};
use super::table::ModuleTable;
use super::thread::{Last, Request, Thread};
use crate::limits;
use crate::model::{MonotonicNanos, SampleLoss, SamplerDiagnostics, ThreadKey};
use crate::shadow::{ReadBuffer, ShadowRead};
use crate::sync::{Owner, Publisher, TakenBack};
use crate::sys::task::{self, Whereabouts};
use crate::sys::{clock, maps, mem, signal};

/// What a decision about one thread needs besides the thread.
pub(super) struct Desk {
    pub(super) engine: &'static Engine,
    pub(super) owner: Owner<'static, Capture>,
    pub(super) publisher: Publisher<'static, ModuleTable>,
    pub(super) shared: Arc<Shared>,
    figures: SamplerDiagnostics,
    costs: Costs,
    shadow: Box<ReadBuffer>,
    ignore_sleeping: bool,
    /// Longest distance of looks at a thread that does not run, in rounds.
    longest: u32,
    /// The engine counts over all sessions.
    foreign_before: u64,
}

/// What is known of a thread that may have the stack of its last sample.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stillness {
    /// It has not run.
    Untouched,
    /// It has run, and waits with that stack again.
    SamePlace,
    /// Nothing.
    Unknown,
}

/// Whether a thread goes on being sampled.
#[derive(PartialEq, Eq)]
pub(super) enum Life {
    Goes,
    Ended,
}

impl Desk {
    pub(super) fn new(
        engine: &'static Engine,
        owner: Owner<'static, Capture>,
        shared: Arc<Shared>,
        interval: u64,
        ignore_sleeping: bool,
    ) -> Self {
        Desk {
            engine,
            owner,
            publisher: Publisher::new(&engine.modules),
            shared,
            figures: SamplerDiagnostics::default(),
            costs: Costs::new(),
            shadow: Box::new(ReadBuffer::new()),
            ignore_sleeping,
            longest: Rhythm::longest(interval),
            // Relaxed: a figure.
            foreign_before: engine.foreign.load(Ordering::Relaxed),
        }
    }

    /// Takes the thread's answer, repeats its stack, or asks it; or leaves it alone for this round.
    pub(super) fn decide(&mut self, thread: &mut Thread) -> Life {
        if !thread.rhythm.is_due() {
            return Life::Goes;
        }
        let now = clock::monotonic();
        if let Some(request) = thread.open
            && !self.collect(thread, request)
        {
            return self.wait_on(thread, request, now);
        }
        let tid = thread.key.tid;
        if thread.blocked {
            if now.since(thread.mask_looked_at) >= limits::BLOCKED_CHECK_NANOS {
                thread.mask_looked_at = now;
                match task::blocks_signal(tid, libc::SIGPROF) {
                    Some(blocked) => thread.blocked = blocked,
                    None => return Life::Ended,
                }
            }
            if thread.blocked {
                self.lose(thread, SampleLoss::Blocked);
                return Life::Goes;
            }
        }
        let Some(cpu) = task::cpu_nanos(tid) else {
            return Life::Ended;
        };
        if cpu < thread.cpu {
            // CPU time does not run backwards: this is another thread with the same id.
            return Life::Ended;
        }
        if self.ignore_sleeping {
            return self.ask_unless_asleep(thread, cpu, now);
        }
        match self.stillness(thread, cpu, now) {
            Stillness::Untouched => {
                thread.rhythm.stood_still(self.longest);
                self.repeat(thread, now);
                Life::Goes
            }
            Stillness::SamePlace => {
                self.has_run(thread);
                self.repeat(thread, now);
                Life::Goes
            }
            Stillness::Unknown => {
                self.has_run(thread);
                thread.cpu = cpu;
                self.ask(thread)
            }
        }
    }

    fn has_run(&self, thread: &mut Thread) {
        thread.ran = true;
        thread.rhythm.ran();
    }

    fn ask_unless_asleep(&mut self, thread: &mut Thread, cpu: u64, now: MonotonicNanos) -> Life {
        if thread.waiting_cpu == Some(cpu) {
            thread.rhythm.stood_still(self.longest);
        } else {
            self.has_run(thread);
            thread.waiting_cpu = None;
            match thread.syscall.whereabouts() {
                Whereabouts::Blocked { .. } => thread.waiting_cpu = Some(cpu),
                Whereabouts::Gone => return Life::Ended,
                // Without the file: a thread that has not run since its last sample waits.
                Whereabouts::Unknown if thread.last.is_some() && cpu == thread.cpu => {}
                Whereabouts::Running | Whereabouts::Unknown => {
                    thread.cpu = cpu;
                    return self.ask(thread);
                }
            }
        }
        self.figures.asleep += 1;
        self.figures.asleep_nanos += now.since(thread.since);
        thread.since = now;
        Life::Goes
    }

    /// Whether the thread waits with exactly the stack of its last sample.
    fn stillness(&mut self, thread: &mut Thread, cpu: u64, now: MonotonicNanos) -> Stillness {
        if thread.last.as_ref().is_some_and(|last| last.settled_cpu == Some(cpu)) {
            Stillness::Untouched
        } else if self.waits_where_it_was(thread, cpu, now) {
            Stillness::SamePlace
        } else {
            Stillness::Unknown
        }
    }

    fn waits_where_it_was(&mut self, thread: &mut Thread, cpu: u64, now: MonotonicNanos) -> bool {
        let Some(last) = &mut thread.last else {
            return false;
        };
        last.settled_cpu = None;
        // Relaxed: written once, before.
        let can_read = self.engine.can_read.load(Ordering::Relaxed);
        // A thread that ran for most of the time is not worth the look.
        if !can_read || last.stack.omitted > 0 || cpu.saturating_sub(thread.cpu) > now.since(thread.since) / 2 {
            return false;
        }
        let Whereabouts::Blocked { sp, pc } = thread.syscall.whereabouts() else {
            return false;
        };
        let Some(leaf) = last.stack.frames.first() else {
            return false;
        };
        // Interrupted in a system call that is made again, the thread was at the instruction itself (2 bytes), else just behind it.
        if sp != last.sp || (pc != leaf.address && pc != leaf.address.wrapping_add(2)) {
            return false;
        }
        let pairs = last.stack.frames.iter().zip(last.stack.frames.iter().skip(1));
        let returns = pairs.map(|(frame, caller)| (frame.cfa.wrapping_sub(8), caller.address.wrapping_add(1)));
        if !mem::own_words_are(self.engine.process, returns) {
            return false;
        }
        let same_python = match (
            self.engine.shadow.read(thread.key.tid, &mut self.shadow),
            last.stack.python,
        ) {
            (ShadowRead::NoStack, PythonKind::None) => true,
            (ShadowRead::Frames { count, hidden }, PythonKind::Frames { hidden: before }) => {
                hidden == before && self.shadow.entries(count) == last.stack.entries
            }
            _ => false,
        };
        if !same_python || task::cpu_nanos(thread.key.tid) != Some(cpu) {
            return false;
        }
        thread.cpu = cpu;
        last.settled_cpu = Some(cpu);
        true
    }

    fn repeat(&mut self, thread: &mut Thread, now: MonotonicNanos) {
        let sample = Queued {
            thread: thread.key,
            taken_at: now,
            weight_nanos: now.since(thread.since),
            shown: Shown::Repeated,
        };
        thread.since = now;
        if self.shared.queue.push(sample) {
            self.figures.samples += 1;
            self.figures.repeated += 1;
            if let Some(last) = &thread.last {
                self.count_stack(last);
            }
        } else {
            self.figures.losses.add(SampleLoss::NoSlot, 1);
        }
    }

    fn count_stack(&mut self, last: &Last) {
        if let Some(count) = self.figures.ends.get_mut(last.stack.end as usize) {
            *count += 1;
        }
        match last.stack.python {
            PythonKind::None => {}
            PythonKind::Torn => self.figures.python_torn += 1,
            PythonKind::Frames { .. } => self.figures.python_snapshots += 1,
        }
    }

    /// Sends the signal.
    fn ask(&mut self, thread: &mut Thread) -> Life {
        // Where our handler is not, ours must not arrive: a default action would end the process.
        // Relaxed: a flag that only goes up.
        if self.shared.displaced.load(Ordering::Relaxed) || !handler_in_place() {
            self.shared.displaced.store(true, Ordering::Relaxed);
            self.lose(thread, SampleLoss::SendFailed);
            return Life::Goes;
        }
        let ThreadKey { tid, .. } = thread.key;
        let bounds = thread.bounds;
        let lent = self.owner.lend(tid.get() as u64, |capture| {
            capture.tid = tid;
            capture.stack = bounds;
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
    fn wait_on(&mut self, thread: &mut Thread, request: Request, now: MonotonicNanos) -> Life {
        let mut reason = None;
        if now.since(request.sent_at.max(thread.mask_looked_at)) >= limits::BLOCKED_CHECK_NANOS {
            thread.mask_looked_at = now;
            match task::blocks_signal(thread.key.tid, libc::SIGPROF) {
                Some(true) => reason = Some(SampleLoss::Blocked),
                Some(false) => {}
                None => return Life::Ended,
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
        let mut stack = match thread.last.take() {
            Some(last) => last.stack,
            None => self.shared.queue.spare(),
        };
        let read = self.owner.reclaim(request.ticket, |capture| {
            self.costs.add(&capture.marks, capture.frames.total());
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
            (
                capture.outcome,
                capture.started,
                capture.ended,
                capture.sp,
                capture.control_block,
                capture.cut_a_call,
            )
        });
        let Some((outcome, started, ended, sp, control_block, cut_a_call)) = read else {
            return false;
        };
        thread.open = None;
        self.figures.interrupted_calls += u64::from(cut_a_call);
        self.learn_bounds(thread, sp, control_block);
        match outcome {
            Outcome::Lost(reason) => {
                self.lose(thread, reason);
                thread.since = ended;
            }
            Outcome::Stack(end) => {
                stack.end = end;
                let mut shown = self.shared.queue.spare();
                shown.copy_from(&stack);
                let sample = Queued {
                    thread: thread.key,
                    taken_at: started,
                    weight_nanos: started.since(thread.since),
                    shown: Shown::Stack(shown),
                };
                // Time in our handler is nobody's.
                thread.since = ended;
                let last = Last {
                    stack,
                    sp,
                    settled_cpu: None,
                };
                if self.shared.queue.push(sample) {
                    self.figures.samples += 1;
                    self.count_stack(&last);
                    thread.last = Some(last);
                } else {
                    // Not kept as the last stack: the aggregator has not seen it.
                    self.figures.losses.add(SampleLoss::NoSlot, 1);
                }
            }
        }
        true
    }

    /// Looks the stack up when the thread runs outside of what is known.
    fn learn_bounds(&self, thread: &mut Thread, sp: u64, control_block: u64) {
        let now = clock::monotonic();
        let looked_lately = thread
            .bounds_looked_at
            .is_some_and(|at| now.since(at) < limits::BOUNDS_CHECK_NANOS);
        if thread.bounds.holds(sp) || looked_lately {
            return;
        }
        thread.bounds_looked_at = Some(now);
        let Ok(mappings) = maps::mappings() else {
            return;
        };
        let is_main = thread.key.tid.get() == self.engine.process;
        let found = bounds(&mappings, is_main, sp, control_block);
        if found.holds(sp) {
            thread.bounds = found;
        }
    }

    /// Counts a loss: the time since the last sample is nobody's.
    pub(super) fn lose(&mut self, thread: &mut Thread, reason: SampleLoss) {
        self.figures.losses.add(reason, 1);
        thread.since = clock::monotonic();
    }

    /// A thread has ended.
    pub(super) fn let_go(&mut self, thread: &mut Thread) {
        if let Some(request) = thread.open
            && !self.collect(thread, request)
        {
            self.owner.take_back(request.ticket);
            self.figures.losses.add(SampleLoss::ThreadGone, 1);
        }
        self.shared.queue.push_end(thread.key);
    }

    /// A thread is not to be sampled any more; its answer is taken if there is one.
    pub(super) fn withdraw(&mut self, thread: &mut Thread) {
        if let Some(request) = thread.open
            && !self.collect(thread, request)
            && self.owner.take_back(request.ticket) == TakenBack::Free
        {
            thread.open = None;
        }
    }

    /// Counts a round. `late`: the next one was due before it had ended. `mean` is the measured distance of rounds so far, in nanoseconds.
    pub(super) fn count_round(&mut self, late: bool, mean: u64) {
        self.figures.rounds += 1;
        self.figures.rounds_late += u64::from(late);
        self.figures.interval_nanos = mean;
    }

    pub(super) fn count_threads(&mut self, now: usize, ever: u32, refused: u64) {
        self.figures.threads = u32::try_from(now).unwrap_or(u32::MAX);
        self.figures.threads_ever = ever;
        self.figures.threads_refused = refused;
    }

    pub(super) fn publish_figures(&mut self, now_or_never: bool) {
        // Relaxed: a figure.
        self.figures.foreign_signals = self.engine.foreign.load(Ordering::Relaxed) - self.foreign_before;
        self.costs.complete(&mut self.figures, now_or_never);
        self.shared.figures.lock().clone_from(&self.figures);
    }
}
