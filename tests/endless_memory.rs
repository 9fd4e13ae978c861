//! An endless session, as the background profiler's is, takes as much memory after six hours as after one, and its profile holds the last hour, whole.

mod export_support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use endstone_spark::export;
use endstone_spark::limits::{ENDLESS_MINUTES, PROFILE_GZIP_BYTES};
use endstone_spark::model::{ModuleId, MonotonicNanos, Retention, ThreadKey, Tid};
use endstone_spark::profile::{Forest, FrameKey, Snapshot, ThreadProfile, WindowClock, WindowStats};
use export_support::{Names, STARTED, metadata, module};
use harness::Profile;

/// Counts bytes that are in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: passes everything on to the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Relaxed: a figure.
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // Relaxed: a figure.
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A minute of one thread at 4 ms, in two forms: what the server always does, and what it does only now.
fn minute(forest: &mut Forest, thread: ThreadKey, minute: u32) -> u64 {
    const SAMPLES: u64 = 15_000;
    const NANOS: u64 = 4_000_000;
    for sample in 0..SAMPLES {
        let path: Vec<FrameKey> = (0..20)
            .map(|depth| FrameKey::Native {
                module: ModuleId::new(1),
                rva: depth * 1_000
                    + if depth > 12 {
                        u64::from(minute) * 16 + sample % 40
                    } else {
                        sample % 3
                    },
            })
            .collect();
        forest.book(thread, &path, minute, NANOS, 0);
    }
    SAMPLES * NANOS
}

fn snapshot(threads: Vec<ThreadProfile>) -> Snapshot {
    let first_window = 300;
    let stats = WindowStats {
        ticks: 1_200,
        tps: 20.0,
        mspt_median: 10.0,
        mspt_max: 20.0,
        ..WindowStats::default()
    };
    Snapshot {
        threads,
        clock: WindowClock::new(MonotonicNanos(0), STARTED),
        first_window,
        windows: (first_window..360).map(|_| stats).collect(),
        modules: vec![Arc::new(module("/srv/bedrock_server".into(), None))],
        codes: Vec::new(),
    }
}

/// What an owner gets who asks for the background's profile; how long it takes is printed.
fn exported(threads: Vec<ThreadProfile>) -> Profile {
    let frames: usize = threads.iter().map(|thread| thread.tree.len()).sum();
    let begun = Instant::now();
    let mut profile = export::encode(&snapshot(threads), &mut Names, &metadata());
    export::fold(&mut profile, PROFILE_GZIP_BYTES);
    let mut bytes = Vec::new();
    export::write(&profile, &mut bytes).unwrap();
    println!(
        "export of {frames} frames of 60 minutes: {:.2} s",
        begun.elapsed().as_secs_f64()
    );
    Profile::decode(&bytes).unwrap()
}

#[test]
fn six_hours_take_no_more_memory_than_two_and_export_the_last_one() {
    let mut forest = Forest::new(Retention::Minutes(ENDLESS_MINUTES));
    let threads = [0, 1].map(|serial| ThreadKey {
        tid: Tid::new(10 + serial as i32),
        serial,
    });
    let mut hours = Vec::new();
    let mut last_hour = 0;
    for at in 0..360 {
        let nanos: u64 = threads.iter().map(|thread| minute(&mut forest, *thread, at)).sum();
        last_hour += if at >= 300 { nanos } else { 0 };
        if at % 60 == 59 {
            // Relaxed: one thread.
            hours.push(IN_USE.load(Ordering::Relaxed));
        }
    }
    let (least, most) = (hours[1..].iter().min().unwrap(), hours[1..].iter().max().unwrap());
    println!("bytes at the end of each hour: {hours:?}");
    assert!(*most <= least + least / 20, "{hours:?}");
    let profiles = forest.into_threads(|_| String::new());
    let total: u64 = profiles.iter().map(|thread| thread.tree.total_nanos()).sum();
    // The first sample of the oldest minute shares with one that is forgotten.
    assert!(
        total <= last_hour && total + 2 * 4_000_000 >= last_hour,
        "{total} of {last_hour}"
    );
    let profile = exported(profiles);
    let findings = profile.check();
    assert!(findings.is_sound(), "{findings:?}");
    assert_eq!(profile.data().time_windows.len(), 60);
    let millis = profile.total_millis();
    assert!((millis - total as f64 / 1e6).abs() < 1.0, "{millis} ms of {total} ns");
}
