//! Where a container refuses `process_vm_readv`, nothing outside a thread's own stack is read: stacks there are lost with a reason, all others are whole, and nothing
//! faults.

mod native_support;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use endstone_spark::model::{SampleLoss, StackEnd, Tid};
use endstone_spark::native::ThreadSelection;
use native_support::{start, this_thread};

/// From now on and for all threads, the call fails as it does in a container without `CAP_SYS_PTRACE` and an old default profile.
fn refuse_reads() {
    let statement = |code: u32, k: u32, jt, jf| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let filter = [
        // The number of the system call.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            libc::SYS_process_vm_readv as u32,
            0,
            1,
        ),
        statement(
            libc::BPF_RET | libc::BPF_K,
            libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
            0,
            0,
        ),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: a valid program that is copied by the kernel; it allows everything else.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let installed = libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_TSYNC,
            &program,
        );
        assert_eq!(installed, 0);
    }
}

static STOP: AtomicBool = AtomicBool::new(false);
static TIDS: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];

fn works(number: usize) {
    TIDS[number].store(this_thread().get() as u32, Ordering::Relaxed);
    while !STOP.load(Ordering::Relaxed) {
        std::hint::black_box(0);
    }
}

extern "C" fn works_on_a_fiber() {
    works(1);
}

/// Runs on a stack that is nobody's own.
fn on_a_fiber() {
    let mut stack = vec![0_u8; 256 << 10];
    // SAFETY: both contexts and the stack live until the fiber has come back.
    unsafe {
        let mut here: libc::ucontext_t = std::mem::zeroed();
        let mut fiber: libc::ucontext_t = std::mem::zeroed();
        assert_eq!(libc::getcontext(&mut fiber), 0);
        fiber.uc_stack.ss_sp = stack.as_mut_ptr().cast();
        fiber.uc_stack.ss_size = stack.len();
        fiber.uc_link = &mut here;
        libc::makecontext(&mut fiber, works_on_a_fiber, 0);
        assert_eq!(libc::swapcontext(&mut here, &fiber), 0);
    }
}

#[test]
fn without_safe_reads_only_a_threads_own_stack_is_read() {
    refuse_reads();
    let threads = [std::thread::spawn(|| works(0)), std::thread::spawn(on_a_fiber)];
    let tid = |number: usize| loop {
        match TIDS[number].load(Ordering::Relaxed) {
            0 => std::thread::yield_now(),
            tid => break Tid::new(tid as i32),
        }
    };
    let (own, fiber) = (tid(0), tid(1));
    let (mut sampler, mut source) = start(500, ThreadSelection::Tids(vec![own, fiber]));
    let (mut whole, mut on_fiber) = (0, 0);
    while whole < 500 || sampler.figures().losses.get(SampleLoss::SmallStack) < 500 {
        source.drain(Duration::from_millis(5), &mut |sample| {
            if sample.thread.tid == fiber {
                on_fiber += 1;
            } else {
                assert_eq!(sample.end, StackEnd::Root);
                whole += 1;
            }
        });
    }
    assert!(sampler.stop().signal_restored);
    assert_eq!(on_fiber, 0, "a stack without known bounds is not touched");
    STOP.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
