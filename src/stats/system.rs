//! The last fifteen minutes of the process and the machine.

use std::collections::VecDeque;

use super::distribution::distribution;
use super::growth::Growth;
use super::reading::{Counters, Reading};
use crate::limits;
use crate::model::{CpuShares, CpuUse, DiskUse, Host, MemoryUse, MonotonicNanos, NetworkInterface};

const SECOND: u64 = 1_000_000_000;

/// Readings that are kept: one a second, and one more at each end.
const KEPT: usize = limits::HISTORY_SECONDS as usize + 2;

/// Processor time at one moment.
#[derive(Clone, Copy, Debug)]
struct Times {
    at: MonotonicNanos,
    process_nanos: Option<u64>,
    busy: Option<u64>,
    total: Option<u64>,
}

/// One interface.
#[derive(Debug)]
struct Interface {
    name: String,
    /// When the counters stood where.
    counts: VecDeque<(MonotonicNanos, [u64; 4])>,
}

/// All of it, of fixed size.
#[derive(Debug)]
pub(super) struct SystemHistory {
    times: VecDeque<Times>,
    processors: Option<u32>,
    threads: Option<u32>,
    host: Host,
    memory: MemoryUse,
    disk: Option<DiskUse>,
    interfaces: Vec<Interface>,
    left_out: usize,
}

impl Default for SystemHistory {
    fn default() -> Self {
        SystemHistory {
            times: VecDeque::with_capacity(KEPT),
            processors: None,
            threads: None,
            host: Host::default(),
            memory: MemoryUse::default(),
            disk: None,
            interfaces: Vec::new(),
            left_out: 0,
        }
    }
}

/// Adds to a ring of a fixed number of places.
fn keep<T>(ring: &mut VecDeque<T>, value: T) {
    if ring.len() >= KEPT {
        ring.pop_front();
    }
    ring.push_back(value);
}

fn ago(now: MonotonicNanos, seconds: u64) -> MonotonicNanos {
    MonotonicNanos(now.0.saturating_sub(seconds * SECOND))
}

impl SystemHistory {
    /// Adds the newest reading.
    pub(super) fn add(&mut self, reading: Reading) {
        let at = reading.at;
        keep(
            &mut self.times,
            Times {
                at,
                process_nanos: reading.process_nanos,
                busy: reading.machine.map(|machine| machine.busy),
                total: reading.machine.map(|machine| machine.total),
            },
        );
        self.processors = reading.machine.map(|machine| machine.processors).or(self.processors);
        self.threads = reading.threads;
        self.memory = reading.memory;
        self.disk = reading.disk;
        if let Some((interfaces, left_out)) = reading.interfaces {
            self.left_out = left_out;
            // One that is gone has nothing to show any more.
            self.interfaces
                .retain(|known| interfaces.iter().any(|counters| counters.name == known.name));
            for counters in interfaces {
                self.count(at, counters);
            }
        }
    }

    fn count(&mut self, at: MonotonicNanos, Counters { name, counts }: Counters) {
        let place = self.interfaces.iter().position(|known| known.name == name);
        let known = match place.and_then(|place| self.interfaces.get_mut(place)) {
            Some(known) => known,
            None => {
                self.interfaces.push(Interface {
                    name,
                    counts: VecDeque::with_capacity(KEPT),
                });
                match self.interfaces.last_mut() {
                    Some(new) => new,
                    None => return,
                }
            }
        };
        // It was made anew: its counters began again.
        let began_again =
            |(_, before): &(MonotonicNanos, [u64; 4])| before.iter().zip(counts).any(|(old, new)| new < *old);
        if known.counts.back().is_some_and(began_again) {
            known.counts.clear();
        }
        keep(&mut known.counts, (at, counts));
    }

