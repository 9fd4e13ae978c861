//! All threads of a process that makes and ends them all the time. `SPARK_TORTURE_SECONDS=60` makes it last that long instead of some seconds.

mod native_support;

use std::collections::{HashMap, HashSet, VecDeque};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use endstone_spark::model::{NativeFrame, ThreadKey, ThreadNames, Tid};
use endstone_spark::native::{self, SamplerOptions, ThreadSelection};
use endstone_spark::shadow::ShadowTable;
use endstone_spark::sys::thread::own_tids;
use native_support::{Symbols, sample_until, start, this_thread, torture_time};

/// There is one capture at a time in a process.
static ONE: Mutex<()> = Mutex::new(());

/// A unit is the same work whoever asks for it.
#[inline(never)]
fn burn(units: u64) -> u64 {
    let mut value = 1_u64;
    for _ in 0..units * 2_000 {
        value = black_box(value.wrapping_mul(6364136223846793005).wrapping_add(1));
    }
    value
}

macro_rules! busy_functions {
    ($($number:literal $own:ident $other:ident),*) => {
        $(
            #[unsafe(no_mangle)]
            #[inline(never)]
            fn $own(units: u64) -> u64 {
                burn(units) ^ black_box($number)
            }

            #[unsafe(no_mangle)]
            #[inline(never)]
            fn $other(units: u64) -> u64 {
                burn(units) ^ black_box($number + 100)
            }
        )*
        const BUSY: &[(&str, fn(u64) -> u64, &str, fn(u64) -> u64)] =
            &[$((stringify!($own), $own, stringify!($other), $other)),*];
    };
}

busy_functions!(
    1 busy_own_1 busy_other_1, 2 busy_own_2 busy_other_2, 3 busy_own_3 busy_other_3, 4 busy_own_4 busy_other_4,
    5 busy_own_5 busy_other_5, 6 busy_own_6 busy_other_6, 7 busy_own_7 busy_other_7, 8 busy_own_8 busy_other_8
);

/// What a thread does that lives for some milliseconds.
#[unsafe(no_mangle)]
#[inline(never)]
fn brief_work(units: u64) -> u64 {
    burn(units) ^ black_box(200)
}

/// Time of one thread: all, and by each function of interest that its samples are in.
#[derive(Default)]
struct Times {
    all: u64,
    within: HashMap<String, u64>,
}

