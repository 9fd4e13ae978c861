//! Threads that wait: shown where they wait, hardly disturbed, and never with a stack that was not theirs at that time.

mod native_support;

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use endstone_spark::model::{SampleLoss, Tid};
use endstone_spark::native::ThreadSelection;
use native_support::{Symbols, Taken, sample_until, share, start, this_thread};

/// There is one capture at a time in a process.
static ONE: Mutex<()> = Mutex::new(());

fn has(symbols: &Symbols, sample: &Taken, name: &str) -> bool {
    sample.native.iter().any(|frame| symbols.name(frame) == name)
}

fn spawn(body: impl FnOnce() + Send + 'static) -> (std::thread::JoinHandle<()>, Tid) {
    let (report, reported) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        report.send(this_thread()).unwrap();
        body();
    });
    (thread, reported.recv().unwrap())
}

/// Sleeps once, as long as asked or until a signal; says whether it was a signal.
fn sleep_once(nanos: i64) -> bool {
    let time = libc::timespec {
        tv_sec: nanos / 1_000_000_000,
        tv_nsec: nanos % 1_000_000_000,
    };
    // SAFETY: a valid time, and no place for the rest is wanted.
    unsafe { libc::nanosleep(&time, std::ptr::null_mut()) != 0 }
}

#[unsafe(no_mangle)]
#[inline(never)]
fn waits_in_first(nanos: i64) -> u64 {
    u64::from(sleep_once(nanos)) + black_box(1)
}

#[unsafe(no_mangle)]
#[inline(never)]
fn waits_in_second(nanos: i64) -> u64 {
    u64::from(sleep_once(nanos)) + black_box(2)
}

#[test]
fn a_thread_that_stays_blocked_is_interrupted_once_at_most_twice() {
    let _one = ONE.lock();
    let stop = Arc::new(AtomicBool::new(false));
    let interrupts = Arc::new(AtomicU64::new(0));
    let (thread, tid) = {
        let (stop, interrupts) = (Arc::clone(&stop), Arc::clone(&interrupts));
        spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                interrupts.fetch_add(waits_in_first(3_600_000_000_000) - 1, Ordering::Relaxed);
            }
        })
    };
    let (taken, figures, source) = sample_until(1_000, ThreadSelection::Tids(vec![tid]), |taken, _| taken.len() >= 300);
    assert!(
        interrupts.load(Ordering::Relaxed) <= 2,
        "{interrupts:?} interrupts in {} samples",
        taken.len()
    );
    assert!(figures.repeated + 3 >= figures.samples);
    let symbols = Symbols::of_this_executable(&source);
    assert!(share(taken.iter(), |sample| has(&symbols, sample, "waits_in_first")) > 0.99);
    stop.store(true, Ordering::Relaxed);
    wake(tid);
    thread.join().unwrap();
}

extern "C" fn nothing(_: i32) {}

#[test]
fn a_thread_with_too_little_stack_is_not_asked_again_where_it_waits() {
    let _one = ONE.lock();
    let stop = Arc::new(AtomicBool::new(false));
    let interrupts = Arc::new(AtomicU64::new(0));
    let (report, reported) = mpsc::channel();
    let thread = {
        let (stop, interrupts) = (Arc::clone(&stop), Arc::clone(&interrupts));
        std::thread::Builder::new().stack_size(24 << 10).spawn(move || {
            report.send(this_thread()).unwrap();
            while !stop.load(Ordering::Relaxed) {
                interrupts.fetch_add(u64::from(sleep_once(3_600_000_000_000)), Ordering::Relaxed);
            }
        })
    };
    let tid = reported.recv().unwrap();
    let (mut sampler, mut source) = start(1_000, ThreadSelection::Tids(vec![tid]));
    while sampler.figures().losses.get(SampleLoss::SmallStack) < 200 {
        source.drain(Duration::from_millis(5), &mut |_| {
            panic!("there is no room for a handler")
        });
    }
    sampler.stop();
    let interrupts = interrupts.load(Ordering::Relaxed);
    assert!(interrupts <= 2, "{interrupts} interrupts");
    stop.store(true, Ordering::Relaxed);
    wake(tid);
    thread.unwrap().join().unwrap();
}

/// Ends an hour of sleep by a signal with a handler that does nothing.
fn wake(tid: Tid) {
    // SAFETY: the handler fits; the thread lives until it has seen `stop`.
    unsafe {
        libc::signal(libc::SIGUSR2, nothing as *const () as libc::sighandler_t);
        libc::syscall(libc::SYS_tgkill, std::process::id(), tid.get(), libc::SIGUSR2);
    }
}

#[test]
fn a_restarted_wait_is_recognised() {
    let _one = ONE.lock();
    let (release, released) = mpsc::channel::<()>();
    let (thread, tid) = spawn(move || {
        let _ = released.recv();
    });
    let (_, figures, _) = sample_until(1_000, ThreadSelection::Tids(vec![tid]), |taken, _| taken.len() >= 200);
    assert!(
        figures.repeated + 3 >= figures.samples,
        "{} of {}",
        figures.repeated,
        figures.samples
    );
    drop(release);
    thread.join().unwrap();
}

#[test]
fn waits_in_the_same_place_by_different_ways_are_told_apart() {
    let _one = ONE.lock();
    let stop = Arc::new(AtomicBool::new(false));
    // What the thread itself measures: a loaded machine makes both waits longer than asked.
    let measured = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let (thread, tid) = {
        let (stop, measured) = (Arc::clone(&stop), Arc::clone(&measured));
        spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                for (index, wait) in [waits_in_first, waits_in_second].iter().enumerate() {
                    let begun = std::time::Instant::now();
                    // Again after a signal, so that the time is spent where it was meant to be.
                    let planned = Duration::from_millis(if index == 0 { 6 } else { 2 });
                    while begun.elapsed() < planned {
                        black_box(wait((planned - begun.elapsed().min(planned)).as_nanos() as i64));
                    }
                    measured[index].fetch_add(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
                }
            }
        })
    };
    let (taken, figures, source) =
        sample_until(1_000, ThreadSelection::Tids(vec![tid]), |taken, _| taken.len() >= 2_000);
    let symbols = Symbols::of_this_executable(&source);
    let [first, second] = [0, 1].map(|index| measured[index].load(Ordering::Relaxed) as f64);
    let expected = first / (first + second);
    let found = share(taken.iter(), |sample| has(&symbols, sample, "waits_in_first"));
    assert!((found - expected).abs() < 0.05, "{found}, not {expected}");
    let found = share(taken.iter(), |sample| has(&symbols, sample, "waits_in_second"));
    assert!(
        (found - (1.0 - expected)).abs() < 0.05,
        "{found}, not {}",
        1.0 - expected
    );
    assert!(
        figures.repeated > figures.samples / 10,
        "{} of {}",
        figures.repeated,
        figures.samples
    );
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}
