//! The atomics of this folder: `std`'s, or loom's where the models in `tests/loom` compile these files again.

#[cfg(not(loom))]
pub(super) use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicU64, Ordering};
