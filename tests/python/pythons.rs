//! CPythons on this machine that a test can embed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// One CPython with a shared library.
#[derive(Clone, Debug)]
pub struct Python {
    #[allow(dead_code)] // Each program that uses this file uses its own part.
    pub version: String,
    pub library: PathBuf,
    /// The program.
    pub executable: Option<PathBuf>,
    pub home: PathBuf,
    /// For a Python that brings its own C library: the loader and the folder to run programs with.
    pub loader: Option<(PathBuf, PathBuf)>,
}

impl Python {
    /// A command that runs this very test binary with the Python's own C library, if it brings one.
    pub fn this_program(&self) -> Command {
        let program = std::env::current_exe().unwrap();
        let mut command = match &self.loader {
            Some((loader, libraries)) => {
                let mut command = Command::new(loader);
                command.arg("--library-path").arg(libraries).arg(program);
                command
            }
            None => Command::new(program),
        };
        command
            .env("PYTHONHOME", &self.home)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

const ASK: &str = "import sys,sysconfig as s;\
    print(sys.version.split()[0]);print(s.get_config_var('LIBDIR'));print(s.get_config_var('INSTSONAME'));print(sys.prefix)";

/// Asks an executable; `None` when it does not run, is another version or has no shared library.
fn ask(executable: &Path, minor: &str) -> Option<Python> {
    let output = Command::new(executable).arg("-c").arg(ASK).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let [version, folder, library, home] = text.lines().collect::<Vec<_>>().try_into().ok()?;
    let library = Path::new(folder).join(library);
    (output.status.success() && version.starts_with(&format!("{minor}.")) && library.exists()).then(|| Python {
        version: version.to_owned(),
        library,
        executable: Some(executable.to_owned()),
        home: PathBuf::from(home),
        loader: None,
    })
}

/// A tree of unpacked Debian packages, C library included.
fn unpacked(tree: &Path, minor: &str) -> Option<Python> {
    let libraries = tree.join("usr/lib/x86_64-linux-gnu");
    let loader = libraries.join("ld-linux-x86-64.so.2");
    let library = libraries.join(format!("libpython{minor}.so.1.0"));
    let executable = tree.join(format!("usr/bin/python{minor}"));
    (loader.exists() && library.exists()).then(|| Python {
        version: minor.to_owned(),
        library,
        executable: executable.exists().then_some(executable),
        home: tree.join("usr"),
        loader: Some((loader, libraries)),
    })
}

/// The CPython of version `minor` (like `3.13`): on the path, with pyenv, or unpacked in one of the folders of `SPARK_TEST_PYTHONS` or in
/// `target/pythons`.
pub fn find(minor: &str) -> Option<Python> {
    let name = format!("python{minor}");
    let mut folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    let pyenv = std::env::var_os("PYENV_ROOT")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pyenv")));
    if let Some(versions) = pyenv.and_then(|root| std::fs::read_dir(root.join("versions")).ok()) {
        folders.extend(versions.flatten().map(|version| version.path().join("bin")));
    }
    let trees = std::env::split_paths(&std::env::var_os("SPARK_TEST_PYTHONS").unwrap_or_default())
        .collect::<Vec<_>>()
        .into_iter()
        .chain([Path::new(env!("CARGO_MANIFEST_DIR")).join("target/pythons")]);
    folders
        .iter()
        .map(|folder| folder.join(&name))
        .filter(|executable| executable.exists())
        .find_map(|executable| ask(&executable, minor))
        .or_else(|| trees.into_iter().find_map(|tree| unpacked(&tree.join(minor), minor)))
}

const CHILD: &str = "SPARK_TEST_LIBPYTHON";

/// In a child of [`in_children`]: the library to embed.
#[allow(dead_code)]
pub fn library_of_child() -> Option<PathBuf> {
    std::env::var_os(CHILD).map(PathBuf::from)
}

/// A command that runs the test `child` of this binary in a process of its own, with this CPython.
#[allow(dead_code)]
pub fn child_of(python: &Python) -> Command {
    let mut command = python.this_program();
    command
        .args(["child", "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, &python.library);
    if let Some(executable) = &python.executable {
        command.env("SPARK_TEST_EXECUTABLE", executable);
    }
    command
}

/// Runs a command of [`child_of`], which must end well.
#[allow(dead_code)]
pub fn run_child(python: &Python, command: &mut Command) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!(
        "--- {}\n{text}\n{}",
        python.version,
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        output.status.success() && text.contains("child is done"),
        "CPython {} failed: {}",
        python.version,
        output.status
    );
}

/// The versions to test: all that have `sys.monitoring`, or the one that `SPARK_TEST_PYTHON` names.
pub fn wanted() -> Vec<&'static str> {
    let one = std::env::var("SPARK_TEST_PYTHON").ok();
    let all = ["3.12", "3.13", "3.14", "3.15"].into_iter();
    all.filter(|minor| one.as_deref().is_none_or(|one| one == *minor))
        .collect()
}

/// Runs the test `child` of this binary in a process of its own for every CPython of [`wanted`] that is there, at least one, as many at once as the
/// machine has processors. A child ends by printing "child is done".
#[allow(dead_code)]
pub fn in_children() {
    in_children_with(&|_, _| {});
}

/// The same, after something was done with the version and the command that runs the child.
#[allow(dead_code)]
pub fn in_children_with(prepare: &dyn Fn(&str, &mut Command)) {
    let mut children = Vec::new();
    for minor in wanted() {
        let Some(python) = find(minor) else {
            println!("CPython {minor} with a shared library not found: NOT RUN");
            continue;
        };
        let mut command = child_of(&python);
        prepare(minor, &mut command);
        children.push((python, command));
    }
    assert!(!children.is_empty(), "no CPython from 3.12 on was found");
    // Two tests of one binary run at once; their children do not.
    static ONE_TEST: Mutex<()> = Mutex::new(());
    let _one = ONE_TEST.lock().unwrap_or_else(PoisonError::into_inner);
    harness::at_once(children, |(python, mut command)| run_child(&python, &mut command));
}
