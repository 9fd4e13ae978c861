//! A world to look at: a level, its dimensions, chunks, entities and players, faked behind vtables that are laid out by the runtime's own debug information.
//!
//! Chunks are made for whoever asks, as in the real server, and are counted: those that were not deleted are somebody's leak. Everything else lives as long
//! as the process.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use endstone_spark::endstone::abi::{CxxString, CxxVector, Location, Message, OwnedChunk, UniqueId, allocate, release};

use crate::error::HostError;
use crate::runtime::Runtime;
use crate::say::say;
use crate::vtables::{DELETE, Vtables};
use crate::world_plan::{DIMENSIONS, WorldPlan};

thread_local! {
    /// Set on the server thread.
    static IS_SERVER_THREAD: Cell<bool> = const { Cell::new(false) };
}

static CHUNKS_MADE: AtomicU64 = AtomicU64::new(0);
static CHUNKS_DELETED: AtomicU64 = AtomicU64::new(0);
static CALLS: AtomicU64 = AtomicU64::new(0);

/// Where chunks find their vtable when they are made.
static CHUNK_VTABLE: AtomicU64 = AtomicU64::new(0);

type List = CxxVector<*mut c_void>;

#[repr(C)]
struct Level {
    vtable: usize,
    dimensions: Vec<*mut c_void>,
    actors: Vec<*mut c_void>,
}

#[repr(C)]
struct Dimension {
    vtable: usize,
    name: &'static str,
    chunks: Vec<(i32, i32)>,
    actors: Vec<*mut c_void>,
}

#[repr(C)]
struct Chunk {
    vtable: usize,
    x: i32,
    z: i32,
}

/// An entity; a player is one with more behind it.
#[repr(C)]
struct Actor {
    vtable: usize,
    /// Of the `OfflinePlayer` part; used in players only.
    offline_vtable: usize,
    kind: &'static str,
    runtime_id: u64,
    location: Location,
    name: String,
    ping: i64,
}

/// The world. Its objects are leaked: Endstone keeps pointers to its own as well.
#[derive(Debug, Clone, Copy)]
pub struct World {
    level: *mut c_void,
    players: &'static [*mut c_void],
}

// SAFETY: the main thread makes it and hands it to the server thread, the only one that uses it.
unsafe impl Send for World {}
// SAFETY: as above.
unsafe impl Sync for World {}

/// Stands in every slot that the stand-in does not answer.
extern "C" fn unexpected<const SLOT: usize>(_this: *const c_void) -> u64 {
    say(&format!(
        "the world was asked for slot {SLOT}, which the stand-in does not have"
    ));
    std::process::abort()
}

/// [`unexpected`] for each of so many slots.
macro_rules! unexpected {
    ($($tens:literal)*) => {
        [$(
            unexpected::<{ $tens * 10 }> as *const () as usize, unexpected::<{ $tens * 10 + 1 }> as *const () as usize,
            unexpected::<{ $tens * 10 + 2 }> as *const () as usize, unexpected::<{ $tens * 10 + 3 }> as *const () as usize,
            unexpected::<{ $tens * 10 + 4 }> as *const () as usize, unexpected::<{ $tens * 10 + 5 }> as *const () as usize,
            unexpected::<{ $tens * 10 + 6 }> as *const () as usize, unexpected::<{ $tens * 10 + 7 }> as *const () as usize,
            unexpected::<{ $tens * 10 + 8 }> as *const () as usize, unexpected::<{ $tens * 10 + 9 }> as *const () as usize,
        )*]
    };
}

