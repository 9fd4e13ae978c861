//! Snapshots for tests.

use std::path::PathBuf;

use super::frames::NativeNames;
use super::metadata::{Creator, ProfileMetadata, ThreadSelection};
use super::server::ServerReport;
use crate::model::{
    Category, CodeId, CodeInfo, Module, ModuleId, MonotonicNanos, PythonDiagnostics, PythonState, SamplerDiagnostics,
    ThreadKey, Tid, View, WallMillis,
};
use crate::profile::{FrameKey, MergeStats, Snapshot, ThreadProfile, Tree, WindowClock, WindowStats};
use crate::sys::Machine;

pub fn module(id: u32, path: &str) -> Module {
    Module {
        id: ModuleId::new(id),
        path: PathBuf::from(path),
        avma: 0x1000..0x2000,
        base_svma: 0,
        build_id: None,
        device: 0,
        inode: 0,
    }
}

pub fn code(module: &str, name: &str, file: &str, line: u32) -> CodeInfo {
    CodeInfo {
        module: module.to_owned(),
        qualified_name: name.to_owned(),
        file: file.to_owned(),
        first_line: line,
        category: Category::Unknown,
        plugin: None,
    }
}

/// Started at 20:26:40 UTC on a day in 2026, with one window of figures.
pub fn snapshot() -> Snapshot {
    Snapshot {
        threads: Vec::new(),
        clock: WindowClock::new(MonotonicNanos(0), WallMillis(1_790_000_800_000)),
        first_window: 0,
        windows: vec![WindowStats {
            ticks: 1200,
            tps: 20.0,
            mspt_median: 12.5,
            mspt_max: 61.0,
            players: Some(3),
            duration_millis: 60_000,
            ..WindowStats::default()
        }],
        modules: Vec::new(),
        codes: Vec::new(),
    }
}

pub fn thread(name: &str, serial: u32, tree: Tree) -> ThreadProfile {
    ThreadProfile {
        key: ThreadKey {
            tid: Tid::new(1000 + serial as i32),
            serial,
        },
        name: name.to_owned(),
        tree,
        members: 1,
        alone: false,
    }
}

pub fn metadata() -> ProfileMetadata {
    ProfileMetadata {
        creator: Creator::Console,
        started: WallMillis(1_790_000_800_000),
        ended: WallMillis(1_790_000_860_000),
        interval_micros: 4000,
        ticks: 1200,
        comment: String::new(),
        server: ServerReport {
            endstone_version: "0.11.14".to_owned(),
            minecraft_version: "1.26.0".to_owned(),
            brand: "Endstone".to_owned(),
            machine: Machine {
                processor: "A Processor".to_owned(),
                processors: 4,
                kernel: "6.1.0".to_owned(),
                uptime_millis: 3_600_000,
            },
            ..ServerReport::default()
        },
        selection: ThreadSelection::Threads(vec![Tid::new(1000)]),
        view: View::default(),
        server_sha256: Some("00ff".repeat(16)),
        ignore_sleeping: false,
        slow_ticks: None,
        stalls: Default::default(),
        sources: Vec::new(),
        sampler: SamplerDiagnostics {
            samples: 15_000,
            ..SamplerDiagnostics::default()
        },
        merge: MergeStats::default(),
        python: PythonDiagnostics {
            state: PythonState::Active,
            version: "3.13.0".to_owned(),
            implementation: "CPython".to_owned(),
            ..PythonDiagnostics::default()
        },
        recovery: None,
    }
}

pub fn python(code: u32) -> FrameKey {
    FrameKey::Python(CodeId::new(code))
}

pub fn native(module: u32, rva: u64) -> FrameKey {
    FrameKey::Native {
        module: ModuleId::new(module),
        rva,
    }
}

/// Names by a function; functions without a name begin at multiples of 0x100.
pub struct Names<F>(pub F);

impl<F: FnMut(&Module, u64) -> Option<String>> NativeNames for Names<F> {
    fn function(&mut self, module: &Module, rva: u64) -> Option<String> {
        (self.0)(module, rva)
    }

    fn function_start(&mut self, module: &Module, rva: u64) -> Option<u64> {
        (module.id.get() == 2).then_some(rva & !0xff)
    }

    fn problem(&self, module: &Module) -> Option<String> {
        (module.id.get() == 3).then(|| "its file is a test".to_owned())
    }
}
