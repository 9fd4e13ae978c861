//! The background profiler as an owner meets it: on from the start, out of the way of sessions that somebody asks for, gone without a word at the end.

use std::time::Duration;

use super::{ANSWER, RUNNING, SAVED, alone, assert_sound, figure, lab, start, stop};
use harness::{Profile, Server};

/// What a server has whose owner has changed nothing that matters here.
const DEFAULT: &str = "bytebinUrl = \"http://127.0.0.1:9\"\n";

fn server(settings: &str) -> Server {
    let lab = lab();
    let python = lab.default_python().unwrap();
    let builder = lab.server(&python).samples().unwrap();
    builder
        .file("plugins/spark/config.toml", format!("{DEFAULT}{settings}"))
        .start_ready()
        .unwrap()
}

/// Waits until it samples: that begins in the first tick, on another thread.
fn until_it_runs(server: &mut Server) {
    let end = std::time::Instant::now() + ANSWER;
    loop {
        let mark = server.command("spark profiler info").unwrap();
        let line = server
            .wait_for_since(mark, "The profiler is not running", ANSWER)
            .unwrap();
        server.ask("!ticks 1", "!ticks done").unwrap();
        if server
            .output_since(mark)
            .iter()
            .any(|line| line.contains("In the background"))
        {
            return;
        }
        assert!(std::time::Instant::now() < end, "{line}");
    }
}

/// Makes a profile of what there is.
fn export(server: &mut Server) -> Profile {
    let mark = server.command("spark profiler stop --save-to-file").unwrap();
    server
        .wait_for_since(
            mark,
            "Making a profile of what the background profiler has; it goes on.",
            ANSWER,
        )
        .unwrap();
    server.wait_for_since(mark, SAVED, ANSWER).unwrap();
    server.last_profile().unwrap()
}

#[test]
fn it_runs_from_the_start_and_goes_on_while_profiles_are_made_of_it() {
    let _alone = alone();
    let mut server = server("");
    until_it_runs(&mut server);
    server.run_for(Duration::from_secs(3)).unwrap();
    let first = export(&mut server);
    server.run_for(Duration::from_secs(2)).unwrap();
    let second = export(&mut server);
    for profile in [&first, &second] {
        assert_sound(profile);
        assert_eq!(profile.metadata().unwrap().interval, 10_000);
        assert!(profile.share_of(|stack| stack.has("bedrock_server.Level::tickEntities")) > 0.2);
        assert!(profile.stacks().iter().all(|stack| !stack.has("[Python]")));
    }
    assert!(first.total_millis() > 2_500.0, "{}", first.total_millis());
    // Nothing is lost or left out: the second has all of the first, and what came after.
    let (begun, ended) = (
        second.metadata().unwrap().start_time,
        second.metadata().unwrap().end_time,
    );
    assert_eq!(begun, first.metadata().unwrap().start_time);
    assert!(second.total_millis() > first.total_millis() + 1_900.0);
    assert!(
        (second.total_millis() / (ended - begun) as f64 - 1.0).abs() < 0.05,
        "{} of {}",
        second.total_millis(),
        ended - begun
    );

    let info = server
        .ask("spark profiler info", "In the background: the last ")
        .unwrap();
    assert!(info.contains("one sample every 10 ms"), "{info}");
    server
        .ask("spark profiler info", "of the server thread's time, and ")
        .unwrap();
    server
        .ask("spark profiler cancel", "is not running but in the background")
        .unwrap();

    // At the end it leaves no profile, and no line.
    let files = server.profile_files().unwrap().len();
    let mark = server.mark();
    server.ask("!reload-plugins", "!reload-plugins done").unwrap();
    let said = server.output_since(mark).join("\n");
    assert!(!said.contains(SAVED), "{said}");
    assert_eq!(server.profile_files().unwrap().len(), files);
    // And it is back after a reload.
    until_it_runs(&mut server);
    server.stop_cleanly().unwrap();
}

