//! Commands as an owner types them.

use super::{RUNNING, SAVED, beside, lab, start};

#[test]
fn a_mistyped_command_is_answered_in_one_line_and_changes_nothing() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab.server(&python).start_ready().unwrap();
    for (line, answer) in [
        ("spark profiler stop", "The profiler is not running"),
        ("spark profiler cancel", "The profiler is not running"),
        ("spark profiler info", "The profiler is not running"),
        ("spark profiler start --interval 0", "0.1 to 1000"),
        ("spark profiler start --interval fast", "0.1 to 1000"),
        ("spark profiler start --interval", "--interval"),
        ("spark profiler start --timeout 5", "--timeout"),
        ("spark profiler start --speed 9", "--speed"),
        ("spark profiler stop --comment", "--comment"),
    ] {
        let mark = server.mark();
        server.ask(line, answer).unwrap();
        server.ask("!ticks 2", "!ticks done").unwrap();
        let said: Vec<String> = server
            .output_since(mark)
            .into_iter()
            .filter(|line| line.contains('⚡'))
            .collect();
        assert_eq!(said.len(), 1, "'{line}' is answered by {said:#?}");
    }
    let info = server
        .ask("spark profiler info", "The profiler is not running")
        .unwrap();
    assert!(!info.contains("sample"), "{info}");
    server.stop_cleanly().unwrap();
}

#[test]
fn a_second_start_says_who_runs_what_since_when() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab.server(&python).start_ready().unwrap();
    start(&mut server, "");
    let answer = server.ask("spark profiler start", "running already").unwrap();
    assert!(
        answer.contains("the console") && answer.contains("/spark profiler stop"),
        "{answer}"
    );
    let info = server.ask("spark profiler info", "Profiling for").unwrap();
    assert!(info.contains("1 thread") && info.contains("4 ms"), "{info}");
    // Two stops in one tick: the second finds the first at work.
    server.command("spark profiler stop").unwrap();
    server.wait_for(SAVED, super::ANSWER).unwrap();
    server.ask("spark profiler start", RUNNING).unwrap();
    server.stop_cleanly().unwrap();
}

#[test]
fn help_lists_every_command() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab.server(&python).start_ready().unwrap();
    for command in ["profiler start", "profiler stop", "profiler info", "profiler cancel"] {
        server.ask("spark", command).unwrap();
    }
    server.stop_cleanly().unwrap();
}
