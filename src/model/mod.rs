//! Plain data that the layers hand to each other: ids, time, frames, samples, losses. No logic beyond construction and display.

mod code;
mod diagnostics;
mod frame;
mod ids;
mod loss;
mod module;
mod sample;
mod threads;
mod time;
mod view;

pub use code::{Category, CodeInfo};
pub use diagnostics::{AuditFigures, EventCounts, HandlerCost, PythonDiagnostics, PythonState, SamplerDiagnostics};
pub use frame::{NativeFrame, PythonEntry};
pub use ids::{CodeId, ModuleId, ThreadKey, Tid};
pub use loss::{Losses, SampleLoss};
pub use module::{BuildId, Module, plugin_stem};
pub use sample::{PythonPart, Sample, StackEnd};
pub use threads::{NamePattern, ThreadChoice, ThreadNames};
pub use time::{MonotonicNanos, WallMillis};
pub use view::{Grouping, View};
