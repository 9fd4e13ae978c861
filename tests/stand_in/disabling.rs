//! The plugin is disabled while work of an earlier session is under way that does not get on: nobody waits for it, and nothing is lost.
//!
//! The plugin is a build that stays where a file says so (`src/sys/fault.rs`).

use std::path::Path;
use std::time::Instant;

use harness::{Lab, Profile, Python, Server, journal_files};

use super::bytebin::{Bytebin, Mode};
use super::faults::Faults;
use super::recovery::folder;
use super::{ANSWER, NOBODY_LISTENS, RUNNING, SAVED, assert_sound, beside, lab, start, stop};

/// Said when the plugin's end left something to itself.
const UNFINISHED: &str = "was not finished in time";

const RECOVERED: &str = "what it had sampled is saved";

const LOCKED: &str = "it is still in use by this server";

fn server(lab: &Lab, python: &Python, folder: &Path, faults: &Faults) -> Server {
    lab.server(python)
        .profiler_file(lab.faulty_plugin().unwrap())
        .env("SPARK_FAULTS", faults.path())
        .folder(folder)
        .file(
            "plugins/spark/config.toml",
            format!("{NOBODY_LISTENS}backgroundProfiler = false\n"),
        )
        .start_ready()
        .unwrap()
}

/// Asks, tick after tick, until it is so.
fn until(server: &mut Server, what: &str, is_so: impl Fn(&mut Server) -> bool) {
    let deadline = Instant::now() + ANSWER;
    while !is_so(server) {
        assert!(
            Instant::now() < deadline,
            "not so: {what}; {:#?}",
            server.output_since(harness::Mark::start())
        );
        server.ask("!ticks 1", "!ticks done").unwrap();
    }
}

fn reload(server: &mut Server) -> Vec<String> {
    let mark = server.command("!reload-plugins").unwrap();
    let begun = Instant::now();
    server.wait_for_since(mark, "!reload-plugins done", ANSWER).unwrap();
    println!("a reload took {} ms", begun.elapsed().as_millis());
    // The server thread is learned in the first tick after it.
    server.ask("!ticks 2", "!ticks done").unwrap();
    server.output_since(mark)
}

fn says(lines: &[String], text: &str) -> usize {
    lines.iter().filter(|line| line.contains(text)).count()
}

#[test]
fn a_profile_that_is_not_made_in_time_is_saved_later_or_recovered() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let (folder, faults) = (folder(&lab), Faults::new());
    let mut server = server(&lab, &python, folder.path(), &faults);
    let before = server.ask("!threads", "!threads").unwrap();
    start(&mut server, "--interval 1");
    server.ask("!ticks 10", "!ticks done").unwrap();
    faults.hold("export");
    server
        .ask("spark profiler stop --save-to-file", "Naming the functions of ")
        .unwrap();
    let said = reload(&mut server);
    assert_eq!(says(&said, UNFINISHED), 1, "{said:#?}");
    assert!(server.profile_files().unwrap().is_empty());

    // It has its journal as long as it is at work, so there is none for another session, and nothing is recovered that is being saved.
    let mark = server.mark();
    start(&mut server, "--interval 1");
    server.wait_for_since(mark, LOCKED, ANSWER).unwrap();
    assert_eq!(journal_files(folder.path()).unwrap().len(), 1);
    faults.release("export");
    until(&mut server, "the first profile is saved", |server| {
        server.profile_files().unwrap().len() == 1 && journal_files(folder.path()).unwrap().is_empty()
    });
    assert_sound(&server.last_profile().unwrap());
    assert_sound(&stop(&mut server));
    until(&mut server, "its thread has gone", |server| {
        server.ask("!threads", "!threads").unwrap() == before
    });
    let said = server.output_since(mark);
    assert_eq!(
        (says(&said, RECOVERED), says(&said, "could not be")),
        (0, 0),
        "{said:#?}"
    );

    // The server ends meanwhile.
    let mark = server.mark();
    start(&mut server, "--interval 1");
    server.ask("!ticks 10", "!ticks done").unwrap();
    assert_eq!(says(&server.output_since(mark), LOCKED), 0);
    faults.hold("export");
    server
        .ask("spark profiler stop --save-to-file", "Naming the functions of ")
        .unwrap();
    let said = server.stop_cleanly().unwrap();
    assert_eq!(says(&said, UNFINISHED), 2, "{said:#?}");
    assert_eq!(harness::profile_files(folder.path()).unwrap().len(), 2);
    faults.release("export");
    let mut server = self::server(&lab, &python, folder.path(), &faults);
    until(&mut server, "it is recovered", |server| {
        says(&server.output_since(harness::Mark::start()), RECOVERED) == 1
    });
    assert_sound(&server.last_profile().unwrap());
    assert_eq!(server.profile_files().unwrap().len(), 3);
    server.stop_cleanly().unwrap();
    assert!(journal_files(folder.path()).unwrap().is_empty());
}

