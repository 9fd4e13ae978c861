//! What a sample costs in a journal: bytes on the disk, and processor time on both of its threads. Figures to read, in `docs/performance.md`.

use std::sync::Arc;
use std::time::Duration;

use endstone_spark::journal::{Journal, RecoveryFolder, TickFeed};

use super::support::{Load, files, flush, head, modules, next_start, read_all};

fn cpu(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is writable.
    assert_eq!(unsafe { libc::clock_gettime(clock, &raw mut time) }, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// `cargo test --release --test journal cost -- --ignored --nocapture --test-threads 1`
#[test]
#[ignore = "a measurement"]
fn what_a_sample_costs() {
    const BATCHES: usize = 4_000;
    for (what, threads, stacks, samples) in [
        ("one thread at 4 ms, 50 stacks", 1, 50, 62),
        ("one thread at 10 ms, 50 stacks", 1, 50, 25),
        ("one thread at 4 ms, 5,000 stacks", 1, 5_000, 62),
        ("forty threads at 4 ms, 5,000 stacks", 40, 5_000, 2_480),
    ] {
        let root = tempfile::tempdir().unwrap();
        let recovery = Arc::new(RecoveryFolder::open(root.path()).unwrap());
        let (journal, mut feed) = Journal::begin(&recovery, head(), TickFeed::default()).unwrap();
        let modules = modules(30);
        let mut load = Load::new(7, threads, stacks);
        // A quarter of a second each; no faster than the other thread writes.
        let batches = BATCHES * 62 / samples.max(62);
        let (mut making, mut own) = (Duration::ZERO, Duration::ZERO);
        let whole = cpu(libc::CLOCK_PROCESS_CPUTIME_ID);
        let begun = cpu(libc::CLOCK_THREAD_CPUTIME_ID);
        for _ in 0..batches {
            let before = cpu(libc::CLOCK_THREAD_CPUTIME_ID);
            load.give(&mut feed, samples);
            let given = cpu(libc::CLOCK_THREAD_CPUTIME_ID);
            flush(&mut feed, &modules);
            own += cpu(libc::CLOCK_THREAD_CPUTIME_ID).saturating_sub(given);
            making += given.saturating_sub(before);
            std::thread::sleep(Duration::from_millis(1));
        }
        let this = cpu(libc::CLOCK_THREAD_CPUTIME_ID).saturating_sub(begun);
        drop(feed);
        drop(journal);
        let other = cpu(libc::CLOCK_PROCESS_CPUTIME_ID)
            .saturating_sub(whole)
            .saturating_sub(this);
        let bytes: u64 = files(root.path(), ".journal")
            .iter()
            .map(|file| std::fs::metadata(file).unwrap().len())
            .sum();
        let (_copy, next) = next_start(root.path());
        let seen = read_all(&next, next.found()[0].session);
        assert_eq!(seen.dropped, 0);
        let count = (batches * samples) as f64;
        println!(
            "{what}: {:.1} bytes a sample; writing it {:.0} ns a sample (packing and write(2)), handing over {:.0} ns, making and giving {:.0} ns",
            bytes as f64 / seen.samples as f64,
            other.as_nanos() as f64 / count,
            own.as_nanos() as f64 / count,
            making.as_nanos() as f64 / count,
        );
    }
}
