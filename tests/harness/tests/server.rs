//! A stand-in server with the sample plugins, from start to stop. Needs what `./dev build` builds.

use harness::Lab;
use std::time::Duration;

const ANSWER: Duration = Duration::from_secs(60);

#[test]
fn a_server_starts_loads_plugins_answers_and_stops() {
    let lab = Lab::open().unwrap();
    let python = lab.default_python().unwrap();
    let mut server = lab
        .server(&python)
        .without_profiler()
        .samples()
        .unwrap()
        .file(
            "plugins/market/config.toml",
            "offers = 20\norders = 5\nsigns = 2\nannounce_period = 2\n",
        )
        .arg("--load")
        .arg("none")
        .start_ready()
        .unwrap();
    // The plugin takes its settings from the file, and its event handlers run: the message was written by one.
    server.wait_for("open with 20 offers", ANSWER).unwrap();
    server
        .wait_for(
            |line: &str| line.contains("Best diamond today: ") && line.ends_with(" coins"),
            ANSWER,
        )
        .unwrap();
    let answer = server.ask("nonsense 7", "nonsense").unwrap();
    assert!(answer.contains("Unknown command"), "{answer}");
    assert!(!server.dir().join("plugins/endstone_spark.so").exists());
    let folder = server.dir().to_owned();
    let output = server.stop_cleanly().unwrap();
    assert!(
        output.iter().any(|line| line.contains("[Market] Disabling market")),
        "{output:#?}"
    );
    let sold = output.iter().find(|line| line.contains("items sold in")).unwrap();
    assert!(!sold.contains(" 0 items sold"), "{sold}");
    assert!(
        output.iter().any(|line| line.contains("rewards handed out")),
        "{output:#?}"
    );
    assert!(!folder.exists(), "its folder goes with it");
}

#[test]
fn a_line_that_does_not_come_is_a_failure_that_shows_the_last_ones() {
    let lab = Lab::open().unwrap();
    let python = lab.default_python().unwrap();
    let mut server = lab
        .server(&python)
        .without_profiler()
        .arg("--no-such-option")
        .start()
        .unwrap();
    let failure = server.wait_ready().unwrap_err().to_string();
    assert!(
        failure.contains("the server ended before it printed a line with '[stand-in] ready'"),
        "{failure}"
    );
    assert!(
        failure.contains("| ") && failure.contains("--no-such-option"),
        "{failure}"
    );
    assert_eq!(server.wait_end(ANSWER).unwrap().code(), Some(2));
}