#[test]
fn shares_are_right_while_threads_are_born_and_die() {
    let _one = ONE.lock();
    let stop = Arc::new(AtomicBool::new(false));
    let (report, reported) = mpsc::channel();
    let mut workers = Vec::new();
    for (index, (_, own, _, other)) in BUSY.iter().enumerate() {
        let (stop, report) = (Arc::clone(&stop), report.clone());
        workers.push(std::thread::spawn(move || {
            report.send((this_thread(), index)).unwrap();
            // Thread n works n of 9 parts in its own function. How long that takes depends on when the machine has no time for it, so it is measured.
            let part = index as u64 + 1;
            let (mut within, begun) = (Duration::ZERO, Instant::now());
            while !stop.load(Ordering::Relaxed) {
                let entered = Instant::now();
                black_box(own(part));
                within += entered.elapsed();
                black_box(other(9 - part));
            }
            within.as_secs_f64() / begun.elapsed().as_secs_f64()
        }));
    }
    let busy: HashMap<Tid, usize> = BUSY.iter().map(|_| reported.recv().unwrap()).collect();
    let births = Arc::new(AtomicU64::new(0));
    let nursery = {
        let (stop, births) = (Arc::clone(&stop), Arc::clone(&births));
        std::thread::spawn(move || {
            let begun = Instant::now();
            let mut living = VecDeque::new();
            // 200 a second, each alive for a tenth of one or more.
            while !stop.load(Ordering::Relaxed) {
                let born = births.fetch_add(1, Ordering::Relaxed) + 1;
                living.push_back(std::thread::spawn(|| {
                    black_box(brief_work(100));
                    std::thread::sleep(Duration::from_millis(100));
                    black_box(brief_work(100));
                }));
                if living.len() > 200
                    && let Some(first) = living.pop_front()
                {
                    first.join().unwrap();
                }
                std::thread::sleep(Duration::from_millis(born * 5).saturating_sub(begun.elapsed()));
            }
            living.into_iter().for_each(|thread| thread.join().unwrap());
        })
    };

    let (mut sampler, mut source) = start(1_000, ThreadSelection::All);
    let symbols = Symbols::of_this_executable(&source);
    let ours: HashSet<Tid> = own_tids().into_iter().collect();
    assert!(!ours.is_empty(), "the sampler's own thread is one");
    let interesting = |frame: &NativeFrame| {
        let name = symbols.name(frame);
        (name.starts_with("busy_") || name == "brief_work").then(|| name.to_owned())
    };
    let mut threads: HashMap<ThreadKey, Times> = HashMap::new();
    let mut rooted = (0_u64, 0_u64);
    let mut ended = HashSet::new();
    let begun = Instant::now();
    while begun.elapsed() < torture_time(8) {
        source.drain(Duration::from_millis(20), &mut |sample| {
            assert!(!ours.contains(&sample.thread.tid), "a thread of ours");
            assert!(
                !ended.contains(&sample.thread),
                "a sample after the end of {:?}",
                sample.thread
            );
            let times = threads.entry(sample.thread).or_default();
            times.all += sample.weight_nanos;
            let found: HashSet<String> = sample.native.iter().filter_map(interesting).collect();
            for name in found {
                *times.within.entry(name).or_default() += sample.weight_nanos;
            }
            rooted.0 += u64::from(sample.end == endstone_spark::model::StackEnd::Root);
            rooted.1 += 1;
        });
        ended.extend(source.take_ended().into_iter().map(|(key, _)| key));
    }
    let figures = sampler.figures();
    assert!(sampler.stop().signal_restored);
    stop.store(true, Ordering::Relaxed);
    let shares: Vec<f64> = workers.into_iter().map(|thread| thread.join().unwrap()).collect();
    nursery.join().unwrap();
    eprintln!(
        "{} threads born, {} sampled, {} of {} stacks with root, rounds {} late {}, interval {} us",
        births.load(Ordering::Relaxed),
        figures.threads_ever,
        rooted.0,
        rooted.1,
        figures.rounds,
        figures.rounds_late,
        figures.interval_nanos / 1_000,
    );

    let serials: HashSet<u32> = threads.keys().map(|key| key.serial).collect();
    assert_eq!(serials.len(), threads.len(), "one serial for each life");
    let mut met = 0;
    for (key, times) in &threads {
        let Some(index) = busy.get(&key.tid) else {
            // Everybody else: a brief thread, or one of the test's own.
            let foreign: Vec<_> = times.within.keys().filter(|name| name.starts_with("busy_")).collect();
            assert!(foreign.is_empty(), "{key:?} was never in {foreign:?}");
            continue;
        };
        met += 1;
        let (own, _, other, _) = BUSY[*index];
        let foreign: Vec<_> = times
            .within
            .keys()
            .filter(|name| *name != own && *name != other)
            .collect();
        assert!(foreign.is_empty(), "{own}'s thread was never in {foreign:?}");
        let expected = shares[*index];
        let found = times.within.get(own).copied().unwrap_or(0) as f64 / times.all as f64;
        eprintln!("{own}: {:.2} %, expected {:.2} %", found * 100.0, expected * 100.0);
        // Over a minute within two points; in some seconds chance has its part.
        let allowed = if torture_time(8) >= Duration::from_secs(30) {
            0.02
        } else {
            0.05
        };
        assert!((found - expected).abs() < allowed, "{own}: {found}, not {expected}");
    }
    assert_eq!(met, BUSY.len());
    let brief = threads
        .values()
        .filter(|times| times.within.contains_key("brief_work"))
        .count();
    assert!(brief > 20, "only {brief} brief threads were met at work");
    assert!(
        rooted.0 * 1000 >= rooted.1 * 999,
        "{} of {} stacks reach their root",
        rooted.0,
        rooted.1
    );
}

