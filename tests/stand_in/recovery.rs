//! A server that ends in the middle of a session, in every way it can, and what its next start makes of it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use harness::{Profile, Server, ServerBuilder, journal_files};

use super::independent;
use super::profiles::shares;
use super::{ANSWER, NOBODY_LISTENS, alone, assert_sound, beside, figure, lab, start, stop};

const RECOVERED: &str = "what it had sampled is saved";

fn samples(dir: &Path) -> u64 {
    let count = |file: &PathBuf| independent::count(&std::fs::read(file).unwrap()).samples;
    journal_files(dir).unwrap().iter().map(count).sum()
}

/// A folder for servers that follow each other; nothing is uploaded from it.
pub fn builder<'a>(lab: &'a harness::Lab, python: &'a harness::Python, dir: &Path) -> ServerBuilder<'a> {
    lab.server(python)
        .samples()
        .unwrap()
        .folder(dir)
        .file("plugins/spark/config.toml", NOBODY_LISTENS)
}

pub fn folder(lab: &harness::Lab) -> tempfile::TempDir {
    let parent = lab.target().join("servers");
    std::fs::create_dir_all(&parent).unwrap();
    tempfile::Builder::new().prefix("recovery-").tempdir_in(parent).unwrap()
}

pub fn recovered(server: &mut Server) -> Profile {
    let line = server
        .wait_for_since(harness::Mark::start(), RECOVERED, ANSWER)
        .unwrap();
    assert!(line.contains("plugins/spark/profiles/recovered_"), "{line}");
    recovered_file(server)
}

fn recovered_file(server: &Server) -> Profile {
    let files = server.profile_files().unwrap();
    let file = files
        .iter()
        .rfind(|file| file.file_name().unwrap().to_string_lossy().starts_with("recovered_"))
        .unwrap();
    Profile::read(file).unwrap()
}

fn has_python(profile: &Profile) -> bool {
    profile
        .stacks()
        .iter()
        .any(|stack| stack.frames.iter().any(harness::Frame::is_python))
}

#[test]
fn a_server_that_is_killed_or_crashes_loses_nothing_that_was_written() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let dir = folder(&lab);
    for end in [
        None,
        Some("!python __import__('ctypes').string_at(1)"),
        Some("!python __import__('os').abort()"),
    ] {
        let mut server = builder(&lab, &python, dir.path()).start_ready().unwrap();
        start(&mut server, "--interval 1");
        server.run_for(Duration::from_secs(4)).unwrap();
        if let Some(end) = end {
            server.command(end).unwrap();
            let status = server.wait_end(ANSWER).unwrap();
            assert!(!status.success(), "{end} did not end the server");
        }
        // Kills it, if it lives.
        drop(server);
        let written = samples(dir.path());
        assert!(written > 200, "{written} samples after {end:?}");

        let mut server = builder(&lab, &python, dir.path()).start_ready().unwrap();
        let profile = recovered(&mut server);
        assert_sound(&profile);
        assert_eq!(figure(&profile, "Sampling", "samples") as u64, written, "after {end:?}");
        assert!(!has_python(&profile));
        assert!(profile.share_of(|stack| stack.has("bedrock_server.Level::tick")) > 0.05);
        let metadata = profile.metadata().unwrap();
        assert_eq!(metadata.interval, 1_000);
        assert!(metadata.comment.starts_with("Recovered: "), "{}", metadata.comment);
        assert!(metadata.sources.contains_key("market"));
        server.ask("spark activity", "recovered_").unwrap();
        server.stop_cleanly().unwrap();
        assert!(journal_files(dir.path()).unwrap().is_empty());
        // Once is enough.
        for file in harness::profile_files(dir.path()).unwrap() {
            std::fs::remove_file(file).unwrap();
        }
        let server = builder(&lab, &python, dir.path()).start_ready().unwrap();
        server.stop_cleanly().unwrap();
        assert!(harness::profile_files(dir.path()).unwrap().is_empty());
    }
}

#[test]
fn a_recovered_profile_has_the_native_shares_of_a_clean_run() {
    let _alone = alone();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let dir = folder(&lab);
    let mut server = builder(&lab, &python, dir.path()).start_ready().unwrap();
    // What the load took of each session by the stand-in's own clock: on a busy machine that is not the same twice.
    let session = |server: &mut Server| {
        start(server, "");
        server.ask("!shares", "!shares").unwrap();
        server.run_for(Duration::from_secs(15)).unwrap();
        shares(&server.ask("!shares", "!shares").unwrap())
    };
    let true_before = session(&mut server);
    let clean = stop(&mut server);
    assert!(has_python(&clean));
    let true_after = session(&mut server);
    drop(server);
    let mut server = builder(&lab, &python, dir.path()).start_ready().unwrap();
    let profile = recovered(&mut server);
    server.stop_cleanly().unwrap();
    assert!(!has_python(&profile));
    let share = |profile: &Profile, function: &str| 100.0 * profile.share_of(|stack| stack.has(function));
    for (part, function) in [
        ("entities", "bedrock_server.Level::tickEntities"),
        ("redstone", "bedrock_server.CircuitSystem::evaluate"),
        ("chunks", "bedrock_server.ChunkSource::tickChunks"),
    ] {
        let (before, after) = (share(&clean, function), share(&profile, function));
        println!("{function}: clean {before:.2} %, recovered {after:.2} %; {true_before:?}, {true_after:?}");
        assert!(
            (after - true_after[part] - (before - true_before[part])).abs() <= 2.0,
            "{function}: clean {before:.2} %, recovered {after:.2} %; {true_before:?}, {true_after:?}"
        );
    }
    for function in [
        "EndstoneScheduler::mainThreadHeartbeat",
        "bedrock_server.ServerInstance::_sleepUntilNextTick",
    ] {
        let (before, after) = (share(&clean, function), share(&profile, function));
        println!("{function}: clean {before:.2} %, recovered {after:.2} %");
        assert!(before > 0.0 && after > 0.0, "{function}: {before:.2}, {after:.2}");
    }
}

