//! `src/sync` again, on loom's atomics when built with `--cfg loom`. The models stand beside the code they check.

#[path = "../../../src/sync/mod.rs"]
pub mod sync;