fn spawn_named(name: &str, body: impl FnOnce() + Send + 'static) -> (std::thread::JoinHandle<()>, Tid) {
    let (report, reported) = mpsc::channel();
    let thread = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            report.send(this_thread()).unwrap();
            body();
        })
        .unwrap();
    (thread, reported.recv().unwrap())
}

#[test]
fn names_choose_threads_also_those_that_begin_later() {
    let _one = ONE.lock();
    let stop = Arc::new(AtomicBool::new(false));
    let busy = |name: &str| {
        let stop = Arc::clone(&stop);
        spawn_named(name, move || {
            while !stop.load(Ordering::Relaxed) {
                black_box(burn(1));
            }
        })
    };
    let mut threads = vec![busy("chosen"), busy("left-out")];
    let mut later = None;
    let names = ThreadNames::Exact(vec!["CHOSEN".to_owned()]);
    let (taken, _, source) = sample_until(1_000, ThreadSelection::Named(names), |taken, _| {
        if taken.len() > 50 && later.is_none() {
            let (thread, tid) = busy("chosen");
            threads.push((thread, tid));
            later = Some(tid);
        }
        taken.iter().any(|sample| Some(sample.thread.tid) == later)
    });
    let met: HashSet<Tid> = taken.iter().map(|sample| sample.thread.tid).collect();
    assert_eq!(met, HashSet::from([threads[0].1, later.unwrap()]));
    for sample in &taken {
        assert_eq!(source.thread_name(sample.thread), "chosen");
    }
    stop.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|(thread, _)| thread.join().unwrap());
}

#[unsafe(no_mangle)]
#[inline(never)]
fn sleeps_here(nanos: i64) -> u64 {
    let time = libc::timespec {
        tv_sec: nanos / 1_000_000_000,
        tv_nsec: nanos % 1_000_000_000,
    };
    // SAFETY: a valid time, and no place for the rest is wanted.
    let cut = unsafe { libc::nanosleep(&time, std::ptr::null_mut()) != 0 };
    u64::from(cut) + black_box(1)
}

#[test]
fn time_asleep_can_be_left_out() {
    let _one = ONE.lock();
    let stop = Arc::new(AtomicBool::new(false));
    let cut = Arc::new(AtomicU64::new(0));
    let (thread, tid) = {
        let (stop, cut) = (Arc::clone(&stop), Arc::clone(&cut));
        spawn_named("half-asleep", move || {
            while !stop.load(Ordering::Relaxed) {
                black_box(brief_work(5_000));
                cut.fetch_add(sleeps_here(20_000_000) - 1, Ordering::Relaxed);
            }
        })
    };
    let options = SamplerOptions {
        interval_nanos: 1_000_000,
        threads: ThreadSelection::Tids(vec![tid]),
        ignore_sleeping: true,
    };
    let (mut sampler, mut source) = native::start(options, ShadowTable::global()).unwrap();
    let symbols = Symbols::of_this_executable(&source);
    let (mut asleep, mut all) = (0, 0);
    let begun = Instant::now();
    while sampler.figures().samples < 500 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", sampler.figures());
        source.drain(Duration::from_millis(5), &mut |sample| {
            all += sample.weight_nanos;
            if sample.native.iter().any(|frame| symbols.name(frame) == "sleeps_here") {
                asleep += sample.weight_nanos;
            }
        });
    }
    let figures = sampler.figures();
    sampler.stop();
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
    // On the way into the sleep and out of it the thread runs.
    assert!(asleep * 20 < all, "{asleep} of {all} ns are asleep");
    assert!(
        figures.asleep > 100 && figures.asleep_nanos > 100_000_000,
        "{figures:?}"
    );
    assert_eq!(figures.repeated, 0);
    let cut = cut.load(Ordering::Relaxed);
    assert!(
        cut * 20 <= figures.asleep,
        "a sleeping thread is not disturbed: {cut} of {}",
        figures.asleep
    );
}

