//! The Python side of a session: which Python function runs on which thread, and what it is called.
//!
//! `sys.monitoring` (PEP 669) tells C callbacks of ours when a Python frame is entered and left; they keep a shadow stack per thread, which
//! the sampler's signal handler copies. Nothing is linked: every function of CPython is looked up when the plugin runs, so that one
//! binary serves every CPython and also a process without any.
//!
//! | file | what it is |
//! |---|---|
//! | `api` | CPython's public functions, looked up |
//! | `gil` | a thread that takes the interpreter's lock, and may be lost when the interpreter ends |
//! | `ending` | nobody of ours is in the interpreter when it ends |
//! | `function` | C functions of ours that Python calls |
//! | `monitoring` | tool id, events, callbacks' registration |
//! | `callbacks` | what CPython calls: the hot path |
//! | `context` | a thread's cache, counters and shadow stack |
//! | `cold` | what callbacks do on the first sight of a thread or a code object |
//! | `audit` | the interpreter's own frames: a new thread's, and those that a shadow stack is compared with |
//! | `greenlets` | threads that swap stacks |
//! | `live` | the session that callbacks work for |
//! | `codes` | code objects and their ids |
//! | `watcher` | notice of the death of code objects |
//! | `classify`, `layout`, `paths`, `text` | whose code it is and how it is shown |
//! | `calibrate` | the distance from a callback to its eval frame |
//! | `attach`, `attribution`, `detach` | start; what runs; stop |
//! | `collector` | how long the garbage collector takes |
//! | `interpreter` | what the interpreter says of itself, for a report |
#![allow(unsafe_code)]

mod api;
mod attach;
mod attribution;
mod audit;
mod calibrate;
mod callbacks;
mod classify;
mod codes;
mod cold;
mod collector;
mod context;
mod detach;
mod ending;
mod function;
mod gil;
mod greenlets;
mod interpreter;
mod layout;
mod live;
mod monitoring;
mod objects;
mod paths;
mod text;
mod watcher;

pub use api::{Runtime, Unsupported};
pub use attach::{AttachError, attach, attach_within};
pub use attribution::Attribution;
pub use calibrate::StackWalk;
pub use collector::time_collections;
pub use gil::GilPatience;
pub use interpreter::{interpreter, interpreter_unasked};
