//! The thread that turns samples into call trees while a session runs.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::books::Books;
use super::intake::{Intake, MergeFigures};
use crate::journal::Feed;
use crate::model::{Module, TickFigures};
use crate::native::SampleSource;
use crate::profile::ThreadProfile;
use crate::sys::thread::{self, Worker};
use crate::sys::{fault, task};

/// How long the thread waits for samples before it publishes its figures. Waking costs more than the work for a sample, so it works on many at a time.
const DRAIN_WAIT: Duration = Duration::from_millis(250);

/// What is left when the thread has ended.
#[derive(Debug)]
pub(super) struct Aggregated {
    /// In order of first sight.
    pub(super) threads: Vec<ThreadProfile>,
    /// All modules of the session.
    pub(super) modules: Vec<Arc<Module>>,
    /// The oldest window that was kept.
    pub(super) first_window: u32,
    /// What became of ticks, if only slow ones are kept.
    pub(super) ticks: Option<TickFigures>,
}

#[derive(Debug, Default)]
struct Shared {
    figures: Mutex<MergeFigures>,
    result: Mutex<Option<Aggregated>>,
    copy: Mutex<Copy>,
    copied: Condvar,
}

/// A copy of what there is, while the thread goes on.
#[derive(Debug, Default)]
enum Copy {
    #[default]
    Unwanted,
    Wanted,
    Made(Box<Aggregated>),
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
    pub(super) fn start(source: SampleSource, intake: Intake, feed: Option<Feed>) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let worker = thread::spawn("spark-aggregate", {
            let shared = Arc::clone(&shared);
            move || run(source, intake, feed, &shared)
        })?;
        Ok(Aggregator { shared, worker })
    }

    /// Figures up to now.
    pub(super) fn figures(&self) -> MergeFigures {
        *self.shared.figures.lock()
    }

    /// CPU time that the thread has used, in nanoseconds.
    pub(super) fn cpu_nanos(&self) -> u64 {
        self.worker.tid().and_then(task::cpu_nanos).unwrap_or(0)
    }

    /// Whether the thread has ended by a bug of ours, with its trees.
    pub(super) fn has_failed(&self) -> bool {
        self.worker.has_panicked()
    }

    /// A copy of what there is; the thread goes on. It looks for such wishes four times a second. `None` when it has ended.
    pub(super) fn copy(&self) -> Option<Aggregated> {
        let mut copy = self.shared.copy.lock();
        *copy = Copy::Wanted;
        loop {
            match std::mem::take(&mut *copy) {
                Copy::Made(made) => return Some(*made),
                Copy::Wanted if !self.worker.is_finished() => *copy = Copy::Wanted,
                Copy::Wanted | Copy::Unwanted => return None,
            }
            self.shared.copied.wait_for(&mut copy, DRAIN_WAIT);
        }
    }

    /// Waits until it has taken what is still waiting. `None` when the thread panicked, with its trees. To be called once sampling has ended: that is
    /// what ends the thread.
    pub(super) fn finish(self) -> (MergeFigures, Option<Aggregated>) {
        self.worker.join();
        let figures = *self.shared.figures.lock();
        (figures, self.shared.result.lock().take())
    }
}

fn run(mut source: SampleSource, mut intake: Intake, mut feed: Option<Feed>, shared: &Shared) {
    let mut more = true;
    while more {
        fault::point("aggregator");
        more = source.drain(DRAIN_WAIT, &mut |sample| {
            if let Some(feed) = &mut feed {
                feed.sample(sample);
            }
            intake.sample(sample);
        });
        let ended = source.take_ended();
        if let Some(feed) = &mut feed {
            for (key, name) in &ended {
                feed.ended(*key, name.clone());
            }
            feed.flush(|| source.modules(), |key| source.thread_name(key));
        }
        *shared.figures.lock() = intake.settle(ended);
        if matches!(*shared.copy.lock(), Copy::Wanted) {
            let copy = Copy::Made(Box::new(close(intake.copy(), &source)));
            *shared.copy.lock() = copy;
            shared.copied.notify_all();
        }
    }
    let result = close(intake.into_books(), &source);
    shared.figures.lock().ticks = result.ticks;
    *shared.result.lock() = Some(result);
}

fn close(books: Books, source: &SampleSource) -> Aggregated {
    let (threads, first_window, ticks) = books.close(|key| source.thread_name(key));
    Aggregated {
        threads,
        modules: source.modules(),
        first_window,
        ticks,
    }
}
