//! Sends a finished profile to a server that keeps it for the viewer ("bytebin"), and gives back the key under which it is found there.
//!
//! Problem: the other side may be slow, silent, full, wrong or hostile, and the owner waits for a link. An upload therefore runs on a thread of its own, every
//! step has a limit, what comes back is bounded and checked, and whoever waits may stop waiting at any time. Nothing here decides what to do with a profile that
//! could not be uploaded: it is the caller's, who saves it.
//!
//! Certificates are checked against the roots that are built in (Mozilla's list), not the system's: the containers in which servers are hosted often have none,
//! and an upload should work or fail the same way everywhere.

mod error;
mod post;
mod reply;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::model::WebAddress;
use crate::sys::thread;

pub use error::UploadError;
pub use reply::Key;

/// How uploads leave this machine.
#[derive(Debug)]
pub struct Uploader {
    proxy: Option<ureq::Proxy>,
}

impl Uploader {
    /// With the proxy that the environment names (`HTTPS_PROXY` and its kin). To be called on the server thread: the environment may change at any time, and
    /// only there nobody changes it meanwhile.
    pub fn from_environment() -> Self {
        Uploader {
            proxy: ureq::Proxy::try_from_env(),
        }
    }

    /// Begins to send `body`, which is gzip.
    ///
    /// # Errors
    /// The system gives us no thread.
    pub fn begin(&self, server: &WebAddress, body: Arc<[u8]>) -> Result<Upload, UploadError> {
        let agent = post::agent(self.proxy.clone().filter(|_| !server.is_this_machine()));
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                wanted: true,
                outcome: None,
            }),
            changed: Condvar::new(),
            sent: AtomicU64::new(0),
        });
        let worker = thread::spawn("spark-upload", {
            let (agent, shared) = (agent.clone(), Arc::clone(&shared));
            let url = server.page("post");
            let host = server.host().to_owned();
            move || {
                let outcome = post::post(&agent, &url, &host, &body, &shared);
                shared.state.lock().outcome = Some(outcome);
                shared.changed.notify_all();
            }
        })
        .map_err(|error| UploadError::NoThread(error.to_string()))?;
        Ok(Upload { shared, agent, worker })
    }
}

/// An upload that runs. Dropping it breaks it off: connections are shut at once, and a thread that still waits for a name or a connection ends within
/// [`crate::limits::CONNECT_SECONDS`] by itself.
#[derive(Debug)]
pub struct Upload {
    shared: Arc<Shared>,
    agent: ureq::Agent,
    worker: thread::Worker,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Bytes of the body given to the connection.
    sent: AtomicU64,
}

#[derive(Debug)]
struct State {
    wanted: bool,
    outcome: Option<Result<Key, UploadError>>,
}

impl Shared {
    fn is_wanted(&self) -> bool {
        self.state.lock().wanted
    }

    /// Waits between two tries; `false` when nobody waits for the upload any more.
    fn pause(&self, time: Duration) -> bool {
        let mut state = self.state.lock();
        self.changed.wait_while_for(&mut state, |state| state.wanted, time);
        state.wanted
    }
}

impl Upload {
    /// Waits at most `limit` for the end. The outcome is given once.
    pub fn wait(&self, limit: Duration) -> Option<Result<Key, UploadError>> {
        let mut state = self.shared.state.lock();
        // Without an outcome the thread can only have panicked.
        let runs = |state: &mut State| state.outcome.is_none() && !self.worker.is_finished();
        self.shared.changed.wait_while_for(&mut state, runs, limit);
        match state.outcome.take() {
            None if self.worker.is_finished() => Some(Err(UploadError::Internal)),
            outcome => outcome,
        }
    }

    /// Bytes of the body that have left so far.
    pub fn sent(&self) -> u64 {
        // Relaxed: a figure to show.
        self.shared.sent.load(Ordering::Relaxed)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.shared.state.lock().wanted = false;
        self.shared.changed.notify_all();
        self.agent.clone().shutdown();
    }
}
