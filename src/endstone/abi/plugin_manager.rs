//! `endstone::PluginManager`.

use std::ffi::c_void;

use super::plugin::Plugin;
use super::slot::Pass;
use super::vector::CxxVector;

vtable_slots! {
    /// Slots of `endstone::PluginManager`.
    PluginManagerSlots of "endstone::PluginManager" {
        GET_PLUGINS = 4 "_ZNK8endstone13PluginManager10getPluginsEv" () -> Pass::Memory;
    }
}

host_object! {
    /// The server's plugin manager.
    PluginManager, "endstone::PluginManager"
}

impl<'host> PluginManager<'host> {
    /// All plugins, in the order they were loaded.
    pub fn plugins(self) -> Vec<Plugin<'host>> {
        // SAFETY: getPlugins takes nothing and returns a vector of pointers through the hidden pointer; we own the vector, not the plugins.
        let plugins =
            unsafe { call_for_object!(self.as_ptr(), PluginManagerSlots::GET_PLUGINS; CxxVector<*mut c_void>) };
        // SAFETY: plugins live until the host clears them, which it never does while it is inside a call into a plugin.
        plugins
            .as_slice()
            .iter()
            .filter_map(|plugin| unsafe { Plugin::borrow(*plugin) })
            .collect()
    }
}
