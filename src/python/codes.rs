//! Code objects and their ids.
//!
//! A code object is known by its address. So that an address never stands for two code objects within a session, each one that has an id is
//! kept alive by a reference until the session ends; [`crate::limits::CODE_OBJECTS`] bounds them.

use std::collections::HashMap;

use pyo3_ffi::PyObject;

use crate::limits::CODE_OBJECTS;
use crate::model::{Category, CodeId, CodeInfo};

/// The session's code objects. Guarded by a lock that is never held while Python is called, so that waiting for it with the interpreter's lock
/// held cannot wait for ever.
#[derive(Debug, Default)]
pub(super) struct Codes {
    by_address: HashMap<u64, CodeId>,
    infos: Vec<CodeInfo>,
    kept: Vec<Kept>,
    by_category: [u32; Category::ALL.len()],
    /// No more are named: one could not be.
    closed: bool,
}

/// A reference that is ours.
#[derive(Debug)]
pub(super) struct Kept(pub(super) *mut PyObject);

// SAFETY: the object is touched only with the interpreter's lock held, from whichever thread.
unsafe impl Send for Kept {}

/// What became of an insertion.
#[derive(Debug)]
pub(super) enum Insertion {
    /// It has this id now.
    New(CodeId),
    /// Another thread was first; the reference is given back to the caller.
    Known(CodeId, Kept),
    /// There are too many; the reference is given back to the caller.
    Full(Kept),
}

impl Codes {
    /// The id of the code object at this address.
    pub(super) fn find(&self, address: u64) -> Option<CodeId> {
        self.by_address.get(&address).copied()
    }

    /// Whether there are as many as may be.
    pub(super) fn is_full(&self) -> bool {
        self.infos.len() >= CODE_OBJECTS
    }

    /// Names no more from now on; those that are named keep their names.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// Whether [`Codes::close`] was called.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Names the code object at this address, which `kept` keeps alive.
    pub(super) fn insert(&mut self, address: u64, kept: Kept, info: CodeInfo) -> Insertion {
        if let Some(id) = self.find(address) {
            return Insertion::Known(id, kept);
        }
        if self.is_full() {
            return Insertion::Full(kept);
        }
        let of_its_kind = Category::ALL.iter().position(|category| *category == info.category);
        if let Some(count) = of_its_kind.and_then(|kind| self.by_category.get_mut(kind)) {
            *count += 1;
        }
        self.infos.push(info);
        self.kept.push(kept);
        let id = CodeId::new(self.infos.len() as u32);
        self.by_address.insert(address, id);
        Insertion::New(id)
    }

    /// Counts by category, in the order of [`Category::ALL`].
    pub(super) fn by_category(&self) -> [u32; Category::ALL.len()] {
        self.by_category
    }

    /// All that are known, by id.
    pub(super) fn table(&self) -> Vec<(CodeId, CodeInfo)> {
        let ids = (1..).map(CodeId::new);
        ids.zip(self.infos.iter().cloned()).collect()
    }

    /// Gives up all references, to be given back with the interpreter's lock held, and forgets the addresses.
    pub(super) fn give_up(&mut self) -> Vec<Kept> {
        self.by_address.clear();
        std::mem::take(&mut self.kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(category: Category) -> CodeInfo {
        CodeInfo {
            module: "m".to_owned(),
            qualified_name: "f".to_owned(),
            file: "m.py".to_owned(),
            first_line: 1,
            category,
            plugin: None,
        }
    }

    fn kept() -> Kept {
        Kept(std::ptr::null_mut())
    }

    #[test]
    fn ids_count_from_one_and_the_first_insertion_wins() {
        let mut codes = Codes::default();
        assert!(matches!(codes.insert(10, kept(), info(Category::Plugin)), Insertion::New(id) if id.get() == 1));
        assert!(matches!(codes.insert(20, kept(), info(Category::Plugin)), Insertion::New(id) if id.get() == 2));
        assert!(matches!(codes.insert(10, kept(), info(Category::Unknown)), Insertion::Known(id, _) if id.get() == 1));
        assert_eq!(codes.find(20).map(CodeId::get), Some(2));
        assert_eq!(codes.by_category(), [2, 0, 0, 0, 0]);
        assert_eq!(codes.table().len(), 2);
        assert_eq!(codes.give_up().len(), 2);
        assert_eq!(codes.find(20), None);
        assert_eq!(codes.table().len(), 2);
    }

    #[test]
    fn a_full_table_takes_no_more_and_keeps_what_it_has() {
        let mut codes = Codes::default();
        for address in 1..=CODE_OBJECTS as u64 {
            assert!(matches!(
                codes.insert(address, kept(), info(Category::Unknown)),
                Insertion::New(_)
            ));
        }
        assert!(matches!(
            codes.insert(u64::MAX, kept(), info(Category::Unknown)),
            Insertion::Full(_)
        ));
        assert_eq!(codes.find(1).map(CodeId::get), Some(1));
    }
}