#[test]
fn a_server_that_is_killed_while_only_the_background_profiler_runs_leaves_its_last_hour() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let dir = folder(&lab);
    // Its settings leave the background profiler on.
    let begin = || builder(&lab, &python, dir.path()).start_ready().unwrap();
    let mut server = begin();
    server.run_for(Duration::from_secs(4)).unwrap();
    // A session takes its place, and it comes back.
    start(&mut server, "");
    server.ask("!ticks 20", "!ticks done").unwrap();
    server.ask("spark profiler cancel", "nothing was saved").unwrap();
    let wait = std::time::Instant::now() + ANSWER;
    while samples(dir.path()) < 100 {
        assert!(std::time::Instant::now() < wait, "{} samples", samples(dir.path()));
        server.ask("!ticks 20", "!ticks done").unwrap();
    }
    // Kills it.
    drop(server);
    let written = samples(dir.path());

    let server = begin();
    let line = server
        .wait_for_since(
            harness::Mark::start(),
            "The server ended without being stopped; what the background profiler had is saved: ",
            ANSWER,
        )
        .unwrap();
    assert!(line.contains("plugins/spark/profiles/recovered_"), "{line}");
    let profile = recovered_file(&server);
    assert_sound(&profile);
    assert_eq!(figure(&profile, "Sampling", "samples") as u64, written);
    assert!(profile.share_of(|stack| stack.has("bedrock_server.Level::tick")) > 0.05);
    let comment = profile.metadata().unwrap().comment.clone();
    assert!(
        comment.starts_with("Recovered: the server ended while the background profiler ran."),
        "{comment}"
    );
    // Stopped as it should be, it leaves nothing.
    server.stop_cleanly().unwrap();
    assert!(journal_files(dir.path()).unwrap().is_empty());
    let server = begin();
    server.stop_cleanly().unwrap();
    assert_eq!(harness::profile_files(dir.path()).unwrap().len(), 1);
}

#[test]
fn a_recovered_profile_of_slow_ticks_holds_only_those() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let dir = folder(&lab);
    // Nothing else to do: on a busy machine other ticks would be slow as well.
    let begin = || {
        let server = lab.server(&python).folder(dir.path());
        let idle = server.arg("--load").arg("none").arg("--no-python");
        idle.start_ready().unwrap()
    };
    let mut server = begin();
    start(&mut server, "--interval 1 --only-ticks-over 500");
    server.ask("!ticks 40", "!ticks done").unwrap();
    server.ask("!pattern 3 1000", "!pattern done").unwrap();
    server.ask("!ticks 40", "!ticks done").unwrap();
    drop(server);
    let written = samples(dir.path());

    let mut server = begin();
    let profile = recovered(&mut server);
    server
        .wait_for_since(harness::Mark::start(), "Ticks over 500 ms: ", ANSWER)
        .unwrap();
    assert_sound(&profile);
    let kept = figure(&profile, "Slow ticks", "ticks kept");
    let seen = figure(&profile, "Slow ticks", "ticks seen");
    assert!(kept >= 3.0 && seen > kept, "{kept} of {seen}");
    // What a session shows of its slow ticks is little of what it has written.
    assert!(figure(&profile, "Slow ticks", "samples kept") < written as f64);
    let millis = profile.total_millis();
    assert!(
        millis >= 2_500.0,
        "{millis} ms of {kept} ticks; {:?}, {written} samples",
        profile.extra("Slow ticks")
    );
    assert!(profile.share_of(|stack| stack.has(super::slow_ticks::SAVE)) > 0.5);
    server.stop_cleanly().unwrap();
}

#[test]
fn without_the_setting_nothing_is_kept() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab
        .server(&python)
        .file(
            "plugins/spark/config.toml",
            format!("{NOBODY_LISTENS}recovery = \"off\"\n"),
        )
        .start_ready()
        .unwrap();
    start(&mut server, "");
    server.ask("!ticks 20", "!ticks done").unwrap();
    assert!(!server.dir().join("plugins/spark/recovery").exists());
    stop(&mut server);
    server.stop_cleanly().unwrap();
}

#[test]
fn journals_are_for_the_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab.server(&python).start_ready().unwrap();
    start(&mut server, "");
    server.ask("!ticks 20", "!ticks done").unwrap();
    let file = journal_files(server.dir()).unwrap().remove(0);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(file.parent().unwrap()), mode(&file)), (0o700, 0o600));
    server.ask("spark profiler cancel", "nothing was saved").unwrap();
    assert!(journal_files(server.dir()).unwrap().is_empty());
    server.stop_cleanly().unwrap();
}
