//! The outputs in the owners' guide are what the code prints of figures like these.

use endstone_spark::command::{Audience, Granted, Line, answer_notice, run};
use endstone_spark::model::{
    CpuShares, CpuUse, DiskUse, Distribution, Host, MemoryUse, MonitorEvent, Mspt, NetworkInterface, PastProfile, Ping,
    PythonDiagnostics, PythonState, SampleLoss, SamplerDiagnostics, SlowTicks, Statistics, TickFigures, Tps,
    WallMillis,
};
use endstone_spark::session::{
    BackgroundInfo, Control, Ended, MonitorChange, Notice, Refusal, Requester, RunningInfo, SessionInfo, StartRequest,
    StopRequest,
};

use super::page::read;

/// A server with these figures, on which nothing is done.
#[derive(Default)]
struct Server {
    statistics: Statistics,
    info: SessionInfo,
}

impl Control for Server {
    fn start(&self, _: StartRequest) -> Result<(), Refusal> {
        Err(Refusal::ShuttingDown)
    }
    fn stop(&self, _: StopRequest) -> Result<Ended, Refusal> {
        Err(Refusal::ShuttingDown)
    }
    fn cancel(&self, _: &Requester) -> Result<Ended, Refusal> {
        Err(Refusal::ShuttingDown)
    }
    fn info(&self) -> SessionInfo {
        self.info.clone()
    }
    fn statistics(&self) -> Statistics {
        self.statistics.clone()
    }
    fn toggle_monitor(&self, slow: SlowTicks, _: &Requester) -> MonitorChange {
        MonitorChange::Started(slow)
    }
    fn report_health(&self, _: &Requester) -> Result<(), Refusal> {
        Err(Refusal::ShuttingDown)
    }
    fn activity(&self) -> (WallMillis, Vec<PastProfile>) {
        (WallMillis(0), Vec::new())
    }
}

fn text(lines: &[Line]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| line.render(Audience::Console)).collect();
    lines.join("\n")
}

fn said(server: &Server, command: &str) -> String {
    text(&run(&[command], &Requester::Console, &Granted::all(), server))
}

/// The page has these lines as one block.
fn assert_shown(block: &str) {
    let page = read("docs/owners.md");
    assert!(
        page.contains(&format!("\n{block}\n")),
        "docs/owners.md should show:\n{block}"
    );
}

fn spread([mean, min, median, percentile95, max]: [f64; 5]) -> Option<Distribution> {
    Some(Distribution {
        mean,
        min,
        median,
        percentile95,
        max,
    })
}

fn shares([last_10s, last_1m, last_15m]: [f64; 3]) -> CpuShares {
    CpuShares {
        last_10s: Some(last_10s),
        last_1m: Some(last_1m),
        last_15m: Some(last_15m),
    }
}

fn gibibytes(number: f64) -> Option<u64> {
    Some((number * f64::from(1 << 30)) as u64)
}

fn statistics() -> Statistics {
    let rate = |kibibytes: f64| Distribution {
        mean: kibibytes * 1_024.0,
        ..Distribution::default()
    };
    Statistics {
        process_uptime_millis: Some(415_000),
        tps: Tps {
            known_seconds: 400.0,
            last_5s: Some(20.0),
            last_10s: Some(19.98),
            last_1m: Some(18.6),
            last_5m: Some(19.71),
            last_15m: Some(19.71),
        },
        mspt: Mspt {
            known_seconds: 400.0,
            last_10s: spread([31.2, 22.4, 30.1, 38.7, 44.0]),
            last_1m: spread([35.9, 21.8, 31.0, 61.5, 212.4]),
            last_5m: spread([32.0, 21.1, 30.4, 40.2, 212.4]),
        },
        cpu: CpuUse {
            known_seconds: 400.0,
            process: shares([0.182, 0.19, 0.175]),
            system: shares([0.249, 0.313, 0.272]),
            processors: Some(4),
            threads: Some(58),
        },
        host: Host {
            system: Some("Debian GNU/Linux 13 (trixie)".to_owned()),
            kernel: Some("6.12.48".to_owned()),
            processor: Some("AMD EPYC 7543P 32-Core Processor".to_owned()),
        },
        memory: MemoryUse {
            process_resident_bytes: gibibytes(1.2),
            host_total_bytes: gibibytes(7.8),
            host_used_bytes: gibibytes(3.1),
            ..MemoryUse::default()
        },
        disk: Some(DiskUse {
            used_bytes: gibibytes(69.8).unwrap(),
            total_bytes: gibibytes(252.0).unwrap(),
        }),
        network: vec![NetworkInterface {
            name: "eth0".to_owned(),
            received_bytes_per_second: rate(12.3),
            sent_bytes_per_second: rate(148.0),
            ..NetworkInterface::default()
        }],
        players: Some(3),
        ping: Ping {
            known_seconds: 400.0,
            now: spread([48.0, 21.0, 35.0, 88.0, 88.0]),
            last_15m: spread([51.3, 20.0, 36.0, 120.0, 240.0]),
            players: Vec::new(),
        },
        ..Statistics::default()
    }
}

