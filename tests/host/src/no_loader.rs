//! The plugin loader that takes the Python loader's place with `--no-python`: it finds nothing.

use std::ffi::c_void;

use endstone_spark::endstone::abi::{CxxVector, release};

/// The PythonPluginLoader's 24 bytes: vtable, server, and a pointer that only the real one uses.
#[repr(C)]
pub struct NoLoader {
    vtable: *const Vtable,
    server: *mut c_void,
}

/// Slots of `endstone::PluginLoader`.
#[repr(C)]
struct Vtable {
    destroy: extern "C" fn(*mut NoLoader),
    delete: unsafe extern "C" fn(*mut NoLoader),
    load_plugin: extern "C" fn(*mut NoLoader, *const c_void) -> *mut c_void,
    load_plugins: unsafe extern "C" fn(*mut CxxVector<usize>, *mut NoLoader, *const c_void) -> *mut CxxVector<usize>,
    file_filters: unsafe extern "C" fn(*mut CxxVector<usize>, *mut NoLoader, *const c_void) -> *mut CxxVector<usize>,
    enable_plugin: extern "C" fn(*const NoLoader, *mut c_void),
    disable_plugin: extern "C" fn(*const NoLoader, *mut c_void),
}

static VTABLE: Vtable = Vtable {
    destroy,
    delete,
    load_plugin,
    load_plugins: nothing,
    file_filters: nothing,
    enable_plugin: ignore,
    disable_plugin: ignore,
};

/// Replaces the Python loader's constructor.
///
/// # Safety
/// `this` is memory for the loader, from operator new.
pub unsafe extern "C" fn construct(this: *mut NoLoader, server: *mut c_void) {
    // SAFETY: by the caller's promise.
    unsafe {
        this.write(NoLoader {
            vtable: &raw const VTABLE,
            server,
        })
    }
}

extern "C" fn destroy(_this: *mut NoLoader) {}

unsafe extern "C" fn delete(this: *mut NoLoader) {
    // SAFETY: Endstone allocated the loader with operator new and deletes it once.
    unsafe { release(this.cast()) }
}

extern "C" fn load_plugin(_this: *mut NoLoader, _file: *const c_void) -> *mut c_void {
    std::ptr::null_mut()
}

unsafe extern "C" fn nothing(
    result: *mut CxxVector<usize>,
    _this: *mut NoLoader,
    _argument: *const c_void,
) -> *mut CxxVector<usize> {
    // SAFETY: the caller passes room for the vector.
    unsafe { result.write(CxxVector::empty()) }
    result
}

extern "C" fn ignore(_this: *const NoLoader, _plugin: *mut c_void) {}
