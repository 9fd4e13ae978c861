//! Which interpreters are followed, and what is said of the others: each is a library that says it is one, in a process of its own.

use std::ffi::CString;
use std::path::Path;
use std::process::Command;

use endstone_spark::python::{Runtime, Unsupported};

const CHILD: &str = "SPARK_TEST_FALSE_PYTHON";

fn compile(folder: &Path, version: &str) -> std::path::PathBuf {
    let library = folder.join("libfalse.so");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let status = Command::new(compiler)
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(format!("-DVERSION=\"{version}\""))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/no_python.c"))
        .status()
        .unwrap();
    assert!(status.success());
    library
}

/// The child: runs only when the parent asked for it.
#[test]
fn child() {
    let Some(library) = std::env::var_os(CHILD) else {
        return;
    };
    assert_eq!(Runtime::discover().unwrap_err(), Unsupported::NoPython);
    let name = CString::new(library.into_encoded_bytes()).unwrap();
    // SAFETY: loading the library runs no code of its own.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    assert!(!handle.is_null());
    println!("answer: {:?}", Runtime::discover().map(|runtime| runtime.version()));
    println!("said: {}", Runtime::discover().unwrap_err());
}

fn answers(version: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture"])
        .env(CHILD, compile(folder.path(), version))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

#[test]
fn old_strange_and_incomplete_interpreters_are_refused_with_a_reason() {
    let old = answers("3.11.9 (main, Apr  2 2024)");
    assert!(old.contains("TooOld(\"3.11.9\")"), "{old}");
    assert!(
        old.contains("said: Python attribution needs CPython 3.12 or newer"),
        "{old}"
    );
    let old = answers("2.7.18");
    assert!(old.contains("TooOld(\"2.7.18\")"), "{old}");
    let strange = answers("PyPy without a number");
    assert!(strange.contains("Version("), "{strange}");
    for version in ["3.12.0", "3.15.0b1+ (heads/main)", "4.0.0"] {
        let incomplete = answers(version);
        assert!(incomplete.contains("Missing {"), "{incomplete}");
        assert!(
            incomplete.contains("Py_IsInitialized"),
            "it says what is missing: {incomplete}"
        );
    }
}
