//! Six hours of the background profiler on a clock that runs as fast as it can: all that it keeps, through its own code, from the sample to the file. What is left out is
//! who takes samples and looks at Python, which has no clock to be made faster.

use std::sync::Arc;
use std::time::Instant;

use prost::Message;

use super::aggregator::Aggregated;
use super::background::request;
use super::books::Books;
use super::environment::Environment;
use super::eras::CodeEras;
use super::intake::Intake;
use super::recording::{Figures, Purpose, Recorded};
use super::report::{self, Windows};
use super::ticks::TickWindows;
use super::world::{Survey, WorldDesk};
use crate::export::pb::SamplerData;
use crate::export::{Kind, ServerReport};
use crate::limits;
use crate::model::{
    Category, CodeId, CodeInfo, Module, ModuleId, MonotonicNanos, NativeFrame, PlayerPing, PythonEntry, PythonPart,
    Sample, StackEnd, Stalls, ThreadKey, Tid, WallMillis, WorldCounts,
};
use crate::profile::WindowClock;
use crate::settings::Settings;
use crate::stats;
use crate::sys::{Deadline, live_bytes};

const MINUTES: u32 = 360;
const SECOND: u64 = 1_000_000_000;
const TICK: u64 = SECOND / 20;
const TID: Tid = Tid::new(7);
const STARTED: MonotonicNanos = MonotonicNanos(1_000 * SECOND);

/// Functions of one attachment to Python.
const CODES: u32 = 300;
/// An attachment lasts so many minutes.
const ERA: u32 = 25;

fn codes() -> Vec<(CodeId, CodeInfo)> {
    let info = |number: u32| CodeInfo {
        module: "market.plugin".to_owned(),
        qualified_name: format!("Market.function_{number}"),
        file: "plugins/market/plugin.py".to_owned(),
        first_line: number,
        category: Category::Plugin,
        plugin: Some("market".to_owned()),
    };
    (1..=CODES).map(|id| (CodeId::new(id), info(id))).collect()
}

/// What is told of a minute: each has its own.
fn counts(minute: u32) -> WorldCounts {
    WorldCounts {
        players: minute % 50,
        entities: Some(1_000 + minute),
        chunks: Some(2_000 + minute),
    }
}

fn millis(minute: u32) -> f32 {
    5.0 + (minute % 40) as f32
}

/// What a background session has.
struct Session {
    interval: u64,
    statistics: Arc<stats::Service>,
    ticks: TickWindows,
    world: WorldDesk,
    eras: Arc<CodeEras>,
    intake: Intake,
    clock: WindowClock,
    now: MonotonicNanos,
}

impl Session {
    fn begin(settings: &Settings) -> Self {
        let clock = WindowClock::new(STARTED, WallMillis(1_790_000_800_000));
        let retention = Purpose::Background.retention();
        let statistics = Arc::new(stats::Service::new());
        let eras = Arc::<CodeEras>::default();
        let ticks = TickWindows::new(Arc::clone(&statistics));
        ticks.begin(clock, retention);
        let world = WorldDesk::default();
        world.begin(clock, retention);
        Session {
            interval: request(settings).interval_micros * 1_000,
            statistics,
            ticks,
            world,
            intake: Intake::new(Books::new(clock, retention, None), Arc::clone(&eras)),
            eras,
            clock,
            now: STARTED,
        }
    }

    /// One second: what the server thread, the sampler and the worker do in it.
    fn second(&mut self) {
        let minute = self.clock.window_at(self.now);
        for tick in 0..20 {
            // The one before: its length is known now.
            let at = MonotonicNanos(self.now.0 + TICK / 2 + tick * TICK);
            let before = self.clock.window_at(MonotonicNanos(at.0 - TICK));
            self.statistics.tick(at, TID, millis(before));
            if self.world.wanted(at) == Some(Survey::Counts) {
                self.world.count(at, counts(minute));
            }
        }
        if self.now.0.is_multiple_of(limits::PING_NANOS) {
            let players = (0..20).map(|number| PlayerPing {
                name: format!("player {number:02}"),
                millis: number,
            });
            self.statistics.set_players(self.now, players.collect());
        }
        for sample in 0..SECOND / self.interval {
            let at = MonotonicNanos(self.now.0 + sample * self.interval + 1);
            self.sample(at, u64::from(minute), sample);
        }
        self.intake.settle(Vec::new());
        self.now.0 += SECOND;
        self.ticks.look_after(self.now);
        if self.clock.window_at(self.now).is_multiple_of(ERA) && self.clock.window_at(self.now) != minute {
            self.eras.end(self.now, codes());
        }
    }

    /// 30 frames, three of them Python's; some functions always run, others only in this minute.
    fn sample(&mut self, taken_at: MonotonicNanos, minute: u64, number: u64) {
        let native: Vec<NativeFrame> = (0..30)
            .map(|depth| NativeFrame {
                module: ModuleId::new(1),
                rva: (30 - depth) * 4_096
                    + if depth < 20 {
                        minute * 128 + number % 100
                    } else {
                        number % 3
                    },
                cfa: (depth + 1) * 64,
            })
            .collect();
        let entries = [20, 14, 8].map(|depth| PythonEntry {
            anchor: (depth + 1) * 64,
            code: CodeId::new((number as u32 % 3 + depth as u32) % CODES + 1),
        });
        self.intake.sample(&Sample {
            thread: ThreadKey { tid: TID, serial: 0 },
            taken_at,
            weight_nanos: self.interval,
            held_nanos: 0,
            native: &native,
            omitted: 0,
            end: StackEnd::Root,
            python: PythonPart::Frames {
                entries: &entries,
                hidden: 0,
            },
            repeated: false,
        });
    }

