//! The released wheel, read once for all tests.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use harness::{Lab, PythonVersion};

use super::dwarf::Types;
use super::elf::Elf;

/// Endstone's two libraries: the runtime lacks the classes that only plugins define, the Python module has them.
pub struct Released {
    pub site: PathBuf,
    pub runtime: Elf,
    types: [Types; 2],
}

impl Released {
    pub fn get() -> &'static Released {
        static RELEASED: OnceLock<Released> = OnceLock::new();
        RELEASED.get_or_init(|| {
            let lab = Lab::open().unwrap();
            // Which Python the wheel is for does not matter: the C++ classes are the same.
            let endstone = lab.endstone(PythonVersion::V3_13).unwrap();
            let module = python_module(&endstone.site().join("endstone"));
            let runtime = std::fs::read(endstone.runtime()).unwrap();
            let module = std::fs::read(module).unwrap();
            Released {
                site: endstone.site().to_owned(),
                types: [Types::read(&runtime), Types::read(&module)],
                runtime: Elf::read(&runtime),
            }
        })
    }

    /// Every description of the class in the wheel, at least one.
    pub fn class(&self, name: &str) -> Vec<super::dwarf::Class> {
        let found: Vec<_> = self.types.iter().filter_map(|types| types.class(name)).collect();
        assert!(!found.is_empty(), "Endstone's debug information has no class {name}");
        found
    }

    /// The full name of the only class whose name begins and ends like this.
    pub fn class_like(&self, start: &str, end: &str) -> String {
        let mut names: Vec<&str> = self.types.iter().flat_map(Types::names).collect();
        names.retain(|name| name.starts_with(start) && name.ends_with(end));
        names.sort_unstable();
        names.dedup();
        assert_eq!(
            names.len(),
            1,
            "classes that begin with {start} and end with {end}: {names:?}"
        );
        names[0].to_owned()
    }
}

fn python_module(folder: &Path) -> PathBuf {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("_python."))
        .collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}
