//! Why a folder or a file could not be used, for the server's owner.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::model::shown_path;

/// Why a folder or a file in it could not be used. Texts have no full stop, and give places from the server's folder on: they are shown in chat.
#[derive(Debug, thiserror::Error)]
pub enum PrivateDirError {
    /// Something else has the folder's name; a symbolic link counts as something else.
    #[error("{} is not a folder (a link to one is not accepted)", shown_path(.0))]
    NotAFolder(PathBuf),
    /// The disk or the owner's quota is full.
    #[error("the disk is full: nothing could be written to {}", shown_path(.0))]
    DiskFull(PathBuf),
    /// The file system is mounted read-only.
    #[error("{} is on a read-only disk", shown_path(.0))]
    ReadOnly(PathBuf),
    /// The server's user may not write there.
    #[error("the server may not write to {}", shown_path(.0))]
    Denied(PathBuf),
    /// The server's user may not read it.
    #[error("the server may not read {}", shown_path(.0))]
    ReadDenied(PathBuf),
    /// The process has as many files open as it may, or the system has.
    #[error("too many files are open in the server: {} could not be opened", shown_path(.0))]
    TooManyOpen(PathBuf),
    /// The owner's limit on the size of files (`ulimit -f`).
    #[error("the server may not write files as large as this one, to {}", shown_path(.0))]
    FileLimit(PathBuf),
    /// A folder, a pipe or something else where a file should be.
    #[error("{} is not a regular file", shown_path(.0))]
    NotAFile(PathBuf),
    /// A symbolic link whose target is not there, or a circle of them.
    #[error("{} is a link that leads nowhere", shown_path(.0))]
    LeadsNowhere(PathBuf),
    /// Larger than anything of ours.
    #[error("{} is too large: at most {limit} bytes are read", shown_path(.path))]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// In bytes.
        limit: u64,
    },
    /// A name that would leave the folder.
    #[error("{0:?} is not a file name")]
    BadName(String),
    /// All names that were tried exist already.
    #[error("{} already holds files of all names that were tried, from {name} on", shown_path(.folder))]
    NamesTaken {
        /// The folder.
        folder: PathBuf,
        /// The first name.
        name: String,
    },
    /// It cannot be read.
    #[error("{} could not be read ({source})", shown_path(.path))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Anything else.
    #[error("{} could not be written ({source})", shown_path(.path))]
    Failed {
        /// The folder or file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl PrivateDirError {
    /// Of an attempt to write.
    pub fn new(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOSPC | Errno::DQUOT) => PrivateDirError::DiskFull(path),
            Some(Errno::ROFS) => PrivateDirError::ReadOnly(path),
            Some(Errno::ACCESS | Errno::PERM) => PrivateDirError::Denied(path),
            Some(Errno::MFILE | Errno::NFILE) => PrivateDirError::TooManyOpen(path),
            Some(Errno::FBIG) => PrivateDirError::FileLimit(path),
            _ => PrivateDirError::Failed { path, source },
        }
    }

    /// Of an attempt to read.
    pub(super) fn unreadable(path: PathBuf, source: io::Error) -> Self {
        match source.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::ACCESS | Errno::PERM) => PrivateDirError::ReadDenied(path),
            Some(Errno::MFILE | Errno::NFILE) => PrivateDirError::TooManyOpen(path),
            Some(Errno::LOOP) => PrivateDirError::LeadsNowhere(path),
            // A socket.
            Some(Errno::NXIO) => PrivateDirError::NotAFile(path),
            _ => PrivateDirError::Unreadable { path, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_short_names_the_file_and_keeps_the_home_folder_to_itself() {
        let path = || PathBuf::from("/home/steve/server/plugins/spark/a");
        for errno in [
            Errno::NOSPC,
            Errno::DQUOT,
            Errno::ROFS,
            Errno::ACCESS,
            Errno::PERM,
            Errno::MFILE,
            Errno::NFILE,
            Errno::FBIG,
            Errno::LOOP,
            Errno::NXIO,
            Errno::IO,
        ] {
            for error in [
                PrivateDirError::new(&path(), errno.into()),
                PrivateDirError::unreadable(path(), errno.into()),
            ] {
                let text = error.to_string();
                assert!(
                    text.contains("plugins/spark/a") && !text.contains("steve") && !text.ends_with('.'),
                    "{text}"
                );
            }
        }
    }
}
