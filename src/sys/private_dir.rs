//! A folder of ours, and files that appear in it whole or not at all.
//!
//! The folder is opened once and everything happens relative to that descriptor, so renaming it or putting a link in its place changes
//! nothing. A file is written under a temporary name, synced, and then moved to its name without ever replacing another file.

use std::fs::{DirBuilder, File};
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::limits::{FILE_NAME_TRIES, LEFTOVER_SECONDS, WRITE_BUFFER_BYTES};

/// Why a folder or a file in it could not be used. The texts are for the server's owner.
#[derive(Debug, thiserror::Error)]
pub enum PrivateDirError {
    /// Something else has the folder's name; a symbolic link counts as something else.
    #[error("{} is not a folder (a link to one is not accepted)", .0.display())]
    NotAFolder(PathBuf),
    /// The disk or the owner's quota is full.
    #[error("the disk is full: nothing could be written to {}", .0.display())]
    DiskFull(PathBuf),
    /// The file system is mounted read-only.
    #[error("{} is on a read-only disk", .0.display())]
    ReadOnly(PathBuf),
    /// The server's user may not write there.
    #[error("the server may not write to {}", .0.display())]
    Denied(PathBuf),
    /// A folder, a pipe or something else where a file should be.
    #[error("{} is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// Larger than anything of ours.
    #[error("{} is too large: at most {limit} bytes are read", .path.display())]
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
    #[error("{} already holds files of all names that were tried, from {name} on", .folder.display())]
    NamesTaken {
        /// The folder.
        folder: PathBuf,
        /// The first name.
        name: String,
    },
    /// It cannot be read.
    #[error("{} could not be read: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Anything else.
    #[error("{} could not be written: {source}", .path.display())]
    Failed {
        /// The folder or file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl PrivateDirError {
    /// What the system says of a path.
    pub fn new(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOSPC | Errno::DQUOT) => PrivateDirError::DiskFull(path),
            Some(Errno::ROFS) => PrivateDirError::ReadOnly(path),
            Some(Errno::ACCESS | Errno::PERM) => PrivateDirError::Denied(path),
            _ => PrivateDirError::Failed { path, source },
        }
    }

    fn unreadable(path: PathBuf, source: io::Error) -> Self {
        PrivateDirError::Unreadable { path, source }
    }
}

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

/// Tells the temporary files of this process apart.
static NEXT_TEMPORARY: AtomicU32 = AtomicU32::new(0);

