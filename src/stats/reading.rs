//! What the kernel says of the process and the machine at one moment.

use super::source::Source;
use crate::limits;
use crate::model::{DiskUse, Host, MemoryUse, MonotonicNanos, clean_text};
use crate::sys::{self, Machine, clock};

/// Room for the longest of the files, of which the beginning is enough: `/proc/stat` has 60 bytes per processor there, `/proc/net/dev` 120 per interface.
const BUFFER_BYTES: usize = 32 << 10;

/// Processor time of the machine since its start, in ticks of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MachineTime {
    pub(super) busy: u64,
    pub(super) total: u64,
    pub(super) processors: u32,
}

/// An interface's counters since it came up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Counters {
    pub(super) name: String,
    /// Bytes received, bytes sent, packets received, packets sent.
    pub(super) counts: [u64; 4],
}

/// Everything that is read once a second.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Reading {
    pub(super) at: MonotonicNanos,
    pub(super) process_nanos: Option<u64>,
    pub(super) machine: Option<MachineTime>,
    pub(super) memory: MemoryUse,
    pub(super) threads: Option<u32>,
    pub(super) disk: Option<DiskUse>,
    /// And how many more there are.
    pub(super) interfaces: Option<(Vec<Counters>, usize)>,
}

/// Reads it.
#[derive(Debug)]
pub(super) struct Reader {
    stat: Source,
    status: Source,
    meminfo: Source,
    interfaces: Source,
    buffer: Vec<u8>,
}

impl Default for Reader {
    fn default() -> Self {
        Reader {
            stat: Source::new("/proc/stat"),
            status: Source::new("/proc/self/status"),
            meminfo: Source::new("/proc/meminfo"),
            interfaces: Source::new("/proc/self/net/dev"),
            buffer: vec![0; BUFFER_BYTES],
        }
    }
}

impl Reader {
    /// Reads all of it. What cannot be read is `None`.
    pub(super) fn read(&mut self) -> Reading {
        let at = clock::monotonic();
        let process_nanos = clock::process_nanos();
        let machine = self.stat.read(&mut self.buffer).and_then(machine_time);
        let mut memory = MemoryUse::default();
        let mut threads = None;
        if let Some(status) = self.status.read(&mut self.buffer) {
            process_memory(status, &mut memory);
            threads = field(status, "Threads:").and_then(|count| u32::try_from(count).ok());
        }
        if let Some(meminfo) = self.meminfo.read(&mut self.buffer) {
            host_memory(meminfo, &mut memory);
        }
        let interfaces = self.interfaces.read(&mut self.buffer).map(counters);
        Reading {
            at,
            process_nanos,
            machine,
            memory,
            threads,
            disk: disk(),
            interfaces,
        }
    }
}

/// What does not change while the machine is up.
pub(super) fn host() -> Host {
    let shown = |text: &str| Some(clean_text(text, limits::NAME_CHARS)).filter(|text| !text.is_empty());
    let machine = Machine::read();
    Host {
        system: sys::system_name().as_deref().and_then(shown),
        kernel: shown(&machine.kernel),
        processor: shown(&machine.processor),
    }
}

/// The first line of `/proc/stat`: user, nice, system, idle, waiting for input and output, interrupts, soft interrupts, stolen by the host (proc_stat(5)). Time of
/// guests is in user time already. What the host took is busy for whoever lives here.
fn machine_time(stat: &str) -> Option<MachineTime> {
    let mut lines = stat.lines();
    let mut fields = [0; 8];
    let mut numbers = lines.next()?.strip_prefix("cpu ")?.split_ascii_whitespace();
    for field in &mut fields {
        *field = numbers.next()?.parse::<u64>().ok()?;
    }
    let [user, nice, system, idle, waiting, interrupts, soft, stolen] = fields;
    let busy = user + nice + system + interrupts + soft + stolen;
    Some(MachineTime {
        busy,
        total: busy + idle + waiting,
        processors: u32::try_from(lines.take_while(|line| line.starts_with("cpu")).count()).ok()?,
    })
}

/// The number behind a label at the beginning of a line.
fn field(text: &str, label: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(label))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The same in bytes: these files count in KiB.
fn bytes(text: &str, label: &str) -> Option<u64> {
    field(text, label)?.checked_mul(1_024)
}

fn process_memory(status: &str, memory: &mut MemoryUse) {
    memory.process_resident_bytes = bytes(status, "VmRSS:");
    memory.process_peak_bytes = bytes(status, "VmHWM:");
    memory.process_swapped_bytes = bytes(status, "VmSwap:");
    memory.process_virtual_bytes = bytes(status, "VmSize:");
}

