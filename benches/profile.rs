//! What a profile costs from sample to file: `./dev bench`, or `cargo bench --bench profile`. Prints a table; with SPARK_BENCH_JSON=FILE it writes the same
//! as JSON. Nothing is asserted, for machines differ.

#[path = "../tests/export_support/mod.rs"]
mod export_support;

use std::hint::black_box;
use std::io::Write;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use endstone_spark::export;
use endstone_spark::limits;
use endstone_spark::model::{
    BuildId, CodeId, ModuleId, MonotonicNanos, NativeFrame, PythonEntry, PythonPart, Sample, StackEnd, ThreadKey, Tid,
};
use endstone_spark::profile::{FrameKey, Merger, Snapshot, ThreadProfile, Tree, WindowClock};
use endstone_spark::symbol::{Symbolizer, executable_sha256};
use export_support::{Names, STARTED, metadata, module};

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

/// What was measured so far: name, value, unit.
#[derive(Default)]
struct Figures(Vec<(String, f64, &'static str)>);

impl Figures {
    fn add(&mut self, name: impl Into<String>, value: f64, unit: &'static str) {
        let name = name.into();
        println!("| {name} | {value:.2} {unit} |");
        self.0.push((name, value, unit));
    }

    /// Runs `work` and takes down its time and how much memory it took above what there was.
    fn measured<T>(&mut self, what: &str, work: impl FnOnce(&mut Self) -> T) -> T {
        forget_peak();
        let before = peak_mib();
        let begun = Instant::now();
        let result = work(self);
        self.add(what, begun.elapsed().as_secs_f64(), "s");
        let more = peak_mib().saturating_sub(before);
        self.add(format!("{what}: memory above what there was"), more as f64, "MiB");
        result
    }

    fn json(&self) -> serde_json::Value {
        let figure = |(name, value, unit): &(String, f64, &str)| serde_json::json!({ "name": name, "value": value, "unit": unit });
        serde_json::json!({ "figures": self.0.iter().map(figure).collect::<Vec<_>>() })
    }
}

fn merge(figures: &mut Figures) {
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
    figures.add(
        "merge of a sample of 40 native and 6 Python frames",
        begun.elapsed().as_nanos() as f64 / f64::from(ROUNDS),
        "ns",
    );
}

/// An hour at 4 ms: 900,000 samples in 60 windows. Each frame has few callees at the root side and many at the leaf side, as in a server; one in `usual`
/// leaves the usual way.
fn hour(usual: u64) -> Tree {
    let mut tree = Tree::new();
    let mut state = 1;
    let mut path = Vec::new();
    for sample in 0..900_000_u64 {
        path.clear();
        let mut function = 1;
        for depth in 0..35_u64 {
            let choices = if depth < 8 { 1 } else { 2 };
            let turn = if random(&mut state, usual) == 0 {
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

fn tree_and_export(figures: &mut Figures, usual: u64) {
    let begun = Instant::now();
    let tree = figures.measured("tree of an hour, 900,000 samples of 35 frames", |_| hour(usual));
    let nanos = begun.elapsed().as_nanos() as f64 / 9e5;
    let size = format!("{} frames, {} times", tree.len(), tree.used().times);
    figures.add(format!("booking one sample ({size})"), nanos, "ns");
    let snapshot = Snapshot {
        threads: vec![ThreadProfile {
            key: SERVER,
            members: 1,
            alone: true,
            name: "MC_SERVER".to_owned(),
            tree,
        }],
        clock: WindowClock::new(MonotonicNanos(0), STARTED),
        first_window: 0,
        windows: Vec::new(),
        modules: vec![Arc::new(module("/srv/bedrock_server".into(), None))],
        codes: Vec::new(),
    };
    // As an owner waits for it, the tree still there.
    let profile = figures.measured(&format!("export of {size}"), |figures| {
        let begun = Instant::now();
        let mut profile = export::encode(&snapshot, &mut Names, &metadata());
        figures.add("of this, naming and ordering", begun.elapsed().as_secs_f64(), "s");
        let begun = Instant::now();
        let folded = export::fold(&mut profile, limits::PROFILE_GZIP_BYTES);
        figures.add(
            "of this, measuring as gzip and folding to 8 MiB",
            begun.elapsed().as_secs_f64(),
            "s",
        );
        figures.add("frames folded", folded as f64, "");
        let begun = Instant::now();
        let mut bytes = 0;
        let _ = export::write(&profile, &mut Counter(&mut bytes));
        figures.add("of this, writing", begun.elapsed().as_secs_f64(), "s");
        figures.add("the file", bytes as f64 / 1e6, "MB");
        profile
    });
    let packed = figures.measured("gzip for an upload", |_| export::compress(&profile));
    figures.add(
        "the upload",
        packed.map_or(0.0, |packed| packed.len() as f64 / 1e6),
        "MB",
    );
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

fn symbolise(figures: &mut Figures) -> std::io::Result<()> {
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
        figures.measured(&what, |_| black_box(symbolizer.function_start(&module, 0x100_0000)));
        if let Some(problem) = symbolizer.problem(&module) {
            println!("not read: {problem}");
        }
        figures.measured("100,000 further addresses", |_| {
            for _ in 0..100_000 {
                black_box(symbolizer.function_start(&module, random(&mut state, size)));
            }
        });
    }
    std::fs::remove_dir_all(&folder)?;
    let size = std::fs::metadata("/proc/self/exe")?.len();
    figures.measured(&format!("SHA-256 of an executable of {} MB", size / 1_000_000), |_| {
        executable_sha256()
    });
    Ok(())
}

fn main() {
    let mut figures = Figures::default();
    println!("| what | figure |\n|---|---|");
    // First, while there is no freed memory yet that would hide what it takes.
    if let Err(error) = symbolise(&mut figures) {
        println!("symbols were not measured: {error}");
    }
    merge(&mut figures);
    // Some 200,000 frames, and as many as a tree may have.
    for usual in [45, 25] {
        tree_and_export(&mut figures, usual);
    }
    if let Some(path) = std::env::var_os("SPARK_BENCH_JSON")
        && let Err(error) = std::fs::write(path, format!("{:#}\n", figures.json()))
    {
        println!("the figures were not written: {error}");
    }
}