#[test]
fn plugins_that_are_reloaded_while_an_upload_hangs_save_and_work_again() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let bytebin = Bytebin::start(Mode::Hang);
    let mut server = lab
        .server(&python)
        .file(
            "plugins/spark/config.toml",
            format!("bytebinUrl = \"{}\"\nbackgroundProfiler = false\n", bytebin.url),
        )
        .start_ready()
        .unwrap();
    for round in 1..=3 {
        let answer = start(&mut server, "--interval 1");
        assert!(answer.contains("with Python functions"), "{answer}");
        server.ask("!ticks 5", "!ticks done").unwrap();
        server.ask("spark profiler stop", "Uploading ").unwrap();
        let said = reload(&mut server);
        assert_eq!(
            says(&said, "the plugin is being disabled. It is saved to a file instead."),
            1,
            "{said:#?}"
        );
        assert_eq!((says(&said, SAVED), says(&said, UNFINISHED)), (1, 0), "{said:#?}");
        assert_eq!(server.profile_files().unwrap().len(), round);
        assert_sound(&server.last_profile().unwrap());
        assert!(journal_files(server.dir()).unwrap().is_empty());
    }
    server.ask("!ticks 2", "!ticks done").unwrap();
    let mark = server.mark();
    server.ask("spark profiler start", RUNNING).unwrap();
    server.ask("!ticks 20", "!ticks done").unwrap();
    assert_sound(&stop(&mut server));
    assert_eq!(says(&server.output_since(mark), LOCKED), 0);
    server.stop_cleanly().unwrap();
}

#[test]
fn a_recovery_that_is_broken_off_is_made_after_the_reload_however_often() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let (folder, faults) = (folder(&lab), Faults::new());
    let mut crashed = server(&lab, &python, folder.path(), &faults);
    start(&mut crashed, "--interval 1");
    crashed.ask("!ticks 40", "!ticks done").unwrap();
    drop(crashed);
    assert_eq!(journal_files(folder.path()).unwrap().len(), 1);

    // Says that a journal is being read.
    let attempts = folder.path().join("plugins/spark/recovery/attempts");
    faults.hold("export");
    let mut server = server(&lab, &python, folder.path(), &faults);
    // More often than a journal is tried that ends the server each time.
    for _ in 0..4 {
        until(&mut server, "it is being recovered", |_| attempts.exists());
        let said = reload(&mut server);
        assert_eq!(says(&said, UNFINISHED), 0, "{said:#?}");
        // The old one ends, and the new one waits for its turn.
        faults.hold("recovery");
        faults.release("export");
        until(&mut server, "it was broken off", |_| !attempts.exists());
        faults.hold("export");
        faults.release("recovery");
    }
    until(&mut server, "it is being recovered", |_| attempts.exists());
    assert_eq!(journal_files(folder.path()).unwrap().len(), 1);
    assert!(server.profile_files().unwrap().is_empty());
    faults.release("export");
    until(&mut server, "it is recovered", |server| {
        says(&server.output_since(harness::Mark::start()), RECOVERED) == 1
    });
    until(&mut server, "the journal is gone", |_| {
        journal_files(folder.path()).unwrap().is_empty()
    });
    let files = server.profile_files().unwrap();
    assert_eq!(files.len(), 1);
    assert_sound(&Profile::read(&files[0]).unwrap());
    let said = server.stop_cleanly().unwrap();
    assert_eq!((says(&said, "could not be"), says(&said, LOCKED)), (0, 0), "{said:#?}");
}
