//! The machine that a profile was taken on.

use std::fs::read_to_string;

/// What a reader needs to compare two profiles.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Machine {
    /// The processor as it calls itself; may be empty.
    pub processor: String,
    /// Processors that this process may use.
    pub processors: usize,
    /// The kernel's version.
    pub kernel: String,
    /// Milliseconds since the process was started.
    pub uptime_millis: u64,
}

impl Machine {
    /// Reads a few files of `/proc`; what cannot be read is empty or 0.
    pub fn read() -> Self {
        let text = |path: &str| read_to_string(path).unwrap_or_default();
        Machine {
            processor: processor(&text("/proc/cpuinfo")),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: text("/proc/sys/kernel/osrelease").trim().to_owned(),
            uptime_millis: process_uptime_millis().unwrap_or(0),
        }
    }
}

/// The system as it calls itself (os-release(5)), e.g. `Debian GNU/Linux 13 (trixie)`.
pub fn system_name() -> Option<String> {
    let release = read_to_string("/etc/os-release").or_else(|_| read_to_string("/usr/lib/os-release"));
    pretty_name(&release.ok()?)
}

fn pretty_name(release: &str) -> Option<String> {
    let value = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))?
        .trim();
    let name = value
        .strip_prefix(['"', '\''])
        .and_then(|rest| rest.strip_suffix(['"', '\'']))
        .unwrap_or(value);
    (!name.is_empty()).then(|| name.to_owned())
}

/// Milliseconds since the process was started.
pub fn process_uptime_millis() -> Option<u64> {
    let text = |path: &str| read_to_string(path).unwrap_or_default();
    uptime_millis(&text("/proc/uptime"), &text("/proc/self/stat"))
}

fn processor(cpuinfo: &str) -> String {
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name"));
    model
        .unwrap_or_default()
        .trim_start_matches([' ', '\t', ':'])
        .trim()
        .to_owned()
}

/// From the seconds since the system's start and the process's start in ticks since then, of which `/proc` has 100 a second on every system.
fn uptime_millis(system: &str, stat: &str) -> Option<u64> {
    const TICK_MILLIS: u64 = 10;
    let seconds: f64 = system.split_whitespace().next()?.parse().ok()?;
    // The name of the process stands in parentheses and may hold anything; the start is the 20th field behind it.
    let (_, fields) = stat.rsplit_once(')')?;
    let start: u64 = fields.split_whitespace().nth(19)?.parse().ok()?;
    Some(((seconds * 1e3) as u64).saturating_sub(start.checked_mul(TICK_MILLIS)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_named_without_its_label() {
        let cpuinfo =
            "processor\t: 0\nvendor_id\t: Maker\nmodel name\t: A Processor @ 3.00GHz\nmodel name\t: Another\n";
        assert_eq!(processor(cpuinfo), "A Processor @ 3.00GHz");
        assert_eq!(processor("no such line\n"), "");
    }

    #[test]
    fn a_system_is_called_by_its_pretty_name() {
        let release = "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n";
        assert_eq!(pretty_name(release).as_deref(), Some("Debian GNU/Linux 13 (trixie)"));
        assert_eq!(pretty_name("PRETTY_NAME=Arch\n").as_deref(), Some("Arch"));
        assert_eq!(pretty_name("PRETTY_NAME=\"\"\n"), None);
        assert_eq!(pretty_name("NAME=x\n"), None);
    }

    #[test]
    fn uptime_is_that_of_the_process() {
        let stat = "42 (a) b) S 1 42 42 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 1 0 5000 1000 1 2 3";
        assert_eq!(uptime_millis("80.50 100.00\n", stat), Some(30_500));
        assert_eq!(uptime_millis("10.00 100.00\n", stat), Some(0));
        assert_eq!(uptime_millis("", stat), None);
        assert_eq!(uptime_millis("80.50", "42 (a) S 1"), None);
    }

    #[test]
    fn this_machine_has_a_processor_and_a_kernel() {
        let machine = Machine::read();
        assert!(machine.processors > 0 && !machine.kernel.is_empty(), "{machine:?}");
        assert!(machine.uptime_millis < 1_000 * 60 * 60 * 24 * 365, "{machine:?}");
    }
}
