//! What statistics cost: one tick on the server thread, a question, and the thread that reads `/proc`, by its own processor clock.
//!
//! `SPARK_BENCH_SECONDS` (60) says how long the thread is watched. Before that the program allows no other load to matter: all figures but the first are processor time.

use std::hint::black_box;
use std::time::{Duration, Instant};

use endstone_spark::model::{MonotonicNanos, Tid};
use endstone_spark::stats::Service;
use endstone_spark::sys::task;

const TICKS: u64 = 1_000_000;
const ROUNDS: u64 = 9;

fn main() {
    let service = Service::new();
    let mut at = 0;
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begin = Instant::now();
            for _ in 0..TICKS {
                at += 50_000_000;
                service.tick(MonotonicNanos(black_box(at)), Tid::new(1), 12.5);
            }
            begin.elapsed().as_nanos() as f64 / TICKS as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    println!(
        "statistics, one tick: {:.1} ns (median of {ROUNDS} rounds)",
        rounds[rounds.len() / 2]
    );

    let begin = Instant::now();
    for _ in 0..100 {
        black_box(service.snapshot());
    }
    println!(
        "statistics, one question: {:.2} ms",
        begin.elapsed().as_secs_f64() * 10.0
    );

    let service = Service::new();
    if let Err(error) = service.start() {
        println!("statistics, no thread: {error}");
        return;
    }
    let seconds = std::env::var("SPARK_BENCH_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(60);
    let begin = Instant::now();
    std::thread::sleep(Duration::from_secs(seconds));
    let threads = task::all().unwrap_or_default();
    let watcher = threads
        .into_iter()
        .find(|tid| task::name(*tid).is_ok_and(|name| name == "spark-stats"));
    if let Some(used) = watcher.and_then(task::cpu_nanos) {
        let wall = begin.elapsed().as_nanos() as f64;
        println!(
            "statistics, thread: {:.0} us a second, {:.3} % of a core over {seconds} s",
            used as f64 * 1e6 / wall,
            used as f64 * 100.0 / wall
        );
    }
    service.stop();
}
