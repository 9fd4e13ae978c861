//! What is known of the server at one moment, and of its last fifteen minutes. Plain data; `stats::Service` makes it.
//!
//! A figure that could not be measured or read is `None`, never 0. Every figure over a time covers the newest part of that time only, where less is known: a
//! server that has been up for three minutes has `last_15m` over three. How much is known stands beside the figures as `known_seconds`, at most 900.

use super::{MonotonicNanos, WallMillis};

/// The server now and over its last minutes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Statistics {
    /// When this was made.
    pub taken: WallMillis,
    /// How long the server's process has been up, in milliseconds.
    pub process_uptime_millis: Option<u64>,
    /// Ticks per second.
    pub tps: Tps,
    /// Milliseconds per tick.
    pub mspt: Mspt,
    /// Processor time.
    pub cpu: CpuUse,
    /// The machine.
    pub host: Host,
    /// Memory of the process and the machine, a second old at most.
    pub memory: MemoryUse,
    /// The file system that holds the server's folder, a second old at most.
    pub disk: Option<DiskUse>,
    /// Network interfaces, in the kernel's order.
    pub network: Vec<NetworkInterface>,
    /// Interfaces that are not among them, because there are too many.
    pub network_left_out: usize,
    /// Players online, ten seconds old at most.
    pub players: Option<u32>,
    /// How long players' packets take.
    pub ping: Ping,
}

/// Mean and percentiles of measurements, in the unit of the field that holds it. Percentiles are by nearest rank: the smallest measurement that at least this
/// share of all does not exceed. The median of an even number of measurements is the mean of the middle two.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Distribution {
    /// Their sum by their number.
    pub mean: f64,
    /// The smallest.
    pub min: f64,
    /// The middle.
    pub median: f64,
    /// 95 % are not greater.
    pub percentile95: f64,
    /// The greatest.
    pub max: f64,
}

/// Ticks per second. Each tick's share of the time at the edges counts: a steady server has exactly the same figure at every moment, and a hanging one's
/// sinks from moment to moment. May be more than 20 while a server makes up for lost ticks.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Tps {
    /// Seconds of history. Figures are `None` before the second tick.
    pub known_seconds: f64,
    /// Over 5 seconds.
    pub last_5s: Option<f64>,
    /// Over 10 seconds.
    pub last_10s: Option<f64>,
    /// Over a minute.
    pub last_1m: Option<f64>,
    /// Over 5 minutes.
    pub last_5m: Option<f64>,
    /// Over 15 minutes.
    pub last_15m: Option<f64>,
}

/// Milliseconds of work per tick, without the time in which the server sleeps until the next. Ticks count from when they are over.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Mspt {
    /// Seconds of history: less than those of [`Tps`] where a server ticks so often that single ticks cannot be kept for as long.
    pub known_seconds: f64,
    /// Over 10 seconds.
    pub last_10s: Option<Distribution>,
    /// Over a minute.
    pub last_1m: Option<Distribution>,
    /// Over 5 minutes.
    pub last_5m: Option<Distribution>,
}

/// Processor time.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct CpuUse {
    /// Seconds of history.
    pub known_seconds: f64,
    /// Of the server's process, as a share of all processors of the machine.
    pub process: CpuShares,
    /// Of everything on the machine, as a share of all its processors.
    pub system: CpuShares,
    /// Processors of the machine.
    pub processors: Option<u32>,
    /// Threads of the server's process.
    pub threads: Option<u32>,
}

/// Shares of all processors, 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct CpuShares {
    /// Over 10 seconds.
    pub last_10s: Option<f64>,
    /// Over a minute.
    pub last_1m: Option<f64>,
    /// Over 15 minutes.
    pub last_15m: Option<f64>,
}

/// What the machine is. Texts are free of control characters.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Host {
    /// The system as it calls itself, e.g. `Debian GNU/Linux 13 (trixie)`.
    pub system: Option<String>,
    /// The kernel's version.
    pub kernel: Option<String>,
    /// The processor as it calls itself.
    pub processor: Option<String>,
}

