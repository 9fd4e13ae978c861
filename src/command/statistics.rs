//! What `/spark tps` and `/spark health` show.

use super::figures::{counted, duration, rate, share, size};
use super::health::HealthView;
use super::line::{Grade, Line};
use crate::model::{CpuShares, Distribution, NetworkInterface, Statistics};

/// `/spark tps`.
pub(super) fn tps(statistics: &Statistics) -> Vec<Line> {
    let mut lines = vec![ticks_per_second(statistics)];
    lines.extend(millis_per_tick(statistics));
    lines.extend(processor(statistics));
    lines.extend(shortness(statistics));
    lines
}

/// `/spark health`.
pub(super) fn health(statistics: &Statistics, view: HealthView) -> Vec<Line> {
    let mut lines = tps(statistics);
    lines.extend(uptime_and_players(statistics));
    lines.extend(memory(statistics, view.memory));
    lines.extend(machine(statistics));
    lines.extend(network(statistics, view.network));
    lines
}

/// A figure that does not exist yet, or would only repeat the shorter time's.
const NOT_YET: &str = "not yet";

/// The figure, if it covers more than the next shorter time of `than` seconds.
fn longer<T>(known_seconds: f64, than: f64, figure: Option<T>) -> Option<T> {
    figure.filter(|_| known_seconds > than)
}

fn ticks_per_second(statistics: &Statistics) -> Line {
    let tps = &statistics.tps;
    if tps.last_5s.is_none() {
        return Line::new().text("The server has not ticked often enough yet.");
    }
    let longer = |than, figure| longer(tps.known_seconds, than, figure);
    let figures = [
        ("5 s", tps.last_5s),
        ("10 s", longer(5.0, tps.last_10s)),
        ("1 min", longer(10.0, tps.last_1m)),
        ("5 min", longer(60.0, tps.last_5m)),
        ("15 min", longer(300.0, tps.last_15m)),
    ];
    over(Line::new().text("TPS"), &figures, |line, tps| {
        line.graded(tps_grade(tps), format!("{tps:.2}"))
    })
}

/// `NAME over 5 s, 10 s: 1, 2`.
fn over(line: Line, figures: &[(&str, Option<f64>)], show: impl Fn(Line, f64) -> Line) -> Line {
    let times: Vec<&str> = figures.iter().map(|(time, _)| *time).collect();
    let mut line = line.text(format!(" over {}: ", times.join(", ")));
    for (index, (_, figure)) in figures.iter().enumerate() {
        if index > 0 {
            line = line.text(", ");
        }
        line = match figure {
            Some(figure) => show(line, *figure),
            None => line.text(NOT_YET),
        };
    }
    line
}

fn millis_per_tick(statistics: &Statistics) -> Vec<Line> {
    let mspt = &statistics.mspt;
    if mspt.last_10s.is_none() {
        return Vec::new();
    }
    let longer = |than, figures| longer(mspt.known_seconds, than, figures);
    let rows = [
        ("10 s", mspt.last_10s),
        ("1 min", longer(10.0, mspt.last_1m)),
        ("5 min", longer(60.0, mspt.last_5m)),
    ];
    let mut lines = vec![Line::continued().text("Milliseconds per tick, mean / min / median / 95 % / max:")];
    lines.extend(rows.into_iter().map(|(time, figures)| {
        let line = Line::continued().text(format!("  {time}: "));
        match figures {
            Some(figures) => spread(line, &figures, mspt_grade),
            None => line.text(NOT_YET),
        }
    }));
    lines
}

/// The five figures of a distribution.
pub(super) fn spread(line: Line, figures: &Distribution, grade: impl Fn(f64) -> Grade) -> Line {
    let Distribution {
        mean,
        min,
        median,
        percentile95,
        max,
    } = *figures;
    [mean, min, median, percentile95, max]
        .into_iter()
        .enumerate()
        .fold(line, |line, (index, figure)| {
            let line = if index > 0 { line.text(" / ") } else { line };
            line.graded(grade(figure), format!("{figure:.1}"))
        })
}

