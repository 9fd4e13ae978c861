//! A CPython that a server can run on.

use crate::version::PythonVersion;
use std::fmt;
use std::path::PathBuf;

/// Where a Python comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Named by `SPARK_PYTHON`.
    Given,
    /// On `PATH`.
    Path,
    /// A version that pyenv has installed.
    Pyenv,
    /// In one of the system's usual folders.
    System,
    /// Debian's, unpacked under `target/pythons`.
    Fetched,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Given => "SPARK_PYTHON",
            Self::Path => "PATH",
            Self::Pyenv => "pyenv",
            Self::System => "system",
            Self::Fetched => "fetched from Debian",
        })
    }
}

/// A CPython with a shared libpython.
#[derive(Clone, Debug)]
pub struct Python {
    /// Its minor version.
    pub version: PythonVersion,
    /// All of its version, `3.13.0`.
    pub full_version: String,
    /// The interpreter; it can be run as it is.
    pub executable: PathBuf,
    /// What `PYTHONHOME` must be for a program that embeds it.
    pub home: PathBuf,
    /// `libpython3.x.so.1.0`.
    pub library: PathBuf,
    /// Whether `-m pip` works in it.
    pub has_pip: bool,
    /// Where it comes from.
    pub origin: Origin,
    /// The C library it brings along; none if it uses this machine's.
    pub own_libc: Option<OwnLibc>,
}

/// A C library other than this machine's.
#[derive(Clone, Debug)]
pub struct OwnLibc {
    /// The dynamic linker that belongs to it.
    pub linker: PathBuf,
    /// The folder of its libraries.
    pub libraries: PathBuf,
}
