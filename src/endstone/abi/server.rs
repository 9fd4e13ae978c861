//! `endstone::Server`.

use std::ffi::c_void;

use super::console::ConsoleCommandSender;
use super::level::Level;
use super::player::{Player, UniqueId};
use super::plugin_manager::PluginManager;
use super::scheduler::Scheduler;
use super::slot::{Pass, Slot};
use super::string::CxxString;
use super::vector::CxxVector;

vtable_slots! {
    /// Slots of `endstone::Server`.
    ServerSlots of "endstone::Server" {
        GET_NAME = 2 "_ZNK8endstone6Server7getNameEv" () -> Pass::Memory;
        GET_VERSION = 3 "_ZNK8endstone6Server10getVersionEv" () -> Pass::Memory;
        GET_MINECRAFT_VERSION = 4 "_ZNK8endstone6Server19getMinecraftVersionEv" () -> Pass::Memory;
        GET_PLUGIN_MANAGER = 8 "_ZNK8endstone6Server16getPluginManagerEv" () -> Pass::Registers(8);
        GET_COMMAND_SENDER = 10 "_ZNK8endstone6Server16getCommandSenderEv" () -> Pass::Registers(8);
        GET_SCHEDULER = 12 "_ZNK8endstone6Server12getSchedulerEv" () -> Pass::Registers(8);
        GET_LEVEL = 13 "_ZNK8endstone6Server8getLevelEv" () -> Pass::Registers(8);
        GET_ONLINE_PLAYERS = 14 "_ZNK8endstone6Server16getOnlinePlayersEv" () -> Pass::Memory;
        GET_PLAYER_BY_ID = 17 "_ZNK8endstone6Server9getPlayerENS_4UUIDE" (Pass::Registers(16)) -> Pass::Registers(8);
        GET_PLAYER_BY_NAME = 21 "_ZNK8endstone6Server9getPlayerENSt3__112basic_stringIcNS1_11char_traitsIcEENS1_9allocatorIcEEEE" (Pass::Memory) -> Pass::Registers(8);
        GET_CURRENT_MSPT = 31 "_ZN8endstone6Server29getCurrentMillisecondsPerTickEv" () -> Pass::Float;
        GET_AVERAGE_TPS = 34 "_ZN8endstone6Server24getAverageTicksPerSecondEv" () -> Pass::Float;
    }
}

host_object! {
    /// The server.
    Server, "endstone::Server"
}

impl<'host> Server<'host> {
    fn text(self, slot: Slot) -> String {
        // SAFETY: called with the three text slots below, which take nothing and return a string through the hidden pointer.
        let text = unsafe { call_for_object!(self.as_ptr(), slot; CxxString) };
        text.to_text().into_owned()
    }

    fn pointer(self, slot: Slot) -> *mut c_void {
        // SAFETY: called with slots that take nothing and return a pointer or reference.
        unsafe { call!(self.as_ptr(), slot; *mut c_void) }
    }

    fn figure(self, slot: Slot) -> f32 {
        // SAFETY: called with slots that take nothing and return a float.
        unsafe { call!(self.as_ptr(), slot; f32) }
    }

    /// e.g. `Endstone`.
    pub fn name(self) -> String {
        self.text(ServerSlots::GET_NAME)
    }

    /// Endstone's version, e.g. `0.11.14`.
    pub fn version(self) -> String {
        self.text(ServerSlots::GET_VERSION)
    }

    /// The game's version.
    pub fn minecraft_version(self) -> String {
        self.text(ServerSlots::GET_MINECRAFT_VERSION)
    }

    /// The plugin manager.
    pub fn plugin_manager(self) -> Option<PluginManager<'host>> {
        // SAFETY: the server owns its plugin manager and outlives `'host`.
        unsafe { PluginManager::borrow(self.pointer(ServerSlots::GET_PLUGIN_MANAGER)) }
    }

    /// The scheduler.
    pub fn scheduler(self) -> Option<Scheduler<'host>> {
        // SAFETY: the server owns its scheduler and outlives `'host`.
        unsafe { Scheduler::borrow(self.pointer(ServerSlots::GET_SCHEDULER)) }
    }

    /// The console as a receiver of messages.
    pub fn console(self) -> Option<ConsoleCommandSender<'host>> {
        // SAFETY: the server owns its console sender and outlives `'host`; ConsoleCommandSender derives from CommandSender at offset 0.
        unsafe { ConsoleCommandSender::borrow(self.pointer(ServerSlots::GET_COMMAND_SENDER)) }
    }

    /// The world, once it is loaded.
    pub fn level(self) -> Option<Level<'host>> {
        // SAFETY: getLevel returns the level or null; the server owns it and it outlives `'host`.
        unsafe { Level::borrow(self.pointer(ServerSlots::GET_LEVEL)) }
    }

    /// The player with this id, while online.
    pub fn player_by_id(self, id: UniqueId) -> Option<Player<'host>> {
        // SAFETY: getPlayer(UUID) takes 16 trivial bytes in two registers and returns a player or null.
        unsafe { Player::borrow(call!(self.as_ptr(), ServerSlots::GET_PLAYER_BY_ID, id => UniqueId; *mut c_void)) }
    }

    /// The players who are online.
    pub fn online_players(self) -> Vec<Player<'host>> {
        // SAFETY: getOnlinePlayers takes nothing and returns a vector of pointers through the hidden pointer; we own the vector, not the players.
        let players =
            unsafe { call_for_object!(self.as_ptr(), ServerSlots::GET_ONLINE_PLAYERS; CxxVector<*mut c_void>) };
        // SAFETY: players leave on the server thread only, never while the host is inside a call into a plugin.
        players
            .as_slice()
            .iter()
            .filter_map(|player| unsafe { Player::borrow(*player) })
            .collect()
    }

    /// Milliseconds that the last tick took.
    pub fn current_milliseconds_per_tick(self) -> f32 {
        self.figure(ServerSlots::GET_CURRENT_MSPT)
    }

    /// Ticks per second, averaged over the last 20.
    pub fn average_ticks_per_second(self) -> f32 {
        self.figure(ServerSlots::GET_AVERAGE_TPS)
    }
}
