//! What tests ask the process about itself, to prove that a profiler left nothing behind.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The present action of SIGPROF: `SIG_DFL`, `SIG_IGN`, or the handler's offset in its module.
pub fn sigprof() -> String {
    // SAFETY: an all-zero record is valid, and null asks without changing.
    let action = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGPROF, std::ptr::null(), &raw mut action);
        action
    };
    match action.sa_sigaction {
        libc::SIG_DFL => "SIG_DFL".to_owned(),
        libc::SIG_IGN => "SIG_IGN".to_owned(),
        handler => module_offset(handler),
    }
}

/// The file that the code at this address is from, and where it begins in memory.
pub fn module_of(address: usize) -> Option<(PathBuf, usize)> {
    // SAFETY: dladdr takes any address and fills the record when it returns non-zero; the name is then a C string.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(address as *const c_void, &raw mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        let name = OsStr::from_bytes(CStr::from_ptr(info.dli_fname).to_bytes());
        Some((name.into(), info.dli_fbase as usize))
    }
}

fn module_offset(address: usize) -> String {
    match module_of(address) {
        Some((file, base)) => format!("{}+{:#x}", file.display(), address - base),
        None => format!("{address:#x}"),
    }
}

/// The names of the process's threads, sorted.
pub fn threads() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok())
        .map(|name| name.trim_end().to_owned())
        .collect();
    names.sort();
    names
}

/// The `sys.monitoring` tools in use, as `id=name`.
pub fn tools() -> String {
    python(
        "__import__('sys').version_info < (3, 12) and 'unsupported' or ' '.join(f'{i}={__import__(\"sys\").monitoring.get_tool(i)}' \
         for i in range(6) if __import__('sys').monitoring.get_tool(i) is not None) or 'none'",
    )
}

/// The value of a Python expression as `str()` shows it, evaluated in `__main__` on the calling thread.
pub fn python(expression: &str) -> String {
    evaluate(expression).unwrap_or_else(|reason| reason.to_owned())
}

/// Looks up a function of libpython, which is not linked.
macro_rules! python_function {
    ($name:literal, fn($($type:ty),*) $(-> $result:ty)?) => {{
        let address = libc::dlsym(libc::RTLD_DEFAULT, $name.as_ptr());
        if address.is_null() {
            return Err("no Python in this process");
        }
        std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) $(-> $result)?>(address)
    }};
}
pub(crate) use python_function;

type Object = *mut c_void;
const EVAL_INPUT: c_int = 258;

fn evaluate(expression: &str) -> Result<String, &'static str> {
    let code = CString::new(format!("str({expression})")).map_err(|_| "the expression holds a zero byte")?;
    // SAFETY: the functions are CPython's, with these signatures in every supported version. The GIL is held from Ensure to Release;
    // __main__ and its dictionary are borrowed and live as long as the interpreter; the result's text is copied before it is released.
    unsafe {
        let is_initialized = python_function!(c"Py_IsInitialized", fn() -> c_int);
        let ensure = python_function!(c"PyGILState_Ensure", fn() -> c_int);
        let release = python_function!(c"PyGILState_Release", fn(c_int));
        let add_module = python_function!(c"PyImport_AddModule", fn(*const c_char) -> Object);
        let module_dict = python_function!(c"PyModule_GetDict", fn(Object) -> Object);
        let run = python_function!(
            c"PyRun_StringFlags",
            fn(*const c_char, c_int, Object, Object, Object) -> Object
        );
        let as_utf8 = python_function!(c"PyUnicode_AsUTF8", fn(Object) -> *const c_char);
        let dec_ref = python_function!(c"Py_DecRef", fn(Object));
        let print_error = python_function!(c"PyErr_Print", fn());
        if is_initialized() == 0 {
            return Err("Python is not started");
        }
        let state = ensure();
        let globals = module_dict(add_module(c"__main__".as_ptr()));
        let value = run(code.as_ptr(), EVAL_INPUT, globals, globals, std::ptr::null_mut());
        let text = if value.is_null() {
            std::ptr::null()
        } else {
            as_utf8(value)
        };
        let result = if text.is_null() {
            print_error();
            Err("the expression failed")
        } else {
            Ok(CStr::from_ptr(text).to_string_lossy().into_owned())
        };
        if !value.is_null() {
            dec_ref(value);
        }
        release(state);
        result
    }
}
