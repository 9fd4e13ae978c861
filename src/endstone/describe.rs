//! What the plugin says of itself.

use super::abi::{
    Command, CxxString, CxxVector, LoadOrder, Permission, PermissionDefault, PluginDescription, RttiUnavailable,
};
use crate::command;
use crate::model::build;

/// Endstone compares this text for equality with its own and refuses the plugin otherwise.
pub const API_VERSION: &str = "0.11";

/// The description. `PostWorld`: there is nothing to profile before the world is there, and the server thread ticks only then.
///
/// # Errors
/// There is no C++ runtime in the process.
pub fn describe() -> Result<PluginDescription, RttiUnavailable> {
    let text = CxxString::new;
    // Any one of them lets somebody type the command; which part of it they may use is decided when it is read.
    let names: Vec<&str> = command::PERMISSIONS.iter().map(|permission| permission.name).collect();
    Ok(PluginDescription {
        name: text("spark"),
        version: text(build::VERSION),
        full_name: text(&format!("spark v{}", build::VERSION)),
        api_version: text(API_VERSION),
        description: text("A profiler: native and Python frames in one spark profile"),
        load: LoadOrder::PostWorld,
        authors: CxxVector::of_texts(&["The endstone-spark authors"]),
        contributors: CxxVector::empty(),
        website: text(""),
        prefix: text("spark"),
        provides: CxxVector::empty(),
        depend: CxxVector::empty(),
        soft_depend: CxxVector::empty(),
        load_before: CxxVector::empty(),
        default_permission: PermissionDefault::Operator,
        commands: [Command::new(
            command::NAME,
            command::DESCRIPTION,
            command::ALIASES,
            command::USAGES,
            &names,
        )?]
        .into_iter()
        .collect(),
        permissions: command::PERMISSIONS
            .iter()
            .map(|permission| {
                let default = match permission.for_operators {
                    true => PermissionDefault::Operator,
                    false => PermissionDefault::False,
                };
                Permission::new(permission.name, permission.description, default)
            })
            .collect(),
    })
}
