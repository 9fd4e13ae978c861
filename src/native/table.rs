//! The modules as a handler sees them: which code ranges there are, and the unwind data behind each.

use std::ops::Range;
use std::sync::Arc;

use super::cfi::UnwindData;
use crate::model::ModuleId;

/// One module of a [`ModuleTable`].
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) id: ModuleId,
    /// Added to a linked address to get one in this process. May wrap.
    pub(super) bias: u64,
    pub(super) unwind: Option<Arc<UnwindData>>,
    /// Executable ranges in this process.
    pub(super) code: Vec<Range<u64>>,
    /// These can be read as well (they can on nearly all systems; protection keys make code that cannot).
    pub(super) readable: bool,
}

/// See the module's text. Immutable once made.
#[derive(Debug, Default)]
pub struct ModuleTable {
    modules: Vec<Entry>,
    /// Executable ranges, ascending, with the index of their module.
    code: Vec<(Range<u64>, u32)>,
}

impl ModuleTable {
    pub(super) fn new(modules: Vec<Entry>) -> Self {
        let mut code: Vec<(Range<u64>, u32)> = modules
            .iter()
            .zip(0..)
            .flat_map(|(module, index)| module.code.iter().map(move |range| (range.clone(), index)))
            .collect();
        code.sort_unstable_by_key(|(range, _)| range.start);
        ModuleTable { modules, code }
    }

    /// The module whose code holds `address`.
    pub(super) fn find(&self, address: u64) -> Option<&Entry> {
        self.find_with_range(address).map(|(_, entry)| entry)
    }

    /// The same with the range that holds it.
    pub(super) fn find_with_range(&self, address: u64) -> Option<(&Range<u64>, &Entry)> {
        let at = self
            .code
            .partition_point(|(range, _)| range.start <= address)
            .checked_sub(1)?;
        let (range, module) = self.code.get(at).filter(|(range, _)| range.contains(&address))?;
        Some((range, self.modules.get(*module as usize)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(number: u32, code: Vec<Range<u64>>) -> Entry {
        Entry {
            id: ModuleId::new(number),
            bias: 0,
            unwind: None,
            code,
            readable: true,
        }
    }

    #[test]
    fn only_code_is_found() {
        let table = ModuleTable::new(vec![module(1, vec![50..60, 80..90]), module(2, vec![10..20, 30..31])]);
        let find = |address| table.find(address).map(|entry| entry.id.get());
        assert_eq!(find(10), Some(2));
        assert_eq!(find(20), None);
        assert_eq!(find(55), Some(1));
        assert_eq!(find(65), None);
        assert_eq!(find(89), Some(1));
        assert_eq!(find(9), None);
        assert!(ModuleTable::default().find(0).is_none());
    }
}
