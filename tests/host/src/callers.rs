//! Which functions of the server the profiler calls on which threads: all but one belong to the server thread.
//!
//! Every function of the server's vtable is reached through a gate, which looks at where it was called from. What Endstone's own threads call is Endstone's affair; a
//! call from the profiler's code on another thread than the server's ends the process, unless it is of a function that may be called anywhere. Everything else of the host is
//! reached through these functions.

use std::arch::naked_asm;
use std::ffi::c_void;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use endstone_spark::endstone::abi::ServerSlots;

use crate::probes;
use crate::say::say;
use crate::world;

/// Virtual functions of `Server`.
pub const SERVER_SLOTS: usize = 48;

/// How the name of the profiler's file begins. Endstone loads a copy, whose name goes on with a number.
const PROFILER: &str = "endstone_spark";

/// The gates' targets: what stood in the vtable before.
static FUNCTIONS: [AtomicUsize; SERVER_SLOTS] = [const { AtomicUsize::new(0) }; SERVER_SLOTS];

/// Calls of the profiler on other threads than the server's, of functions that may be called there.
static ELSEWHERE: AtomicU64 = AtomicU64::new(0);

/// Puts a gate before each function.
pub fn guard(functions: &mut [usize]) {
    for ((function, target), gate) in functions.iter_mut().zip(&FUNCTIONS).zip(GATES) {
        // Relaxed: the server thread does not exist yet.
        target.store(*function, Ordering::Relaxed);
        *function = gate as *const () as usize;
    }
}

/// How often the profiler has called a function on another thread than the server's since this was asked last.
pub fn take_elsewhere() -> u64 {
    // Relaxed: a figure.
    ELSEWHERE.swap(0, Ordering::Relaxed)
}

/// Begins every call.
extern "C" fn arrive(slot: usize, caller: *const c_void) {
    if world::is_server_thread() || !is_profiler(caller) {
        return;
    }
    if slot != ServerSlots::GET_CURRENT_MSPT.index {
        say(&format!(
            "the profiler called function {slot} of the server on a thread that is not the server's"
        ));
        std::process::abort()
    }
    // Relaxed: a figure.
    ELSEWHERE.fetch_add(1, Ordering::Relaxed);
}

fn is_profiler(code: *const c_void) -> bool {
    let module = probes::module_of(code.addr());
    module.is_some_and(|(file, _)| {
        file.file_name()
            .is_some_and(|name| name.as_bytes().starts_with(PROFILER.as_bytes()))
    })
}

/// Goes on to the function as if it had been called itself: all registers that may hold arguments are as they were.
#[unsafe(naked)]
extern "C" fn gate<const SLOT: usize>() {
    naked_asm!(
        "push rax",
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "sub rsp, 128",
        "movups [rsp], xmm0",
        "movups [rsp + 16], xmm1",
        "movups [rsp + 32], xmm2",
        "movups [rsp + 48], xmm3",
        "movups [rsp + 64], xmm4",
        "movups [rsp + 80], xmm5",
        "movups [rsp + 96], xmm6",
        "movups [rsp + 112], xmm7",
        "mov edi, {slot}",
        // Where the call returns to: behind 128 bytes and seven registers.
        "mov rsi, [rsp + 184]",
        "call {arrive}",
        "movups xmm0, [rsp]",
        "movups xmm1, [rsp + 16]",
        "movups xmm2, [rsp + 32]",
        "movups xmm3, [rsp + 48]",
        "movups xmm4, [rsp + 64]",
        "movups xmm5, [rsp + 80]",
        "movups xmm6, [rsp + 96]",
        "movups xmm7, [rsp + 112]",
        "add rsp, 128",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "pop rax",
        "lea r11, [rip + {functions}]",
        "jmp qword ptr [r11 + {slot} * 8]",
        slot = const SLOT,
        arrive = sym arrive,
        functions = sym FUNCTIONS,
    )
}

macro_rules! gates {
    ($($slot:literal)*) => { [$(gate::<$slot> as extern "C" fn()),*] };
}

static GATES: [extern "C" fn(); SERVER_SLOTS] = gates!(
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23
    24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47
);
