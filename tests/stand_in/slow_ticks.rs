//! `--only-ticks-over`, on ticks of known lengths.

use super::{alone, assert_sound, beside, figure, lab, start};

/// The lengths of all ticks since this was asked last, in milliseconds, as the stand-in measures them.
fn lengths(server: &mut harness::Server) -> Vec<f64> {
    let line = server.ask("!lengths", "!lengths").unwrap();
    let (_, numbers) = line.split_once("!lengths").unwrap();
    numbers
        .split_whitespace()
        .map(|number| number.parse().unwrap())
        .collect()
}

/// Profiles ten rounds of ticks of 5, 30, 70 and 200 ms. The late ones are followed by others without a pause.
fn profile(flags: &str) -> (harness::Profile, Vec<f64>, String) {
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab.server(&python).arg("--load").arg("none").start_ready().unwrap();
    lengths(&mut server);
    start(&mut server, flags);
    let mark = server.command("!pattern 10 5,30,70,200").unwrap();
    server.wait_for_since(mark, "!pattern done", super::ANSWER).unwrap();
    let lengths = lengths(&mut server);
    let mark = server.command("spark profiler stop --save-to-file").unwrap();
    let said = server.wait_for_since(mark, "Ticks over", super::ANSWER).unwrap();
    server.wait_for_since(mark, super::SAVED, super::ANSWER).unwrap();
    let profile = server.last_profile().unwrap();
    server.stop_cleanly().unwrap();
    (profile, lengths, said)
}

pub const SAVE: &str = "bedrock_server.LevelStorage::save";
const VILLAGES: &str = "bedrock_server.VillageManager::tick";
const FAST: [&str; 3] = [
    "bedrock_server.Weather::tick",
    "bedrock_server.Spawner::tick",
    "bedrock_server.ServerInstance::_sleepUntilNextTick",
];

