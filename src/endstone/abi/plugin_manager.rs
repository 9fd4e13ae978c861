//! `endstone::PluginManager`.

use std::ffi::c_void;

use super::permission::Permission;
use super::plugin::Plugin;
use super::slot::Pass;
use super::string::CxxString;
use super::vector::CxxVector;

vtable_slots! {
    /// Slots of `endstone::PluginManager`.
    PluginManagerSlots of "endstone::PluginManager" {
        GET_PLUGIN = 3 "_ZNK8endstone13PluginManager9getPluginERKNSt3__112basic_stringIcNS1_11char_traitsIcEENS1_9allocatorIcEEEE" (Pass::Registers(8)) -> Pass::Registers(8);
        GET_PLUGINS = 4 "_ZNK8endstone13PluginManager10getPluginsEv" () -> Pass::Memory;
        ENABLE_PLUGIN = 10 "_ZNK8endstone13PluginManager12enablePluginERNS_6PluginE" (Pass::Registers(8)) -> Pass::Nothing;
        DISABLE_PLUGIN = 12 "_ZN8endstone13PluginManager13disablePluginERNS_6PluginE" (Pass::Registers(8)) -> Pass::Nothing;
        DISABLE_PLUGINS = 13 "_ZN8endstone13PluginManager14disablePluginsEv" () -> Pass::Nothing;
        CLEAR_PLUGINS = 14 "_ZN8endstone13PluginManager12clearPluginsEv" () -> Pass::Nothing;
        GET_PERMISSION = 17 "_ZNK8endstone13PluginManager13getPermissionENSt3__112basic_stringIcNS1_11char_traitsIcEENS1_9allocatorIcEEEE" (Pass::Memory) -> Pass::Registers(8);
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

    /// The plugin with this name.
    pub fn plugin(self, name: &str) -> Option<Plugin<'host>> {
        let name = CxxString::new(name);
        // SAFETY: getPlugin takes a reference to a string and returns a plugin or null.
        unsafe {
            Plugin::borrow(
                call!(self.as_ptr(), PluginManagerSlots::GET_PLUGIN, &raw const name => *const CxxString; *mut c_void),
            )
        }
    }

    /// The registered permission with this name.
    pub fn permission(self, name: &str) -> Option<&'host Permission> {
        let mut name = CxxString::new(name);
        // SAFETY: getPermission takes a string by value, that is by pointer to ours, and returns a permission or null.
        unsafe {
            call!(self.as_ptr(), PluginManagerSlots::GET_PERMISSION, &raw mut name => *mut CxxString; *const Permission)
                .as_ref()
        }
    }

    /// Enables a plugin (a host's business).
    pub fn enable_plugin(self, plugin: Plugin<'_>) {
        // SAFETY: enablePlugin takes a reference to a plugin.
        unsafe { call!(self.as_ptr(), PluginManagerSlots::ENABLE_PLUGIN, plugin.as_ptr() => *mut c_void; ()) }
    }

    /// Disables a plugin (a host's business).
    pub fn disable_plugin(self, plugin: Plugin<'_>) {
        // SAFETY: disablePlugin takes a reference to a plugin.
        unsafe { call!(self.as_ptr(), PluginManagerSlots::DISABLE_PLUGIN, plugin.as_ptr() => *mut c_void; ()) }
    }

    /// Disables all plugins (a host's business).
    pub fn disable_plugins(self) {
        // SAFETY: disablePlugins takes nothing.
        unsafe { call!(self.as_ptr(), PluginManagerSlots::DISABLE_PLUGINS; ()) }
    }

    /// Deletes all plugins and unloads their files (a host's business).
    ///
    /// # Safety
    ///
    /// No [`Plugin`] and nothing borrowed from one may be used afterwards.
    pub unsafe fn clear_plugins(self) {
        // SAFETY: clearPlugins takes nothing; the caller has let go of all plugins.
        unsafe { call!(self.as_ptr(), PluginManagerSlots::CLEAR_PLUGINS; ()) }
    }
}
