//! (skeleton)
#![allow(unsafe_code)]
