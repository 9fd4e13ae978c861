//! A frozen profile.

use std::sync::Arc;

use super::tree::Tree;
use super::windows::{WindowClock, WindowStats};
use crate::model::{CodeId, CodeInfo, Module, ThreadKey};

/// One thread's part of a profile.
#[derive(Clone, Debug)]
pub struct ThreadProfile {
    /// Which thread.
    pub key: ThreadKey,
    /// Its name at the end of the session.
    pub name: String,
    /// What it did.
    pub tree: Tree,
    /// How many threads are in the tree: 1, or more where threads that have ended were put together.
    pub members: u32,
    /// It shares no tree with others of its name: the server thread, from which new threads inherit their first name.
    pub alone: bool,
}

/// Everything that export needs. Nothing in it is live: sampling may go on, the interpreter may be gone.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// In the order they are shown, the server thread first.
    pub threads: Vec<ThreadProfile>,
    /// Maps windows to minutes.
    pub clock: WindowClock,
    /// Window that [`Snapshot::windows`] begins with.
    pub first_window: u32,
    /// The windows' figures, without a gap. Windows that have samples but no figures are exported with empty ones.
    pub windows: Vec<WindowStats>,
    /// All modules ever seen in the session.
    pub modules: Vec<Arc<Module>>,
    /// Code objects, by id.
    pub codes: Vec<(CodeId, CodeInfo)>,
}
