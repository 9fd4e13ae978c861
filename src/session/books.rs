//! What becomes of a merged sample: it is booked at once, or once it is known that its tick was slow.

use std::sync::Arc;

use super::tick_watch::TickWatch;
use crate::model::{MonotonicNanos, Retention, Sample, ThreadKey, TickFigures};
use crate::profile::{Forest, FrameKey, Room, ThreadProfile, TickFilter, WindowClock};

/// Ticks that are kept.
#[derive(Debug)]
pub(super) struct OnlyTicks {
    /// Those that take longer than so many nanoseconds.
    pub(super) over_nanos: u64,
    /// No tick that began before counts.
    pub(super) since: MonotonicNanos,
    /// Who knows when they end.
    pub(super) watch: Arc<TickWatch>,
}

/// The trees of a session, and the samples that wait.
#[derive(Clone, Debug)]
pub(super) struct Books {
    forest: Forest,
    clock: WindowClock,
    slow: Option<(TickFilter, Arc<TickWatch>)>,
    /// Threads that have ended, while a sample of them waits.
    ended: Vec<(ThreadKey, String)>,
}

impl Books {
    pub(super) fn new(clock: WindowClock, retention: Retention, only: Option<OnlyTicks>) -> Self {
        Books {
            forest: Forest::new(retention),
            clock,
            slow: only.map(|only| (TickFilter::new(only.over_nanos, only.since), only.watch)),
            ended: Vec::new(),
        }
    }

    /// Takes a sample and its merged stack, root first.
    pub(super) fn sample(&mut self, sample: &Sample<'_>, path: &[FrameKey]) {
        match &mut self.slow {
            None => self.forest.book(
                sample.thread,
                path,
                self.clock.window_at(sample.taken_at),
                sample.weight_nanos,
                sample.held_nanos,
            ),
            Some((slow, _)) => slow.sample(sample, path, &mut into(&mut self.forest, self.clock)),
        }
    }

    /// To be called whenever all samples that were there have been taken, with the threads of which there will be none any more.
    pub(super) fn settle(&mut self, ended: Vec<(ThreadKey, String)>) {
        self.ended.extend(ended);
        if let Some((slow, watch)) = &mut self.slow {
            for tick in watch.take() {
                slow.tick(tick, &mut into(&mut self.forest, self.clock));
            }
        }
        self.end_threads();
    }

    /// Says of threads that have ended that they have, unless a sample of them still waits.
    fn end_threads(&mut self) {
        if self.ended.is_empty() {
            return;
        }
        let waited_for = self.slow.as_ref().map(|(slow, _)| slow.waits_for()).unwrap_or_default();
        for (key, name) in std::mem::take(&mut self.ended) {
            if waited_for.contains(&key) {
                self.ended.push((key, name));
                continue;
            }
            if let Some((slow, _)) = &mut self.slow {
                slow.forget(key);
            }
            self.forest.end(key, name);
        }
    }

    /// Room that the trees take.
    pub(super) fn used(&self) -> Room {
        self.forest.used()
    }

    /// What became of ticks, if only some are kept.
    pub(super) fn tick_figures(&self) -> Option<TickFigures> {
        self.slow.as_ref().map(|(slow, _)| slow.figures())
    }

    /// The trees in the order in which their threads were first seen, and the oldest window that was kept. `name` gives the names of threads that still live.
    pub(super) fn close(
        mut self,
        name: impl Fn(ThreadKey) -> String,
    ) -> (Vec<ThreadProfile>, u32, Option<TickFigures>) {
        if let Some((slow, _)) = &mut self.slow {
            slow.finish(&mut into(&mut self.forest, self.clock));
        }
        self.end_threads();
        let figures = self.tick_figures();
        let first_window = self.forest.oldest();
        (self.forest.into_threads(name), first_window, figures)
    }
}

/// Books into the forest.
fn into(forest: &mut Forest, clock: WindowClock) -> impl FnMut(ThreadKey, &[FrameKey], MonotonicNanos, u64) {
    move |thread, path, at, nanos| {
        if nanos > 0 {
            forest.add(thread, path, clock.window_at(at), nanos);
        }
    }
}
