//! Everything a large server does to its own address space, under dense sampling: nothing crashes, hangs or stands still. `SPARK_TORTURE_SECONDS=60` makes it
//! last that long instead of some seconds.

mod native_support;

use std::ffi::CString;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use endstone_spark::model::StackEnd;
use endstone_spark::native::ThreadSelection;
use native_support::{start, this_thread, torture_time};

fn build_library() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/churned_library.c");
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libchurned.so");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let status = Command::new(compiler)
        .args(["-O1", "-shared", "-fPIC", "-Wl,--build-id", "-o"])
        .args([&library, &source])
        .status()
        .unwrap();
    assert!(status.success(), "the C compiler that links Rust programs builds this");
    library
}

/// Loads the library, works in it for a while, unloads it.
fn churn(library: &Path) {
    let path = CString::new(library.to_str().unwrap()).unwrap();
    // SAFETY: the function is called with its own type while the library is loaded.
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        assert!(!handle.is_null());
        let symbol = libc::dlsym(handle, c"churned_work".as_ptr());
        assert!(!symbol.is_null());
        let work = std::mem::transmute::<*mut libc::c_void, extern "C" fn(u64) -> u64>(symbol);
        black_box(work(2_000_000));
        libc::dlclose(handle);
    }
}

/// An exception through twenty frames.
#[inline(never)]
fn throw(depth: u32) -> u32 {
    if depth == 0 {
        std::panic::resume_unwind(Box::new(1_u32));
    }
    throw(depth - 1) + black_box(1)
}

fn exceptions() {
    let caught = std::panic::catch_unwind(|| throw(20));
    assert_eq!(caught.unwrap_err().downcast_ref::<u32>(), Some(&1));
}

fn allocations() {
    let blocks: Vec<Vec<u8>> = (0..200).map(|n| vec![1; 16 << (n % 12)]).collect();
    black_box(blocks);
}

/// A child that works a little and ends. (It may not load anything: another thread of this test holds the loader's locks much of the time.)
fn forks() {
    // SAFETY: the child computes, allocates nothing and ends by _exit.
    unsafe {
        let child = libc::fork();
        assert!(child >= 0);
        if child == 0 {
            libc::alarm(60);
            let mut value = 1_u64;
            for _ in 0..100_000 {
                value = black_box(value.wrapping_mul(3));
            }
            libc::raise(libc::SIGPROF);
            libc::_exit(i32::from(value == 0));
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert!(
            libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
            "child ended with {status:#x}"
        );
    }
}

fn executes() {
    assert!(Command::new("true").status().unwrap().success());
}

extern "C" fn on_foreign(signal: i32) {
    let counter = if signal == libc::SIGPROF {
        &CALLED
    } else {
        &ON_OTHER_STACK
    };
    counter.fetch_add(1, Ordering::Relaxed);
}

/// `SIGPROF`s that were raised, and calls of the handler that was there before us.
static RAISED: AtomicU64 = AtomicU64::new(0);
static CALLED: AtomicU64 = AtomicU64::new(0);
static ON_OTHER_STACK: AtomicU64 = AtomicU64::new(0);

/// One long sleep after some work; again after a signal.
fn naps() {
    allocations();
    NAPS.fetch_add(1, Ordering::Relaxed);
    let begun = Instant::now();
    let length = Duration::from_millis(10);
    while let Some(left) = length.checked_sub(begun.elapsed()) {
        sleep_once(left, &NAPS_CUT);
    }
}

/// Sleeps; counts when a signal ended it.
#[inline(never)]
fn sleep_once(time: Duration, cut: &AtomicU64) {
    let time = libc::timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: i64::from(time.subsec_nanos()),
    };
    // SAFETY: a valid time, and no place for the rest is wanted.
    let interrupted = unsafe { libc::nanosleep(&time, std::ptr::null_mut()) } != 0;
    cut.fetch_add(u64::from(interrupted), Ordering::Relaxed);
}

static NAPS: AtomicU64 = AtomicU64::new(0);
static NAPS_CUT: AtomicU64 = AtomicU64::new(0);
static LONG_SLEEP_CUT: AtomicU64 = AtomicU64::new(0);

/// Raises `SIGPROF` itself, runs a handler on an alternate stack and reads the clock.
fn signals() {
    // SAFETY: both signals have handlers.
    unsafe {
        RAISED.fetch_add(1, Ordering::Relaxed);
        libc::raise(libc::SIGPROF);
        libc::raise(libc::SIGUSR2);
    }
}

fn install(signal: i32, flags: i32) {
    // SAFETY: a zeroed action is valid, the handler fits the flags.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_foreign as *const () as usize;
        action.sa_flags = flags | libc::SA_RESTART;
        assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
    }
}

