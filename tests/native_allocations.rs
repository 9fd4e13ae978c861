//! The handler allocates nothing: the allocator counts what each thread asks for, and the sampled thread asks for nothing itself.

mod native_support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc;

use endstone_spark::model::StackEnd;
use endstone_spark::native::ThreadSelection;
use native_support::{sample_until, this_thread};

static WATCHED: AtomicI32 = AtomicI32::new(0);
static COUNT: AtomicU64 = AtomicU64::new(0);

struct Counting;

impl Counting {
    fn count(&self) {
        if this_thread().get() == WATCHED.load(Ordering::Relaxed) {
            COUNT.fetch_add(1, Ordering::Relaxed);
        }
    }
}

// SAFETY: everything is System's; counting touches atomics only.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.count();
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.count();
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Work at changing depths, so that rules are derived and looked up, without an allocation.
#[inline(never)]
fn descend(depth: u32, seed: u64) -> u64 {
    let mut value = seed;
    for _ in 0..50 {
        value = black_box(value.wrapping_mul(6364136223846793005).wrapping_add(1));
    }
    if depth > 0 {
        value ^= descend(depth - 1, value) ^ black_box(1);
    }
    value
}

#[test]
fn the_handler_allocates_nothing() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let (report, reported) = mpsc::channel();
    let (more, wait) = mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        report.send(this_thread()).unwrap();
        let _ = wait.recv();
        WATCHED.store(this_thread().get(), Ordering::Relaxed);
        let mut value = 0;
        while !STOP.load(Ordering::Relaxed) {
            value ^= descend((value % 700) as u32, value);
        }
        let counted = COUNT.load(Ordering::Relaxed);
        drop(black_box(Box::new(value)));
        (counted, COUNT.load(Ordering::Relaxed))
    });
    let tid = reported.recv().unwrap();
    drop(more);
    let (taken, figures, _) = sample_until(200, ThreadSelection::Tids(vec![tid]), |taken, _| taken.len() >= 3_000);
    STOP.store(true, Ordering::Relaxed);
    let (counted, after) = thread.join().unwrap();
    assert!(
        taken.iter().any(|sample| sample.omitted > 0),
        "deep stacks were among them"
    );
    assert!(figures.ends[StackEnd::Root as usize] > 2_900);
    assert_eq!(counted, 0);
    assert_eq!(after, 2, "the counter counts: one box made and freed");
}
