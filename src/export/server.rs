//! The server as profiles and health reports describe it.
//!
//! The viewer wants platform and system statistics whole or not at all: it reads messages inside them without looking whether they are there. What is not known
//! has no value of its own in the format, where it would be a 0. So whatever one of these messages needs and nobody could measure takes the message
//! with it, and what a whole message is missing takes all platform statistics with it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::pb;
use super::pb::platform_statistics::{Memory, Mspt, OnlineMode, Ping, Tps, memory::MemoryUsage};
use super::pb::system_statistics::{Cpu, Disk, Java, NetInterface, Os, cpu::Usage, memory::MemoryPool};
use super::regions::world_statistics;
use super::shorten::bounded;
use crate::limits::NAME_CHARS;
use crate::model::{CpuShares, Distribution, Interpreter, MemoryUse, Statistics, World};
use crate::sys::Machine;

/// Version of spark's data format that is written: the viewer takes 1 for an outdated plugin.
const SPARK_FORMAT: i32 = 2;

/// Ticks per second that the game wants to reach.
const TARGET_TPS: i32 = 20;

/// Milliseconds that a tick may take for it.
const IDEAL_MSPT: i32 = 50;

/// What is known of the server besides what runs on it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ServerReport {
    /// Version of Endstone.
    pub endstone_version: String,
    /// Version of the game.
    pub minecraft_version: String,
    /// The server software as it calls itself.
    pub brand: String,
    /// What it runs on.
    pub machine: Machine,
    /// Its last minutes.
    pub statistics: Option<Statistics>,
    /// What is loaded; `None` when no world is, or nobody could look.
    pub world: Option<World>,
    /// Why the world is not known, if it should be.
    pub world_problem: Option<&'static str>,
    /// The Python interpreter, if there is one.
    pub python: Option<Interpreter>,
    /// What may be shown of `server.properties`, by name; each value is a JSON text.
    pub properties: BTreeMap<String, Value>,
}

/// The Python of the process as the sentence wants it into which the viewer puts it: "The process is using Java VERSION (VENDOR_VERSION from VENDOR)".
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Runtime {
    /// e.g. `CPython 3.13.0`.
    pub version: String,
    /// What of it is seen.
    pub what: &'static str,
    /// By what.
    pub from: &'static str,
}

impl ServerReport {
    /// The platform.
    pub fn platform(&self) -> pb::PlatformMetadata {
        pb::PlatformMetadata {
            r#type: pb::platform_metadata::Type::Server.into(),
            name: "Endstone".to_owned(),
            version: self.endstone_version.clone(),
            minecraft_version: self.minecraft_version.clone(),
            spark_version: SPARK_FORMAT,
            brand: self.brand.clone(),
        }
    }

    /// The server's own figures, if all that the viewer then needs of the system is known too.
    pub fn platform_statistics(&self) -> Option<pb::PlatformStatistics> {
        let statistics = self.statistics.as_ref()?;
        self.is_whole(statistics).then_some(())?;
        let players = statistics.players.or(self.world.as_ref().map(|world| world.players));
        Some(pb::PlatformStatistics {
            memory: Some(Memory {
                heap: Some(process_memory(&statistics.memory)?),
                non_heap: None,
            }),
            uptime: signed(statistics.process_uptime_millis.unwrap_or(self.machine.uptime_millis)),
            tps: tps(statistics),
            mspt: mspt(statistics),
            ping: statistics.ping.last_15m.as_ref().map(|ping| Ping {
                last15m: Some(rolling(ping)),
            }),
            player_count: i64::from(players.unwrap_or(0)),
            world: self.world.as_ref().map(world_statistics),
            online_mode: self.online_mode().into(),
        })
    }

