//! `endstone::Plugin`: the class that we implement, and the plugins of others.

use std::ffi::{CStr, c_void};
use std::path::PathBuf;

use super::description::PluginDescription;
use super::logger::Logger;
use super::rtti::{RttiUnavailable, TypeInfo};
use super::server::Server;
use super::slot::{Pass, Slot};
use super::string::CxxString;

vtable_slots! {
    /// Slots of `endstone::CommandExecutor`, the base class of `Plugin`.
    CommandExecutorSlots of "endstone::CommandExecutor" {
        ON_COMMAND = 2 "_ZN8endstone15CommandExecutor9onCommandERNS_13CommandSenderERKNS_7CommandERKNSt3__16vectorINS6_12basic_stringIcNS6_11char_traitsIcEENS6_9allocatorIcEEEENSB_ISD_EEEE" (Pass::Registers(8), Pass::Registers(8), Pass::Registers(8)) -> Pass::Registers(1);
    }
}

vtable_slots! {
    /// Slots of `endstone::Plugin` beyond those of `CommandExecutor`.
    PluginSlots of "endstone::Plugin" {
        GET_DESCRIPTION = 3 "_ZNK8endstone6Plugin14getDescriptionEv" () -> Pass::Registers(8);
        ON_LOAD = 4 "_ZN8endstone6Plugin6onLoadEv" () -> Pass::Nothing;
        ON_ENABLE = 5 "_ZN8endstone6Plugin8onEnableEv" () -> Pass::Nothing;
        ON_DISABLE = 6 "_ZN8endstone6Plugin9onDisableEv" () -> Pass::Nothing;
    }
}

/// The data members of `endstone::Plugin`. A plugin of ours begins with it; the host fills in all but the vtable.
#[repr(C)]
#[derive(Debug)]
pub struct PluginBase {
    vtable: *const *const c_void,
    /// Set by the host around `onEnable` and `onDisable`.
    pub enabled: bool,
    loader: *mut c_void,
    server: *mut c_void,
    logger: *mut c_void,
    data_folder: CxxString,
}

layout! { PluginBase, mirrors "endstone::Plugin", 64 bytes, in memory true {
    enabled @ 8 = "enabled_";
    loader @ 16 = "loader_";
    server @ 24 = "server_";
    logger @ 32 = "logger_";
    data_folder @ 40 = "data_folder_";
} }

impl PluginBase {
    /// A base that the host has not filled in yet.
    pub fn new(vtable: &'static PluginVtable) -> Self {
        PluginBase {
            vtable: vtable.slots.as_ptr(),
            enabled: false,
            loader: std::ptr::null_mut(),
            server: std::ptr::null_mut(),
            logger: std::ptr::null_mut(),
            data_folder: CxxString::new(""),
        }
    }

    /// The server; `None` before the host has set it (it is set from `onLoad` on).
    pub fn server(&self) -> Option<Server<'_>> {
        // SAFETY: null, or the server that the host set; it outlives every plugin, and the wrapper cannot outlive `self`.
        unsafe { Server::borrow(self.server) }
    }

    /// The plugin's own logger; `None` before the host has set it.
    pub fn logger(&self) -> Option<Logger<'_>> {
        // SAFETY: null, or the logger that the host set; it outlives every plugin, and the wrapper cannot outlive `self`.
        unsafe { Logger::borrow(self.logger) }
    }

    /// `plugins/<name>`, as the host set it.
    pub fn data_folder(&self) -> PathBuf {
        use std::os::unix::ffi::OsStrExt;
        PathBuf::from(std::ffi::OsStr::from_bytes(self.data_folder.as_bytes()))
    }
}

/// A plugin's vtable with its two header words.
#[repr(C)]
#[derive(Debug)]
pub struct PluginVtable {
    /// How far the object's start is.
    pub offset_to_top: isize,
    /// Never null: pybind asks for every plugin's type.
    pub type_info: *const c_void,
    /// In Endstone's order.
    pub slots: [*const c_void; PluginVtable::SLOTS],
}

// SAFETY: written once, before it is shared, then only read.
unsafe impl Sync for PluginVtable {}
// SAFETY: as above.
unsafe impl Send for PluginVtable {}

impl PluginVtable {
    /// How many slots the class has.
    pub const SLOTS: usize = 7;

    /// A vtable of a class named `name` (mangled), derived from `endstone::Plugin`. `deleting` ends a plugin's life and frees it;
    /// `functions` fill the slots they name.
    pub fn new(
        name: &'static CStr,
        complete: *const c_void,
        deleting: *const c_void,
        functions: &[(Slot, *const c_void)],
    ) -> Result<Self, RttiUnavailable> {
        let executor = TypeInfo::of_root_class(c"N8endstone15CommandExecutorE")?;
        let plugin = TypeInfo::of_derived_class(c"N8endstone6PluginE", executor)?;
        let type_info = TypeInfo::of_derived_class(name, plugin)?;
        let mut slots = [std::ptr::null(); PluginVtable::SLOTS];
        slots[0] = complete;
        slots[1] = deleting;
        for (slot, function) in functions {
            if let Some(entry) = slots.get_mut(slot.index) {
                *entry = *function;
            }
        }
        Ok(PluginVtable {
            offset_to_top: 0,
            type_info: std::ptr::from_ref(type_info).cast(),
            slots,
        })
    }
}

host_object! {
    /// Some plugin, ours or another's, native or Python.
    Plugin, "endstone::Plugin"
}

impl<'host> Plugin<'host> {
    /// What it says of itself.
    pub fn description(self) -> Option<&'host PluginDescription> {
        // SAFETY: getDescription takes nothing and returns a reference to the description, which lives as long as the plugin.
        unsafe { call!(self.as_ptr(), PluginSlots::GET_DESCRIPTION; *const PluginDescription).as_ref() }
    }

    /// Where the code of its `getDescription` is: in the plugin's own file for a C++ or Rust plugin (`ENDSTONE_PLUGIN` overrides it there), in Endstone's
    /// bindings for a Python plugin.
    pub fn description_code(self) -> *const c_void {
        // SAFETY: a live plugin's table has this slot.
        unsafe { PluginSlots::GET_DESCRIPTION.entry(self.as_ptr()) }
    }
}