    /// Shares of all processors in a time: of the process, and of everything.
    pub(super) fn shares(&self, from: MonotonicNanos, to: MonotonicNanos) -> (Option<f64>, Option<f64>) {
        let grown = |value: fn(&Times) -> Option<u64>| {
            let points = self
                .times
                .iter()
                .filter_map(|times| Some((times.at, value(times)? as f64)))
                .collect();
            Growth::new(points).between(from, to)
        };
        let process = grown(|times| times.process_nanos)
            .zip(self.processors)
            .map(|(grown, processors)| grown.by / 1e9 / grown.seconds / f64::from(processors.max(1)));
        let system = grown(|times| times.busy)
            .zip(grown(|times| times.total))
            .filter(|(_, total)| total.by > 0.0)
            .map(|(busy, total)| busy.by / total.by);
        // The kernel's clocks are not read at the same instant, so a full machine may seem more than full.
        let share = |share: Option<f64>| share.map(|share| share.clamp(0.0, 1.0));
        (share(process), share(system))
    }

    pub(super) fn cpu(&self, now: MonotonicNanos) -> CpuUse {
        let first = self.times.front().map_or(now, |times| times.at);
        let (process_10s, system_10s) = self.shares(ago(now, 10), now);
        let (process_1m, system_1m) = self.shares(ago(now, 60), now);
        let (process_15m, system_15m) = self.shares(ago(now, limits::HISTORY_SECONDS), now);
        CpuUse {
            known_seconds: (now.since(first) as f64 / 1e9).min(limits::HISTORY_SECONDS as f64),
            process: CpuShares {
                last_10s: process_10s,
                last_1m: process_1m,
                last_15m: process_15m,
            },
            system: CpuShares {
                last_10s: system_10s,
                last_1m: system_1m,
                last_15m: system_15m,
            },
            processors: self.processors,
            threads: self.threads,
        }
    }

    pub(super) fn set_host(&mut self, host: Host) {
        self.host = host;
    }

    pub(super) fn host(&self) -> Host {
        self.host.clone()
    }

    pub(super) fn memory(&self) -> MemoryUse {
        self.memory
    }

    pub(super) fn disk(&self) -> Option<DiskUse> {
        self.disk
    }

    /// The interfaces of which there are two counts at least, and the number of those that there was no room for.
    pub(super) fn network(&self, now: MonotonicNanos) -> (Vec<NetworkInterface>, usize) {
        let from = ago(now, limits::HISTORY_SECONDS);
        let shown = self.interfaces.iter().filter_map(|interface| interface.show(from, now));
        (shown.collect(), self.left_out)
    }
}

impl Interface {
    fn show(&self, from: MonotonicNanos, now: MonotonicNanos) -> Option<NetworkInterface> {
        let known = || self.counts.iter().filter(|(at, _)| *at >= from);
        let rates = |which: fn(&[u64; 4]) -> u64| {
            let pairs = known().zip(known().skip(1));
            let rates = pairs.map(|((start, before), (end, after))| {
                (which(after).saturating_sub(which(before))) as f64 * 1e9 / end.since(*start) as f64
            });
            distribution(rates.collect())
        };
        Some(NetworkInterface {
            name: self.name.clone(),
            known_seconds: now.since(known().next()?.0) as f64 / 1e9,
            received_bytes_per_second: rates(|counts| counts[0])?,
            sent_bytes_per_second: rates(|counts| counts[1])?,
            received_packets_per_second: rates(|counts| counts[2])?,
            sent_packets_per_second: rates(|counts| counts[3])?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_of_readings_takes_as_much_as_a_quarter() {
        let mut system = SystemHistory::default();
        let mut sizes = Vec::new();
        for second in 0..3_600_u64 {
            system.add(Reading {
                at: MonotonicNanos(second * SECOND),
                process_nanos: Some(second),
                machine: None,
                memory: MemoryUse::default(),
                threads: None,
                disk: None,
                interfaces: Some((
                    vec![Counters {
                        name: "eth0".to_owned(),
                        counts: [second; 4],
                    }],
                    0,
                )),
            });
            let interface = &system.interfaces[0].counts;
            sizes.push((system.times.capacity(), interface.capacity(), system.interfaces.len()));
            assert!(system.times.len() <= KEPT && interface.len() <= KEPT);
        }
        sizes.dedup();
        assert_eq!(sizes.len(), 1, "{sizes:?}");
    }
}
