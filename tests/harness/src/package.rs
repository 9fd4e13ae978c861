//! Packages from PyPI that tests need.

use crate::error::Result;
use crate::lab::{Lab, folder_once};
use crate::pip;
use crate::progress::Step;
use crate::version::PythonVersion;
use crate::wheel;
use std::path::PathBuf;

/// Downloads (once) and unpacks (once).
pub(crate) fn set_up(lab: &Lab, version: PythonVersion, requirement: &str) -> Result<PathBuf> {
    let name = format!("{}-{}", requirement.replace("==", "-"), version.wheel_tag());
    let cached = lab.cache().join("wheels").join(&name);
    folder_once(&cached, |partial| {
        let step = Step::start(format!("Downloading {requirement} for Python {version}"));
        pip::download(lab, version, requirement, partial, &step)?;
        step.done();
        Ok(())
    })?;
    let dir = lab.target().join("packages").join(&name);
    folder_once(&dir, |partial| {
        for wheel in wheel::in_folder(&cached)? {
            wheel::unpack(&wheel, partial)?;
        }
        Ok(())
    })?;
    Ok(dir)
}
