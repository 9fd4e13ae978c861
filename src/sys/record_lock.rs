//! A lock on a file that keeps other processes out.
//!
//! It is the classic record lock of `fcntl(2)`: it belongs to the process, so a child that was forked does not have it, and the kernel lets it go when the process
//! ends, however it ends. (Locks of `flock` and of open file descriptions belong to the descriptor, which a forked child inherits: it would keep the lock for as long
//! as it lives.) The price is that it is gone as soon as *any* descriptor of the file is closed in this process. So each file is opened at most once at a time
//! in this process, which the list below sees to.

use std::fs::File;
use std::os::unix::fs::MetadataExt;

use parking_lot::Mutex;
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::private_dir::{PrivateDir, PrivateDirError};

/// Device and inode of the files that are open here.
static HELD: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

/// Why a file could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has it.
    #[error("another server is using it")]
    OtherProcess,
    /// This process has it already.
    #[error("it is still in use by this server")]
    ThisProcess,
    /// It cannot be opened, or the file system knows no locks.
    #[error(transparent)]
    Failed(#[from] PrivateDirError),
}

/// A locked file. Dropping it unlocks.
#[derive(Debug)]
pub struct RecordLock {
    /// `None` only while it is being dropped.
    file: Option<File>,
    id: (u64, u64),
}

impl RecordLock {
    /// Locks the file `name` in `folder`, which is made if there is none. Does not wait.
    ///
    /// # Errors
    /// Somebody has it, or it cannot be had.
    pub fn take(folder: &PrivateDir, name: &str) -> Result<Self, LockError> {
        let mut held = HELD.lock();
        // Before it is opened: closing it again would let go of the lock that we have.
        if folder.file_id(name).is_some_and(|id| held.contains(&id)) {
            return Err(LockError::ThisProcess);
        }
        let file = folder.open_for_lock(name)?;
        let failed = |error: std::io::Error| LockError::Failed(PrivateDirError::new(&folder.path().join(name), error));
        let found = file.metadata().map_err(failed)?;
        let id = (found.dev(), found.ino());
        if held.contains(&id) {
            // Somebody has moved the file that we hold to this name just now. Never closed: see the module's text.
            std::mem::forget(file);
            return Err(LockError::ThisProcess);
        }
        match rustix::fs::fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::ACCESS | Errno::AGAIN) => return Err(LockError::OtherProcess),
            Err(error) => return Err(failed(error.into())),
        }
        held.push(id);
        Ok(RecordLock { file: Some(file), id })
    }
}

impl Drop for RecordLock {
    fn drop(&mut self) {
        let mut held = HELD.lock();
        // Closed before it leaves the list, or somebody could lock it in between and lose that.
        drop(self.file.take());
        held.retain(|id| *id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_locked_once_and_again_after_it_was_let_go() {
        let root = tempfile::tempdir().unwrap();
        let folder = PrivateDir::open(root.path()).unwrap();
        let lock = RecordLock::take(&folder, "lock").unwrap();
        let again = PrivateDir::open(root.path()).unwrap();
        assert!(matches!(RecordLock::take(&again, "lock"), Err(LockError::ThisProcess)));
        drop(lock);
        RecordLock::take(&again, "lock").unwrap();
    }

    /// What the kernel says of locks on the file, as seen by nobody in particular (`/proc/locks`).
    fn lock_lines(inode: u64) -> Vec<String> {
        let text = std::fs::read_to_string("/proc/locks").unwrap();
        let of_file = format!(":{inode} ");
        text.lines()
            .filter(|line| line.contains(&of_file))
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn a_refused_second_try_does_not_let_go_of_the_first() {
        let root = tempfile::tempdir().unwrap();
        let folder = PrivateDir::open(root.path()).unwrap();
        let lock = RecordLock::take(&folder, "lock").unwrap();
        let inode = std::fs::metadata(root.path().join("lock")).unwrap().ino();
        assert!(RecordLock::take(&folder, "lock").is_err());
        let lines = lock_lines(inode);
        assert!(lines.len() == 1 && lines[0].contains("POSIX"), "{lines:?}");
        drop(lock);
        assert_eq!(lock_lines(inode), Vec::<String>::new());
    }

    #[test]
    fn what_is_no_file_is_not_locked() {
        let root = tempfile::tempdir().unwrap();
        let folder = PrivateDir::open(root.path()).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", root.path().join("link")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, root.path().join("pipe"), rustix::fs::Mode::RWXU).unwrap();
        for name in ["link", "pipe"] {
            assert!(
                matches!(RecordLock::take(&folder, name), Err(LockError::Failed(_))),
                "{name}"
            );
        }
    }
}