    /// What a `stop` makes of a copy, as the worker does it.
    fn export(&mut self, settings: &Settings, folder: &std::path::Path) -> SamplerData {
        let begun = Instant::now();
        let ended_at = MonotonicNanos(self.now.0 - 1);
        let (threads, first_window, ticks) = self.intake.copy().close(|_| "MC_SERVER".to_owned());
        let frames: usize = threads.iter().map(|thread| thread.tree.len()).sum();
        let module = Module {
            id: ModuleId::new(1),
            path: "/srv/bedrock_server".into(),
            avma: 0..1 << 30,
            base_svma: 0,
            build_id: None,
            device: 0,
            inode: 0,
        };
        let recorded = Recorded {
            request: request(settings),
            clock: self.clock,
            started_at: STARTED,
            ended_at,
            server_thread: TID,
            figures: Figures::default(),
            aggregated: Some(Aggregated {
                threads,
                modules: vec![Arc::new(module)],
                first_window,
                ticks,
            }),
            codes: self.eras.all(codes()),
            recovered: None,
            stalls: Stalls::default(),
        };
        let windows = Windows {
            ticks: self.ticks.copy(ended_at),
            counts: self.world.counts(),
        };
        let environment = Environment::default();
        let unsaved = report::make(
            recorded,
            windows,
            &environment,
            ServerReport::default(),
            settings,
            None,
            &Deadline::default(),
        );
        let saved = report::save(folder, unsaved, Kind::Asked, settings);
        let path = saved.map_err(|error| error.reason).unwrap().path().to_owned();
        println!(
            "export of {frames} frames of 60 minutes: {:.2} s",
            begun.elapsed().as_secs_f64()
        );
        SamplerData::decode(&std::fs::read(path).unwrap()[..]).unwrap()
    }
}

/// Milliseconds of each window.
fn sums(data: &SamplerData) -> Vec<f64> {
    let mut sums = vec![0.0; data.time_windows.len()];
    for thread in &data.threads {
        for (sum, time) in sums.iter_mut().zip(&thread.times) {
            *sum += time;
        }
    }
    sums
}

#[test]
fn six_hours_in_the_background_take_no_more_memory_than_one_and_export_the_last_one_whole() {
    let settings = Settings::default();
    let folder = tempfile::tempdir().unwrap();
    let before = live_bytes::of_this_thread();
    let mut session = Session::begin(&settings);
    let mut hours = Vec::new();
    for hour in 0..MINUTES / 60 {
        for _ in 0..3_600 {
            session.second();
        }
        hours.push(live_bytes::of_this_thread() - before);
        if hour == 2 {
            // In between, as somebody might: it goes on as if nothing had been.
            drop(session.export(&settings, folder.path()));
            let left = live_bytes::of_this_thread() - before - hours[2];
            // Once per process: the hash of the executable.
            assert!((0..1_024).contains(&left), "an export leaves {left} bytes");
        }
    }
    println!("bytes at the end of each hour: {hours:?}");
    let (least, most) = (hours[1..].iter().min().unwrap(), hours[1..].iter().max().unwrap());
    assert!(
        *most <= hours[0] + hours[0] / 20 && *most <= least + least / 50,
        "{hours:?}"
    );

    let data = session.export(&settings, folder.path());
    assert_eq!(data.time_windows.len(), 60);
    let sums = sums(&data);
    let whole: f64 = sums.iter().sum();
    for (window, sum) in sums.into_iter().enumerate() {
        // Half of a sample's time at each edge belongs to the neighbour; the oldest one's is forgotten.
        assert!((sum - 60_000.0).abs() <= 10.0 + 1e-6, "minute {window}: {sum} ms");
    }
    assert!((whole - 3_600_000.0).abs() <= 10.0 + 1e-6, "{whole}");
    let mut ticks = 0;
    for (minute, window) in (MINUTES - 60..MINUTES).zip(&data.time_windows) {
        let stats = &data.time_window_statistics[window];
        let expected = counts(minute);
        assert_eq!(stats.players, expected.players as i32, "{minute}");
        assert_eq!(Some(stats.entities as u32), expected.entities, "{minute}");
        assert_eq!(Some(stats.chunks as u32), expected.chunks, "{minute}");
        assert!((stats.tps - 20.0).abs() < 0.01, "{minute}: {stats:?}");
        assert_eq!(stats.mspt_median, f64::from(millis(minute)), "{minute}");
        assert_eq!(stats.mspt_max, f64::from(millis(minute)), "{minute}");
        assert_eq!(stats.ticks, 1_200, "{minute}");
        ticks += stats.ticks;
    }
    assert_eq!(data.metadata.unwrap().number_of_ticks, ticks);
    // Three functions in each sample, whatever their attachment called them; none is unknown.
    let nodes = data.threads.iter().flat_map(|thread| &thread.children);
    let python: Vec<_> = nodes.filter(|node| node.class_name.starts_with("[Python]")).collect();
    for node in &python {
        let name = format!("{}.{}", node.class_name, node.method_name);
        let number = name.strip_prefix("[Python] market.plugin.Market.function_");
        assert!(number.is_some_and(|number| number.parse::<u32>().is_ok()), "{name}");
    }
    let millis: f64 = python.iter().flat_map(|node| &node.times).sum();
    assert!((millis / whole - 3.0).abs() < 1e-6, "{millis} of {whole}");
}
