//! What a built plugin asks of the system that loads it.

use crate::error::{Error, FileContext, Result};
use object::read::elf::{Dyn, ElfFile64, FileHeader};
use object::{Endianness, Object, ObjectSymbol};
use std::fs;
use std::path::Path;

/// Read from the file itself.
#[derive(Clone, Debug)]
pub struct Linked {
    /// The file's size.
    pub bytes: u64,
    /// Libraries that the loader looks for.
    pub needed: Vec<String>,
    /// The newest version of the C library that a symbol is asked from.
    pub glibc: (u32, u32),
    /// Functions of an unwinder that it defines itself.
    pub unwinder: Vec<String>,
    /// What it offers to others.
    pub exports: Vec<String>,
    /// In hexadecimal digits.
    pub build_id: Option<String>,
}

impl Linked {
    /// Reads a shared library.
    ///
    /// # Errors
    /// If it cannot be read or is none.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).context("read", path)?;
        parse(&bytes).map_err(|error| Error::Content {
            path: path.to_owned(),
            reason: error.to_string(),
        })
    }
}

fn parse(bytes: &[u8]) -> std::result::Result<Linked, object::Error> {
    let file = ElfFile64::<Endianness>::parse(bytes)?;
    let (header, endian) = (file.elf_header(), file.endian());
    let sections = header.sections(endian, bytes)?;
    let mut glibc = (0, 0);
    if let Some((mut needs, strings)) = sections.gnu_verneed(endian, bytes)? {
        while let Some((_, mut versions)) = needs.next()? {
            while let Some(version) = versions.next()? {
                let name = String::from_utf8_lossy(version.name(endian, sections.strings(endian, bytes, strings)?)?)
                    .into_owned();
                glibc = glibc.max(glibc_version(&name).unwrap_or_default());
            }
        }
    }
    let mut needed = Vec::new();
    if let Some((entries, strings)) = sections.dynamic(endian, bytes)? {
        let strings = sections.strings(endian, bytes, strings)?;
        for entry in entries
            .iter()
            .filter(|entry| entry.tag(endian) == object::elf::DT_NEEDED)
        {
            needed.push(String::from_utf8_lossy(entry.string(endian, strings)?).into_owned());
        }
    }
    let defined = |symbol: &object::read::elf::ElfSymbol64<'_, '_>| symbol.is_definition();
    let names = |prefix: &'static str| {
        file.symbols()
            .chain(file.dynamic_symbols())
            .filter(defined)
            .filter_map(|symbol| symbol.name().ok().map(str::to_owned))
            .filter(move |name| name.starts_with(prefix))
    };
    Ok(Linked {
        bytes: bytes.len() as u64,
        needed,
        glibc,
        unwinder: names("_Unwind_").collect(),
        exports: file
            .dynamic_symbols()
            .filter(defined)
            .filter_map(|symbol| symbol.name().ok().map(str::to_owned))
            .collect(),
        build_id: file
            .build_id()?
            .map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect()),
    })
}

/// `GLIBC_2.30` and `GLIBC_2.2.5`.
fn glibc_version(name: &str) -> Option<(u32, u32)> {
    let mut numbers = name.strip_prefix("GLIBC_")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(glibc_version("GLIBC_2.2.5"), Some((2, 2)));
        assert!(glibc_version("GLIBC_2.30") > glibc_version("GLIBC_2.4"));
        assert_eq!(glibc_version("GCC_3.0"), None);
        assert_eq!(glibc_version("GLIBC_PRIVATE"), None);
    }

    #[test]
    fn this_program_is_read() {
        let linked = Linked::read(&std::env::current_exe().unwrap()).unwrap();
        assert!(linked.needed.iter().any(|name| name == "libc.so.6"), "{linked:?}");
        assert!(linked.glibc >= (2, 2), "{linked:?}");
        assert!(Linked::read(Path::new("/proc/self/status")).is_err());
    }
}
