//! Bugs of ours: a panic anywhere ends the session with a message, puts signals and monitoring back, and the server lives.
//!
//! The plugin is a build that panics where a file says so (`src/sys/fault.rs`).

use std::path::{Path, PathBuf};

use harness::Server;
use tempfile::TempDir;

use super::{ANSWER, RUNNING, SAVED, assert_sound, beside, lab, start};

/// Said of a bug of ours.
const INTERNAL: &str = "an internal error of the profiler; the server is not affected";

/// Where panics are asked for, what makes the place be passed, and whether the profile survives.
const PLACES: [(&str, Option<&str>, bool); 8] = [
    ("tick", None, true),
    ("command", Some("spark tps"), true),
    ("sampler", None, true),
    ("watchdog", None, true),
    ("journal", None, true),
    // Code that was never seen.
    ("callback", Some("!python (lambda: 1)()"), true),
    ("aggregator", None, false),
    ("worker", None, false),
];

/// What the plugin is asked to do wrong.
pub(super) struct Faults(TempDir);

impl Faults {
    pub(super) fn new() -> Self {
        Faults(tempfile::tempdir().unwrap())
    }

    /// The folder that the plugin looks into.
    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Asks for a panic.
    fn ask_for(&self, place: &str) {
        std::fs::write(self.path().join(place), "").unwrap();
    }

    /// Asks that who comes to the place stays there.
    pub(super) fn hold(&self, place: &str) {
        std::fs::write(self.stay(place), "").unwrap();
    }

    pub(super) fn release(&self, place: &str) {
        std::fs::remove_file(self.stay(place)).unwrap();
    }

    fn stay(&self, place: &str) -> PathBuf {
        self.path().join(format!("{place}.hold"))
    }
}

fn left(server: &mut Server) -> [String; 2] {
    ["!sigprof", "!tools"].map(|probe| server.ask(probe, probe).unwrap())
}

/// A server whose plugin does wrong what it is asked to.
pub(super) fn faulty(faults: &Faults) -> Server {
    let lab = lab();
    let python = lab.default_python().unwrap();
    lab.server(&python)
        .samples()
        .unwrap()
        .profiler_file(lab.faulty_plugin().unwrap())
        .env("SPARK_FAULTS", faults.path())
        .start_ready()
        .unwrap()
}

fn was_on_purpose(server: &Server, mark: harness::Mark, place: &str) {
    let said = server.output_since(mark);
    let asked_for = format!("on purpose, at '{place}'");
    assert!(said.iter().any(|line| line.contains(&asked_for)), "{place}: {said:#?}");
}

#[test]
fn a_panic_while_attaching_to_python_leaves_a_native_session_that_says_so() {
    let _beside = beside();
    let faults = Faults::new();
    let mut server = faulty(&faults);
    let before = left(&mut server);
    let mark = server.mark();
    faults.ask_for("attach");
    let answer = server.ask("spark profiler start", RUNNING).unwrap();
    // On a busy machine the session begins before the thread has got that far.
    if answer.contains("as soon as") {
        server
            .wait_for_since(mark, "Python functions are no longer recorded in full", ANSWER)
            .unwrap();
    }
    server
        .wait_for_since(mark, "an internal error of the profiler while it attached", ANSWER)
        .unwrap();
    server.ask("!ticks 20", "!ticks done").unwrap();
    server.ask("spark profiler stop --save-to-file", SAVED).unwrap();
    assert_sound(&server.last_profile().unwrap());
    was_on_purpose(&server, mark, "attach");
    assert_eq!(left(&mut server), before);
    // The next session is as ever.
    let answer = server.ask("spark profiler start", RUNNING).unwrap();
    assert!(answer.contains("with Python functions"), "{answer}");
    server.ask("spark profiler cancel", "nothing was saved").unwrap();
    assert_eq!(left(&mut server), before);
    server.stop_cleanly().unwrap();
}

#[test]
fn a_panic_while_a_profile_is_made_or_sent_or_a_report_is_made_costs_at_most_that() {
    let _beside = beside();
    let faults = Faults::new();
    let mut server = faulty(&faults);
    let before = left(&mut server);

    let mark = server.mark();
    start(&mut server, "--save-to-file");
    server.ask("!ticks 20", "!ticks done").unwrap();
    faults.ask_for("export");
    server.ask("spark profiler stop", INTERNAL).unwrap();
    was_on_purpose(&server, mark, "export");
    assert_eq!(
        harness::journal_files(server.dir()).unwrap().len(),
        1,
        "for the next start"
    );
    assert_eq!(left(&mut server), before);

    let mark = server.mark();
    start(&mut server, "");
    server.ask("!ticks 20", "!ticks done").unwrap();
    faults.ask_for("upload");
    server
        .ask("spark profiler stop", "The profile was not uploaded")
        .unwrap();
    server.wait_for_since(mark, SAVED, ANSWER).unwrap();
    was_on_purpose(&server, mark, "upload");
    assert_sound(&server.last_profile().unwrap());

    let mark = server.mark();
    faults.ask_for("health");
    server
        .ask("spark health --upload", "There is no health report: an internal error")
        .unwrap();
    was_on_purpose(&server, mark, "health");
    // That it is tried is what counts.
    server
        .ask("spark health --upload", "The health report was not uploaded")
        .unwrap();
    server.stop_cleanly().unwrap();
}