impl World {
    pub fn make(runtime: &Runtime, plan: WorldPlan) -> Result<World, HostError> {
        let vtables = Vtables::read(runtime.path())?;
        let wrong = unexpected!(0 1 2 3 4 5 6 7 8 9 10 11 12);
        let build = |class, functions: &[(&'static str, usize)]| vtables.build(class, functions, &wrong);
        let actor_functions = [
            ("_ZNK8endstone5Actor7getTypeEv", kind as *const () as usize),
            ("_ZNK8endstone5Actor12getRuntimeIdEv", runtime_id as *const () as usize),
            ("_ZNK8endstone5Actor11getLocationEv", location as *const () as usize),
        ];
        let player_functions = [
            ("_ZNK8endstone6Player7getPingEv", ping as *const () as usize),
            (
                "_ZNK8endstone13CommandSender7getNameEv",
                sender_name as *const () as usize,
            ),
            ("_ZNK8endstone13CommandSender8asPlayerEv", itself as *const () as usize),
            ("_ZNK8endstone13CommandSender9asConsoleEv", nobody as *const () as usize),
            (
                "_ZNK8endstone13CommandSender11sendMessageERKNSt3__17variantIJNS1_12basic_stringIcNS1_11char_traitsIcEENS1_9allocatorIcEEEENS_12TranslatableEEEE",
                take_message as *const () as usize,
            ),
            // Endstone's own, for every player whenever commands change.
            (
                "_ZN8endstone11Permissible22recalculatePermissionsEv",
                ignore as *const () as usize,
            ),
            ("_ZNK8endstone6Player4isOpEv", is_not as *const () as usize),
            ("_ZNK8endstone6Player14updateCommandsEv", ignore as *const () as usize),
            (
                "_ZNK8endstone11Permissible13hasPermissionENSt3__112basic_stringIcNS1_11char_traitsIcEENS1_9allocatorIcEEEE",
                may_not as *const () as usize,
            ),
        ];
        let actor = build("endstone::Actor", &actor_functions)?;
        let player = build(
            "endstone::Player",
            &[&actor_functions[..], &player_functions[..]].concat(),
        )?;
        let offline = build(
            "endstone::OfflinePlayer",
            &[(
                "_ZNK8endstone13OfflinePlayer11getUniqueIdEv",
                unique_id as *const () as usize,
            )],
        )?;
        let dimension = build(
            "endstone::Dimension",
            &[
                (
                    "_ZNK8endstone9Dimension7getNameEv",
                    dimension_name as *const () as usize,
                ),
                (
                    "_ZN8endstone9Dimension15getLoadedChunksEv",
                    loaded_chunks as *const () as usize,
                ),
                (
                    "_ZNK8endstone9Dimension9getActorsEv",
                    dimension_actors as *const () as usize,
                ),
            ],
        )?;
        let level = build(
            "endstone::Level",
            &[
                ("_ZNK8endstone5Level9getActorsEv", level_actors as *const () as usize),
                ("_ZNK8endstone5Level13getDimensionsEv", dimensions as *const () as usize),
            ],
        )?;
        let chunk = build(
            "endstone::Chunk",
            &[
                (DELETE, delete_chunk as *const () as usize),
                ("_ZNK8endstone5Chunk4getXEv", chunk_x as *const () as usize),
                ("_ZNK8endstone5Chunk4getZEv", chunk_z as *const () as usize),
            ],
        )?;
        // Relaxed: written before the server thread exists.
        CHUNK_VTABLE.store(chunk as u64, Ordering::Relaxed);

        let mut numbers = (1_000..).step_by(3);
        let mut new_actor = |vtable, kind, dimension: *mut Dimension, (x, z): (i32, i32)| Actor {
            vtable,
            offline_vtable: offline,
            kind,
            runtime_id: numbers.next().unwrap_or(0),
            location: Location::new(dimension.cast(), (x * 16 + 8) as f32, 64.0, (z * 16 + 8) as f32),
            name: String::new(),
            ping: 0,
        };
        let mut places = Vec::new();
        let mut players = Vec::new();
        for (number, name) in DIMENSIONS.iter().enumerate() {
            let place = Box::into_raw(Box::new(Dimension {
                vtable: dimension,
                name,
                chunks: plan.chunks(number),
                actors: Vec::new(),
            }));
            let mut actors: Vec<*mut c_void> = Vec::new();
            for (kind, chunk) in plan.entities(number) {
                actors.push(leak(new_actor(actor, kind, place, chunk)));
            }
            if number == 0 {
                for player_number in 0..plan.players {
                    let player = leak(Actor {
                        name: format!("Player{player_number}"),
                        ping: WorldPlan::ping(player_number),
                        ..new_actor(player, "minecraft:player", place, (-2, -2))
                    });
                    actors.push(player);
                    players.push(player);
                }
            }
            // SAFETY: the dimension was made above and nobody else has it yet.
            unsafe { (*place).actors = actors };
            places.push(place);
        }
        let level = leak(Level {
            vtable: level,
            // SAFETY: as above.
            actors: places
                .iter()
                .flat_map(|place| unsafe { (**place).actors.clone() })
                .collect(),
            dimensions: places.iter().map(|place| place.cast()).collect(),
        });
        Ok(World {
            level,
            players: players.leak(),
        })
    }

    pub fn level(&self) -> *mut c_void {
        self.level
    }

    pub fn players(&self) -> List {
        arrive();
        list(self.players)
    }

    /// Says that the calling thread is the server thread; the objects may be used on no other.
    pub fn adopt_server_thread() {
        IS_SERVER_THREAD.set(true);
    }

    /// Chunks that were made and deleted, and calls of the world's functions.
    pub fn figures() -> String {
        // Relaxed: read on the server thread, which made all the calls.
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        format!(
            "chunks made {}, deleted {}; calls {}",
            read(&CHUNKS_MADE),
            read(&CHUNKS_DELETED),
            read(&CALLS)
        )
    }
}

fn leak<T>(object: T) -> *mut c_void {
    Box::into_raw(Box::new(object)).cast()
}

fn list(pointers: &[*mut c_void]) -> List {
    pointers.iter().copied().collect()
}

/// Whether the calling thread is the server thread.
pub fn is_server_thread() -> bool {
    IS_SERVER_THREAD.get()
}

/// Begins every function of the world.
fn arrive() {
    if !is_server_thread() {
        say("the world was asked on a thread that is not the server's");
        std::process::abort()
    }
    // Relaxed: a figure of one thread.
    CALLS.fetch_add(1, Ordering::Relaxed);
}

/// Declares functions that write an object through the hidden pointer.
macro_rules! answers {
    ($($function:ident: $class:ty => $result:ty = |$this:ident| $value:expr;)*) => {
        $(unsafe extern "C" fn $function(result: *mut $result, this: *const $class) -> *mut $result {
            arrive();
            // SAFETY: called through the vtable of a live object of this class, with room for the result.
            unsafe {
                let $this = &*this;
                result.write($value);
            }
            result
        })*
    };
}

answers! {
    dimensions: Level => List = |level| list(&level.dimensions);
    level_actors: Level => List = |level| list(&level.actors);
    dimension_name: Dimension => CxxString = |dimension| CxxString::new(dimension.name);
    dimension_actors: Dimension => List = |dimension| list(&dimension.actors);
    loaded_chunks: Dimension => CxxVector<OwnedChunk> = |dimension| dimension.chunks.iter().map(make_chunk).collect();
    kind: Actor => CxxString = |actor| CxxString::new(actor.kind);
    location: Actor => Location = |actor| actor.location;
    sender_name: Actor => CxxString = |actor| CxxString::new(&actor.name);
}

unsafe extern "C" fn runtime_id(this: *const Actor) -> u64 {
    arrive();
    // SAFETY: a live entity.
    unsafe { (*this).runtime_id }
}

unsafe extern "C" fn ping(this: *const Actor) -> i64 {
    arrive();
    // SAFETY: a live player.
    unsafe { (*this).ping }
}

extern "C" fn itself(this: *mut c_void) -> *mut c_void {
    this
}

extern "C" fn nobody(_this: *const c_void) -> *mut c_void {
    std::ptr::null_mut()
}

extern "C" fn take_message(_this: *const c_void, _message: *const Message) {}

extern "C" fn is_not(_this: *const c_void) -> bool {
    false
}

extern "C" fn ignore(_this: *const c_void) {}

extern "C" fn may_not(_this: *const c_void, _permission: *mut CxxString) -> bool {
    false
}

/// `this` is the `OfflinePlayer` part, which begins with the player's second word.
unsafe extern "C" fn unique_id(this: *const c_void) -> UniqueId {
    arrive();
    // SAFETY: the second word of a live player.
    let number = unsafe { (*this.byte_sub(size_of::<usize>()).cast::<Actor>()).runtime_id };
    let mut bytes = [0; 16];
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    UniqueId::from_bytes(bytes)
}

fn make_chunk((x, z): &(i32, i32)) -> OwnedChunk {
    // Relaxed: a figure of one thread; the vtable was written before it existed.
    CHUNKS_MADE.fetch_add(1, Ordering::Relaxed);
    let object = allocate(size_of::<Chunk>()).cast::<Chunk>();
    // SAFETY: a block of this size, which is aligned for anything; the object's vtable deletes it.
    unsafe {
        object.write(Chunk {
            vtable: CHUNK_VTABLE.load(Ordering::Relaxed) as usize,
            x: *x,
            z: *z,
        });
        OwnedChunk::adopt(object.cast())
    }
}

unsafe extern "C" fn delete_chunk(this: *mut Chunk) {
    arrive();
    // Relaxed: as above.
    CHUNKS_DELETED.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the owner ends the chunk's life, which began in `make_chunk`. Without its vtable a second end crashes.
    unsafe {
        (*this).vtable = 0;
        release(this.cast());
    }
}

unsafe extern "C" fn chunk_x(this: *const Chunk) -> i32 {
    arrive();
    // SAFETY: a live chunk.
    unsafe { (*this).x }
}

unsafe extern "C" fn chunk_z(this: *const Chunk) -> i32 {
    arrive();
    // SAFETY: a live chunk.
    unsafe { (*this).z }
}
