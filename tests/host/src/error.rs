//! What can keep the stand-in from running.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum HostError {
    #[error("{0}")]
    Usage(String),
    #[error(
        "Endstone's runtime is not loaded: start the server with LD_PRELOAD=<wheel>/endstone/libmimalloc.so:<wheel>/endstone/libendstone_runtime.so"
    )]
    NoRuntime,
    #[error("cannot read {path}: {source}")]
    ReadRuntime { path: PathBuf, source: std::io::Error },
    #[error("cannot parse {path}: {source}")]
    ParseRuntime { path: PathBuf, source: object::Error },
    #[error("Endstone's runtime has no symbol {0}: the stand-in knows Endstone 0.11.14")]
    NoSymbol(&'static str),
    #[error("Endstone's runtime: {0}")]
    Types(#[from] crate::types::TypesError),
    #[error("Endstone's debug information has no class {0}")]
    NoClass(String),
    #[error("Endstone's debug information has no virtual function {0}")]
    NoSlot(&'static str),
    #[error("Endstone did not hook {0}: is this program started through another one, such as ld.so or a wrapper?")]
    NotHooked(&'static str),
    #[error("cannot enter the server folder {path}: {source}")]
    Folder { path: PathBuf, source: std::io::Error },
    #[error("cannot create {what} in the server folder: {source}")]
    Furnish { what: &'static str, source: std::io::Error },
    #[error("cannot start the server thread: {0}")]
    Thread(std::io::Error),
    #[error("the server ended before it was ready")]
    NotStarted,
}
