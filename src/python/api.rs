//! CPython's functions, looked up in the process at run time.
//!
//! Types and constants are `pyo3-ffi`'s; its functions are not linked, so no `Py*` symbol is undefined in the plugin and it loads where
//! there is no Python. Only documented public API is used; `_Py_NoneStruct` is what the macro `Py_None` stands for (Include/object.h).
//!
//! Every function is `C-unwind`: while CPython 3.12 and 3.13 shut down, a thread that wants the interpreter's lock is ended by `pthread_exit`,
//! which unwinds its stack through whatever waits for the lock.

use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::sync::OnceLock;

use pyo3_ffi::{Py_ssize_t, PyCodeObject, PyFrameObject, PyMethodDef, PyObject};

/// Why Python cannot be attributed in this process. Each text is fit for a server's owner.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unsupported {
    /// No interpreter is loaded.
    #[error("there is no Python in this server")]
    NoPython,
    /// Before 3.12 there is no `sys.monitoring`.
    #[error("Python attribution needs CPython 3.12 or newer (this server runs {0})")]
    TooOld(String),
    /// A function is missing.
    #[error("this server's Python {version} lacks {function}, which Python attribution needs")]
    Missing {
        /// The interpreter's version.
        version: String,
        /// The first function that was not found.
        function: &'static str,
    },
    /// Not a version that can be read.
    #[error("this server's Python says it is version \"{0}\", which cannot be understood")]
    Version(String),
}

fn find(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name is NUL-terminated; RTLD_DEFAULT searches what is loaded and runs no code.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

macro_rules! api {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The table of functions. All were found; see [`Runtime::discover`].
        #[allow(non_snake_case)]
        #[derive(Debug)]
        pub(super) struct Api {
            $($(#[$doc])* pub(super) $name: unsafe extern "C-unwind" fn($($argument),*) $(-> $result)?,)*
            /// The object `None`, immortal since 3.12 (PEP 683): returned without counting a reference.
            pub(super) none: *mut PyObject,
            /// The type of code objects.
            pub(super) code_type: *mut PyObject,
            /// `Py_IsFinalizing`, since 3.13.
            pub(super) is_finalizing: Option<unsafe extern "C-unwind" fn() -> c_int>,
            /// `PyThreadState_GetUnchecked`, since 3.13; before, the same function was called `_PyThreadState_UncheckedGet`.
            pub(super) current_thread_state: Option<unsafe extern "C-unwind" fn() -> *mut c_void>,
        }

        impl Api {
            #[allow(non_snake_case)]
            fn look_up() -> Result<Self, &'static str> {
                $(
                    let name = concat!(stringify!($name), "\0");
                    let address = CStr::from_bytes_with_nul(name.as_bytes()).ok().and_then(find);
                    let Some(address) = address else { return Err(stringify!($name)) };
                    // SAFETY: a public CPython function of this name has this C signature in every version from 3.12 on.
                    let $name = unsafe {
                        std::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn($($argument),*) $(-> $result)?>(address)
                    };
                )*
                Ok(Api {
                    $($name,)*
                    none: find(c"_Py_NoneStruct").ok_or("None")?.cast(),
                    code_type: find(c"PyCode_Type").ok_or("PyCode_Type")?.cast(),
                    // SAFETY: as above, for `int Py_IsFinalizing(void)`.
                    is_finalizing: find(c"Py_IsFinalizing").map(|address| unsafe {
                        std::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn() -> c_int>(address)
                    }),
                    current_thread_state: find(c"PyThreadState_GetUnchecked")
                        .or_else(|| find(c"_PyThreadState_UncheckedGet"))
                        // SAFETY: as above, for `PyThreadState *PyThreadState_GetUnchecked(void)`.
                        .map(|address| unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn() -> *mut c_void>(address)
                        }),
                })
            }
        }
    };
}

