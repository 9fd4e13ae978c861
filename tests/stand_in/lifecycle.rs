//! Nothing is left behind, and nothing is lost.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use super::{ANSWER, RUNNING, SAVED, alone, assert_sound, lab, start, stop};

#[test]
fn twenty_sessions_leave_no_thread_no_signal_action_and_no_tool() {
    let _alone = alone();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab.server(&python).samples().unwrap().start_ready().unwrap();
    let before = ["!sigprof", "!tools"].map(|probe| server.ask(probe, probe).unwrap());
    for round in 0..20 {
        start(&mut server, "--interval 1");
        server.ask("!ticks 2", "!ticks done").unwrap();
        if round % 2 == 0 {
            stop(&mut server);
        } else {
            server.ask("spark profiler cancel", "nothing was saved").unwrap();
        }
    }
    server.ask("!ticks 2", "!ticks done").unwrap();
    assert_eq!(
        ["!sigprof", "!tools"].map(|probe| server.ask(probe, probe).unwrap()),
        before
    );
    let threads = server.ask("!threads", "!threads").unwrap();
    assert!(!threads.contains("spark"), "{threads}");
    assert_eq!(server.profile_files().unwrap().len(), 10);
    server.stop_cleanly().unwrap();
}

#[test]
fn a_session_that_runs_at_shutdown_is_saved() {
    let _alone = alone();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab
        .server(&python)
        .samples()
        .unwrap()
        .folder(lab.target().join("servers/shutdown"))
        .start_ready()
        .unwrap();
    start(&mut server, "");
    server.run_for(Duration::from_secs(2)).unwrap();
    let dir = server.dir().to_owned();
    let output = server.stop_cleanly().unwrap();
    assert!(output.iter().any(|line| line.contains(SAVED)), "{output:#?}");
    let files = harness::profile_files(&dir).unwrap();
    assert_sound(&harness::Profile::read(files.last().unwrap()).unwrap());
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_reload_ends_the_session_and_the_plugin_works_again() {
    let _alone = alone();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab.server(&python).samples().unwrap().start_ready().unwrap();
    start(&mut server, "");
    server.run_for(Duration::from_secs(1)).unwrap();
    let mark = server.command("!reload-plugins").unwrap();
    server.wait_for_since(mark, "!reload-plugins done", ANSWER).unwrap();
    server.wait_for_since(mark, SAVED, ANSWER).unwrap();
    server.ask("!ticks 3", "!ticks done").unwrap();
    start(&mut server, "");
    server.run_for(Duration::from_secs(2)).unwrap();
    assert_sound(&stop(&mut server));
    server.stop_cleanly().unwrap();
}

#[test]
fn a_session_with_a_time_limit_saves_itself() {
    let _alone = alone();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab.server(&python).start_ready().unwrap();
    start(&mut server, "--timeout 11");
    server.wait_for(SAVED, ANSWER).unwrap();
    let profile = server.last_profile().unwrap();
    assert!(
        (10.9..13.0).contains(&(profile.total_millis() / 1_000.0)),
        "{} ms",
        profile.total_millis()
    );
    server.ask("spark profiler info", "is not running").unwrap();
    server.stop_cleanly().unwrap();
}

#[test]
fn profiles_are_readable_by_their_owner_only() {
    let _alone = alone();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab.server(&python).start_ready().unwrap();
    start(&mut server, "");
    server.ask("!ticks 2", "!ticks done").unwrap();
    stop(&mut server);
    let file = server.profile_files().unwrap().pop().unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(file.parent().unwrap()), 0o700);
    server.stop_cleanly().unwrap();
}

#[test]
fn a_profile_that_cannot_be_written_is_kept_until_it_can() {
    let _alone = alone();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab
        .server(&python)
        .file("plugins/spark/profiles", "in the way\n")
        .start_ready()
        .unwrap();
    start(&mut server, "");
    server.ask("!ticks 10", "!ticks done").unwrap();
    let answer = server
        .ask("spark profiler stop --save-to-file", "could not be saved")
        .unwrap();
    assert!(answer.contains("kept"), "{answer}");
    std::fs::remove_file(server.dir().join("plugins/spark/profiles")).unwrap();
    assert_sound(&stop(&mut server));
    server.ask("spark profiler stop", "is not running").unwrap();
    let again = server.ask("spark profiler start", RUNNING).unwrap();
    assert!(again.contains("1 thread"), "{again}");
    server.stop_cleanly().unwrap();
}
