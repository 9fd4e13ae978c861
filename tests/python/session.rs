//! The interpreter of this process, and sessions that follow it.

// Each program that uses this file uses its own part.
#![allow(dead_code)]

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use endstone_spark::model::{CodeId, MonotonicNanos, StackEnd};
use endstone_spark::native::{Unwinder, current_modules_unwinder};
use endstone_spark::python::{AttachError, Attribution, Runtime, attach};
use endstone_spark::shadow::{ReadBuffer, ShadowRead, ShadowTable};
use endstone_spark::sys::thread::current_tid;

use super::interpreter::Interpreter;

static PYTHON: OnceLock<Interpreter> = OnceLock::new();
static UNWINDER: OnceLock<Arc<Unwinder>> = OnceLock::new();

/// Starts this library's interpreter on this thread, which then holds the lock. Once per process.
pub fn start(library: &Path) -> &'static Interpreter {
    PYTHON.set(Interpreter::start(library)).ok().unwrap();
    python()
}

/// The interpreter that runs.
pub fn python() -> &'static Interpreter {
    PYTHON.get().unwrap()
}

/// Knows the modules that were loaded when it was first asked for.
pub fn unwinder() -> &'static Arc<Unwinder> {
    UNWINDER.get_or_init(|| Arc::new(current_modules_unwinder()))
}

/// A session, if it can begin. To be called with the lock.
pub fn try_attach() -> Result<Attribution, AttachError> {
    python().unlocked(|| {
        let walk: Arc<Unwinder> = Arc::clone(unwinder());
        attach(Runtime::discover().unwrap(), ShadowTable::global(), walk)
    })
}

/// A session. To be called with the lock.
pub fn session() -> Attribution {
    try_attach().unwrap()
}

/// Ends it. To be called with the lock.
pub fn detach(attribution: Attribution) {
    python().unlocked(|| attribution.detach()).unwrap();
}

/// Return addresses and stack pointers after the returns, from here outwards.
#[inline(never)]
pub fn unwind_here(frames: &mut Vec<(u64, u64)>) {
    let (pc, sp, bp): (u64, u64, u64);
    // SAFETY: reads three registers at one point.
    unsafe {
        std::arch::asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) pc, out(reg) sp, out(reg) bp);
    }
    assert_eq!(unwinder().unwind(pc, sp, bp, frames), StackEnd::Root);
}

/// The functions on this thread's shadow stack, outermost first, if it has one.
pub fn shadow_stack() -> Option<Vec<CodeId>> {
    let mut buffer = ReadBuffer::new();
    match ShadowTable::global().read(current_tid(), &mut buffer) {
        ShadowRead::Frames { count, .. } => Some(buffer.entries(count).iter().map(|entry| entry.code).collect()),
        _ => None,
    }
}

/// What the session's code ids stand for, the qualified names.
pub fn qualified_names(attribution: &Attribution) -> HashMap<CodeId, String> {
    let codes = attribution.freeze().into_iter();
    codes.map(|(id, info)| (id, info.qualified_name)).collect()
}

/// Asks for an audit at this thread's next call, as the sampler's handler does after a sample: each time a second later.
pub fn ask_for_audit() {
    static NOW: AtomicU64 = AtomicU64::new(1 << 60);
    let now = NOW.fetch_add(1_000_000_000, Ordering::Relaxed);
    ShadowTable::global().ask_for_audit(current_tid(), MonotonicNanos(now));
}

/// How many seconds something lasts that is the better the longer it does: `SPARK_TORTURE_SECONDS`, or these.
pub fn torture_seconds(usual: u64) -> u64 {
    let wanted = std::env::var("SPARK_TORTURE_SECONDS").ok();
    wanted.and_then(|wanted| wanted.parse().ok()).unwrap_or(usual)
}

/// Runs source text in `__main__`; an exception is printed and fails the test.
pub fn run(source: &str) {
    python().run(source);
}
