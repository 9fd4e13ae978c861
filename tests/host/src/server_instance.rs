//! Bedrock's own objects as far as Endstone looks into them: zeroed memory with a few pointers in it.
//!
//! ```text
//! ServerInstance +0x090 -> Minecraft +0x0b8 -> MinecraftCommands +0x010 -> CommandRegistry (empty maps: enums, commands)
//!                +0x130 server thread's id      +0x130 game session: virtual function 2 is "request shutdown"
//! ```
//! Offsets are those that Endstone 0.11.14 reads (`ServerInstance::getMinecraft`, `Minecraft::getCommands`,
//! `Minecraft::requestServerShutdown`, `EndstoneServer::isPrimaryThread`).

use std::ffi::c_void;
use std::sync::Arc;

use crate::console::Console;

const MINECRAFT: usize = 0x90;
const THREAD_ID: usize = 0x130;
const COMMANDS: usize = 0xb8;
const REGISTRY: usize = 0x10;
const SESSION: usize = 0x130;
/// `std::map`s of the registry that Endstone walks: enums and commands. An empty one points to its own end node, which follows.
const EMPTY_MAPS: [usize; 2] = [0x140, 0x1b8];

const INSTANCE_BYTES: usize = 64 << 10;
const PART_BYTES: usize = 4 << 10;

/// The fake instance. It lives as long as the process, as the server's does.
#[derive(Debug, Clone, Copy)]
pub struct ServerInstance {
    memory: *mut u8,
}
// SAFETY: the memory is leaked, written before the server thread exists and, for the thread id, by that thread only.
unsafe impl Send for ServerInstance {}

#[repr(C)]
struct Session {
    vtable: *const [usize; 3],
    console: *const Console,
}

impl ServerInstance {
    pub fn new(console: Arc<Console>) -> ServerInstance {
        let (instance, minecraft) = (zeroed(INSTANCE_BYTES), zeroed(PART_BYTES));
        let (commands, registry) = (zeroed(PART_BYTES), zeroed(PART_BYTES));
        let vtable = Box::leak(Box::new([0, 0, request_shutdown as *const () as usize]));
        // SAFETY: every offset lies in its allocation, which is suitably aligned.
        unsafe {
            put(instance, MINECRAFT, minecraft as usize);
            put(minecraft, COMMANDS, commands as usize);
            put(commands, REGISTRY, registry as usize);
            for map in EMPTY_MAPS {
                put(registry, map, registry as usize + map + size_of::<usize>());
            }
            minecraft.add(SESSION).cast::<Session>().write(Session {
                vtable,
                console: Arc::into_raw(console),
            });
        }
        ServerInstance { memory: instance }
    }

    pub fn address(self) -> *mut c_void {
        self.memory.cast()
    }

    /// Makes the calling thread Endstone's primary thread.
    pub fn adopt_server_thread(self) {
        // SAFETY: the offset lies in the instance; Endstone reads the word on any thread, as in the real server.
        unsafe { put(self.memory, THREAD_ID, libc::pthread_self() as usize) }
    }
}

unsafe extern "C" fn request_shutdown(session: *const Session) {
    // SAFETY: Endstone calls this on the session inside the fake Minecraft; the console is never freed.
    unsafe { (*(*session).console).request_stop() }
}

/// Bedrock's record of a command as far as Endstone reads it: the permission level at 0x60.
#[repr(C)]
#[derive(Debug)]
pub struct Signature {
    unused: [u8; 0x60],
    permission_level: u8,
}

/// Bedrock's level of the commands that operators may use.
const GAME_DIRECTORS: u8 = 1;
static SIGNATURE: Signature = Signature {
    unused: [0; 0x60],
    permission_level: GAME_DIRECTORS,
};

/// Replaces `CommandRegistry::findCommand`, which Endstone asks for the permission level of each of Bedrock's and its own commands.
pub extern "C" fn find_command(_registry: *const c_void, _name: *const c_void) -> *const Signature {
    &raw const SIGNATURE
}

unsafe fn put(memory: *mut u8, offset: usize, value: usize) {
    // SAFETY: by the callers' constants.
    unsafe { memory.add(offset).cast::<usize>().write_volatile(value) }
}

fn zeroed(bytes: usize) -> *mut u8 {
    // u128: aligned for whatever Endstone reads from it.
    vec![0u128; bytes / size_of::<u128>()].leak().as_mut_ptr().cast()
}
