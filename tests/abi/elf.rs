//! Vtables as a linked file holds them.

use std::collections::HashMap;

use object::{Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationTarget};

/// What is needed of an ELF file to read its vtables.
pub struct Elf {
    /// Vtable symbols: address and size.
    tables: HashMap<String, (u64, u64)>,
    /// All symbols: value in the file.
    symbols: HashMap<String, u64>,
    functions: HashMap<u64, Vec<String>>,
    /// Words that the loader fills in.
    filled: HashMap<u64, Word>,
    sections: Vec<(u64, Vec<u8>)>,
    /// Names of dynamic symbols that other files must have.
    pub undefined: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    Address(u64),
    Symbol(String),
}

impl Elf {
    pub fn read(bytes: &[u8]) -> Elf {
        let file = object::File::parse(bytes).unwrap();
        let mut elf = Elf {
            tables: HashMap::new(),
            symbols: HashMap::new(),
            functions: HashMap::new(),
            filled: HashMap::new(),
            sections: Vec::new(),
            undefined: file
                .dynamic_symbols()
                .filter(|symbol| symbol.is_undefined())
                .map(|symbol| symbol.name().unwrap().to_owned())
                .collect(),
        };
        for symbol in file
            .symbols()
            .chain(file.dynamic_symbols())
            .filter(|symbol| symbol.address() != 0)
        {
            let Ok(name) = symbol.name() else { continue };
            if name.starts_with("_ZTV") {
                elf.tables.insert(name.to_owned(), (symbol.address(), symbol.size()));
            } else if symbol.kind() == object::SymbolKind::Text {
                elf.functions.entry(symbol.address()).or_default().push(name.to_owned());
            }
            elf.symbols.insert(name.to_owned(), symbol.address());
        }
        let dynamic = file.dynamic_symbol_table().unwrap();
        for (offset, relocation) in file.dynamic_relocations().unwrap() {
            let word = match relocation.target() {
                RelocationTarget::Symbol(index) => {
                    Word::Symbol(dynamic.symbol_by_index(index).unwrap().name().unwrap().to_owned())
                }
                _ => Word::Address(relocation.addend() as u64),
            };
            elf.filled.insert(offset, word);
        }
        elf.sections = file
            .sections()
            .filter(|section| section.address() != 0 && section.name().is_ok_and(|name| name.starts_with(".data")))
            .map(|section| (section.address(), section.data().unwrap().to_vec()))
            .collect();
        elf
    }

    /// Names of the vtables that this file emits.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        self.tables.keys().map(String::as_str)
    }

    /// The value of a symbol: its address before loading.
    pub fn symbol(&self, name: &str) -> u64 {
        *self.symbols.get(name).unwrap_or_else(|| panic!("no symbol {name}"))
    }

    /// The functions in the part of a vtable that belongs to the base class `offset` bytes into the object, slot 0 first. Each with all names
    /// it has; a number's or type information's names are empty.
    pub fn slots(&self, table: &str, offset: u64) -> Vec<Vec<String>> {
        let &(start, size) = self
            .tables
            .get(table)
            .unwrap_or_else(|| panic!("{table} is not emitted"));
        let rows: Vec<u64> = (start..start + size).step_by(8).collect();
        // A part begins with minus its offset, then the type information.
        let head = rows
            .iter()
            .position(|row| !self.filled.contains_key(row) && self.word(*row) == offset.wrapping_neg())
            .unwrap_or_else(|| panic!("{table} has no part for offset {offset}"));
        assert!(
            self.filled.contains_key(&rows[head + 1]),
            "{table} has no type information"
        );
        rows[head + 2..]
            .iter()
            .map_while(|row| self.filled.get(row))
            .map(|word| self.names(word))
            .collect()
    }

    fn names(&self, word: &Word) -> Vec<String> {
        match word {
            Word::Symbol(name) => vec![name.clone()],
            Word::Address(address) => self.functions.get(address).cloned().unwrap_or_default(),
        }
    }

    fn word(&self, address: u64) -> u64 {
        let found = self.sections.iter().find_map(|(start, data)| {
            let at = usize::try_from(address.checked_sub(*start)?).ok()?;
            Some(u64::from_le_bytes(data.get(at..at + 8)?.try_into().unwrap()))
        });
        found.unwrap_or_else(|| panic!("nothing is at {address:#x}"))
    }
}
