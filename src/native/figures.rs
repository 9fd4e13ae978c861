//! What a session counts about its own work.

use std::sync::atomic::Ordering;

use super::capture::Capture;
use super::costs::Costs;
use super::engine::Engine;
use super::queue::{PythonKind, Stack};
use crate::model::{SampleLoss, SamplerDiagnostics};

/// See the module's text.
pub(super) struct Figures {
    pub(super) counted: SamplerDiagnostics,
    costs: Costs,
    /// The engine counts over all sessions.
    foreign_before: u64,
}

impl Figures {
    pub(super) fn new(engine: &Engine) -> Self {
        Figures {
            counted: SamplerDiagnostics::default(),
            costs: Costs::new(),
            // Relaxed: a figure.
            foreign_before: engine.foreign.load(Ordering::Relaxed),
        }
    }

    /// A sample with this stack is on its way.
    pub(super) fn count_sample(&mut self, stack: &Stack) {
        self.counted.samples += 1;
        if let Some(count) = self.counted.ends.get_mut(stack.end as usize) {
            *count += 1;
        }
        match stack.python {
            PythonKind::None => {}
            PythonKind::Torn => self.counted.python_torn += 1,
            PythonKind::Frames { .. } => self.counted.python_snapshots += 1,
        }
    }

    pub(super) fn count_loss(&mut self, reason: SampleLoss) {
        self.counted.losses.add(reason, 1);
    }

    /// The handler has run and left this.
    pub(super) fn count_answer(&mut self, answer: &Capture) {
        self.costs.add(&answer.marks, answer.frames.total());
        self.counted.interrupted_calls += u64::from(answer.cut_a_call);
    }

    /// Counts a round. `late`: the next one was due before it had ended. `mean` is the measured distance of rounds so far, in nanoseconds.
    pub(super) fn count_round(&mut self, late: bool, mean: u64) {
        self.counted.rounds += 1;
        self.counted.rounds_late += u64::from(late);
        self.counted.interval_nanos = mean;
    }

    pub(super) fn count_threads(&mut self, now: usize, ever: u32, refused: u64) {
        self.counted.threads = u32::try_from(now).unwrap_or(u32::MAX);
        self.counted.threads_ever = ever;
        self.counted.threads_refused = refused;
    }

    /// The process was stopped, or its machine, for so long.
    pub(super) fn count_stop(&mut self, nanos: u64) {
        self.counted.stopped_nanos += nanos;
    }

    /// All up to now.
    pub(super) fn complete(&mut self, engine: &Engine, now_or_never: bool) -> &SamplerDiagnostics {
        // Relaxed: a figure.
        self.counted.foreign_signals = engine.foreign.load(Ordering::Relaxed) - self.foreign_before;
        self.costs.complete(&mut self.counted, now_or_never);
        &self.counted
    }
}