api! {
    fn Py_IsInitialized() -> c_int;
    fn PyGILState_Ensure() -> c_int;
    fn PyGILState_Release(c_int);
    fn PyGILState_Check() -> c_int;
    fn PyGILState_GetThisThreadState() -> *mut c_void;
    fn PyEval_SaveThread() -> *mut c_void;
    fn PyEval_RestoreThread(*mut c_void);

    fn Py_IncRef(*mut PyObject);
    fn Py_DecRef(*mut PyObject);
    fn PyObject_GetAttrString(*mut PyObject, *const c_char) -> *mut PyObject;
    fn PyObject_Vectorcall(*mut PyObject, *const *mut PyObject, usize, *mut PyObject) -> *mut PyObject;
    fn PyObject_IsInstance(*mut PyObject, *mut PyObject) -> c_int;
    fn PyObject_Str(*mut PyObject) -> *mut PyObject;
    fn PyErr_GetRaisedException() -> *mut PyObject;
    fn PyErr_SetRaisedException(*mut PyObject);
    fn PyErr_Clear();

    fn PySys_GetObject(*const c_char) -> *mut PyObject;
    fn PyImport_ImportModule(*const c_char) -> *mut PyObject;
    fn Py_CompileString(*const c_char, *const c_char, c_int) -> *mut PyObject;
    fn PyEval_EvalCode(*mut PyObject, *mut PyObject, *mut PyObject) -> *mut PyObject;

    fn PyObject_Type(*mut PyObject) -> *mut PyObject;
    fn PyType_IsSubtype(*mut PyObject, *mut PyObject) -> c_int;
    fn PyList_Size(*mut PyObject) -> Py_ssize_t;
    fn PyList_GetItem(*mut PyObject, Py_ssize_t) -> *mut PyObject;
    fn PyLong_FromLong(c_long) -> *mut PyObject;
    fn PyLong_AsLong(*mut PyObject) -> c_long;
    fn PyDict_New() -> *mut PyObject;
    fn PyDict_SetItemString(*mut PyObject, *const c_char, *mut PyObject) -> c_int;
    fn PyDict_GetItemString(*mut PyObject, *const c_char) -> *mut PyObject;
    fn PyUnicode_FromStringAndSize(*const c_char, Py_ssize_t) -> *mut PyObject;
    fn PyUnicode_GetLength(*mut PyObject) -> Py_ssize_t;
    fn PyUnicode_Substring(*mut PyObject, Py_ssize_t, Py_ssize_t) -> *mut PyObject;
    fn PyUnicode_AsEncodedString(*mut PyObject, *const c_char, *const c_char) -> *mut PyObject;
    fn PyBytes_AsStringAndSize(*mut PyObject, *mut *mut c_char, *mut Py_ssize_t) -> c_int;

    fn PyCFunction_NewEx(*const PyMethodDef, *mut PyObject, *mut PyObject) -> *mut PyObject;
    fn PyEval_GetFrame() -> *mut PyFrameObject;
    fn PyFrame_GetBack(*mut PyFrameObject) -> *mut PyFrameObject;
    fn PyFrame_GetCode(*mut PyFrameObject) -> *mut PyCodeObject;
    fn PyFrame_GetGlobals(*mut PyFrameObject) -> *mut PyObject;
    fn PyFrame_GetGenerator(*mut PyFrameObject) -> *mut PyObject;
    fn PyCode_AddWatcher(unsafe extern "C-unwind" fn(c_int, *mut PyCodeObject) -> c_int) -> c_int;
    fn PyCode_ClearWatcher(c_int) -> c_int;
    fn PyInterpreterState_Get() -> *mut c_void;
    fn PyInterpreterState_Main() -> *mut c_void;
    fn PyThreadState_New(*mut c_void) -> *mut c_void;
    fn PyThreadState_Swap(*mut c_void) -> *mut c_void;
    fn PyThreadState_Clear(*mut c_void);
    fn PyThreadState_Delete(*mut c_void);
    fn PyInterpreterState_Head() -> *mut c_void;
    fn PyInterpreterState_Next(*mut c_void) -> *mut c_void;
}

// SAFETY: function addresses and two immortal objects' addresses, none of which ever changes.
unsafe impl Send for Api {}
// SAFETY: as above.
unsafe impl Sync for Api {}

