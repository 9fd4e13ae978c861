//! Opening the files of modules.
//!
//! Paths come from `/proc/self/maps`, but what they name now can be anything: the plugin was updated, or somebody put a pipe there. So a
//! file is opened without following a link in its last part, without blocking, and only a regular file of sane size is read.
//!
//! Files are read with positioned reads into memory, never mapped: a mapped file that somebody truncates raises SIGBUS in whoever touches
//! it, and that would be the server.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use object::read::ReadCacheOps;

use super::error::SymbolError;
use crate::limits::{SYMBOL_FILE_BYTES, VDSO_BYTES};
use crate::model::Module;

/// An open file, read at the position asked for.
#[derive(Debug)]
pub struct ModuleFile {
    file: File,
    length: u64,
    inode: u64,
    position: u64,
}

impl ModuleFile {
    /// Opens a regular file of at most [`SYMBOL_FILE_BYTES`].
    pub fn open(path: &Path) -> Result<Self, SymbolError> {
        Self::open_with(path, libc::O_NOFOLLOW)
    }

    /// The same, of a separate debug file: some distributions keep links in their `.build-id` folders.
    pub fn open_debug(path: &Path) -> Result<Self, SymbolError> {
        Self::open_with(path, 0)
    }

    fn open_with(path: &Path, flags: libc::c_int) -> Result<Self, SymbolError> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC)
            .open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(SymbolError::NotRegular);
        }
        if metadata.len() > SYMBOL_FILE_BYTES {
            return Err(SymbolError::TooLarge(metadata.len()));
        }
        Ok(ModuleFile {
            file,
            length: metadata.len(),
            inode: metadata.ino(),
            position: 0,
        })
    }

    /// Its inode.
    pub fn inode(&self) -> u64 {
        self.inode
    }
}

impl ReadCacheOps for ModuleFile {
    fn len(&mut self) -> Result<u64, ()> {
        Ok(self.length)
    }

    fn seek(&mut self, position: u64) -> Result<u64, ()> {
        self.position = position;
        Ok(position)
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ()> {
        let count = self.file.read_at(buffer, self.position).map_err(drop)?;
        self.position += count as u64;
        Ok(count)
    }

    fn read_exact(&mut self, buffer: &mut [u8]) -> Result<(), ()> {
        self.file.read_exact_at(buffer, self.position).map_err(drop)?;
        self.position += buffer.len() as u64;
        Ok(())
    }
}

/// The kernel's own library, which has no file: its image as it is mapped. Its section headers lie behind the loaded segment, on the same page or the
/// next, so whole pages are read, and one more if there is one. `/proc/self/mem` reads it without a pointer, so an address that is wrong is an error and
/// not a crash.
pub fn read_vdso(module: &Module) -> Result<Vec<u8>, SymbolError> {
    const PAGE: u64 = 4096;
    let loaded = module.avma.end.saturating_sub(module.avma.start);
    let length = loaded.next_multiple_of(PAGE);
    if length > VDSO_BYTES {
        return Err(SymbolError::TooLarge(length));
    }
    let mut image = vec![0; usize::try_from(length).map_err(|_| SymbolError::TooLarge(length))?];
    let memory = File::open("/proc/self/mem")?;
    memory.read_exact_at(&mut image, module.avma.start)?;
    let mut next = vec![0; PAGE as usize];
    if memory.read_exact_at(&mut next, module.avma.start + length).is_ok() {
        image.append(&mut next);
    }
    Ok(image)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "text").unwrap();
        assert!(ModuleFile::open(&file).is_ok());

        let link = folder.path().join("link");
        symlink(&file, &link).unwrap();
        assert!(matches!(ModuleFile::open(&link), Err(SymbolError::Unreadable(_))));
        assert!(matches!(ModuleFile::open(folder.path()), Err(SymbolError::NotRegular)));
        assert!(matches!(
            ModuleFile::open(Path::new("/dev/zero")),
            Err(SymbolError::NotRegular)
        ));

        let socket = folder.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        assert!(ModuleFile::open(&socket).is_err());
    }

    #[test]
    fn a_pipe_without_a_writer_does_not_block() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        assert!(matches!(ModuleFile::open(&pipe), Err(SymbolError::NotRegular)));
    }

    #[test]
    fn a_sparse_giant_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("giant");
        File::create(&path).unwrap().set_len(SYMBOL_FILE_BYTES + 1).unwrap();
        assert!(matches!(ModuleFile::open(&path), Err(SymbolError::TooLarge(_))));
    }
}
