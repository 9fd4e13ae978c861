//! One start..stop of the profiler.

mod control;
mod environment;
mod service;
mod ticks;

pub use control::{Control, Notice, Outgoing, Refusal, Requester, RunningInfo, SessionInfo, StartRequest, StopRequest};
pub use environment::{Environment, PluginInfo};
pub use service::Service;
pub use ticks::TickSample;
