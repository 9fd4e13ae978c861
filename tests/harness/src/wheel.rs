//! Python wheels: unpacks them without pip, and writes them without a build tool.
//!
//! A wheel is a zip file with a `.dist-info` folder (PEP 427). Unpacking needs no network and no interpreter of the wheel's version; writing
//! gives the same bytes for the same sources, so a wheel changes only when its plugin does.

use crate::error::{Error, FileContext, Result};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use zip::ZipArchive;
use zip::write::{SimpleFileOptions, ZipWriter};

/// What a wheel says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Name of the distribution, `endstone-market`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// One line.
    pub summary: String,
    /// Authors with addresses, as `Author-email` has them; may be empty.
    pub author_email: String,
    /// Entry points: group, name, object.
    pub entry_points: Vec<(String, String, String)>,
}

impl Metadata {
    /// The name as files spell it: `endstone_market`.
    fn file_name(&self) -> String {
        self.name.replace(['-', '.'], "_")
    }

    /// `endstone_market-1.2.0-py3-none-any.whl`.
    pub fn wheel_name(&self) -> String {
        format!("{}-{}-py3-none-any.whl", self.file_name(), self.version)
    }
}

/// Writes a wheel of pure Python. `files` are paths inside the wheel and their contents.
///
/// # Errors
/// Only if the sink fails.
pub fn write<W: Write + io::Seek>(sink: W, metadata: &Metadata, files: &[(String, Vec<u8>)]) -> io::Result<W> {
    let info = format!("{}-{}.dist-info", metadata.file_name(), metadata.version);
    let mut entries: Vec<(String, Vec<u8>)> = files.to_vec();
    entries.sort();
    entries.push((format!("{info}/METADATA"), metadata_text(metadata).into_bytes()));
    entries.push((
        format!("{info}/WHEEL"),
        b"Wheel-Version: 1.0\nGenerator: endstone-spark\nRoot-Is-Purelib: true\nTag: py3-none-any\n".to_vec(),
    ));
    entries.push((
        format!("{info}/entry_points.txt"),
        entry_points_text(metadata).into_bytes(),
    ));
    let mut record = String::new();
    for (path, content) in &entries {
        record.push_str(&format!(
            "{path},sha256={},{}\n",
            base64_url(&Sha256::digest(content)),
            content.len()
        ));
    }
    record.push_str(&format!("{info}/RECORD,,\n"));
    entries.push((format!("{info}/RECORD"), record.into_bytes()));

    // The zip format's first day, and one mode: nothing of the machine or the moment goes in.
    let options = SimpleFileOptions::default()
        .last_modified_time(zip::DateTime::default())
        .unix_permissions(0o644);
    let mut zip = ZipWriter::new(sink);
    for (path, content) in &entries {
        zip.start_file(path.as_str(), options)?;
        zip.write_all(content)?;
    }
    Ok(zip.finish()?)
}

fn metadata_text(metadata: &Metadata) -> String {
    let mut text = format!(
        "Metadata-Version: 2.1\nName: {}\nVersion: {}\nSummary: {}\n",
        metadata.name, metadata.version, metadata.summary
    );
    if !metadata.author_email.is_empty() {
        let _ = writeln!(text, "Author-email: {}", metadata.author_email);
    }
    text
}

fn entry_points_text(metadata: &Metadata) -> String {
    let mut text = String::new();
    let mut group = "";
    for (of, name, object) in &metadata.entry_points {
        if of != group {
            let _ = writeln!(text, "[{of}]");
            group = of;
        }
        let _ = writeln!(text, "{name} = {object}");
    }
    text
}

/// Base 64 with the URL alphabet and no padding, as `RECORD` has it.
fn base64_url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk
            .iter()
            .chain([0, 0].iter())
            .take(3)
            .fold(0_u32, |word, byte| word << 8 | u32::from(*byte));
        for place in 0..=chunk.len() {
            text.push(char::from(ALPHABET[(word >> (18 - 6 * place) & 63) as usize]));
        }
    }
    text
}

/// The wheels in a folder, by name.
pub(crate) fn in_folder(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut wheels: Vec<PathBuf> = fs::read_dir(dir)
        .context("read", dir)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .collect();
    wheels.sort();
    Ok(wheels)
}

/// Unpacks a wheel into a folder that is removed with the result.
///
/// # Errors
/// If it cannot be read or is no wheel.
pub fn unpacked(wheel: &Path) -> Result<tempfile::TempDir> {
    let folder = tempfile::tempdir().context("create", std::env::temp_dir())?;
    unpack(wheel, folder.path())?;
    Ok(folder)
}

/// Unpacks a wheel into a folder for `PYTHONPATH`. Its scripts go to `bin` in there, other data is left out.
pub(crate) fn unpack(wheel: &Path, site: &Path) -> Result<()> {
    let bad = |reason: String| Error::Content {
        path: wheel.to_owned(),
        reason,
    };
    let file = File::open(wheel).context("open", wheel)?;
    let mut zip = ZipArchive::new(file).map_err(|error| bad(error.to_string()))?;
    for index in 0..zip.len() {
        let mut entry = zip.by_index(index).map_err(|error| bad(error.to_string()))?;
        let name = entry
            .enclosed_name()
            .ok_or_else(|| bad("a file in it leads outside".to_owned()))?;
        let Some(inside) = place(&name).filter(|_| !entry.is_dir()) else {
            continue;
        };
        let target = site.join(inside);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).context("create", parent)?;
        }
        let mut content = Vec::new();
        entry.read_to_end(&mut content).context("read", wheel)?;
        fs::write(&target, content).context("write", &target)?;
        if entry.unix_mode().is_some_and(|mode| mode & 0o111 != 0) || inside_bin(&target, site) {
            fs::set_permissions(&target, fs::Permissions::from_mode(0o755)).context("change", &target)?;
        }
    }
    Ok(())
}

