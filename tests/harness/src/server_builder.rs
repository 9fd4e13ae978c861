//! Puts one stand-in server together: its folder, its plugins, its command line.

use crate::error::{Error, FileContext, Result};
use crate::lab::Lab;
use crate::launch;
use crate::python::Python;
use crate::server::Server;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Where the profiler finds its settings.
const SETTINGS: &str = "plugins/spark/config.toml";

/// For servers of tests: nothing is ever uploaded to the real server (nobody listens on this port), and there is no session but those that a test starts: tests of
/// the background profiler bring settings of their own.
const FOR_TESTS: &str = "bytebinUrl = \"http://127.0.0.1:9\"\nbackgroundProfiler = false\n";

/// A server that is being put together.
#[derive(Debug)]
pub struct ServerBuilder<'a> {
    lab: &'a Lab,
    python: &'a Python,
    folder: Option<PathBuf>,
    /// Instead of the one that was built last.
    profiler_file: Option<PathBuf>,
    profiler: bool,
    plugins: Vec<PathBuf>,
    files: Vec<(PathBuf, String)>,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
}

impl<'a> ServerBuilder<'a> {
    pub(crate) fn new(lab: &'a Lab, python: &'a Python) -> Self {
        Self {
            lab,
            python,
            folder: None,
            profiler_file: None,
            profiler: true,
            plugins: Vec::new(),
            files: Vec::new(),
            arguments: Vec::new(),
            variables: Vec::new(),
        }
    }

    /// Uses this folder, as it is, and keeps it. Without: a new one in `target/servers`, removed at the end unless the test fails, and with settings that send
    /// uploads nowhere.
    #[must_use]
    pub fn folder(mut self, dir: impl Into<PathBuf>) -> Self {
        self.folder = Some(dir.into());
        self
    }

    /// Takes this file as the profiler plugin.
    #[must_use]
    pub fn profiler_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.profiler_file = Some(file.into());
        self
    }

    /// Leaves the profiler plugin out.
    #[must_use]
    pub fn without_profiler(mut self) -> Self {
        self.profiler = false;
        self
    }

    /// Adds a plugin, `.whl` or `.so`.
    #[must_use]
    pub fn plugin(mut self, file: impl Into<PathBuf>) -> Self {
        self.plugins.push(file.into());
        self
    }

    /// Adds the sample plugins.
    ///
    /// # Errors
    /// If they cannot be built.
    pub fn samples(mut self) -> Result<Self> {
        self.plugins.extend(self.lab.sample_plugins()?);
        Ok(self)
    }

    /// Adds a file to the server folder before the start, for example a plugin's `plugins/market/config.toml`.
    #[must_use]
    pub fn file(mut self, path: impl Into<PathBuf>, content: impl Into<String>) -> Self {
        self.files.push((path.into(), content.into()));
        self
    }

    /// Adds an argument for the stand-in.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Sets an environment variable of the server.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Prepares the folder and starts the server; does not wait for anything.
    ///
    /// # Errors
    /// If something is not built or cannot be set up.
    pub fn start(self) -> Result<Server> {
        let (dir, temporary) = match self.folder {
            Some(dir) => (dir, None),
            None => {
                let parent = self.lab.target().join("servers");
                fs::create_dir_all(&parent).context("create", &parent)?;
                let prefix = format!("{}-", self.python.version);
                let temporary = tempfile::Builder::new()
                    .prefix(&prefix)
                    .tempdir_in(&parent)
                    .context("create", &parent)?;
                (temporary.path().to_owned(), Some(temporary))
            }
        };
        if temporary.is_some() && !self.files.iter().any(|(path, _)| path == Path::new(SETTINGS)) {
            write_files(&dir, &[(PathBuf::from(SETTINGS), FOR_TESTS.to_owned())])?;
        }
        write_files(&dir, &self.files)?;
        if self.profiler {
            let file = match self.profiler_file {
                Some(file) => file,
                None => self.lab.plugin()?,
            };
            install(&file, &dir, "endstone_spark.so")?;
        }
        for plugin in &self.plugins {
            let name = plugin
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default();
            install(plugin, &dir, &name)?;
        }
        let mut command = launch::command(self.lab, self.python, &dir)?;
        command
            .args(&self.arguments)
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().map_err(|source| Error::Spawn { program, source })?;
        Ok(Server::follow(child, dir, temporary))
    }

    /// Starts the server and waits until plugins are enabled and ticks run.
    ///
    /// # Errors
    /// As [`ServerBuilder::start`], and if the server does not get ready; the text shows its last lines.
    pub fn start_ready(self) -> Result<Server> {
        let server = self.start()?;
        server.wait_ready()?;
        Ok(server)
    }
}

fn write_files(dir: &Path, files: &[(PathBuf, String)]) -> Result<()> {
    for (path, content) in files {
        let path = dir.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).context("create", parent)?;
        }
        fs::write(&path, content).context("write", &path)?;
    }
    Ok(())
}

/// Puts a plugin into a server folder, as a whole: a server that runs there keeps the file it has.
///
/// # Errors
/// If the folder cannot be written or the plugin not be read.
pub fn install(plugin: &Path, dir: &Path, name: &str) -> Result<()> {
    let plugins = dir.join("plugins");
    fs::create_dir_all(&plugins).context("create", &plugins)?;
    let partial = plugins.join(format!(".{name}.partial"));
    fs::copy(plugin, &partial).context("copy", plugin)?;
    fs::rename(&partial, plugins.join(name)).context("rename", &partial)
}
