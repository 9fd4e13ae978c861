//! Ids. Each is valid only for the table that gave it.

use std::fmt;

/// A Python code object within one session, numbered from 1 in order of first sight.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CodeId(u32);

impl CodeId {
    /// No code object: the entry is to be shown as unknown.
    pub const NONE: CodeId = CodeId(0);

    /// The id with this number.
    pub const fn new(number: u32) -> Self {
        CodeId(number)
    }

    /// The number, 0 for [`CodeId::NONE`].
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Debug for CodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "code {}", self.0)
    }
}

/// A module (executable or shared object) as it was mapped at one time. Never given to another module while the process lives: a library that is
/// unloaded and loaded again keeps its id only if file, address and build id are the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ModuleId(u32);

impl ModuleId {
    /// Outside all modules: generated code, or a module that was gone when the address was looked at.
    pub const NONE: ModuleId = ModuleId(0);

    /// The id with this number.
    pub const fn new(number: u32) -> Self {
        ModuleId(number)
    }

    /// The number, 0 for [`ModuleId::NONE`].
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// A kernel thread id. The kernel reuses these; see [`ThreadKey`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Tid(i32);

impl Tid {
    /// The thread with this kernel id.
    pub const fn new(tid: i32) -> Self {
        Tid(tid)
    }

    /// The kernel's number.
    pub const fn get(self) -> i32 {
        self.0
    }
}

/// One thread's life: its kernel id and a serial that tells two threads with the same id apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ThreadKey {
    /// The kernel's id.
    pub tid: Tid,
    /// Counts the threads that the session has seen, in order of first sight.
    pub serial: u32,
}
