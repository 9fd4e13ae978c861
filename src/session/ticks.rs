//! One tick as the server thread reports it.

use crate::model::{MonotonicNanos, Tid};

/// One tick, as the server thread reports it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TickSample {
    /// When it was reported.
    pub at: MonotonicNanos,
    /// The thread that ticks.
    pub tid: Tid,
    /// How long the last whole tick took, in milliseconds, as the server measured it.
    pub mspt: f32,
    /// Ticks per second, as the server measured it.
    pub tps: f32,
}
