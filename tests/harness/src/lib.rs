//! Puts test servers together and drives them.
//!
//! ```no_run
//! use harness::{Lab, PythonVersion};
//! use std::time::Duration;
//!
//! # fn main() -> harness::Result<()> {
//! let lab = Lab::open()?;
//! let python = lab.python(PythonVersion::V3_13)?;
//! let mut server = lab.server(&python).samples()?.start_ready()?;
//! server.command("spark profiler start")?;
//! server.wait_for("started", Duration::from_secs(10))?;
//! assert!(server.stop()?.success());
//! # Ok(())
//! # }
//! ```
//!
//! A [`Lab`] knows the folders. It finds or fetches a [`Python`], the released Endstone and the sample plugins, and starts a [`Server`], whose
//! console is typed into and whose lines are waited for. A [`Profile`] is what the server leaves.

pub mod abi;
mod apt;
mod at_once;
mod check;
mod debian;
mod endstone;
mod error;
mod find;
mod health;
mod lab;
mod launch;
mod linked;
mod measure;
mod output;
mod package;
mod patchelf;
mod pip;
mod plugins;
mod profile;
mod program;
mod progress;
mod python;
mod server;
mod server_builder;
#[cfg(test)]
mod sound;
mod tree;
mod version;
mod wheel;

pub use at_once::at_once;
pub use check::Findings;
pub use endstone::{ENDSTONE_VERSION, Endstone};
pub use error::{Error, Result};
pub use find::Candidate;
pub use health::Health;
pub use lab::Lab;
pub use launch::command as launch_command;
pub use linked::Linked;
pub use measure::{
    Attached, CpuTime, Folded, Footprint, GIVE_BACK, Meter, Record, Slice, Spread, chains, machine, median_interval,
    peers,
};
pub use output::{Mark, Pattern};
pub use plugins::build as build_plugin;
pub use profile::{Frame, Profile, Stack};
pub use progress::{Step, note};
pub use python::{Origin, OwnLibc, Python};
pub use server::{START_TIMEOUT, STOP_TIMEOUT, Server, journal_files, profile_files};
pub use server_builder::{ServerBuilder, install};
pub use tree::TreeOptions;
pub use version::{BadVersion, PythonVersion};
pub use wheel::{Metadata as WheelMetadata, unpacked as unpacked_wheel};