#[test]
fn a_storm_is_survived() {
    let library = build_library();
    install(libc::SIGPROF, 0);
    install(libc::SIGUSR2, libc::SA_ONSTACK);
    let stop = Arc::new(AtomicBool::new(false));
    type Body = Box<dyn Fn() + Send>;
    let bodies: Vec<Body> = vec![
        Box::new(move || churn(&library)),
        Box::new(exceptions),
        Box::new(allocations),
        Box::new(allocations),
        Box::new(allocations),
        Box::new(allocations),
        Box::new(naps),
        Box::new(forks),
        Box::new(executes),
        Box::new(signals),
    ];
    let (report, reported) = mpsc::channel();
    let workers: Vec<_> = bodies
        .into_iter()
        .map(|body| {
            let (stop, report) = (Arc::clone(&stop), report.clone());
            let progress = Arc::new(AtomicU64::new(0));
            let counted = Arc::clone(&progress);
            let thread = std::thread::spawn(move || {
                // (Rust gives each of its threads an alternate signal stack.)
                report.send(this_thread()).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    body();
                    counted.fetch_add(1, Ordering::Relaxed);
                }
            });
            (thread, progress)
        })
        .collect();
    let mut tids: Vec<_> = workers.iter().map(|_| reported.recv().unwrap()).collect();
    // One that stays where it is for all that time.
    let long_sleeper = std::thread::spawn(move || {
        report.send(this_thread()).unwrap();
        let begun = Instant::now();
        let length = torture_time(5) + Duration::from_secs(1);
        while let Some(left) = length.checked_sub(begun.elapsed()) {
            sleep_once(left, &LONG_SLEEP_CUT);
        }
    });
    tids.push(reported.recv().unwrap());

    let (mut sampler, mut source) = start(1_000, ThreadSelection::Tids(tids));
    let (mut samples, mut rooted, mut in_library) = (0_u64, 0_u64, 0_u64);
    let begun = Instant::now();
    let least = |workers: &[(_, Arc<AtomicU64>)]| {
        workers
            .iter()
            .map(|(_, progress)| progress.load(Ordering::Relaxed))
            .min()
    };
    while begun.elapsed() < torture_time(5) || samples < 3_000 || least(&workers) < Some(20) || in_library < 50 {
        assert!(
            begun.elapsed() < torture_time(5) + Duration::from_secs(90),
            "{samples} samples, least progress {:?}",
            least(&workers)
        );
        let modules = source.modules();
        source.drain(Duration::from_millis(20), &mut |sample| {
            samples += 1;
            rooted += u64::from(sample.end == StackEnd::Root);
            let leaf = sample.native.first().map(|frame| frame.module);
            let module = modules.iter().find(|module| Some(module.id) == leaf);
            in_library += u64::from(module.is_some_and(|module| module.path == library_path()));
        });
    }
    assert!(sampler.stop().signal_restored);
    let figures = sampler.figures();
    stop.store(true, Ordering::Relaxed);
    long_sleeper.join().unwrap();
    workers.into_iter().for_each(|(thread, _)| thread.join().unwrap());
    // A library that was loaded a moment ago is not known for up to 200 ms; its frames then end a stack with a reason.
    assert!(rooted * 100 >= samples * 50, "{rooted} of {samples}");
    let churned = source
        .modules()
        .iter()
        .filter(|module| module.path == library_path())
        .count();
    assert!(
        churned <= 64,
        "one library is not a new module each time it is loaded: {churned}"
    );
    let [raised, called, naps, naps_cut, long_cut, other_stack] =
        [&RAISED, &CALLED, &NAPS, &NAPS_CUT, &LONG_SLEEP_CUT, &ON_OTHER_STACK]
            .map(|counter| counter.load(Ordering::Relaxed));
    eprintln!(
        "{samples} samples, {rooted} with root, {in_library} in the library; {called} calls for {raised} foreign signals; {naps_cut} of {naps} naps and \
         {long_cut} long sleeps cut short, {} counted; losses {:?}",
        figures.interrupted_calls, figures.losses,
    );
    // One that is pending already is not queued twice, by the kernel's rules.
    assert!(
        called <= raised && called * 100 >= raised * 99,
        "called {called} times for {raised}"
    );
    assert!(other_stack > 0);
    assert!(naps_cut <= naps, "{naps_cut} interruptions in {naps} naps");
    // Once, on a machine with a free processor. On a full one a thread that we woke is not back in its sleep when it is looked at again.
    assert!(
        long_cut * 100 <= samples,
        "{long_cut} interruptions of one long sleep in {samples} samples"
    );
    // Answers that came too late to be looked at are not among the counted.
    assert!(figures.interrupted_calls * 100 >= (naps_cut + long_cut) * 95);
}

fn library_path() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("libchurned.so")
}
