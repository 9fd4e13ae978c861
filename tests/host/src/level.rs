//! The level and its native work: functions with Bedrock's names that take a known share of each tick.
//!
//! Each function computes until a deadline on the monotonic clock, so the shares hold on a busy machine as well: a preempted function is
//! late by what it lost, not by a multiple. The clock is read once per about ten microseconds; nearly every sample of such a function
//! therefore has it as its innermost frame. Shares of one kind of work:
//!
//! | work | self | below it |
//! |---|---|---|
//! | `Level::tickEntities()` | 20 % | `Actor::normalTick()` 50 %, `Mob::aiStep()` below that 30 % |
//! | `CircuitSystem::evaluate(BlockSource*)` | 40 % | `CircuitSceneGraph::update(BlockSource*)` 60 % |
//! | `ChunkSource::tickChunks()` | 30 % | `LevelChunk::tick(BlockSource&, Tick const&)` 70 % |

use std::ffi::c_void;
use std::hint::black_box;

use crate::load::Load;

/// Bytes into `Level`'s vtable where Endstone's detour reads the tick number (`getCurrentTick`).
const CURRENT_TICK_SLOT: usize = 0x288 / 8;
const LEVEL_SLOTS: usize = 400;
/// Rounds between two looks at the clock: about ten microseconds.
const ROUNDS: u64 = 8192;

/// What Endstone takes for Bedrock's level. Only the tick number is ever asked for.
#[repr(C)]
#[derive(Debug)]
pub struct Level {
    vtable: &'static [usize; LEVEL_SLOTS],
    pub current_tick: u64,
    entities_nanos: u64,
    redstone_nanos: u64,
    chunks_nanos: u64,
    state: u64,
}

impl Level {
    pub fn new(load: Load, tick_nanos: u64) -> Level {
        let mut vtable = Box::new([unexpected as *const () as usize; LEVEL_SLOTS]);
        vtable[CURRENT_TICK_SLOT] = current_tick as *const () as usize;
        Level {
            vtable: Box::leak(vtable),
            current_tick: 0,
            entities_nanos: Load::nanos(load.entities, tick_nanos),
            redstone_nanos: Load::nanos(load.redstone, tick_nanos),
            chunks_nanos: Load::nanos(load.chunks, tick_nanos),
            state: 1,
        }
    }
}

unsafe extern "C" fn current_tick(level: *const Level) -> u64 {
    // SAFETY: Endstone calls this on the level that the server thread ticks, on that thread.
    unsafe { (*level).current_tick }
}

unsafe extern "C" fn unexpected(_level: *const c_void) -> u64 {
    crate::say::say("Endstone asked the level for something that the stand-in does not have");
    std::process::abort()
}

/// The original `Level::tick()`, which Endstone's detour calls after the plugins' tasks.
///
/// # Safety
/// `level` is the stand-in's own level, ticked by one thread.
#[unsafe(export_name = "_ZN5Level4tickEv")]
pub unsafe extern "C" fn tick(level: *mut Level) {
    // SAFETY: by the caller's promise; Endstone hands on the pointer that the server thread passed to the hooked address.
    let level = unsafe { &mut *level };
    if level.entities_nanos > 0 {
        tick_entities(level);
    }
    if level.redstone_nanos > 0 {
        evaluate(level);
    }
    if level.chunks_nanos > 0 {
        tick_chunks(level);
    }
    black_box(&level.state);
}

/// Nanoseconds of the monotonic clock.
#[inline(always)]
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists on every Linux and `time` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Computes in the calling function until the clock reads `deadline`.
#[inline(always)]
fn compute_until(level: &mut Level, deadline: u64) {
    while now() < deadline {
        let mut state = level.state;
        for _ in 0..ROUNDS {
            state = black_box(
                state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407),
            );
        }
        level.state = state;
    }
}

#[inline(never)]
#[unsafe(export_name = "_ZN5Level12tickEntitiesEv")]
extern "C" fn tick_entities(level: &mut Level) {
    let start = now();
    normal_tick(level, start);
    let deadline = start + level.entities_nanos;
    compute_until(level, deadline);
}

#[inline(never)]
#[unsafe(export_name = "_ZN5Actor10normalTickEv")]
extern "C" fn normal_tick(level: &mut Level, start: u64) {
    ai_step(level, start);
    let deadline = start + level.entities_nanos * 80 / 100;
    compute_until(level, deadline);
}

#[inline(never)]
#[unsafe(export_name = "_ZN3Mob6aiStepEv")]
extern "C" fn ai_step(level: &mut Level, start: u64) {
    let deadline = start + level.entities_nanos * 30 / 100;
    compute_until(level, deadline);
}

#[inline(never)]
#[unsafe(export_name = "_ZN13CircuitSystem8evaluateEP11BlockSource")]
extern "C" fn evaluate(level: &mut Level) {
    let start = now();
    update_graph(level, start);
    let deadline = start + level.redstone_nanos;
    compute_until(level, deadline);
}

#[inline(never)]
#[unsafe(export_name = "_ZN17CircuitSceneGraph6updateEP11BlockSource")]
extern "C" fn update_graph(level: &mut Level, start: u64) {
    let deadline = start + level.redstone_nanos * 60 / 100;
    compute_until(level, deadline);
}

#[inline(never)]
#[unsafe(export_name = "_ZN11ChunkSource10tickChunksEv")]
extern "C" fn tick_chunks(level: &mut Level) {
    let start = now();
    tick_chunk(level, start);
    let deadline = start + level.chunks_nanos;
    compute_until(level, deadline);
}

#[inline(never)]
#[unsafe(export_name = "_ZN10LevelChunk4tickER11BlockSourceRK4Tick")]
extern "C" fn tick_chunk(level: &mut Level, start: u64) {
    let deadline = start + level.chunks_nanos * 70 / 100;
    compute_until(level, deadline);
}
