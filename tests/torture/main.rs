//! Everything at once, on the stand-in server: all threads sampled as densely as can be asked for, while threads, libraries and children come and go, C++ and Python throw, generators are dropped, other
//! tools watch the same code, another library has the signal for itself, plugins are reloaded, and commands are typed at random, with a server for uploads that is rarely well.
//!
//! The program that all this is (`tests/programs/torture.py`) says which calls it can have; no stack of any profile may show another. At the end nothing may be left behind.
//!
//! `./dev torture` runs it for longer. `SPARK_TORTURE_SECONDS` says how long, `SPARK_TEST_PYTHON` on which CPython, `SPARK_TORTURE_SEED` which commands.

#[path = "../bytebin/mod.rs"]
mod bytebin;
mod operator;
#[path = "../fuzz/random.rs"]
#[allow(dead_code)] // Others use all of it.
mod random;
mod remains;
mod report;
mod truth;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use bytebin::{Bytebin, Mode};
use harness::{Lab, PythonVersion, Server};
use operator::Operator;
use remains::{Remains, footprint};
use report::Report;
use tempfile::TempDir;
use truth::Truth;

/// Libraries that are loaded and unloaded: the same code at other places.
const CHURNED: usize = 4;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// The libraries of the program, compiled.
struct Libraries {
    folder: TempDir,
    /// Without a C++ compiler, what goes through C++ is left out.
    native: Option<PathBuf>,
}

impl Libraries {
    fn compile() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
        let library = folder.path().join("torture.so");
        let status = Command::new("c++")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(&library)
            .args(["torture.cpp", "through.cpp", "throws.cpp"].map(|name| programs.join(name)))
            .status();
        let native = status.is_ok_and(|status| status.success()).then_some(library);
        if native.is_none() {
            println!("there is no C++ compiler (c++): calls through C++, libraries and the foreign timer are NOT RUN");
        }
        for number in 0..CHURNED {
            let library = folder.path().join(format!("churned{number}.so"));
            harness::peers::compile(&programs.join("churned_library.c"), &library).unwrap();
        }
        Libraries { folder, native }
    }

    /// As a Python list.
    fn churned(&self) -> Vec<String> {
        let path = |number| {
            self.folder
                .path()
                .join(format!("churned{number}.so"))
                .display()
                .to_string()
        };
        (0..CHURNED).map(path).collect()
    }
}

/// The value of an expression in the server's interpreter.
fn python(server: &mut Server, expression: &str) -> String {
    let mark = server.command(&format!("!python {expression}")).unwrap();
    server.wait_for_since(mark, "!python", operator::PATIENCE).unwrap()
}

fn torture(version: Option<PythonVersion>, time: Duration, seed: u64) {
    let lab = Lab::open().unwrap();
    let python_of = version.unwrap_or_else(|| lab.default_python().unwrap().version);
    let Some(interpreter) = lab.python_at_hand(python_of).unwrap() else {
        println!("NOT RUN on Python {python_of}: not found");
        return;
    };
    println!("Python {}, {} s, seed {seed}", interpreter.full_version, time.as_secs());
    let libraries = Libraries::compile();
    let bytebin = Bytebin::start(Mode::Flaky);
    let settings = format!("bytebinUrl = \"{}\"\nbackgroundProfiler = false\n", bytebin.url);
    let mut server = lab
        .server(&interpreter)
        .samples()
        .unwrap()
        .plugin(lab.native_plugin().unwrap())
        .file("plugins/spark/config.toml", settings)
        .file("torture.py", include_str!("../programs/torture.py"))
        .start_ready()
        .unwrap();
    python(&mut server, "__import__('sys').path.insert(0, '')");
    let native = libraries
        .native
        .as_ref()
        .map_or(String::new(), |path| path.display().to_string());
    let prepared = python(
        &mut server,
        &format!("__import__('torture').prepare({native:?}, {:?})", libraries.churned()),
    );
    assert!(prepared.contains("prepared"), "{prepared}");
    let truth: Truth = serde_json::from_slice(&fs::read(server.dir().join("truth.json")).unwrap()).unwrap();
    let mut report = Report::new(seed);
    let mut operator = Operator::new(seed, &truth, &bytebin);
    // The first session loads and fills what stays.
    operator.session(&mut server, &mut report);
    operator.settle(&mut server, &mut report);
    let before = Remains::of(&mut server);

    let begun = python(&mut server, "__import__('torture').begin()");
    assert!(begun.contains("begun"), "{begun}");
    let end = Instant::now() + time;
    while Instant::now() < end {
        operator.session(&mut server, &mut report);
        report.resident_kib.push(footprint(&mut server).resident_kib);
    }
    operator.settle(&mut server, &mut report);
    let undone = python(&mut server, "__import__('torture').stop()");
    server.ask("!ticks 3", "!ticks done").unwrap();
    let after = Remains::of(&mut server);
    server.stop_cleanly().unwrap();
    report.judge_remains(&before, &after);
    report.judge_work(&undone);
    report.finish();
}

#[test]
fn everything_at_once_breaks_nothing() {
    let version = std::env::var("SPARK_TEST_PYTHON")
        .ok()
        .map(|text| text.parse().unwrap());
    let seconds = setting("SPARK_TORTURE_SECONDS").unwrap_or(30);
    torture(
        version,
        Duration::from_secs(seconds),
        setting("SPARK_TORTURE_SEED").unwrap_or(24_301),
    );
}
