//! Threads that spend known shares of their time in known functions.

mod native_support;

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use endstone_spark::model::{StackEnd, Tid};
use endstone_spark::native::ThreadSelection;
use native_support::{Symbols, Taken, sample_until, share, this_thread};

#[unsafe(no_mangle)]
#[inline(never)]
fn work_quarter(units: u64) -> u64 {
    // What follows the call keeps it from being a jump; the number keeps the two functions from being merged.
    burn(units) ^ black_box(1)
}

#[unsafe(no_mangle)]
#[inline(never)]
fn work_rest(units: u64) -> u64 {
    burn(units) ^ black_box(2)
}

/// A unit is the same work whoever asks for it.
#[unsafe(no_mangle)]
#[inline(never)]
fn burn(units: u64) -> u64 {
    let mut value = 1_u64;
    for _ in 0..units {
        for _ in 0..1_000 {
            value = black_box(value.wrapping_mul(6364136223846793005).wrapping_add(1));
        }
    }
    value
}

#[unsafe(no_mangle)]
#[inline(never)]
fn busy(stop: &AtomicBool, quarter: u64, rest: u64) {
    while !stop.load(Ordering::Relaxed) {
        black_box(work_quarter(quarter) ^ work_rest(rest));
    }
}

fn has(symbols: &Symbols, sample: &Taken, name: &str) -> bool {
    sample.native.iter().any(|frame| symbols.name(frame) == name)
}

#[test]
fn shares_are_right_on_one_and_on_several_threads() {
    let stop = Arc::new(AtomicBool::new(false));
    // Thread n spends (n + 1) quarters of its time in `work_quarter`; the last one only there.
    let plans = [(1, 3), (2, 2), (3, 1)];
    let (report, reported) = mpsc::channel();
    let threads: Vec<_> = plans
        .iter()
        .map(|(quarter, rest)| {
            let (stop, report, quarter, rest) = (Arc::clone(&stop), report.clone(), *quarter, *rest);
            std::thread::spawn(move || {
                report.send((this_thread(), quarter)).unwrap();
                busy(&stop, quarter, rest);
            })
        })
        .collect();
    let tids: Vec<(Tid, u64)> = plans.iter().map(|_| reported.recv().unwrap()).collect();

    let selections = [&tids[..1], &tids[..]];
    for selected in selections {
        let all = selected.iter().map(|(tid, _)| *tid).collect();
        let wanted = 1500 * selected.len();
        let (taken, figures, source) =
            sample_until(1_000, ThreadSelection::Tids(all), |taken, _| taken.len() >= wanted);
        let symbols = Symbols::of_this_executable(&source);
        for (tid, quarter) in selected {
            let mine = || taken.iter().filter(|sample| sample.thread.tid == *tid);
            let found = share(mine(), |sample| has(&symbols, sample, "work_quarter"));
            let expected = *quarter as f64 / 4.0;
            assert!((found - expected).abs() < 0.05, "{tid:?}: {found}, not {expected}");
            assert!(share(mine(), |sample| has(&symbols, sample, "busy")) > 0.999);
            assert!(
                mine().count() > wanted / selected.len() / 4,
                "every thread has its turn"
            );
        }
        let rooted = figures.ends[StackEnd::Root as usize];
        assert!(
            rooted * 1000 >= figures.samples * 999,
            "{rooted} of {} stacks reach their root",
            figures.samples
        );
    }
    stop.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
