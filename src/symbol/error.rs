//! Why a module has no names.

use std::io;

/// Why a module's file gives no names. The profile is right without them; the texts are for the server's owner.
#[derive(Debug, thiserror::Error)]
pub enum SymbolError {
    /// The module was never a file.
    #[error("it is not a file")]
    NoFile,
    /// There was no time for it.
    #[error("it was not read, because the plugin was being disabled")]
    NoTime,
    /// The file cannot be opened or read.
    #[error("its file cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// A folder, device, pipe or socket has its name.
    #[error("it is not a regular file")]
    NotRegular,
    /// Larger than any library.
    #[error("its file is too large ({0} bytes)")]
    TooLarge(u64),
    /// Not an ELF file for this machine, or damaged.
    #[error("its file is damaged or not a 64-bit ELF file: {0}")]
    Damaged(#[from] object::read::Error),
    /// The file is not the one that runs.
    #[error("its file was replaced since the server loaded it")]
    Replaced,
    /// A table in the file is larger than it can be.
    #[error("its symbol table is too large ({0} bytes)")]
    TableTooLarge(u64),
}
