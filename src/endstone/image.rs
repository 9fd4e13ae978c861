//! Which build of the plugin is in memory, and which one is on disk.
//!
//! The plugin is linked with `-z nodelete`, so after Endstone's `/reload` the old image is still mapped and the loader gets it again, even
//! when the file has been replaced. Nothing can be done about that, but it can be said.

use std::ffi::{CStr, OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use object::Object;

use crate::model::{BuildId, build};

/// Whether this image has been asked for a plugin before, and the file it came from now holds another build.
pub(super) fn is_outdated() -> bool {
    static ASKED: AtomicBool = AtomicBool::new(false);
    // Relaxed: the loader asks on one thread at a time, and only the count matters.
    let again = ASKED.swap(true, Ordering::Relaxed);
    let loaded = loaded_build_id();
    again && loaded.is_some() && build_id_on_disk().is_some_and(|on_disk| Some(&on_disk) != loaded)
}

/// The build id that the image had when it was loaded. Read when first asked, which is before any reload.
fn loaded_build_id() -> Option<&'static Vec<u8>> {
    static LOADED: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    let read = || {
        let id = build_id_on_disk()?;
        if let Some(id) = BuildId::new(&id) {
            build::set_build_id(id.to_string());
        }
        Some(id)
    };
    LOADED.get_or_init(read).as_ref()
}

fn build_id_on_disk() -> Option<Vec<u8>> {
    let bytes = std::fs::read(path()?).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    file.build_id().ok()?.map(<[u8]>::to_vec)
}

/// The file that this code was loaded from.
fn path() -> Option<PathBuf> {
    file_of(path as *const c_void)
}

/// The file that holds this address.
pub(super) fn file_of(address: *const c_void) -> Option<PathBuf> {
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: `info` is valid to write to, and any address may be asked about.
    let found = unsafe { libc::dladdr(address, &mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: dladdr found an image, whose name is a terminated string that lives as long as the image; images come and go on this thread only.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}
