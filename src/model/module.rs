//! Executables and shared objects.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::ids::ModuleId;

/// The GNU build id: the linker's hash of the contents, up to 32 bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct BuildId(Vec<u8>);

impl BuildId {
    /// Longest build id that is kept, in bytes: SHA-256's size; linkers write 8 to 20.
    pub const MAX_BYTES: usize = 32;

    /// `None` when empty or longer than [`BuildId::MAX_BYTES`].
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (!bytes.is_empty() && bytes.len() <= Self::MAX_BYTES).then(|| BuildId(bytes.to_vec()))
    }

    /// The bytes as the note holds them.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

/// A module as it is or was mapped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Module {
    /// Its id.
    pub id: ModuleId,
    /// The file, as `/proc/self/maps` names it; `[vdso]` for the kernel's own; empty when it has none.
    pub path: PathBuf,
    /// Addresses in this process.
    pub avma: Range<u64>,
    /// Lowest address of its loaded segments as linked (0 for most shared objects).
    pub base_svma: u64,
    /// Its build id, when it has one.
    pub build_id: Option<BuildId>,
    /// Device number of the mapped file, 0 without a file.
    pub device: u64,
    /// Inode of the mapped file, 0 without a file.
    pub inode: u64,
}

impl Module {
    /// The file's name without folders and without `.so` and version suffixes: `libpython3` for `libpython3.13.so.1.0` is avoided by
    /// keeping everything before `.so`.
    pub fn short_name(&self) -> String {
        let name = self
            .path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        match name.find(".so") {
            Some(at) if at > 0 => name[..at].to_owned(),
            _ => name,
        }
    }
}

/// The file stem of a native plugin: `x` for `plugins/x.so` and for the copy that Endstone loads instead, `plugins/.local/x-<hash>.so`. `None` for every
/// other file, the libraries that Python plugins bring along further down included.
pub fn plugin_stem(path: &Path) -> Option<String> {
    let mut folders = path.ancestors().skip(1).filter_map(Path::file_name);
    let file = path.file_name()?.to_string_lossy();
    let file = file.strip_suffix(" (deleted)").unwrap_or(&file);
    let stem = file.strip_suffix(".so")?;
    let folder = folders.next()?;
    if folder == "plugins" {
        return Some(stem.to_owned());
    }
    let is_copy = folder == ".local" && folders.next().is_some_and(|folder| folder == "plugins");
    let named = match stem.rsplit_once('-') {
        Some((before, hash)) if hash.len() >= 8 && hash.chars().all(|c| c.is_ascii_hexdigit()) => before,
        _ => stem,
    };
    is_copy.then(|| named.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(path: &str) -> String {
        Module {
            id: ModuleId::new(1),
            path: PathBuf::from(path),
            avma: 0..1,
            base_svma: 0,
            build_id: None,
            device: 0,
            inode: 0,
        }
        .short_name()
    }

    #[test]
    fn short_names_drop_folders_and_so_suffixes() {
        assert_eq!(named("/usr/lib/libpython3.13.so.1.0"), "libpython3.13");
        assert_eq!(named("/srv/bedrock_server"), "bedrock_server");
        assert_eq!(named("[vdso]"), "[vdso]");
        assert_eq!(named(""), "");
    }

    #[test]
    fn a_native_plugin_is_known_by_its_file_or_its_copy() {
        let stem = |path: &str| plugin_stem(Path::new(path));
        assert_eq!(stem("/srv/plugins/shop.so").as_deref(), Some("shop"));
        assert_eq!(stem("/srv/plugins/.local/shop-0a1b2c3d.so").as_deref(), Some("shop"));
        assert_eq!(
            stem("/srv/plugins/.local/shop-0a1b2c3d.so (deleted)").as_deref(),
            Some("shop")
        );
        assert_eq!(stem("/srv/plugins/.local/my-shop.so").as_deref(), Some("my-shop"));
        assert_eq!(stem("/srv/plugins/.local/lib/python3.13/site-packages/x.so"), None);
        assert_eq!(stem("/usr/lib/libc.so.6"), None);
    }
}
