//! A file that is being written: under a temporary name until all of it is on the disk.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::{PrivateDir, PrivateDirError};
use crate::limits::{FILE_NAME_TRIES, LEFTOVER_SECONDS, WRITE_BUFFER_BYTES};
use crate::sys::fault;

/// Tells the temporary files of this process apart.
static NEXT_TEMPORARY: AtomicU32 = AtomicU32::new(0);

impl PrivateDir {
    /// Writes a new file with what `fill` writes and gives its path. It gets the first of `names` that is free, appears under it only
    /// when all of it is on the disk, and is readable by the server's user alone. On an error nothing is left behind.
    pub fn write_new(
        &self,
        names: impl IntoIterator<Item = String>,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<PathBuf, PrivateDirError> {
        self.remove_leftovers();
        let (temporary, file) = self.create_temporary()?;
        let done = self
            .fill(file, fill)
            .and_then(|()| self.move_to_free(&temporary, names));
        match done {
            Ok(name) => {
                // The file is there either way; a file system that cannot sync folders keeps names on its own terms.
                match rustix::fs::fsync(&self.folder) {
                    Ok(()) | Err(Errno::INVAL | Errno::BADF | Errno::ROFS) => {}
                    Err(error) => return Err(PrivateDirError::new(&self.path, error.into())),
                }
                Ok(self.path.join(name))
            }
            Err(error) => {
                // Its own failure would only hide the first.
                let _ = rustix::fs::unlinkat(&self.folder, &temporary, AtFlags::empty());
                Err(error)
            }
        }
    }

    /// Writes a file with what `fill` writes, in place of one of that name if there is one: whoever reads it sees the old or the new one, whole.
    pub fn replace(
        &self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), PrivateDirError> {
        self.remove_leftovers();
        let (temporary, file) = self.create_temporary()?;
        let done = self.fill(file, fill).and_then(|()| {
            rustix::fs::renameat(&self.folder, &temporary, &self.folder, name).map_err(|error| match error {
                Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST => PrivateDirError::NotAFile(self.path.join(name)),
                error => PrivateDirError::new(&self.path.join(name), error.into()),
            })
        });
        if done.is_err() {
            // Its own failure would only hide the first.
            let _ = rustix::fs::unlinkat(&self.folder, &temporary, AtFlags::empty());
        }
        done
    }

    /// Removes temporary files of processes that were killed. Writing one takes seconds; what nobody has written to for an hour is left over.
    fn remove_leftovers(&self) {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX));
        for file in self.files().unwrap_or_default() {
            if is_temporary(&file.name) && now.saturating_sub(file.modified_seconds) > LEFTOVER_SECONDS {
                // Its own failure is no reason not to save.
                let _ = self.remove(&file.name);
            }
        }
    }

    fn create_temporary(&self) -> Result<(String, File), PrivateDirError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        fault::point("disk");
        for _ in 0..FILE_NAME_TRIES {
            // Relaxed: only the number matters, it guards nothing.
            let number = NEXT_TEMPORARY.fetch_add(1, Ordering::Relaxed);
            let name = format!(".{}-{number}.tmp", std::process::id());
            match rustix::fs::openat(&self.folder, &name, flags, Mode::RUSR | Mode::WUSR) {
                Ok(file) => return Ok((name, File::from(file))),
                // Left by a process of the same id that was killed.
                Err(Errno::EXIST) => {}
                Err(error) => return Err(PrivateDirError::new(&self.path, error.into())),
            }
        }
        Err(PrivateDirError::NamesTaken {
            folder: self.path.clone(),
            name: "a temporary file".to_owned(),
        })
    }

    fn fill(&self, file: File, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), PrivateDirError> {
        let write = || {
            let mut writer = BufWriter::with_capacity(WRITE_BUFFER_BYTES, file);
            fill(&mut writer)?;
            let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.sync_all()
        };
        write().map_err(|error| PrivateDirError::new(&self.path, error))
    }

    /// Moves a file to the first free name.
    pub(super) fn move_to_free(
        &self,
        from: &str,
        names: impl IntoIterator<Item = String>,
    ) -> Result<String, PrivateDirError> {
        let mut first = None;
        for name in names.into_iter().take(FILE_NAME_TRIES) {
            if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
                return Err(PrivateDirError::BadName(name));
            }
            match self.rename_new(from, &name) {
                Ok(()) => return Ok(name),
                Err(Errno::EXIST) => {
                    first.get_or_insert(name);
                }
                Err(error) => return Err(PrivateDirError::new(&self.path.join(name), error.into())),
            }
        }
        Err(PrivateDirError::NamesTaken {
            folder: self.path.clone(),
            name: first.unwrap_or_default(),
        })
    }

    fn rename_new(&self, from: &str, to: &str) -> Result<(), Errno> {
        match rustix::fs::renameat_with(&self.folder, from, &self.folder, to, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => self.rename_reserved(from, to),
            done => done,
        }
    }

    /// For file systems that cannot rename without replacing: the name is taken by an empty file first, and that file is replaced.
    pub(super) fn rename_reserved(&self, from: &str, to: &str) -> Result<(), Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        drop(rustix::fs::openat(&self.folder, to, flags, Mode::RUSR | Mode::WUSR)?);
        rustix::fs::renameat(&self.folder, from, &self.folder, to).inspect_err(|_| {
            // The empty file is ours; its own failure would only hide the first.
            let _ = rustix::fs::unlinkat(&self.folder, to, AtFlags::empty());
        })
    }
}

/// Whether a name is one that files are written under until they are whole.
fn is_temporary(name: &str) -> bool {
    let numbers = name
        .strip_prefix('.')
        .and_then(|name| name.strip_suffix(".tmp"))
        .and_then(|name| name.split_once('-'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    numbers.is_some_and(|(process, number)| is_number(process) && is_number(number))
}
