//! What a session has seen: samples merged into call trees, minute by minute. Pure and safe code.

mod frame;
mod hash;
mod ledger;
mod merge;
mod snapshot;
mod tree;
mod windows;

pub use frame::FrameKey;
pub use ledger::Ledger;
pub use merge::{MergeStats, Merged, Merger};
pub use snapshot::{Snapshot, ThreadProfile};
pub use tree::{NodeView, Tree, WindowTimes};
pub use windows::{WindowClock, WindowStats};
