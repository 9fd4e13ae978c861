//! The level and its native work: functions with Bedrock's names that take a known share of each tick.
//!
//! Each function computes until a deadline on the monotonic clock, so the shares are of wall time and hold on a busy machine as well
//! ([`Turns`] makes up for what preemption takes). The clock is read once per about ten microseconds; nearly every sample of such a function
//! therefore has it as its innermost frame. Shares of one kind of work:
//!
//! | work | self | below it |
//! |---|---|---|
//! | `Level::tickEntities()` | 20 % | `Actor::normalTick()` 50 %, `Mob::aiStep()` below that 30 % |
//! | `CircuitSystem::evaluate(BlockSource*)` | 40 % | `CircuitSceneGraph::update(BlockSource*)` 60 % |
//! | `ChunkSource::tickChunks()` | 30 % | `LevelChunk::tick(BlockSource&, Tick const&)` 70 % |
//!
//! In a pattern (`!pattern`) each tick computes for so many milliseconds instead, in a function of its own by their number: `Weather::tick()` below 20,
//! `Spawner::tick(BlockSource&)` below 50, `VillageManager::tick()` below 100, `LevelStorage::save()` from there on.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::hint::black_box;

use crate::load::{Load, Turn, Turns};
use crate::pattern::{Beats, Lengths};
use crate::steady::{self, Steady};

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
    entities: Turns,
    redstone: Turns,
    chunks: Turns,
    pub steady: Steady,
    state: u64,
    /// What the work of the next ticks takes, in nanoseconds, instead of the usual.
    pub pattern: VecDeque<u64>,
    pub lengths: Lengths,
    pub beats: Beats,
    /// When the shares were asked for last.
    shares_since: u64,
    pub tasks: Tasks,
}

/// The time that plugins' tasks take: from the server's call of `Level::tick` to the original, which Endstone's detour calls after them.
#[derive(Debug, Default)]
pub struct Tasks {
    begun: u64,
    ticks: u64,
    total: u64,
    longest: u64,
}

impl Tasks {
    pub fn begin(&mut self, now: u64) {
        self.begun = now;
    }

    fn end(&mut self, now: u64) {
        let nanos = now.saturating_sub(self.begun);
        self.ticks += 1;
        self.total += nanos;
        self.longest = self.longest.max(nanos);
    }

    /// Microseconds since this was asked last.
    pub fn take(&mut self) -> String {
        let text = format!(
            "ticks={} mean={:.1} longest={:.1}",
            self.ticks,
            self.total as f64 / 1e3 / self.ticks.max(1) as f64,
            self.longest as f64 / 1e3
        );
        *self = Tasks::default();
        text
    }
}

impl Level {
    pub fn new(load: Load, tick_nanos: u64) -> Level {
        let mut vtable = Box::new([unexpected as *const () as usize; LEVEL_SLOTS]);
        vtable[CURRENT_TICK_SLOT] = current_tick as *const () as usize;
        Level {
            vtable: Box::leak(vtable),
            current_tick: 0,
            entities: Turns::new(load.entities, tick_nanos),
            redstone: Turns::new(load.redstone, tick_nanos),
            chunks: Turns::new(load.chunks, tick_nanos),
            steady: Steady::new(),
            state: 1,
            pattern: VecDeque::new(),
            lengths: Lengths::default(),
            beats: Beats::default(),
            shares_since: now(),
            tasks: Tasks::default(),
        }
    }

