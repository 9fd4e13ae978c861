//! Children of `fork`: they never inherit the loader's lock from a look of ours at the module list, and never sample.

mod native_support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use endstone_spark::native::{self, SamplerOptions, StartError, ThreadSelection};
use endstone_spark::shadow::ShadowTable;
use endstone_spark::sys::maps;
use native_support::start;

#[test]
fn a_child_can_use_the_loader_whenever_it_was_forked() {
    let stop = Arc::new(AtomicBool::new(false));
    let looks = Arc::new(AtomicU64::new(0));
    let looker = {
        let (stop, looks) = (Arc::clone(&stop), Arc::clone(&looks));
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                std::hint::black_box(maps::images());
                looks.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    let mut forks = 0;
    while forks < 300 || looks.load(Ordering::Relaxed) < 1_000 {
        forks += 1;
        // SAFETY: the child looks at the loader's list (one lock, which is what is tested) and ends by _exit.
        unsafe {
            let child = libc::fork();
            assert!(child >= 0);
            if child == 0 {
                libc::alarm(30);
                libc::dl_iterate_phdr(Some(count), std::ptr::null_mut());
                // Ours again, in the child.
                std::hint::black_box(maps::load_counters());
                libc::_exit(0);
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &mut status, 0), child);
            assert_eq!(status, 0, "fork {forks}: the child hung or died");
        }
    }
    stop.store(true, Ordering::Relaxed);
    looker.join().unwrap();
}

/// A child has our handler and our memory, but none of our threads: it samples nothing, cannot begin to, and a `SIGPROF` of its own does it no harm.
#[test]
fn a_child_never_samples() {
    let (mut sampler, mut source) = start(1_000, ThreadSelection::All);
    while sampler.figures().samples < 20 {
        source.drain(Duration::from_millis(5), &mut |_| ());
    }
    for _ in 0..50 {
        // SAFETY: the child asks for a start, which is refused before anything is made, and ends by _exit.
        unsafe {
            let child = libc::fork();
            assert!(child >= 0);
            if child == 0 {
                libc::alarm(30);
                let options = SamplerOptions {
                    interval_nanos: 1_000_000,
                    threads: ThreadSelection::All,
                    ignore_sleeping: false,
                };
                let refused = matches!(native::start(options, ShadowTable::global()), Err(StartError::Forked));
                // The default action of a SIGPROF would end it.
                libc::raise(libc::SIGPROF);
                libc::_exit(i32::from(!refused));
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &mut status, 0), child);
            assert_eq!(status, 0, "the child was refused and lived on");
        }
    }
    let before = sampler.figures().samples;
    while sampler.figures().samples < before + 20 {
        source.drain(Duration::from_millis(5), &mut |_| ());
    }
    assert!(sampler.stop().signal_restored);
}

extern "C" fn count(_: *mut libc::dl_phdr_info, _: usize, _: *mut libc::c_void) -> libc::c_int {
    0
}
