//! Thin, checked system calls. Nothing here knows what a profile is.
#![allow(unsafe_code)]

pub mod clock;
mod private_dir;
pub mod thread;

pub use private_dir::{PrivateDir, PrivateDirError};
