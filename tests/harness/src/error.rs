//! What can go wrong while a server is put together or driven.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

/// Result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure, in words that say what to do about it.
#[derive(thiserror::Error)]
pub enum Error {
    /// A file or folder could not be used.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A program could not be started.
    #[error("cannot run {program}: {source}")]
    Spawn {
        /// The program.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// A program ran and failed.
    #[error("{purpose} failed ({status}).{}\n  {command}\n{output}", hint(purpose))]
    Program {
        /// What the program was run for.
        purpose: String,
        /// The command line.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// The end of what it printed.
        output: String,
    },
    /// Something this machine does not have. The text says what and how to get it.
    #[error("{0}")]
    Missing(String),
    /// A file's content is not what it should be.
    #[error("{}: {reason}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The server did not do what was waited for.
    #[error("{0}")]
    Server(String),
}

/// What to look at first.
fn hint(purpose: &str) -> &'static str {
    if purpose.starts_with("Downloading") {
        " Is this machine online? What was downloaded once works offline. What the program said:"
    } else {
        ""
    }
}

/// Same as the display form, so that a test's `unwrap` prints readable text.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Adds path and purpose to an I/O error.
pub(crate) trait FileContext<T> {
    fn context(self, action: &'static str, path: impl Into<PathBuf>) -> Result<T>;
}

impl<T> FileContext<T> for io::Result<T> {
    fn context(self, action: &'static str, path: impl Into<PathBuf>) -> Result<T> {
        self.map_err(|source| Error::File {
            action,
            path: path.into(),
            source,
        })
    }
}
