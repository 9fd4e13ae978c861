//! Everything a large server does to its own address space, under dense sampling: nothing crashes, hangs or stands still. `SPARK_TORTURE_SECONDS=60` makes it
//! last that long instead of some seconds.

mod native_support;

use std::ffi::{CStr, CString};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use endstone_spark::model::{StackEnd, Tid};
use endstone_spark::native::{SampleSource, ThreadSelection};
use native_support::{start, this_thread, torture_time};

fn build(source: &str, compiler: &str, variable: &str, library: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(source);
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(library);
    let compiler = std::env::var(variable).unwrap_or_else(|_| compiler.to_owned());
    let status = Command::new(compiler)
        .args(["-O1", "-shared", "-fPIC", "-Wl,--build-id", "-o"])
        .args([&library, &source])
        .status()
        .unwrap();
    assert!(status.success(), "{} is built", library.display());
    library
}

/// A function of a library that stays loaded.
fn loaded(library: &Path, name: &CStr) -> *mut libc::c_void {
    let path = CString::new(library.to_str().unwrap()).unwrap();
    // SAFETY: both are strings; the library is never unloaded.
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        assert!(!handle.is_null());
        let symbol = libc::dlsym(handle, name.as_ptr());
        assert!(!symbol.is_null());
        symbol
    }
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

type Throw = extern "C" fn(u32) -> u64;

/// A C++ exception through twenty frames, and a panic through as many of Rust's.
fn exceptions(throw: Throw) {
    for _ in 0..10 {
        assert_eq!(throw(20), 20);
    }
    let caught = std::panic::catch_unwind(|| panic_below(20));
    assert_eq!(caught.unwrap_err().downcast_ref::<u32>(), Some(&1));
}

#[inline(never)]
fn panic_below(depth: u32) -> u32 {
    if depth == 0 {
        std::panic::resume_unwind(Box::new(1_u32));
    }
    panic_below(depth - 1) + black_box(1)
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

extern "C" fn on_foreign(_: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel's, or passed on as it was. A timer's has its overrun as the sixth word (asm-generic/siginfo.h, `_timer`).
    let missed = unsafe {
        if (*info).si_code != libc::SI_TIMER {
            CALLED.fetch_add(1, Ordering::Relaxed);
            return;
        }
        *info.cast::<i32>().add(5)
    };
    TIMER_CALLED.fetch_add(1, Ordering::Relaxed);
    TIMER_MISSED.fetch_add(u64::try_from(missed).unwrap(), Ordering::Relaxed);
}

extern "C" fn on_other_stack(_: i32) {
    ON_OTHER_STACK.fetch_add(1, Ordering::Relaxed);
}

/// `SIGPROF`s that were raised, and calls of the handler that was there before us.
static RAISED: AtomicU64 = AtomicU64::new(0);
static CALLED: AtomicU64 = AtomicU64::new(0);
static ON_OTHER_STACK: AtomicU64 = AtomicU64::new(0);

/// Timers of somebody else's that send `SIGPROF`: their calls, and the expirations that the kernel says came while the last one was still on its way.
static TIMER_CALLED: AtomicU64 = AtomicU64::new(0);
static TIMER_MISSED: AtomicU64 = AtomicU64::new(0);

/// One of the timers expires in each.
const TIMER_PERIOD: Duration = Duration::from_millis(50);

/// So many that a thread has its turn between two expirations of one of them, on a full machine as well.
const TIMERS: u32 = 10;

/// Starts those timers: `SIGPROF` to the thread with this id.
fn start_timers(tid: Tid) {
    let time = |time: Duration| libc::timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: i64::from(time.subsec_nanos()),
    };
    for number in 0..TIMERS {
        // SAFETY: zeroed values of these types are valid; what the calls need is filled in.
        unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = libc::SIGPROF;
            event.sigev_notify_thread_id = tid.get();
            let mut timer = std::ptr::null_mut();
            assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer), 0);
            let setting = libc::itimerspec {
                it_interval: time(TIMER_PERIOD * TIMERS),
                it_value: time(TIMER_PERIOD * (number + 1)),
            };
            assert_eq!(libc::timer_settime(timer, 0, &setting, std::ptr::null_mut()), 0);
        }
    }
}

