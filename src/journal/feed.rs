//! The aggregator's end.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::queue::{Batch, Item, Queue, Stack, Tick};
use crate::limits;
use crate::model::{Module, MonotonicNanos, Sample, Stall, ThreadKey};

/// Every so many flushes the names of threads are looked at again: programs name threads anew.
const NAMES_EVERY: u32 = 8;

/// Ticks and stalls on their way to the [`Feed`].
#[derive(Clone, Debug, Default)]
pub struct TickFeed(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    ticks: Vec<Tick>,
    stalls: Vec<Stall>,
}

impl TickFeed {
    /// Takes one: when it was, and how many milliseconds the one before took. On the server thread: a lock that is held for a moment a few times a second.
    pub fn push(&self, at: MonotonicNanos, mspt: f32) {
        let ticks = &mut self.0.lock().ticks;
        if ticks.len() < limits::WINDOW_TICKS {
            ticks.push(Tick { at, mspt });
        }
    }

    /// Takes a stall when it has begun, and again when it is over. On any thread.
    pub fn stall(&self, stall: Stall) {
        let stalls = &mut self.0.lock().stalls;
        if stalls.len() < limits::STALLS {
            stalls.push(stall);
        }
    }
}

/// What is known of a thread that has been sampled.
#[derive(Debug, Default)]
struct Known {
    name: Option<String>,
    /// Whether it has samples in the batch at hand.
    is_here: bool,
    /// In which generation its stack was handed over.
    generation: u32,
    /// The place in the batch of a run of repetitions that may grow.
    run: Option<usize>,
}

/// Takes samples for a journal. Nothing here waits for a disk.
#[derive(Debug)]
pub struct Feed {
    queue: Arc<Queue>,
    ticks: TickFeed,
    started_at: MonotonicNanos,
    batch: Batch,
    threads: HashMap<ThreadKey, Known>,
    modules: usize,
    /// Rises when samples are dropped: repetitions of what was before mean nothing then.
    generation: u32,
    flushes: u32,
}

impl Feed {
    pub(super) fn new(queue: Arc<Queue>, ticks: TickFeed, started_at: MonotonicNanos) -> Self {
        Feed {
            queue,
            ticks,
            started_at,
            batch: Batch::default(),
            threads: HashMap::new(),
            modules: 0,
            generation: 1,
            flushes: 0,
        }
    }

    /// Where ticks and stalls are left for it.
    pub fn ticks(&self) -> TickFeed {
        self.ticks.clone()
    }

    /// Takes a sample, without its Python part.
    pub fn sample(&mut self, sample: &Sample<'_>) {
        let known = self.threads.entry(sample.thread).or_default();
        let repeats = sample.repeated && known.generation == self.generation;
        if repeats
            && let Some(run) = known.run.and_then(|at| self.batch.items.get_mut(at))
            && window(self.started_at, run.taken_at) == window(self.started_at, sample.taken_at)
        {
            run.weight_nanos += sample.weight_nanos;
            run.repeats += 1;
            return;
        }
        let new_frames = if repeats { 0 } else { sample.native.len() };
        if self.batch.items.len() >= limits::JOURNAL_BATCH_SAMPLES
            || self.batch.frames.len() + new_frames > limits::JOURNAL_BATCH_FRAMES
        {
            self.batch.dropped += 1;
            // Repetitions would be of a stack that is not there.
            known.generation = 0;
            known.run = None;
            return;
        }
        let stack = (!repeats).then_some(Stack {
            first: self.batch.frames.len(),
            count: sample.native.len(),
            omitted: sample.omitted,
            end: sample.end,
        });
        if !repeats {
            let frames = sample.native.iter().map(|frame| (frame.module, frame.rva));
            self.batch.frames.extend(frames);
        }
        known.is_here = true;
        known.generation = self.generation;
        known.run = repeats.then_some(self.batch.items.len());
        self.batch.items.push(Item {
            thread: sample.thread,
            taken_at: sample.taken_at,
            weight_nanos: sample.weight_nanos,
            held_nanos: sample.held_nanos,
            stack,
            repeats: u32::from(repeats),
        });
    }

    /// A thread has ended; this was its name. After its last sample.
    pub fn ended(&mut self, thread: ThreadKey, name: String) {
        if self.threads.remove(&thread).is_some() {
            self.batch.ended.push((thread, name));
        }
    }

