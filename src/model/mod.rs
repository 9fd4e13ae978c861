//! Plain data that the layers hand to each other: ids, time, frames, samples, losses. No logic beyond construction and display.

pub mod build;
mod clean;
mod code;
mod diagnostics;
mod frame;
mod ids;
mod interpreter;
mod loss;
mod module;
mod past_profile;
mod place;
mod retention;
mod sample;
mod statistics;
mod threads;
mod time;
mod view;
mod web_address;
mod world;

pub use clean::clean_text;
pub use code::{Category, CodeInfo};
pub use diagnostics::{
    AuditFigures, EventCounts, HandlerCost, PythonDiagnostics, PythonState, RecoveryFigures, SamplerDiagnostics,
    TickFigures,
};
pub use frame::{NativeFrame, PythonEntry};
pub use ids::{CodeId, ModuleId, ThreadKey, Tid};
pub use interpreter::{CollectionTimes, Generation, Interpreter};
pub use loss::{Losses, SampleLoss};
pub use module::{BuildId, Module, plugin_stem};
pub use past_profile::{PastKind, PastProfile, ProfilePlace};
pub use place::shown_path;
pub use retention::Retention;
pub use sample::{PythonPart, Sample, StackEnd};
pub use statistics::{
    CpuShares, CpuUse, DiskUse, Distribution, Host, MemoryUse, MonitorEvent, Mspt, NetworkInterface, Ping, PlayerPing,
    SlowTicks, Statistics, Tick, Tps, WindowStatistics,
};
pub use threads::{NamePattern, ThreadChoice, ThreadNames};
pub use time::{MonotonicNanos, WallMillis};
pub use view::{Grouping, View};
pub use web_address::{WebAddress, WebAddressError};
pub use world::{ChunkPosition, DimensionCensus, World, WorldCounts};
