//! `endstone::Permission`.

use std::ffi::c_void;

use super::hash_map::CxxHashMap;
use super::string::CxxString;

foreign_enum! {
    /// Who has a permission that nobody was given.
    PermissionDefault: i32 mirrors "endstone::PermissionDefault" {
        /// Everybody.
        True = 0,
        /// Nobody.
        False = 1,
        /// Operators.
        Operator = 2,
        /// Everybody but operators.
        NotOperator = 3,
        /// The console.
        Console = 4,
    }
}

/// `endstone::Permission`.
#[repr(C)]
#[derive(Debug)]
pub struct Permission {
    /// e.g. `endstone.command.spark`.
    pub name: CxxString,
    /// Always empty here.
    pub children: CxxHashMap,
    /// Who has it by default.
    pub default_value: PermissionDefault,
    /// One line.
    pub description: CxxString,
    /// Null until it is registered.
    pub plugin_manager: *mut c_void,
}

layout! { Permission, mirrors "endstone::Permission", 104 bytes, in memory true {
    name @ 0 = "name_";
    children @ 24 = "children_";
    default_value @ 64 = "default_value_";
    description @ 72 = "description_";
    plugin_manager @ 96 = "plugin_manager_";
} }

impl Permission {
    /// A permission without children.
    pub fn new(name: &str, description: &str, default_value: PermissionDefault) -> Self {
        Permission {
            name: CxxString::new(name),
            children: CxxHashMap::empty(),
            default_value,
            description: CxxString::new(description),
            plugin_manager: std::ptr::null_mut(),
        }
    }
}
