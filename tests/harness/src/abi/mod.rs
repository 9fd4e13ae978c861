//! Endstone's classes as a release describes them, compared with what the plugin was written for.

mod compare;
mod types;

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, FileContext, Result};
pub use compare::{Differences, all, bases, enumerators, layout, members, parts, slots};
pub use types::{Class, Method, Types, TypesError};

/// A release's two libraries: the runtime lacks the classes that only plugins define, the Python module has them.
#[derive(Debug)]
pub struct Released {
    types: [Types; 2],
}

impl Released {
    /// Reads what is unpacked in `site`.
    ///
    /// # Errors
    /// If a library is missing or says too little of its classes.
    pub fn read(site: &Path) -> Result<Self> {
        let mut folder = site.join("endstone");
        // Until 0.10 they were one folder deeper.
        let deeper = folder.join("_internal");
        if deeper.is_dir() {
            folder = deeper;
        }
        let types = |path: PathBuf| {
            let bytes = fs::read(&path).context("read", &path)?;
            Types::read(&bytes).map_err(|error| Error::Content {
                path,
                reason: error.to_string(),
            })
        };
        Ok(Self {
            types: [
                types(folder.join("libendstone_runtime.so"))?,
                types(python_module(&folder)?)?,
            ],
        })
    }

    /// Every description of the class, none if it is not there.
    ///
    /// # Errors
    /// See [`TypesError`].
    pub fn class(&self, name: &str) -> std::result::Result<Vec<Class>, TypesError> {
        let found = self.types.iter().map(|types| types.class(name).transpose());
        found.flatten().collect()
    }

    /// The full names of the classes whose names begin and end like this.
    pub fn classes_like(&self, start: &str, end: &str) -> Vec<&str> {
        let mut names: Vec<&str> = self.types.iter().flat_map(Types::names).collect();
        names.retain(|name| name.starts_with(start) && name.ends_with(end));
        names.sort_unstable();
        names.dedup();
        names
    }
}

fn python_module(folder: &Path) -> Result<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .context("read", folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().contains("_python.cpython"))
        })
        .collect();
    if found.len() != 1 {
        return Err(Error::Content {
            path: folder.to_owned(),
            reason: format!(
                "{} files are called *_python.cpython*, and one is expected",
                found.len()
            ),
        });
    }
    Ok(found.remove(0))
}