fn host_memory(meminfo: &str, memory: &mut MemoryUse) {
    let used = |total: Option<u64>, free: Option<u64>| Some(total?.saturating_sub(free?));
    memory.host_total_bytes = bytes(meminfo, "MemTotal:");
    memory.host_used_bytes = used(memory.host_total_bytes, bytes(meminfo, "MemAvailable:"));
    memory.swap_total_bytes = bytes(meminfo, "SwapTotal:");
    memory.swap_used_bytes = used(memory.swap_total_bytes, bytes(meminfo, "SwapFree:"));
}

/// The interfaces that have ever moved anything, and how many more there are.
fn counters(text: &str) -> (Vec<Counters>, usize) {
    let mut found = Vec::new();
    let mut left_out = 0;
    for line in text.lines() {
        let Some((name, numbers)) = line.split_once(':') else {
            continue;
        };
        // Eight figures of what came in, eight of what went out; bytes and packets first.
        let figures: Vec<u64> = numbers
            .split_ascii_whitespace()
            .map_while(|number| number.parse().ok())
            .collect();
        let &[received, packets_in, _, _, _, _, _, _, sent, packets_out, ..] = figures.as_slice() else {
            continue;
        };
        if packets_in == 0 && packets_out == 0 {
            continue;
        }
        if found.len() == limits::NETWORK_INTERFACES {
            left_out += 1;
            continue;
        }
        found.push(Counters {
            name: clean_text(name.trim(), limits::NAME_CHARS),
            counts: [received, sent, packets_in, packets_out],
        });
    }
    (found, left_out)
}

/// The file system of the server's folder, which the server runs in.
fn disk() -> Option<DiskUse> {
    let found = rustix::fs::statvfs(".").ok()?;
    let used_bytes = found
        .f_blocks
        .saturating_sub(found.f_bfree)
        .checked_mul(found.f_frsize)?;
    let free_bytes = found.f_bavail.checked_mul(found.f_frsize)?;
    let total_bytes = used_bytes.checked_add(free_bytes)?;
    (total_bytes > 0).then_some(DiskUse {
        used_bytes,
        total_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_not_work_and_guests_count_once() {
        let stat = "cpu  100 20 30 1000 50 6 7 8 90 0\ncpu0 1 2 3\ncpu1 1 2 3\nintr 5 6\n";
        assert_eq!(
            machine_time(stat),
            Some(MachineTime {
                busy: 171,
                total: 1_221,
                processors: 2
            })
        );
        for broken in ["", "cpu 1 2 3\n", "cpu  a b c d e f g h\n", "intr 1\n"] {
            assert_eq!(machine_time(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn memory_is_in_bytes_and_what_is_missing_is_unknown() {
        let mut memory = MemoryUse::default();
        process_memory("Name:\tx\nVmSize:\t 300 kB\nVmRSS:\t     200 kB\n", &mut memory);
        host_memory(
            "MemTotal: 1000 kB\nMemFree: 1 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n",
            &mut memory,
        );
        assert_eq!(
            memory,
            MemoryUse {
                process_resident_bytes: Some(204_800),
                process_virtual_bytes: Some(307_200),
                host_total_bytes: Some(1_024_000),
                swap_total_bytes: Some(0),
                swap_used_bytes: Some(0),
                ..MemoryUse::default()
            }
        );
    }

    #[test]
    fn interfaces_without_traffic_are_left_out_and_so_are_too_many() {
        let mut text = "Inter-|   Receive  |  Transmit\n face |bytes packets\n\
            lo: 10 1 0 0 0 0 0 0 20 2 0 0 0 0 0 0\n  eth0:30 3 0 0 0 0 0 0 40 4 0 0 0 0 0 0\n\
            tap0: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\nbroken: 1 2\n"
            .to_owned();
        let counted = |name: &str, counts| Counters {
            name: name.to_owned(),
            counts,
        };
        assert_eq!(
            counters(&text),
            (vec![counted("lo", [10, 20, 1, 2]), counted("eth0", [30, 40, 3, 4])], 0)
        );
        for number in 0..limits::NETWORK_INTERFACES {
            text.push_str(&format!("veth{number}: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n"));
        }
        let (found, left_out) = counters(&text);
        assert_eq!((found.len(), left_out), (limits::NETWORK_INTERFACES, 2));
    }

    #[test]
    fn this_machine_can_be_read() {
        let mut reader = Reader::default();
        let first = reader.read();
        let second = reader.read();
        assert!(second.process_nanos.unwrap() >= first.process_nanos.unwrap());
        let machine = second.machine.unwrap();
        assert!(machine.processors > 0 && machine.total >= machine.busy, "{machine:?}");
        assert!(machine.total >= first.machine.unwrap().total);
        let memory = second.memory;
        assert!(memory.process_resident_bytes.unwrap() < memory.host_total_bytes.unwrap());
        assert!(memory.process_peak_bytes >= memory.process_resident_bytes);
        assert!(second.threads.unwrap() > 0 && second.disk.unwrap().total_bytes > 0);
    }
}
