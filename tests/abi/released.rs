//! The released wheel, read once for all tests.

use std::path::PathBuf;
use std::sync::OnceLock;

use harness::{Lab, PythonVersion, abi};

use super::elf::Elf;

/// What is looked at in it.
pub struct Released {
    pub site: PathBuf,
    pub runtime: Elf,
    types: abi::Released,
}

impl Released {
    pub fn get() -> &'static Released {
        static RELEASED: OnceLock<Released> = OnceLock::new();
        RELEASED.get_or_init(|| {
            let lab = Lab::open().unwrap();
            // Which Python the wheel is for does not matter: the C++ classes are the same.
            let endstone = lab.endstone(PythonVersion::V3_13).unwrap();
            Released {
                site: endstone.site().to_owned(),
                types: abi::Released::read(endstone.site()).unwrap(),
                runtime: Elf::read(&std::fs::read(endstone.runtime()).unwrap()),
            }
        })
    }

    /// Its classes.
    pub fn types() -> &'static abi::Released {
        &Released::get().types
    }
}
