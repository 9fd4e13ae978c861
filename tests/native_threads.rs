//! All threads of a process that makes and ends them all the time. `SPARK_TORTURE_SECONDS=60` makes it last that long instead of some seconds.

mod native_support;

use std::collections::{HashMap, HashSet, VecDeque};
use std::hint::black_box;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use endstone_spark::model::{CodeId, NativeFrame, Sample, ThreadKey, ThreadNames, Tid};
use endstone_spark::native::{self, SamplerOptions, ThreadSelection};
use endstone_spark::profile::{FrameKey, Ledger, Tree};
use endstone_spark::shadow::ShadowTable;
use endstone_spark::sys::clock;
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

/// What a busy thread knows of itself: when it entered its own function (even places) and when it left it (odd ones).
struct Diary(Vec<u64>);

impl Diary {
    /// Time in its own function up to `at`.
    fn own_until(&self, sums: &[u64], at: u64) -> u64 {
        let passed = self.0.partition_point(|time| *time <= at);
        let inside = if passed % 2 == 1 { at - self.0[passed - 1] } else { 0 };
        sums[passed] + inside
    }

    /// Time in its own function up to each entry, with 0 before the first.
    fn sums(&self) -> Vec<u64> {
        let mut sums = vec![0, 0];
        for (place, pair) in self.0.windows(2).enumerate() {
            let within = if place % 2 == 0 { pair[1] - pair[0] } else { 0 };
            sums.push(sums[sums.len() - 1] + within);
        }
        sums
    }
}

/// One thread's samples, booked as a profile books them.
#[derive(Default)]
struct Booked {
    ledger: Ledger,
    /// The time they account for: pieces without gaps.
    spans: Vec<Range<u64>>,
    /// Functions of interest that they were in.
    met: HashSet<String>,
}

const OWN: FrameKey = FrameKey::Python(CodeId::new(1));
const ELSEWHERE: FrameKey = FrameKey::Python(CodeId::new(2));

impl Booked {
    fn book(&mut self, sample: &Sample<'_>, in_own: bool) {
        let key = if in_own { OWN } else { ELSEWHERE };
        self.ledger.book(&[key], 0, sample.weight_nanos, sample.held_nanos);
        let end = sample.taken_at.0;
        let begin = end - sample.weight_nanos;
        match self.spans.last_mut() {
            // What lies between is our own handler's time.
            Some(last) if begin.saturating_sub(last.end) < 1_000_000 => last.end = end,
            _ => self.spans.push(begin..end),
        }
    }
}

/// Eight threads, each some part of its time in a function of its own, while 200 a second are born and die: each thread's profile agrees with what the thread
/// itself has written down about the same time. (How much of its time that is depends on when the machine has none for it, so it is measured.)
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
            // Thread n does n of 9 parts of its work in its own function. Nothing else may take time: to write in memory for the first time waits for whoever
            // just makes a thread (measured: 0.7 % of all time).
            let part = index as u64 + 1;
            let mut diary = vec![u64::MAX; 12_000 * torture_time(25).as_secs() as usize];
            diary.clear();
            while !stop.load(Ordering::Relaxed) {
                diary.push(clock::monotonic().0);
                black_box(own(4 * part));
                diary.push(clock::monotonic().0);
                black_box(other(4 * (9 - part)));
            }
            Diary(diary)
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
    let mut threads: HashMap<ThreadKey, Booked> = HashMap::new();
    let mut rooted = (0_u64, 0_u64);
    let mut ended = HashSet::new();
    let begun = Instant::now();
    while begun.elapsed() < torture_time(25) {
        source.drain(Duration::from_millis(20), &mut |sample| {
            assert!(!ours.contains(&sample.thread.tid), "a thread of ours");
            assert!(
                !ended.contains(&sample.thread),
                "a sample after the end of {:?}",
                sample.thread
            );
            let booked = threads.entry(sample.thread).or_default();
            let found: Vec<String> = sample.native.iter().filter_map(interesting).collect();
            let own = busy.get(&sample.thread.tid).map(|index| BUSY[*index].0);
            booked.book(sample, found.iter().any(|name| Some(&**name) == own));
            booked.met.extend(found);
            rooted.0 += u64::from(sample.end == endstone_spark::model::StackEnd::Root);
            rooted.1 += 1;
        });
        ended.extend(source.take_ended().into_iter().map(|(key, _)| key));
    }
    let figures = sampler.figures();
    assert!(sampler.stop().signal_restored);
    stop.store(true, Ordering::Relaxed);
    let diaries: Vec<Diary> = workers.into_iter().map(|thread| thread.join().unwrap()).collect();
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
    // What a quiet machine can do; a full one may keep the sampler waiting, or the reader of its samples, for seconds.
    let long = torture_time(25) >= Duration::from_secs(30);
    let (mut met, mut brief) = (0, 0);
    for (key, booked) in threads {
        let Some(index) = busy.get(&key.tid) else {
            // Everybody else: a brief thread, or one of the test's own.
            let foreign: Vec<_> = booked.met.iter().filter(|name| name.starts_with("busy_")).collect();
            assert!(foreign.is_empty(), "{key:?} was never in {foreign:?}");
            brief += u32::from(booked.met.contains("brief_work"));
            continue;
        };
        met += 1;
        let (own, _, other, _) = BUSY[*index];
        let foreign: Vec<_> = booked
            .met
            .iter()
            .filter(|name| *name != own && *name != other)
            .collect();
        assert!(foreign.is_empty(), "{own}'s thread was never in {foreign:?}");

        let diary = &diaries[*index];
        let sums = diary.sums();
        let covered: u64 = booked.spans.iter().map(|span| span.end - span.start).sum();
        let span = booked.spans[booked.spans.len() - 1].end - booked.spans[0].start;
        assert!(
            !long || covered * 100 >= span * 99,
            "{own}: {covered} of {span} ns are accounted for"
        );
        let truth: u64 = booked
            .spans
            .iter()
            .map(|span| diary.own_until(&sums, span.end) - diary.own_until(&sums, span.start))
            .sum();
        let tree = booked.ledger.into_tree();
        let expected = truth as f64 / covered as f64;
        let found = own_share(&tree);
        eprintln!("{own}: {:.2} %, expected {:.2} %", found * 100.0, expected * 100.0);
        assert!((found - expected).abs() < ALLOWED, "{own}: {found}, not {expected}");
    }
    assert_eq!(met, BUSY.len());
    assert!(brief > 0, "no brief thread was met at work");
    // They live for a tenth of a second: all are there for a look. (In a short run the sampler may be kept waiting.)
    let (births, ever) = (births.load(Ordering::Relaxed), u64::from(figures.threads_ever));
    if long {
        assert!(ever * 100 >= births * 98, "{ever} of {births} were sampled");
    }
    assert!(
        rooted.0 * 1000 >= rooted.1 * 999,
        "{} of {} stacks reach their root",
        rooted.0,
        rooted.1
    );
}

/// Two points, in a short run too: a sample does not have to be near a change of functions for the time between two to be right on average.
const ALLOWED: f64 = 0.02;

fn own_share(tree: &Tree) -> f64 {
    let own = tree.nodes().position(|node| node.key == OWN);
    let times = tree.windows().iter().flat_map(|window| &window.self_nanos);
    let own: u64 = times
        .filter(|(node, _)| Some(*node as usize) == own)
        .map(|(_, nanos)| *nanos)
        .sum();
    own as f64 / tree.total_nanos() as f64
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