#[test]
fn a_panic_of_the_statistics_is_told_once_and_what_they_read_is_unknown() {
    let _beside = beside();
    let faults = Faults::new();
    let mut server = faulty(&faults);
    let mark = server.mark();
    faults.ask_for("statistics");
    const TOLD: &str = "Processor, memory, disk and network are no longer measured: an internal error";
    server.wait_for_since(mark, TOLD, ANSWER).unwrap();
    was_on_purpose(&server, mark, "statistics");
    server.ask("spark tps", "TPS").unwrap();
    server.ask("!ticks 40", "!ticks done").unwrap();
    let told = server
        .output_since(mark)
        .iter()
        .filter(|line| line.contains(TOLD))
        .count();
    assert_eq!(told, 1);
    // A session needs none of it.
    start(&mut server, "");
    server.ask("!ticks 20", "!ticks done").unwrap();
    server.ask("spark profiler stop --save-to-file", SAVED).unwrap();
    assert_sound(&server.last_profile().unwrap());
    server.stop_cleanly().unwrap();
}

#[test]
fn a_panic_while_recovering_is_told_and_the_next_start_recovers() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let faults = Faults::new();
    let dir = super::recovery::folder(&lab);
    let begin = || {
        super::recovery::builder(&lab, &python, dir.path())
            .profiler_file(lab.faulty_plugin().unwrap())
            .env("SPARK_FAULTS", faults.path())
            .start_ready()
            .unwrap()
    };
    let mut server = begin();
    start(&mut server, "");
    server.ask("!ticks 40", "!ticks done").unwrap();
    // Kills it.
    drop(server);
    faults.ask_for("recovery");
    let mut server = begin();
    server
        .wait_for_since(
            harness::Mark::start(),
            "could not be recovered: an internal error; it is tried again at the next start",
            ANSWER,
        )
        .unwrap();
    start(&mut server, "");
    server.ask("spark profiler cancel", "nothing was saved").unwrap();
    server.stop_cleanly().unwrap();
    let mut server = begin();
    assert_sound(&super::recovery::recovered(&mut server));
    server.stop_cleanly().unwrap();
}

#[test]
fn a_panic_anywhere_ends_the_session_puts_all_back_and_the_server_lives() {
    let _beside = beside();
    let faults = Faults::new();
    let mut server = faulty(&faults);
    let before = left(&mut server);
    for (place, trigger, is_saved) in PLACES {
        let mark = server.mark();
        start(&mut server, "--save-to-file");
        server.ask("!ticks 20", "!ticks done").unwrap();
        faults.ask_for(place);
        if let Some(trigger) = trigger {
            server.command(trigger).unwrap();
        }
        let told = server.wait_for_since(mark, INTERNAL, ANSWER);
        told.unwrap_or_else(|error| panic!("{place}: {error}"));
        if is_saved {
            server.wait_for_since(mark, SAVED, ANSWER).unwrap();
            assert_sound(&server.last_profile().unwrap());
        }
        // Whoever ends last of it, it ends.
        let deadline = std::time::Instant::now() + ANSWER;
        loop {
            server.ask("!ticks 2", "!ticks done").unwrap();
            let now = left(&mut server);
            let threads = server.ask("!threads", "!threads").unwrap();
            if now == before && !threads.replace("spark-stats", "").contains("spark") {
                break;
            }
            assert!(
                std::time::Instant::now() < deadline,
                "{place}: {now:?} and not {before:?}; {threads}"
            );
        }
        let said = server.output_since(mark);
        assert!(
            said.iter().any(|line| line.contains("on purpose")),
            "{place}: {said:#?}"
        );
    }
    // Nothing of it stays.
    let mark = server.mark();
    let answer = server.ask("spark profiler start", RUNNING).unwrap();
    assert!(answer.contains("with Python functions"), "{answer}");
    server.ask("!ticks 20", "!ticks done").unwrap();
    server.ask("spark profiler stop --save-to-file", SAVED).unwrap();
    assert!(server.output_since(mark).iter().all(|line| !line.contains(INTERNAL)));
    let profile = server.last_profile().unwrap();
    assert_sound(&profile);
    let dir = server.dir().to_owned();
    // What was lost is in the journals, for the next start.
    assert_eq!(
        harness::journal_files(&dir).unwrap().len(),
        PLACES.iter().filter(|place| !place.2).count()
    );
    server.stop_cleanly().unwrap();
}
