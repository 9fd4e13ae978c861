//! Functions of an ELF file.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use object::elf::{
    ELF_NOTE_GNU, ELFCOMPRESS_ZLIB, FileHeader64, NT_GNU_BUILD_ID, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT, SHF_ALLOC,
    SHN_LORESERVE, SHT_DYNSYM, SHT_NOBITS, SHT_SYMTAB, STB_GLOBAL, STB_WEAK, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE,
    SectionHeader64, Sym64,
};
use object::read::elf::{CompressionHeader, FileHeader, ProgramHeader, Rela, SectionHeader, Sym};
use object::{LittleEndian, ReadRef};

use super::compressed::inflate;
use super::dwarf;
use super::error::SymbolError;
use super::extents::Extents;
use super::plt::stubs;
use super::table::{Function, Visibility};
use crate::limits::{DEBUG_INFO_BYTES, SYMBOL_TABLE_BYTES};
use crate::model::BuildId;

type Header = FileHeader64<LittleEndian>;
type Section = SectionHeader64<LittleEndian>;
type Symbol = Sym64<LittleEndian>;

/// What the names of linkage stubs end in, as disassemblers print them.
const STUB_SUFFIX: &[u8] = b"@plt";

const LITTLE: LittleEndian = LittleEndian;

/// An ELF file whose header was read.
#[derive(Debug)]
pub struct Elf<'d, R: ReadRef<'d>> {
    data: R,
    header: &'d Header,
    sections: &'d [Section],
}

