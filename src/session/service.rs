//! The service as the plugin holds it, without a sampler: every command is refused with its reason. Replaced when the session is merged.

use std::path::PathBuf;

use parking_lot::Mutex;

use super::control::{Control, Outgoing, Refusal, Requester, SessionInfo, StartRequest, StopRequest};
use super::environment::Environment;
use super::ticks::TickSample;

/// The profiler.
#[derive(Debug)]
pub struct Service {
    last_tick: Mutex<Option<TickSample>>,
}

impl Service {
    /// A profiler that keeps its files below `folder`.
    ///
    /// # Errors
    /// None here.
    pub fn new(_folder: PathBuf) -> std::io::Result<Self> {
        Ok(Service {
            last_tick: Mutex::new(None),
        })
    }

    /// Takes one tick. On the server thread.
    pub fn on_tick(&self, tick: TickSample) {
        *self.last_tick.lock() = Some(tick);
    }

    /// Notices to deliver, oldest first. On the server thread.
    pub fn take_outgoing(&self) -> Vec<Outgoing> {
        Vec::new()
    }

    /// What is known of the server, its plugins included.
    pub fn set_environment(&self, _environment: Environment) {}

    /// Ends everything.
    pub fn shutdown(&self) -> bool {
        true
    }
}

impl Control for Service {
    fn start(&self, _request: StartRequest) -> Result<(), Refusal> {
        Err(Refusal::ServerThreadUnknown)
    }
    fn stop(&self, _request: StopRequest) -> Result<(), Refusal> {
        Err(Refusal::NotRunning)
    }
    fn cancel(&self, _by: &Requester) -> Result<(), Refusal> {
        Err(Refusal::NotRunning)
    }
    fn info(&self) -> SessionInfo {
        SessionInfo::default()
    }
}
