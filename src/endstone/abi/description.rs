//! `endstone::PluginDescription`.

use super::command::Command;
use super::permission::{Permission, PermissionDefault};
use super::string::CxxString;
use super::vector::CxxVector;

foreign_enum! {
    /// When a plugin is enabled.
    LoadOrder: i32 mirrors "endstone::PluginLoadOrder" {
        /// Before the world is loaded.
        Startup = 0,
        /// After it.
        PostWorld = 1,
    }
}

/// `endstone::PluginDescription`. The host reads it through a reference for as long as the plugin lives.
#[repr(C)]
#[derive(Debug)]
pub struct PluginDescription {
    /// Lower case, digits, underscore.
    pub name: CxxString,
    /// The plugin's version.
    pub version: CxxString,
    /// `name vversion`.
    pub full_name: CxxString,
    /// Compared for equality with the runtime's own `major.minor`; otherwise the plugin is refused.
    pub api_version: CxxString,
    /// One line.
    pub description: CxxString,
    /// When it is enabled.
    pub load: LoadOrder,
    /// Who wrote it.
    pub authors: CxxVector<CxxString>,
    /// Who helped.
    pub contributors: CxxVector<CxxString>,
    /// A link.
    pub website: CxxString,
    /// What the log shows before its lines.
    pub prefix: CxxString,
    /// Other names it stands for.
    pub provides: CxxVector<CxxString>,
    /// Plugins it needs.
    pub depend: CxxVector<CxxString>,
    /// Plugins it is loaded after.
    pub soft_depend: CxxVector<CxxString>,
    /// Plugins it is loaded before.
    pub load_before: CxxVector<CxxString>,
    /// For permissions that name none.
    pub default_permission: PermissionDefault,
    /// What it adds.
    pub commands: CxxVector<Command>,
    /// What it adds.
    pub permissions: CxxVector<Permission>,
}

layout! { PluginDescription, mirrors "endstone::PluginDescription", 376 bytes, in memory true {
    name @ 0 = "name_";
    version @ 24 = "version_";
    full_name @ 48 = "full_name_";
    api_version @ 72 = "api_version_";
    description @ 96 = "description_";
    load @ 120 = "load_";
    authors @ 128 = "authors_";
    contributors @ 152 = "contributors_";
    website @ 176 = "website_";
    prefix @ 200 = "prefix_";
    provides @ 224 = "provides_";
    depend @ 248 = "depend_";
    soft_depend @ 272 = "soft_depend_";
    load_before @ 296 = "load_before_";
    default_permission @ 320 = "default_permission_";
    commands @ 328 = "commands_";
    permissions @ 352 = "permissions_";
} }
