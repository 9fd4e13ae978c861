//! What the tests of the native capture share: names for addresses of this test's own executable, and a whole session in one call.
#![allow(dead_code)]

use std::collections::HashMap;
use std::hint::black_box;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use endstone_spark::model::{
    ModuleId, MonotonicNanos, NativeFrame, Sample, SamplerDiagnostics, StackEnd, ThreadKey, Tid,
};
use endstone_spark::native::{self, SampleSource, Sampler, SamplerOptions, ThreadSelection};
use endstone_spark::shadow::ShadowTable;
use object::{Object, ObjectSymbol, SymbolKind};

/// Functions of this executable, from its symbol table.
pub struct Symbols {
    functions: Vec<(Range<u64>, String)>,
    module: ModuleId,
}

impl Symbols {
    /// Reads the executable's own file.
    pub fn of_this_executable(source: &SampleSource) -> Self {
        let path = std::env::current_exe().unwrap();
        // The sampler looks at the modules first of all, but on a thread of its own.
        let begun = Instant::now();
        let module = loop {
            match source.modules().iter().find(|module| module.path == path) {
                Some(module) => break module.id,
                None => assert!(begun.elapsed() < Duration::from_secs(60), "no module is known"),
            }
            std::thread::yield_now();
        };
        let data = std::fs::read(path).unwrap();
        let file = object::File::parse(&*data).unwrap();
        let mut functions: Vec<(Range<u64>, String)> = file
            .symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
            .map(|symbol| {
                (
                    symbol.address()..symbol.address() + symbol.size(),
                    symbol.name().unwrap().to_owned(),
                )
            })
            .collect();
        functions.sort_by_key(|(range, _)| range.start);
        assert!(!functions.is_empty(), "this test needs its symbol table");
        Symbols { functions, module }
    }

    /// The function that holds a frame, empty when it is not in this executable.
    pub fn name(&self, frame: &NativeFrame) -> &str {
        if frame.module != self.module {
            return "";
        }
        let after = self.functions.partition_point(|(range, _)| range.start <= frame.rva);
        match after.checked_sub(1).map(|at| &self.functions[at]) {
            Some((range, name)) if range.contains(&frame.rva) => name,
            _ => "",
        }
    }
}

/// A sample that outlives its visit.
pub struct Taken {
    pub thread: ThreadKey,
    pub taken_at: MonotonicNanos,
    pub weight_nanos: u64,
    pub native: Vec<NativeFrame>,
    pub omitted: u32,
    pub end: StackEnd,
    pub repeated: bool,
}

impl From<&Sample<'_>> for Taken {
    fn from(sample: &Sample<'_>) -> Self {
        Taken {
            thread: sample.thread,
            taken_at: sample.taken_at,
            weight_nanos: sample.weight_nanos,
            native: sample.native.to_vec(),
            omitted: sample.omitted,
            end: sample.end,
            repeated: sample.repeated,
        }
    }
}

/// Starts sampling.
pub fn start(interval_micros: u64, threads: ThreadSelection) -> (Sampler, SampleSource) {
    native::start(
        SamplerOptions {
            interval_nanos: interval_micros * 1_000,
            threads,
            ignore_sleeping: false,
        },
        ShadowTable::global(),
    )
    .unwrap()
}

/// Takes samples of these threads until `enough` says so, or until a minute has passed, which fails the test.
pub fn sample_until(
    interval_micros: u64,
    threads: ThreadSelection,
    mut enough: impl FnMut(&[Taken], &SamplerDiagnostics) -> bool,
) -> (Vec<Taken>, SamplerDiagnostics, SampleSource) {
    let (mut sampler, mut source) = start(interval_micros, threads);
    let begun = Instant::now();
    let mut taken = Vec::new();
    loop {
        source.drain(Duration::from_millis(20), &mut |sample| taken.push(Taken::from(sample)));
        if enough(&taken, &sampler.figures()) {
            break;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "only {} samples: {:?}",
            taken.len(),
            sampler.figures()
        );
    }
    let report = sampler.stop();
    assert!(report.signal_restored && report.thread_ended, "{report:?}");
    while source.drain(Duration::ZERO, &mut |sample| taken.push(Taken::from(sample))) {}
    let figures = figures_of(&taken);
    (taken, figures, source)
}

fn figures_of(taken: &[Taken]) -> SamplerDiagnostics {
    let mut figures = SamplerDiagnostics::default();
    for sample in taken {
        figures.samples += 1;
        figures.repeated += u64::from(sample.repeated);
        figures.ends[sample.end as usize] += 1;
    }
    figures
}

/// The share of the time of `taken` in which `wanted` holds.
pub fn share<'a>(taken: impl Iterator<Item = &'a Taken>, mut wanted: impl FnMut(&Taken) -> bool) -> f64 {
    let (mut with, mut all) = (0, 0);
    for sample in taken {
        all += sample.weight_nanos;
        if wanted(sample) {
            with += sample.weight_nanos;
        }
    }
    with as f64 / all as f64
}

/// The calling thread.
pub fn this_thread() -> Tid {
    endstone_spark::sys::thread::current_tid()
}

/// Time per name of the frame that `pick` chooses.
pub fn times<'a>(taken: impl Iterator<Item = &'a Taken>, pick: impl Fn(&Taken) -> String) -> HashMap<String, u64> {
    let mut times = HashMap::new();
    for sample in taken {
        *times.entry(pick(sample)).or_default() += sample.weight_nanos;
    }
    times
}

/// How long a test goes on that is the better the longer it lasts: `SPARK_TORTURE_SECONDS`, or this many seconds.
pub fn torture_time(seconds: u64) -> Duration {
    let wanted = std::env::var("SPARK_TORTURE_SECONDS").ok();
    Duration::from_secs(wanted.and_then(|text| text.parse().ok()).unwrap_or(seconds))
}

/// A thread that does nothing but work, until it is told to end.
pub struct Busy {
    pub tid: Tid,
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
}

impl Busy {
    pub fn new() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (report, reported) = mpsc::channel();
        let thread = {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                report.send(this_thread()).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    black_box(0);
                }
            })
        };
        Busy {
            tid: reported.recv().unwrap(),
            stop,
            thread,
        }
    }

    pub fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}
