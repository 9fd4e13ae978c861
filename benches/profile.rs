//! What a profile costs from sample to file: `cargo bench --bench profile`. Prints one figure per line; nothing is asserted, for machines differ.

use std::hint::black_box;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use endstone_spark::export::{self, Creator, NativeNames, ProfileMetadata, ThreadSelection};
use endstone_spark::limits;
use endstone_spark::model::{
    BuildId, CodeId, Module, ModuleId, MonotonicNanos, NativeFrame, PythonDiagnostics, PythonEntry, PythonPart, Sample,
    SamplerDiagnostics, StackEnd, ThreadKey, Tid, View, WallMillis,
};
use endstone_spark::profile::{FrameKey, MergeStats, Merger, Snapshot, ThreadProfile, Tree, WindowClock};
use endstone_spark::symbol::{Symbolizer, executable_sha256};

const SERVER: ThreadKey = ThreadKey {
    tid: Tid::new(1),
    serial: 0,
};

/// A pseudo-random number below `limit`; the same sequence in every run.
fn random(state: &mut u64, limit: u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % limit
}

/// The most memory this process ever had, in MiB.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap_or_default();
    line.split_whitespace()
        .nth(1)
        .and_then(|kib| kib.parse::<u64>().ok())
        .unwrap_or(0)
        / 1024
}

/// From here on the peak counts anew.
fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Runs `work` and prints its time and how much memory it took above what there was.
fn measured<T>(what: &str, work: impl FnOnce() -> T) -> T {
    forget_peak();
    let before = peak_mib();
    let begun = Instant::now();
    let result = work();
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{what}: {:.0} ms, {} MiB more",
        seconds * 1e3,
        peak_mib().saturating_sub(before)
    );
    result
}

fn merge() {
    let native: Vec<NativeFrame> = (0..40)
        .map(|depth| NativeFrame {
            module: ModuleId::new(1),
            rva: depth * 64,
            cfa: 0x1000 + depth * 128,
        })
        .collect();
    let entries: Vec<PythonEntry> = (0..6)
        .map(|number| PythonEntry {
            anchor: 0x1000 + (35 - number * 3) * 128,
            code: CodeId::new(number as u32 + 1),
        })
        .collect();
    let sample = Sample {
        thread: SERVER,
        taken_at: MonotonicNanos(0),
        weight_nanos: 4_000_000,
        held_nanos: 0,
        native: &native,
        omitted: 0,
        end: StackEnd::Root,
        python: PythonPart::Frames {
            entries: &entries,
            hidden: 0,
        },
        repeated: false,
    };
    let mut merger = Merger::new();
    const ROUNDS: u32 = 1_000_000;
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        black_box(merger.merge(black_box(&sample)).path.len());
    }
    println!(
        "merge, 40 native and 6 Python frames: {:.0} ns per sample",
        begun.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
    );
}

/// An hour at 4 ms: 900,000 samples in 60 windows. Each frame has few callees at the root side and many at the leaf side, as in a server.
fn hour() -> Tree {
    let mut tree = Tree::new();
    let mut state = 1;
    let mut path = Vec::new();
    for sample in 0..900_000_u64 {
        path.clear();
        let mut function = 1;
        for depth in 0..35_u64 {
            let choices = if depth < 8 { 1 } else { 2 };
            // Most samples take the usual way, some leave it.
            let turn = if random(&mut state, 45) == 0 {
                random(&mut state, choices + 2)
            } else {
                0
            };
            function = (function * 31 + turn + depth) % 60_000;
            path.push(FrameKey::Native {
                module: ModuleId::new(1),
                rva: function * 16,
            });
        }
        tree.add(&path, (sample / 15_000) as u32, 4_000_000);
    }
    tree
}

struct Names;

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

