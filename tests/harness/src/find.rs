//! Finds the CPythons of this machine.
//!
//! A name on `PATH` says little: it can be a pyenv shim of a version that is not selected, a wrapper, another implementation, or a build
//! without a shared library. So every candidate is run, and asked.

use crate::error::{Error, Result};
use crate::python::{Origin, Python};
use crate::version::PythonVersion;
use std::collections::HashSet;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Run in each candidate. Prints `key=value` lines, every value on one line.
const PROBE: &str = r"
import importlib.util, os, platform, sys, sysconfig
var = lambda name: sysconfig.get_config_var(name) or ''
def library():
    name = var('INSTSONAME')
    if not var('Py_ENABLE_SHARED') or not name: return ''
    for folder in (var('LIBDIR'), os.path.join(sys.base_prefix, 'lib'), os.path.join(var('LIBDIR'), var('MULTIARCH'))):
        path = os.path.join(folder, name)
        if folder and os.path.isfile(path): return os.path.realpath(path)
    return ''
def libc():
    try: return os.confstr('CS_GNU_LIBC_VERSION') or ''
    except (AttributeError, OSError, ValueError): return ''
facts = dict(version='.'.join(map(str, sys.version_info[:3])), implementation=sys.implementation.name, machine=platform.machine(),
             executable=sys.executable, home=sys.base_prefix, library=library(), libc=libc(),
             threads='free' if var('Py_GIL_DISABLED') else 'gil', pip=bool(importlib.util.find_spec('pip')))
for key, value in facts.items(): print(key + '=' + str(value))
";

/// Names to look for in each folder of `PATH`, after the versioned ones.
const PLAIN_NAMES: [&str; 2] = ["python3", "python"];

/// Folders where systems put Pythons, on `PATH` or not.
const SYSTEM_FOLDERS: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// A Python of this machine, as it answered.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// How it was found.
    pub origin: Origin,
    /// What was run.
    pub executable: PathBuf,
    /// Its full version; empty if it did not run.
    pub full_version: String,
    /// The Python, or why it is of no use.
    pub python: std::result::Result<Python, String>,
}

/// Every Python of this machine, each once, in the order of preference: `SPARK_PYTHON`, `PATH`, pyenv, system. Asked once per process.
pub(crate) fn candidates() -> &'static [Candidate] {
    static CANDIDATES: OnceLock<Vec<Candidate>> = OnceLock::new();
    CANDIDATES.get_or_init(search)
}

fn search() -> Vec<Candidate> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for (origin, executable) in places() {
        // Debian's /usr/bin/python3.11 and /bin/python3.11 are one file.
        let real = fs::canonicalize(&executable).unwrap_or_else(|_| executable.clone());
        if is_shim(&real) || seen.insert(real) {
            match probe(&executable, origin) {
                Some(candidate) => {
                    let same = |other: &Candidate| same_python(other, &candidate);
                    if !found.iter().any(same) {
                        found.push(candidate);
                    }
                }
                None if origin == Origin::Given => found.push(Candidate {
                    origin,
                    executable,
                    full_version: String::new(),
                    python: Err("it does not run as a Python".to_owned()),
                }),
                None => {}
            }
        }
    }
    found
}

/// The Python that `SPARK_PYTHON` names, if it is set.
///
/// # Errors
/// If what it names is of no use: the owner asked for exactly this one.
pub fn given(candidates: &[Candidate]) -> Result<Option<Python>> {
    let Some(candidate) = candidates.iter().find(|candidate| candidate.origin == Origin::Given) else {
        return Ok(None);
    };
    match &candidate.python {
        Ok(python) => Ok(Some(python.clone())),
        Err(reason) => Err(Error::Missing(format!(
            "SPARK_PYTHON={}: {reason}",
            candidate.executable.display()
        ))),
    }
}

/// The preferred usable Python of a version.
///
/// # Errors
/// As [`given`].
pub fn usable(candidates: &[Candidate], version: PythonVersion) -> Result<Option<Python>> {
    given(candidates)?;
    Ok(candidates
        .iter()
        .filter_map(|c| c.python.as_ref().ok())
        .find(|p| p.version == version)
        .cloned())
}

/// A shim has many names and one file, and answers by its name.
fn is_shim(real: &Path) -> bool {
    real.parent().is_some_and(|dir| dir.ends_with("shims"))
}

fn same_python(one: &Candidate, other: &Candidate) -> bool {
    match (&one.python, &other.python) {
        (Ok(one), Ok(other)) => one.library == other.library && one.home == other.home,
        _ => one.executable == other.executable,
    }
}

