//! Vtables of Endstone's classes, laid out as the released runtime's debug information says: the stand-in's own objects are called through them as a plugin
//! calls the real ones, so a plugin that uses a wrong slot calls the wrong function.

use std::collections::BTreeMap;
use std::path::Path;

use crate::dwarf::{Class, Types};
use crate::error::HostError;

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
            types: Types::read(&bytes),
        })
    }

    fn class(&self, name: &str) -> Result<Class, HostError> {
        self.types.class(name).ok_or(HostError::NoClass(name.to_owned()))
    }

    /// Names of all functions by slot, those of the bases that share the vtable included. Destructors have none.
    fn slots(&self, name: &str) -> Result<BTreeMap<u64, String>, HostError> {
        let class = self.class(name)?;
        let mut slots = BTreeMap::new();
        for (base, _) in class.bases.iter().filter(|(_, offset)| **offset == 0) {
            slots.extend(self.slots(&format!("endstone::{base}"))?);
        }
        slots.extend(
            class
                .methods
                .iter()
                .map(|(slot, method)| (*slot, method.symbol.clone())),
        );
        Ok(slots)
    }

    /// A vtable with these functions, given by their mangled names, and `unexpected` everywhere else. The address is that of slot 0; it lives for ever.
    pub fn build(
        &self,
        class: &str,
        functions: &[(&'static str, usize)],
        unexpected: usize,
    ) -> Result<usize, HostError> {
        let slots = self.slots(class)?;
        let last = slots.keys().next_back().copied().unwrap_or(0) as usize;
        // The deleting destructor follows the complete one and is declared with it.
        let mut table = vec![unexpected; HEAD + last + 2];
        table[..HEAD].fill(0);
        for (symbol, function) in functions {
            let slot = match *symbol {
                DELETE => slots.iter().find(|(_, name)| name.is_empty()).map(|(slot, _)| slot + 1),
                symbol => slots.iter().find(|(_, name)| *name == symbol).map(|(slot, _)| *slot),
            };
            let slot = slot.ok_or(HostError::NoSlot(symbol))?;
            table[HEAD + slot as usize] = *function;
        }
        Ok(table.leak()[HEAD..].as_ptr() as usize)
    }
}
