//! Sends a finished profile to a server that keeps it for the viewer ("bytebin"), and gives back the key under which it is found there.
//!
//! Problem: the other side may be slow, silent, full, wrong or hostile, and the owner waits for a link. An upload therefore runs on a thread of its own, every
//! step has a limit, what comes back is bounded and checked, and whoever waits may stop waiting at any time. Nothing here decides what to do with a profile that
//! could not be uploaded: it is the caller's, who saves it.
//!
//! Certificates are checked against the roots that are built in (Mozilla's list), not the system's: the containers in which servers are hosted often have none,
//! and an upload should work or fail the same way everywhere.

mod content;
mod error;
mod post;
mod proxy;
mod reply;
#[cfg(test)]
mod tests;
mod way;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use ureq::tls::RootCerts;

use self::proxy::Proxies;
use self::way::Way;
use crate::limits;
use crate::model::WebAddress;
use crate::sys::{fault, thread};

pub use content::Content;
pub use error::UploadError;
pub use reply::Key;

/// How uploads leave this machine.
#[derive(Debug)]
pub struct Uploader {
    proxies: Proxies,
    /// Which authorities may have signed the server's certificate.
    roots: RootCerts,
    /// What is wrong with the environment.
    problem: Option<String>,
}

impl Uploader {
    /// With the proxy that the environment names (`HTTPS_PROXY` and its kin). To be called on the server thread: the environment may change at any time, and
    /// only there nobody changes it meanwhile.
    pub fn from_environment() -> Self {
        // What is not UTF-8 names nothing either, and is told like that.
        let (proxies, problem) =
            Proxies::read(|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()));
        Uploader {
            proxies,
            roots: RootCerts::WebPki,
            problem,
        }
    }

    /// What is wrong with the environment: a line for the log.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Begins to send `body`, which is gzip.
    ///
    /// # Errors
    /// The system gives us no thread.
    pub fn begin(&self, server: &WebAddress, content: Content, body: Arc<[u8]>) -> Result<Upload, UploadError> {
        self.begin_within(server, content, body, Duration::from_secs(limits::UPLOAD_SECONDS))
    }

    fn begin_within(
        &self,
        server: &WebAddress,
        content: Content,
        body: Arc<[u8]>,
        limit: Duration,
    ) -> Result<Upload, UploadError> {
        let end = Instant::now() + limit;
        let proxy = self.proxies.to(server).cloned();
        let agent = post::agent(proxy.as_ref(), self.roots.clone());
        let way = Way {
            host: server.host().to_owned(),
            proxy,
        };
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
            move || {
                fault::point("upload");
                let outcome = post::post(&agent, &url, &way, (content, &body), &shared, end);
                shared.state.lock().outcome = Some(outcome);
                shared.changed.notify_all();
            }
        })
        .map_err(|error| UploadError::NoThread(error.to_string()))?;
        Ok(Upload {
            shared,
            agent,
            worker,
            end,
        })
    }
}

/// An upload that runs. Dropping it breaks it off: connections are shut at once, and a thread that still waits for a name or a connection ends within
/// [`crate::limits::CONNECT_SECONDS`] by itself.
#[derive(Debug)]
pub struct Upload {
    shared: Arc<Shared>,
    agent: ureq::Agent,
    worker: thread::Worker,
    /// When it is given up, with whatever the thread is busy.
    end: Instant,
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
    /// Waits at most `limit` for the end. The outcome is given once. An upload that takes longer than [`limits::UPLOAD_SECONDS`] has failed; whoever is told so
    /// drops it.
    pub fn wait(&self, limit: Duration) -> Option<Result<Key, UploadError>> {
        let left = self.end.saturating_duration_since(Instant::now());
        let mut state = self.shared.state.lock();
        // Without an outcome the thread can only have panicked.
        let runs = |state: &mut State| state.outcome.is_none() && !self.worker.is_finished();
        self.shared.changed.wait_while_for(&mut state, runs, limit.min(left));
        match state.outcome.take() {
            None if self.worker.is_finished() => Some(Err(UploadError::Internal)),
            // The client's own limits do not hold everywhere: while a proxy answers CONNECT, each byte begins them anew.
            None if Instant::now() >= self.end => Some(Err(UploadError::TooSlow)),
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
