//! Every sample that is lost has a reason, and the reason is counted.

mod native_support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use endstone_spark::model::{SampleLoss, Tid};
use endstone_spark::native::ThreadSelection;
use native_support::{start, this_thread};

/// There is one capture at a time in a process.
static ONE: Mutex<()> = Mutex::new(());

fn spawn(body: impl FnOnce() + Send + 'static) -> (std::thread::JoinHandle<()>, Tid) {
    let (report, reported) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        report.send(this_thread()).unwrap();
        body();
    });
    (thread, reported.recv().unwrap())
}

fn busy(stop: &Arc<AtomicBool>) -> (std::thread::JoinHandle<()>, Tid) {
    let stop = Arc::clone(stop);
    spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            std::hint::black_box(0);
        }
    })
}

#[test]
fn samples_that_nobody_fetches_are_lost_for_want_of_room() {
    let _one = ONE.lock();
    let stop = Arc::new(AtomicBool::new(false));
    let (thread, tid) = busy(&stop);
    let (mut sampler, mut source) = start(100, ThreadSelection::Tids(vec![tid]));
    while sampler.figures().losses.get(SampleLoss::NoSlot) < 10 {
        std::thread::yield_now();
    }
    sampler.stop();
    let figures = sampler.figures();
    let mut seen = 0;
    while source.drain(Duration::ZERO, &mut |_| seen += 1) {}
    assert_eq!(seen, figures.samples, "those that were counted are there");
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}

extern "C" fn child(_: *mut libc::c_void) -> libc::c_int {
    let time = libc::timespec { tv_sec: 2, tv_nsec: 0 };
    // SAFETY: sleeps, then ends the child.
    unsafe {
        libc::nanosleep(&time, std::ptr::null_mut());
        libc::_exit(0);
    }
}

/// A parent of `vfork` waits in the kernel and takes no signal until the child has ended or become another program.
#[test]
fn a_thread_that_does_not_answer_for_a_second_is_given_up() {
    let _one = ONE.lock();
    let stop = Arc::new(AtomicBool::new(false));
    let (thread, tid) = {
        let stop = Arc::clone(&stop);
        spawn(move || {
            let mut stack = vec![0_u8; 64 << 10];
            while !stop.load(Ordering::Relaxed) {
                (0..200_000_u32).for_each(|n| {
                    std::hint::black_box(n);
                });
                let top = stack.as_mut_ptr().wrapping_add(stack.len() - 64);
                // SAFETY: the child has a stack of its own, makes two system calls, and the parent waits until it has ended.
                unsafe {
                    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
                    let made = libc::clone(child, top.cast(), flags, std::ptr::null_mut());
                    assert!(made > 0);
                    libc::waitpid(made, std::ptr::null_mut(), 0);
                }
            }
        })
    };
    let (mut sampler, mut source) = start(100, ThreadSelection::Tids(vec![tid]));
    while sampler.figures().losses.get(SampleLoss::TimedOut) == 0 {
        source.drain(Duration::from_millis(5), &mut |_| ());
    }
    sampler.stop();
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}

#[test]
fn a_thread_that_ends_instead_of_answering_is_counted() {
    let _one = ONE.lock();
    let (mut sampler, mut source) = start(100, ThreadSelection::All);
    while sampler.figures().losses.get(SampleLoss::ThreadGone) == 0 {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                std::thread::spawn(|| {
                    let begun = std::time::Instant::now();
                    // Long enough to be found, and busy when it ends; it takes no signal in its last moments.
                    while begun.elapsed() < Duration::from_millis(150) {
                        std::hint::black_box(0);
                    }
                    // SAFETY: this thread's own mask, by a valid set.
                    unsafe {
                        let mut set: libc::sigset_t = std::mem::zeroed();
                        libc::sigaddset(&mut set, libc::SIGPROF);
                        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
                    }
                    while begun.elapsed() < Duration::from_millis(160) {
                        std::hint::black_box(0);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        source.drain(Duration::ZERO, &mut |_| ());
    }
    sampler.stop();
}
