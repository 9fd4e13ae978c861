//! What the native capture costs: `./dev bench`, or `cargo bench --bench native`. Prints a table; with SPARK_BENCH_JSON=FILE it writes the same as JSON. Nothing
//! is asserted, for machines differ.

#[path = "figures/mod.rs"]
mod figures;

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use endstone_spark::native::{self, SamplerOptions, ThreadSelection, Unwinder, current_modules_unwinder};
use endstone_spark::shadow::ShadowTable;
use endstone_spark::sys::task;
use endstone_spark::sys::thread::current_tid;
use figures::Figures;

unsafe extern "C" {
    fn _Unwind_Backtrace(
        visit: extern "C" fn(*mut libc::c_void, *mut libc::c_void) -> libc::c_int,
        found: *mut libc::c_void,
    ) -> libc::c_int;
}

extern "C" fn count(_: *mut libc::c_void, found: *mut libc::c_void) -> libc::c_int {
    // SAFETY: libgcc gives back the pointer to the counter below.
    unsafe { *found.cast::<u64>() += 1 };
    0
}

#[inline(never)]
fn at_depth(depth: u32, work: &mut dyn FnMut()) -> u32 {
    if depth == 0 {
        work();
        return black_box(1);
    }
    at_depth(depth - 1, work) + black_box(1)
}

fn registers() -> (u64, u64, u64) {
    let (pc, sp, bp): (u64, u64, u64);
    // SAFETY: reads three registers.
    unsafe {
        std::arch::asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) pc, out(reg) sp, out(reg) bp, options(nomem, nostack));
    }
    (pc, sp, bp)
}

/// Nanoseconds and frames of the fastest of many walks.
fn fastest(depth: u32, mut walk: impl FnMut() -> u64) -> (f64, u64) {
    let mut best = (f64::MAX, 0);
    at_depth(depth, &mut || {
        for _ in 0..30 {
            let begun = Instant::now();
            let mut frames = 0;
            for _ in 0..100 {
                frames = walk();
            }
            let nanos = begun.elapsed().as_nanos() as f64 / 100.0;
            if nanos < best.0 {
                best = (nanos, frames);
            }
        }
    });
    best
}

/// Nanoseconds per frame of a deep stack beyond those of a short one.
fn per_frame(figures: &mut Figures, name: &str, mut walk: impl FnMut() -> u64) -> f64 {
    let (short, few) = fastest(40, &mut walk);
    let (long, many) = fastest(400, &mut walk);
    let nanos = (long - short) / (many - few) as f64;
    figures.add(format!("one frame, warm: {name}"), nanos, "ns");
    nanos
}

/// CPU time of our threads since `before`, as a share in percent of the time since `begun`.
fn own_share(begun: Instant, before: u64) -> f64 {
    (own_nanos() - before) as f64 / begun.elapsed().as_nanos() as f64 * 100.0
}

fn own_nanos() -> u64 {
    endstone_spark::sys::thread::own_tids()
        .into_iter()
        .filter_map(task::cpu_nanos)
        .sum()
}

/// The share of a core that the sampler and the reader of its samples take for threads that wait all the time. The reader here only counts; the session's
/// merges and books as well.
fn idle(figures: &mut Figures, count: usize) {
    let (sleepers, releases): (Vec<_>, Vec<_>) = (0..count)
        .map(|_| {
            let (release, released) = mpsc::channel::<()>();
            (
                std::thread::spawn(move || {
                    let _ = released.recv();
                }),
                release,
            )
        })
        .unzip();
    let options = SamplerOptions {
        interval_nanos: 4_000_000,
        threads: ThreadSelection::All,
        ignore_sleeping: false,
    };
    let (mut sampler, mut source) = native::start(options, ShadowTable::global()).unwrap();
    let mut samples = 0_u64;
    for phase in ["in the first second", "later"] {
        let (begun, before) = (Instant::now(), own_nanos());
        let time = Duration::from_secs(if phase == "later" { 5 } else { 1 });
        while begun.elapsed() < time {
            source.drain(Duration::from_millis(50), &mut |_| samples += 1);
        }
        figures.add(
            format!("{count} idle threads at 4 ms, sampler thread, {phase}"),
            own_share(begun, before),
            "% of a core",
        );
    }
    let found = sampler.figures();
    figures.add(
        format!("{count} idle threads at 4 ms, rounds late"),
        found.rounds_late as f64,
        "",
    );
    sampler.stop();
    drop(releases);
    sleepers.into_iter().for_each(|thread| thread.join().unwrap());
}

#[inline(never)]
fn ours(unwinder: &Unwinder, callers: &mut Vec<(u64, u64)>) -> u64 {
    let (pc, sp, bp) = registers();
    callers.clear();
    black_box(unwinder.unwind(pc, sp, bp, callers));
    callers.len() as u64
}

