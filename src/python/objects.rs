//! Python objects in our hands.
//!
//! **Problem.** References must be given back on every path, but not by `Drop`: while CPython 3.12 or 3.13 ends, a thread may be ended inside
//! any call, unwinding through our frames without the interpreter's lock, and a destructor would then touch objects without it.
//!
//! **Algorithm.** A [`Refs`] notes every new reference and gives all back when its owner says so, with the lock held. An unwound thread leaks a
//! few references of an interpreter that is ending.

use std::ffi::{CStr, CString, c_char, c_long};

use pyo3_ffi::{Py_ssize_t, PyObject};

use super::api::Api;
use super::text;

/// A Python call that failed: what was tried, and Python's own message.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what} failed: {message}")]
pub(super) struct PythonError {
    pub(super) what: &'static str,
    pub(super) message: String,
}

/// New references, to be given back together. All methods need the interpreter's lock.
#[derive(Debug)]
pub(super) struct Refs {
    pub(super) api: &'static Api,
    owned: Vec<*mut PyObject>,
}

impl Refs {
    pub(super) fn new(api: &'static Api) -> Self {
        Refs { api, owned: Vec::new() }
    }

    /// Gives all references back.
    pub(super) fn release(self) {
        for object in self.owned {
            // SAFETY: `own` noted a reference that is ours; the caller holds the lock.
            unsafe { (self.api.Py_DecRef)(object) };
        }
    }

    /// Takes charge of a new reference; null is a Python error, which is fetched.
    pub(super) fn own(&mut self, object: *mut PyObject, what: &'static str) -> Result<*mut PyObject, PythonError> {
        if object.is_null() {
            return Err(self.error(what));
        }
        self.owned.push(object);
        Ok(object)
    }

    /// The current Python error, cleared.
    pub(super) fn error(&self, what: &'static str) -> PythonError {
        // SAFETY: the lock is held; the exception is ours until it is given back, and so is its text.
        let message = unsafe {
            let raised = (self.api.PyErr_GetRaisedException)();
            let message = if raised.is_null() {
                None
            } else {
                let shown = (self.api.PyObject_Str)(raised);
                let message = self.read_text(shown);
                if !shown.is_null() {
                    (self.api.Py_DecRef)(shown);
                }
                (self.api.Py_DecRef)(raised);
                (self.api.PyErr_Clear)();
                message
            };
            message.filter(|message| !message.is_empty())
        };
        PythonError {
            what,
            message: message.unwrap_or_else(|| "no reason given".to_owned()),
        }
    }

    /// An attribute.
    pub(super) fn attribute(
        &mut self,
        object: *mut PyObject,
        name: &'static CStr,
    ) -> Result<*mut PyObject, PythonError> {
        // SAFETY: the lock is held, `object` is alive (a caller's reference), the name is NUL-terminated.
        let found = unsafe { (self.api.PyObject_GetAttrString)(object, name.as_ptr()) };
        self.own(found, name.to_str().unwrap_or("an attribute"))
    }

    /// Calls `callable`.
    pub(super) fn call(
        &mut self,
        callable: *mut PyObject,
        arguments: &[*mut PyObject],
        what: &'static str,
    ) -> Result<*mut PyObject, PythonError> {
        // SAFETY: the lock is held, all objects are alive for the call, `arguments` has that many entries.
        let result = unsafe {
            (self.api.PyObject_Vectorcall)(callable, arguments.as_ptr(), arguments.len(), std::ptr::null_mut())
        };
        self.own(result, what)
    }

    /// Calls the method `name` of `object`.
    pub(super) fn method(
        &mut self,
        object: *mut PyObject,
        name: &'static CStr,
        arguments: &[*mut PyObject],
    ) -> Result<*mut PyObject, PythonError> {
        let method = self.attribute(object, name)?;
        self.call(method, arguments, name.to_str().unwrap_or("a call"))
    }

    /// An int.
    pub(super) fn int(&mut self, value: c_long) -> Result<*mut PyObject, PythonError> {
        // SAFETY: the lock is held.
        let object = unsafe { (self.api.PyLong_FromLong)(value) };
        self.own(object, "making a number")
    }

    /// The value of an int.
    pub(super) fn read_int(&self, object: *mut PyObject, what: &'static str) -> Result<c_long, PythonError> {
        // SAFETY: the lock is held and the object is alive. -1 with an error set is a failure.
        let value = unsafe { (self.api.PyLong_AsLong)(object) };
        if value == -1 {
            // SAFETY: the lock is held; a pending error is put back for `error` to fetch.
            let failed = unsafe {
                let raised = (self.api.PyErr_GetRaisedException)();
                (self.api.PyErr_SetRaisedException)(raised);
                !raised.is_null()
            };
            if failed {
                return Err(self.error(what));
            }
        }
        Ok(value)
    }

    /// A str.
    pub(super) fn text(&mut self, value: &str) -> Result<*mut PyObject, PythonError> {
        // SAFETY: the lock is held; pointer and length are of valid UTF-8.
        let object = unsafe {
            (self.api.PyUnicode_FromStringAndSize)(value.as_ptr().cast::<c_char>(), value.len() as Py_ssize_t)
        };
        self.own(object, "making a text")
    }

