//! One start..stop of the profiler.

mod aggregator;
mod background;
#[cfg(test)]
mod background_tests;
mod books;
mod control;
mod environment;
mod eras;
mod health;
mod intake;
mod interpreter;
mod journaling;
mod minutes;
mod monitor;
mod python;
mod recording;
mod recover;
mod replayed;
mod report;
mod server;
mod service;
mod state;
mod tick_watch;
mod ticks;
mod unsaved;
mod upload;
mod watchdog;
mod worker;
mod world;

pub use control::{
    BackgroundInfo, Control, Destination, Ended, ExportStep, MonitorChange, Notice, Outgoing, Refusal, Requester,
    RunningInfo, SessionInfo, StartRequest, StopRequest,
};
pub use environment::{Environment, PluginInfo};
pub use service::Service;
pub use tick_watch::TickGauge;
pub use ticks::TickSample;
pub use world::{Survey, Ticket, WorldDesk};
