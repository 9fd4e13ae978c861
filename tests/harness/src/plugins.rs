//! Builds the sample plugins' wheels from their sources.

use crate::error::{Error, FileContext, Result};
use crate::lab::Lab;
use crate::wheel::{self, Metadata};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

/// The part of a `pyproject.toml` that goes into the wheel.
#[derive(Deserialize)]
struct PyProject {
    project: Project,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Project {
    name: String,
    version: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    authors: Vec<Author>,
    #[serde(default)]
    entry_points: BTreeMap<String, BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct Author {
    name: String,
    email: String,
}

/// Builds every plugin in `tests/plugins` into `target/plugins`.
pub(crate) fn build_all(lab: &Lab) -> Result<Vec<PathBuf>> {
    let sources = lab.root().join("tests").join("plugins");
    let mut folders: Vec<PathBuf> = fs::read_dir(&sources)
        .context("read", &sources)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("pyproject.toml").is_file())
        .collect();
    folders.sort();
    folders
        .iter()
        .map(|folder| build(folder, &lab.target().join("plugins")))
        .collect()
}

/// A copy of a file under another name, new only when it has changed.
pub(crate) fn named(file: &Path, folder: &Path, name: &str) -> Result<PathBuf> {
    let content = fs::read(file).context("read", file)?;
    fs::create_dir_all(folder).context("create", folder)?;
    replace(&folder.join(name), &content)
}

/// Builds one plugin's wheel: all of its packages as they are, `pyproject.toml` as metadata.
///
/// # Errors
/// If the sources cannot be read, `pyproject.toml` is not valid, or the wheel cannot be written.
pub fn build(source: &Path, destination: &Path) -> Result<PathBuf> {
    let project_file = source.join("pyproject.toml");
    let text = fs::read_to_string(&project_file).context("read", &project_file)?;
    let metadata = metadata(&text).map_err(|reason| Error::Content {
        path: project_file,
        reason,
    })?;
    let mut files = Vec::new();
    for entry in fs::read_dir(source).context("read", source)? {
        let path = entry.context("read", source)?.path();
        if path.is_dir() {
            collect(source, &path, &mut files)?;
        }
    }
    fs::create_dir_all(destination).context("create", destination)?;
    let wheel = destination.join(metadata.wheel_name());
    let content = wheel::write(Cursor::new(Vec::new()), &metadata, &files)
        .context("write", &wheel)?
        .into_inner();
    replace(&wheel, &content)
}

/// Servers hard-link plugins: one that is there is replaced as a whole, and only if it changed.
fn replace(file: &Path, content: &[u8]) -> Result<PathBuf> {
    if fs::read(file).is_ok_and(|old| old == content) {
        return Ok(file.to_owned());
    }
    let temporary = file.with_extension("partial");
    fs::write(&temporary, content).context("write", &temporary)?;
    fs::rename(&temporary, file).context("rename", &temporary)?;
    Ok(file.to_owned())
}

fn metadata(pyproject: &str) -> std::result::Result<Metadata, String> {
    let PyProject { project } = toml::from_str(pyproject).map_err(|error| error.to_string())?;
    let authors: Vec<String> = project
        .authors
        .iter()
        .map(|a| format!("{} <{}>", a.name, a.email))
        .collect();
    let entry_points = project.entry_points.into_iter().flat_map(|(group, points)| {
        points
            .into_iter()
            .map(move |(name, object)| (group.clone(), name, object))
            .collect::<Vec<_>>()
    });
    Ok(Metadata {
        name: project.name,
        version: project.version,
        summary: project.description,
        author_email: authors.join(", "),
        entry_points: entry_points.collect(),
    })
}

fn collect(source: &Path, dir: &Path, files: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
    for entry in fs::read_dir(dir).context("read", dir)? {
        let path = entry.context("read", dir)?.path();
        if path.ends_with("__pycache__") {
            continue;
        }
        if path.is_dir() {
            collect(source, &path, files)?;
        } else {
            let inside = path
                .strip_prefix(source)
                .unwrap_or(&path)
                .to_string_lossy()
                .into_owned();
            files.push((inside, fs::read(&path).context("read", &path)?));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROJECT: &str = "[project]\nname = 'endstone-x'\nversion = '2.0'\ndescription = 'An x'\n\
                           authors = [{ name = 'Ann', email = 'ann@example.org' }]\n[project.entry-points.endstone]\nx = 'endstone_x:X'\n";

    #[test]
    fn takes_metadata_from_the_project_file() {
        let metadata = metadata(PROJECT).unwrap();
        assert_eq!(
            (metadata.name.as_str(), metadata.version.as_str()),
            ("endstone-x", "2.0")
        );
        assert_eq!(metadata.author_email, "Ann <ann@example.org>");
        assert_eq!(
            metadata.entry_points,
            [("endstone".to_owned(), "x".to_owned(), "endstone_x:X".to_owned())]
        );
    }

    #[test]
    fn builds_packages_without_compiled_leftovers() {
        let temp = tempfile::tempdir().unwrap();
        let source = temp.path().join("x");
        fs::create_dir_all(source.join("endstone_x/__pycache__")).unwrap();
        fs::write(source.join("pyproject.toml"), PROJECT).unwrap();
        fs::write(source.join("endstone_x/__init__.py"), "class X: pass\n").unwrap();
        fs::write(source.join("endstone_x/__pycache__/x.pyc"), "old").unwrap();
        let wheel = build(&source, &temp.path().join("out")).unwrap();
        let site = temp.path().join("site");
        wheel::unpack(&wheel, &site).unwrap();
        assert!(site.join("endstone_x/__init__.py").is_file());
        assert!(!site.join("endstone_x/__pycache__").exists());
    }

    #[test]
    fn a_project_file_without_a_name_is_refused() {
        let error = metadata("[project]\nversion = '1'\n").unwrap_err();
        assert!(error.contains("name"), "{error}");
    }
}
