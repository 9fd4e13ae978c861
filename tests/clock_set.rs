//! The calendar's clock is set while a session runs, an hour forwards and two back: nothing that lasts is longer, shorter or negative for it.
//!
//! `clock_gettime` of this program stands before the C library's, in all that is linked into it, and answers for the calendar what an administrator would have
//! set.

mod bytebin;
mod ticking;

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use endstone_spark::session::{Destination, Ended, Notice};
use endstone_spark::sys::clock;
use ticking::Server;

/// Seconds by which the calendar was set.
static SHIFT: AtomicI64 = AtomicI64::new(0);

/// # Safety
/// As the C library's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(number: libc::clockid_t, time: *mut libc::timespec) -> libc::c_int {
    // SAFETY: the caller's arguments, handed on to the kernel.
    let result = unsafe { libc::syscall(libc::SYS_clock_gettime, number, time) } as libc::c_int;
    if result == 0 && number == libc::CLOCK_REALTIME {
        // SAFETY: the kernel has written there.
        unsafe { (*time).tv_sec += SHIFT.load(Ordering::Relaxed) };
    }
    result
}

#[test]
fn a_clock_that_is_set_during_a_session_changes_no_duration() {
    let true_start = clock::wall().0;
    let begun = Instant::now();
    let mut server = Server::new("http://127.0.0.1:9");
    server.start();
    for shift in [3_600, -7_200, 86_400 * 400, 0] {
        SHIFT.store(shift, Ordering::Relaxed);
        assert!(
            (clock::wall().0 - true_start - shift * 1_000).abs() < 600_000,
            "the clock is not set: this test shows nothing"
        );
        for _ in 0..40 {
            server.tick();
        }
    }
    SHIFT.store(-7_200, Ordering::Relaxed);
    assert_eq!(server.stop(Destination::File), Ok(Ended::Session));
    let saved = server.until(|notice| matches!(notice, Notice::Saved { .. }));
    server.settle();
    let lasted = begun.elapsed().as_millis() as i64;
    println!("{saved:?} after {lasted} ms");

    let profile = server.files().pop().unwrap();
    let metadata = profile.metadata.as_ref().unwrap();
    // The session's dates are those of its beginning, and its length is what passed.
    assert!((true_start..true_start + 600_000).contains(&metadata.start_time));
    let length = metadata.end_time - metadata.start_time;
    assert!((500..=lasted).contains(&length), "{length} of {lasted} ms");
    // Windows are minutes since the start.
    let windows = &profile.time_windows;
    assert!(windows.len() as i64 <= lasted / 60_000 + 1, "{windows:?}");
    assert!(windows.is_sorted_by(|one, next| next - one == 1), "{windows:?}");
    for (window, statistics) in &profile.time_window_statistics {
        let length = statistics.end_time - statistics.start_time;
        assert!(
            (0..=lasted).contains(&length) && i64::from(statistics.duration) == length,
            "{window}: {statistics:?}"
        );
        assert!((0.0..=lasted as f64).contains(&statistics.mspt_max), "{statistics:?}");
        assert!(statistics.tps <= 1_000.0 && statistics.tps > 0.0, "{statistics:?}");
    }
    // No thread has more time than passed, and the server's has nearly all.
    let times: Vec<f64> = profile.threads.iter().map(|thread| thread.times.iter().sum()).collect();
    assert!(!times.is_empty());
    for (thread, time) in profile.threads.iter().zip(&times) {
        assert!(
            thread.times.iter().all(|time| *time >= 0.0) && *time <= lasted as f64,
            "{}: {time}",
            thread.name
        );
    }
    let most = times.iter().copied().fold(0.0, f64::max);
    assert!(most * 2.0 > length as f64, "{most} of {length} ms are in the profile");
    for line in &server.said {
        assert!(
            !line.contains("-1 ") && !line.contains("hour") && !line.contains(" day"),
            "{line}"
        );
    }
}
