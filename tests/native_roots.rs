//! Stacks reach their root: from plain code, deep recursion, inside other signals' handlers, on alternate stacks, in the vdso, and on the main thread.

mod native_support;

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc;

use endstone_spark::model::{StackEnd, Tid};
use endstone_spark::native::ThreadSelection;
use native_support::{Symbols, Taken, sample_until, this_thread};

static STOP: AtomicBool = AtomicBool::new(false);
static READY: AtomicU32 = AtomicU32::new(0);

fn spin() {
    READY.fetch_add(1, Ordering::Relaxed);
    while !STOP.load(Ordering::Relaxed) {
        black_box(std::time::Instant::now());
    }
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn spins_in_handler(_: i32) {
    spin();
    black_box(());
}

#[unsafe(no_mangle)]
#[inline(never)]
fn raises_and_spins(signal: i32) -> u64 {
    // SAFETY: the handler of `signal` spins on atomics and the clock.
    unsafe { libc::raise(signal) };
    black_box(1)
}

#[unsafe(no_mangle)]
#[inline(never)]
fn deep(depth: u32) -> u32 {
    if depth == 0 {
        spin();
        return black_box(1);
    }
    deep(depth - 1) + black_box(1)
}

fn install(signal: i32, flags: i32) {
    // SAFETY: a zeroed action is valid, the handler fits the flags.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = spins_in_handler as *const () as usize;
        action.sa_flags = flags;
        assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
    }
}

fn use_alternate_stack(stack: &mut [u8]) {
    let new = libc::stack_t {
        ss_sp: stack.as_mut_ptr().cast(),
        ss_flags: 0,
        ss_size: stack.len(),
    };
    // SAFETY: `stack` outlives its use: the caller leaks it.
    unsafe { assert_eq!(libc::sigaltstack(&new, std::ptr::null_mut()), 0) };
}

fn thread_tid(body: fn()) -> (std::thread::JoinHandle<()>, Tid) {
    let (report, reported) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        report.send(this_thread()).unwrap();
        body();
    });
    (thread, reported.recv().unwrap())
}

fn has(symbols: &Symbols, sample: &Taken, name: &str) -> bool {
    sample.native.iter().any(|frame| symbols.name(frame) == name)
}

#[test]
fn nearly_every_stack_reaches_its_root() {
    install(libc::SIGUSR1, 0);
    install(libc::SIGUSR2, libc::SA_ONSTACK);
    let bodies: [fn(); 4] = [
        spin,
        || {
            black_box(deep(5_000));
        },
        || {
            black_box(raises_and_spins(libc::SIGUSR1));
        },
        || {
            use_alternate_stack(Box::leak(vec![0; 256 << 10].into_boxed_slice()));
            black_box(raises_and_spins(libc::SIGUSR2));
        },
    ];
    let (threads, tids): (Vec<_>, Vec<Tid>) = bodies.into_iter().map(thread_tid).unzip();
    while READY.load(Ordering::Relaxed) < 4 {
        std::thread::yield_now();
    }
    let mut selected = tids.clone();
    // The main thread of the test harness waits for this test: a root of another kind.
    selected.push(Tid::new(std::process::id() as i32));
    let (taken, figures, source) =
        sample_until(1_000, ThreadSelection::Tids(selected), |taken, _| taken.len() >= 10_000);
    STOP.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());

    let rooted = figures.ends[StackEnd::Root as usize];
    assert!(
        rooted * 1_000 >= figures.samples * 999,
        "{rooted} of {}: {:?}",
        figures.samples,
        figures.ends
    );
    let symbols = Symbols::of_this_executable(&source);
    let of = |index: usize| {
        let tid = tids[index];
        taken.iter().filter(move |sample| sample.thread.tid == tid)
    };
    let mut seen = 0;
    for sample in of(1) {
        assert_eq!(sample.native.len(), 512);
        assert!(sample.omitted > 4_000 && has(&symbols, sample, "deep"));
        seen += 1;
    }
    for sample in of(2).chain(of(3)) {
        assert!(has(&symbols, sample, "spins_in_handler"), "the handler");
        assert!(has(&symbols, sample, "raises_and_spins"), "and what it interrupted");
        seen += 1;
    }
    assert!(seen > 2_000, "all kinds were sampled: {seen}");
    let modules = source.modules();
    let vdso = modules
        .iter()
        .find(|module| module.path.as_os_str() == "[vdso]")
        .unwrap()
        .id;
    assert!(
        taken.iter().any(|sample| sample.native[0].module == vdso),
        "the vdso was interrupted"
    );
    assert!(
        taken
            .iter()
            .any(|sample| sample.thread.tid.get() == std::process::id() as i32)
    );
}