#[test]
fn only_slow_ticks_are_kept_and_nothing_of_the_others() {
    let _alone = alone();
    let (profile, lengths, said) = profile("--only-ticks-over 60");
    assert_sound(&profile);
    let slow: Vec<f64> = lengths.iter().copied().filter(|millis| *millis > 60.0).collect();
    assert!(slow.len() >= 20, "{lengths:?}");
    assert_eq!(
        figure(&profile, "Slow ticks", "ticks kept"),
        slow.len() as f64,
        "{lengths:?}"
    );
    assert!(
        said.contains(&format!("Ticks over 60 ms: {} of ", slow.len())),
        "{said}"
    );
    let longest = slow.iter().copied().fold(0.0, f64::max);
    let found = figure(&profile, "Slow ticks", "longest tick, microseconds") / 1e3;
    // The thread may lose its processor between the server's reading of the clock and the stand-in's.
    assert!((found / longest - 1.0).abs() < 0.1, "{found}, not {longest}");

    let metadata = profile.metadata().unwrap();
    let aggregator = metadata.data_aggregator.as_ref().unwrap();
    assert_eq!(aggregator.r#type, 1, "TICKED");
    assert_eq!(aggregator.tick_length_threshold, 60_000);
    assert_eq!(aggregator.number_of_included_ticks as usize, slow.len());
    assert!(metadata.number_of_ticks as usize > slow.len() + 20);

    // Their time, whole and nothing else's.
    let total = profile.total_millis();
    let truth: f64 = slow.iter().sum();
    assert!((total / truth - 1.0).abs() < 0.02, "{total} of {truth} ms");
    let share = |function: &str| profile.share_of(|stack| stack.has(function));
    // On a full machine a tick that was to be short may be long: no more of the short ones' functions than those took.
    let mut sorted = slow.clone();
    sorted.sort_by(f64::total_cmp);
    let unplanned: f64 = sorted.iter().rev().take(slow.len() - 20).sum();
    let saving: f64 = slow.iter().filter(|millis| **millis >= 200.0).sum();
    let saves = share(SAVE);
    assert!(
        (saves - saving / truth).abs() < 0.03 + unplanned / truth,
        "{saves} of {saving}, {lengths:?}"
    );
    let villages = share(VILLAGES);
    assert!(
        (saves + villages - 1.0).abs() < 0.03 + unplanned / truth,
        "{saves} {villages}, {lengths:?}"
    );
    assert!(saves > villages, "the hottest");
    for fast in &FAST[..2] {
        assert!(share(fast) <= unplanned / truth, "{fast}");
    }
    // The wait before a slow tick may be there for less than a sample, where its beginning is not known better.
    assert!(share(FAST[2]) < 0.02, "{}", share(FAST[2]));
    assert_eq!(
        figure(&profile, "Slow ticks", "samples that found no room to wait"),
        0.0
    );
}

#[test]
fn without_a_slow_tick_it_is_told_how_many_ran_and_the_longest() {
    let _beside = beside();
    let (profile, lengths, said) = profile("--only-ticks-over 60000 --thread *");
    assert!(lengths.iter().all(|millis| *millis < 60_000.0), "{lengths:?}");
    assert_sound(&profile);
    assert!(
        said.contains("Ticks over 60000 ms: 0 of ") && said.contains("the longest took "),
        "{said}"
    );
    assert_eq!(figure(&profile, "Slow ticks", "samples kept"), 0.0);
    assert_eq!(profile.total_millis(), 0.0);
}

#[test]
fn a_slow_tick_in_which_the_session_ends_is_kept_as_far_as_it_came() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab
        .server(&python)
        .arg("--load")
        .arg("none")
        .arg("--no-python")
        .start_ready()
        .unwrap();
    // The session ends by itself in the middle of one tick that lasts half a minute.
    start(&mut server, "--only-ticks-over 2000 --timeout 11 --save-to-file");
    let begun = server.mark();
    server.command("!pattern 1 30000").unwrap();
    server.wait_for_since(begun, "!pattern done", super::ANSWER).unwrap();
    let said = server.wait_for_since(begun, "Ticks over", super::ANSWER).unwrap();
    assert!(said.contains("Ticks over 2000 ms: 1 of "), "{said}");
    let saved = server.wait_for_since(begun, super::SAVED, super::ANSWER).unwrap();
    let profile = server.last_profile().unwrap();
    server.stop_cleanly().unwrap();
    assert_sound(&profile);
    assert_eq!(figure(&profile, "Slow ticks", "ticks kept"), 1.0);
    let total = profile.total_millis();
    // Eleven seconds, two that its end was waited for, less what lay between the start and the tick.
    assert!((2_000.0..20_000.0).contains(&total), "{total}");
    assert!(profile.share_of(|stack| stack.has(SAVE)) > 0.9);
    // What is told is what the profile has.
    let kept = figure(&profile, "Slow ticks", "samples kept");
    assert!(said_samples(&saved) == kept, "{saved}, {kept} kept");
    // Nobody waited for a look at the world that the server could not take.
    let world = profile.extra("World").unwrap();
    assert!(world["problem"].as_str().unwrap().contains("did not tick"), "{world}");
}

/// The number before ` sample`.
fn said_samples(line: &str) -> f64 {
    let (before, _) = line.split_once(" sample").unwrap();
    let digits = before.rsplit([' ', '(']).next().unwrap();
    digits.replace(',', "").parse().unwrap()
}

#[test]
fn other_threads_are_kept_for_the_same_time() {
    let _alone = alone();
    let (profile, lengths, _) = profile("--only-ticks-over 60 --thread * --interval 2 --not-combined");
    assert_sound(&profile);
    let truth: f64 = lengths.iter().filter(|millis| **millis > 60.0).sum();
    let mut whole = 0;
    for thread in &profile.data().threads {
        let total: f64 = thread.times.iter().sum();
        assert!(total <= truth * 1.02, "{}: {total} of {truth} ms", thread.name);
        whole += u32::from(total >= truth * 0.98 && !thread.name.contains("MC_SERVER"));
    }
    // At least the main thread waits for the console through all of them.
    assert!(
        whole >= 1,
        "{} threads, none of them whole",
        profile.data().threads.len()
    );
}
