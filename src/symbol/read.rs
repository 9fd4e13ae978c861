//! All that a module's files say of its functions.
//!
//! A file with a full symbol table needs nothing else. A stripped one is completed from the first of these that there is: a separate debug file of the
//! same build, the table packed into the file itself, its own debug information. What it exports and what its unwind data tells is used either way.

use std::path::{Path, PathBuf};

use object::ReadRef;
use object::read::ReadCache;

use super::compressed::unpack;
use super::elf::Elf;
use super::error::SymbolError;
use super::extents::Extents;
use super::open::{ModuleFile, read_vdso};
use super::table::{Function, FunctionTable};
use crate::model::{BuildId, Module};

/// What a module's files say of its functions.
#[derive(Debug, Default)]
pub struct Named {
    /// By name.
    pub functions: FunctionTable,
    /// Where nameless ones begin and end.
    pub extents: Extents,
}

/// Reads the file of `module`, and what belongs to it below `debug_root`.
pub fn read_module(module: &Module, debug_root: &Path) -> Result<Named, SymbolError> {
    if module.path.as_os_str() == "[vdso]" {
        let image = read_vdso(module)?;
        return read_elf(&image[..], module, 0, debug_root);
    }
    if !module.path.is_absolute() {
        return Err(SymbolError::NoFile);
    }
    let file = ModuleFile::open(&module.path)?;
    let inode = file.inode();
    read_elf(&ReadCache::new(file), module, inode, debug_root)
}

fn read_elf<'d, R: ReadRef<'d>>(data: R, module: &Module, inode: u64, debug_root: &Path) -> Result<Named, SymbolError> {
    let elf = Elf::parse(data)?;
    // Without a build id the inode tells a file that was replaced. The device is no help: some file systems show another one in
    // /proc/self/maps than in stat.
    let same = match (&module.build_id, elf.build_id()?) {
        (None, None) => inode == module.inode,
        (mapped, on_disk) => *mapped == on_disk,
    };
    if !same {
        return Err(SymbolError::Replaced);
    }
    let mut functions = Vec::new();
    let mut text = Vec::new();
    if elf.has_full_table() {
        elf.functions(&mut functions, &mut text)?;
        // With all names there is nothing left to stand for.
        return Ok(Named {
            functions: FunctionTable::new(functions, text),
            extents: Extents::default(),
        });
    }
    // A missing, damaged or wrong companion is the normal case and no problem worth a report.
    let _ = separate(&elf, module, debug_root, &mut functions, &mut text)
        || embedded(&elf, &mut functions, &mut text)
        || elf.debug_functions(&mut functions, &mut text);
    elf.functions(&mut functions, &mut text)?;
    Ok(Named {
        functions: FunctionTable::new(functions, text),
        extents: elf.extents()?,
    })
}

/// Appends the functions of the separate debug file of this build, if there is one.
fn separate<'d, R: ReadRef<'d>>(
    elf: &Elf<'d, R>,
    module: &Module,
    debug_root: &Path,
    functions: &mut Vec<Function>,
    text: &mut Vec<u8>,
) -> bool {
    // Only the build id tells that two files belong together.
    let Some(build_id) = &module.build_id else { return false };
    let link = elf.debug_link().unwrap_or_default();
    candidates(build_id, &module.path, link.as_deref(), debug_root)
        .iter()
        .any(|path| from_debug_file(path, build_id, functions, text).unwrap_or(false))
}

/// Where a debug file may lie: by build id, then by the name that the file itself gives, in the places where debuggers look.
fn candidates(build_id: &BuildId, module: &Path, link: Option<&Path>, debug_root: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let id = build_id.to_string();
    if let Some((folder, name)) = id.split_at_checked(2) {
        paths.push(debug_root.join(".build-id").join(folder).join(format!("{name}.debug")));
    }
    if let (Some(link), Some(folder)) = (link, module.parent()) {
        paths.push(folder.join(".debug").join(link));
        if folder.join(link) != module {
            paths.push(folder.join(link));
        }
        if let Ok(below_root) = folder.strip_prefix("/") {
            paths.push(debug_root.join(below_root).join(link));
        }
    }
    paths
}

fn from_debug_file(
    path: &Path,
    build_id: &BuildId,
    functions: &mut Vec<Function>,
    text: &mut Vec<u8>,
) -> Result<bool, SymbolError> {
    let cache = ReadCache::new(ModuleFile::open_debug(path)?);
    let elf = Elf::parse(&cache)?;
    if elf.build_id()?.as_ref() != Some(build_id) {
        return Ok(false);
    }
    if elf.has_full_table() {
        elf.functions(functions, text)?;
        return Ok(true);
    }
    Ok(elf.debug_functions(functions, text))
}

/// Appends the functions of the table packed into the file, if there is one.
fn embedded<'d, R: ReadRef<'d>>(elf: &Elf<'d, R>, functions: &mut Vec<Function>, text: &mut Vec<u8>) -> bool {
    let read = |functions: &mut Vec<Function>, text: &mut Vec<u8>| {
        let Some(packed) = elf.section(b".gnu_debugdata")? else {
            return Ok(false);
        };
        let image = unpack(packed)?;
        Elf::parse(&image[..])?.functions(functions, text)?;
        Ok::<_, SymbolError>(true)
    };
    read(functions, text).unwrap_or(false)
}
