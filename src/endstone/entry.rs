//! The one function that the shared object exports.

use std::ffi::c_void;

use super::image;
use super::plugin::SparkPlugin;
use super::pure::pure;

/// Makes the plugin. Endstone owns it from then on and deletes it through its vtable.
///
/// Re-entrant: after a reload the same image is asked again, while nothing of the first plugin is left but the image itself. Null, with a
/// line on standard error (there is no logger yet), when the process has no C++ runtime to be a plugin in.
#[unsafe(no_mangle)]
pub extern "C" fn init_endstone_plugin() -> *mut c_void {
    let made = pure(|| SparkPlugin::create(image::is_outdated()));
    match made {
        Ok(Ok(plugin)) => plugin.cast(),
        Ok(Err(error)) => refuse(&error.to_string()),
        Err(panic) => refuse(&panic),
    }
}

fn refuse(reason: &str) -> *mut c_void {
    // Not `eprintln!`: it panics when standard error is closed.
    let _ = std::io::Write::write_fmt(
        &mut std::io::stderr(),
        format_args!("spark could not be loaded: {reason}\n"),
    );
    std::ptr::null_mut()
}
