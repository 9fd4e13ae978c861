//! A journal that is being written, and the thread that does it.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::feed::{Feed, TickFeed};
use super::folder::{RecoveryFolder, SessionId};
use super::format::{Kind, record};
use super::head::SessionHead;
use super::packer::{Packer, write_module};
use super::queue::{Batch, Queue};
use super::segment::{Segments, WriteError};
use crate::limits;
use crate::model::{Module, clean_text};
use crate::sys::fault;
use crate::sys::thread::{self, Worker};

/// The journal of a session: from its start until its profile is safe.
///
/// Dropped without [`Journal::discard`] it stays for the next start to find.
#[derive(Debug)]
pub struct Journal {
    queue: Arc<Queue>,
    problem: Arc<Mutex<Option<String>>>,
    worker: Option<Worker>,
    /// The thread did not come back.
    hangs: bool,
    folder: Arc<RecoveryFolder>,
    session: SessionId,
}

impl Journal {
    /// Begins a journal. Makes no file itself: the new thread does.
    ///
    /// # Errors
    /// No thread could be started.
    pub fn begin(
        folder: &Arc<RecoveryFolder>,
        head: SessionHead,
        ticks: TickFeed,
    ) -> Result<(Journal, Feed), std::io::Error> {
        let session = folder.claim(head.started);
        let queue = Arc::new(Queue::default());
        let problem = Arc::new(Mutex::new(None));
        let feed = Feed::new(Arc::clone(&queue), ticks, head.started_at);
        let worker = thread::spawn("spark-journal", {
            let (queue, problem, folder) = (Arc::clone(&queue), Arc::clone(&problem), Arc::clone(folder));
            move || {
                if let Err(error) = write(&queue, folder, session, &head) {
                    *problem.lock() = Some(clean_text(&error.to_string(), limits::COMMENT_CHARS));
                }
                // After an error nobody reads it any more.
                queue.abandon();
            }
        });
        match worker {
            Ok(worker) => {
                let journal = Journal {
                    queue,
                    problem,
                    worker: Some(worker),
                    hangs: false,
                    folder: Arc::clone(folder),
                    session,
                };
                Ok((journal, feed))
            }
            Err(error) => {
                folder.release(session);
                Err(error)
            }
        }
    }

    /// Why nothing is written any more, in a user's words, the first time it is asked after that happened.
    pub fn problem_to_tell(&self) -> Option<String> {
        self.problem.lock().take()
    }

    /// Whether its thread has ended by a bug of ours.
    pub fn has_failed(&self) -> bool {
        self.worker.as_ref().is_some_and(Worker::has_panicked)
    }

    /// Removes it: its profile is safe, or nobody wants it. To be called once its feed is gone. When the disk stands still it is left for the next start.
    pub fn discard(mut self) {
        // Nothing more is written, and nothing synced: a busy disk must not make it look like that of a crash.
        self.queue.abandon();
        if self.end() {
            self.folder.discard(self.session);
        }
    }

    /// Waits for the thread; `false` when it does not come back.
    fn end(&mut self) -> bool {
        self.queue.close();
        let patience = Duration::from_millis(limits::JOURNAL_END_MILLIS);
        if let Some(worker) = self.worker.take() {
            self.hangs = !worker.join_timeout(patience);
        }
        !self.hangs
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // A thread that hangs may write on: then its files are nobody else's while this process lives.
        if self.end() {
            self.folder.release(self.session);
        }
    }
}

/// Writes all that comes.
fn write(queue: &Queue, folder: Arc<RecoveryFolder>, session: SessionId, head: &SessionHead) -> Result<(), WriteError> {
    let mut segments = Segments::begin(folder, session)?;
    let mut packer = Packer::new(head.started_at);
    let mut modules: Vec<Arc<Module>> = Vec::new();
    let mut out = Vec::new();
    begin_segment(&mut out, head, &modules, &mut packer);
    while let Some(batch) = queue.pop() {
        fault::point("journal");
        if segments.is_full() || packer.is_full() {
            segments.rotate()?;
            begin_segment(&mut out, head, &modules, &mut packer);
        }
        pack(&batch, &mut modules, &mut packer, &mut out);
        segments.write(&out)?;
        out.clear();
    }
    if queue.is_abandoned() {
        return Ok(());
    }
    // There may have been no batch at all.
    segments.write(&out)?;
    segments.sync();
    Ok(())
}

fn pack(batch: &Batch, modules: &mut Vec<Arc<Module>>, packer: &mut Packer, out: &mut Vec<u8>) {
    batch.modules.iter().for_each(|module| write_module(out, module));
    modules.extend(batch.modules.iter().map(Arc::clone));
    packer.pack(batch, out);
}

/// What every segment begins with.
fn begin_segment(out: &mut Vec<u8>, head: &SessionHead, modules: &[Arc<Module>], packer: &mut Packer) {
    record(out, Kind::Head, |out| head.encode(out));
    modules.iter().for_each(|module| write_module(out, module));
    packer.begin_segment(out);
}