/// What became of the timers' expirations in some time.
#[derive(Debug)]
struct Expirations {
    due: u64,
    called: u64,
    missed: u64,
}

impl Expirations {
    fn during(time: Duration, mut meanwhile: impl FnMut()) -> Self {
        let read = || [&TIMER_CALLED, &TIMER_MISSED].map(|counter| counter.load(Ordering::Relaxed));
        let (before, begun) = (read(), Instant::now());
        while begun.elapsed() < time {
            meanwhile();
        }
        let after = read();
        Expirations {
            due: (begun.elapsed().as_nanos() / TIMER_PERIOD.as_nanos()) as u64,
            called: after[0] - before[0],
            missed: after[1] - before[1],
        }
    }

    fn calls(&self) -> f64 {
        self.called as f64 / self.due as f64
    }
}

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

fn install(signal: i32, handler: usize, flags: i32) {
    // SAFETY: a zeroed action is valid, the handler fits the flags.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = flags | libc::SA_RESTART;
        assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
    }
}

/// In the calling thread, and those it makes. The kernel wakes any thread for a child that has ended, although nobody asked for it and although the thread sleeps
/// on: one that is to stay where it is must not be woken by others.
fn block_ended_children() {
    // SAFETY: changes this thread's own mask by a valid set.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&mut set, libc::SIGCHLD);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
    }
}

