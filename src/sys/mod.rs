//! Thin, checked system calls. Nothing here knows what a profile is.
#![allow(unsafe_code)]

pub mod clock;
mod deadline;
pub mod errno;
pub mod fault;
pub mod fork;
#[cfg(test)]
pub(crate) mod live_bytes;
mod machine;
pub mod maps;
pub mod mem;
mod private_dir;
mod record_lock;
pub mod signal;
pub mod sleep;
pub mod task;
pub mod thread;

pub use deadline::Deadline;
pub use machine::{Machine, process_uptime_millis, system_name};
pub use private_dir::{FileEntry, PrivateDir, PrivateDirError};
pub use record_lock::{LockError, RecordLock};
