//! What is hard to sample often: a great many busy threads, processes whose fork takes longer than the interval, handlers that spin on alternate stacks
//! with hardly any room.

mod native_support;

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use endstone_spark::limits::MIN_INTERVAL_MICROS;
use endstone_spark::model::{SampleLoss, Tid};
use endstone_spark::native::ThreadSelection;
use native_support::{start, this_thread};

/// There is one capture at a time in a process.
static ONE: Mutex<()> = Mutex::new(());

/// Fails the test where nothing gets on any more.
fn limit(begun: Instant, what: &str) {
    assert!(begun.elapsed() < Duration::from_secs(120), "{what}");
}

/// A round cannot be done within the shortest interval, so it is stretched: counted, everybody is sampled, and everybody gets on.
#[test]
fn of_64_busy_threads_all_are_sampled_and_all_get_on() {
    const THREADS: usize = 64;
    /// Work of each thread between two looks.
    const STEPS: u64 = 1_000;
    let _one = ONE.lock();
    let stop = Arc::new(AtomicBool::new(false));
    let (report, reported) = mpsc::channel();
    let steps: Vec<Arc<AtomicU64>> = (0..THREADS).map(|_| Arc::default()).collect();
    let threads: Vec<_> = steps
        .iter()
        .map(|steps| {
            let (stop, steps, report) = (Arc::clone(&stop), Arc::clone(steps), report.clone());
            std::thread::spawn(move || {
                report.send(this_thread()).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    (0..100_u32).for_each(|n| {
                        black_box(n);
                    });
                    steps.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let tids: Vec<Tid> = threads.iter().map(|_| reported.recv().unwrap()).collect();
    let (mut sampler, mut source) = start(MIN_INTERVAL_MICROS, ThreadSelection::Tids(tids.clone()));
    let begun = Instant::now();
    let mut samples = vec![0_u64; THREADS];
    let mut before: Option<Vec<u64>> = None;
    let now = || {
        steps
            .iter()
            .map(|steps| steps.load(Ordering::Relaxed))
            .collect::<Vec<_>>()
    };
    loop {
        source.drain(Duration::from_millis(20), &mut |sample| {
            let at = tids.iter().position(|tid| *tid == sample.thread.tid).unwrap();
            samples[at] += 1;
        });
        // From when all are asked.
        let all = sampler.figures().threads as usize == THREADS;
        if all && before.is_none() {
            before = Some(now());
        }
        let gets_on = before
            .as_ref()
            .is_some_and(|begin| begin.iter().zip(now()).all(|(begin, now)| now >= begin + STEPS));
        if gets_on && samples.iter().all(|samples| *samples >= 20) {
            break;
        }
        limit(
            begun,
            &format!("samples {samples:?}, steps {:?}, {:?}", now(), sampler.figures()),
        );
    }
    sampler.stop();
    let figures = sampler.figures();
    stop.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(
        figures.rounds_late > 0 && figures.interval_nanos > MIN_INTERVAL_MICROS * 1_000,
        "the stretched interval is counted: {figures:?}"
    );
    println!("{figures:?}");
}

/// Memory that was written to, in small pages, so that copying what says where they are takes the kernel long.
struct Touched {
    memory: *mut libc::c_void,
    bytes: usize,
}

impl Touched {
    /// A gigabyte, or what is less than a third of the free memory.
    fn new() -> Touched {
        let free = std::fs::read_to_string("/proc/meminfo").unwrap();
        let line = free.lines().find(|line| line.starts_with("MemAvailable:")).unwrap();
        let kilobytes: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        let bytes = (1_usize << 30).min((kilobytes << 10) / 3) & !4_095;
        // SAFETY: new memory of its own, written to within its bounds.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let memory = libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0);
            assert_ne!(memory, libc::MAP_FAILED);
            libc::madvise(memory, bytes, libc::MADV_NOHUGEPAGE);
            for page in (0..bytes).step_by(4_096) {
                memory.cast::<u8>().add(page).write_volatile(1);
            }
            Touched { memory, bytes }
        }
    }
}

impl Drop for Touched {
    fn drop(&mut self) {
        // SAFETY: the memory that `new` made, which nobody else knows.
        unsafe { libc::munmap(self.memory, self.bytes) };
    }
}

/// The kernel begins a fork anew when a signal comes in the middle of it. A sampler that asks again and again would keep it from ever ending.
#[test]
fn forks_that_take_longer_than_the_interval_end() {
    let _one = ONE.lock();
    let touched = Touched::new();
    let (mut sampler, mut source) = start(MIN_INTERVAL_MICROS, ThreadSelection::Tids(vec![this_thread()]));
    let begun = Instant::now();
    let mut shortest = Duration::MAX;
    for fork in 0..20 {
        let before = sampler.figures().samples;
        let begin = Instant::now();
        // SAFETY: the child ends at once by _exit; should the fork never end, the alarm ends this test.
        let child = unsafe {
            libc::alarm(120);
            let child = libc::fork();
            if child == 0 {
                libc::_exit(0);
            }
            libc::alarm(0);
            child
        };
        shortest = shortest.min(begin.elapsed());
        assert!(child > 0);
        let mut status = 0;
        // SAFETY: the child is this test's own.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0, "fork {fork}");
        // The thread is sampled before and after it.
        while sampler.figures().samples < before + 5 {
            source.drain(Duration::from_millis(1), &mut |_| ());
            limit(begun, &format!("{:?}", sampler.figures()));
        }
    }
    sampler.stop();
    println!("a fork of {} MiB takes {shortest:?} and more", touched.bytes >> 20);
    assert!(
        shortest > Duration::from_micros(MIN_INTERVAL_MICROS),
        "forks are too short to show anything: {shortest:?}"
    );
}

static SPINS: AtomicBool = AtomicBool::new(false);
static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn spins(_: libc::c_int) {
    SPINS.store(true, Ordering::Relaxed);
    while !STOP.load(Ordering::Relaxed) {
        black_box(0);
    }
}

/// The least that programs take for an alternate stack, 8 KiB (`SIGSTKSZ`), or twice what this processor needs for a signal's frame, where that is more: the
/// kernel itself puts one onto it for the program's handler, and one for ours, and ends a process for which that does not fit.
fn smallest_alternate_stack() -> usize {
    // SAFETY: asks for a number.
    let frame = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize;
    (8 << 10).max(2 * frame + 512)
}

#[test]
fn a_handler_that_spins_on_an_alternate_stack_of_8_kib_is_lost_and_counted() {
    let _one = ONE.lock();
    let (report, reported) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        // Not in the heap: what lies below it is not mapped, so that a byte too much ends the process.
        let bytes = (smallest_alternate_stack() + 4_095) & !4_095;
        // SAFETY: new memory, used for nothing else; a zeroed action is valid and the handler spins on atomics.
        unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let memory = libc::mmap(std::ptr::null_mut(), bytes + 4_096, protection, flags, -1, 0);
            assert_ne!(memory, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(memory, 4_096, libc::PROT_NONE), 0);
            let stack = libc::stack_t {
                ss_sp: memory.byte_add(4_096),
                ss_flags: 0,
                ss_size: bytes,
            };
            assert_eq!(libc::sigaltstack(&stack, std::ptr::null_mut()), 0);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = spins as *const () as usize;
            action.sa_flags = libc::SA_ONSTACK;
            assert_eq!(libc::sigaction(libc::SIGUSR2, &action, std::ptr::null_mut()), 0);
            report.send(this_thread()).unwrap();
            libc::raise(libc::SIGUSR2);
        }
    });
    let tid = reported.recv().unwrap();
    let begun = Instant::now();
    while !SPINS.load(Ordering::Relaxed) {
        std::thread::yield_now();
        limit(begun, "the handler does not run");
    }
    let (mut sampler, mut source) = start(1_000, ThreadSelection::Tids(vec![tid]));
    while sampler.figures().losses.get(SampleLoss::SmallStack) < 200 {
        source.drain(Duration::from_millis(5), &mut |_| {
            panic!("there is no room for a handler")
        });
        limit(begun, &format!("{:?}", sampler.figures()));
    }
    sampler.stop();
    STOP.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}
