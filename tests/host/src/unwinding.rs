//! What takes a thread's stack away without returning: a C++ exception, thrown as the real server's code throws it, and the end of a thread by `pthread_exit`.
//!
//! Both run through whoever called, also through a plugin's frames.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use endstone_spark::endstone::abi::{CommandExecutorSlots, CxxString, CxxVector, Plugin};

use crate::say::say;

/// `std::runtime_error` of libc++: a vtable and one pointer.
const EXCEPTION_BYTES: usize = 16;

/// The how manieth message from now is answered with an exception; 0: none.
static UNTIL_THROW: AtomicU64 = AtomicU64::new(0);

type Destroy = unsafe extern "C" fn(*mut c_void);

/// Of the messages to the player from now on, this one is answered with an exception: 1 is the next.
pub fn throw_at(message: u64) {
    // Relaxed: written and read on the server thread.
    UNTIL_THROW.store(message, Ordering::Relaxed);
}

/// Counts a message to the player, and throws if it is the one. Owns nothing that an exception would have to drop.
pub fn throw_if_asked() {
    // Relaxed: as above.
    let until = UNTIL_THROW.load(Ordering::Relaxed);
    UNTIL_THROW.store(until.saturating_sub(1), Ordering::Relaxed);
    if until == 1 {
        throw(c"the player cannot be told");
    }
}

/// A function or object of the C++ library that the runtime brings.
fn found(name: &CStr) -> *mut c_void {
    // SAFETY: the name ends in a zero.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    assert!(!address.is_null(), "the C++ library has no {name:?}");
    address
}

fn throw(text: &CStr) -> ! {
    // SAFETY: the functions have these signatures in the Itanium C++ ABI; the object is complete when it is thrown.
    unsafe {
        let allocate: unsafe extern "C" fn(usize) -> *mut c_void =
            std::mem::transmute(found(c"__cxa_allocate_exception"));
        let construct: unsafe extern "C" fn(*mut c_void, *const libc::c_char) =
            std::mem::transmute(found(c"_ZNSt13runtime_errorC1EPKc"));
        let destroy: Destroy = std::mem::transmute(found(c"_ZNSt13runtime_errorD1Ev"));
        let throw: unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, Destroy) -> ! =
            std::mem::transmute(found(c"__cxa_throw"));
        let exception = allocate(EXCEPTION_BYTES);
        construct(exception, text.as_ptr());
        throw(exception, found(c"_ZTISt13runtime_error"), destroy)
    }
}

/// What the thread that ends inside a plugin needs.
struct Visit {
    plugin: *mut c_void,
    sender: [*const *const c_void; 1],
    /// Whether it came as far as the place where it ends.
    reached: AtomicBool,
    returned: AtomicBool,
}

/// Sends a thread into a plugin's command. What the plugin first asks of the sender ends the thread. Says how far it came.
pub fn end_a_thread_inside(plugin: Plugin<'_>) {
    // More slots than a sender has.
    let table: [*const c_void; 64] = [end_here as *const c_void; 64];
    let visit = Visit {
        plugin: plugin.as_ptr(),
        sender: [table.as_ptr()],
        reached: AtomicBool::new(false),
        returned: AtomicBool::new(false),
    };
    let argument = (&raw const visit).cast_mut().cast();
    let mut thread = 0;
    // SAFETY: `visit` lives until the thread is joined. pthread_create takes a function that may be unwound out of.
    let joined = unsafe {
        let start: extern "C" fn(*mut c_void) -> *mut c_void = std::mem::transmute(enter as *const c_void);
        libc::pthread_create(&raw mut thread, std::ptr::null(), start, argument) == 0
            && libc::pthread_join(thread, std::ptr::null_mut()) == 0
    };
    // Relaxed: the thread has been joined.
    let (reached, returned) = (
        visit.reached.load(Ordering::Relaxed),
        visit.returned.load(Ordering::Relaxed),
    );
    say(&format!(
        "!end-a-thread joined {joined}, reached {reached}, returned {returned}"
    ));
}

unsafe extern "C-unwind" fn enter(argument: *mut c_void) -> *mut c_void {
    // SAFETY: from `end_a_thread_inside`.
    let visit = unsafe { &*argument.cast::<Visit>() };
    type OnCommand =
        unsafe extern "C-unwind" fn(*mut c_void, *const c_void, *const c_void, *const CxxVector<CxxString>) -> bool;
    // SAFETY: the plugin is live and has this function; the sender has a vtable whose every function ends the thread.
    unsafe {
        let on_command: OnCommand = std::mem::transmute(CommandExecutorSlots::ON_COMMAND.entry(visit.plugin));
        on_command(
            visit.plugin,
            (&raw const visit.sender).cast(),
            std::ptr::null(),
            std::ptr::null(),
        );
    }
    // Relaxed: read after the join.
    visit.returned.store(true, Ordering::Relaxed);
    std::ptr::null_mut()
}

/// Every function of that sender.
unsafe extern "C-unwind" fn end_here(sender: *const c_void) -> *mut c_void {
    // SAFETY: `sender` is the member of that name.
    let visit = unsafe { &*sender.byte_sub(std::mem::offset_of!(Visit, sender)).cast::<Visit>() };
    // Relaxed: as above.
    visit.reached.store(true, Ordering::Relaxed);
    unsafe extern "C-unwind" {
        fn pthread_exit(value: *mut c_void) -> !;
    }
    // SAFETY: nothing above on this stack owns anything but what unwinding drops.
    unsafe { pthread_exit(std::ptr::null_mut()) }
}
