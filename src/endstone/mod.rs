//! The plugin as Endstone sees it: a C++ object of class `Plugin`, made of Rust.
//!
//! Handlers have one shape, because a host call may throw a C++ exception (which must pass through us) and a Rust panic must not reach C++:
//! gather from the host, then compute in [`pure`], then deliver to the host. Only the middle part is behind `catch_unwind`.
#![allow(unsafe_code)]

pub mod abi;
mod adapter;
mod describe;
mod entry;
mod image;
mod plugin;
mod pure;
mod surveyor;

pub use describe::{API_VERSION, describe};
pub use entry::init_endstone_plugin;
