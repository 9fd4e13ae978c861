//! `src/sync` and the index of threads again, on loom's atomics when built with `--cfg loom`. The models stand beside the code they check.
// Only the models use most of it here.
#![allow(dead_code)]

#[path = "../../../src/model/ids.rs"]
mod ids;
#[path = "../../../src/shadow/index.rs"]
mod index;
#[path = "../../../src/limits.rs"]
mod limits;
#[path = "../../../src/sync/mod.rs"]
pub mod sync;

/// What the index needs of `src/model`.
mod model {
    pub(crate) use super::ids::Tid;
}
