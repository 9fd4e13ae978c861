//! The plugin in the stand-in server: what is typed is answered, and it survives being reloaded and replaced.

use std::time::Duration;

use harness::{Lab, Server};
use object::Object;

const WAIT: Duration = Duration::from_secs(60);

fn server(lab: &Lab) -> Server {
    let python = lab.default_python().unwrap();
    lab.server(&python).arg("--no-python").start_ready().unwrap()
}

#[test]
fn typed_commands_are_answered() {
    let lab = Lab::open().unwrap();
    let mut server = server(&lab);
    // What odd and wrong lines get is tried by tests/stand_in/console.rs.
    for (line, answer) in [
        (
            "spark",
            "/spark profiler start [--interval MS] [--timeout SECONDS]: start sampling the server thread",
        ),
        ("spark help", "/spark profiler cancel: stop, and throw the samples away"),
        (
            "/spark profiler",
            "/spark profiler info: show how the profiler is doing",
        ),
        (
            "spark profiler info",
            "[⚡] The profiler is not running. Start it with /spark profiler start.",
        ),
        (
            "spark sampler stop",
            "[⚡] The profiler is not running. Start it with /spark profiler start.",
        ),
        (
            "spark profiler cancel",
            "[⚡] The profiler is not running. Start it with /spark profiler start.",
        ),
    ] {
        server.ask(line, answer).unwrap();
    }

    server
        .ask(
            "spark profiler start --interval 5 --timeout=86400",
            "It stops by itself after 24 h.",
        )
        .unwrap();
    server
        .wait_for("[⚡] The profiler is running: 1 thread, one sample every 5 ms", WAIT)
        .unwrap();
    server
        .ask(
            "spark profiler start",
            "The profiler is running already: the console started it",
        )
        .unwrap();
    server.ask("spark profiler info", "[⚡] Profiling for ").unwrap();
    let saved = server
        .ask(
            "spark profiler stop --save-to-file --comment \"lag §cat spawn\"",
            "[⚡] Saved plugins/spark/profiles/",
        )
        .unwrap();
    assert!(saved.contains(".sparkprofile ("), "{saved}");
    assert_eq!(server.profile_files().unwrap().len(), 1);

    server.ask("spark profiler start", "The profiler is running:").unwrap();
    server
        .ask("spark profiler cancel", "The profiler has stopped; nothing was saved.")
        .unwrap();
    assert_eq!(server.profile_files().unwrap().len(), 1);
    assert!(server.stop().unwrap().success());
}

#[test]
fn a_reload_while_profiling_saves_and_the_plugin_works_again() {
    let lab = Lab::open().unwrap();
    let mut server = server(&lab);
    server.ask("spark profiler start", "The profiler is running:").unwrap();
    server.ask("!reload-plugins", "!reload-plugins done").unwrap();
    assert_eq!(server.profile_files().unwrap().len(), 1);
    // The server thread is learned in the first tick after it.
    server.ask("!ticks 2", "!ticks done").unwrap();
    // The same file: nothing to say about it.
    let lines = server.output_since(harness::Mark::start());
    assert!(
        !lines.iter().any(|line| line.contains("Restart the server")),
        "{lines:#?}"
    );

    server.ask("spark profiler start", "The profiler is running:").unwrap();
    server.ask("spark profiler stop", "[⚡] Saved ").unwrap();

    // Another build takes the file's place: the old one goes on and says so.
    let file = server.dir().join("plugins").join("endstone_spark.so");
    let mut bytes = std::fs::read(&file).unwrap();
    let id = object::File::parse(&*bytes)
        .unwrap()
        .build_id()
        .unwrap()
        .unwrap()
        .to_vec();
    let at = bytes.windows(id.len()).position(|window| window == id).unwrap();
    bytes[at] ^= 0xff;
    let replacement = file.with_extension("new");
    std::fs::write(&replacement, bytes).unwrap();
    std::fs::rename(&replacement, &file).unwrap();
    server
        .ask("!reload-plugins", "Restart the server to use the new version")
        .unwrap();
    server.wait_for("!reload-plugins done", WAIT).unwrap();
    server
        .ask("spark profiler info", "The profiler is not running.")
        .unwrap();
    assert!(server.stop().unwrap().success());
}
