//! The thread that turns samples into call trees while a session runs.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::books::Books;
use crate::journal::Feed;
use crate::model::{Module, PythonPart, Sample, SamplerDiagnostics, TickFigures};
use crate::native::SampleSource;
use crate::profile::{MergeStats, Merger, ThreadProfile};
use crate::sys::thread::{self, Worker};

/// How long the thread waits for samples before it publishes its figures. Waking costs more than the work for a sample, so it works on many at a time.
const DRAIN_WAIT: Duration = Duration::from_millis(250);

/// What the aggregation found so far, beside the trees.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct MergeFigures {
    /// What became of Python entries.
    pub(super) merge: MergeStats,
    /// Samples that had a shadow stack.
    pub(super) snapshots: u64,
    /// Samples whose shadow stack was being written.
    pub(super) torn: u64,
    /// Samples with at least one Python frame placed.
    pub(super) attributed: u64,
    /// What became of ticks, if only slow ones are kept.
    pub(super) ticks: Option<TickFigures>,
}

impl MergeFigures {
    fn count(&mut self, sample: &Sample<'_>, merged: &MergeStats) {
        match sample.python {
            PythonPart::None => {}
            PythonPart::Torn => self.torn += 1,
            PythonPart::Frames { .. } => self.snapshots += 1,
        }
        self.attributed += u64::from(merged.placed > 0);
        self.merge.add(merged);
    }

    /// Writes these figures over the places of `diagnostics` that the native side leaves empty.
    pub(super) fn complete(&self, diagnostics: &mut SamplerDiagnostics) {
        diagnostics.python_snapshots = self.snapshots;
        diagnostics.python_torn = self.torn;
        diagnostics.attributed = self.attributed;
        diagnostics.entries_placed = self.merge.placed;
        diagnostics.entries_missed = self.merge.missed;
        diagnostics.entries_unanchored = self.merge.unanchored;
    }
}

/// What is left when the thread has ended.
#[derive(Debug)]
pub(super) struct Aggregated {
    /// In order of first sight.
    pub(super) threads: Vec<ThreadProfile>,
    /// All modules of the session.
    pub(super) modules: Vec<Arc<Module>>,
    /// The oldest window that was kept.
    pub(super) first_window: u32,
}

#[derive(Debug, Default)]
struct Shared {
    figures: Mutex<MergeFigures>,
    result: Mutex<Option<Aggregated>>,
}

/// The running thread.
#[derive(Debug)]
pub(super) struct Aggregator {
    shared: Arc<Shared>,
    worker: Worker,
}

impl Aggregator {
    /// Starts the thread.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(super) fn start(source: SampleSource, books: Books, feed: Option<Feed>) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let worker = thread::spawn("spark-aggregate", {
            let shared = Arc::clone(&shared);
            move || run(source, books, feed, &shared)
        })?;
        Ok(Aggregator { shared, worker })
    }

    /// Figures up to now.
    pub(super) fn figures(&self) -> MergeFigures {
        *self.shared.figures.lock()
    }

    /// Waits until it has taken what is still waiting. `None` when the thread panicked, with its trees. To be called once sampling has ended: that is
    /// what ends the thread.
    pub(super) fn finish(self) -> (MergeFigures, Option<Aggregated>) {
        self.worker.join();
        let figures = *self.shared.figures.lock();
        (figures, self.shared.result.lock().take())
    }
}

fn run(mut source: SampleSource, mut books: Books, mut feed: Option<Feed>, shared: &Shared) {
    let mut merger = Merger::new();
    let mut figures = MergeFigures::default();
    let mut more = true;
    while more {
        more = source.drain(DRAIN_WAIT, &mut |sample| {
            if let Some(feed) = &mut feed {
                feed.sample(sample);
            }
            let merged = merger.merge(sample);
            figures.count(sample, &merged.stats);
            books.sample(sample, merged.path);
        });
        let ended = source.take_ended();
        if let Some(feed) = &mut feed {
            for (key, name) in &ended {
                feed.ended(*key, name.clone());
            }
            feed.flush(|| source.modules(), |key| source.thread_name(key));
        }
        books.settle(ended);
        figures.ticks = books.tick_figures();
        *shared.figures.lock() = figures;
    }
    let (threads, first_window, ticks) = books.close(|key| source.thread_name(key));
    shared.figures.lock().ticks = ticks;
    *shared.result.lock() = Some(Aggregated {
        threads,
        modules: source.modules(),
        first_window,
    });
}
