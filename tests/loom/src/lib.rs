//! Models of the lock-free code. The files of `src/sync` are compiled here a second time, with loom's atomics; their `loom_models` run all
//! orders in which the threads' steps can be seen. `cargo test --release -p loom-models`
#![cfg(test)]
#![allow(dead_code, unused_imports)]

#[path = "../../../src/sync/mod.rs"]
mod sync;