#[test]
fn figures_of_the_server() {
    let server = Server {
        statistics: statistics(),
        ..Server::default()
    };
    let tps = said(&server, "tps");
    assert_shown(&tps);
    let health = said(&server, "health");
    let (same, more) = health.split_at(tps.len());
    assert_eq!(same, tps, "health begins with what tps says");
    assert_shown(more.trim_start_matches('\n'));
    assert_shown(&said(&server, "ping"));
}

#[test]
fn the_tick_monitor() {
    let events = [
        MonitorEvent::Ready {
            mean: 21.4,
            min: 18.9,
            max: 34.0,
        },
        MonitorEvent::Slow {
            number: 3_120,
            millis: 212.7,
            percent_over: Some(894.0),
            unreported: 0,
        },
        MonitorEvent::Slow {
            number: 3_131,
            millis: 96.0,
            percent_over: Some(349.0),
            unreported: 2,
        },
    ];
    let told = events.map(|event| text(&[answer_notice(&Notice::Monitor(event))]));
    assert_shown(&format!(
        "{}\n{}",
        said(&Server::default(), "tickmonitor"),
        told.join("\n")
    ));
}

#[test]
fn a_session() {
    let mut sampler = SamplerDiagnostics {
        samples: 31_250,
        attributed: 23_437,
        ..SamplerDiagnostics::default()
    };
    sampler.losses.add(SampleLoss::NoSlot, 9);
    sampler.losses.add(SampleLoss::TimedOut, 3);
    let mut python = PythonDiagnostics {
        state: PythonState::Active,
        version: "3.13.0".to_owned(),
        deepest: 37,
        codes: [10, 20, 1_000, 4, 0],
        ..PythonDiagnostics::default()
    };
    python.audits.made = 1_250;
    let running = RunningInfo {
        elapsed_seconds: 125,
        samples: 31_250,
        lost: 12,
        interval_micros: 4_000,
        threads: 1,
        python,
        sampler,
        slow_ticks: None,
        started_by: Requester::Console,
        timeout_left_seconds: None,
    };
    let server = Server {
        info: SessionInfo {
            running: Some(running),
            ..SessionInfo::default()
        },
        ..Server::default()
    };
    assert_shown(&said(&server, "profiler info"));
    let ticks = TickFigures {
        seen: 2_400,
        kept: 7,
        longest_nanos: 203_456_000,
        ..TickFigures::default()
    };
    assert_shown(&text(&[answer_notice(&Notice::SlowTicks { over_millis: 60, ticks })]));
}

#[test]
fn the_background_profiler() {
    let server = Server {
        info: SessionInfo {
            background: Some(BackgroundInfo {
                kept_seconds: 24 * 60,
                samples: 144_000,
                interval_micros: 10_000,
                python: PythonState::Absent,
                elapsed_nanos: 1_000_000,
                own_nanos: 11_900,
                server_nanos: 1_100,
                bytes: 2_202_010,
            }),
            ..SessionInfo::default()
        },
        ..Server::default()
    };
    assert_shown(&said(&server, "profiler info"));
}
