//! The profiler's bindings, at the place where their macros look for them.

#[allow(dead_code, unused_imports)]
#[path = "../../../../src/endstone/abi/mod.rs"]
pub mod abi;
