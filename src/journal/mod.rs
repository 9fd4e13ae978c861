//! What a session has sampled, on disk while it runs, so that a crash loses a second at most.
//!
//! # Problem
//! A server that crashes or is killed takes the call trees in its memory with it, just when they are wanted most. Writing must never hold up the server, its disk or the
//! sampling; and whoever reads what a crash has left must expect anything.
//!
//! # How
//! The aggregator gives every sample to a [`Feed`] as well: its native stack alone, for what Python code an id means is known only to the process that gave it. A few times
//! a second the feed hands what it has to a thread of its own through a bounded queue. When that is full the samples are dropped and counted. The thread packs
//! them (stacks share their beginnings, numbers are short) and writes them to a *segment*. A full segment is synced and a new one begun, which repeats
//! what it takes to read it alone; when there are too many bytes the oldest segment goes. `docs/journal.md` describes the files.
//!
//! A journal whose profile is safe, or not wanted, is ended with a record that says so and removed. One that has none was left by a crash: the next start
//! finds it in the [`RecoveryFolder`] and reads it with a [`Replay`].
//!
//! # Price
//! The aggregator copies each sample's frames once; packing and writing are the journal's own thread's.
//!
//! # Assumptions
//! What `write(2)` has taken survives the end of the process, because the kernel has it. A power cut loses what the kernel had not written yet: up to some thirty
//! seconds on Linux's usual settings. Syncing more often would make a busy disk stall the world's saving.

mod feed;
mod folder;
mod format;
mod head;
mod packer;
mod queue;
mod replay;
mod segment;
mod tables;
mod wire;
mod writer;

pub use feed::{Feed, TickFeed};
pub use folder::{Found, OpenError, RecoveryFolder, SessionId};
pub use head::{Owner, PluginRecord, SessionHead};
pub use replay::{Event, Frame, Replay, Sampled, SegmentError, SegmentReport};
pub use writer::Journal;
