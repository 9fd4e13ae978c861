//! Nothing is left behind, and nothing is lost.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use harness::Server;

use super::{ANSWER, RUNNING, SAVED, assert_sound, beside, lab, start, stop};

#[test]
fn twenty_sessions_leave_no_thread_no_signal_action_and_no_tool() {
    let _beside = beside();
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
    // That of the statistics is there whatever is profiled.
    assert!(!threads.replace("spark-stats", "").contains("spark"), "{threads}");
    assert_eq!(server.profile_files().unwrap().len(), 10);
    server.stop_cleanly().unwrap();
}

#[test]
fn a_session_that_runs_at_shutdown_is_saved() {
    let _beside = beside();
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
    let _beside = beside();
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
    let _beside = beside();
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
    let _beside = beside();
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
    let _beside = beside();
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

#[test]
fn with_all_tool_ids_taken_a_session_is_native_and_says_so_and_one_free_id_is_enough() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab.server(&python).samples().unwrap().start_ready().unwrap();
    let monitoring = "__import__('sys').monitoring";
    let free = server
        .ask(
            &format!("!python [i for i in range(6) if {monitoring}.get_tool(i) is None and not {monitoring}.use_tool_id(i, 'occupant')]"),
            "!python",
        )
        .unwrap();
    assert!(free.contains('5'), "{free}");
    let before = server.ask("!tools", "!tools").unwrap();
    let answer = start(&mut server, "");
    assert!(
        answer.contains("native frames only: all six tool ids of sys.monitoring are in use by occupant"),
        "{answer}"
    );
    server.run_for(Duration::from_secs(2)).unwrap();
    let profile = stop(&mut server);
    assert_sound(&profile);
    assert!(profile.stacks().iter().all(|stack| !stack.has("[Python]")));
    let said = profile.extra("Python attribution").unwrap().to_string();
    assert!(said.contains("all six tool ids"), "{said}");
    assert_eq!(server.ask("!tools", "!tools").unwrap(), before);

    server
        .ask(&format!("!python {monitoring}.free_tool_id(5)"), "!python")
        .unwrap();
    let answer = start(&mut server, "");
    assert!(answer.contains("with Python functions"), "{answer}");
    server.run_for(Duration::from_secs(3)).unwrap();
    let info = server.ask("spark profiler info", ", compared with ").unwrap();
    assert!(!info.contains("wrong"), "{info}");
    let profile = stop(&mut server);
    server.stop_cleanly().unwrap();
    assert_sound(&profile);
    assert!(profile.has("[Python] endstone_market."));
    let audits = &profile.extra("Python attribution").unwrap()["comparisons with the interpreter"];
    assert!(audits["made"].as_u64().unwrap() > 5, "{audits}");
    assert_eq!(audits["showed a wrong frame"], 0, "{audits}");
}

#[test]
fn callbacks_that_others_replace_during_a_session_are_noticed_and_told() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab.server(&python).samples().unwrap().start_ready().unwrap();
    start(&mut server, "");
    server.run_for(Duration::from_secs(2)).unwrap();
    let mark = server
        .command("!python __import__('sys').monitoring.register_callback(2, __import__('sys').monitoring.events.PY_RETURN, None)")
        .unwrap();
    let told = server.wait_for_since(mark, "no longer recorded", ANSWER).unwrap();
    assert!(told.contains("callbacks were replaced by other code"), "{told}");
    let profile = stop(&mut server);
    server.stop_cleanly().unwrap();
    assert_sound(&profile);
    let said = &profile.extra("Python attribution").unwrap()["state"];
    assert_eq!(said, "degraded");
}

#[test]
fn on_another_thread_than_its_own_the_server_is_asked_for_the_length_of_a_tick_alone() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    // The stand-in ends at once when the profiler calls anything else elsewhere, here and in all other tests.
    let mut server = lab
        .server(&python)
        .arg("--world")
        .arg("chunks=4")
        .start_ready()
        .unwrap();
    let elsewhere = |server: &mut Server| {
        let said = server.ask("!elsewhere", "!elsewhere").unwrap();
        said.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    start(&mut server, "--only-ticks-over 1");
    server.ask("!ticks 20", "!ticks done").unwrap();
    assert!(elsewhere(&mut server) > 0);
    stop(&mut server);
    elsewhere(&mut server);
    for command in [
        "spark health --upload",
        "spark tps",
        "spark ping",
        "spark profiler info",
    ] {
        server.command(command).unwrap();
    }
    start(&mut server, "--thread *");
    server.ask("!ticks 20", "!ticks done").unwrap();
    stop(&mut server);
    let mark = server.command("!reload-plugins").unwrap();
    server.wait_for_since(mark, "!reload-plugins done", ANSWER).unwrap();
    assert_eq!(elsewhere(&mut server), 0);
    server.stop_cleanly().unwrap();
}
