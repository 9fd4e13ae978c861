//! A thread that spends known parts of its time in the C library's memcpy and malloc: no library is left out, and its time goes to whoever called it.

mod native_support;

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Instant;

use endstone_spark::native::ThreadSelection;
use native_support::{Symbols, Taken, sample_until, share, this_thread};

/// Bytes of one copy: large enough that hardly any time passes outside the C library.
const COPIED: usize = 64 << 10;

#[unsafe(no_mangle)]
#[inline(never)]
fn copies_memory(from: &[u8], to: &mut [u8], times: u32) -> u64 {
    for _ in 0..times {
        // SAFETY: both are of this length.
        unsafe {
            libc::memcpy(
                black_box(to.as_mut_ptr()).cast(),
                black_box(from.as_ptr()).cast(),
                COPIED,
            )
        };
    }
    black_box(1)
}

#[unsafe(no_mangle)]
#[inline(never)]
fn takes_memory(times: u32) -> u64 {
    let mut blocks = [std::ptr::null_mut(); 64];
    for _ in 0..times {
        for (at, block) in blocks.iter_mut().enumerate() {
            // Larger than what the C library keeps in a list for each thread, so that it has work to do.
            // SAFETY: any size may be asked for.
            *block = unsafe { libc::malloc(black_box(1_500 + 700 * (at % 7))) };
        }
        for block in blocks {
            // SAFETY: each is given back once.
            unsafe { libc::free(block) };
        }
    }
    black_box(2)
}

#[unsafe(no_mangle)]
#[inline(never)]
fn reckons(times: u32) -> u64 {
    let mut value = 1_u64;
    for _ in 0..times {
        for _ in 0..1_000 {
            value = black_box(value.wrapping_mul(6364136223846793005).wrapping_add(1));
        }
    }
    value
}

#[test]
fn time_in_memcpy_and_malloc_is_found_and_belongs_to_its_callers() {
    let stop = Arc::new(AtomicBool::new(false));
    // Nanoseconds in each of the three, as the thread itself measures them.
    let measured: Arc<[AtomicU64; 3]> = Arc::default();
    let (report, reported) = mpsc::channel();
    let thread = {
        let (stop, measured) = (Arc::clone(&stop), Arc::clone(&measured));
        std::thread::spawn(move || {
            let (from, mut to) = (vec![1_u8; COPIED], vec![0_u8; COPIED]);
            report.send(this_thread()).unwrap();
            while !stop.load(Ordering::Relaxed) {
                for (place, measured) in measured.iter().enumerate() {
                    let begun = Instant::now();
                    black_box(match place {
                        0 => copies_memory(&from, &mut to, 400),
                        1 => takes_memory(40),
                        _ => reckons(500),
                    });
                    measured.fetch_add(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
                }
            }
        })
    };
    let tid = reported.recv().unwrap();
    let read = || [0, 1, 2].map(|place: usize| measured[place].load(Ordering::Relaxed));
    let before = read();
    let (taken, _, source) = sample_until(1_000, ThreadSelection::Tids(vec![tid]), |taken, _| taken.len() >= 3_000);
    let after = read();
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();

    let symbols = Symbols::of_this_executable(&source);
    let modules = source.modules();
    let is_c_library = |name: &str| name.starts_with("libc.so") || name.starts_with("libc-");
    let c_library = modules
        .iter()
        .find(|module| {
            module
                .path
                .file_name()
                .is_some_and(|name| is_c_library(&name.to_string_lossy()))
        })
        .unwrap()
        .id;
    let innermost = |sample: &Taken| sample.native.first().is_some_and(|frame| frame.module == c_library);
    let under = |sample: &Taken, name: &str| sample.native.iter().any(|frame| symbols.name(frame) == name);
    let spent: Vec<f64> = before
        .iter()
        .zip(after)
        .map(|(before, after)| (after - before) as f64)
        .collect();
    let all: f64 = spent.iter().sum();
    let expected = |place: usize| spent[place] / all;

    // Copying happens in the library and nowhere else.
    let copying = share(taken.iter(), |sample| {
        innermost(sample) && under(sample, "copies_memory")
    });
    assert!((copying - expected(0)).abs() < 0.05, "{copying}, not {}", expected(0));
    // Taking memory is the library's work and a loop around it.
    let taking = share(taken.iter(), |sample| under(sample, "takes_memory"));
    assert!((taking - expected(1)).abs() < 0.05, "{taking}, not {}", expected(1));
    let inside = share(taken.iter(), |sample| {
        innermost(sample) && under(sample, "takes_memory")
    });
    assert!(inside > taking / 2.0, "{inside} of {taking} is in the library");
    // And what is not the library's is not given to it.
    let reckoning = share(taken.iter(), |sample| !innermost(sample) && under(sample, "reckons"));
    assert!(
        (reckoning - expected(2)).abs() < 0.05,
        "{reckoning}, not {}",
        expected(2)
    );
    println!("memcpy {copying:.3}, malloc {taking:.3} ({inside:.3} inside), own {reckoning:.3}; measured {spent:?}");
}
