//! What the handler finds without being told: made once, before the first signal, and never freed.
//!
//! A handler may be late (its thread was not scheduled), or be called by another handler that was installed over it and kept its address. So everything it
//! touches first lives as long as the process: about 2 MB after the first session. Only the module tables, the large part, are freed, when no
//! handler can hold one.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use super::capture::Capture;
use super::table::ModuleTable;
use super::unwind::Context;
use crate::limits;
use crate::shadow::ShadowTable;
use crate::sync::{Pool, Published, Slots};
use crate::sys::mem;
use crate::sys::signal::Previous;

/// What `SIGPROF` did before us. Null before the first start.
pub(super) static PREVIOUS: AtomicPtr<Previous> = AtomicPtr::new(std::ptr::null_mut());

static ENGINE: AtomicPtr<Engine> = AtomicPtr::new(std::ptr::null_mut());

/// See the module's text.
#[derive(Debug)]
pub(super) struct Engine {
    /// The process that made this. A child after `fork` has this memory, but no sampler.
    pub(super) process: i32,
    pub(super) slots: Slots<Capture>,
    pub(super) contexts: Pool<Context>,
    pub(super) modules: Published<ModuleTable>,
    pub(super) shadow: &'static ShadowTable,
    /// Whether memory outside known bounds can be read without the risk of a fault.
    pub(super) can_read: AtomicBool,
    /// Signals of others.
    pub(super) foreign: AtomicU64,
    /// Signals of ours whose request was no longer open.
    pub(super) late: AtomicU64,
}

/// The engine, if there has been a session.
#[inline]
pub(super) fn get() -> Option<&'static Engine> {
    // Acquire: pairs with the Release in `get_or_make`.
    let engine = ENGINE.load(Ordering::Acquire);
    // SAFETY: null, or a Box that `get_or_make` leaked.
    unsafe { engine.as_ref() }
}

/// The engine, made at the first call. Must be called from one thread at a time for `shadow` to be the first caller's; a second engine that lost the
/// race is dropped.
pub(super) fn get_or_make(shadow: &'static ShadowTable) -> &'static Engine {
    if let Some(engine) = get() {
        return engine;
    }
    let process = std::process::id() as i32;
    let made = Box::into_raw(Box::new(Engine {
        process,
        slots: Slots::new((0..limits::CAPTURE_SLOTS).map(|_| Capture::new())),
        contexts: Pool::new((0..limits::UNWIND_CONTEXTS).map(|_| Context::new())),
        modules: Published::new(),
        shadow,
        can_read: AtomicBool::new(mem::can_read_own(process)),
        foreign: AtomicU64::new(0),
        late: AtomicU64::new(0),
    }));
    // AcqRel: Release publishes the engine to handlers; Acquire on failure takes the other one as it was published.
    match ENGINE.compare_exchange(std::ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: `made` was leaked just now and is never freed.
        Ok(_) => unsafe { &*made },
        Err(first) => {
            // SAFETY: `made` was not published, so it is ours alone; `first` was, and is never freed.
            unsafe {
                drop(Box::from_raw(made));
                &*first
            }
        }
    }
}
