//! What happens to `SIGPROF` itself: other users of the signal, lost details, and the action before and after.

mod native_support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use endstone_spark::model::{SampleLoss, Tid};
use endstone_spark::native::{SampleSource, Sampler, ThreadSelection};
use native_support::{start, this_thread};

static CALLS: AtomicU64 = AtomicU64::new(0);

extern "C" fn with_details(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    assert!(signal == libc::SIGPROF && !info.is_null() && !context.is_null());
    CALLS.fetch_add(1, Ordering::Relaxed);
}

extern "C" fn plain(signal: i32) {
    assert_eq!(signal, libc::SIGPROF);
    CALLS.fetch_add(1, Ordering::Relaxed);
}

extern "C" fn another(_: i32) {}

fn set_action(handler: usize, flags: i32) {
    // SAFETY: a zeroed action is valid, and `handler` is a function that fits the flags, or a constant of the system's.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = flags;
        assert_eq!(libc::sigaction(libc::SIGPROF, &action, std::ptr::null_mut()), 0);
    }
}

fn action() -> (usize, i32) {
    // SAFETY: a null new action only asks.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        assert_eq!(libc::sigaction(libc::SIGPROF, std::ptr::null(), &mut action), 0);
        (action.sa_sigaction, action.sa_flags)
    }
}

fn raise() {
    // SAFETY: delivered to this thread before it returns.
    unsafe { libc::raise(libc::SIGPROF) };
}

fn set_pending_limit(limit: u64) -> u64 {
    let mut old = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: both are valid limits; only the soft one is lowered and raised.
    unsafe {
        libc::getrlimit(libc::RLIMIT_SIGPENDING, &mut old);
        let new = libc::rlimit {
            rlim_cur: limit.min(old.rlim_max),
            ..old
        };
        assert_eq!(libc::setrlimit(libc::RLIMIT_SIGPENDING, &new), 0);
    }
    old.rlim_cur
}

/// Runs until `samples` more were taken on this thread, raising the signal itself `raises` times.
fn mix(sampler: &Sampler, source: &mut SampleSource, samples: u64, raises: u64) {
    let before = sampler.figures();
    let mut raised = 0;
    while raised < raises || sampler.figures().samples - before.samples < samples {
        if raised < raises {
            raise();
            raised += 1;
        }
        (0..2_000_u64).for_each(|n| {
            std::hint::black_box(n);
        });
        source.drain(Duration::ZERO, &mut |_| ());
    }
}

fn threads_of_ours() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
fn the_signal_stays_usable_for_others() {
    let own = || ThreadSelection::Tids(vec![this_thread()]);

    // A host's handler of either kind is called as often as without us (a standard signal that is already pending is not queued twice, so one in
    // a hundred may merge).
    for (handler, flags) in [
        (with_details as *const () as usize, libc::SA_SIGINFO),
        (plain as *const () as usize, libc::SA_RESTART),
    ] {
        set_action(handler, flags);
        let before = action();
        let (mut sampler, mut source) = start(1_000, own());
        assert_ne!(action(), before);
        CALLS.store(0, Ordering::Relaxed);
        mix(&sampler, &mut source, 100, 3_000);
        let calls = CALLS.load(Ordering::Relaxed);
        assert!(
            (2_970..=3_000).contains(&calls),
            "called {calls} times for 3000 signals"
        );
        assert!(sampler.figures().foreign_signals >= calls);

        // The kernel drops the details of our signals: they are known by the open request, and the host's are still the host's.
        let limit = set_pending_limit(0);
        CALLS.store(0, Ordering::Relaxed);
        mix(&sampler, &mut source, 100, 0);
        mix(&sampler, &mut source, 100, 1_000);
        set_pending_limit(limit);
        let calls = CALLS.load(Ordering::Relaxed);
        assert!((900..=1_005).contains(&calls), "called {calls} times for 1000 signals");

        assert!(sampler.stop().signal_restored);
        assert_eq!(action(), before);
    }

    // Defaults: never carried out, and restored. The default action of SIGPROF would end this test.
    for default in [libc::SIG_DFL, libc::SIG_IGN] {
        set_action(default, 0);
        let (mut sampler, mut source) = start(1_000, own());
        mix(&sampler, &mut source, 50, 500);
        let limit = set_pending_limit(0);
        mix(&sampler, &mut source, 50, 500);
        set_pending_limit(limit);
        assert!(sampler.stop().signal_restored);
        assert_eq!(action().0, default);
    }

    // A signal that is still pending in a thread that blocks it does nothing after a stop.
    set_action(libc::SIG_DFL, 0);
    a_pending_signal_is_discarded_by_stop();

    // Many sessions.
    set_action(plain as *const () as usize, libc::SA_RESTART);
    let before = action();
    let threads = threads_of_ours();
    for session in 0..1_000 {
        let (mut sampler, mut source) = start(1_000, own());
        if session % 100 == 0 {
            mix(&sampler, &mut source, 3, 0);
        }
        let report = sampler.stop();
        assert!(
            report.signal_restored && report.thread_ended,
            "session {session}: {report:?}"
        );
        while source.drain(Duration::ZERO, &mut |_| ()) {}
    }
    assert_eq!(action(), before);
    assert_eq!(threads_of_ours(), threads);

    // Another library takes the signal over: nothing more is sent, nothing is restored over it, and the next session says why it cannot start.
    let (mut sampler, mut source) = start(1_000, own());
    mix(&sampler, &mut source, 3, 0);
    set_action(another as *const () as usize, libc::SA_RESTART);
    while !sampler.is_displaced() {
        source.drain(Duration::from_millis(1), &mut |_| ());
    }
    assert!(!sampler.stop().signal_restored);
    assert_eq!(action().0, another as *const () as usize);
    let refused = try_start(own());
    let message = refused.err().unwrap().to_string();
    assert!(message.contains("another library"), "{message}");

    // It lets go of the signal: nobody is left who could call ours.
    for default in [libc::SIG_DFL, libc::SIG_IGN] {
        set_action(default, 0);
        let (mut sampler, mut source) = try_start(own()).unwrap();
        mix(&sampler, &mut source, 20, 20);
        assert!(sampler.stop().signal_restored);
        assert_eq!(action().0, default);
    }

    // One that puts back what it found, which was ours: what was there before us is still what comes after us.
    set_action(plain as *const () as usize, libc::SA_RESTART);
    assert!(try_start(own()).is_err(), "any handler may be one that calls ours");
    set_action(libc::SIG_IGN, 0);
    let (mut sampler, mut source) = try_start(own()).unwrap();
    mix(&sampler, &mut source, 3, 0);
    let ours = action();
    set_action(another as *const () as usize, libc::SA_RESTART);
    while !sampler.is_displaced() {
        source.drain(Duration::from_millis(1), &mut |_| ());
    }
    assert!(!sampler.stop().signal_restored);
    set_action(ours.0, ours.1);
    raise();
    let (mut sampler, mut source) = try_start(own()).unwrap();
    mix(&sampler, &mut source, 20, 20);
    assert!(sampler.stop().signal_restored);
    assert_eq!(action().0, libc::SIG_IGN);

    // Set to its default in the middle of a session, while a request of ours is pending: it is discarded, and the default stays.
    a_pending_signal_does_not_end_the_process_when_the_default_is_set();
}