    /// The machine; `runtime` in the place where the viewer speaks of Java.
    pub fn system_statistics(&self, runtime: &Runtime) -> pb::SystemStatistics {
        let statistics = self.statistics.as_ref();
        let memory = statistics.map(|statistics| &statistics.memory);
        pb::SystemStatistics {
            cpu: Some(Cpu {
                threads: i32::try_from(self.machine.processors).unwrap_or(i32::MAX),
                process_usage: statistics.and_then(|statistics| usage(&statistics.cpu.process)),
                system_usage: statistics.and_then(|statistics| usage(&statistics.cpu.system)),
                model_name: bounded(&self.machine.processor, NAME_CHARS),
            }),
            memory: memory.and_then(|memory| {
                Some(pb::system_statistics::Memory {
                    physical: Some(pool(memory.host_used_bytes, memory.host_total_bytes)?),
                    swap: Some(pool(memory.swap_used_bytes, memory.swap_total_bytes)?),
                })
            }),
            disk: statistics.and_then(|statistics| statistics.disk).map(|disk| Disk {
                used: signed(disk.used_bytes),
                total: signed(disk.total_bytes),
            }),
            os: Some(Os {
                arch: std::env::consts::ARCH.to_owned(),
                name: "Linux".to_owned(),
                version: bounded(&self.machine.kernel, NAME_CHARS),
            }),
            java: Some(Java {
                version: bounded(&runtime.version, NAME_CHARS),
                vendor_version: runtime.what.to_owned(),
                vendor: runtime.from.to_owned(),
                vm_args: String::new(),
            }),
            uptime: signed(self.machine.uptime_millis),
            net: statistics.map_or_else(BTreeMap::new, |statistics| {
                let interfaces = statistics.network.iter();
                interfaces
                    .map(|interface| {
                        let encoded = NetInterface {
                            rx_bytes_per_second: Some(rolling(&interface.received_bytes_per_second)),
                            tx_bytes_per_second: Some(rolling(&interface.sent_bytes_per_second)),
                            rx_packets_per_second: Some(rolling(&interface.received_packets_per_second)),
                            tx_packets_per_second: Some(rolling(&interface.sent_packets_per_second)),
                        };
                        (bounded(&interface.name, NAME_CHARS), encoded)
                    })
                    .collect()
            }),
            jvm: None,
        }
    }

    /// The server's settings that may be shown.
    pub fn configurations(&self) -> BTreeMap<String, String> {
        if self.properties.is_empty() {
            return BTreeMap::new();
        }
        let properties: serde_json::Map<String, Value> = self.properties.clone().into_iter().collect();
        BTreeMap::from([("server.properties".to_owned(), Value::Object(properties).to_string())])
    }

    /// Groups of further figures.
    pub fn extra(&self) -> BTreeMap<String, String> {
        let mut extra = BTreeMap::new();
        let mut world = self.world.as_ref().map(loaded);
        if let Some(problem) = self.world_problem {
            world.get_or_insert_with(|| json!({}))["problem"] = problem.into();
        }
        if let Some(world) = world {
            extra.insert("World".to_owned(), world.to_string());
        }
        if let Some(python) = &self.python {
            extra.insert("Python".to_owned(), interpreter(python).to_string());
        }
        if let Some(history) = self.statistics.as_ref().and_then(short_history) {
            extra.insert("History".to_owned(), history.to_string());
        }
        extra
    }

    fn is_whole(&self, statistics: &Statistics) -> bool {
        let (cpu, memory) = (&statistics.cpu, &statistics.memory);
        usage(&cpu.process).is_some()
            && usage(&cpu.system).is_some()
            && pool(memory.host_used_bytes, memory.host_total_bytes).is_some()
            && pool(memory.swap_used_bytes, memory.swap_total_bytes).is_some()
            && statistics.disk.is_some()
    }

    fn online_mode(&self) -> OnlineMode {
        match self.properties.get("online-mode") {
            Some(Value::Bool(true)) => OnlineMode::Online,
            Some(Value::Bool(false)) => OnlineMode::Offline,
            _ => OnlineMode::Unknown,
        }
    }
}

/// What the process has of the machine's memory. The page divides the first by the second.
fn process_memory(memory: &MemoryUse) -> Option<MemoryUsage> {
    let used = signed(memory.process_resident_bytes?);
    let all = signed(memory.host_total_bytes.filter(|bytes| *bytes > 0)?);
    Some(MemoryUsage {
        used,
        committed: all,
        init: 0,
        max: all,
    })
}

fn tps(statistics: &Statistics) -> Option<Tps> {
    let tps = &statistics.tps;
    Some(Tps {
        last1m: finite(tps.last_1m?),
        last5m: finite(tps.last_5m?),
        last15m: finite(tps.last_15m?),
        game_target_tps: TARGET_TPS,
    })
}

fn mspt(statistics: &Statistics) -> Option<Mspt> {
    let mspt = &statistics.mspt;
    Some(Mspt {
        last1m: Some(rolling(mspt.last_1m.as_ref()?)),
        last5m: Some(rolling(mspt.last_5m.as_ref()?)),
        game_max_ideal_mspt: IDEAL_MSPT,
    })
}

fn usage(shares: &CpuShares) -> Option<Usage> {
    Some(Usage {
        last1m: finite(shares.last_1m?),
        last15m: finite(shares.last_15m?),
    })
}

