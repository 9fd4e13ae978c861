//! One start..stop of the profiler.

mod aggregator;
mod control;
mod environment;
mod journaling;
mod python;
mod recording;
mod recover;
mod replayed;
mod report;
mod service;
mod ticks;
mod unsaved;
mod upload;
mod worker;

pub use control::{
    Control, Destination, Ended, ExportStep, Notice, Outgoing, Refusal, Requester, RunningInfo, SessionInfo,
    StartRequest, StopRequest,
};
pub use environment::{Environment, PluginInfo};
pub use service::Service;
pub use ticks::TickSample;
