//! What the handler costs, by its own account.
//!
//! **Problem.** A handler runs cold: the thread it interrupts has filled the caches with its own work. A benchmark that calls it in a loop says nothing
//! about that, so each run is measured where it happens.
//!
//! **Algorithm.** The handler reads the processor's time stamp counter at its beginning, before and after the walk, and at its end. That takes some twenty
//! cycles each and touches no memory, other than a clock. The sampler thread counts ticks, and turns them into nanoseconds when it is asked, by
//! the clock's own pace since the session began.
//!
//! **Assumptions.** The counter runs at one pace on all processors, as it does on every x86-64 of the last fifteen years (`constant_tsc`, `nonstop_tsc`).

use super::histogram::Histogram;
use crate::limits;
use crate::model::{HandlerCost, MonotonicNanos, SamplerDiagnostics};
use crate::sys::clock;

/// Ticks of the time stamp counter. Async-signal-safe.
#[inline(always)]
pub(super) fn ticks() -> u64 {
    // SAFETY: every x86-64 has this instruction; where a kernel forbids it (PR_SET_TSC), the process has asked for that itself.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Ticks at four moments of one run of the handler, and what it had to do.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    pub(super) begun: u64,
    pub(super) prepared: u64,
    pub(super) walked: u64,
    pub(super) ended: u64,
    /// Rules that were not remembered and had to be derived from unwind data.
    pub(super) derived: u64,
}

/// Durations of one part, in ticks.
type Part = Histogram;

/// What all runs cost so far.
pub(super) struct Costs {
    whole: Part,
    prepare: Part,
    walk: Part,
    python: Part,
    total_ticks: u64,
    derived: u64,
    frames: u64,
    begin: (u64, MonotonicNanos),
    completed_at: Option<MonotonicNanos>,
}

impl Costs {
    pub(super) fn new() -> Self {
        Costs {
            whole: Histogram::new(),
            prepare: Histogram::new(),
            walk: Histogram::new(),
            python: Histogram::new(),
            total_ticks: 0,
            derived: 0,
            frames: 0,
            begin: (ticks(), clock::monotonic()),
            completed_at: None,
        }
    }

    /// One run of the handler.
    pub(super) fn add(&mut self, marks: &Marks, frames: usize) {
        let whole = marks.ended.saturating_sub(marks.begun);
        self.whole.add(whole);
        self.prepare.add(marks.prepared.saturating_sub(marks.begun));
        self.walk.add(marks.walked.saturating_sub(marks.prepared));
        self.python.add(marks.ended.saturating_sub(marks.walked));
        self.total_ticks += whole;
        self.derived += marks.derived;
        self.frames += frames as u64;
    }

    /// Writes the figures down, unless that was done a moment ago and `now_or_never` is not said.
    pub(super) fn complete(&mut self, figures: &mut SamplerDiagnostics, now_or_never: bool) {
        let now = clock::monotonic();
        let lately = |at: MonotonicNanos| now.since(at) < limits::COSTS_NANOS;
        if !now_or_never && self.completed_at.is_some_and(lately) {
            return;
        }
        self.completed_at = Some(now);
        self.write(figures, ticks().saturating_sub(self.begin.0), now.since(self.begin.1));
    }

    /// Writes the figures down, where so many ticks are so many nanoseconds.
    fn write(&self, figures: &mut SamplerDiagnostics, ticks: u64, nanos: u64) {
        let nanos_of = |count: u64| (u128::from(count) * u128::from(nanos) / u128::from(ticks.max(1))) as u64;
        let cost = |part: &Part| HandlerCost {
            median_nanos: nanos_of(part.quantile(50)),
            p99_nanos: nanos_of(part.quantile(99)),
        };
        figures.handler = cost(&self.whole);
        figures.handler_prepare = cost(&self.prepare);
        figures.handler_walk = cost(&self.walk);
        figures.handler_python = cost(&self.python);
        figures.handler_total_nanos = nanos_of(self.total_ticks);
        figures.rules_derived = self.derived;
        figures.frames_walked = self.frames;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_nanoseconds() {
        let mut costs = Costs::new();
        let marks = Marks {
            begun: 1_000,
            prepared: 1_512,
            walked: 5_608,
            ended: 6_120,
            derived: 3,
        };
        (0..10).for_each(|_| costs.add(&marks, 40));
        let mut figures = SamplerDiagnostics::default();
        costs.write(&mut figures, 4_000_000, 1_000_000);
        assert_eq!(figures.handler_prepare.median_nanos, 128);
        assert_eq!(figures.handler_walk.p99_nanos, 1_024);
        assert_eq!(figures.handler_python.median_nanos, 128);
        assert_eq!(figures.handler.median_nanos, 1_280);
        assert_eq!(figures.handler_total_nanos, 12_800);
        assert_eq!((figures.rules_derived, figures.frames_walked), (30, 400));
    }

    #[test]
    fn figures_are_not_made_more_often_than_anybody_looks() {
        let mut costs = Costs::new();
        let mut figures = SamplerDiagnostics::default();
        costs.complete(&mut figures, true);
        costs.completed_at = Some(MonotonicNanos(u64::MAX));
        costs.add(&Marks::default(), 7);
        costs.complete(&mut figures, false);
        assert_eq!(figures.frames_walked, 0);
        costs.complete(&mut figures, true);
        assert_eq!(figures.frames_walked, 7);
    }
}
