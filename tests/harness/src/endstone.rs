//! The released Endstone, for one Python version, in a folder of its own.

use crate::error::{FileContext, Result};
use crate::lab::{Lab, folder_once};
use crate::pip;
use crate::progress::Step;
use crate::version::PythonVersion;
use crate::wheel;
use std::fs;
use std::path::{Path, PathBuf};

/// The release that the project is built against.
pub const ENDSTONE_VERSION: &str = "0.11.14";

/// Endstone lets pip install plugins under a prefix and then looks for them with `site`. Debian's `site` looks elsewhere, except in a virtual
/// environment, as which it takes a Python with `real_prefix`.
const SITE_CUSTOMIZE: &str = "import sys, sysconfig\n\
                              if sysconfig.get_default_scheme() == 'posix_local':\n    sys.real_prefix = sys.prefix\n";

/// Endstone and the Python packages it requires, unpacked.
#[derive(Clone, Debug)]
pub struct Endstone {
    site: PathBuf,
}

impl Endstone {
    /// Downloads (once) and unpacks (once).
    pub(crate) fn set_up(lab: &Lab, version: PythonVersion) -> Result<Self> {
        let cached = lab
            .cache()
            .join("wheels")
            .join(format!("endstone-{ENDSTONE_VERSION}-{}", version.wheel_tag()));
        folder_once(&cached, |partial| {
            let step = Step::start(format!(
                "Downloading Endstone {ENDSTONE_VERSION} for Python {version}, about 70 MB"
            ));
            pip::download(lab, version, &format!("endstone=={ENDSTONE_VERSION}"), partial, &step)?;
            step.done();
            Ok(())
        })?;
        let dir = lab
            .target()
            .join("endstone")
            .join(ENDSTONE_VERSION)
            .join(version.to_string());
        folder_once(&dir, |partial| {
            let step = Step::start(format!("Unpacking Endstone for Python {version}"));
            let site = partial.join("site");
            for wheel in wheel::in_folder(&cached)? {
                wheel::unpack(&wheel, &site)?;
            }
            let customize = site.join("sitecustomize.py");
            fs::write(&customize, SITE_CUSTOMIZE).context("write", &customize)?;
            step.done();
            Ok(())
        })?;
        let endstone = Self { site: dir.join("site") };
        for file in [endstone.runtime(), endstone.allocator()] {
            fs::metadata(&file).context("find", &file)?;
        }
        Ok(endstone)
    }

    /// What is unpacked in `site`.
    #[cfg(test)]
    pub(crate) fn in_folder(site: PathBuf) -> Self {
        Self { site }
    }

    /// The folder for `PYTHONPATH`.
    pub fn site(&self) -> &Path {
        &self.site
    }

    /// The library that the server is started with.
    pub fn runtime(&self) -> PathBuf {
        self.site.join("endstone").join("libendstone_runtime.so")
    }

    /// The settings that a new server gets.
    pub fn default_settings(&self) -> PathBuf {
        self.site.join("endstone").join("config").join("endstone.default.toml")
    }

    /// The allocator that Endstone's launcher preloads before the runtime.
    pub fn allocator(&self) -> PathBuf {
        self.site.join("endstone").join("libmimalloc.so")
    }
}
