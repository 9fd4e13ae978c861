//! A folder of ours, and files that appear in it whole or not at all.
//!
//! The folder is opened once and everything happens relative to that descriptor, so renaming it or putting a link in its place changes
//! nothing. A file is written under a temporary name, synced, and then moved to its name without ever replacing another file.

mod error;
mod new_file;
mod open_file;
#[cfg(test)]
mod tests;

use std::fs::{DirBuilder, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::sys::fault;

pub use error::PrivateDirError;

/// A regular file in a folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileEntry {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// When it was last written, in seconds since the Unix epoch.
    pub modified_seconds: i64,
}

/// An open folder.
#[derive(Debug)]
pub struct PrivateDir {
    folder: OwnedFd,
    path: PathBuf,
}

impl PrivateDir {
    /// Opens a folder. What is missing of the path is created for the server's user alone (mode 0700); what exists stays as it is. The
    /// last part of the path must not be a symbolic link.
    pub fn open(path: &Path) -> Result<Self, PrivateDirError> {
        fault::point("disk");
        let failed = |source: io::Error| PrivateDirError::new(path, source);
        match DirBuilder::new().recursive(true).mode(0o700).create(path) {
            Ok(()) => {}
            // The name is taken by something else, which opening reports better.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return Err(PrivateDirError::NotAFolder(path.to_owned()));
            }
            Err(error) => return Err(failed(error)),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(folder) => Ok(PrivateDir {
                folder,
                path: path.to_owned(),
            }),
            Err(Errno::NOTDIR | Errno::LOOP) => Err(PrivateDirError::NotAFolder(path.to_owned())),
            Err(error) => Err(failed(error.into())),
        }
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The regular files in the folder, hidden ones too, those without whose names are no text left out.
    pub fn files(&self) -> Result<Vec<FileEntry>, PrivateDirError> {
        let failed = |error: Errno| PrivateDirError::new(&self.path, error.into());
        let mut files = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            // A file may be gone by now.
            let Ok(found) = rustix::fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            if rustix::fs::FileType::from_raw_mode(found.st_mode) == rustix::fs::FileType::RegularFile {
                files.push(FileEntry {
                    name: name.to_owned(),
                    bytes: u64::try_from(found.st_size).unwrap_or(0),
                    modified_seconds: found.st_mtime,
                });
            }
        }
        Ok(files)
    }

    /// What a regular file of at most `limit` bytes holds, `None` when there is none. Follows links: the owner may have put one there. Never blocks on a pipe.
    pub fn read(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>, PrivateDirError> {
        let path = self.path.join(name);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.folder, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) if self.is_taken(name) => return Err(PrivateDirError::LeadsNowhere(path)),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(PrivateDirError::unreadable(path, error.into())),
        };
        let mut bytes = Vec::new();
        match file.metadata() {
            Ok(found) if !found.is_file() => return Err(PrivateDirError::NotAFile(path)),
            Ok(_) => {}
            Err(error) => return Err(PrivateDirError::unreadable(path, error)),
        }
        // One byte more than allowed tells a file that grows from one that fits.
        match file.take(limit + 1).read_to_end(&mut bytes) {
            Ok(_) if bytes.len() as u64 > limit => Err(PrivateDirError::TooLarge { path, limit }),
            Ok(_) => Ok(Some(bytes)),
            Err(error) => Err(PrivateDirError::unreadable(path, error)),
        }
    }

    /// Gives a file another name, in place of one that has it.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), PrivateDirError> {
        rustix::fs::renameat(&self.folder, from, &self.folder, to)
            .map_err(|error| PrivateDirError::new(&self.path.join(from), error.into()))
    }

    /// Gives a file the first of `names` that is free, and says which.
    pub fn set_aside(&self, name: &str, names: impl IntoIterator<Item = String>) -> Result<String, PrivateDirError> {
        self.move_to_free(name, names)
    }

    /// Whether anything has this name, be it a link that leads nowhere.
    fn is_taken(&self, name: &str) -> bool {
        rustix::fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Removes a file.
    pub fn remove(&self, name: &str) -> Result<(), PrivateDirError> {
        rustix::fs::unlinkat(&self.folder, name, AtFlags::empty())
            .map_err(|error| PrivateDirError::new(&self.path.join(name), error.into()))
    }
}
