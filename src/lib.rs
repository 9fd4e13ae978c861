//! A profiler that runs inside the Bedrock Dedicated Server as an Endstone plugin.
//!
//! # The house
//!
//! A sample is one native stack at one instant, taken by the sampled thread itself in a `SIGPROF` handler, together with that thread's
//! *shadow stack*: the Python functions that run on it, as `sys.monitoring` callbacks saw them. Every Python entry carries an *anchor*,
//! the stack address of the C frame that runs it, so both stacks merge exactly.
//!
//! ```text
//! server thread(s)          sampler thread            aggregator thread              worker (export)
//!    |  PEP 669 callbacks       | picks threads due        | drains slots
//!    |  write own shadow stack  | tgsigqueueinfo(SIGPROF)  | merges native + Python by anchor
//!    |<-- SIGPROF handler ------|                          | call tree per thread, per window
//!    |  unwinds itself, copies  |                          |
//!    |  its shadow stack into   |                          |
//!    |  a capture slot ---------|------------------------->| freeze -> snapshot ------------> symbols, protobuf, file
//! ```
//!
//! Imports go downwards only (`tests/architecture.rs` holds the table):
//!
//! | module | what it is | may use |
//! |---|---|---|
//! | [`model`] | ids, time, frames, samples, losses: plain data | nothing |
//! | [`sync`] | the only lock-free code: seqlock words, slots, snapshot swap | nothing |
//! | [`sys`] | thin checked system calls: signals, threads, clocks, memory, module list | nothing (the module list uses model) |
//! | [`shadow`] | per-thread shadow stacks, written by callbacks, read by the handler | sync, model |
//! | [`native`] | handler, unwinder, sampler thread | shadow, sync, sys, model |
//! | [`python`] | interpreter access, callbacks, code table, classification | shadow, sync, sys, model |
//! | [`symbol`] | names of native addresses | sys, model |
//! | [`profile`] | merge, call tree, windows | model |
//! | [`stats`] | ticks, processor, memory, network, players over fifteen minutes | sync, sys, model |
//! | [`export`] | spark's protobuf, files | profile, symbol, sys, model |
//! | [`journal`] | what a session has sampled, on disk while it runs; what a crash left of it | sys, model |
//! | [`settings`] | the owner's `config.toml` | sys, model |
//! | [`upload`] | sends a profile to the viewer's server | sys, model |
//! | [`activity`] | the list of past profiles | sys, model |
//! | [`session`] | one start..stop: owns threads and wires the rest | everything above |
//! | [`command`] | command line in, plain answers out; knows no server | session, model |
//! | [`endstone`] | the plugin as Endstone sees it, made from what is in its folder | command, session, settings, activity, sys, model |
//!
//! [`limits`] holds every cap and is open to all.
#![deny(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)
)]

pub mod activity;
pub mod command;
pub mod endstone;
pub mod export;
pub mod journal;
pub mod limits;
pub mod model;
pub mod native;
pub mod profile;
pub mod python;
pub mod session;
pub mod settings;
pub mod shadow;
pub mod stats;
pub mod symbol;
pub mod sync;
pub mod sys;
pub mod upload;
