//! The real `EndstoneServer`, its plugin manager, scheduler, loaders and console sender, as the stand-in drives them.

use std::ffi::c_void;
use std::sync::OnceLock;

use endstone_spark::endstone::abi::{CommandSender, CxxVector, Pass, Plugin, Server, ServerSlots, Slot};

use crate::callers::{self, SERVER_SLOTS};
use crate::command_map;
use crate::error::HostError;
use crate::event::EventMaker;
use crate::runtime::{Runtime, symbol};
use crate::senders;
use crate::server_instance::ServerInstance;
use crate::world::World;

/// Byte offset of `command_map_` in EndstoneServer 0.11.14.
const COMMAND_MAP: usize = 104;
/// Words of a vtable before the first function (offset to top, type information).
const VTABLE_HEAD: usize = 2;
/// `Server`'s functions that the plugin does not use: what they would ask of a network or a level is answered here.
const GET_MAX_PLAYERS: usize = 15;
const GET_PORT: usize = 18;
const GET_PORT_V6: usize = 19;
const GET_ONLINE_MODE: usize = 20;
const RELOAD_DATA: usize = 24;
/// `PluginLoadOrder::PostWorld`. Plugins that start before the world are enabled by `init`.
const POST_WORLD: i32 = 1;

const RELOAD: Slot = Slot {
    index: 23,
    symbol: "_ZN8endstone6Server6reloadEv",
    arguments: &[],
    result: Pass::Nothing,
};
const CALL_EVENT: Slot = Slot {
    index: 15,
    symbol: "_ZN8endstone13PluginManager9callEventERNS_5EventE",
    arguments: &[Pass::Registers(8)],
    result: Pass::Nothing,
};

/// The world that plugins find, if there is to be one. A vtable's functions have no other way to it.
static WORLD: OnceLock<World> = OnceLock::new();

/// The running server. Owned by Endstone's service locator, which destroys it when the server thread stops.
#[derive(Debug, Clone, Copy)]
pub struct EndstoneServer {
    server: *mut c_void,
    enable_plugins: usize,
    events: EventMaker,
}

impl EndstoneServer {
    /// Constructs the server, which loads all plugins, and enables those that want to start before the world.
    pub fn create(
        runtime: &Runtime,
        instance: ServerInstance,
        world: Option<World>,
    ) -> Result<EndstoneServer, HostError> {
        let emplace = runtime.address(symbol::EMPLACE_SERVER)?;
        let init = runtime.address(symbol::SERVER_INIT)?;
        let enable_plugins = runtime.address(symbol::ENABLE_PLUGINS)?;
        let events = EventMaker::find(runtime)?;
        if let Some(world) = world {
            // There is one server.
            let _ = WORLD.set(world);
        }
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
            events,
        })
    }

    fn borrow(&self) -> Option<Server<'_>> {
        // SAFETY: the server lives until the server thread stops, and this is only used on the thread that runs it.
        unsafe { Server::borrow(self.server) }
    }

    pub fn version(&self) -> String {
        self.borrow().map(Server::version).unwrap_or_default()
    }

    fn console(&self) -> Option<CommandSender<'_>> {
        self.borrow().and_then(Server::console)
    }

    /// The plugin of this name.
    pub fn plugin(&self, name: &str) -> Option<Plugin<'_>> {
        let plugins = self.borrow().and_then(Server::plugin_manager)?.plugins();
        plugins
            .into_iter()
            .find(|plugin| plugin.description().is_some_and(|about| about.name.to_text() == name))
    }

    /// Enables the plugins that want to start after the world, and registers all commands and permissions.
    pub fn enable_plugins(&self) {
        // SAFETY: the signature of the private method; called on the server thread.
        unsafe {
            let enable: unsafe extern "C-unwind" fn(*mut c_void, i32) = std::mem::transmute(self.enable_plugins);
            enable(self.server, POST_WORLD);
        }
    }

    /// Tells plugins that all of them are enabled.
    pub fn call_load_event(&self) {
        let mut event = self.events.server_load();
        self.call_event((&raw mut event).cast());
    }

    fn call_event(&self, event: *mut c_void) {
        let Some(manager) = self.borrow().and_then(Server::plugin_manager) else {
            return;
        };
        // SAFETY: the manager is live; the event has the layout and vtable of its class and outlives the call.
        unsafe {
            let call: unsafe extern "C-unwind" fn(*mut c_void, *mut c_void) =
                std::mem::transmute(CALL_EVENT.entry(manager.as_ptr()));
            call(manager.as_ptr(), event);
        }
    }

    /// Shows plugins a line typed on the console. Returns it as they left it, or None if one cancelled it.
    pub fn announce_line(&self, line: &str) -> Option<String> {
        let mut event = self.events.server_command(self.console()?.as_ptr(), line);
        self.call_event((&raw mut event).cast());
        event.outcome()
    }

    /// Executes a line, without its slash, as the console.
    pub fn run_command(&self, line: &str) {
        if let Some(console) = self.console() {
            self.run_command_as(console, line);
        }
    }

    /// Executes a line, without its slash, as somebody.
    pub fn run_command_as(&self, sender: CommandSender<'_>, line: &str) {
        // SAFETY: the server owns the map that `create` put there, and both live until the server thread stops.
        unsafe {
            let map = *self.server.byte_add(COMMAND_MAP).cast::<*mut c_void>();
            command_map::run(map, sender, line);
        }
    }

    /// What `/reload` does: disable, clear, load and enable all plugins, then tell them.
    pub fn reload(&self) {
        // SAFETY: a virtual function without arguments; called on the server thread between two ticks.
        unsafe {
            let reload: unsafe extern "C-unwind" fn(*mut c_void) = std::mem::transmute(RELOAD.entry(self.server));
            reload(self.server);
        }
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
        (ServerSlots::GET_LEVEL.index, level as *const () as usize),
        (
            ServerSlots::GET_ONLINE_PLAYERS.index,
            online_players as *const () as usize,
        ),
        (
            ServerSlots::GET_PLAYER_BY_ID.index,
            senders::player_by_id as *const () as usize,
        ),
        (GET_MAX_PLAYERS, max_players as *const () as usize),
        (GET_PORT, port as *const () as usize),
        (GET_PORT_V6, port_v6 as *const () as usize),
        (GET_ONLINE_MODE, online_mode as *const () as usize),
        (RELOAD_DATA, reload_data as *const () as usize),
    ];
    for (index, answer) in answers {
        vtable[VTABLE_HEAD + index] = answer;
    }
    callers::guard(&mut vtable[VTABLE_HEAD..]);
    // SAFETY: the copy is leaked, so the pointer stays valid; the destructor sets its own vtable again.
    unsafe { *place = Box::leak(vtable)[VTABLE_HEAD..].as_ptr() }
}

extern "C" fn level(_server: *const c_void) -> *mut c_void {
    WORLD.get().map_or(std::ptr::null_mut(), World::level)
}

/// Those of the world. The one who gives commands is not among them: Endstone asks more of a player there.
unsafe extern "C" fn online_players(
    result: *mut CxxVector<*mut c_void>,
    _server: *const c_void,
) -> *mut CxxVector<*mut c_void> {
    let players = WORLD.get().map_or_else(CxxVector::empty, World::players);
    // SAFETY: the caller passes room for the vector.
    unsafe { result.write(players) }
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
