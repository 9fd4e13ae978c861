//! A health report: the server at one moment, without a profile.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

use super::metadata::Creator;
use super::pb;
use super::save::{HEALTH_ENDING, save_bytes};
use super::server::{Runtime, ServerReport};
use super::sources::{Source, listed};
use crate::model::{WallMillis, WindowStatistics, WorldCounts};
use crate::sys::{PrivateDir, PrivateDirError};

/// Everything of a report.
#[derive(Clone, PartialEq, Debug)]
pub struct HealthReport {
    /// Who asked for it.
    pub creator: Creator,
    /// When it was made.
    pub time: WallMillis,
    /// The server.
    pub server: ServerReport,
    /// Its plugins.
    pub sources: Vec<Source>,
    /// Its last minutes, by minutes since the Unix epoch.
    pub minutes: Vec<(i64, WindowStatistics)>,
}

impl HealthReport {
    /// As spark's message.
    pub fn encode(&self) -> pb::HealthData {
        let python = self.server.python.as_ref();
        let runtime = Runtime {
            version: python.map_or_else(
                || "none, and no Python".to_owned(),
                |python| format!("{} {}", python.implementation, python.version),
            ),
            what: "Python plugins",
            from: "the server",
        };
        pb::HealthData {
            metadata: Some(pb::HealthMetadata {
                creator: Some(self.creator.encode()),
                platform_metadata: Some(self.server.platform()),
                platform_statistics: self.server.platform_statistics(),
                system_statistics: Some(self.server.system_statistics(&runtime)),
                generated_time: self.time.0,
                server_configurations: self.server.configurations(),
                sources: listed(&self.sources),
                extra_platform_metadata: self.server.extra(),
            }),
            time_window_statistics: self.minutes(),
        }
    }

    fn minutes(&self) -> BTreeMap<i32, pb::WindowStatistics> {
        let counts = self.server.world.as_ref().map(|world| world.counts());
        let players = self
            .server
            .statistics
            .as_ref()
            .and_then(|statistics| statistics.players);
        let newest = self.minutes.iter().map(|(minute, _)| *minute).max();
        let known = self.minutes.iter().filter(|(_, figures)| figures.ticks > 0);
        known
            .map(|(minute, figures)| {
                // What is loaded is known of now only.
                let now = (Some(*minute) == newest).then_some(counts).flatten();
                let counts = now.unwrap_or(WorldCounts {
                    players: players.filter(|_| Some(*minute) == newest).unwrap_or(0),
                    ..WorldCounts::default()
                });
                let key = i32::try_from(*minute).unwrap_or(i32::MAX);
                (key, window(*minute, figures, &counts))
            })
            .collect()
    }
}

fn window(minute: i64, figures: &WindowStatistics, counts: &WorldCounts) -> pb::WindowStatistics {
    let count = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    let figure = |number: Option<f64>| number.filter(|number| number.is_finite()).unwrap_or(0.0).max(0.0);
    let start_time = minute.saturating_mul(60_000);
    pb::WindowStatistics {
        ticks: count(figures.ticks),
        cpu_process: figure(figures.cpu_process),
        cpu_system: figure(figures.cpu_system),
        tps: figure(figures.tps),
        mspt_median: figure(figures.mspt_median),
        mspt_max: figure(figures.mspt_max),
        players: count(counts.players),
        entities: count(counts.entities.unwrap_or(0)),
        tile_entities: 0,
        chunks: count(counts.chunks.unwrap_or(0)),
        start_time,
        end_time: start_time.saturating_add(60_000),
        duration: 60_000,
    }
}

/// The report as an upload carries it: gzip.
///
/// # Errors
/// None that memory knows; the writer's are passed on.
pub fn compress_health(report: &HealthReport) -> io::Result<Vec<u8>> {
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    out.write_all(&report.encode().encode_to_vec())?;
    out.finish()
}

/// Writes a report into `folder` and gives its path. Named after the time, like profiles.
pub fn save_health(folder: &PrivateDir, report: &HealthReport) -> Result<PathBuf, PrivateDirError> {
    save_bytes(folder, &report.encode().encode_to_vec(), report.time, HEALTH_ENDING)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::model::{Interpreter, World};

    fn report() -> HealthReport {
        let minute = |ticks| WindowStatistics {
            ticks,
            tps: Some(20.0),
            mspt_median: Some(10.0),
            mspt_max: Some(f64::NAN),
            ..WindowStatistics::default()
        };
        HealthReport {
            creator: Creator::Console,
            time: WallMillis(1_790_000_800_000),
            server: ServerReport {
                world: Some(World {
                    players: 2,
                    dimensions: Vec::new(),
                }),
                python: Some(Interpreter {
                    implementation: "CPython".to_owned(),
                    version: "3.13.0".to_owned(),
                    ..Interpreter::default()
                }),
                ..ServerReport::default()
            },
            sources: vec![Source {
                name: "Market".to_owned(),
                version: String::new(),
                ..Source::default()
            }],
            minutes: vec![
                (29_833_345, minute(0)),
                (29_833_346, minute(1_200)),
                (29_833_347, minute(600)),
            ],
        }
    }

    #[test]
    fn a_report_says_who_what_and_when() {
        let data = report().encode();
        let metadata = data.metadata.unwrap();
        assert_eq!(metadata.generated_time, 1_790_000_800_000);
        assert_eq!(metadata.creator.unwrap().name, "Console");
        assert_eq!(metadata.platform_metadata.unwrap().spark_version, 2);
        let java = metadata.system_statistics.unwrap().java.unwrap();
        assert_eq!(java.version, "CPython 3.13.0");
        assert_eq!(metadata.sources["market"].name, "Market");
        assert!(!metadata.sources["market"].version.is_empty());
        let minutes: Vec<_> = data.time_window_statistics.iter().collect();
        assert_eq!(minutes.len(), 2, "a minute without a tick says nothing");
        assert_eq!((*minutes[0].0, minutes[0].1.players), (29_833_346, 0));
        assert_eq!((minutes[1].1.players, minutes[1].1.mspt_max), (2, 0.0));
        assert_eq!(minutes[1].1.start_time, 29_833_347 * 60_000);
    }

    #[test]
    fn an_upload_is_the_file_as_gzip() {
        let root = tempfile::tempdir().unwrap();
        let folder = PrivateDir::open(root.path()).unwrap();
        let path = save_health(&folder, &report()).unwrap();
        assert_eq!(
            path.file_name().unwrap().to_str().unwrap(),
            "2026-09-21_14-26-40.sparkhealth"
        );
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(&compress_health(&report()).unwrap()[..])
            .read_to_end(&mut unpacked)
            .unwrap();
        assert_eq!(unpacked, std::fs::read(path).unwrap());
        assert_eq!(pb::HealthData::decode(&unpacked[..]).unwrap(), report().encode());
    }
}