#[test]
fn every_call_that_was_cut_short_is_counted() {
    let _one = ONE.lock();
    let stop = Arc::new(AtomicBool::new(false));
    let (cut, wakes) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (thread, tid) = {
        let (stop, cut, wakes) = (Arc::clone(&stop), Arc::clone(&cut), Arc::clone(&wakes));
        spawn_named("naps", move || {
            while !stop.load(Ordering::Relaxed) {
                black_box(brief_work(20));
                wakes.fetch_add(1, Ordering::Relaxed);
                // Again after a signal, in the same place, as a program does that waits for something.
                let begun = Instant::now();
                while begun.elapsed() < Duration::from_millis(20) {
                    cut.fetch_add(sleeps_here(20_000_000) - 1, Ordering::Relaxed);
                }
            }
        })
    };
    let (mut sampler, mut source) = start(1_000, ThreadSelection::Tids(vec![tid]));
    let begun = Instant::now();
    while wakes.load(Ordering::Relaxed) < 100 {
        assert!(begun.elapsed() < Duration::from_secs(60));
        source.drain(Duration::from_millis(5), &mut |_| ());
    }
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
    sampler.stop();
    let counted = sampler.figures().interrupted_calls;
    let (cut, wakes) = (cut.load(Ordering::Relaxed), wakes.load(Ordering::Relaxed));
    eprintln!("{cut} sleeps cut short in {wakes}, {counted} counted");
    assert!(cut > 0 && cut <= wakes, "{cut} of {wakes}: at most one per wake-up");
    // An answer that comes in the moment of the stop is not looked at.
    assert!(counted == cut || counted + 1 == cut, "{counted} counted, {cut} seen");
}

#[test]
fn threads_that_sleep_for_long_are_hardly_looked_at_and_fully_accounted_for() {
    let _one = ONE.lock();
    let (sleepers, releases): (Vec<_>, Vec<_>) = (0..100)
        .map(|_| {
            let (release, released) = mpsc::channel::<()>();
            (
                spawn_named("idle", move || {
                    let _ = released.recv();
                }),
                release,
            )
        })
        .unzip();
    let tids: Vec<Tid> = sleepers.iter().map(|(_, tid)| *tid).collect();
    let begun = Instant::now();
    let (mut sampler, mut source) = start(1_000, ThreadSelection::Tids(tids));
    let mut times: HashMap<ThreadKey, (u64, u64)> = HashMap::new();
    let mut drain = |source: &mut native::SampleSource, wait| {
        source.drain(wait, &mut |sample| {
            let (time, samples) = times.entry(sample.thread).or_default();
            *time += sample.weight_nanos;
            *samples += 1;
        })
    };
    while sampler.figures().rounds < 3_000 {
        assert!(begun.elapsed() < Duration::from_secs(60));
        drain(&mut source, Duration::from_millis(20));
    }
    let figures = sampler.figures();
    sampler.stop();
    let all = begun.elapsed().as_nanos() as u64;
    while drain(&mut source, Duration::ZERO) {}
    assert_eq!(times.len(), 100);
    for (key, (time, samples)) in times {
        assert!(time <= all && all - time < 400_000_000, "{key:?}: {time} of {all} ns");
        assert!(
            samples * 4 < figures.rounds,
            "{key:?}: {samples} samples in {} rounds",
            figures.rounds
        );
    }
    drop(releases);
    sleepers.into_iter().for_each(|(thread, _)| thread.join().unwrap());
}
