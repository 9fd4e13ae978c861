//! Two clocks that must never be mixed: durations and windows come from the monotonic one, only printed dates from the wall clock.

/// Nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct MonotonicNanos(pub u64);

impl MonotonicNanos {
    /// Nanoseconds since `earlier`, 0 when `earlier` is later.
    pub const fn since(self, earlier: MonotonicNanos) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Milliseconds since the Unix epoch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct WallMillis(pub i64);
