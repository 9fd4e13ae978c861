//! What statistics take: a tick allocates nothing, and after a quarter of an hour nothing grows any more. Alone in its process, because the allocator counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use endstone_spark::limits;
use endstone_spark::model::{MonotonicNanos, PlayerPing, Tid};
use endstone_spark::stats::Service;

static CALLS: AtomicU64 = AtomicU64::new(0);
static LIVE_BYTES: AtomicI64 = AtomicI64::new(0);

/// The system's allocator, counted. Relaxed throughout: the test looks on the only thread that allocates.
struct Counting;

// SAFETY: every call goes to the system's allocator with what it was given.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        LIVE_BYTES.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        LIVE_BYTES.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const TICK_NANOS: u64 = 50_000_000;

/// A server with twenty players at twenty ticks a second, whose clock runs as fast as it can.
struct Server {
    service: Service,
    ticks: u64,
}

impl Server {
    fn run(&mut self, seconds: u64) {
        for _ in 0..seconds * 20 {
            let at = MonotonicNanos(self.ticks * TICK_NANOS);
            self.service.tick(at, Tid::new(7), 12.5);
            if at.0.is_multiple_of(limits::PING_NANOS) {
                let players = (0..20).map(|number| PlayerPing {
                    name: format!("player {number:02}"),
                    millis: number,
                });
                self.service.set_players(at, players.collect());
            }
            self.ticks += 1;
        }
    }
}

#[test]
fn a_tick_allocates_nothing_and_memory_is_fixed_after_a_quarter_of_an_hour() {
    let before = LIVE_BYTES.load(Ordering::Relaxed);
    let mut server = Server {
        service: Service::new(),
        ticks: 0,
    };
    let calls = CALLS.load(Ordering::Relaxed);
    for number in 0..100_000 {
        server
            .service
            .tick(MonotonicNanos(number * TICK_NANOS), Tid::new(7), 12.5);
    }
    assert_eq!(CALLS.load(Ordering::Relaxed), calls, "a tick allocated");
    server.ticks = 100_000;

    server.run(limits::HISTORY_SECONDS);
    let after_a_quarter = LIVE_BYTES.load(Ordering::Relaxed);
    // Six hours more.
    for hour in 1..=6 {
        server.run(3_600);
        assert_eq!(LIVE_BYTES.load(Ordering::Relaxed), after_a_quarter, "after {hour} h");
    }
    let taken = after_a_quarter - before;
    println!("statistics of ticks and players take {taken} bytes");
    assert!(taken < 1 << 20, "{taken} bytes");
    // By the clock of these ticks: the machine's own may be hours away from it.
    let now = MonotonicNanos(server.ticks * TICK_NANOS);
    let quarter = MonotonicNanos(now.0 - limits::HISTORY_SECONDS * 1_000_000_000);
    let tps = server.service.window(quarter, now, now).tps;
    assert!(tps.is_some_and(|tps| (tps - 20.0).abs() < 0.1), "{tps:?}");
}
