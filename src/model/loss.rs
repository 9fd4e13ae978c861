//! Samples that could not be taken, counted by reason.

/// Why a due sample has no stack.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum SampleLoss {
    /// All capture slots were in use.
    NoSlot = 0,
    /// The thread ended before it could answer.
    ThreadGone = 1,
    /// The thread did not answer in time.
    TimedOut = 2,
    /// Too little stack was left for the handler.
    SmallStack = 3,
    /// The thread blocks `SIGPROF`.
    Blocked = 4,
    /// The handler was entered while it was already running on that thread, or no unwinding context was free.
    Busy = 5,
    /// The kernel refused to send the signal.
    SendFailed = 6,
}

impl SampleLoss {
    /// All reasons, in the order of their numbers.
    pub const ALL: [SampleLoss; 7] = [
        SampleLoss::NoSlot,
        SampleLoss::ThreadGone,
        SampleLoss::TimedOut,
        SampleLoss::SmallStack,
        SampleLoss::Blocked,
        SampleLoss::Busy,
        SampleLoss::SendFailed,
    ];

    /// A name for metadata.
    pub const fn name(self) -> &'static str {
        match self {
            SampleLoss::NoSlot => "no slot",
            SampleLoss::ThreadGone => "thread gone",
            SampleLoss::TimedOut => "timed out",
            SampleLoss::SmallStack => "stack too small",
            SampleLoss::Blocked => "signal blocked",
            SampleLoss::Busy => "busy",
            SampleLoss::SendFailed => "not sent",
        }
    }
}

/// Counters, one per [`SampleLoss`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Losses([u64; SampleLoss::ALL.len()]);

impl Losses {
    /// Counts `count` losses.
    pub fn add(&mut self, reason: SampleLoss, count: u64) {
        if let Some(counter) = self.0.get_mut(reason as usize) {
            *counter += count;
        }
    }

    /// The count of one reason.
    pub fn get(&self, reason: SampleLoss) -> u64 {
        self.0.get(reason as usize).copied().unwrap_or(0)
    }

    /// All reasons together.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}