/// After so many seconds of ticks, processor time that is not known will not be.
const UNREADABLE_SECONDS: f64 = 10.0;

fn processor(statistics: &Statistics) -> Vec<Line> {
    let cpu = &statistics.cpu;
    let row = |name: String, shares: &CpuShares| {
        // Shares are known from the second reading on, a second after the first. Where nothing can be read there is no line.
        if shares.last_10s.is_none() && statistics.tps.known_seconds > UNREADABLE_SECONDS {
            return None;
        }
        let longer = |than, figure| longer(cpu.known_seconds, than, figure);
        let figures = [
            ("10 s", shares.last_10s),
            ("1 min", longer(10.0, shares.last_1m)),
            ("15 min", longer(60.0, shares.last_15m)),
        ];
        Some(over(Line::continued().text(name), &figures, |line, part| {
            line.graded(cpu_grade(part), format!("{:.1} %", part * 100.0))
        }))
    };
    let processors = match cpu.processors {
        Some(number) => format!(" (of {})", counted(u64::from(number), "processor")),
        None => String::new(),
    };
    [
        row(format!("CPU of the server{processors}"), &cpu.process),
        row("CPU of the machine".to_owned(), &cpu.system),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Said when less is known than the longest time asks for.
fn shortness(statistics: &Statistics) -> Vec<Line> {
    // A second of a quarter of an hour is nothing to speak of.
    const LONGEST: f64 = 899.0;
    let (ticks, lengths) = (statistics.tps.known_seconds, statistics.mspt.known_seconds);
    let mut lines = Vec::new();
    if ticks > 0.0 && ticks < LONGEST {
        lines.push(
            Line::continued()
                .text("Measured for ")
                .value(duration(ticks as u64))
                .text(" so far: the longest time shown covers only that."),
        );
    }
    if lengths + 1.0 < ticks.min(300.0) {
        lines.push(
            Line::continued()
                .text("The server ticks so often that the lengths of ticks reach back only ")
                .value(duration(lengths as u64))
                .text("."),
        );
    }
    lines
}

fn uptime_and_players(statistics: &Statistics) -> Option<Line> {
    let uptime = statistics.process_uptime_millis.map(|millis| duration(millis / 1_000));
    let players = statistics.players.map(|players| counted(u64::from(players), "player"));
    let line = Line::continued();
    match (uptime, players) {
        (Some(uptime), Some(players)) => Some(
            line.text("Up for ")
                .value(uptime)
                .text(", ")
                .value(players)
                .text(" online"),
        ),
        (Some(uptime), None) => Some(line.text("Up for ").value(uptime)),
        (None, Some(players)) => Some(line.value(players).text(" online")),
        (None, None) => None,
    }
}

fn memory(statistics: &Statistics, detailed: bool) -> Vec<Line> {
    let memory = &statistics.memory;
    let mut lines = Vec::new();
    if let Some(resident) = memory.process_resident_bytes {
        let line = Line::continued().text("Memory of the server: ").value(size(resident));
        lines.push(match statistics.cpu.threads {
            Some(threads) => line.text(", ").value(counted(u64::from(threads), "thread")),
            None => line,
        });
    }
    if detailed {
        let parts = [
            ("  at most so far: ", memory.process_peak_bytes),
            ("  swapped out: ", memory.process_swapped_bytes),
            ("  address space: ", memory.process_virtual_bytes),
        ];
        lines.extend(
            parts
                .into_iter()
                .filter_map(|(name, bytes)| Some(Line::continued().text(name).value(size(bytes?)))),
        );
    }
    lines.extend(used(
        "Memory of the machine: ",
        memory.host_used_bytes,
        memory.host_total_bytes,
    ));
    // Many machines have none.
    if memory.swap_total_bytes.is_some_and(|total| total > 0) {
        lines.extend(used("Swap: ", memory.swap_used_bytes, memory.swap_total_bytes));
    } else if detailed && memory.swap_total_bytes.is_some() {
        lines.push(Line::continued().text("Swap: ").value("none"));
    }
    let disk = statistics.disk;
    lines.extend(disk.map(|disk| {
        let line = Line::continued()
            .text("Disk: ")
            .value(size(disk.total_bytes.saturating_sub(disk.used_bytes)));
        line.text(" free for the server of ")
            .value(size(disk.total_bytes))
            .text(format!(" ({} used)", share(disk.used_bytes, disk.total_bytes)))
    }));
    lines
}

/// `NAME 3.1 GiB of 7.8 GiB (40 %)`.
fn used(name: &str, used: Option<u64>, total: Option<u64>) -> Option<Line> {
    let (used, total) = (used?, total?);
    Some(
        Line::continued()
            .text(name)
            .value(size(used))
            .text(" of ")
            .value(size(total))
            .text(format!(" ({})", share(used, total))),
    )
}

fn machine(statistics: &Statistics) -> Option<Line> {
    let host = &statistics.host;
    let system = match (&host.system, &host.kernel) {
        (Some(system), Some(kernel)) => Some(format!("{system} (Linux {kernel})")),
        (Some(system), None) => Some(system.clone()),
        (None, Some(kernel)) => Some(format!("Linux {kernel}")),
        (None, None) => None,
    };
    let parts: Vec<String> = system.into_iter().chain(host.processor.clone()).collect();
    (!parts.is_empty()).then(|| Line::continued().text("System: ").value(parts.join(", ")))
}

fn network(statistics: &Statistics, detailed: bool) -> Vec<Line> {
    if !detailed {
        // The machine's talk with itself is no traffic.
        let outside = || statistics.network.iter().filter(|interface| interface.name != "lo");
        if outside().next().is_none() {
            return Vec::new();
        }
        let sum = |of: fn(&NetworkInterface) -> f64| outside().map(of).sum::<f64>();
        return vec![
            Line::continued()
                .text("Network: ")
                .value(rate(sum(|interface| interface.received_bytes_per_second.mean)))
                .text(" in, ")
                .value(rate(sum(|interface| interface.sent_bytes_per_second.mean)))
                .text(" out"),
        ];
    }
    let mut lines = Vec::new();
    for interface in &statistics.network {
        lines.push(
            Line::continued()
                .text("Network ")
                .value(interface.name.clone())
                .text(format!(
                    " over {}, mean / median / 95 % / max:",
                    duration(interface.known_seconds as u64)
                )),
        );
        let flow = |name: &str, bytes: &Distribution, packets: &Distribution| {
            let each = |figures: &Distribution, show: fn(f64) -> String| {
                [figures.mean, figures.median, figures.percentile95, figures.max]
                    .map(show)
                    .join(" / ")
            };
            Line::continued()
                .text(format!("  {name} "))
                .value(each(bytes, rate))
                .text(", ")
                .value(each(packets, |packets| format!("{packets:.0}")))
                .text(" packets/s")
        };
        lines.push(flow(
            "in",
            &interface.received_bytes_per_second,
            &interface.received_packets_per_second,
        ));
        lines.push(flow(
            "out",
            &interface.sent_bytes_per_second,
            &interface.sent_packets_per_second,
        ));
    }
    if lines.is_empty() {
        lines.push(Line::continued().text("Network: no interface has been seen at work yet."));
    }
    if statistics.network_left_out > 0 {
        lines.push(Line::continued().text(format!(
            "Not looked at: {}.",
            counted(statistics.network_left_out as u64, "more interface")
        )));
    }
    lines
}

/// Of the 20 that a server should have.
fn tps_grade(tps: f64) -> Grade {
    Grade::of(tps > 18.0, tps > 16.0)
}

/// 50 is all the time that a tick has.
fn mspt_grade(millis: f64) -> Grade {
    Grade::of(millis < 40.0, millis < 50.0)
}

fn cpu_grade(share: f64) -> Grade {
    Grade::of(share <= 0.65, share <= 0.9)
}

/// What players notice.
pub(super) fn ping_grade(millis: f64) -> Grade {
    Grade::of(millis < 100.0, millis < 200.0)
}
