//! Frames as they were captured.

use super::ids::{CodeId, ModuleId};

/// One native frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NativeFrame {
    /// The module that holds the address, or [`ModuleId::NONE`].
    pub module: ModuleId,
    /// The address to look up, relative to the module's lowest mapped address as linked (its `base_svma`), or absolute without a module. For
    /// a return address this already is the address of the call (return address - 1).
    pub rva: u64,
    /// Canonical frame address: the value of the stack pointer in the caller just before the call. 0 when it is not known.
    pub cfa: u64,
}

/// One Python frame of a shadow stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PythonEntry {
    /// CFA of the C frame that evaluates this Python frame. Several entries may share one. 0 when it is not known.
    pub anchor: u64,
    /// What runs.
    pub code: CodeId,
}
