//! A module that Cython compiled with profiling on: its functions tell `sys.monitoring` of themselves like Python's, for code objects that no eval frame runs.
//! They stay the native functions that they are, and no Python function is lost or misplaced by them.
//!
//! The module is compiled here, by the Cython of PyPI, for each CPython that has its headers at hand and to which Cython sends such events (3.13 and later).

#[path = "python/interpreter.rs"]
mod interpreter;
#[path = "python/pythons.rs"]
mod pythons;
#[path = "python/session.rs"]
mod session;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use endstone_spark::model::{CodeId, PythonState};
use endstone_spark::native::{self, SamplerOptions, ThreadSelection};
use endstone_spark::profile::{FrameKey, Merger};
use endstone_spark::python::Attribution;
use endstone_spark::shadow::{ReadBuffer, ShadowRead, ShadowTable};
use endstone_spark::sys::thread::current_tid;
use harness::{Lab, PythonVersion};
use interpreter::Object;
use session::{ask_for_audit, detach, python, run, session, unwind_here};

/// The release that has wheels for all versions that are followed.
const CYTHON: &str = "cython==3.2.0";

/// What the interpreter runs, and what the shadow stack says: each code, and whether a native frame is where it says.
type Check = (Vec<String>, Vec<(CodeId, bool)>);
static CHECKS: Mutex<Vec<Check>> = Mutex::new(Vec::new());
static GOES_ON: AtomicBool = AtomicBool::new(true);

unsafe extern "C" fn check(_module: Object, _nothing: Object) -> Object {
    let mut buffer = ReadBuffer::new();
    let read = ShadowTable::global().read(current_tid(), &mut buffer);
    if let ShadowRead::Frames { count, .. } = read {
        let mut frames = Vec::new();
        unwind_here(&mut frames);
        let placed = |anchor: u64| frames.iter().any(|frame| frame.1 == anchor);
        let entries = buffer.entries(count).iter();
        let entries = entries.map(|entry| (entry.code, placed(entry.anchor))).collect();
        CHECKS.lock().unwrap().push((python().true_stack(), entries));
    }
    ask_for_audit();
    python().int(0)
}

unsafe extern "C" fn goes_on(_module: Object, _nothing: Object) -> Object {
    python().int(GOES_ON.load(Ordering::Relaxed).into())
}

/// Names, and whether Cython compiled what has them.
fn names(attribution: &Attribution) -> HashMap<CodeId, (String, bool)> {
    let codes = attribution.codes().into_iter();
    codes
        .map(|(id, info)| (id, (info.qualified_name, info.file.ends_with(".pyx"))))
        .collect()
}

/// The shadow stack has what runs, each at its place, and what Cython compiled has no place.
fn every_python_function_stays_where_it_is() {
    let attribution = session();
    run("every_way()\nevery_way()\nin_threads(every_way)");
    let names = names(&attribution);
    let checks = std::mem::take(&mut *CHECKS.lock().unwrap());
    for (truth, shadow) in &checks {
        let shown: Vec<_> = shadow.iter().map(|(code, placed)| (&names[code], *placed)).collect();
        let python = shown.iter().filter(|((_, compiled), _)| !compiled);
        assert!(
            python.clone().map(|((name, _), _)| name).eq(truth) && python.clone().all(|(_, placed)| *placed),
            "truth {truth:?}\nshadow {shown:?}"
        );
        let misplaced = shown.iter().any(|((_, compiled), placed)| *compiled && *placed);
        assert!(!misplaced, "a compiled function stands for a native frame: {shown:?}");
    }
    assert!(checks.len() > 60, "{}", checks.len());
    let figures = attribution.diagnostics();
    println!("{figures:?}");
    assert_eq!(figures.state, PythonState::Active);
    let audits = figures.audits;
    assert!(audits.made > 10, "{audits:?}");
    assert_eq!(
        (audits.disagreed, audits.missing_frames, figures.stale_dropped),
        (0, 0, 0),
        "{figures:?}"
    );
    assert!(figures.callback_failures >= 20, "they are counted: {figures:?}");
    detach(attribution);
}

