//! One decision about one thread: take its answer (`request.rs`), show its last stack again (`stillness.rs`), or ask it.
//!
//! When time asleep is to be left out, a thread that waits is not asked at all: the kernel's word, or an unmoved CPU clock since it last said so, is enough.

use std::sync::Arc;

use super::bounds::StackFinder;
use super::capture::Capture;
use super::engine::Engine;
use super::figures::Figures;
use super::queue::{Queued, Shown};
use super::rhythm::Rhythm;
use super::sampler::Shared;
use super::stillness::{Stillness, StillnessCheck};
use super::table::ModuleTable;
use super::thread::{Last, Thread};
use crate::limits;
use crate::model::{MonotonicNanos, SampleLoss};
use crate::sync::{Owner, Publisher};
use crate::sys::clock;
use crate::sys::task::{self, Whereabouts};

/// What a decision about one thread needs besides the thread.
pub(super) struct Desk {
    pub(super) engine: &'static Engine,
    pub(super) owner: Owner<'static, Capture>,
    pub(super) publisher: Publisher<'static, ModuleTable>,
    pub(super) shared: Arc<Shared>,
    pub(super) figures: Figures,
    pub(super) stacks: StackFinder,
    stillness: StillnessCheck,
    ignore_sleeping: bool,
    /// Longest distance of looks at a thread that does not run, in rounds.
    longest: u32,
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
            figures: Figures::new(engine),
            stacks: StackFinder::new(engine.process),
            stillness: StillnessCheck::new(engine),
            ignore_sleeping,
            longest: Rhythm::longest(interval),
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
                    Ok(blocked) => thread.blocked = blocked,
                    Err(error) if task::says_gone(&error) => return Life::Ended,
                    // Not known now: as before, until the next look.
                    Err(_) => {}
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
        match self.stillness.of(thread, cpu, now) {
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
            Stillness::OnItsWayBack => {
                self.has_run(thread);
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
        self.figures.counted.asleep += 1;
        self.figures.counted.asleep_nanos += now.since(thread.since);
        thread.since = now;
        Life::Goes
    }

    /// Says of the time since the last sample what was said then.
    fn repeat(&mut self, thread: &mut Thread, now: MonotonicNanos) {
        let Some(last) = thread.last.take() else {
            return;
        };
        let weight = now.since(thread.since);
        thread.since = thread.since.max(now);
        let Last { what: Ok(stack), .. } = &last else {
            if let Err(reason) = last.what {
                self.figures.count_loss(reason);
            }
            thread.last = Some(last);
            return;
        };
        let sample = Queued {
            thread: thread.key,
            taken_at: now,
            weight_nanos: weight,
            held_nanos: 0,
            shown: if last.shown {
                Shown::Repeated
            } else {
                Shown::Stack(self.copy_of(stack))
            },
        };
        let taken = self.hand_over(sample, stack);
        self.figures.counted.repeated += u64::from(taken);
        thread.last = Some(Last {
            shown: last.shown || taken,
            ..last
        });
    }

    /// Counts a loss: the time since the last sample is nobody's.
    pub(super) fn lose(&mut self, thread: &mut Thread, reason: SampleLoss) {
        self.figures.count_loss(reason);
        thread.since = clock::monotonic();
    }

    pub(super) fn publish_figures(&mut self, now_or_never: bool) {
        self.shared
            .figures
            .lock()
            .clone_from(self.figures.complete(self.engine, now_or_never));
    }
}