    /// A module.
    pub(super) fn import(&mut self, name: &'static CStr) -> Result<*mut PyObject, PythonError> {
        // SAFETY: the lock is held and the name is NUL-terminated.
        let module = unsafe { (self.api.PyImport_ImportModule)(name.as_ptr()) };
        self.own(module, name.to_str().unwrap_or("an import"))
    }

    /// Runs a module's source in a namespace of its own and gives that namespace.
    pub(super) fn run(&mut self, source: &str, name: &'static CStr) -> Result<*mut PyObject, PythonError> {
        let source = CString::new(source).map_err(|_| PythonError {
            what: "preparing a script",
            message: "it holds a NUL".to_owned(),
        })?;
        // SAFETY: both texts are NUL-terminated, the lock is held; 257 is Py_file_input (Include/compile.h).
        let code = unsafe { (self.api.Py_CompileString)(source.as_ptr(), name.as_ptr(), pyo3_ffi::Py_file_input) };
        let code = self.own(code, "compiling a script")?;
        // SAFETY: the lock is held.
        let globals = unsafe { (self.api.PyDict_New)() };
        let globals = self.own(globals, "making a namespace")?;
        let module_name = self.text(name.to_str().unwrap_or("spark"))?;
        let builtins = self.import(c"builtins")?;
        for (key, value) in [(c"__name__", module_name), (c"__builtins__", builtins)] {
            // SAFETY: the lock is held, all three objects are alive.
            if unsafe { (self.api.PyDict_SetItemString)(globals, key.as_ptr(), value) } != 0 {
                return Err(self.error("filling a namespace"));
            }
        }
        // SAFETY: the lock is held, both objects are alive.
        let result = unsafe { (self.api.PyEval_EvalCode)(code, globals, globals) };
        self.own(result, "running a script")?;
        Ok(globals)
    }

    /// What a namespace made by [`Refs::run`] calls `name`; alive as long as the namespace.
    pub(super) fn global(&mut self, globals: *mut PyObject, name: &'static CStr) -> Result<*mut PyObject, PythonError> {
        // SAFETY: the lock is held, `globals` is our dict; the result is borrowed from it, so a reference is taken.
        unsafe {
            let found = (self.api.PyDict_GetItemString)(globals, name.as_ptr());
            if found.is_null() {
                return Err(PythonError {
                    what: "reading a namespace",
                    message: format!("it has no {}", name.to_string_lossy()),
                });
            }
            (self.api.Py_IncRef)(found);
            self.own(found, "reading a namespace")
        }
    }

    /// A str's contents whole, whatever is in it; `None` when it is null or no str. Leaves no Python error behind.
    pub(super) fn read_text(&self, object: *mut PyObject) -> Option<String> {
        read_text(self.api, object)
    }
}

/// A str's contents, lone surrogates as escapes; `None` when it is null or no str. Needs the lock; leaves no Python error behind.
pub(super) fn read_text(api: &Api, object: *mut PyObject) -> Option<String> {
    if object.is_null() {
        return None;
    }
    // SAFETY: the lock is held and `object` is alive; a new bytes object is read while it is ours and then given back.
    unsafe {
        let bytes = (api.PyUnicode_AsEncodedString)(object, c"utf-8".as_ptr(), c"backslashreplace".as_ptr());
        if bytes.is_null() {
            (api.PyErr_Clear)();
            return None;
        }
        let (mut start, mut length) = (std::ptr::null_mut::<c_char>(), 0);
        let text = if (api.PyBytes_AsStringAndSize)(bytes, &mut start, &mut length) == 0 {
            let bytes = std::slice::from_raw_parts(start.cast::<u8>(), usize::try_from(length).unwrap_or(0));
            Some(String::from_utf8_lossy(bytes).into_owned())
        } else {
            (api.PyErr_Clear)();
            None
        };
        (api.Py_DecRef)(bytes);
        text
    }
}

/// Which part of a long text is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Keep {
    Start,
    End,
}

/// A str's contents, presentable and bounded by `limit` characters; empty when it is null or no str. Needs the lock; leaves no Python error.
pub(super) fn read_name(api: &Api, object: *mut PyObject, limit: usize, keep: Keep) -> String {
    if object.is_null() {
        return String::new();
    }
    // SAFETY: the lock is held and `object` is alive; the part cut out is a new object, given back below.
    unsafe {
        let length = (api.PyUnicode_GetLength)(object);
        if length < 0 {
            (api.PyErr_Clear)();
            return String::new();
        }
        // One more than is kept, so that the cut shows.
        let wanted = limit as Py_ssize_t + 1;
        if length <= wanted {
            return text::presentable(&read_text(api, object).unwrap_or_default(), limit, keep);
        }
        let (from, to) = match keep {
            Keep::Start => (0, wanted),
            Keep::End => (length - wanted, length),
        };
        let part = (api.PyUnicode_Substring)(object, from, to);
        if part.is_null() {
            (api.PyErr_Clear)();
            return String::new();
        }
        let name = text::presentable(&read_text(api, part).unwrap_or_default(), limit, keep);
        (api.Py_DecRef)(part);
        name
    }
}