impl<'d, R: ReadRef<'d>> Elf<'d, R> {
    /// Reads the header and the section headers.
    pub fn parse(data: R) -> Result<Self, SymbolError> {
        let header = Header::parse(data)?;
        Ok(Elf {
            data,
            header,
            sections: header.section_headers(LITTLE, data)?,
        })
    }

    /// The build id in the loaded notes, which is the one that a mapped module shows.
    pub fn build_id(&self) -> Result<Option<BuildId>, SymbolError> {
        for segment in self.header.program_headers(LITTLE, self.data)? {
            let Some(mut notes) = segment.notes(LITTLE, self.data)? else {
                continue;
            };
            while let Some(note) = notes.next()? {
                if note.name() == ELF_NOTE_GNU && note.n_type(LITTLE) == NT_GNU_BUILD_ID {
                    return Ok(BuildId::new(note.desc()));
                }
            }
        }
        // A separate debug file keeps the note's section and may have lost its segments.
        for section in self.sections {
            let Ok(Some(mut notes)) = section.notes(LITTLE, self.data) else {
                continue;
            };
            while let Ok(Some(note)) = notes.next() {
                if note.name() == ELF_NOTE_GNU && note.n_type(LITTLE) == NT_GNU_BUILD_ID {
                    return Ok(BuildId::new(note.desc()));
                }
            }
        }
        Ok(None)
    }

    /// Whether there is a full symbol table, not only that of the dynamic linker.
    pub fn has_full_table(&self) -> bool {
        self.sections
            .iter()
            .any(|section| section.sh_type(LITTLE) == SHT_SYMTAB)
    }

    /// Appends all functions that the symbol tables name.
    pub fn functions(&self, functions: &mut Vec<Function>, text: &mut Vec<u8>) -> Result<(), SymbolError> {
        for kind in [SHT_SYMTAB, SHT_DYNSYM] {
            if let Some(section) = self.sections.iter().find(|section| section.sh_type(LITTLE) == kind) {
                self.read_table(section, functions, text)?;
            }
        }
        // Stubs are worth having, not worth losing the rest for.
        let _ = self.read_stubs(functions, text);
        Ok(())
    }

    /// Appends all functions that the debug information names; false when there is none. Sections compressed with anything but zlib are not read.
    pub fn debug_functions(&self, functions: &mut Vec<Function>, text: &mut Vec<u8>) -> bool {
        let Ok(names) = self.header.section_strings(LITTLE, self.data, self.sections) else {
            return false;
        };
        let mut bytes = 0_u64;
        let mut debug: Vec<(&[u8], Cow<'_, [u8]>)> = Vec::new();
        for section in self.sections {
            let Some(name) = section
                .name(LITTLE, names)
                .ok()
                .filter(|name| name.starts_with(b".debug_"))
            else {
                continue;
            };
            // Variables' places are large and say nothing of names.
            let useless = matches!(name, b".debug_loc" | b".debug_loclists" | b".debug_types");
            if useless || section.sh_type(LITTLE) == SHT_NOBITS {
                continue;
            }
            let Ok(packed) = section.compression(LITTLE, self.data) else {
                continue;
            };
            bytes = bytes.saturating_add(packed.map_or(section.sh_size(LITTLE), |(header, ..)| header.ch_size(LITTLE)));
            if bytes > DEBUG_INFO_BYTES {
                return false;
            }
            let data = match packed {
                None => section.data(LITTLE, self.data).map(Cow::Borrowed).ok(),
                Some((header, offset, size)) if header.ch_type(LITTLE) == ELFCOMPRESS_ZLIB => {
                    let packed = self.data.read_bytes_at(offset, size);
                    packed
                        .ok()
                        .and_then(|packed| inflate(packed, header.ch_size(LITTLE)))
                        .map(Cow::Owned)
                }
                Some(_) => None,
            };
            if let Some(data) = data {
                debug.push((name, data));
            }
        }
        if !debug.iter().any(|(name, _)| *name == b".debug_info") {
            return false;
        }
        let section = |id: gimli::SectionId| {
            let found = debug.iter().find(|(name, _)| *name == id.name().as_bytes());
            found.map_or(&[][..], |(_, data)| data)
        };
        let before = functions.len();
        // Damage ends the list where it begins.
        let _ = dwarf::functions(section, functions, text);
        functions.len() > before
    }

    /// The contents of the section of this name.
    pub fn section(&self, name: &[u8]) -> Result<Option<&'d [u8]>, SymbolError> {
        let names = self.header.section_strings(LITTLE, self.data, self.sections)?;
        let is_it = |section: &&Section| section.name(LITTLE, names).is_ok_and(|found| found == name);
        match self.sections.iter().find(is_it) {
            Some(section) if section.sh_type(LITTLE) != SHT_NOBITS => {
                if section.sh_size(LITTLE) > SYMBOL_TABLE_BYTES {
                    return Err(SymbolError::TableTooLarge(section.sh_size(LITTLE)));
                }
                Ok(Some(section.data(LITTLE, self.data)?))
            }
            _ => Ok(None),
        }
    }

    /// The name of the separate debug file (`.gnu_debuglink`), when it is one: a name with folders in it is none.
    pub fn debug_link(&self) -> Result<Option<PathBuf>, SymbolError> {
        let section = self.section(b".gnu_debuglink")?.unwrap_or_default();
        let name = section.split(|byte| *byte == 0).next().unwrap_or_default();
        let plain = !name.is_empty() && name != b"." && name != b".." && !name.contains(&b'/');
        Ok(plain.then(|| PathBuf::from(OsStr::from_bytes(name))))
    }

    /// Linkage stubs, as functions named `target@plt`.
    fn read_stubs(&self, functions: &mut Vec<Function>, text: &mut Vec<u8>) -> Result<(), SymbolError> {
        let mut targets: HashMap<u64, &[u8]> = HashMap::new();
        for section in self.sections {
            let Some((relocations, link)) = section.rela(LITTLE, self.data)? else {
                continue;
            };
            let Some(table) = self
                .sections
                .get(link.0)
                .filter(|table| table.sh_type(LITTLE) == SHT_DYNSYM)
            else {
                continue;
            };
            let symbols: &[Symbol] = table.data_as_array(LITTLE, self.data)?;
            let Some(names) = self.sections.get(table.sh_link(LITTLE) as usize) else {
                continue;
            };
            let names = names.data(LITTLE, self.data)?;
            for relocation in relocations {
                if !matches!(relocation.r_type(LITTLE, false), R_X86_64_JUMP_SLOT | R_X86_64_GLOB_DAT) {
                    continue;
                }
                let symbol = symbols.get(relocation.r_sym(LITTLE, false) as usize);
                let name = symbol.and_then(|symbol| names.get(symbol.st_name(LITTLE) as usize..));
                if let Some(name) = name.and_then(|name| name.split(|byte| *byte == 0).next()) {
                    targets.insert(relocation.r_offset(LITTLE), name);
                }
            }
        }
        let section_names = self.header.section_strings(LITTLE, self.data, self.sections)?;
        for section in self.sections {
            let is_stubs = section
                .name(LITTLE, section_names)
                .is_ok_and(|name| name.starts_with(b".plt"));
            if !is_stubs || section.sh_type(LITTLE) == SHT_NOBITS {
                continue;
            }
            for stub in stubs(section.data(LITTLE, self.data)?, section.sh_addr(LITTLE), &targets) {
                let start = text.len() as u64;
                let name_length = stub.target.len() + STUB_SUFFIX.len();
                if start + name_length as u64 > SYMBOL_TABLE_BYTES || stub.target.is_empty() {
                    continue;
                }
                text.extend_from_slice(stub.target);
                text.extend_from_slice(STUB_SUFFIX);
                functions.push(Function {
                    start: stub.start,
                    end: stub.end,
                    name: start as u32,
                    name_length: name_length as u32,
                    visibility: Visibility::Local,
                });
            }
        }
        Ok(())
    }

    /// The extents of functions that the unwind data tells.
    pub fn extents(&self) -> Result<Extents, SymbolError> {
        const NAME: &[u8] = b".eh_frame";
        let names = self.header.section_strings(LITTLE, self.data, self.sections)?;
        let is_it = |section: &&Section| section.name(LITTLE, names).is_ok_and(|found| found == NAME);
        match (self.sections.iter().find(is_it), self.section(NAME)?) {
            (Some(section), Some(data)) => Ok(Extents::of_eh_frame(data, section.sh_addr(LITTLE))),
            _ => Ok(Extents::default()),
        }
    }

    fn read_table(
        &self,
        section: &'d Section,
        functions: &mut Vec<Function>,
        text: &mut Vec<u8>,
    ) -> Result<(), SymbolError> {
        let Some(names) = self.sections.get(section.sh_link(LITTLE) as usize) else {
            return Ok(());
        };
        let bytes = section.sh_size(LITTLE).saturating_add(names.sh_size(LITTLE));
        if bytes.saturating_add(text.len() as u64) > SYMBOL_TABLE_BYTES {
            return Err(SymbolError::TableTooLarge(bytes));
        }
        let symbols: &[Symbol] = section.data_as_array(LITTLE, self.data)?;
        let names = names.data(LITTLE, self.data)?;
        let text_start = text.len();
        text.extend_from_slice(names);

        let ends = Ends::of(symbols, self.sections);
        for symbol in symbols {
            if !matches!(symbol.st_type(), STT_FUNC | STT_GNU_IFUNC) {
                continue;
            }
            let start = symbol.st_value(LITTLE);
            let offset = symbol.st_name(LITTLE) as usize;
            let name = names.get(offset..).unwrap_or_default();
            let Some(name_length) = name.iter().position(|byte| *byte == 0) else {
                continue;
            };
            let Some(end) = ends.end_of(symbol) else { continue };
            functions.push(Function {
                start,
                end,
                name: (text_start + offset) as u32,
                name_length: name_length as u32,
                visibility: match symbol.st_bind() {
                    STB_GLOBAL => Visibility::Global,
                    STB_WEAK => Visibility::Weak,
                    _ => Visibility::Local,
                },
            });
        }
        Ok(())
    }
}

