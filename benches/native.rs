//! What the native capture costs: `cargo bench --bench native`. Prints one figure per line; nothing is asserted, for machines differ.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use endstone_spark::native::{self, SamplerOptions, ThreadSelection, Unwinder, current_modules_unwinder};
use endstone_spark::shadow::ShadowTable;
use endstone_spark::sys::task;
use endstone_spark::sys::thread::current_tid;

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

fn per_frame(name: &str, mut walk: impl FnMut() -> u64) {
    let (short, few) = fastest(40, &mut walk);
    let (long, many) = fastest(400, &mut walk);
    println!(
        "{name}: {:.1} ns per frame warm ({few} frames {short:.0} ns, {many} frames {long:.0} ns)",
        (long - short) / (many - few) as f64
    );
}

#[inline(never)]
fn ours(unwinder: &Unwinder, callers: &mut Vec<(u64, u64)>) -> u64 {
    let (pc, sp, bp) = registers();
    callers.clear();
    black_box(unwinder.unwind(pc, sp, bp, callers));
    callers.len() as u64
}

/// A thread that works 40 frames deep over memory that pushes everything else out of the caches, as a server does.
fn handler(interval_micros: u64) {
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
    let begun = Instant::now();
    let mut frames = 0;
    while begun.elapsed() < Duration::from_secs(5) {
        source.drain(Duration::from_millis(50), &mut |sample| frames = sample.native.len());
    }
    let own: u64 = endstone_spark::sys::thread::own_tids()
        .into_iter()
        .filter_map(task::cpu_nanos)
        .sum();
    let figures = sampler.figures();
    println!(
        "handler at {interval_micros} us, {frames} frames: median {} ns, 99th percentile {} ns, {} samples, {} lost; sampler thread {:.2} % of a core",
        figures.handler_median_nanos,
        figures.handler_p99_nanos,
        figures.samples,
        figures.losses.total(),
        own as f64 / begun.elapsed().as_nanos() as f64 * 100.0,
    );
    sampler.stop();
    STOP.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}

fn main() {
    let unwinding = std::thread::spawn(|| {
        let begun = Instant::now();
        let unwinder = current_modules_unwinder();
        println!(
            "module list and unwind data: {:.1} ms",
            begun.elapsed().as_secs_f64() * 1e3
        );
        let mut callers = Vec::with_capacity(1_000);
        per_frame("ours", || ours(&unwinder, &mut callers));
        per_frame("libgcc", || {
            let mut frames = 0_u64;
            // SAFETY: the callback has the declared type and gets the counter.
            unsafe { _Unwind_Backtrace(count, (&raw mut frames).cast()) };
            frames
        });
    });
    unwinding.join().unwrap();
    handler(4_000);
    handler(1_000);
}
