//! Profiles against the truth that the stand-in knows.

use std::collections::HashMap;
use std::time::Duration;

use super::{alone, assert_sound, beside, figure, lab, profile_for};

/// Shares in percent as the stand-in reports them: `!shares entities=30.07 redstone=20.01 chunks=9.93`.
pub(super) fn shares(line: &str) -> HashMap<String, f64> {
    line.split_whitespace()
        .filter_map(|word| word.split_once('='))
        .map(|(name, share)| (name.to_owned(), share.trim_end_matches('%').parse().unwrap()))
        .collect()
}

#[test]
fn known_native_shares_are_found_within_one_and_a_half_points() {
    let _alone = alone();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab.server(&python).start_ready().unwrap();
    super::start(&mut server, "");
    server.ask("!shares", "!shares").unwrap();
    server.run_for(Duration::from_secs(15)).unwrap();
    let truth = shares(&server.ask("!shares", "!shares").unwrap());
    let profile = super::stop(&mut server);
    server.stop_cleanly().unwrap();
    assert_sound(&profile);
    for (part, function) in [
        ("entities", "bedrock_server.Level::tickEntities"),
        ("redstone", "bedrock_server.CircuitSystem::evaluate"),
        ("chunks", "bedrock_server.ChunkSource::tickChunks"),
    ] {
        let found = 100.0 * profile.share_of(|stack| stack.has(function));
        let true_share = truth[part];
        assert!(
            (found - true_share).abs() <= 1.5,
            "{part}: found {found:.2} %, true {true_share:.2} %"
        );
    }
    assert!(profile.share_of(|stack| stack.has("bedrock_server.ServerInstance::_sleepUntilNextTick")) > 0.2);
}

#[test]
fn a_profile_says_how_it_was_taken() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab.server(&python).samples().unwrap().start_ready().unwrap();
    super::start(&mut server, "--interval 2.5");
    server.run_for(Duration::from_secs(3)).unwrap();
    server
        .ask(
            "spark profiler stop --save-to-file --comment \"lag at spawn\"",
            super::SAVED,
        )
        .unwrap();
    let profile = server.last_profile().unwrap();
    server.stop_cleanly().unwrap();
    assert_sound(&profile);
    let metadata = profile.metadata().unwrap();
    assert_eq!((metadata.interval, metadata.comment.as_str()), (2_500, "lag at spawn"));
    assert!(metadata.number_of_ticks > 20, "{} ticks", metadata.number_of_ticks);
    assert!(metadata.end_time - metadata.start_time >= 3_000);
    let platform = metadata.platform_metadata.as_ref().unwrap();
    assert_eq!(
        (platform.name.as_str(), platform.version.as_str()),
        ("Endstone", harness::ENDSTONE_VERSION)
    );
    for plugin in ["spark", "market", "quests"] {
        assert!(
            metadata.sources.contains_key(plugin),
            "{plugin} is not among the sources"
        );
    }
    assert!(
        profile.data().class_sources.values().any(|plugin| plugin == "market"),
        "{:?}",
        profile.data().class_sources
    );
    assert!(figure(&profile, "Sampling", "samples") > 300.0);
}

#[test]
fn a_session_over_a_minute_has_windows_without_a_gap() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab.server(&python).start_ready().unwrap();
    let profile = profile_for(&mut server, "--interval 20", Duration::from_secs(63));
    server.stop_cleanly().unwrap();
    assert_sound(&profile);
    let windows = &profile.data().time_windows;
    assert_eq!(windows.len(), 2, "{windows:?}");
    for window in windows {
        assert!(
            profile.data().time_window_statistics[window].ticks > 0,
            "{:?}",
            profile.data().time_window_statistics
        );
    }
}