/// Where functions end.
///
/// Most symbols say how long they are. Those that do not (assembly) end where the next symbol of their section begins, at the latest where
/// the section ends: never later, or an address in a gap would get its neighbour's name.
struct Ends<'d> {
    /// Section and address of every symbol that marks code, sorted.
    marks: Vec<(usize, u64)>,
    sections: &'d [Section],
}

impl<'d> Ends<'d> {
    fn of(symbols: &[Symbol], sections: &'d [Section]) -> Self {
        let unsized_function =
            |symbol: &Symbol| symbol.st_size(LITTLE) == 0 && matches!(symbol.st_type(), STT_FUNC | STT_GNU_IFUNC);
        let mut marks = Vec::new();
        if symbols.iter().any(unsized_function) {
            marks.extend(
                symbols
                    .iter()
                    .filter(|symbol| matches!(symbol.st_type(), STT_FUNC | STT_GNU_IFUNC | STT_NOTYPE))
                    .filter_map(|symbol| Some((section_of(symbol)?, symbol.st_value(LITTLE)))),
            );
            marks.sort_unstable();
            marks.dedup();
        }
        Ends { marks, sections }
    }

    /// `None` when the symbol is not defined in a loaded section of this file.
    fn end_of(&self, symbol: &Symbol) -> Option<u64> {
        let index = section_of(symbol)?;
        let section = self.sections.get(index)?;
        if !section.sh_flags(LITTLE).contains(SHF_ALLOC) {
            return None;
        }
        let start = symbol.st_value(LITTLE);
        let section_end = section.sh_addr(LITTLE).saturating_add(section.sh_size(LITTLE));
        if start < section.sh_addr(LITTLE) || start >= section_end {
            return None;
        }
        let end = match symbol.st_size(LITTLE) {
            0 => {
                let next = self.marks.partition_point(|mark| *mark <= (index, start));
                self.marks
                    .get(next)
                    .filter(|mark| mark.0 == index)
                    .map_or(section_end, |mark| mark.1)
            }
            size => start.saturating_add(size),
        };
        Some(end.min(section_end))
    }
}

/// The section that a symbol is defined in. Files with more sections than fit into the field do not come out of a linker.
fn section_of(symbol: &Symbol) -> Option<usize> {
    let index = symbol.st_shndx(LITTLE);
    (index.0 != 0 && index.0 < SHN_LORESERVE).then_some(usize::from(index.0))
}

#[cfg(test)]
#[path = "elf_tests.rs"]
mod tests;
