//! Threads that cannot answer, and `errno`.

mod native_support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use endstone_spark::model::{SampleLoss, Tid};
use endstone_spark::native::ThreadSelection;
use native_support::{sample_until, start, this_thread};

/// There is one capture at a time in a process.
static ONE: Mutex<()> = Mutex::new(());

#[test]
fn a_thread_that_blocks_the_signal_is_counted_and_never_asked() {
    let _one = ONE.lock();
    let (report, reported) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        // SAFETY: changes this thread's own mask by a valid set.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigaddset(&mut set, libc::SIGPROF);
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        }
        report.send(this_thread()).unwrap();
        let _ = released.recv();
        // SAFETY: asks what is pending into a valid set.
        unsafe {
            let mut pending: libc::sigset_t = std::mem::zeroed();
            libc::sigpending(&mut pending);
            libc::sigismember(&pending, libc::SIGPROF)
        }
    });
    let tid = reported.recv().unwrap();
    let (mut sampler, mut source) = start(1_000, ThreadSelection::Tids(vec![tid]));
    while sampler.figures().losses.get(SampleLoss::Blocked) < 20 {
        source.drain(Duration::from_millis(1), &mut |_| panic!("nothing can be captured"));
    }
    drop(release);
    assert_eq!(thread.join().unwrap(), 0, "no signal was sent");
    assert!(sampler.stop().signal_restored);
}

#[test]
fn errno_is_kept() {
    let _one = ONE.lock();
    let stop = Arc::new(AtomicBool::new(false));
    let wrong = Arc::new(AtomicU64::new(0));
    let (report, reported) = mpsc::channel();
    let thread = {
        let (stop, wrong) = (Arc::clone(&stop), Arc::clone(&wrong));
        std::thread::spawn(move || {
            report.send(this_thread()).unwrap();
            while !stop.load(Ordering::Relaxed) {
                // SAFETY: this thread's own errno.
                let errno = unsafe { &mut *libc::__errno_location() };
                *errno = 4711;
                (0..1_000_u32).for_each(|n| {
                    std::hint::black_box(n);
                });
                // SAFETY: as above; read anew.
                if unsafe { std::ptr::read_volatile(libc::__errno_location()) } != 4711 {
                    wrong.fetch_add(1, Ordering::Relaxed);
                }
            }
        })
    };
    let tid = reported.recv().unwrap();
    sample_until(200, ThreadSelection::Tids(vec![tid]), |taken, _| taken.len() >= 2_000);
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
    assert_eq!(wrong.load(Ordering::Relaxed), 0);
}

const FIBER_BYTES: usize = 256 << 10;
/// Among the program's variables, just below the heap.
static mut FIBER_STACK: [u8; FIBER_BYTES] = [0; FIBER_BYTES];
static FIBER_TID: AtomicU64 = AtomicU64::new(0);
static FIBER_ENDS: AtomicBool = AtomicBool::new(false);

extern "C" fn spins_on_a_fiber() {
    FIBER_TID.store(this_thread().get() as u64, Ordering::Relaxed);
    while !FIBER_ENDS.load(Ordering::Relaxed) {
        std::hint::black_box(0);
    }
}

/// What lies below a stack in the heap, or among variables, is somebody else's, mapped or not.
#[test]
fn a_stack_in_the_heap_is_not_relied_on() {
    let _one = ONE.lock();
    // SAFETY: both contexts live until the fiber has come back; this is the only use of its stack.
    let thread = std::thread::spawn(|| unsafe {
        let mut here: libc::ucontext_t = std::mem::zeroed();
        let mut fiber: libc::ucontext_t = std::mem::zeroed();
        assert_eq!(libc::getcontext(&mut fiber), 0);
        fiber.uc_stack.ss_sp = (&raw mut FIBER_STACK).cast();
        fiber.uc_stack.ss_size = FIBER_BYTES;
        fiber.uc_link = &mut here;
        libc::makecontext(&mut fiber, spins_on_a_fiber, 0);
        assert_eq!(libc::swapcontext(&mut here, &fiber), 0);
    });
    let tid = loop {
        match FIBER_TID.load(Ordering::Relaxed) {
            0 => std::thread::yield_now(),
            tid => break Tid::new(tid as i32),
        }
    };
    let (mut sampler, mut source) = start(1_000, ThreadSelection::Tids(vec![tid]));
    while sampler.figures().losses.get(SampleLoss::SmallStack) < 200 {
        source.drain(Duration::from_millis(1), &mut |_| {
            panic!("nobody knows how much room there is")
        });
    }
    assert!(sampler.stop().signal_restored);
    FIBER_ENDS.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}
