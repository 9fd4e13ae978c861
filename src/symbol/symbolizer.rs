//! Names for the addresses of a profile.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object::ReadRef;
use object::read::ReadCache;

use super::demangle::demangle;
use super::elf::Elf;
use super::error::SymbolError;
use super::extents::Extents;
use super::open::{ModuleFile, read_vdso};
use super::table::FunctionTable;
use crate::model::{BuildId, Module, ModuleId};

/// Where systems keep debug files of their packages.
const DEBUG_ROOT: &str = "/usr/lib/debug";

/// Names of the functions of modules. Each module's file is read once, when its first address is asked for.
#[derive(Debug)]
pub struct Symbolizer {
    modules: HashMap<ModuleId, Arc<Named>>,
    /// A library that was unloaded and loaded again has a new id and the same names.
    builds: HashMap<BuildId, Arc<Named>>,
    demangled: HashMap<(ModuleId, usize), String>,
    problems: Vec<(ModuleId, SymbolError)>,
    debug_root: PathBuf,
}

/// What a file says of its functions.
#[derive(Debug, Default)]
struct Named {
    functions: FunctionTable,
    extents: Extents,
}

impl Default for Symbolizer {
    fn default() -> Self {
        Self::with_debug_root(Path::new(DEBUG_ROOT))
    }
}

impl Symbolizer {
    /// A symbolizer that has read nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A symbolizer that looks for separate debug files in another folder than `/usr/lib/debug`.
    pub fn with_debug_root(debug_root: &Path) -> Self {
        Symbolizer {
            modules: HashMap::new(),
            builds: HashMap::new(),
            demangled: HashMap::new(),
            problems: Vec::new(),
            debug_root: debug_root.to_owned(),
        }
    }

    /// The full name of the function at `rva` (see [`crate::model::NativeFrame::rva`]), demangled, without parameters; `None` when no
    /// function of known extent holds the address.
    pub fn resolve(&mut self, module: &Module, rva: u64) -> Option<String> {
        let named = self.module(module);
        let (index, symbol) = named.functions.at(module.base_svma.wrapping_add(rva))?;
        let name = self
            .demangled
            .entry((module.id, index))
            .or_insert_with(|| demangle(symbol));
        Some(name.clone())
    }

    /// First address, relative like `rva`, of the function at `rva`, as far as the module's unwind data tells: what stands for a function
    /// without a name.
    pub fn function_start(&mut self, module: &Module, rva: u64) -> Option<u64> {
        let named = self.module(module);
        let start = named.extents.start_of(module.base_svma.wrapping_add(rva))?;
        start.checked_sub(module.base_svma)
    }

    /// Why a module has no names at all; `None` when it has some, or was not asked for yet.
    pub fn problem(&self, module: &Module) -> Option<&SymbolError> {
        self.problems
            .iter()
            .find(|(id, _)| *id == module.id)
            .map(|(_, error)| error)
    }

    fn module(&mut self, module: &Module) -> Arc<Named> {
        if let Some(named) = self.modules.get(&module.id) {
            return Arc::clone(named);
        }
        let known = module
            .build_id
            .as_ref()
            .and_then(|id| self.builds.get(id))
            .map(Arc::clone);
        let named = known.unwrap_or_else(|| Arc::new(self.read(module)));
        self.modules.insert(module.id, Arc::clone(&named));
        if let Some(id) = &module.build_id {
            self.builds.insert(id.clone(), Arc::clone(&named));
        }
        named
    }

    fn read(&mut self, module: &Module) -> Named {
        match read_module(module, &self.debug_root) {
            Ok(named) => named,
            Err(error) => {
                self.problems.push((module.id, error));
                Named::default()
            }
        }
    }
}

fn read_module(module: &Module, debug_root: &Path) -> Result<Named, SymbolError> {
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
    let separate = match &module.build_id {
        Some(build_id) if !elf.has_full_table() => debug_file(build_id, debug_root),
        _ => None,
    };
    Ok(Named {
        functions: match separate {
            Some(functions) => functions,
            None => elf.functions()?,
        },
        // With all names there is nothing left to stand for.
        extents: if elf.has_full_table() {
            Extents::default()
        } else {
            elf.extents()?
        },
    })
}

/// Functions from the separate debug file of a build, if there is one: `<root>/.build-id/ab/cdef.debug`. A missing or wrong one is the
/// normal case and no problem worth a report.
fn debug_file(build_id: &BuildId, debug_root: &Path) -> Option<FunctionTable> {
    let text = build_id.to_string();
    let (folder, name) = text.split_at_checked(2)?;
    let path = debug_root.join(".build-id").join(folder).join(format!("{name}.debug"));
    let cache = ReadCache::new(ModuleFile::open(&path).ok()?);
    let elf = Elf::parse(&cache).ok()?;
    let same = elf.build_id().ok()?.as_ref() == Some(build_id);
    (same && elf.has_full_table()).then(|| elf.functions().ok()).flatten()
}

#[cfg(test)]
#[path = "symbolizer_tests.rs"]
mod tests;
