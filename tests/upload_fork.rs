//! Children that are forked while an upload hangs and that end as programs end, with all their exit handlers: none waits for what is ours.

mod bytebin;
mod ticking;

use std::time::{Duration, Instant};

use bytebin::{Bytebin, Mode};
use endstone_spark::model::ProfilePlace;
use endstone_spark::session::{Control, Destination, Ended, ExportStep, Notice};
use ticking::Server;

#[test]
fn a_child_that_is_forked_during_an_upload_runs_its_exit_handlers_and_ends() {
    let bytebin = Bytebin::start(Mode::Hang);
    let mut server = Server::new(&bytebin.url);
    server.start();
    server.stop(Destination::AsStarted).unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while !matches!(server.service.info().exporting, Some(ExportStep::Uploading { .. })) || bytebin.connections() == 0 {
        server.tick();
        assert!(Instant::now() < end, "{:?}", server.said);
    }
    let handled = Handled::new();
    let mut forks = 0;
    while forks < 10 {
        assert!(
            matches!(server.service.info().exporting, Some(ExportStep::Uploading { .. })),
            "the upload ended before {forks} children had"
        );
        // SAFETY: the child does nothing but end. Should it wait for ever, the alarm ends it.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            // SAFETY: in the child; its memory is its own.
            unsafe {
                libc::alarm(60);
                libc::exit(0);
            }
        }
        let mut status = 0;
        // SAFETY: the child is this test's own.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0, "child {forks} hung or died");
        forks += 1;
        assert_eq!(handled.count(), forks, "the handlers ran");
    }
    // The parent's upload is as it was, and can be broken off.
    assert_eq!(server.stop(Destination::File), Ok(Ended::Upload));
    server.until(|notice| matches!(notice, Notice::Saved { .. }));
    server.settle();
    assert!(
        matches!(&server.places()[..], [ProfilePlace::File(_)]),
        "{:?}",
        server.places()
    );
    assert_eq!(bytebin.connections(), 1, "no child has connected");
}

/// Counts, in memory that children share, how many have run their handlers.
struct Handled(&'static std::sync::atomic::AtomicUsize);

static COUNTER: std::sync::OnceLock<&'static std::sync::atomic::AtomicUsize> = std::sync::OnceLock::new();

extern "C" fn at_exit() {
    if let Some(counter) = COUNTER.get() {
        counter.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

impl Handled {
    fn new() -> Handled {
        // SAFETY: a new shared page that is never given back and begins with zeros; the handler is a function of this program.
        let counter = unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
            let page = libc::mmap(std::ptr::null_mut(), 4_096, protection, flags, -1, 0);
            assert_ne!(page, libc::MAP_FAILED);
            assert_eq!(libc::atexit(at_exit), 0);
            &*page.cast::<std::sync::atomic::AtomicUsize>()
        };
        Handled(COUNTER.get_or_init(|| counter))
    }

    fn count(&self) -> usize {
        self.0.load(std::sync::atomic::Ordering::SeqCst)
    }
}