    /// What the work really took of the wall time since this was asked last. On a busy machine that is the truth a profile has to show,
    /// not what was asked for.
    pub fn take_shares(&mut self) -> String {
        let until = now();
        let wall = until.saturating_sub(self.shares_since).max(1) as f64;
        self.shares_since = until;
        let percent = |turns: &mut Turns| turns.take_spent() as f64 * 100.0 / wall;
        format!(
            "entities={:.2} redstone={:.2} chunks={:.2}",
            percent(&mut self.entities),
            percent(&mut self.redstone),
            percent(&mut self.chunks)
        )
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
    level.tasks.end(now());
    if let Some(nanos) = level.pattern.pop_front() {
        return tick_for(level, nanos);
    }
    if level.entities.any() {
        tick_entities(level);
    }
    if level.redstone.any() {
        evaluate(level);
    }
    if level.chunks.any() {
        tick_chunks(level);
    }
    if level.steady.steps > 0 {
        steady::tick(&mut level.steady);
    }
    black_box(&level.state);
}

fn tick_for(level: &mut Level, nanos: u64) {
    let deadline = now() + nanos;
    match nanos / 1_000_000 {
        0..20 => tick_weather(level, deadline),
        20..50 => tick_spawner(level, deadline),
        50..100 => tick_villages(level, deadline),
        _ => save(level, deadline),
    }
}

#[inline(never)]
#[unsafe(export_name = "_ZN7Weather4tickEv")]
extern "C" fn tick_weather(level: &mut Level, deadline: u64) {
    compute_until(level, deadline);
    black_box(1);
}

#[inline(never)]
#[unsafe(export_name = "_ZN7Spawner4tickER11BlockSource")]
extern "C" fn tick_spawner(level: &mut Level, deadline: u64) {
    compute_until(level, deadline);
    black_box(2);
}

#[inline(never)]
#[unsafe(export_name = "_ZN14VillageManager4tickEv")]
extern "C" fn tick_villages(level: &mut Level, deadline: u64) {
    compute_until(level, deadline);
    black_box(3);
}

#[inline(never)]
#[unsafe(export_name = "_ZN12LevelStorage4saveEv")]
extern "C" fn save(level: &mut Level, deadline: u64) {
    compute_until(level, deadline);
    black_box(4);
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
    let turn = level.entities.begin(now());
    normal_tick(level, &turn);
    compute_until(level, turn.part(100));
    level.entities.end(turn, now());
}

#[inline(never)]
#[unsafe(export_name = "_ZN5Actor10normalTickEv")]
extern "C" fn normal_tick(level: &mut Level, turn: &Turn) {
    ai_step(level, turn);
    compute_until(level, turn.part(80));
}

#[inline(never)]
#[unsafe(export_name = "_ZN3Mob6aiStepEv")]
extern "C" fn ai_step(level: &mut Level, turn: &Turn) {
    compute_until(level, turn.part(30));
}

#[inline(never)]
#[unsafe(export_name = "_ZN13CircuitSystem8evaluateEP11BlockSource")]
extern "C" fn evaluate(level: &mut Level) {
    let turn = level.redstone.begin(now());
    update_graph(level, &turn);
    compute_until(level, turn.part(100));
    level.redstone.end(turn, now());
}

#[inline(never)]
#[unsafe(export_name = "_ZN17CircuitSceneGraph6updateEP11BlockSource")]
extern "C" fn update_graph(level: &mut Level, turn: &Turn) {
    compute_until(level, turn.part(60));
}

#[inline(never)]
#[unsafe(export_name = "_ZN11ChunkSource10tickChunksEv")]
extern "C" fn tick_chunks(level: &mut Level) {
    let turn = level.chunks.begin(now());
    tick_chunk(level, &turn);
    compute_until(level, turn.part(100));
    level.chunks.end(turn, now());
}

#[inline(never)]
#[unsafe(export_name = "_ZN10LevelChunk4tickER11BlockSourceRK4Tick")]
extern "C" fn tick_chunk(level: &mut Level, turn: &Turn) {
    compute_until(level, turn.part(70));
}

#[cfg(test)]
mod tests {
    use object::{Object, ObjectSymbol};

    /// The functions as a profile has to show them. The names are written by hand, so they may be wrong.
    #[test]
    fn the_executable_has_functions_with_bedrocks_names() {
        let file = std::fs::read("/proc/self/exe").expect("this program's file");
        let file = object::File::parse(&*file).expect("an ELF file");
        let names: Vec<String> = file
            .symbols()
            .filter_map(|symbol| {
                cpp_demangle::Symbol::new(symbol.name_bytes().ok()?)
                    .ok()?
                    .demangle()
                    .ok()
            })
            .collect();
        for wanted in [
            "DedicatedServer::start(std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char> > const&, Bedrock::ActivationArguments const&)",
            "ServerInstance::_serverThread()",
            "ServerInstance::_update()",
            "ServerInstance::_sleepUntilNextTick(unsigned long)",
            "Level::tick()",
            "Level::tickEntities()",
            "Actor::normalTick()",
            "Mob::aiStep()",
            "CircuitSystem::evaluate(BlockSource*)",
            "CircuitSceneGraph::update(BlockSource*)",
            "ChunkSource::tickChunks()",
            "LevelChunk::tick(BlockSource&, Tick const&)",
            "Weather::tick()",
            "Spawner::tick(BlockSource&)",
            "VillageManager::tick()",
            "LevelStorage::save()",
            "Simulation::tick()",
            "Simulation::moveMob()",
            "PathFinder::search(unsigned long, unsigned int)",
        ] {
            assert!(names.iter().any(|name| name == wanted), "no function {wanted}");
        }
    }
}
