//! The folders that everything is set up in.

use crate::debian;
use crate::endstone::Endstone;
use crate::error::{Error, FileContext, Result};
use crate::find::{self, Candidate};
use crate::package;
use crate::plugins;
use crate::progress::note;
use crate::python::{Origin, Python};
use crate::server_builder::ServerBuilder;
use crate::version::PythonVersion;
use std::env;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name of the folder in the user's cache.
const CACHE_NAME: &str = "endstone-spark";

/// The workspace's folders, and the way to everything that a test server needs.
///
/// Downloads are kept in `$XDG_CACHE_HOME/endstone-spark` (default `~/.cache`), everything made from them in `target/`, so a second set-up
/// works without a network. Set-up steps take a lock in the cache, so test programs may run at the same time.
#[derive(Clone, Debug)]
pub struct Lab {
    root: PathBuf,
    target: PathBuf,
    cache: PathBuf,
}

impl Lab {
    /// Finds the workspace that this crate was built in, and the cache.
    ///
    /// # Errors
    /// If neither `XDG_CACHE_HOME` nor `HOME` is set or the folders cannot be made.
    pub fn open() -> Result<Self> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = manifest.ancestors().nth(2).unwrap_or(manifest).to_owned();
        let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
        let cache = env::var_os("XDG_CACHE_HOME")
            .filter(|dir| Path::new(dir).is_absolute())
            .map(PathBuf::from)
            .or_else(|| {
                env::home_dir()
                    .filter(|home| home.is_absolute())
                    .map(|home| home.join(".cache"))
            })
            .ok_or_else(|| Error::Missing("no folder for downloads: set HOME or XDG_CACHE_HOME".to_owned()))?
            .join(CACHE_NAME);
        Self::at(root, target, cache)
    }

    /// As [`Lab::open`], in given folders.
    ///
    /// # Errors
    /// If the folders cannot be made.
    pub fn at(root: PathBuf, target: PathBuf, cache: PathBuf) -> Result<Self> {
        for dir in [&target, &cache] {
            fs::create_dir_all(dir).context("create", dir)?;
        }
        Ok(Self { root, target, cache })
    }

    /// Top level of the sources.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Cargo's target folder, where everything but downloads goes.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Where downloads are kept.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// A file that `cargo build --release` makes.
    ///
    /// # Errors
    /// If it is not there.
    pub fn built(&self, name: &str) -> Result<PathBuf> {
        let path = self.target.join("release").join(name);
        if path.is_file() {
            return Ok(path);
        }
        Err(Error::Missing(format!(
            "{} is not built; run ./dev build first",
            path.display()
        )))
    }

    /// The profiler plugin, as built; or the file that `SPARK_PLUGIN` names.
    ///
    /// # Errors
    /// If it is not built.
    pub fn plugin(&self) -> Result<PathBuf> {
        if let Some(named) = std::env::var_os("SPARK_PLUGIN") {
            return Ok(PathBuf::from(named));
        }
        self.built("libendstone_spark.so")
    }

    /// The cargo that runs us, or else the one on the path, in the project's folder.
    pub fn cargo(&self) -> Command {
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(&self.root);
        command
    }

    /// The plugin with faults that a test may ask for (`src/sys/fault.rs`), built first: nobody else needs it.
    ///
    /// # Errors
    /// If it cannot be built.
    pub fn faulty_plugin(&self) -> Result<PathBuf> {
        let status = self
            .cargo()
            .args([
                "build",
                "--quiet",
                "--lib",
                "--profile",
                "faults",
                "--features",
                "fault-injection",
            ])
            .status()
            .map_err(|source| Error::Spawn {
                program: "cargo".to_owned(),
                source,
            })?;
        if !status.success() {
            return Err(Error::Missing("the plugin with faults could not be built".to_owned()));
        }
        Ok(self.target.join("faults").join("libendstone_spark.so"))
    }

    /// Every Python on this machine that could be looked at, usable or not. Nothing is fetched.
    pub fn installed_pythons(&self) -> &'static [Candidate] {
        find::candidates()
    }

    /// Every Python that has been fetched.
    pub fn fetched_pythons(&self) -> Vec<Python> {
        PythonVersion::ALL
            .into_iter()
            .filter_map(|version| debian::unpacked(self, version))
            .collect()
    }

    /// Whether this version can be fetched where there is none.
    pub fn can_fetch(version: PythonVersion) -> bool {
        debian::has(version)
    }

    /// As [`Lab::python`], without fetching anything.
    ///
    /// # Errors
    /// If `SPARK_PYTHON` names something of no use.
    pub fn python_at_hand(&self, version: PythonVersion) -> Result<Option<Python>> {
        Ok(find::usable(find::candidates(), version)?.or_else(|| debian::unpacked(self, version)))
    }

    /// A CPython of this version with a shared libpython: one of this machine, else Debian's, fetched.
    ///
    /// # Errors
    /// If there is none and none can be fetched; the text says what to install.
    pub fn python(&self, version: PythonVersion) -> Result<Python> {
        if let Some(python) = find::usable(find::candidates(), version)? {
            return Ok(python);
        }
        let _lock = self.lock()?;
        debian::fetch(self, version)
    }

    /// Makes sure that a Python has CPython's own tests, where that can be done: one that was fetched gets them, another has them or has not.
    ///
    /// # Errors
    /// If they are not cached and cannot be downloaded.
    pub fn own_tests(&self, python: &Python) -> Result<()> {
        if python.origin != Origin::Fetched {
            return Ok(());
        }
        let _lock = self.lock()?;
        debian::fetch_own_tests(self, python.version)
    }

    /// The Python to use when no version is asked for: `SPARK_PYTHON`, else the newest of this machine with `sys.monitoring`, else Debian's 3.13.
    ///
    /// # Errors
    /// As [`Lab::python`].
    pub fn default_python(&self) -> Result<Python> {
        let candidates = find::candidates();
        if let Some(python) = find::given(candidates)? {
            return Ok(python);
        }
        for version in PythonVersion::ALL
            .into_iter()
            .rev()
            .filter(|version| version.has_monitoring())
        {
            if let Some(python) = find::usable(candidates, version)? {
                return Ok(python);
            }
        }
        let _lock = self.lock()?;
        debian::fetch(self, PythonVersion::V3_13)
    }

    /// Every version that this machine has or can fetch, oldest first, with the reason for each that it cannot have.
    pub fn pythons(&self) -> Vec<(PythonVersion, Result<Python>)> {
        PythonVersion::ALL
            .into_iter()
            .map(|version| (version, self.python(version)))
            .collect()
    }

    /// The released Endstone and its requirements for this Python.
    ///
    /// # Errors
    /// If it is not cached and cannot be downloaded.
    pub fn endstone(&self, version: PythonVersion) -> Result<Endstone> {
        let _lock = self.lock()?;
        Endstone::set_up(self, version)
    }

    /// A folder for `PYTHONPATH` with a package from PyPI, e.g. `greenlet==3.5.6`, and what it needs.
    ///
    /// # Errors
    /// If it is not cached and cannot be downloaded, or has no wheel for this version.
    pub fn package(&self, version: PythonVersion, requirement: &str) -> Result<PathBuf> {
        let _lock = self.lock()?;
        package::set_up(self, version, requirement)
    }

    /// The sample plugins' wheels, built from `tests/plugins`.
    ///
    /// # Errors
    /// If their sources cannot be read or the wheels not be written.
    pub fn sample_plugins(&self) -> Result<Vec<PathBuf>> {
        let _lock = self.lock()?;
        plugins::build_all(self)
    }

    /// A Python plugin built from the sources in this folder.
    ///
    /// # Errors
    /// If they are not complete or the wheel cannot be written.
    pub fn python_plugin(&self, source: &Path) -> Result<PathBuf> {
        let _lock = self.lock()?;
        plugins::build(source, &self.target().join("plugins"))
    }

    /// The native sample plugin, as built. Under its own name: a server names a plugin's frames after its file.
    ///
    /// # Errors
    /// If it is not built, or cannot be copied.
    pub fn native_plugin(&self) -> Result<PathBuf> {
        let _lock = self.lock()?;
        plugins::named(
            &self.built("libquarry.so")?,
            &self.target().join("plugins"),
            "quarry.so",
        )
    }

    /// Starts to put a server together.
    pub fn server<'a>(&'a self, python: &'a Python) -> ServerBuilder<'a> {
        ServerBuilder::new(self, python)
    }

    /// Keeps other processes from setting up at the same time. Released on drop.
    pub(crate) fn lock(&self) -> Result<File> {
        // In the cache, which other workspaces use too.
        let path = self.cache.join("lock");
        let file = File::create(&path).context("create", &path)?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => {
                note("waiting for another set-up to finish");
                file.lock().context("lock", &path)?;
                Ok(file)
            }
            Err(TryLockError::Error(source)) => Err(source).context("lock", &path),
        }
    }
}

/// A folder that is either complete or absent: filled under another name, then renamed. `fill` gets the folder to fill.
pub(crate) fn folder_once(dir: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let mut partial = dir.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    if partial.exists() {
        fs::remove_dir_all(&partial).context("remove", &partial)?;
    }
    fs::create_dir_all(&partial).context("create", &partial)?;
    fill(&partial)?;
    fs::rename(&partial, dir).context("rename", &partial)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_appears_only_when_it_is_complete() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("things");
        let failed = folder_once(&dir, |partial| {
            fs::write(partial.join("half"), "x").unwrap();
            Err(Error::Missing("network".to_owned()))
        });
        assert!(failed.is_err());
        assert!(!dir.exists());
        folder_once(&dir, |partial| {
            assert!(!partial.join("half").exists(), "what a failed attempt left is gone");
            fs::write(partial.join("all"), "x").context("write", partial)
        })
        .unwrap();
        assert!(dir.join("all").is_file());
        folder_once(&dir, |_| panic!("filled a second time")).unwrap();
    }
}