/// A thread that works 40 frames deep over memory that pushes everything else out of the caches, as a server does.
fn handler(figures: &mut Figures, interval_micros: u64) {
    static STOP: AtomicBool = AtomicBool::new(false);
    STOP.store(false, Ordering::Relaxed);
    let (report, reported) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let mut memory = vec![1_u64; 4 << 20];
        report.send(current_tid()).unwrap();
        at_depth(38, &mut || {
            let mut at = 1_usize;
            while !STOP.load(Ordering::Relaxed) {
                at = at.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let place = (at >> 20) % memory.len();
                memory[place] = memory[place].wrapping_add(at as u64);
            }
        });
    });
    let options = SamplerOptions {
        interval_nanos: interval_micros * 1_000,
        threads: ThreadSelection::Tids(vec![reported.recv().unwrap()]),
        ignore_sleeping: false,
    };
    let (mut sampler, mut source) = native::start(options, ShadowTable::global()).unwrap();
    let (begun, before) = (Instant::now(), own_nanos());
    let mut frames = 0;
    while begun.elapsed() < Duration::from_secs(5) {
        source.drain(Duration::from_millis(50), &mut |sample| frames = sample.native.len());
    }
    let share = own_share(begun, before);
    let found = sampler.figures();
    let at = format!("at {} ms, {frames} frames", interval_micros as f64 / 1_000.0);
    let micros = |nanos: u64| nanos as f64 / 1_000.0;
    figures.add(
        format!("handler {at}, median"),
        micros(found.handler.median_nanos),
        "us",
    );
    figures.add(
        format!("handler {at}, 99th percentile"),
        micros(found.handler.p99_nanos),
        "us",
    );
    figures.add(
        format!("handler {at}, share of the sampled thread's time"),
        found.handler_total_nanos as f64 / begun.elapsed().as_nanos() as f64 * 100.0,
        "%",
    );
    figures.add(format!("one busy thread {at}, sampler thread"), share, "% of a core");
    figures.add(
        format!("one busy thread {at}, samples lost"),
        found.losses.total() as f64,
        "",
    );
    sampler.stop();
    STOP.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}

/// What no sampler of this kind can be below on this machine: a thread that sleeps, and then sends a busy thread a signal whose handler does nothing.
fn floor(figures: &mut Figures, interval: Duration) {
    static STOP: AtomicBool = AtomicBool::new(false);
    STOP.store(false, Ordering::Relaxed);
    let (report, reported) = mpsc::channel();
    let busy = std::thread::spawn(move || {
        report.send(current_tid()).unwrap();
        while !STOP.load(Ordering::Relaxed) {
            black_box(0);
        }
    });
    let target = reported.recv().unwrap();
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: the handler fits and does nothing.
    unsafe { libc::signal(libc::SIGUSR2, nothing as *const () as libc::sighandler_t) };
    // SAFETY: the thread lives until it is joined.
    let send = || unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), target.get(), libc::SIGUSR2) };
    let (begun, before) = (Instant::now(), task::cpu_nanos(current_tid()).unwrap());
    let mut rounds = 0;
    while begun.elapsed() < Duration::from_secs(3) {
        rounds += 1;
        std::thread::sleep((interval * rounds).saturating_sub(begun.elapsed()));
        send();
    }
    let took = task::cpu_nanos(current_tid()).unwrap() - before;
    figures.add(
        format!("only sleeping and sending a signal every {} ms", interval.as_millis()),
        took as f64 / begun.elapsed().as_nanos() as f64 * 100.0,
        "% of a core",
    );
    STOP.store(true, Ordering::Relaxed);
    busy.join().unwrap();
}

fn unwinding(figures: &mut Figures) {
    let begun = Instant::now();
    let unwinder = current_modules_unwinder();
    figures.add(
        "module list and copies of unwind data, this program, once",
        begun.elapsed().as_secs_f64() * 1e3,
        "ms",
    );
    let mut callers = Vec::with_capacity(1_000);
    let own = per_frame(figures, "this profiler", || ours(&unwinder, &mut callers));
    let libgcc = per_frame(figures, "libgcc's _Unwind_Backtrace", || {
        let mut frames = 0_u64;
        // SAFETY: the callback has the declared type and gets the counter.
        unsafe { _Unwind_Backtrace(count, (&raw mut frames).cast()) };
        frames
    });
    per_frame(figures, "the backtrace crate", || {
        let mut frames = 0_u64;
        backtrace::trace(|_| {
            frames += 1;
            true
        });
        frames
    });
    figures.add("libgcc's time for a frame over ours", libgcc / own, "times");
}

fn main() {
    let mut figures = Figures::begin();
    // On a thread of its own: its stack begins where the library says.
    figures = std::thread::spawn(move || {
        unwinding(&mut figures);
        figures
    })
    .join()
    .unwrap();
    floor(&mut figures, Duration::from_millis(4));
    floor(&mut figures, Duration::from_millis(1));
    handler(&mut figures, 4_000);
    handler(&mut figures, 1_000);
    idle(&mut figures, 200);
    figures.save();
}
