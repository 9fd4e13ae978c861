//! Run-time type information for the classes that we implement.
//!
//! A vtable without it crashes the server when a Python plugin lists plugins: pybind applies `typeid` to every plugin. Type information
//! objects begin with the vtable pointer of `__class_type_info` (no base) or `__si_class_type_info` (one base), which live in the C++
//! runtime and are found by name.

use std::ffi::{CStr, c_char, c_void};

use super::alloc::global_symbol;

/// The process has no C++ runtime type information, so no plugin object can be made.
#[derive(Debug, thiserror::Error)]
#[error("the C++ runtime's type information ({0}) was not found in this process")]
pub struct RttiUnavailable(&'static str);

/// `std::type_info` of a class with at most one base class. Lives for ever: C++ keeps pointers to it.
#[repr(C)]
#[derive(Debug)]
pub struct TypeInfo {
    vtable: *const c_void,
    name: *const c_char,
    /// Not part of a root class's object, and not read for one.
    base: *const TypeInfo,
}

// SAFETY: written once, before it is shared, then only read.
unsafe impl Sync for TypeInfo {}
// SAFETY: as above.
unsafe impl Send for TypeInfo {}

/// A vtable symbol starts with two header words; objects point behind them.
const VTABLE_HEADER_BYTES: usize = 16;

impl TypeInfo {
    /// Type information of a class without bases; `name` is the mangled class name.
    pub fn of_root_class(name: &'static CStr) -> Result<&'static TypeInfo, RttiUnavailable> {
        let vtable = runtime_vtable(c"_ZTVN10__cxxabiv117__class_type_infoE", "__class_type_info")?;
        Ok(Box::leak(Box::new(TypeInfo {
            vtable,
            name: name.as_ptr(),
            base: std::ptr::null(),
        })))
    }

    /// Type information of a class derived publicly and singly from the class of `base`.
    pub fn of_derived_class(
        name: &'static CStr,
        base: &'static TypeInfo,
    ) -> Result<&'static TypeInfo, RttiUnavailable> {
        let vtable = runtime_vtable(c"_ZTVN10__cxxabiv120__si_class_type_infoE", "__si_class_type_info")?;
        Ok(Box::leak(Box::new(TypeInfo {
            vtable,
            name: name.as_ptr(),
            base,
        })))
    }
}

fn runtime_vtable(symbol: &CStr, class: &'static str) -> Result<*const c_void, RttiUnavailable> {
    let vtable = global_symbol(symbol);
    if vtable.is_null() {
        return Err(RttiUnavailable(class));
    }
    Ok(vtable.wrapping_byte_add(VTABLE_HEADER_BYTES).cast_const())
}
