//! The background profiler as an owner meets it: on from the start, out of the way of sessions that somebody asks for, gone without a word at the end.

use std::time::Duration;

use super::{ANSWER, NOBODY_LISTENS, RUNNING, SAVED, alone, assert_sound, beside, figure, lab, start, stop};
use harness::{Profile, Server};

fn server(settings: &str) -> Server {
    let lab = lab();
    let python = lab.default_python().unwrap();
    let builder = lab.server(&python).samples().unwrap();
    builder
        .file("plugins/spark/config.toml", format!("{NOBODY_LISTENS}{settings}"))
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

/// The first profile of it that shows the functions of a plugin.
fn export_with_market(server: &mut Server) -> Profile {
    let end = std::time::Instant::now() + ANSWER;
    loop {
        server.run_for(Duration::from_secs(2)).unwrap();
        let profile = export(server);
        assert_sound(&profile);
        if profile.has("[Python] endstone_market.") {
            return profile;
        }
        assert!(std::time::Instant::now() < end, "no function of the plugin shows");
    }
}

/// Milliseconds in stacks that have this frame.
fn millis_below(profile: &Profile, frame: &str) -> f64 {
    profile.share_of(|stack| stack.has(frame)) * profile.total_millis()
}

/// The samples stand for the time between its beginning and its end. At each edge some may be missing: less than half a second, where the machine is full.
fn assert_covers_its_time(profile: &Profile) {
    let metadata = profile.metadata().unwrap();
    let (total, whole) = (profile.total_millis(), (metadata.end_time - metadata.start_time) as f64);
    assert!((total - whole).abs() < whole * 0.05 + 500.0, "{total} of {whole} ms");
}

/// No function has two names: none is told by two classes or files, and none by a number.
fn assert_one_name_each(profile: &Profile, module: &str) {
    let mut names = std::collections::BTreeMap::new();
    for stack in profile.stacks() {
        for frame in stack.frames.iter().filter(|frame| frame.class.contains(module)) {
            let known = *names
                .entry(frame.method.to_owned())
                .or_insert((frame.class, frame.file));
            assert_eq!(known, (frame.class, frame.file), "{} under two names", frame.method);
        }
    }
    assert!(!names.is_empty());
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
        assert!(profile.has("bedrock_server.Level::tickEntities"));
        assert!(profile.stacks().iter().all(|stack| !stack.has("[Python]")));
        assert_covers_its_time(profile);
    }
    // Nothing is lost or left out: the second has all of the first, and what came after.
    let begun = |profile: &Profile| profile.metadata().unwrap().start_time;
    assert_eq!(begun(&second), begun(&first));
    assert!(second.total_millis() > first.total_millis());
    assert!(
        millis_below(&second, "bedrock_server.Level::tickEntities")
            > millis_below(&first, "bedrock_server.Level::tickEntities")
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
    let _beside = beside();
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
    let _beside = beside();
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
    let _beside = beside();
    let mut server = server("backgroundProfilerPython = true\n");
    until_it_runs(&mut server);
    let profile = export_with_market(&mut server);
    assert!(figure(&profile, "Python attribution", "samples with Python frames") >= 1.0);
    // A session in between takes Python over, and gives it back.
    let running = server.ask("spark profiler start", RUNNING).unwrap();
    assert!(running.contains("with Python functions"), "{running}");
    server.run_for(Duration::from_secs(1)).unwrap();
    stop(&mut server);
    until_it_runs(&mut server);
    export_with_market(&mut server);
    server.stop_cleanly().unwrap();
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
    let _beside = beside();
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
    let renewed = loop {
        server.run_for(Duration::from_secs(2)).unwrap();
        let profile = export(&mut server);
        if figure(&profile, "Python attribution", "threads registered") < 100.0 {
            break profile;
        }
        assert!(std::time::Instant::now() < end, "it was not renewed");
    };
    assert_sound(&renewed);
    assert!(renewed.has("[Python] endstone_market."), "what was before is lost");
    assert_eq!(figure(&renewed, "Python attribution", "code objects unknown"), 0.0);
    // It goes on where it was: time is added to the same functions, which have one name each.
    let update = "[Python] endstone_market.plugin.Market.update_market";
    let before = millis_below(&renewed, update);
    let end = std::time::Instant::now() + ANSWER;
    let profile = loop {
        server.run_for(Duration::from_secs(2)).unwrap();
        let profile = export(&mut server);
        if millis_below(&profile, update) > before {
            break profile;
        }
        assert!(std::time::Instant::now() < end, "nothing more of {update}");
    };
    server.stop_cleanly().unwrap();
    assert_sound(&profile);
    assert!(figure(&profile, "Python attribution", "threads registered") >= 1.0);
    assert_one_name_each(&profile, "endstone_market");
}
