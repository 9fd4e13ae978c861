//! Shadow stacks: the Python functions that run on each thread, as the monitoring callbacks saw them.
//!
//! Both captures meet here. A callback writes its own thread's [`ShadowStack`]; the signal handler, which interrupts that same thread, copies
//! it through [`ShadowTable::read`] without a lock, an allocation, a thread-local or a panic.
#![allow(unsafe_code)]

mod index;
mod reader;
mod stack;
mod table;

pub use reader::{ReadBuffer, ShadowRead};
pub use stack::{EntryCode, ShadowStack};
pub use table::{ShadowFigures, ShadowTable};