fn inside_bin(target: &Path, site: &Path) -> bool {
    target.parent() == Some(&site.join("bin"))
}

/// Where a file of a wheel goes: `x-1.0.data/purelib/...` to the top, `x-1.0.data/scripts/...` to `bin`.
fn place(name: &Path) -> Option<PathBuf> {
    let mut parts = name.components();
    let first = parts.next()?.as_os_str().to_str()?;
    if !first.ends_with(".data") {
        return Some(name.to_owned());
    }
    match parts.next()?.as_os_str().to_str()? {
        "purelib" | "platlib" => Some(parts.as_path().to_owned()),
        "scripts" => Some(Path::new("bin").join(parts.as_path())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn sample() -> Metadata {
        Metadata {
            name: "endstone-market".to_owned(),
            version: "1.2.0".to_owned(),
            summary: "Shops".to_owned(),
            author_email: "Ann <ann@example.org>".to_owned(),
            entry_points: vec![(
                "endstone".to_owned(),
                "market".to_owned(),
                "endstone_market:Market".to_owned(),
            )],
        }
    }

    fn files() -> Vec<(String, Vec<u8>)> {
        vec![
            ("endstone_market/config.toml".to_owned(), b"offers = 3\n".to_vec()),
            ("endstone_market/__init__.py".to_owned(), b"x = 1\n".to_vec()),
        ]
    }

    fn bytes(files: &[(String, Vec<u8>)]) -> Vec<u8> {
        write(Cursor::new(Vec::new()), &sample(), files).unwrap().into_inner()
    }

    #[test]
    fn holds_the_files_and_what_installers_ask_for() {
        let mut zip = ZipArchive::new(Cursor::new(bytes(&files()))).unwrap();
        let mut text = |name: &str| {
            let mut text = String::new();
            zip.by_name(name).unwrap().read_to_string(&mut text).unwrap();
            text
        };
        assert_eq!(text("endstone_market/__init__.py"), "x = 1\n");
        let metadata = text("endstone_market-1.2.0.dist-info/METADATA");
        assert!(
            metadata.contains("Name: endstone-market\nVersion: 1.2.0\n"),
            "{metadata}"
        );
        assert_eq!(
            text("endstone_market-1.2.0.dist-info/entry_points.txt"),
            "[endstone]\nmarket = endstone_market:Market\n"
        );
        assert!(text("endstone_market-1.2.0.dist-info/WHEEL").contains("Tag: py3-none-any"));
        let record = text("endstone_market-1.2.0.dist-info/RECORD");
        assert_eq!(record.lines().count(), 6, "every file, itself included:\n{record}");
        // printf 'x = 1\n' | sha256sum, in base 64
        let hash = base64_url(&Sha256::digest(b"x = 1\n"));
        assert!(
            record.contains(&format!("endstone_market/__init__.py,sha256={hash},6\n")),
            "{record}"
        );
        assert!(
            record.ends_with("endstone_market-1.2.0.dist-info/RECORD,,\n"),
            "{record}"
        );
    }

    #[test]
    fn same_sources_give_the_same_bytes_in_any_order() {
        let mut turned = files();
        turned.reverse();
        assert_eq!(bytes(&files()), bytes(&turned));
    }

    #[test]
    fn the_file_name_follows_the_convention() {
        assert_eq!(sample().wheel_name(), "endstone_market-1.2.0-py3-none-any.whl");
    }

    #[test]
    fn base_64_of_known_texts() {
        // RFC 4648, section 10, without padding; the last with both letters that differ from plain base 64.
        for (text, expected) in [
            (&b""[..], ""),
            (b"f", "Zg"),
            (b"fo", "Zm8"),
            (b"foo", "Zm9v"),
            (b"foob", "Zm9vYg"),
            (&[0xfb, 0xff], "-_8"),
        ] {
            assert_eq!(base64_url(text), expected);
        }
    }

    #[test]
    fn data_folders_are_resolved() {
        assert_eq!(place(Path::new("a/b.py")), Some("a/b.py".into()));
        assert_eq!(place(Path::new("x-1.0.data/purelib/a/b.py")), Some("a/b.py".into()));
        assert_eq!(place(Path::new("x-1.0.data/scripts/tool")), Some("bin/tool".into()));
        assert_eq!(place(Path::new("x-1.0.data/headers/x.h")), None);
    }

    #[test]
    fn a_written_wheel_unpacks_again() {
        let temp = tempfile::tempdir().unwrap();
        let wheel = temp.path().join(sample().wheel_name());
        fs::write(&wheel, bytes(&files())).unwrap();
        let site = temp.path().join("site");
        unpack(&wheel, &site).unwrap();
        assert_eq!(
            fs::read(site.join("endstone_market/config.toml")).unwrap(),
            b"offers = 3\n"
        );
        assert!(site.join("endstone_market-1.2.0.dist-info/RECORD").is_file());
    }
}