/// Files that may be Pythons, by preference.
fn places() -> Vec<(Origin, PathBuf)> {
    let mut places = Vec::new();
    if let Some(given) = env::var_os("SPARK_PYTHON").filter(|path| !path.is_empty()) {
        places.push((Origin::Given, PathBuf::from(given)));
    }
    let names: Vec<String> = PythonVersion::ALL
        .iter()
        .rev()
        .map(|version| format!("python{version}"))
        .chain(PLAIN_NAMES.iter().map(|name| (*name).to_owned()))
        .collect();
    let path = env::var_os("PATH").unwrap_or_default();
    let in_folders = |origin: Origin, folders: Vec<PathBuf>| {
        let mut found = Vec::new();
        for folder in folders {
            found.extend(
                names
                    .iter()
                    .map(|name| folder.join(name))
                    .filter(|file| file.is_file())
                    .map(|f| (origin, f)),
            );
        }
        found
    };
    places.extend(in_folders(
        Origin::Path,
        env::split_paths(&path).filter(|folder| folder.is_absolute()).collect(),
    ));
    places.extend(in_folders(Origin::Pyenv, pyenv_folders()));
    places.extend(in_folders(
        Origin::System,
        SYSTEM_FOLDERS.iter().map(PathBuf::from).collect(),
    ));
    places
}

/// `bin` of every version that pyenv has, newest name first.
fn pyenv_folders() -> Vec<PathBuf> {
    let root = env::var_os("PYENV_ROOT")
        .map(PathBuf::from)
        .or_else(|| env::home_dir().map(|home| home.join(".pyenv")));
    let versions = root
        .map(|root| root.join("versions"))
        .and_then(|dir| fs::read_dir(dir).ok());
    let mut folders: Vec<PathBuf> = versions
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    folders.sort();
    folders.reverse();
    folders
}

/// Runs a candidate; none if it does not run as a Python at all.
fn probe(executable: &Path, origin: Origin) -> Option<Candidate> {
    let output = Command::new(executable)
        .args(["-I", "-c", PROBE])
        .env_remove("PYTHONHOME")
        .env_remove("PYTHONPATH")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout)
        .ok()
        .filter(|_| output.status.success())?;
    let fact = |key: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
            .unwrap_or_default()
    };
    if fact("version").is_empty() {
        return None;
    }
    Some(Candidate {
        origin,
        executable: executable.to_owned(),
        full_version: fact("version").to_owned(),
        python: judge(&fact, origin),
    })
}

/// Whether a server can run on a Python that states these facts.
fn judge<'a>(fact: &impl Fn(&str) -> &'a str, origin: Origin) -> std::result::Result<Python, String> {
    let full_version = fact("version").to_owned();
    let version: PythonVersion = full_version.parse().map_err(|error| format!("{error}"))?;
    if !version.is_supported() {
        let [oldest, .., newest] = PythonVersion::ALL;
        return Err(format!("Endstone runs on {oldest} to {newest}"));
    }
    match fact("implementation") {
        "cpython" => {}
        other => return Err(format!("it is {other}, not CPython")),
    }
    if fact("machine") != "x86_64" {
        return Err(format!("it runs on {}, the server on x86_64", fact("machine")));
    }
    if !fact("libc").starts_with("glibc") {
        return Err("it does not use the GNU C library".to_owned());
    }
    if fact("threads") == "free" {
        return Err("it is a free-threaded build; Endstone has no wheel for it".to_owned());
    }
    if fact("library").is_empty() {
        return Err("it has no shared libpython".to_owned());
    }
    let path = |key: &str| PathBuf::from(OsStr::new(fact(key)));
    Ok(Python {
        version,
        full_version,
        executable: path("executable"),
        home: path("home"),
        library: path("library"),
        has_pip: fact("pip") == "True",
        origin,
        own_libc: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: [(&str, &str); 9] = [
        ("version", "3.13.0"),
        ("implementation", "cpython"),
        ("machine", "x86_64"),
        ("executable", "/opt/python/bin/python3.13"),
        ("home", "/opt/python"),
        ("library", "/opt/python/lib/libpython3.13.so.1.0"),
        ("libc", "glibc 2.36"),
        ("threads", "gil"),
        ("pip", "True"),
    ];

    fn judge_with(key: &str, value: &'static str) -> std::result::Result<Python, String> {
        let fact = |asked: &str| {
            if asked == key {
                value
            } else {
                GOOD.iter().find(|(k, _)| *k == asked).map_or("", |(_, v)| *v)
            }
        };
        judge(&fact, Origin::Path)
    }

    #[test]
    fn takes_a_shared_cpython() {
        let python = judge_with("pip", "False").unwrap();
        assert_eq!(python.version, PythonVersion::V3_13);
        assert_eq!(python.home, Path::new("/opt/python"));
        assert!(!python.has_pip);
    }

    #[test]
    fn says_why_a_python_is_of_no_use() {
        for (key, value, reason) in [
            ("version", "3.10.13", "3.11 to 3.15"),
            ("version", "3.16.0", "3.11 to 3.15"),
            ("implementation", "pypy", "not CPython"),
            ("machine", "aarch64", "x86_64"),
            ("libc", "", "GNU C library"),
            ("threads", "free", "free-threaded"),
            ("library", "", "no shared libpython"),
        ] {
            let said = judge_with(key, value).unwrap_err();
            assert!(said.contains(reason), "{key}={value}: {said}");
        }
    }

    #[test]
    fn a_program_that_is_no_python_is_not_a_candidate() {
        assert!(probe(Path::new("/bin/echo"), Origin::Path).is_none());
        assert!(probe(Path::new("/nowhere/python3"), Origin::Path).is_none());
    }
}