impl PrivateDir {
    /// Opens a folder. What is missing of the path is created for the server's user alone (mode 0700); what exists stays as it is. The
    /// last part of the path must not be a symbolic link.
    pub fn open(path: &Path) -> Result<Self, PrivateDirError> {
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

    /// Writes a new file with what `fill` writes and gives its path. It gets the first of `names` that is free, appears under it only
    /// when all of it is on the disk, and is readable by the server's user alone. On an error nothing is left behind.
    pub fn write_new(
        &self,
        names: impl IntoIterator<Item = String>,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<PathBuf, PrivateDirError> {
        self.remove_leftovers();
        let (temporary, file) = self.create_temporary()?;
        let done = self.fill(file, fill).and_then(|()| self.publish(&temporary, names));
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
            Err(Errno::NOENT) => return Ok(None),
            // A socket.
            Err(Errno::NXIO) => return Err(PrivateDirError::NotAFile(path)),
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

    /// Makes a new file, for the server's user alone, that is written to bit by bit: what is in it is in it at once.
    ///
    /// # Errors
    /// It cannot be made; [`PrivateDirError::NamesTaken`] when there is one of that name.
    pub fn create(&self, name: &str) -> Result<File, PrivateDirError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
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
    pub(super) fn open_for_lock(&self, name: &str) -> Result<File, PrivateDirError> {
        self.open_regular(name, OFlags::RDWR | OFlags::CREATE)
    }

    fn open_regular(&self, name: &str, flags: OFlags) -> Result<File, PrivateDirError> {
        let path = self.path.join(name);
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.folder, name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => File::from(file),
            // A link; a socket, or a pipe that nobody reads.
            Err(Errno::LOOP | Errno::NXIO) => return Err(PrivateDirError::NotAFile(path)),
            Err(error) => return Err(PrivateDirError::unreadable(path, error.into())),
        };
        match file.metadata() {
            Ok(found) if found.is_file() => Ok(file),
            Ok(_) => Err(PrivateDirError::NotAFile(path)),
            Err(error) => Err(PrivateDirError::unreadable(path, error)),
        }
    }

    /// Device and inode of what has this name, if anything has.
    pub(super) fn file_id(&self, name: &str) -> Option<(u64, u64)> {
        let found = rustix::fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some((found.st_dev, found.st_ino))
    }

    /// Gives a file another name, in place of one that has it.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), PrivateDirError> {
        rustix::fs::renameat(&self.folder, from, &self.folder, to)
            .map_err(|error| PrivateDirError::new(&self.path.join(from), error.into()))
    }

    /// Removes a file.
    pub fn remove(&self, name: &str) -> Result<(), PrivateDirError> {
        rustix::fs::unlinkat(&self.folder, name, AtFlags::empty())
            .map_err(|error| PrivateDirError::new(&self.path.join(name), error.into()))
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

    /// Moves the temporary file to the first free name.
    fn publish(&self, temporary: &str, names: impl IntoIterator<Item = String>) -> Result<String, PrivateDirError> {
        let mut first = None;
        for name in names.into_iter().take(FILE_NAME_TRIES) {
            if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
                return Err(PrivateDirError::BadName(name));
            }
            match self.rename_new(temporary, &name) {
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
    fn rename_reserved(&self, from: &str, to: &str) -> Result<(), Errno> {
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn names(name: &str) -> Vec<String> {
        vec![name.to_owned(), format!("2-{name}")]
    }

    fn write(dir: &PrivateDir, name: &str, text: &str) -> Result<PathBuf, PrivateDirError> {
        dir.write_new(names(name), |out| out.write_all(text.as_bytes()))
    }

    fn listing(path: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn folders_and_files_are_for_the_owner_alone() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("spark/profiles");
        let dir = PrivateDir::open(&path).unwrap();
        let file = write(&dir, "a", "text").unwrap();
        assert_eq!(
            (mode(&path), mode(path.parent().unwrap()), mode(&file)),
            (0o700, 0o700, 0o600)
        );
        assert_eq!(fs::read_to_string(path.join("a")).unwrap(), "text");
    }

    #[test]
    fn an_existing_folder_keeps_its_mode() {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        PrivateDir::open(root.path()).unwrap();
        assert_eq!(mode(root.path()), 0o755);
    }

    #[test]
    fn an_existing_file_is_never_replaced() {
        let root = tempfile::tempdir().unwrap();
        let dir = PrivateDir::open(root.path()).unwrap();
        write(&dir, "a", "first").unwrap();
        assert_eq!(write(&dir, "a", "second").unwrap(), root.path().join("2-a"));
        let error = write(&dir, "a", "third").unwrap_err();
        assert!(matches!(error, PrivateDirError::NamesTaken { .. }), "{error}");
        assert_eq!(fs::read_to_string(root.path().join("a")).unwrap(), "first");
        assert_eq!(listing(root.path()), ["2-a", "a"]);
    }

    #[test]
    fn a_file_that_grows_is_new_and_for_its_owner_and_only_files_are_opened() {
        let root = tempfile::tempdir().unwrap();
        let dir = PrivateDir::open(root.path()).unwrap();
        dir.create("a").unwrap().write_all(b"text").unwrap();
        assert_eq!(mode(&root.path().join("a")), 0o600);
        assert!(matches!(dir.create("a"), Err(PrivateDirError::NamesTaken { .. })));
        let mut text = String::new();
        dir.open_file("a").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        symlink(root.path().join("a"), root.path().join("link")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, root.path().join("pipe"), Mode::RWXU).unwrap();
        for name in ["link", "pipe"] {
            assert!(
                matches!(dir.open_file(name), Err(PrivateDirError::NotAFile(_))),
                "{name}"
            );
        }
        assert!(matches!(dir.open_file("none"), Err(PrivateDirError::Unreadable { .. })));
        assert!(matches!(dir.create("link"), Err(PrivateDirError::NamesTaken { .. })));
    }

    #[test]
    fn without_the_system_call_the_name_is_reserved_first() {
        let root = tempfile::tempdir().unwrap();
        let dir = PrivateDir::open(root.path()).unwrap();
        fs::write(root.path().join("new"), "new").unwrap();
        fs::write(root.path().join("old"), "old").unwrap();
        assert_eq!(dir.rename_reserved("new", "old"), Err(Errno::EXIST));
        assert_eq!(dir.rename_reserved("new", "free"), Ok(()));
        assert_eq!(dir.rename_reserved("gone", "other"), Err(Errno::NOENT));
        assert_eq!(listing(root.path()), ["free", "old"]);
    }

    #[test]
    fn a_replaced_file_is_the_old_or_the_new_one() {
        let root = tempfile::tempdir().unwrap();
        let dir = PrivateDir::open(root.path()).unwrap();
        let put = |text: &str| dir.replace("list", |out| out.write_all(text.as_bytes()));
        assert_eq!(dir.read("list", 10).unwrap(), None);
        put("first").unwrap();
        put("second").unwrap();
        assert_eq!(dir.read("list", 6).unwrap().as_deref(), Some(&b"second"[..]));
        assert!(matches!(dir.read("list", 5), Err(PrivateDirError::TooLarge { .. })));
        let failed = dir.replace("list", |out| {
            out.write_all(b"half")?;
            Err(Errno::NOSPC.into())
        });
        assert!(matches!(failed, Err(PrivateDirError::DiskFull(_))));
        assert_eq!(fs::read_to_string(root.path().join("list")).unwrap(), "second");
        assert_eq!(
            (listing(root.path()), mode(&root.path().join("list"))),
            (vec!["list".to_owned()], 0o600)
        );
        fs::create_dir_all(root.path().join("folder/below")).unwrap();
        assert!(matches!(
            dir.replace("folder", |_| Ok(())),
            Err(PrivateDirError::NotAFile(_))
        ));
        assert!(matches!(dir.read("folder", 10), Err(PrivateDirError::NotAFile(_))));
        dir.rename("list", "aside").unwrap();
        assert_eq!(listing(root.path()), ["aside", "folder"]);
    }

    #[test]
    fn a_link_is_neither_followed_nor_replaced() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("target");
        fs::create_dir(&target).unwrap();
        symlink(&target, root.path().join("link")).unwrap();
        let error = PrivateDir::open(&root.path().join("link")).unwrap_err();
        assert!(matches!(error, PrivateDirError::NotAFolder(_)), "{error}");

        let dir = PrivateDir::open(&target).unwrap();
        symlink("/nowhere", target.join("a")).unwrap();
        assert_eq!(write(&dir, "a", "text").unwrap(), target.join("2-a"));
        assert!(fs::symlink_metadata(target.join("a")).unwrap().is_symlink());
    }

    #[test]
    fn a_file_in_the_folders_place_is_named() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("profiles");
        fs::write(&path, "").unwrap();
        for path in [path.clone(), path.join("below")] {
            let error = PrivateDir::open(&path).unwrap_err();
            assert!(error.to_string().contains("is not a folder"), "{error}");
        }
    }

    #[test]
    fn names_stay_in_the_folder() {
        let root = tempfile::tempdir().unwrap();
        let dir = PrivateDir::open(root.path()).unwrap();
        for name in ["../a", "", "..", "a/b", "a\0b"] {
            assert!(
                matches!(write(&dir, name, ""), Err(PrivateDirError::BadName(_))),
                "{name:?}"
            );
        }
        assert!(listing(root.path()).is_empty());
    }

    #[test]
    fn a_failed_write_leaves_nothing_and_names_the_reason() {
        let root = tempfile::tempdir().unwrap();
        let dir = PrivateDir::open(root.path()).unwrap();
        let failing = |errno: Errno| {
            dir.write_new(names("a"), |out| {
                out.write_all(b"half")?;
                Err(errno.into())
            })
            .unwrap_err()
        };
        assert!(matches!(failing(Errno::NOSPC), PrivateDirError::DiskFull(_)));
        assert!(matches!(failing(Errno::ROFS), PrivateDirError::ReadOnly(_)));
        assert!(matches!(failing(Errno::ACCESS), PrivateDirError::Denied(_)));
        assert!(failing(Errno::IO).to_string().contains("could not be written"));
        assert!(listing(root.path()).is_empty());
    }

    #[test]
    fn what_a_killed_process_left_is_removed_by_the_next_save() {
        let root = tempfile::tempdir().unwrap();
        let dir = PrivateDir::open(root.path()).unwrap();
        let old = std::time::SystemTime::now() - std::time::Duration::from_secs(2 * LEFTOVER_SECONDS as u64);
        for (name, is_old) in [
            (".7-0.tmp", true),
            (".8-0.tmp", false),
            (".mine.tmp", true),
            ("b", true),
        ] {
            let file = fs::File::create(root.path().join(name)).unwrap();
            if is_old {
                file.set_modified(old).unwrap();
            }
        }
        write(&dir, "a", "text").unwrap();
        assert_eq!(listing(root.path()), [".8-0.tmp", ".mine.tmp", "a", "b"]);
    }

    #[test]
    fn a_folder_that_was_moved_is_still_the_one_written_to() {
        let root = tempfile::tempdir().unwrap();
        let dir = PrivateDir::open(&root.path().join("before")).unwrap();
        fs::rename(root.path().join("before"), root.path().join("after")).unwrap();
        write(&dir, "a", "text").unwrap();
        assert_eq!(listing(&root.path().join("after")), ["a"]);
    }
}
