//! A file that grows: what is written to it is in it at once. And files that only are opened, never through a link and never waiting.

use std::fs::File;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::{PrivateDir, PrivateDirError};
use crate::sys::fault;

impl PrivateDir {
    /// Makes a new file, for the server's user alone, that is written to bit by bit: what is in it is in it at once.
    ///
    /// # Errors
    /// It cannot be made; [`PrivateDirError::NamesTaken`] when there is one of that name.
    pub fn create(&self, name: &str) -> Result<File, PrivateDirError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        fault::point("disk");
        match rustix::fs::openat(&self.folder, name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => Ok(File::from(file)),
            Err(Errno::EXIST) => Err(PrivateDirError::NamesTaken {
                folder: self.path.clone(),
                name: name.to_owned(),
            }),
            Err(error) => Err(PrivateDirError::new(&self.path.join(name), error.into())),
        }
    }

    /// Opens a regular file, never a link and never blocking, to be read.
    ///
    /// # Errors
    /// It cannot be opened or is something else.
    pub fn open_file(&self, name: &str) -> Result<File, PrivateDirError> {
        self.open_regular(name, OFlags::RDONLY)
    }

    /// The same, to lock it; it is made if there is none.
    pub(in crate::sys) fn open_for_lock(&self, name: &str) -> Result<File, PrivateDirError> {
        self.open_regular(name, OFlags::RDWR | OFlags::CREATE)
    }

    fn open_regular(&self, name: &str, flags: OFlags) -> Result<File, PrivateDirError> {
        let path = self.path.join(name);
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        fault::point("disk");
        let file = match rustix::fs::openat(&self.folder, name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => File::from(file),
            // A link.
            Err(Errno::LOOP) => return Err(PrivateDirError::NotAFile(path)),
            Err(error) => return Err(PrivateDirError::unreadable(path, error.into())),
        };
        match file.metadata() {
            Ok(found) if found.is_file() => Ok(file),
            Ok(_) => Err(PrivateDirError::NotAFile(path)),
            Err(error) => Err(PrivateDirError::unreadable(path, error)),
        }
    }

    /// Device and inode of what has this name, if anything has.
    pub(in crate::sys) fn file_id(&self, name: &str) -> Option<(u64, u64)> {
        let found = rustix::fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some((found.st_dev, found.st_ino))
    }
}
