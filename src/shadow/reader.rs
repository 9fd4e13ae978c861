//! What a reader of a shadow stack gets.

use crate::limits::PYTHON_FRAMES;
use crate::model::{CodeId, PythonEntry};

/// The result of one attempt to read a shadow stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShadowRead {
    /// The thread has none: it has not run Python in this session, or there was no slot for it.
    NoStack,
    /// It was being changed. The buffer's contents are meaningless.
    Torn,
    /// It was read.
    Frames {
        /// Entries in the buffer, outermost first.
        count: usize,
        /// Deeper frames beyond [`PYTHON_FRAMES`].
        hidden: u32,
    },
}

/// Preallocated room for one copy of a shadow stack.
#[derive(Debug)]
pub struct ReadBuffer {
    entries: [PythonEntry; PYTHON_FRAMES],
}

impl ReadBuffer {
    /// An empty buffer, fit for a static.
    #[allow(clippy::new_without_default)] // Four kilobytes are made on purpose or not at all.
    pub const fn new() -> Self {
        const EMPTY: PythonEntry = PythonEntry {
            anchor: 0,
            code: CodeId::NONE,
        };
        ReadBuffer {
            entries: [EMPTY; PYTHON_FRAMES],
        }
    }

    /// The first `count` entries, outermost first. `count` is that of the last [`ShadowRead::Frames`].
    #[inline]
    pub fn entries(&self, count: usize) -> &[PythonEntry] {
        self.entries.get(..count).unwrap_or(&self.entries)
    }

    #[inline]
    pub(super) fn put(&mut self, index: usize, entry: PythonEntry) {
        if let Some(place) = self.entries.get_mut(index) {
            *place = entry;
        }
    }
}