fn pool(used: Option<u64>, total: Option<u64>) -> Option<MemoryPool> {
    Some(MemoryPool {
        used: signed(used?),
        total: signed(total?),
    })
}

fn rolling(distribution: &Distribution) -> pb::RollingAverageValues {
    pb::RollingAverageValues {
        mean: finite(distribution.mean),
        max: finite(distribution.max),
        min: finite(distribution.min),
        median: finite(distribution.median),
        percentile95: finite(distribution.percentile95),
    }
}

/// The viewer prints NaN as it is, and refuses negative numbers.
fn finite(number: f64) -> f64 {
    if number.is_finite() { number.max(0.0) } else { 0.0 }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// How much of the world is loaded, which the format has no place for.
fn loaded(world: &World) -> Value {
    let mut dimensions = serde_json::Map::new();
    for census in &world.dimensions {
        let mut figures = json!({
            "chunks loaded": census.chunk_count(),
            "entities": census.entity_count(),
        });
        if let Some(figures) = figures.as_object_mut().filter(|_| census.entities_left_out > 0) {
            figures.insert("entities not looked at".to_owned(), census.entities_left_out.into());
        }
        dimensions.insert(bounded(&census.name, NAME_CHARS), figures);
    }
    json!({ "players": world.players, "dimensions": dimensions })
}

fn interpreter(python: &Interpreter) -> Value {
    let mut map = serde_json::Map::new();
    map.insert("implementation".to_owned(), python.implementation.as_str().into());
    map.insert("version".to_owned(), python.version.as_str().into());
    if let Some(threads) = python.threads {
        map.insert("threads".to_owned(), threads.into());
    }
    if let Some(collects) = python.collects {
        map.insert(
            "garbage collection".to_owned(),
            if collects { "on" } else { "off" }.into(),
        );
    }
    if !python.generations.is_empty() {
        let generations: Vec<Value> = python
            .generations
            .iter()
            .map(|generation| {
                let mut figures = json!({
                    "collections": generation.collections,
                    "objects collected": generation.collected,
                    "objects uncollectable": generation.uncollectable,
                });
                if let (Some(figures), Some(times)) = (figures.as_object_mut(), generation.times) {
                    figures.insert("collections timed".to_owned(), times.collections.into());
                    figures.insert("microseconds".to_owned(), (times.nanos / 1_000).into());
                    figures.insert("longest, microseconds".to_owned(), (times.longest_nanos / 1_000).into());
                }
                figures
            })
            .collect();
        map.insert("generations".to_owned(), generations.into());
    }
    if let Some(problem) = &python.problem {
        map.insert("problem".to_owned(), bounded(problem, NAME_CHARS).into());
    }
    map.into()
}

/// Says what "15 minutes" means on a server that has not been up for as long.
fn short_history(statistics: &Statistics) -> Option<Value> {
    const WHOLE: f64 = 900.0;
    let known = statistics.tps.known_seconds;
    (known < WHOLE).then(|| json!({ "seconds of history": known.max(0.0) as u64 }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{DiskUse, Mspt as MsptFigures, NetworkInterface, Tps as TpsFigures};

    fn whole() -> Statistics {
        let shares = CpuShares {
            last_10s: Some(0.3),
            last_1m: Some(0.25),
            last_15m: Some(0.2),
        };
        let distribution = Distribution {
            mean: 20.0,
            min: 1.0,
            median: 19.0,
            percentile95: 40.0,
            max: 90.0,
        };
        let mut statistics = Statistics {
            process_uptime_millis: Some(60_000),
            tps: TpsFigures {
                known_seconds: 60.0,
                last_5s: Some(20.0),
                last_10s: Some(20.0),
                last_1m: Some(19.5),
                last_5m: Some(19.0),
                last_15m: Some(18.0),
            },
            mspt: MsptFigures {
                known_seconds: 60.0,
                last_10s: Some(distribution),
                last_1m: Some(distribution),
                last_5m: Some(distribution),
            },
            disk: Some(DiskUse {
                used_bytes: 1,
                total_bytes: 2,
            }),
            network: vec![NetworkInterface {
                name: "eth0".to_owned(),
                ..NetworkInterface::default()
            }],
            players: Some(4),
            ..Statistics::default()
        };
        statistics.cpu.process = shares;
        statistics.cpu.system = shares;
        statistics.memory = MemoryUse {
            process_resident_bytes: Some(100),
            host_total_bytes: Some(1_000),
            host_used_bytes: Some(600),
            swap_total_bytes: Some(0),
            swap_used_bytes: Some(0),
            ..MemoryUse::default()
        };
        statistics
    }

    fn report(statistics: Option<Statistics>) -> ServerReport {
        ServerReport {
            statistics,
            ..ServerReport::default()
        }
    }

    fn runtime() -> Runtime {
        Runtime {
            version: "CPython 3.13.0".to_owned(),
            what: "scripts",
            from: "the server",
        }
    }

    #[test]
    fn a_whole_server_is_described_whole() {
        let report = report(Some(whole()));
        let platform = report.platform_statistics().unwrap();
        let heap = platform.memory.unwrap().heap.unwrap();
        assert_eq!((heap.used, heap.committed, heap.max), (100, 1_000, 1_000));
        assert_eq!((platform.uptime, platform.player_count), (60_000, 4));
        let tps = platform.tps.unwrap();
        assert_eq!((tps.last1m, tps.last5m, tps.last15m), (19.5, 19.0, 18.0));
        assert_eq!(platform.mspt.unwrap().last5m.unwrap().percentile95, 40.0);
        assert!(platform.ping.is_none(), "nobody was asked");
        let system = report.system_statistics(&runtime());
        assert_eq!(system.cpu.unwrap().process_usage.unwrap().last15m, 0.2);
        let memory = system.memory.unwrap();
        assert_eq!(memory.swap.unwrap().total, 0, "a machine without swap has none");
        assert_eq!(memory.physical.unwrap().used, 600);
        assert!(system.net["eth0"].tx_packets_per_second.is_some());
        assert_eq!(report.extra()["History"], r#"{"seconds of history":60}"#);
    }

    #[test]
    fn what_the_page_cannot_do_without_takes_the_platform_with_it() {
        let without: [fn(&mut Statistics); 7] = [
            |s| s.cpu.process.last_1m = None,
            |s| s.cpu.system.last_15m = None,
            |s| s.memory.host_used_bytes = None,
            |s| s.memory.swap_total_bytes = None,
            |s| s.memory.process_resident_bytes = None,
            |s| s.memory.host_total_bytes = Some(0),
            |s| s.disk = None,
        ];
        for remove in without {
            let mut statistics = whole();
            remove(&mut statistics);
            let report = report(Some(statistics));
            assert_eq!(report.platform_statistics(), None);
            assert!(report.system_statistics(&runtime()).os.is_some());
        }
        assert_eq!(report(None).platform_statistics(), None);
        let system = report(None).system_statistics(&runtime());
        assert!(system.memory.is_none() && system.disk.is_none() && system.net.is_empty());
        assert!(system.cpu.unwrap().process_usage.is_none());
    }

    #[test]
    fn what_is_not_known_is_left_out_by_itself_where_the_page_allows_it() {
        let mut statistics = whole();
        statistics.tps.last_15m = None;
        statistics.mspt.last_5m = None;
        let platform = report(Some(statistics)).platform_statistics().unwrap();
        assert!(platform.tps.is_none() && platform.mspt.is_none());
    }

    #[test]
    fn players_are_counted_with_the_world_when_nobody_else_did() {
        let mut report = report(Some(whole()));
        report.world = Some(World {
            players: 9,
            dimensions: Vec::new(),
        });
        assert_eq!(report.platform_statistics().unwrap().player_count, 4);
        report.statistics.as_mut().unwrap().players = None;
        assert_eq!(report.platform_statistics().unwrap().player_count, 9);
    }

    #[test]
    fn settings_are_one_json_text_and_say_whether_players_are_authenticated() {
        let mut report = report(Some(whole()));
        assert!(report.configurations().is_empty());
        report.properties = BTreeMap::from([("online-mode".to_owned(), json!(true))]);
        assert_eq!(report.configurations()["server.properties"], r#"{"online-mode":true}"#);
        let mode = report.platform_statistics().unwrap().online_mode;
        assert_eq!(mode, i32::from(OnlineMode::Online));
    }

    #[test]
    fn an_interpreter_that_did_not_answer_is_named_with_the_reason() {
        let mut report = report(None);
        report.python = Some(Interpreter {
            implementation: "CPython".to_owned(),
            version: "3.13.0".to_owned(),
            problem: Some("it is busy".to_owned()),
            ..Interpreter::default()
        });
        let said: serde_json::Value = serde_json::from_str(&report.extra()["Python"]).unwrap();
        assert_eq!(
            said,
            json!({"implementation": "CPython", "version": "3.13.0", "problem": "it is busy"})
        );
    }
}
