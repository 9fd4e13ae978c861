//! What a session has seen: samples merged into call trees, minute by minute. Pure and safe code.

mod ended;
mod forest;
mod frame;
mod hash;
mod ledger;
mod merge;
mod snapshot;
mod tick_filter;
mod tree;
mod windows;

pub use forest::Forest;
pub use frame::FrameKey;
pub(crate) use hash::IdMap;
pub use ledger::Ledger;
pub use merge::{MergeStats, Merged, Merger};
pub use snapshot::{Snapshot, ThreadProfile};
pub use tick_filter::{Book, TickEnd, TickFilter};
pub use tree::{NodeView, Room, Tree, WindowTimes};
pub use windows::{WindowClock, WindowStats};
