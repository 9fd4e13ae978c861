//! A server that is stopped while a session runs, on every CPython: with its Python as Endstone leaves it, and with one that was finalised before.
//!
//! `cargo test --release --test stand_in shutdown -- --nocapture --test-threads=1` also says how long each took from `stop` to the end of the process.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use harness::{Lab, Profile, Python, PythonVersion, Server, ServerBuilder};

use super::{ANSWER, NOBODY_LISTENS, SAVED, assert_sound, beside, lab, python, start};

/// Said of what there was no time for.
const UNNAMED: &str = "There was no time to look up the names";
const UNFINISHED: &str = "was not finished in time";

/// Said by the next start.
const RECOVERED: &str = "what it had sampled is saved";

/// Two servers in one folder, the second to look after what the first has left.
struct Case<'a> {
    lab: &'a Lab,
    python: Python,
    what: &'static str,
    folder: PathBuf,
}

impl<'a> Case<'a> {
    fn new(lab: &'a Lab, python: Python, what: &'static str) -> Self {
        let folder = lab
            .target()
            .join(format!("servers/{}-{}", what.replace(' ', "-"), python.version));
        if folder.exists() {
            std::fs::remove_dir_all(&folder).unwrap();
        }
        Case {
            lab,
            python,
            what,
            folder,
        }
    }

    fn builder(&self) -> ServerBuilder<'_> {
        self.lab.server(&self.python).folder(&self.folder).file(
            "plugins/spark/config.toml",
            format!("{NOBODY_LISTENS}backgroundProfiler = false\n"),
        )
    }

    /// The server ends with 0, and the session that ran is on disk with all it had.
    ///
    /// A machine that has no time leaves a part to the next start, which is then made sure of: in that case, none.
    fn ends_well(self, server: Server) -> Option<Profile> {
        let begun = Instant::now();
        let said = server.stop_cleanly().unwrap();
        let version = self.python.version;
        println!(
            "{version}, {}: {} ms from stop to the end",
            self.what,
            begun.elapsed().as_millis()
        );
        let has = |text: &str| said.iter().any(|line| line.contains(text));
        let in_time = has(SAVED) && !has(UNNAMED);
        assert!(in_time || has(UNNAMED) || has(UNFINISHED), "{said:#?}");
        if !in_time {
            println!("{version}, {}: not everything in time", self.what);
            let server = self.builder().arg("--no-python").start_ready().unwrap();
            server
                .wait_for_since(harness::Mark::start(), RECOVERED, ANSWER)
                .unwrap();
            server.stop_cleanly().unwrap();
        }
        let files = harness::profile_files(&self.folder).unwrap();
        let profile = Profile::read(files.last().unwrap()).unwrap();
        assert_sound(&profile);
        assert!(profile.has("bedrock_server.Level::tick"));
        assert!(harness::journal_files(&self.folder).unwrap().is_empty());
        std::fs::remove_dir_all(self.folder).unwrap();
        in_time.then_some(profile)
    }
}

fn with_python_running(version: PythonVersion) {
    let _beside = beside();
    let lab = lab();
    let Some(python) = python(&lab, version) else { return };
    let case = Case::new(&lab, python, "Python running");
    let mut server = case.builder().samples().unwrap().start_ready().unwrap();
    let answer = start(&mut server, "");
    assert_eq!(
        answer.contains("with Python functions"),
        version.has_monitoring(),
        "{answer}"
    );
    server.run_for(Duration::from_secs(2)).unwrap();
    if let Some(profile) = case.ends_well(server) {
        assert_eq!(profile.has("[Python] endstone_market."), version.has_monitoring());
    }
}

fn with_python_finalised(version: PythonVersion) {
    let _beside = beside();
    let lab = lab();
    let Some(python) = python(&lab, version) else { return };
    let case = Case::new(&lab, python, "Python finalised first");
    let mut server = case.builder().arg("--own-python").start_ready().unwrap();
    let answer = start(&mut server, "");
    assert_eq!(
        answer.contains("with Python functions"),
        version.has_monitoring(),
        "{answer}"
    );
    // Python code on the server thread, seen by many samples.
    for _ in 0..3 {
        server
            .ask(
                "!python (lambda: sum(number * number for number in range(1_000_000)))()",
                "!python",
            )
            .unwrap();
    }
    server.ask("!finalise", "!finalise done, with 0").unwrap();
    // The server and the session go on without it.
    server.ask("!ticks 10", "!ticks done").unwrap();
    server.ask("spark profiler info", "Profiling for ").unwrap();
    let tools = server.ask("!tools", "!tools").unwrap();
    assert!(tools.contains("Python is not started"), "{tools}");
    if let Some(profile) = case.ends_well(server) {
        assert_eq!(profile.has("[Python] "), version.has_monitoring());
    }
}

#[test]
fn a_running_session_is_saved_and_the_server_ends_well_on_3_11() {
    with_python_running(PythonVersion::V3_11);
}

#[test]
fn a_running_session_is_saved_and_the_server_ends_well_on_3_12() {
    with_python_running(PythonVersion::V3_12);
}

#[test]
fn a_running_session_is_saved_and_the_server_ends_well_on_3_13() {
    with_python_running(PythonVersion::V3_13);
}

#[test]
fn a_running_session_is_saved_and_the_server_ends_well_on_3_14() {
    with_python_running(PythonVersion::V3_14);
}

#[test]
fn a_running_session_is_saved_and_the_server_ends_well_on_3_15() {
    with_python_running(PythonVersion::V3_15);
}

#[test]
fn with_python_finalised_first_the_session_is_saved_and_the_server_ends_well_on_3_11() {
    with_python_finalised(PythonVersion::V3_11);
}

#[test]
fn with_python_finalised_first_the_session_is_saved_and_the_server_ends_well_on_3_12() {
    with_python_finalised(PythonVersion::V3_12);
}

#[test]
fn with_python_finalised_first_the_session_is_saved_and_the_server_ends_well_on_3_13() {
    with_python_finalised(PythonVersion::V3_13);
}

#[test]
fn with_python_finalised_first_the_session_is_saved_and_the_server_ends_well_on_3_14() {
    with_python_finalised(PythonVersion::V3_14);
}

#[test]
fn with_python_finalised_first_the_session_is_saved_and_the_server_ends_well_on_3_15() {
    with_python_finalised(PythonVersion::V3_15);
}
