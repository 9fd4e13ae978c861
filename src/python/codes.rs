//! Code objects and their ids.
//!
//! **Problem.** Callbacks know a code object by its address. Code dies (`exec`, reloaded plugins, lambdas made anew), and its address is given to other
//! code. Keeping all of it alive would make that impossible, but a session may last for weeks.
//!
//! **Algorithm.** A code object's address is known while the object lives: [`super::watcher`] tells of its death. An id stands for what a profile shows
//! of it, so code that is made again and again, and shows the same, has one id, and a loop of `exec` adds nothing.
//!
//! **Price.** Addresses take no more room than the living code objects themselves, of which they are a small part. Ids are never taken
//! back, because samples hold them; [`crate::limits::CODE_OBJECTS`] bounds them.

use std::collections::HashMap;
use std::sync::Arc;

use crate::limits::CODE_OBJECTS;
use crate::model::{Category, CodeId, CodeInfo};

/// The session's code objects. Guarded by a lock that is never held while Python is called, so that waiting for it with the interpreter's lock
/// held cannot wait for ever.
#[derive(Debug, Default)]
pub(super) struct Codes {
    /// Living code objects that were seen; [`CodeId::NONE`] for those that could have no id.
    by_address: HashMap<u64, CodeId>,
    by_info: HashMap<Arc<CodeInfo>, CodeId>,
    infos: Vec<Arc<CodeInfo>>,
    by_category: [u32; Category::ALL.len()],
    /// No more are named: one could not be.
    closed: bool,
}

impl Codes {
    /// The id of the living code object at this address.
    pub(super) fn find(&self, address: u64) -> Option<CodeId> {
        self.by_address.get(&address).copied()
    }

    /// What a profile shows of a code object.
    pub(super) fn info(&self, id: CodeId) -> Option<&CodeInfo> {
        let index = id.get().checked_sub(1)?;
        self.infos.get(index as usize).map(|info| &**info)
    }

    /// The same in one word.
    pub(super) fn name_of(&self, id: CodeId) -> String {
        let info = self.info(id);
        info.map_or_else(
            || "?".to_owned(),
            |info| format!("{}.{}", info.module, info.qualified_name),
        )
    }

    /// Names no more from now on; those that are named keep their names.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// Whether [`Codes::close`] was called.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Names the code object at this address. [`CodeId::NONE`] when there are too many.
    pub(super) fn insert(&mut self, address: u64, info: CodeInfo) -> CodeId {
        let id = self.id_of(info);
        self.by_address.insert(address, id);
        id
    }

    fn id_of(&mut self, info: CodeInfo) -> CodeId {
        if let Some(id) = self.by_info.get(&info) {
            return *id;
        }
        if self.closed || self.infos.len() >= CODE_OBJECTS {
            return CodeId::NONE;
        }
        let of_its_kind = Category::ALL.iter().position(|category| *category == info.category);
        if let Some(count) = of_its_kind.and_then(|kind| self.by_category.get_mut(kind)) {
            *count += 1;
        }
        let info = Arc::new(info);
        self.infos.push(Arc::clone(&info));
        let id = CodeId::new(self.infos.len() as u32);
        self.by_info.insert(info, id);
        id
    }

    /// The code object at this address dies. Whether it was known.
    pub(super) fn forget(&mut self, address: u64) -> bool {
        self.by_address.remove(&address).is_some()
    }

    /// Code objects that are alive and were seen.
    pub(super) fn living(&self) -> usize {
        self.by_address.len()
    }

    /// Counts of ids by category, in the order of [`Category::ALL`].
    pub(super) fn by_category(&self) -> [u32; Category::ALL.len()] {
        self.by_category
    }

    /// All that are known, by id.
    pub(super) fn table(&self) -> Vec<(CodeId, CodeInfo)> {
        let ids = (1..).map(CodeId::new);
        ids.zip(self.infos.iter().map(|info| CodeInfo::clone(info))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(first_line: u32, category: Category) -> CodeInfo {
        CodeInfo {
            module: "m".to_owned(),
            qualified_name: "f".to_owned(),
            file: "m.py".to_owned(),
            first_line,
            category,
            plugin: None,
        }
    }

    #[test]
    fn ids_count_from_one_and_what_shows_the_same_is_one() {
        let mut codes = Codes::default();
        assert_eq!(codes.insert(10, info(1, Category::Plugin)).get(), 1);
        assert_eq!(codes.insert(20, info(2, Category::Plugin)).get(), 2);
        assert_eq!(codes.insert(30, info(1, Category::Plugin)).get(), 1);
        assert_eq!(codes.find(30).map(CodeId::get), Some(1));
        assert_eq!(codes.by_category(), [2, 0, 0, 0, 0]);
        assert_eq!(codes.table().len(), 2);
    }

    #[test]
    fn an_address_that_is_used_again_does_not_inherit() {
        let mut codes = Codes::default();
        codes.insert(10, info(1, Category::Plugin));
        assert!(codes.forget(10));
        assert!(!codes.forget(10));
        assert_eq!((codes.find(10), codes.living()), (None, 0));
        assert_eq!(codes.insert(10, info(2, Category::Plugin)).get(), 2);
        assert_eq!(codes.table().len(), 2, "samples may still hold the first id");
    }

    #[test]
    fn a_full_table_takes_no_more_and_keeps_what_it_has() {
        let mut codes = Codes::default();
        for line in 1..=CODE_OBJECTS as u32 {
            codes.insert(u64::from(line), info(line, Category::Unknown));
        }
        assert_eq!(codes.insert(u64::MAX, info(0, Category::Unknown)), CodeId::NONE);
        assert_eq!(codes.insert(u64::MAX - 1, info(7, Category::Unknown)).get(), 7);
        assert_eq!(codes.find(1).map(CodeId::get), Some(1));
    }
}
