//! Bugs of ours: a panic anywhere ends the session with a message, puts signals and monitoring back, and the server lives.
//!
//! The plugin is a build that panics where a file says so (`src/sys/fault.rs`).

use std::path::Path;

use harness::Server;

use super::{ANSWER, RUNNING, SAVED, alone, assert_sound, lab, start};

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

fn ask_for(folder: &Path, place: &str) {
    std::fs::write(folder.join(place), "").unwrap();
}

fn left(server: &mut Server) -> [String; 2] {
    ["!sigprof", "!tools"].map(|probe| server.ask(probe, probe).unwrap())
}

#[test]
fn a_panic_anywhere_ends_the_session_puts_all_back_and_the_server_lives() {
    let _alone = alone();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let faults = tempfile::tempdir().unwrap();
    let mut server = lab
        .server(&python)
        .samples()
        .unwrap()
        .profiler_file(lab.faulty_plugin().unwrap())
        .env("SPARK_FAULTS", faults.path())
        .start_ready()
        .unwrap();
    let before = left(&mut server);
    for (place, trigger, is_saved) in PLACES {
        let mark = server.mark();
        start(&mut server, "--save-to-file");
        server.ask("!ticks 20", "!ticks done").unwrap();
        ask_for(faults.path(), place);
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
