//! An embedded CPython, looked up like the plugin does it.

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;

pub type Object = *mut c_void;

macro_rules! functions {
    ($(fn $name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        #[allow(non_snake_case, dead_code)]
        #[derive(Clone, Copy)]
        pub struct Interpreter {
            $(#[allow(dead_code)] pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }
        impl Interpreter {
            #[allow(non_snake_case)]
            fn look_up() -> Self {
                $(
                    let name = CString::new(stringify!($name)).unwrap();
                    // SAFETY: a NUL-terminated name.
                    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
                    assert!(!address.is_null(), "libpython lacks {}", stringify!($name));
                    // SAFETY: CPython's public function of this name has this signature.
                    let $name = unsafe {
                        std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) $(-> $result)?>(address)
                    };
                )*
                Interpreter { $($name,)* }
            }
        }
    };
}

functions! {
    fn Py_InitializeEx(c_int);
    fn Py_FinalizeEx() -> c_int;
    fn Py_NewInterpreterFromConfig(*mut *mut c_void, *const SubinterpreterConfig) -> Status;
    fn Py_EndInterpreter(*mut c_void);
    fn PyThreadState_Swap(*mut c_void) -> *mut c_void;
    fn PyEval_SaveThread() -> *mut c_void;
    fn PyEval_RestoreThread(*mut c_void);
    fn PyRun_SimpleString(*const c_char) -> c_int;
    fn PyImport_AddModule(*const c_char) -> Object;
    fn PyObject_SetAttrString(Object, *const c_char, Object) -> c_int;
    fn PyObject_GetAttrString(Object, *const c_char) -> Object;
    fn PyCFunction_NewEx(*const MethodDef, Object, Object) -> Object;
    fn PyUnicode_AsUTF8(Object) -> *const c_char;
    fn PyLong_FromLong(std::ffi::c_long) -> Object;
    fn PyLong_AsLong(Object) -> std::ffi::c_long;
    fn PyGILState_GetThisThreadState() -> *mut c_void;
    fn PyEval_GetFrame() -> Object;
    fn PyFrame_GetBack(Object) -> Object;
    fn PyFrame_GetCode(Object) -> Object;
    fn PyFrame_GetLasti(Object) -> c_int;
    fn PyBytes_AsString(Object) -> *const c_char;
    fn Py_IncRef(Object);
    fn Py_DecRef(Object);
}

/// `PyStatus` of Include/cpython/initconfig.h, 0 for success.
#[repr(C)]
pub struct Status {
    pub kind: c_int,
    pub function: *const c_char,
    pub message: *const c_char,
    pub exit_code: c_int,
}

/// `PyInterpreterConfig` of the same file.
#[repr(C)]
pub struct SubinterpreterConfig {
    pub use_main_obmalloc: c_int,
    pub allow_fork: c_int,
    pub allow_exec: c_int,
    pub allow_threads: c_int,
    pub allow_daemon_threads: c_int,
    pub check_multi_interp_extensions: c_int,
    /// 1 for the main interpreter's lock, 2 for one of its own.
    pub gil: c_int,
}

/// Include/methodobject.h
#[repr(C)]
pub struct MethodDef {
    pub name: *const c_char,
    pub method: unsafe extern "C" fn(Object, Object) -> Object,
    pub flags: c_int,
    pub doc: *const c_char,
}

impl Interpreter {
    /// Loads libpython as a program that links it would have it, and starts it on this thread, which then holds the lock.
    pub fn start(library: &Path) -> Interpreter {
        let name = CString::new(library.to_str().unwrap()).unwrap();
        // SAFETY: loading libpython runs no code of its own.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        assert!(!handle.is_null(), "cannot load {}", library.display());
        let interpreter = Interpreter::look_up();
        // SAFETY: first call, on the thread that goes on to use it.
        unsafe { (interpreter.Py_InitializeEx)(0) };
        interpreter
    }

    /// Adds a function without arguments (`METH_NOARGS`) to `__main__`.
    #[allow(dead_code)] // Each program that uses this file uses its own part.
    pub fn add_function(&self, name: &'static std::ffi::CStr, method: unsafe extern "C" fn(Object, Object) -> Object) {
        self.add(name, method, 4);
    }

    /// Adds a function to `__main__` that looks at none of its arguments (`METH_FASTCALL`).
    #[allow(dead_code)]
    pub fn add_fast_function(
        &self,
        name: &'static std::ffi::CStr,
        method: unsafe extern "C" fn(Object, Object) -> Object,
    ) {
        self.add(name, method, 0x80);
    }

    /// Adds a function with one argument (`METH_O`) to `__main__`.
    #[allow(dead_code)]
    pub fn add_function_of_one(
        &self,
        name: &'static std::ffi::CStr,
        method: unsafe extern "C" fn(Object, Object) -> Object,
    ) {
        self.add(name, method, 8);
    }

    fn add(&self, name: &'static std::ffi::CStr, method: unsafe extern "C" fn(Object, Object) -> Object, flags: c_int) {
        let definition = Box::leak(Box::new(MethodDef {
            name: name.as_ptr(),
            method,
            flags,
            doc: std::ptr::null(),
        }));
        // SAFETY: the lock is held, the definition lives for ever.
        unsafe {
            let function = (self.PyCFunction_NewEx)(definition, std::ptr::null_mut(), std::ptr::null_mut());
            let main = (self.PyImport_AddModule)(c"__main__".as_ptr());
            assert_eq!((self.PyObject_SetAttrString)(main, name.as_ptr(), function), 0);
            (self.Py_DecRef)(function);
        }
    }

    /// Runs source text in `__main__`; an exception is printed and fails the test.
    pub fn run(&self, source: &str) {
        let source = CString::new(source).unwrap();
        // SAFETY: the lock is held and the text is NUL-terminated.
        let failed = unsafe { (self.PyRun_SimpleString)(source.as_ptr()) };
        assert_eq!(failed, 0, "the program failed");
    }

    /// Ends the interpreter.
    #[allow(dead_code)]
    pub fn finish(&self) {
        // SAFETY: the lock is held by the thread that started it.
        assert_eq!(unsafe { (self.Py_FinalizeEx)() }, 0);
    }

    /// Runs `act` inside a new subinterpreter on this thread, whose `__main__` is then what [`Interpreter::run`] runs in.
    #[allow(dead_code)]
    pub fn in_a_subinterpreter(&self, own_lock: bool, act: impl FnOnce()) {
        let config = SubinterpreterConfig {
            use_main_obmalloc: c_int::from(!own_lock),
            allow_fork: 0,
            allow_exec: 0,
            allow_threads: 1,
            allow_daemon_threads: 0,
            check_multi_interp_extensions: 1,
            gil: if own_lock { 2 } else { 1 },
        };
        let mut theirs = std::ptr::null_mut();
        // SAFETY: this thread holds the main interpreter's lock with a state of its own, which is put aside and back.
        unsafe {
            let before = (self.PyThreadState_Swap)(std::ptr::null_mut());
            (self.PyThreadState_Swap)(before);
            let status = (self.Py_NewInterpreterFromConfig)(&mut theirs, &config);
            assert_eq!(status.kind, 0);
            act();
            (self.Py_EndInterpreter)(theirs);
            (self.PyThreadState_Swap)(before);
        }
    }

    /// Runs `act` without the lock.
    #[allow(dead_code)]
    pub fn unlocked<T>(&self, act: impl FnOnce() -> T) -> T {
        // SAFETY: the lock is held by this thread, and taken back by it.
        let state = unsafe { (self.PyEval_SaveThread)() };
        let result = act();
        // SAFETY: as above.
        unsafe { (self.PyEval_RestoreThread)(state) };
        result
    }

    /// Qualified names of the running Python functions, outermost first.
    #[allow(dead_code)]
    pub fn true_stack(&self) -> Vec<String> {
        self.true_frames().into_iter().map(|(name, _)| name).collect()
    }

    /// Qualified names and first lines of the running Python functions, outermost first.
    #[allow(dead_code)]
    pub fn true_frames(&self) -> Vec<(String, u32)> {
        let frames = self.true_frames_and_instructions();
        frames.into_iter().map(|(name, first, _)| (name, first)).collect()
    }

    /// The same with the number of the instruction that each function is at, without instrumentation and specialisation.
    pub fn true_frames_and_instructions(&self) -> Vec<(String, u32, u8)> {
        let mut names = Vec::new();
        // SAFETY: the lock is held; the first frame is borrowed, the others are new references.
        unsafe {
            let mut frame = (self.PyEval_GetFrame)();
            (self.Py_IncRef)(frame);
            while !frame.is_null() {
                let code = (self.PyFrame_GetCode)(frame);
                let name = (self.PyObject_GetAttrString)(code, c"co_qualname".as_ptr());
                let line = (self.PyObject_GetAttrString)(code, c"co_firstlineno".as_ptr());
                let instructions = (self.PyObject_GetAttrString)(code, c"co_code".as_ptr());
                let at = usize::try_from((self.PyFrame_GetLasti)(frame)).unwrap();
                names.push((
                    std::ffi::CStr::from_ptr((self.PyUnicode_AsUTF8)(name))
                        .to_str()
                        .unwrap()
                        .to_owned(),
                    (self.PyLong_AsLong)(line) as u32,
                    (self.PyBytes_AsString)(instructions).add(at).read() as u8,
                ));
                (self.Py_DecRef)(instructions);
                (self.Py_DecRef)(line);
                (self.Py_DecRef)(name);
                (self.Py_DecRef)(code);
                let back = (self.PyFrame_GetBack)(frame);
                (self.Py_DecRef)(frame);
                frame = back;
            }
        }
        names.reverse();
        names
    }

    /// A new reference to an int.
    #[allow(dead_code)]
    pub fn int(&self, value: i64) -> Object {
        // SAFETY: the lock is held.
        unsafe { (self.PyLong_FromLong)(value) }
    }
}
