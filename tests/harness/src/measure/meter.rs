//! How long a server's ticks take, and what processor time it takes meanwhile.

use crate::error::{Error, Result};
use crate::measure::cpu::CpuTime;
use crate::measure::spread::Spread;
use crate::server::Server;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// What was measured of a server for some seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// Ticks.
    pub ticks: usize,
    /// Milliseconds of the middle tick. A tick that the machine itself held up does not change it.
    pub median_mspt: f64,
    /// Milliseconds per tick, without the longest and the shortest twentieth.
    pub mspt: f64,
    /// Percent of the time of the server's steps (`!steps`) that interruptions took.
    pub lost_percent: f64,
    /// Processor time of the server thread in milliseconds per tick, its waiting included.
    pub thread_cpu_per_tick: f64,
    /// Of the server's process, in percent of a core.
    pub server_cpu: f64,
    /// Of this, the profiler's own threads.
    pub own_threads_cpu: f64,
    /// Of another process that looks at the server, in percent of a core.
    pub peer_cpu: f64,
}

impl Slice {
    /// Whether the server thread had a processor nearly all of the time in which it ticked: nothing else wanted it, and nobody stopped the thread.
    pub fn undisturbed(&self) -> bool {
        self.thread_cpu_per_tick >= 0.95 * self.mspt
    }

    /// All that is spent, in percent of a core.
    pub fn cpu(&self) -> f64 {
        self.server_cpu + self.peer_cpu
    }
}

/// A measurement that has begun.
#[derive(Debug)]
pub struct Meter {
    begun: Instant,
    server: CpuTime,
    peer: Option<(u32, CpuTime)>,
}

impl Meter {
    /// Measures a server, and the process that looks at it, for a time. Ticks are measured by the server's own clock (`!lengths`).
    ///
    /// # Errors
    /// If the server ends or does not answer.
    pub fn measure(server: &mut Server, peer: Option<u32>, time: Duration) -> Result<Slice> {
        let meter = Meter::begin(server, peer)?;
        server.run_for(time)?;
        meter.end(server)
    }

    /// Begins.
    ///
    /// # Errors
    /// As [`Meter::measure`].
    pub fn begin(server: &mut Server, peer: Option<u32>) -> Result<Meter> {
        server.ask("!lost", "!lost")?;
        server.ask("!lengths", "!lengths")?;
        Ok(Meter {
            begun: Instant::now(),
            server: CpuTime::of(server.pid()),
            peer: peer.map(|pid| (pid, CpuTime::of(pid))),
        })
    }

    /// Ends.
    ///
    /// # Errors
    /// As [`Meter::measure`], and if there was no tick.
    pub fn end(self, server: &mut Server) -> Result<Slice> {
        let now = CpuTime::of(server.pid());
        let elapsed = self.begun.elapsed().as_nanos() as f64;
        let percent = |nanos: u64| 100.0 * nanos as f64 / elapsed;
        let server_cpu = percent(now.since(&self.server, |_| true));
        let thread_nanos = now.since(&self.server, |name| name == "MC_SERVER");
        let own_threads_cpu = percent(now.since(&self.server, |name| name.starts_with("spark-")));
        let peer_cpu = self
            .peer
            .map_or(0.0, |(pid, before)| percent(CpuTime::of(pid).since(&before, |_| true)));
        let lengths = lengths(&server.ask("!lengths", "!lengths")?);
        let lost = lost(&server.ask("!lost", "!lost")?);
        let spread = Spread::of(lengths.iter().copied());
        let spread = spread.ok_or_else(|| Error::Server("the server did not tick while it was measured".to_owned()))?;
        Ok(Slice {
            ticks: lengths.len(),
            median_mspt: spread.median,
            lost_percent: lost.unwrap_or(f64::NAN),
            thread_cpu_per_tick: thread_nanos as f64 / 1e6 / lengths.len() as f64,
            mspt: trimmed_mean(lengths),
            server_cpu,
            own_threads_cpu,
            peer_cpu,
        })
    }
}

/// The milliseconds in the answer to `!lengths`.
fn lengths(answer: &str) -> Vec<f64> {
    let (_, numbers) = answer.split_once("!lengths").unwrap_or_default();
    numbers
        .split_whitespace()
        .filter_map(|text| text.parse().ok())
        .collect()
}

/// The percentage in the answer to `!lost`.
fn lost(answer: &str) -> Option<f64> {
    let (_, rest) = answer.split_once("percent=")?;
    rest.split_whitespace().next()?.parse().ok()
}

/// The mean without the outer twentieths.
fn trimmed_mean(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let cut = values.len() / 20;
    let inner = &values[cut..values.len() - cut];
    inner.iter().sum::<f64>() / inner.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_stand_ins_answer() {
        assert_eq!(lengths("[stand-in] !lengths 1.5000 2.2500"), [1.5, 2.25]);
        assert!(lengths("[stand-in] !lengths ").is_empty());
        assert!(lengths("something else").is_empty());
        assert_eq!(lost("[stand-in] !lost percent=0.1250 interruptions=3"), Some(0.125));
        assert_eq!(lost("[stand-in] !lost"), None);
    }

    #[test]
    fn the_longest_and_shortest_twentieth_do_not_count() {
        let mut values = vec![10.0; 18];
        values.extend([0.0, 1_000.0]);
        assert_eq!(trimmed_mean(values), 10.0);
        assert_eq!(trimmed_mean(vec![1.0, 3.0]), 2.0);
    }
}
