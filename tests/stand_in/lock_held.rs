//! A C extension that keeps the interpreter's lock holds up neither the server thread nor the profile, and a server that ends meanwhile ends well.
//!
//! There are no Python plugins here: those would need the lock in every tick and hold the server up themselves.

use harness::{Lab, Python, PythonVersion, Server};

use super::{ANSWER, SAVED, assert_sound, beside, lab, python, start, stop};

/// Longer than a session waits anywhere with a limit (`limits::INTERPRETER_LOCK_SECONDS`).
const LONG_SECONDS: u32 = 23;

/// Longer than the end of a session waits for Python (`limits::DETACH_WAIT_MILLIS`), and than a busy machine takes to save a small profile.
const SECONDS: u32 = 12;

/// A thread of C code keeps the lock for this long and then, still with the lock, says so.
fn keep_the_lock(server: &mut Server, seconds: u32) {
    let expression = format!(
        "(lambda c, t: t.start_new_thread(lambda: c.PyDLL(None).system(b'sleep {seconds}; echo the lock is free'), ()))\
         (__import__('ctypes'), __import__('_thread'))"
    );
    server.ask(&format!("!python {expression}"), "!python").unwrap();
}

fn server(lab: &Lab, python: &Python) -> Server {
    let mut server = lab.server(python).start_ready().unwrap();
    start(&mut server, "");
    server.ask("!ticks 40", "!ticks done").unwrap();
    server
}

fn place(lines: &[String], text: &str) -> usize {
    let found = lines.iter().position(|line| line.contains(text));
    found.unwrap_or_else(|| panic!("nobody said {text:?}: {lines:#?}"))
}

#[test]
fn a_stop_while_an_extension_keeps_the_lock_saves_and_blocks_nobody_and_lets_go_later() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = server(&lab, &python);
    let mark = server.mark();
    keep_the_lock(&mut server, LONG_SECONDS);
    assert_sound(&stop(&mut server));
    server.ask("!ticks 20", "!ticks done").unwrap();
    server.wait_for_since(mark, "the lock is free", ANSWER).unwrap();
    let said = server.output_since(mark);
    let free = place(&said, "the lock is free");
    assert!(place(&said, SAVED) < free, "{said:#?}");
    assert!(place(&said, "!ticks done") < free, "{said:#?}");
    // Python is let go, however long that took: another session can have it.
    let deadline = std::time::Instant::now() + ANSWER;
    loop {
        let answer = start(&mut server, "");
        server.ask("!ticks 2", "!ticks done").unwrap();
        stop(&mut server);
        if answer.contains("with Python functions") {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{answer}");
    }
    let tools = server.ask("!tools", "!tools").unwrap();
    assert!(!tools.contains("spark"), "{tools}");
    server.stop_cleanly().unwrap();
}

#[test]
fn plugins_that_are_reloaded_while_an_extension_keeps_the_lock_save_and_work_again() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = server(&lab, &python);
    let mark = server.mark();
    keep_the_lock(&mut server, SECONDS);
    server.command("!reload-plugins").unwrap();
    server.wait_for_since(mark, "!reload-plugins done", ANSWER).unwrap();
    server.wait_for_since(mark, SAVED, ANSWER).unwrap();
    server.wait_for_since(mark, "the lock is free", ANSWER).unwrap();
    server.ask("!ticks 3", "!ticks done").unwrap();
    start(&mut server, "");
    server.ask("!ticks 10", "!ticks done").unwrap();
    assert_sound(&stop(&mut server));
    let tools = server.ask("!tools", "!tools").unwrap();
    assert!(!tools.contains("spark"), "{tools}");
    server.stop_cleanly().unwrap();
}

/// The profile is saved before the lock is free, and the process ends with 0.
fn ends_well_on(version: PythonVersion) {
    let _beside = beside();
    let lab = lab();
    let Some(python) = python(&lab, version) else { return };
    let mut server = server(&lab, &python);
    keep_the_lock(&mut server, SECONDS);
    let said = server.stop_cleanly().unwrap();
    assert!(place(&said, SAVED) < place(&said, "the lock is free"), "{said:#?}");
}

#[test]
fn a_server_that_ends_while_an_extension_keeps_the_lock_saves_and_ends_well_on_3_12() {
    ends_well_on(PythonVersion::V3_12);
}

#[test]
fn a_server_that_ends_while_an_extension_keeps_the_lock_saves_and_ends_well_on_3_13() {
    ends_well_on(PythonVersion::V3_13);
}

#[test]
fn a_server_that_ends_while_an_extension_keeps_the_lock_saves_and_ends_well_on_3_14() {
    ends_well_on(PythonVersion::V3_14);
}

#[test]
fn a_server_that_ends_while_an_extension_keeps_the_lock_saves_and_ends_well_on_3_15() {
    ends_well_on(PythonVersion::V3_15);
}
