//! A native plugin as an author would write one: every tick it digs for [`TICK_NANOS`], and counts how long it really took.
//!
//! It speaks to Endstone through the profiler's own bindings, which the profiler's tests compare with the released runtime.

mod endstone;

use endstone::abi::{
    CommandExecutorSlots, CxxFunction, CxxString, CxxVector, LoadOrder, PermissionDefault, Plugin, PluginBase,
    PluginDescription, PluginSlots, PluginVtable, RttiUnavailable,
};
use std::ffi::c_void;
use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Nanoseconds of work in each tick of 50 ms: 8 %.
const TICK_NANOS: u64 = 4_000_000;

/// Nanoseconds spent so far. Tests read it by its name.
#[unsafe(no_mangle)]
pub static QUARRY_SPENT_NANOS: AtomicU64 = AtomicU64::new(0);

/// The object. Endstone knows its first 64 bytes; the rest is ours.
#[repr(C)]
struct Quarry {
    base: PluginBase,
    description: PluginDescription,
}

/// Makes the plugin. Endstone owns it from then on and deletes it through its vtable; null when there is no C++ runtime.
#[unsafe(no_mangle)]
pub extern "C" fn init_endstone_plugin() -> *mut c_void {
    let made = || {
        Ok::<_, RttiUnavailable>(Quarry {
            base: PluginBase::new(vtable()?),
            description: description(),
        })
    };
    made().map_or(std::ptr::null_mut(), |quarry| Box::into_raw(Box::new(quarry)).cast())
}

fn description() -> PluginDescription {
    let text = CxxString::new;
    PluginDescription {
        name: text("quarry"),
        version: text(env!("CARGO_PKG_VERSION")),
        full_name: text(concat!("quarry v", env!("CARGO_PKG_VERSION"))),
        api_version: text("0.11"),
        description: text("Digs for a while every tick"),
        load: LoadOrder::PostWorld,
        authors: CxxVector::of_texts(&["Endstone Spark"]),
        contributors: CxxVector::empty(),
        website: text(""),
        prefix: text("Quarry"),
        provides: CxxVector::empty(),
        depend: CxxVector::empty(),
        soft_depend: CxxVector::empty(),
        load_before: CxxVector::empty(),
        default_permission: PermissionDefault::Operator,
        commands: CxxVector::empty(),
        permissions: CxxVector::empty(),
    }
}

fn vtable() -> Result<&'static PluginVtable, RttiUnavailable> {
    static VTABLE: OnceLock<PluginVtable> = OnceLock::new();
    if let Some(vtable) = VTABLE.get() {
        return Ok(vtable);
    }
    let made = PluginVtable::new(
        c"N6quarry6QuarryE",
        destroy as *const c_void,
        destroy_and_free as *const c_void,
        &[
            (CommandExecutorSlots::ON_COMMAND, on_command as *const c_void),
            (PluginSlots::GET_DESCRIPTION, get_description as *const c_void),
            (PluginSlots::ON_LOAD, nothing as *const c_void),
            (PluginSlots::ON_ENABLE, on_enable as *const c_void),
            (PluginSlots::ON_DISABLE, nothing as *const c_void),
        ],
    )?;
    Ok(VTABLE.get_or_init(|| made))
}

unsafe extern "C" fn destroy(this: *mut Quarry) {
    // SAFETY: the caller ends the plugin's life.
    unsafe { std::ptr::drop_in_place(this) }
}

unsafe extern "C" fn destroy_and_free(this: *mut Quarry) {
    // SAFETY: the caller ends the plugin's life, which began as a Box in `init_endstone_plugin`.
    drop(unsafe { Box::from_raw(this) });
}

unsafe extern "C" fn get_description(this: *const Quarry) -> *const PluginDescription {
    // SAFETY: `this` is one of our plugins, alive.
    unsafe { &raw const (*this).description }
}

unsafe extern "C" fn nothing(_this: *mut Quarry) {}

unsafe extern "C" fn on_command(_: *mut Quarry, _: *mut c_void, _: *const c_void, _: *const c_void) -> bool {
    false
}

/// Unwinds: the host may throw.
unsafe extern "C-unwind" fn on_enable(this: *mut Quarry) {
    // SAFETY: `this` is one of our plugins, alive, and the host does not come back into it before this call returns.
    let quarry = unsafe { &*this };
    // SAFETY: the same object, as the host knows it.
    if let (Some(server), Some(own)) = (quarry.base.server(), unsafe { Plugin::borrow(this.cast()) })
        && let Some(scheduler) = server.scheduler()
    {
        // The host cancels the task when the plugin is disabled.
        scheduler.run_task_timer(own, CxxFunction::new(work), 0, 1);
    }
}

/// One tick. Not inlined: profiles name it.
#[inline(never)]
fn work() {
    let begun = Instant::now();
    let until = Duration::from_nanos(TICK_NANOS);
    let mut stone = 1;
    while begun.elapsed() < until {
        stone = dig(stone);
    }
    black_box(stone);
    // Relaxed: a figure for people, written by one thread.
    QUARRY_SPENT_NANOS.fetch_add(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
}

/// Some microseconds of work in a function of its own.
#[inline(never)]
fn dig(mut stone: u64) -> u64 {
    for _ in 0..2_000 {
        stone = black_box(stone.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
    stone
}
