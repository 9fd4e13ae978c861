//! What an export needs besides the trees: names made up, one module, and metadata that say little.

use endstone_spark::export::{Creator, NativeNames, ProfileMetadata, ServerReport, ThreadSelection};
use endstone_spark::model::{BuildId, Module, ModuleId, PythonDiagnostics, SamplerDiagnostics, View, WallMillis};
use endstone_spark::profile::MergeStats;
use std::path::PathBuf;

/// When the session began.
pub const STARTED: WallMillis = WallMillis(1_790_000_800_000);

pub struct Names;

impl NativeNames for Names {
    fn function(&mut self, _: &Module, rva: u64) -> Option<String> {
        Some(format!("some_namespace::SomeClass::function_number_{rva}"))
    }

    fn function_start(&mut self, _: &Module, _: u64) -> Option<u64> {
        None
    }

    fn problem(&self, _: &Module) -> Option<String> {
        None
    }
}

pub fn module(path: PathBuf, build_id: Option<BuildId>) -> Module {
    Module {
        id: ModuleId::new(1),
        path,
        avma: 0..1,
        base_svma: 0,
        build_id,
        device: 0,
        inode: 0,
    }
}

/// Of an hour at 4 ms.
pub fn metadata() -> ProfileMetadata {
    ProfileMetadata {
        creator: Creator::Console,
        started: STARTED,
        ended: WallMillis(STARTED.0 + 3_600_000),
        interval_micros: 4_000,
        ticks: 72_000,
        comment: String::new(),
        server: ServerReport::default(),
        selection: ThreadSelection::All,
        view: View::default(),
        ignore_sleeping: false,
        server_sha256: None,
        slow_ticks: None,
        stalls: Default::default(),
        sources: Vec::new(),
        sampler: SamplerDiagnostics::default(),
        merge: MergeStats::default(),
        python: PythonDiagnostics::default(),
        recovery: None,
    }
}