#[test]
fn a_session_that_is_asked_for_takes_its_place_and_it_comes_back() {
    let _alone = alone();
    let mut server = server("backgroundProfilerInterval = 5\n");
    until_it_runs(&mut server);
    for round in 0..3 {
        start(&mut server, "");
        let info = server.ask("spark profiler info", "Profiling for").unwrap();
        assert!(info.contains("one every 4 ms"), "{info}");
        server.ask("spark profiler start", "is running already").unwrap();
        server.run_for(Duration::from_secs(1)).unwrap();
        if round == 1 {
            server.ask("spark profiler cancel", "nothing was saved").unwrap();
        } else {
            let profile = stop(&mut server);
            assert_sound(&profile);
            assert_eq!(profile.metadata().unwrap().interval, 4_000);
            assert!(profile.has("[Python]"));
        }
        until_it_runs(&mut server);
    }
    let profile = export(&mut server);
    assert_eq!(profile.metadata().unwrap().interval, 5_000);
    server.stop_cleanly().unwrap();
}

#[test]
fn off_means_off() {
    let _alone = alone();
    let mut server = server("backgroundProfiler = false\n");
    server.ask("!ticks 20", "!ticks done").unwrap();
    let threads = server.ask("!threads", "!threads").unwrap();
    // The statistics' thread is there whatever is profiled.
    assert!(!threads.replace("spark-stats", "").contains("spark"), "{threads}");
    server.ask("spark profiler stop", "is not running").unwrap();
    server.stop_cleanly().unwrap();
}

#[test]
fn it_follows_python_where_that_is_wanted() {
    let _alone = alone();
    let mut server = server("backgroundProfilerPython = true\n");
    until_it_runs(&mut server);
    server.run_for(Duration::from_secs(3)).unwrap();
    let profile = export(&mut server);
    assert_sound(&profile);
    assert!(profile.has("[Python] endstone_market."));
    assert!(figure(&profile, "Python attribution", "samples with Python frames") > 10.0);
    // A session in between takes Python over, and gives it back.
    let running = server.ask("spark profiler start", RUNNING).unwrap();
    assert!(running.contains("with Python functions"), "{running}");
    server.run_for(Duration::from_secs(1)).unwrap();
    stop(&mut server);
    until_it_runs(&mut server);
    server.run_for(Duration::from_secs(2)).unwrap();
    let profile = export(&mut server);
    server.stop_cleanly().unwrap();
    assert_sound(&profile);
    assert!(profile.has("[Python] endstone_market."));
}

#[test]
fn python_that_makes_too_many_calls_is_followed_no_more_and_that_is_told_once() {
    let _alone = alone();
    let mut server = server("backgroundProfilerPython = true\n");
    until_it_runs(&mut server);
    // A thread that does nothing but call.
    server
        .ask(
            "!python __import__('threading').Thread(target=lambda: [(lambda: 0)() for _ in iter(int, 1)], daemon=True).start()",
            "!python",
        )
        .unwrap();
    let told = server
        .wait_for(
            "The background profiler no longer follows Python functions",
            Duration::from_secs(90),
        )
        .unwrap();
    assert!(told.contains("of a thread's time"), "{told}");
    let tools = server.ask("!tools", "!tools").unwrap();
    assert!(!tools.contains("spark"), "{tools}");
    assert_sound(&export(&mut server));
}

#[test]
fn more_threads_than_have_room_are_followed_one_after_the_other() {
    let _alone = alone();
    let mut server = server("backgroundProfilerPython = true\n");
    until_it_runs(&mut server);
    server
        .ask(
            "!python [(t.start(), t.join()) for t in [__import__('threading').Thread(target=lambda: None) for _ in range(230)]][0]",
            "!python",
        )
        .unwrap();
    // More than three quarters of the stacks are taken now: it attaches anew.
    let end = std::time::Instant::now() + ANSWER;
    loop {
        server.run_for(Duration::from_secs(2)).unwrap();
        let profile = export(&mut server);
        if figure(&profile, "Python attribution", "threads registered") < 100.0 {
            assert_sound(&profile);
            assert!(profile.has("[Python] endstone_market."), "what was before is lost");
            assert_eq!(figure(&profile, "Python attribution", "code objects unknown"), 0.0);
            break;
        }
        assert!(std::time::Instant::now() < end, "it was not renewed");
    }
    server.run_for(Duration::from_secs(2)).unwrap();
    let profile = export(&mut server);
    server.stop_cleanly().unwrap();
    assert_sound(&profile);
    assert!(figure(&profile, "Python attribution", "threads registered") >= 1.0);
    // Both attachments' functions under one name each.
    let market = profile.share_of(|stack| stack.has("[Python] endstone_market.plugin.Market.update_market"));
    assert!(market > 0.1, "{market}");
}