    /// Hands over what came since the last time. `modules` gives all modules of the session, in order of first sight, `name` a living thread's name.
    pub fn flush(&mut self, modules: impl FnOnce() -> Vec<Arc<Module>>, name: impl Fn(ThreadKey) -> String) {
        if self.queue.is_closed() {
            self.batch = Batch::default();
            return;
        }
        let looks_at_names = self.flushes.is_multiple_of(NAMES_EVERY);
        self.flushes = self.flushes.wrapping_add(1);
        for (key, known) in &mut self.threads {
            known.run = None;
            if std::mem::take(&mut known.is_here) && (looks_at_names || known.name.is_none()) {
                let now = name(*key);
                if known.name.as_ref() != Some(&now) {
                    self.batch.threads.push((*key, now.clone()));
                    known.name = Some(now);
                }
            }
        }
        let all = modules();
        let new = all.get(self.modules..).unwrap_or_default();
        let room = limits::JOURNAL_MODULES.saturating_sub(self.modules);
        self.batch.modules.extend(new.iter().take(room).map(Arc::clone));
        self.modules = all.len();
        let mut waiting = self.ticks.0.lock();
        self.batch.ticks.append(&mut waiting.ticks);
        self.batch.stalls.append(&mut waiting.stalls);
        drop(waiting);
        if self.batch.is_empty() {
            return;
        }
        if !self.queue.push(&mut self.batch) {
            // Names, modules and ends are small, and what comes later needs them.
            let kept = &mut self.batch;
            kept.dropped += kept.samples();
            kept.items.clear();
            kept.frames.clear();
            kept.ticks.truncate(limits::WINDOW_TICKS);
            kept.stalls.truncate(limits::STALLS);
            self.generation = self.generation.wrapping_add(1).max(1);
            if kept.ended.len() + kept.threads.len() > limits::JOURNAL_WAITING_NAMES {
                // The disk has stood still for very long.
                self.queue.abandon();
            }
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.queue.close();
    }
}

fn window(started_at: MonotonicNanos, at: MonotonicNanos) -> u64 {
    at.since(started_at) / limits::WINDOW_NANOS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ModuleId, NativeFrame, PythonPart, StackEnd, Tid};

    fn key(serial: u32) -> ThreadKey {
        ThreadKey {
            tid: Tid::new(5),
            serial,
        }
    }

    fn frame(rva: u64) -> NativeFrame {
        NativeFrame {
            module: ModuleId::new(1),
            rva,
            cfa: 0,
        }
    }

    fn feed() -> (Arc<Queue>, Feed) {
        let queue = Arc::new(Queue::default());
        let feed = Feed::new(Arc::clone(&queue), TickFeed::default(), MonotonicNanos(0));
        (queue, feed)
    }

    fn give(feed: &mut Feed, serial: u32, at: u64, native: &[NativeFrame], repeated: bool) {
        feed.sample(&Sample {
            thread: key(serial),
            taken_at: MonotonicNanos(at),
            weight_nanos: 10,
            held_nanos: 1,
            native,
            omitted: 0,
            end: StackEnd::Root,
            python: PythonPart::None,
            repeated,
        });
    }

    fn flush(feed: &mut Feed) {
        feed.flush(Vec::new, |key| format!("thread {}", key.serial));
    }

    #[test]
    fn repetitions_are_put_together_within_a_minute() {
        let (queue, mut feed) = feed();
        let stack = [frame(1), frame(2)];
        for (at, repeated) in [(1, false), (2, true), (3, true), (limits::WINDOW_NANOS, true)] {
            give(&mut feed, 0, at, &stack, repeated);
        }
        give(&mut feed, 1, 5, &stack, false);
        flush(&mut feed);
        let batch = queue.pop().unwrap();
        let shape: Vec<(u32, bool, u32, u64)> = batch
            .items
            .iter()
            .map(|item| {
                (
                    item.thread.serial,
                    item.stack.is_some(),
                    item.repeats,
                    item.weight_nanos,
                )
            })
            .collect();
        assert_eq!(
            shape,
            [(0, true, 0, 10), (0, false, 2, 20), (0, false, 1, 10), (1, true, 0, 10)]
        );
        assert_eq!((batch.samples(), batch.frames.len(), batch.threads.len()), (5, 4, 2));
        // The next batch goes on with the same stack, and names are told once.
        give(&mut feed, 0, 9, &stack, true);
        flush(&mut feed);
        let batch = queue.pop().unwrap();
        assert_eq!((batch.frames.len(), batch.items.len(), batch.threads.len()), (0, 1, 0));
    }

    #[test]
    fn a_full_queue_drops_samples_counts_them_and_keeps_names() {
        let (queue, mut feed) = feed();
        let stack = [frame(1)];
        for serial in 0..limits::JOURNAL_BATCHES as u32 {
            give(&mut feed, serial, 1, &stack, false);
            flush(&mut feed);
        }
        give(&mut feed, 1_000, 2, &stack, false);
        give(&mut feed, 1_000, 3, &stack, true);
        flush(&mut feed);
        queue.pop().unwrap();
        give(&mut feed, 1_000, 4, &stack, true);
        flush(&mut feed);
        feed.ended(key(1_000), "thread 1000".to_owned());
        drop(feed);
        let last = std::iter::from_fn(|| queue.pop()).last().unwrap();
        assert_eq!((last.dropped, last.samples()), (2, 1));
        assert!(
            last.items[0].stack.is_some(),
            "a repetition of what was dropped comes whole"
        );
        assert_eq!(last.threads, [(key(1_000), "thread 1000".to_owned())]);
    }

    #[test]
    fn a_batch_does_not_grow_without_end() {
        let (queue, mut feed) = feed();
        let deep = vec![frame(1); 512];
        let fit = limits::JOURNAL_BATCH_FRAMES / 512;
        for at in 0..fit as u64 + 5 {
            give(&mut feed, 0, at, &deep, false);
        }
        give(&mut feed, 0, 0, &deep, true);
        flush(&mut feed);
        let batch = queue.pop().unwrap();
        assert_eq!((batch.items.len(), batch.dropped), (fit, 6));
    }
}