impl Api {
    /// The table, once it was found: for functions of ours that Python calls, which were made with it.
    pub(super) fn found() -> Option<&'static Api> {
        Some(FOUND.get()?.as_ref().ok()?.api)
    }

    /// Whether the interpreter runs: initialised and not ending. Needs no lock. It can begin to end right after the answer.
    pub(super) fn is_running(&self) -> bool {
        // SAFETY: may be called at any time, without the lock, before initialisation too (documented).
        let initialized = unsafe { (self.Py_IsInitialized)() } != 0;
        // In 3.12, where there is no Py_IsFinalizing, Py_FinalizeEx clears "initialized" when it begins to end threads.
        // SAFETY: as above.
        initialized && self.is_finalizing.is_none_or(|ask| unsafe { ask() } == 0)
    }

    /// How many interpreters there are beside the main one. Needs the lock.
    pub(super) fn subinterpreters(&self) -> u32 {
        let mut count = 0;
        // SAFETY: the lock is held. With locks of their own, subinterpreters may come and go meanwhile; CPython guards its list, and one that goes is freed
        // by a thread that holds its lock, after it has been taken out.
        unsafe {
            let mut next = (self.PyInterpreterState_Head)();
            while !next.is_null() {
                count += 1;
                next = (self.PyInterpreterState_Next)(next);
            }
        }
        u32::saturating_sub(count, 1)
    }

    /// Whether the calling thread holds the interpreter's lock (is attached, in a free-threaded build).
    pub(super) fn is_held_here(&self) -> bool {
        // SAFETY: all three may be called at any time without the lock (documented).
        unsafe {
            match self.current_thread_state {
                Some(current) => !current().is_null(),
                // Not asked where the above is there: once a subinterpreter was made, PyGILState_Check says yes to every thread.
                None => !(self.PyGILState_GetThisThreadState)().is_null() && (self.PyGILState_Check)() != 0,
            }
        }
    }
}

/// The CPython of this process.
#[derive(Clone, Copy, Debug)]
pub struct Runtime {
    pub(super) api: &'static Api,
    pub(super) version: &'static str,
}

static FOUND: OnceLock<Result<Runtime, Unsupported>> = OnceLock::new();

impl Runtime {
    /// Looks for CPython among the loaded libraries. Needs no lock and runs no Python code. What was found is kept; that there is no Python
    /// is not, as one may be loaded later.
    ///
    /// # Errors
    /// [`Unsupported`], with the reason in a user's words.
    pub fn discover() -> Result<Runtime, Unsupported> {
        let Some(get_version) = find(c"Py_GetVersion") else {
            return Err(Unsupported::NoPython);
        };
        FOUND.get_or_init(|| Runtime::examine(get_version)).clone()
    }

    fn examine(get_version: *mut c_void) -> Result<Runtime, Unsupported> {
        // SAFETY: `const char *Py_GetVersion(void)` in every CPython; allowed before initialisation.
        let full = unsafe {
            let get = std::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn() -> *const c_char>(get_version);
            CStr::from_ptr(get())
        };
        let full = full.to_str().unwrap_or_default();
        let version = full.split_whitespace().next().unwrap_or_default();
        match parse_version(version) {
            None => return Err(Unsupported::Version(version.to_owned())),
            Some(number) if number < (3, 12) => return Err(Unsupported::TooOld(version.to_owned())),
            Some(_) => {}
        }
        match Api::look_up() {
            Ok(api) => Ok(Runtime {
                api: Box::leak(Box::new(api)),
                version,
            }),
            Err(function) => Err(Unsupported::Missing {
                version: version.to_owned(),
                function,
            }),
        }
    }

    /// The interpreter's version, e.g. `3.13.0`.
    pub fn version(&self) -> &'static str {
        self.version
    }

    /// Whether the interpreter is initialised and not ending.
    pub fn is_running(&self) -> bool {
        self.api.is_running()
    }

    /// Whether the calling thread holds the interpreter's lock.
    pub fn lock_is_held_here(&self) -> bool {
        self.api.is_running() && self.api.is_held_here()
    }
}

/// Major and minor number of `3.13.0rc1+` and the like.
fn parse_version(text: &str) -> Option<(u32, u32)> {
    let (major, rest) = text.split_once('.')?;
    let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(parse_version("3.13.0"), Some((3, 13)));
        assert_eq!(parse_version("3.15.0rc1+"), Some((3, 15)));
        assert_eq!(parse_version("3"), None);
        assert_eq!(parse_version("three.one"), None);
    }

    #[test]
    fn a_process_without_python_says_so() {
        assert_eq!(Runtime::discover().err(), Some(Unsupported::NoPython));
    }

    #[test]
    fn reasons_are_in_a_users_words() {
        assert_eq!(
            Unsupported::TooOld("3.11.7".to_owned()).to_string(),
            "Python attribution needs CPython 3.12 or newer (this server runs 3.11.7)"
        );
    }
}
