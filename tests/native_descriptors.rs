//! A server that has used up its file descriptors for a moment. A binary of its own: the limit is the whole process's.

mod native_support;

use std::fs::File;
use std::time::{Duration, Instant};

use endstone_spark::native::{SampleSource, ThreadSelection};
use native_support::{Busy, start};

/// Lets no file be opened any more. Returns what to [`set`] afterwards.
fn use_up() -> libc::rlimit {
    let mut before = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: a valid rlimit to write to.
    unsafe { assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &mut before), 0) };
    // Those that are open stay so. (The lowest free number would do, but the sampler opens and closes files all the time.)
    set(&libc::rlimit {
        rlim_cur: 0,
        rlim_max: before.rlim_max,
    });
    let error = File::open("/dev/null").unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
    before
}

fn set(limit: &libc::rlimit) {
    // SAFETY: a valid rlimit.
    unsafe { assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, limit), 0) };
}

/// Drains for some looks at the threads, one each tenth of a second.
fn drain_for_a_while(source: &mut SampleSource) {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(500) {
        source.drain(Duration::from_millis(5), &mut |_| ());
    }
}

/// Drains until there are samples.
fn drain_until_samples(source: &mut SampleSource) {
    let begun = Instant::now();
    let mut samples = 0;
    while samples < 50 {
        source.drain(Duration::from_millis(5), &mut |_| samples += 1);
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "only {samples} samples since there are descriptors again"
        );
    }
}

#[test]
fn a_moment_without_descriptors_loses_no_thread() {
    let busy = Busy::new();

    // At the start, so that nothing can be known of the thread.
    let before = use_up();
    let (mut sampler, mut source) = start(1_000, ThreadSelection::Tids(vec![busy.tid]));
    drain_for_a_while(&mut source);
    set(&before);
    drain_until_samples(&mut source);
    assert_eq!(sampler.figures().threads, 1);

    // And in the middle.
    let before = use_up();
    drain_for_a_while(&mut source);
    assert_eq!(sampler.figures().threads, 1, "it has not ended");
    set(&before);
    drain_until_samples(&mut source);
    assert_eq!(sampler.figures().threads_ever, 1, "it is one thread all the time");

    assert!(sampler.stop().signal_restored);
    busy.end();
}
