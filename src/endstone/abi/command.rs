//! `endstone::Command` and `endstone::PluginCommand`.

use std::ffi::c_void;
use std::sync::OnceLock;

use super::rtti::{RttiUnavailable, TypeInfo};
use super::shared_ptr::SharedPtr;
use super::slot::{Pass, Slot};
use super::string::CxxString;
use super::vector::CxxVector;

vtable_slots! {
    /// Slots of `endstone::Command`.
    CommandSlots of "endstone::Command" {
        EXECUTE = 2 "_ZNK8endstone7Command7executeERNS_13CommandSenderERKNSt3__16vectorINS3_12basic_stringIcNS3_11char_traitsIcEENS3_9allocatorIcEEEENS8_ISA_EEEE" (Pass::Registers(8), Pass::Registers(8)) -> Pass::Registers(1);
        AS_PLUGIN_COMMAND = 3 "_ZNK8endstone7Command15asPluginCommandEv" () -> Pass::Registers(8);
    }
}

vtable_slots! {
    /// Slots of `endstone::PluginCommand` beyond those of `Command`.
    PluginCommandSlots of "endstone::PluginCommand" {
        EXECUTE = 2 "_ZNK8endstone13PluginCommand7executeERNS_13CommandSenderERKNSt3__16vectorINS3_12basic_stringIcNS3_11char_traitsIcEENS3_9allocatorIcEEEENS8_ISA_EEEE" (Pass::Registers(8), Pass::Registers(8)) -> Pass::Registers(1);
    }
}

/// `endstone::Command`. Endstone copies the commands of a description into `PluginCommand`s of its own.
#[repr(C)]
#[derive(Debug)]
pub struct Command {
    vtable: *const *const c_void,
    /// Without the slash.
    pub name: CxxString,
    /// One line.
    pub description: CxxString,
    /// Other names.
    pub aliases: CxxVector<CxxString>,
    /// In Endstone's usage language.
    pub usages: CxxVector<CxxString>,
    /// Any one of these is needed.
    pub permissions: CxxVector<CxxString>,
    /// Null until the command is registered.
    pub command_map: *const c_void,
}

layout! { Command, mirrors "endstone::Command", 136 bytes, in memory true {
    vtable @ 0 = "_vptr$Command";
    name @ 8 = "name_";
    description @ 32 = "description_";
    aliases @ 56 = "aliases_";
    usages @ 80 = "usages_";
    permissions @ 104 = "permissions_";
    command_map @ 128 = "command_map_";
} }

/// `endstone::PluginCommand`, only to know where its members are.
#[repr(C)]
#[derive(Debug)]
pub struct PluginCommand {
    /// The part that every command has.
    pub command: Command,
    /// The plugin that declared it.
    pub owner: *mut c_void,
    /// What runs it; the owner when null.
    pub executor: SharedPtr<c_void>,
}

layout! { PluginCommand, mirrors "endstone::PluginCommand", 160 bytes, in memory true {
    owner @ 136 = "owner_";
    executor @ 144 = "executor_";
} }

/// The vtable of the commands in our description.
#[repr(C)]
#[derive(Debug)]
pub struct CommandVtable {
    /// How far the object's start is.
    pub offset_to_top: isize,
    /// Never null.
    pub type_info: *const c_void,
    /// In Endstone's order.
    pub slots: [*const c_void; 4],
}

// SAFETY: written once, before it is shared, then only read.
unsafe impl Sync for CommandVtable {}
// SAFETY: as above.
unsafe impl Send for CommandVtable {}

impl CommandVtable {
    /// The vtable, made when first asked for.
    pub fn get() -> Result<&'static CommandVtable, RttiUnavailable> {
        static VTABLE: OnceLock<CommandVtable> = OnceLock::new();
        if let Some(vtable) = VTABLE.get() {
            return Ok(vtable);
        }
        let base = TypeInfo::of_root_class(c"N8endstone7CommandE")?;
        let type_info = TypeInfo::of_derived_class(c"N5spark12SparkCommandE", base)?;
        let mut slots = [
            destroy as *const c_void,
            destroy as *const c_void,
            std::ptr::null(),
            std::ptr::null(),
        ];
        let mut set = |slot: Slot, function: *const c_void| {
            if let Some(entry) = slots.get_mut(slot.index) {
                *entry = function;
            }
        };
        set(CommandSlots::EXECUTE, execute as *const c_void);
        set(CommandSlots::AS_PLUGIN_COMMAND, as_plugin_command as *const c_void);
        Ok(VTABLE.get_or_init(|| CommandVtable {
            offset_to_top: 0,
            type_info: std::ptr::from_ref(type_info).cast(),
            slots,
        }))
    }
}

/// Both destructors: the command is an element of a vector in our description, never a block of its own.
unsafe extern "C" fn destroy(this: *mut Command) {
    // SAFETY: the caller ends the life of one of our commands.
    unsafe { std::ptr::drop_in_place(this) }
}

unsafe extern "C" fn execute(_this: *const Command, _sender: *mut c_void, _arguments: *const c_void) -> bool {
    // Endstone runs the PluginCommand that it copied from this one.
    false
}

unsafe extern "C" fn as_plugin_command(_this: *const Command) -> *const c_void {
    std::ptr::null()
}

impl Command {
    /// A command as a plugin declares it.
    pub fn new(
        name: &str,
        description: &str,
        aliases: &[&str],
        usages: &[&str],
        permissions: &[&str],
    ) -> Result<Self, RttiUnavailable> {
        Ok(Command {
            vtable: CommandVtable::get()?.slots.as_ptr(),
            name: CxxString::new(name),
            description: CxxString::new(description),
            aliases: CxxVector::of_texts(aliases),
            usages: CxxVector::of_texts(usages),
            permissions: CxxVector::of_texts(permissions),
            command_map: std::ptr::null(),
        })
    }
}
