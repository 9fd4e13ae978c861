//! Downloads wheels with pip.

use crate::debian;
use crate::error::{Error, Result};
use crate::find;
use crate::lab::Lab;
use crate::program::run;
use crate::progress::Step;
use crate::python::{OwnLibc, Python};
use crate::version::PythonVersion;
use std::path::Path;
use std::process::Command;

/// Kinds of wheels that run here, newest first: Endstone needs glibc 2.31 anyway.
const PLATFORMS: [&str; 5] = [
    "manylinux_2_31_x86_64",
    "manylinux_2_28_x86_64",
    "manylinux2014_x86_64",
    "manylinux_2_17_x86_64",
    "manylinux_2_5_x86_64",
];

/// Downloads wheels, and what they need, for one Python version. The pip that does it may belong to another.
pub(crate) fn download(lab: &Lab, version: PythonVersion, requirement: &str, dir: &Path, step: &Step) -> Result<()> {
    let mut command = any_pip(lab, version)?;
    command.args([
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--only-binary=:all:",
        "--implementation",
        "cp",
    ]);
    command.arg("--python-version").arg(version.to_string());
    for platform in PLATFORMS {
        command.args(["--platform", platform]);
    }
    command.arg("--dest").arg(dir).arg(requirement);
    run(&mut command, step).map(drop)
}

/// As [`download`], without what the wheel needs, by a given pip.
pub(crate) fn download_alone(mut pip: Command, requirement: &str, dir: &Path, step: &Step) -> Result<()> {
    pip.args([
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--only-binary=:all:",
        "--no-deps",
        "--dest",
    ]);
    run(pip.arg(dir).arg(requirement), step).map(drop)
}

/// A pip of this machine, preferably of the same version; else the one that a fetched Debian Python brings.
fn any_pip(lab: &Lab, version: PythonVersion) -> Result<Command> {
    if let Some(command) = installed(Some(version)) {
        return Ok(command);
    }
    let fetched = PythonVersion::ALL
        .into_iter()
        .filter_map(|version| debian::unpacked(lab, version))
        .next();
    if let Some(command) = fetched.map(|python| pip_of_fetched(&python)) {
        return command;
    }
    let fetchable = if debian::has(version) {
        version
    } else {
        PythonVersion::V3_13
    };
    debian::fetch(lab, fetchable)
        .and_then(|python| pip_of_fetched(&python))
        .map_err(|error| {
            Error::Missing(format!(
                "no pip: no Python of this machine has it, and none could be fetched ({error}). Install python3-pip."
            ))
        })
}

/// Pip of a Python of this machine.
pub(crate) fn installed(preferred: Option<PythonVersion>) -> Option<Command> {
    let candidates = find::candidates();
    let pythons = || {
        candidates
            .iter()
            .filter_map(|candidate| candidate.python.as_ref().ok())
            .filter(|p| p.has_pip)
    };
    let python = pythons()
        .find(|python| Some(python.version) == preferred)
        .or_else(|| pythons().next())?;
    let mut command = Command::new(&python.executable);
    command.args(["-m", "pip"]);
    Some(command)
}

pub(crate) fn pip_of_fetched(python: &Python) -> Result<Command> {
    let missing = || Error::Missing("the fetched Python has no folder of its own".to_owned());
    let root = python.home.parent().ok_or_else(missing)?;
    let mut command = Command::new(&python.executable);
    command.arg(debian::pip_wheel(root)?.join("pip"));
    if let Some(OwnLibc { .. }) = &python.own_libc {
        command.env("PYTHONHOME", &python.home);
    }
    Ok(command)
}
