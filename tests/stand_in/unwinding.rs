//! What runs through the plugin's frames without returning: Endstone's C++ exceptions, and the end of a thread. There is one unwinder in the process, and our frames
//! have what it needs.

use harness::Linked;

use super::{ANSWER, RUNNING, SAVED, assert_sound, beside, lab, stop};

/// What the stand-in throws, as Endstone logs it.
const REASON: &str = "the player cannot be told";

#[test]
fn an_exception_through_a_command_and_through_a_task_is_caught_by_endstone() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab.server(&python).start_ready().unwrap();
    server.command("!join spark.profiler").unwrap();

    // The answer itself cannot be given: through our command.
    server.command("!throw 1").unwrap();
    let caught = server.ask("!as player spark profiler info", REASON).unwrap();
    println!("through a command: {caught}");
    let again = server.ask("!as player spark profiler info", "player: ").unwrap();
    assert!(again.contains("is not running"), "{again}");

    // What comes after the answer is told by our task.
    server.ask("!as player spark profiler start", RUNNING).unwrap();
    server.command("!throw 2").unwrap();
    let caught = server
        .ask("!as player spark profiler stop --save-to-file", REASON)
        .unwrap();
    println!("through a task: {caught}");

    // All goes on: the task too, which tells of the file and of the next session.
    server.wait_for(SAVED, ANSWER).unwrap();
    let told = server.ask("!as player spark profiler start", RUNNING).unwrap();
    assert!(told.contains("player: "), "{told}");
    server.ask("!ticks 20", "!ticks done").unwrap();
    assert_sound(&stop(&mut server));
    server.stop_cleanly().unwrap();
}

#[test]
fn a_thread_that_ends_inside_the_plugin_is_unwound_through_it() {
    let _beside = beside();
    let lab = lab();
    let linked = Linked::read(&lab.plugin().unwrap()).unwrap();
    assert!(linked.needed.iter().any(|name| name == "libgcc_s.so.1"), "{linked:?}");
    assert!(linked.unwinder.is_empty(), "{linked:?}");
    let python = lab.default_python().unwrap();
    let mut server = lab.server(&python).start_ready().unwrap();
    let said = server.ask("!end-a-thread spark", "!end-a-thread").unwrap();
    assert!(said.ends_with("joined true, reached true, returned false"), "{said}");
    server.ask("spark profiler info", "is not running").unwrap();
    server.stop_cleanly().unwrap();
}
