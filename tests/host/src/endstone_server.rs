//! The real `EndstoneServer`, its plugin manager, scheduler, loaders and console sender, as the stand-in drives them.

use std::ffi::c_void;

use crate::abi::{CxxString, CxxVector, ServerCommandEvent, ServerLoadEvent, vcall, vcall_sret};
use crate::command_map;
use crate::error::HostError;
use crate::runtime::{Runtime, symbol};
use crate::server_instance::ServerInstance;

/// Byte offset of `command_map_` in EndstoneServer 0.11.14.
const COMMAND_MAP: usize = 104;
/// Virtual functions of `Server`, and what stands before the first one (offset to top, type information).
const SERVER_SLOTS: usize = 48;
const VTABLE_HEAD: usize = 2;
/// `ICancellable`'s part of ServerCommandEvent's vtable.
const CANCELLABLE_VTABLE: usize = 0x58;

mod slot {
    pub const GET_VERSION: usize = 3;
    pub const GET_PLUGIN_MANAGER: usize = 8;
    pub const GET_COMMAND_SENDER: usize = 10;
    pub const GET_ONLINE_PLAYERS: usize = 14;
    pub const GET_MAX_PLAYERS: usize = 15;
    pub const GET_PORT: usize = 18;
    pub const GET_PORT_V6: usize = 19;
    pub const GET_ONLINE_MODE: usize = 20;
    pub const RELOAD: usize = 23;
    pub const RELOAD_DATA: usize = 24;
    pub const PLUGIN_MANAGER_CALL_EVENT: usize = 15;
    pub const SENDER_SEND_ERROR: usize = 18;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum LoadOrder {
    PostWorld = 1,
}

/// The running server. Owned by Endstone's service locator, which destroys it when the server thread stops.
#[derive(Debug, Clone, Copy)]
pub struct EndstoneServer {
    server: *mut c_void,
    enable_plugins: usize,
    load_event: usize,
    command_event: usize,
}
// SAFETY: the object is made on the main thread and handed to the server thread once, as in the real server.
unsafe impl Send for EndstoneServer {}

impl EndstoneServer {
    /// Constructs the server, which loads all plugins, and starts those that want to start before the world.
    pub fn create(runtime: &Runtime, instance: ServerInstance) -> Result<EndstoneServer, HostError> {
        let emplace = runtime.address(symbol::EMPLACE_SERVER)?;
        let init = runtime.address(symbol::SERVER_INIT)?;
        let enable_plugins = runtime.address(symbol::ENABLE_PLUGINS)?;
        let load_event = runtime.address(symbol::SERVER_LOAD_EVENT)?;
        let command_event = runtime.address(symbol::SERVER_COMMAND_EVENT)?;
        // SAFETY: the functions have these signatures in Endstone 0.11.14 and are called in the real order on the real thread.
        let server = unsafe {
            let emplace: unsafe extern "C-unwind" fn() -> *mut c_void = std::mem::transmute(emplace);
            let init: unsafe extern "C-unwind" fn(*mut c_void, *mut c_void) = std::mem::transmute(init);
            let server = emplace();
            overlay_vtable(server);
            *server.byte_add(COMMAND_MAP).cast::<*mut c_void>() = command_map::create(server);
            init(server, instance.address());
            server
        };
        Ok(EndstoneServer {
            server,
            enable_plugins,
            load_event,
            command_event,
        })
    }

    pub fn version(&self) -> String {
        // SAFETY: the server lives until the server thread stops, and this slot returns a string.
        unsafe { vcall_sret!(self.server, slot::GET_VERSION, CxxString) }.text()
    }

    pub fn enable_plugins(&self, order: LoadOrder) {
        // SAFETY: the signature of the private method; called on the server thread.
        unsafe {
            let enable: unsafe extern "C-unwind" fn(*mut c_void, i32) = std::mem::transmute(self.enable_plugins);
            enable(self.server, order as i32);
        }
    }

    /// The event that tells plugins that all of them are enabled.
    pub fn call_load_event(&self) {
        let mut event = ServerLoadEvent {
            vtable: self.load_event + 16,
            asynchronous: false,
            cancelled: false,
            load_type: 0,
        };
        self.call_event((&raw mut event).cast());
    }