fn module(path: PathBuf, build_id: Option<BuildId>) -> Module {
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

fn metadata() -> ProfileMetadata {
    ProfileMetadata {
        creator: Creator::Console,
        started: WallMillis(1_790_000_800_000),
        ended: WallMillis(1_790_004_400_000),
        interval_micros: 4_000,
        ticks: 72_000,
        comment: String::new(),
        endstone_version: "0.11.14".to_owned(),
        minecraft_version: "1.26.0".to_owned(),
        brand: "Endstone".to_owned(),
        selection: ThreadSelection::All,
        view: View::default(),
        ignore_sleeping: false,
        server_sha256: None,
        sources: Vec::new(),
        sampler: SamplerDiagnostics::default(),
        merge: MergeStats::default(),
        python: PythonDiagnostics::default(),
    }
}

fn tree_and_export() {
    let begun = Instant::now();
    let tree = measured("tree, 900,000 samples of 35 frames", hour);
    println!(
        "tree: {} nodes, {:.0} ns per sample",
        tree.len(),
        begun.elapsed().as_nanos() as f64 / 9e5
    );
    let snapshot = Snapshot {
        threads: vec![ThreadProfile {
            key: SERVER,
            members: 1,
            alone: true,
            name: "MC_SERVER".to_owned(),
            tree,
        }],
        clock: WindowClock::new(MonotonicNanos(0), WallMillis(1_790_000_800_000)),
        first_window: 0,
        windows: Vec::new(),
        modules: vec![Arc::new(module("/srv/bedrock_server".into(), None))],
        codes: Vec::new(),
    };
    let mut data = measured("encode that", || export::encode(&snapshot, &mut Names, &metadata()));
    drop(snapshot);
    let folded = measured("measure and fold it to 8 MiB as gzip", || {
        export::fold(&mut data, limits::PROFILE_GZIP_BYTES)
    });
    let mut bytes = 0;
    measured("write what is left", || {
        let _ = export::write(&data, &mut Counter(&mut bytes));
    });
    println!("{folded} frames folded, {:.1} MB left as protobuf", bytes as f64 / 1e6);
}

struct Counter<'a>(&'a mut u64);

impl Write for Counter<'_> {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        *self.0 += buffer.len() as u64;
        Ok(buffer.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A stripped library of 250 MB: 400,000 functions of 600 bytes with unwind data.
const LARGE: &str = ".text\n.rept 400000\n.cfi_startproc\n.fill 600, 1, 0x90\n.cfi_endproc\n.endr\n";

fn symbolise() -> std::io::Result<()> {
    let folder = std::env::temp_dir().join(format!("spark-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let (source, path) = (folder.join("large.s"), folder.join("large.so"));
    std::fs::write(&source, LARGE)?;
    let built = Command::new("cc")
        .args([
            "-shared",
            "-nostdlib",
            "-s",
            "-Wl,--build-id=0x00112233445566778899",
            "-o",
        ])
        .arg(&path)
        .arg(&source)
        .status()?;
    if built.success() {
        let size = std::fs::metadata(&path)?.len();
        let id = BuildId::new(&[0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99]);
        let module = module(path, id);
        let mut symbolizer = Symbolizer::new();
        let mut state = 1;
        let what = format!("first address of a stripped library of {} MB", size / 1_000_000);
        measured(&what, || black_box(symbolizer.function_start(&module, 0x100_0000)));
        if let Some(problem) = symbolizer.problem(&module) {
            println!("not read: {problem}");
        }
        measured("100,000 further addresses", || {
            for _ in 0..100_000 {
                black_box(symbolizer.function_start(&module, random(&mut state, size)));
            }
        });
    }
    std::fs::remove_dir_all(&folder)?;
    let size = std::fs::metadata("/proc/self/exe")?.len();
    measured(
        &format!("SHA-256 of an executable of {} MB", size / 1_000_000),
        executable_sha256,
    );
    Ok(())
}

fn main() {
    // First, while there is no freed memory yet that would hide what it takes.
    if let Err(error) = symbolise() {
        println!("symbols were not measured: {error}");
    }
    merge();
    tree_and_export();
}
