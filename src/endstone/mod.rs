//! The plugin as Endstone sees it.
#![allow(unsafe_code)]

pub mod abi;
