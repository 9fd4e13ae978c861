//! The thread that reads `/proc` once a second, from the plugin's start to its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::reading::{Reader, host};
use super::system::SystemHistory;
use crate::limits;
use crate::sys::fault;
use crate::sys::thread::{self, Worker};

const PERIOD: Duration = Duration::from_secs(1);

/// What the thread and its owner share. Nobody holds the history's lock while reading a file.
#[derive(Debug, Default)]
struct Shared {
    history: Mutex<SystemHistory>,
    stopping: Mutex<bool>,
    wake: Condvar,
}

/// The thread and what it has found.
#[derive(Debug, Default)]
pub(super) struct Watcher {
    shared: Arc<Shared>,
    worker: Mutex<Option<Worker>>,
}

impl Watcher {
    /// Starts the thread.
    pub(super) fn start(&self) -> std::io::Result<()> {
        let shared = Arc::clone(&self.shared);
        *self.worker.lock() = Some(thread::spawn("spark-stats", move || run(&shared))?);
        Ok(())
    }

    /// Ends the thread; `false` when it did not end in time and was left to itself.
    pub(super) fn stop(&self) -> bool {
        *self.shared.stopping.lock() = true;
        self.shared.wake.notify_all();
        match self.worker.lock().take() {
            Some(worker) => worker.join_timeout(Duration::from_millis(limits::WATCHER_STOP_MILLIS)),
            None => true,
        }
    }

    /// Looks at what was found.
    pub(super) fn look<R>(&self, look: impl FnOnce(&SystemHistory) -> R) -> R {
        if self.has_failed() {
            // What it found last is no longer so.
            return look(&SystemHistory::default());
        }
        look(&self.shared.history.lock())
    }

    /// Whether the thread has ended by a bug of ours.
    pub(super) fn has_failed(&self) -> bool {
        self.worker.lock().as_ref().is_some_and(Worker::has_panicked)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(shared: &Shared) {
    let host = host();
    shared.history.lock().set_host(host);
    let mut reader = Reader::default();
    let mut due = Instant::now();
    loop {
        fault::point("statistics");
        let reading = reader.read();
        shared.history.lock().add(reading);
        // A second after the last one was due; after a pause of the machine, not all those that were missed.
        due = (due + PERIOD).max(Instant::now());
        let mut stopping = shared.stopping.lock();
        while !*stopping {
            if shared.wake.wait_until(&mut stopping, due).timed_out() {
                break;
            }
        }
        if *stopping {
            return;
        }
    }
}