/// Samples the calling thread until each of the two loops was met this often.
fn a_compiled_function_is_shown_as_the_native_one_it_is() {
    const ENOUGH: u32 = 50;
    let attribution = session();
    let options = SamplerOptions {
        interval_nanos: 500_000,
        threads: ThreadSelection::Tids(vec![current_tid()]),
        ignore_sleeping: false,
    };
    let (mut sampler, mut source) = native::start(options, ShadowTable::global()).unwrap();
    let (compiled, interpreted) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut compiled, mut interpreted) = (0, 0);
            let mut merger = Merger::new();
            let begun = std::time::Instant::now();
            while (compiled < ENOUGH || interpreted < ENOUGH) && begun.elapsed() < Duration::from_secs(60) {
                let module = source
                    .modules()
                    .iter()
                    .find(|module| is_compiled(&module.path))
                    .map(|module| module.id);
                source.drain(Duration::from_millis(20), &mut |sample| {
                    let merged = merger.merge(sample);
                    let names = names(&attribution);
                    let shown: Vec<&str> = merged
                        .path
                        .iter()
                        .filter_map(|frame| match frame {
                            FrameKey::Python(code) => Some(names[code].0.as_str()),
                            _ => None,
                        })
                        .collect();
                    let right = ["<module>", "spins", "spins_itself"];
                    assert!(right.starts_with(&shown), "{shown:?}");
                    let leaf = merged.path.last();
                    let in_module = matches!(leaf, Some(FrameKey::Native { module: of, .. }) if Some(*of) == module);
                    compiled += u32::from(in_module && shown == right[..2]);
                    interpreted += u32::from(shown == right);
                });
            }
            GOES_ON.store(false, Ordering::Relaxed);
            (compiled, interpreted)
        });
        run("spins()");
        reader.join().unwrap()
    });
    sampler.stop();
    println!("{compiled} samples in compiled code, {interpreted} in Python's");
    assert!(
        compiled >= ENOUGH && interpreted >= ENOUGH,
        "{compiled} and {interpreted}"
    );
    detach(attribution);
}

fn is_compiled(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "profiled.so")
}

#[test]
fn child() {
    let Some(library) = pythons::library_of_child() else {
        return;
    };
    let python = session::start(&library);
    python.add_function(c"check", check);
    python.add_function(c"goes_on", goes_on);
    run(include_str!("programs/cython.py"));
    run("print(events_of_cython(), 'starts of compiled functions')\nassert events_of_cython() >= 10");
    every_python_function_stays_where_it_is();
    a_compiled_function_is_shown_as_the_native_one_it_is();
    println!("child is done");
}

/// Compiles the module for this CPython into `folder`; `false` where its headers are not at hand.
fn compile(lab: &Lab, minor: &str, executable: &Path, folder: &Path) -> bool {
    let asked = Command::new(executable)
        .args(["-c", "import sysconfig; print(sysconfig.get_path('include'))"])
        .output();
    let Ok(asked) = asked else { return false };
    let headers = PathBuf::from(String::from_utf8_lossy(&asked.stdout).trim());
    if !headers.join("Python.h").exists() {
        return false;
    }
    let version: PythonVersion = minor.parse().unwrap();
    let source = folder.join("profiled.pyx");
    std::fs::write(&source, include_str!("programs/profiled.pyx")).unwrap();
    let mut cython = Command::new(executable);
    cython.args(["-m", "cython"]).arg(&source);
    cython.env("PYTHONPATH", lab.package(version, CYTHON).unwrap());
    assert!(cython.status().unwrap().success(), "Cython failed");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-I"]).arg(headers);
    cc.arg(folder.join("profiled.c"))
        .arg("-o")
        .arg(folder.join("profiled.so"));
    assert!(
        cc.status().is_ok_and(|status| status.success()),
        "the C compiler failed"
    );
    true
}

#[test]
fn compiled_functions_that_tell_of_themselves_misplace_nothing() {
    let lab = Lab::open().unwrap();
    let mut ran = 0;
    // Cython tells `sys.monitoring` by an interface that 3.13 brought.
    for minor in pythons::wanted().into_iter().filter(|minor| *minor != "3.12") {
        let Some(python) = pythons::find(minor) else {
            println!("CPython {minor} with a shared library not found: NOT RUN");
            continue;
        };
        let folder = tempfile::tempdir().unwrap();
        let executable = python.executable.as_ref().filter(|_| python.loader.is_none());
        if !executable.is_some_and(|executable| compile(&lab, minor, executable, folder.path())) {
            println!("CPython {minor} has no headers here: NOT RUN");
            continue;
        }
        pythons::run_child(&python, pythons::child_of(&python).env("PYTHONPATH", folder.path()));
        ran += 1;
    }
    if ran == 0 {
        println!("no CPython from 3.13 on with headers was found: NOT RUN");
    }
}
