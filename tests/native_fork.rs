//! A child of `fork` never inherits the loader's lock from a look of ours at the module list.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use endstone_spark::sys::maps;

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

extern "C" fn count(_: *mut libc::dl_phdr_info, _: usize, _: *mut libc::c_void) -> libc::c_int {
    0
}
