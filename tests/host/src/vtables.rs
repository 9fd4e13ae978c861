//! Vtables of Endstone's classes, laid out as the released runtime's debug information says: the stand-in's own objects are called through them as a plugin
//! calls the real ones, so a plugin that uses a wrong slot calls the wrong function.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::HostError;
use crate::types::{Class, Types};

/// Words before the first function: offset to top, type information (which nobody asks these objects for).
const HEAD: usize = 2;

/// The name under which [`Vtables::build`] takes a deleting destructor.
pub const DELETE: &str = "delete";

/// Classes of the runtime.
pub struct Vtables {
    types: Types,
}

impl Vtables {
    /// Reads the runtime's debug information, which takes a second or two.
    pub fn read(runtime: &Path) -> Result<Vtables, HostError> {
        let bytes = std::fs::read(runtime).map_err(|source| HostError::ReadRuntime {
            path: runtime.to_owned(),
            source,
        })?;
        Ok(Vtables {
            types: Types::read(&bytes)?,
        })
    }

    fn class(&self, name: &str) -> Result<Class, HostError> {
        self.types.class(name)?.ok_or(HostError::NoClass(name.to_owned()))
    }

    /// Names of all functions by slot: a function that is declared again further down has one in each class. Those of the bases that share the vtable are
    /// included. Destructors have an empty name.
    fn slots(&self, name: &str) -> Result<BTreeMap<u64, Vec<String>>, HostError> {
        let class = self.class(name)?;
        let mut slots: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for (base, _) in class.bases.iter().filter(|(_, offset)| **offset == 0) {
            for (slot, names) in self.slots(&format!("endstone::{base}"))? {
                slots.entry(slot).or_default().extend(names);
            }
        }
        for (slot, method) in &class.methods {
            slots.entry(*slot).or_default().push(method.symbol.clone());
        }
        Ok(slots)
    }

    /// A vtable with these functions, given by their mangled names, and in all other slots those of `unexpected`. The address is that of slot 0; it lives for ever.
    pub fn build(
        &self,
        class: &str,
        functions: &[(&'static str, usize)],
        unexpected: &[usize],
    ) -> Result<usize, HostError> {
        let slots = self.slots(class)?;
        let last = slots.keys().next_back().copied().unwrap_or(0) as usize;
        // The deleting destructor follows the complete one and is declared with it.
        let mut table = vec![0; HEAD];
        table.extend(unexpected.iter().take(last + 2));
        for (symbol, function) in functions {
            let (name, behind) = match *symbol {
                DELETE => ("", 1),
                symbol => (symbol, 0),
            };
            let slot = slots.iter().find(|(_, names)| names.iter().any(|known| known == name));
            let (slot, _) = slot.ok_or(HostError::NoSlot(symbol))?;
            table[HEAD + *slot as usize + behind] = *function;
        }
        Ok(table.leak()[HEAD..].as_ptr() as usize)
    }
}