fn try_start(threads: ThreadSelection) -> Result<(Sampler, SampleSource), endstone_spark::native::StartError> {
    endstone_spark::native::start(
        endstone_spark::native::SamplerOptions {
            interval_nanos: 1_000_000,
            threads,
            ignore_sleeping: false,
        },
        endstone_spark::shadow::ShadowTable::global(),
    )
}

/// A thread that blocks `SIGPROF` when it is told to, and lets it through again when it is told to.
struct Blocker {
    block: Arc<AtomicBool>,
    unblock: Arc<AtomicBool>,
    blocked: Arc<AtomicBool>,
    tid: Tid,
    thread: std::thread::JoinHandle<()>,
}

impl Blocker {
    fn new() -> Self {
        let [block, unblock, blocked] = [(); 3].map(|()| Arc::new(AtomicBool::new(false)));
        let (report, reported) = std::sync::mpsc::channel();
        let thread = {
            let (block, unblock, blocked) = (Arc::clone(&block), Arc::clone(&unblock), Arc::clone(&blocked));
            std::thread::spawn(move || {
                report.send(this_thread()).unwrap();
                let wait_for = |flag: &AtomicBool| {
                    while !flag.load(Ordering::Acquire) {
                        std::hint::spin_loop();
                    }
                };
                wait_for(&block);
                // SAFETY: changes this thread's own mask by a valid set.
                unsafe {
                    let mut set: libc::sigset_t = std::mem::zeroed();
                    libc::sigaddset(&mut set, libc::SIGPROF);
                    libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
                    blocked.store(true, Ordering::Release);
                    wait_for(&unblock);
                    libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
                }
            })
        };
        Blocker {
            block,
            unblock,
            blocked,
            tid: reported.recv().unwrap(),
            thread,
        }
    }

    fn block(&self) {
        self.block.store(true, Ordering::Release);
        while !self.blocked.load(Ordering::Acquire) {
            std::hint::spin_loop();
        }
    }

    /// Whether `SIGPROF` waits in the thread, by the kernel's word.
    fn pends(&self) -> bool {
        let status = std::fs::read_to_string(format!("/proc/self/task/{}/status", self.tid.get())).unwrap();
        let pending = status.lines().find_map(|line| line.strip_prefix("SigPnd:")).unwrap();
        u64::from_str_radix(pending.trim(), 16).unwrap() >> (libc::SIGPROF - 1) & 1 == 1
    }

    fn unblock(self) {
        self.unblock.store(true, Ordering::Release);
        self.thread.join().unwrap();
    }
}

/// A session with a request that is pending in a thread that blocks the signal.
fn with_a_pending_signal() -> (Blocker, Sampler, SampleSource) {
    let blocker = Blocker::new();
    let (sampler, mut source) = start(1_000, ThreadSelection::Tids(vec![blocker.tid]));
    while sampler.figures().samples < 3 {
        source.drain(Duration::from_millis(1), &mut |_| ());
    }
    blocker.block();
    // Until a request is pending in it and noticed as blocked.
    while sampler.figures().losses.get(SampleLoss::Blocked) == 0 {
        source.drain(Duration::from_millis(1), &mut |_| ());
    }
    (blocker, sampler, source)
}

fn a_pending_signal_is_discarded_by_stop() {
    let (blocker, mut sampler, _source) = with_a_pending_signal();
    assert!(sampler.stop().signal_restored);
    // Were it still pending, its default action would end the process here.
    blocker.unblock();
}

fn a_pending_signal_does_not_end_the_process_when_the_default_is_set() {
    let (blocker, mut sampler, mut source) = with_a_pending_signal();
    assert!(blocker.pends());
    set_action(libc::SIG_DFL, 0);
    while blocker.pends() {
        source.drain(Duration::from_millis(1), &mut |_| ());
    }
    assert!(sampler.is_displaced());
    assert_eq!(action().0, libc::SIG_DFL);
    blocker.unblock();
    assert!(!sampler.stop().signal_restored);
}
