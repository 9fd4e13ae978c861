//! A server that stands still.

use std::time::Duration;

use super::{ANSWER, alone, assert_sound, beside, lab, start, stop};

const SETTINGS: &str = "bytebinUrl = \"http://127.0.0.1:9\"\nbackgroundProfiler = false\nstallSeconds = 1\n";

/// Said once it ticks again.
const TOLD: &str = "The server did not tick for ";

/// Something that the server thread does for this long.
fn hang(seconds: u32) -> String {
    // Not the C library's own: a signal cuts that short.
    format!("!python __import__('time').sleep({seconds})")
}

#[test]
fn a_server_that_does_not_tick_is_told_once_it_does_and_the_profile_says_when_and_where() {
    let _alone = alone();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab
        .server(&python)
        .file("plugins/spark/config.toml", SETTINGS)
        .start_ready()
        .unwrap();
    start(&mut server, "");
    server.ask("!ticks 20", "!ticks done").unwrap();
    let mark = server.command(&hang(3)).unwrap();
    let told = server.wait_for_since(mark, TOLD, ANSWER).unwrap();
    let seconds: f64 = told
        .split(TOLD)
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert!(seconds >= 3.0, "{told}");
    server.ask("!ticks 20", "!ticks done").unwrap();
    let profile = stop(&mut server);
    server.stop_cleanly().unwrap();
    assert_sound(&profile);
    let stalls = profile.extra("Stalls").unwrap();
    let longest = stalls["each"]
        .as_array()
        .unwrap()
        .iter()
        .max_by_key(|stall| stall["milliseconds"].as_u64())
        .unwrap();
    assert!(longest["milliseconds"].as_u64().unwrap() >= 3_000, "{stalls}");
    assert_eq!(longest["over"], true, "{stalls}");
    // Its stack went on being sampled.
    let slept = profile.share_of(|stack| {
        stack
            .frames
            .last()
            .is_some_and(|leaf| leaf.method.contains("nanosleep"))
    });
    assert!(
        slept * profile.total_millis() > 2_500.0,
        "{slept} of {} ms",
        profile.total_millis()
    );
}

#[test]
fn a_server_that_is_killed_because_it_hangs_has_the_hang_in_its_recovered_profile() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let parent = lab.target().join("servers");
    let dir = tempfile::Builder::new().prefix("hang-").tempdir_in(parent).unwrap();
    let builder = || {
        lab.server(&python)
            .folder(dir.path())
            .file("plugins/spark/config.toml", SETTINGS)
    };
    let mut server = builder().start_ready().unwrap();
    start(&mut server, "");
    server.ask("!ticks 20", "!ticks done").unwrap();
    server.command(&hang(3_600)).unwrap();
    let is_written = || {
        let files = harness::journal_files(dir.path()).unwrap();
        let stalls = |file| super::independent::count(&std::fs::read(file).unwrap()).stalls;
        files.into_iter().flat_map(stalls).any(|(_, length)| length == 0)
    };
    let deadline = std::time::Instant::now() + ANSWER;
    while !is_written() {
        assert!(std::time::Instant::now() < deadline, "no stall in the journal");
        server.run_for(Duration::from_millis(20)).unwrap();
    }
    drop(server);
    let mut server = builder().start_ready().unwrap();
    let profile = super::recovery::recovered(&mut server);
    server.stop_cleanly().unwrap();
    assert_sound(&profile);
    let stalls = profile.extra("Stalls").unwrap();
    assert_eq!(
        stalls["each"].as_array().unwrap().last().unwrap()["over"],
        false,
        "{stalls}"
    );
}

#[test]
fn a_server_that_is_not_to_be_watched_is_not() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab
        .server(&python)
        .file(
            "plugins/spark/config.toml",
            SETTINGS.replace("stallSeconds = 1", "stallSeconds = 0"),
        )
        .start_ready()
        .unwrap();
    start(&mut server, "");
    let threads = server.ask("!threads", "!threads").unwrap();
    assert!(!threads.contains("spark-watchdog"), "{threads}");
    server.stop_cleanly().unwrap();
}
