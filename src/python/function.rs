//! C functions of ours that Python calls.

use std::ffi::CStr;

use pyo3_ffi::{METH_FASTCALL, Py_ssize_t, PyCFunctionFast, PyMethodDef, PyMethodDefPointer, PyObject};

use super::objects::{PythonError, Refs};

/// Gets `self`, the arguments and their number, with the interpreter's lock held; gives a new reference, or null with a Python error set.
pub(super) type Callback =
    unsafe extern "C-unwind" fn(*mut PyObject, *const *mut PyObject, Py_ssize_t) -> *mut PyObject;

/// A function's definition. Function objects point at it for as long as anybody keeps one, so each is a static.
pub(super) struct Function(PyMethodDef);

// SAFETY: a constant; the pointers in it are to a constant and a function.
unsafe impl Sync for Function {}

impl Function {
    /// `name` is what Python shows.
    pub(super) const fn new(name: &'static CStr, callback: Callback) -> Self {
        // SAFETY: the two differ in whether the arguments may be written, and in that ours may be unwound through, which C code allows.
        let callback = unsafe { std::mem::transmute::<Callback, PyCFunctionFast>(callback) };
        Function(PyMethodDef {
            ml_name: name.as_ptr(),
            ml_meth: PyMethodDefPointer {
                PyCFunctionFast: callback,
            },
            ml_flags: METH_FASTCALL,
            ml_doc: std::ptr::null(),
        })
    }

    /// A function object, which hands `receiver` (or null) on as `self`. Needs the interpreter's lock.
    pub(super) fn object(
        &'static self,
        refs: &mut Refs,
        receiver: *mut PyObject,
    ) -> Result<*mut PyObject, PythonError> {
        // SAFETY: the lock is held; the definition is a static; the object takes its own reference to `receiver`, and can do without one.
        let made = unsafe { (refs.api.PyCFunction_NewEx)(&raw const self.0, receiver, std::ptr::null_mut()) };
        refs.own(made, "making a function")
    }
}