/// Memory, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryUse {
    /// What the process has in memory (resident).
    pub process_resident_bytes: Option<u64>,
    /// The most it ever had.
    pub process_peak_bytes: Option<u64>,
    /// What of it is swapped out.
    pub process_swapped_bytes: Option<u64>,
    /// Its address space, most of which is not memory.
    pub process_virtual_bytes: Option<u64>,
    /// The machine's memory.
    pub host_total_bytes: Option<u64>,
    /// What of it is not available to programs without swapping (`MemTotal` less `MemAvailable`).
    pub host_used_bytes: Option<u64>,
    /// The machine's swap space; 0 when it has none.
    pub swap_total_bytes: Option<u64>,
    /// What of it is in use.
    pub swap_used_bytes: Option<u64>,
}

/// A file system, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DiskUse {
    /// What is in use.
    pub used_bytes: u64,
    /// What is in use and what is free for the server's user. What only the system's owner may use is left out, as `df` does.
    pub total_bytes: u64,
}

/// One network interface over the last fifteen minutes. The measurements are the rates of single seconds.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NetworkInterface {
    /// e.g. `eth0`.
    pub name: String,
    /// Seconds of history.
    pub known_seconds: f64,
    /// Bytes received per second.
    pub received_bytes_per_second: Distribution,
    /// Bytes sent per second.
    pub sent_bytes_per_second: Distribution,
    /// Packets received per second.
    pub received_packets_per_second: Distribution,
    /// Packets sent per second.
    pub sent_packets_per_second: Distribution,
}

/// How long players' packets take there and back, in milliseconds. Asked every ten seconds.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Ping {
    /// Seconds of history.
    pub known_seconds: f64,
    /// Of all players when they were asked last.
    pub now: Option<Distribution>,
    /// Of all answers of the last fifteen minutes.
    pub last_15m: Option<Distribution>,
    /// When they were asked last, in the server's order.
    pub players: Vec<PlayerPing>,
}

/// One player's.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PlayerPing {
    /// The player's name, free of control characters and colour codes.
    pub name: String,
    /// Milliseconds.
    pub millis: u32,
}

/// The server over a part of a profile. What happened in the part before the history or after the newest measurement is left out: a part is best asked for two
/// seconds after its end, and within a quarter of an hour.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct WindowStatistics {
    /// Ticks that began in it.
    pub ticks: u32,
    /// Ticks per second, as in [`Tps`].
    pub tps: Option<f64>,
    /// Milliseconds of its ticks, median.
    pub mspt_median: Option<f64>,
    /// Milliseconds of its longest tick.
    pub mspt_max: Option<f64>,
    /// Share of all processors that the process had, 0 to 1.
    pub cpu_process: Option<f64>,
    /// Share of all processors that were busy, 0 to 1.
    pub cpu_system: Option<f64>,
}

/// One tick. Our task runs inside of it, before the level's own work; when exactly the tick began, the server does not say.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tick {
    /// Its number, counted from 0 at the plugin's start.
    pub number: u64,
    /// When our task ran in it.
    pub at: MonotonicNanos,
    /// How long it took as a whole, in milliseconds, as the server measured it. `None` until the next tick's task has run.
    pub millis: Option<f32>,
}

/// Which ticks the tick monitor reports.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum SlowTicks {
    /// Those that take this many percent longer than the average of its baseline, or more.
    PercentOver(f64),
    /// Those that take this many milliseconds or more.
    Millis(f64),
}

/// What the tick monitor has to say. Milliseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum MonitorEvent {
    /// It has seen enough ticks and reports slow ones from now on.
    Ready {
        /// How long they took.
        mean: f64,
        /// The shortest.
        min: f64,
        /// The longest.
        max: f64,
    },
    /// A tick was slow.
    Slow {
        /// Its number since the plugin's start.
        number: u64,
        /// How long it took.
        millis: f64,
        /// By how many percent of the average that was longer.
        percent_over: Option<f64>,
        /// Slow ticks since the last report that had none of their own.
        unreported: u64,
    },
}
