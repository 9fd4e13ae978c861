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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CodeId, PythonPart, StackEnd, Tid, WallMillis};

    const MS: u64 = 1_000_000;
    const KEY: ThreadKey = ThreadKey {
        tid: Tid::new(1),
        serial: 0,
    };

    fn at(millis: u64) -> MonotonicNanos {
        MonotonicNanos(millis * MS)
    }

    /// Takes a sample of this function.
    fn sample(books: &mut Books, millis: u64, weight: u64, function: u32, repeated: bool) {
        let sample = Sample {
            thread: KEY,
            taken_at: at(millis),
            weight_nanos: weight * MS,
            held_nanos: 0,
            native: &[],
            omitted: 0,
            end: StackEnd::Root,
            python: PythonPart::None,
            repeated,
        };
        books.sample(&sample, &[FrameKey::Python(CodeId::new(function))]);
    }

    /// Milliseconds of a profile's windows.
    fn windows(books: Books) -> Vec<(u32, f64)> {
        let (threads, ..) = books.close(|_| String::new());
        let Some(thread) = threads.first() else {
            return Vec::new();
        };
        let mut windows: Vec<(u32, f64)> = thread
            .tree
            .windows()
            .iter()
            .map(|times| (times.window, times.total_nanos() as f64 / 1e6))
            .collect();
        windows.sort_by_key(|(window, _)| *window);
        windows
    }

    #[test]
    fn a_slow_tick_over_the_edge_of_a_minute_is_in_both_with_its_part_of_each() {
        let watch = Arc::new(TickWatch::default());
        watch.begin();
        let only = OnlyTicks {
            over_nanos: 60 * MS,
            since: at(0),
            watch: Arc::clone(&watch),
        };
        let mut books = Books::new(WindowClock::new(at(0), WallMillis(0)), Retention::All, Some(only));
        // Ticks of 20 ms and one from 59.3 s to 60.9 s, then one of 20 ms; the sampler looks every 10 ms.
        watch.task(at(59_200), 20.0);
        watch.task(at(59_300), 20.0);
        for step in 5_920..6_100 {
            let millis = step * 10;
            sample(
                &mut books,
                millis,
                10,
                if (59_300..=60_900).contains(&millis) { 2 } else { 1 },
                false,
            );
        }
        // Half a second is without an end: everything waits, over the edge of the minute.
        books.settle(Vec::new());
        watch.task(at(60_900), 1_600.0);
        watch.task(at(61_000), 20.0);
        books.settle(Vec::new());
        assert_eq!(books.tick_figures().map(|figures| figures.kept), Some(1));
        let windows = windows(books);
        assert_eq!(windows.iter().map(|(window, _)| *window).collect::<Vec<_>>(), [0, 1]);
        let [first, second] = [windows[0].1, windows[1].1];
        assert!((first + second - 1_600.0).abs() < 1e-6, "{first} {second}");
        // As exact as samples are.
        assert!((first - 700.0).abs() <= 10.0, "{first} {second}");
    }
}