#[test]
fn a_storm_is_survived() {
    let library = build("churned_library.c", "cc", "CC", "libchurned.so");
    let throws = build("throws.cpp", "c++", "CXX", "libthrows.so");
    // SAFETY: the function's own type.
    let throw = unsafe { std::mem::transmute::<*mut libc::c_void, Throw>(loaded(&throws, c"throw_through")) };
    install(libc::SIGPROF, on_foreign as *const () as usize, libc::SA_SIGINFO);
    install(libc::SIGUSR2, on_other_stack as *const () as usize, libc::SA_ONSTACK);
    block_ended_children();
    let stop = Arc::new(AtomicBool::new(false));
    type Body = Box<dyn Fn() + Send>;
    const CHURNS: usize = 0;
    const SIGNALS: usize = 9;
    let bodies: Vec<Body> = vec![
        Box::new(move || churn(&library)),
        Box::new(move || exceptions(throw)),
        Box::new(allocations),
        Box::new(allocations),
        Box::new(allocations),
        Box::new(allocations),
        Box::new(naps),
        Box::new(forks),
        Box::new(executes),
        Box::new(signals),
    ];
    let workers: Vec<_> = bodies
        .into_iter()
        .map(|body| {
            let stop = Arc::clone(&stop);
            let progress = Arc::new(AtomicU64::new(0));
            let counted = Arc::clone(&progress);
            let (report, reported) = mpsc::channel();
            let thread = std::thread::spawn(move || {
                // (Rust gives each of its threads an alternate signal stack.)
                report.send(this_thread()).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    body();
                    counted.fetch_add(1, Ordering::Relaxed);
                }
            });
            (thread, progress, reported.recv().unwrap())
        })
        .collect();
    let mut tids: Vec<Tid> = workers.iter().map(|(_, _, tid)| *tid).collect();
    // One that stays where it is for all that time.
    let (report, reported) = mpsc::channel();
    let long_sleeper = {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || {
            report.send(this_thread()).unwrap();
            while !stop.load(Ordering::Relaxed) {
                sleep_once(Duration::from_secs(3_600), &LONG_SLEEP_CUT);
            }
        })
    };
    let sleeper = reported.recv().unwrap();
    tids.push(sleeper);

    // A quarter of the time without us, then all of it with us.
    start_timers(tids[SIGNALS]);
    let without = Expirations::during(torture_time(5) / 4, || std::thread::sleep(Duration::from_millis(5)));

    let (mut sampler, mut source) = start(1_000, ThreadSelection::Tids(tids.clone()));
    let (mut samples, mut rooted, mut in_library, mut in_exceptions) = (0_u64, 0_u64, 0_u64, 0_u64);
    let begun = Instant::now();
    let least = |workers: &[(_, Arc<AtomicU64>, _)]| {
        workers
            .iter()
            .map(|(_, progress, _)| progress.load(Ordering::Relaxed))
            .min()
    };
    let mut take = |source: &mut SampleSource| {
        let modules = source.modules();
        source.drain(Duration::from_millis(20), &mut |sample| {
            let is_in = |path: &Path| {
                sample.native.iter().any(|frame| {
                    modules
                        .iter()
                        .any(|module| module.id == frame.module && module.path == path)
                })
            };
            in_library += u64::from(is_in(&library_path()));
            in_exceptions += u64::from(is_in(&throws));
            // A library that was loaded a moment ago is not known for up to 200 ms; its frames then end a stack with a reason.
            if sample.thread.tid != tids[CHURNS] {
                samples += 1;
                rooted += u64::from(sample.end == StackEnd::Root);
            }
        });
        (samples, in_library, in_exceptions)
    };
    let with = Expirations::during(torture_time(5), || {
        take(&mut source);
    });
    loop {
        let (samples, in_library, in_exceptions) = take(&mut source);
        if samples >= 3_000 && least(&workers) >= Some(20) && in_library >= 50 && in_exceptions > 0 {
            break;
        }
        assert!(
            begun.elapsed() < torture_time(5) + Duration::from_secs(90),
            "{samples} samples, least progress {:?}",
            least(&workers)
        );
    }
    assert!(sampler.stop().signal_restored);
    let figures = sampler.figures();
    let long_cut = LONG_SLEEP_CUT.load(Ordering::Relaxed);
    stop.store(true, Ordering::Relaxed);
    // SAFETY: this signal has a handler; it ends the hour of sleep.
    unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), sleeper.get(), libc::SIGUSR2) };
    long_sleeper.join().unwrap();
    workers.into_iter().for_each(|(thread, _, _)| thread.join().unwrap());
    let (samples, in_library, in_exceptions) = take(&mut source);
    let modules = source.modules();
    let churned = modules.iter().filter(|module| module.path == library_path()).count();
    assert!(
        churned <= 64,
        "one library is not a new module each time it is loaded: {churned}"
    );
    let [raised, called, naps, naps_cut, other_stack] =
        [&RAISED, &CALLED, &NAPS, &NAPS_CUT, &ON_OTHER_STACK].map(|counter| counter.load(Ordering::Relaxed));
    eprintln!(
        "{samples} samples, {rooted} with root, {in_library} in the library, {in_exceptions} in exceptions; {called} calls for {raised} raised signals, \
         {with:?}, without us {without:?}; {naps_cut} of {naps} naps and {long_cut} long sleeps cut short, {} counted; losses {:?}",
        figures.interrupted_calls, figures.losses,
    );
    assert!(rooted * 1000 >= samples * 999, "{rooted} of {samples}");
    // One that is pending already is not queued twice, by the kernel's rules.
    assert!(
        called <= raised && called * 100 >= raised * 99,
        "called {called} times for {raised}"
    );
    // All are accounted for, but for some at the edges when the thread waits for its turn. One that comes while the last is on its way is missed, with
    // or without us; over a minute that is equally rare.
    assert!(
        (with.called + with.missed).abs_diff(with.due) <= with.due / 100 + 5,
        "{with:?}"
    );
    if torture_time(5) >= Duration::from_secs(30) {
        assert!(
            (with.calls() - without.calls()).abs() < 0.01,
            "{with:?}, without us {without:?}"
        );
    }
    assert!(other_stack > 0);
    assert!(naps_cut <= naps, "{naps_cut} interruptions in {naps} naps");
    assert!(long_cut <= 1, "{long_cut} interruptions of one long sleep");
    // An answer that comes in the moment of the stop is not looked at.
    assert!(
        figures.interrupted_calls + tids.len() as u64 >= naps_cut + long_cut,
        "{} counted",
        figures.interrupted_calls
    );
}

fn library_path() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("libchurned.so")
}