    /// The event of a line typed on the console. Returns the line as plugins left it, or None if one cancelled it.
    pub fn call_command_event(&self, line: &str) -> Option<String> {
        let mut event = ServerCommandEvent {
            vtable: self.command_event + 16,
            asynchronous: false,
            cancelled: false,
            cancellable_vtable: self.command_event + CANCELLABLE_VTABLE,
            sender: self.console(),
            command: CxxString::new(line),
        };
        self.call_event((&raw mut event).cast());
        (!event.cancelled).then(|| event.command.text())
    }

    fn call_event(&self, event: *mut c_void) {
        // SAFETY: both objects are live; the event has the layout and vtable of its class.
        unsafe {
            let manager = vcall!(self.server, slot::GET_PLUGIN_MANAGER, fn() -> *mut c_void);
            vcall!(manager, slot::PLUGIN_MANAGER_CALL_EVENT, fn(*mut c_void), event);
        }
    }

    /// The real console command sender.
    pub fn console(&self) -> *mut c_void {
        // SAFETY: the slot returns a reference that lives as long as the server.
        unsafe { vcall!(self.server, slot::GET_COMMAND_SENDER, fn() -> *mut c_void) }
    }

    /// What `/reload` does: disable, clear, load and enable all plugins, then tell them.
    pub fn reload(&self) {
        // SAFETY: a virtual function without arguments; called on the server thread between two ticks.
        unsafe { vcall!(self.server, slot::RELOAD, fn()) }
    }

    /// Executes a line, without its slash, as the console.
    pub fn run_command(&self, line: &str) {
        // SAFETY: the server owns the map that `create` put there, and both live until the server thread stops.
        unsafe {
            let map = *self.server.byte_add(COMMAND_MAP).cast::<*mut c_void>();
            command_map::run(map, self.console(), line);
        }
    }
}

/// Sends an error to a command sender, in the server's colours.
pub fn send_error(sender: *mut c_void, text: &str) {
    let message = crate::abi::Message::text(text);
    // SAFETY: the sender is live and the message has the layout of a string message.
    unsafe {
        vcall!(
            sender,
            slot::SENDER_SEND_ERROR,
            fn(*const crate::abi::Message),
            &raw const message
        )
    }
}

/// Answers what would otherwise be asked of a level or a network that the stand-in does not have.
unsafe fn overlay_vtable(server: *mut c_void) {
    let place = server.cast::<*const usize>();
    // SAFETY: the object begins with a pointer to a vtable of 48 slots and the two words before them.
    let mut vtable: Box<[usize; VTABLE_HEAD + SERVER_SLOTS]> = unsafe {
        Box::new(std::array::from_fn(|index| {
            *(*place).offset(index as isize - VTABLE_HEAD as isize)
        }))
    };
    let answers = [
        (slot::GET_ONLINE_PLAYERS, no_players as *const () as usize),
        (slot::GET_MAX_PLAYERS, max_players as *const () as usize),
        (slot::GET_PORT, port as *const () as usize),
        (slot::GET_PORT_V6, port_v6 as *const () as usize),
        (slot::GET_ONLINE_MODE, online_mode as *const () as usize),
        (slot::RELOAD_DATA, reload_data as *const () as usize),
    ];
    for (index, answer) in answers {
        vtable[VTABLE_HEAD + index] = answer;
    }
    // SAFETY: the copy is leaked, so the pointer stays valid; the destructor sets its own vtable again.
    unsafe { *place = Box::leak(vtable)[VTABLE_HEAD..].as_ptr() }
}

unsafe extern "C" fn no_players(result: *mut CxxVector<usize>, _server: *const c_void) -> *mut CxxVector<usize> {
    // SAFETY: the caller passes room for the vector.
    unsafe { result.write(CxxVector::from_vec(Vec::new())) }
    result
}

extern "C" fn max_players(_server: *const c_void) -> i32 {
    20
}

extern "C" fn port(_server: *const c_void) -> i32 {
    19132
}

extern "C" fn port_v6(_server: *const c_void) -> i32 {
    19133
}

extern "C" fn online_mode(_server: *const c_void) -> bool {
    true
}

extern "C" fn reload_data(_server: *mut c_void) {}
