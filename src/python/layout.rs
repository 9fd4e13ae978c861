//! Where this interpreter's code lies on disk, found out once per session.

use serde::Deserialize;

use super::objects::{PythonError, Refs};

/// Answers of `gather.py`. Paths are absolute, as they are and with links followed.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Layout {
    /// Roots of the standard library.
    pub(super) stdlib: Vec<String>,
    /// Names of its modules.
    pub(super) stdlib_modules: Vec<String>,
    /// Folders of installed distributions.
    pub(super) site: Vec<String>,
    /// Endstone's own package.
    pub(super) endstone: Vec<String>,
    /// Whether `threading.Thread._bootstrap_inner` calls `run` through a context, and so through C: an eval frame begins there (3.14).
    pub(super) threads_run_in_a_context: bool,
    /// What the entry points of the group `endstone` name.
    pub(super) plugins: Vec<PluginFiles>,
}

/// One plugin.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
pub(super) struct PluginFiles {
    /// Its name as Endstone knows it: the entry point's, with `_` for `-` (`PythonPluginLoader._load_plugin_from_ep`).
    pub(super) name: String,
    /// Its packages and modules on disk.
    pub(super) paths: Vec<String>,
    /// Their names.
    pub(super) modules: Vec<String>,
}

impl Layout {
    /// Asks the interpreter. Needs its lock.
    pub(super) fn gather(refs: &mut Refs) -> Result<Layout, PythonError> {
        let script = refs.run(include_str!("gather.py"), c"<spark>")?;
        let gather = refs.global(script, c"gather")?;
        let answer = refs.call(gather, &[], "asking where code lies")?;
        let answer = refs.read_text(answer).unwrap_or_default();
        serde_json::from_str(&answer).map_err(|error| PythonError {
            what: "reading where code lies",
            message: error.to_string(),
        })
    }
}
