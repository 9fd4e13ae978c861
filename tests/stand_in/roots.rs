//! Stacks reach their root: on every CPython, on all threads, under work of every kind. Those that do not say why, and here where.

use std::collections::BTreeMap;
use std::time::Duration;

use harness::{Profile, PythonVersion};

use super::{assert_sound, beside, figure, lab, profile_for, python};

/// The time of one session; `SPARK_TORTURE_SECONDS` makes it longer.
fn time() -> Duration {
    let wanted = std::env::var("SPARK_TORTURE_SECONDS").ok();
    Duration::from_secs(wanted.and_then(|text| text.parse().ok()).unwrap_or(12))
}

/// Where unfinished stacks end: time by the frames next to the missing root.
fn unfinished(profile: &Profile) -> BTreeMap<String, f64> {
    let mut places = BTreeMap::new();
    for stack in profile.stacks() {
        let frames: Vec<String> = stack.frames.iter().map(harness::Frame::name).collect();
        if frames.iter().any(|name| name.contains("callers not found")) {
            let shown = frames.iter().take(5).cloned().collect::<Vec<_>>().join(" < ");
            *places.entry(shown).or_default() += stack.self_millis;
        }
    }
    places
}

fn on_version(version: PythonVersion) {
    let _beside = beside();
    let lab = lab();
    let Some(python) = python(&lab, version) else { return };
    let mut server = lab
        .server(&python)
        .samples()
        .unwrap()
        .file("varied.py", include_str!("../programs/varied.py"))
        .start_ready()
        .unwrap();
    let answer = server
        .ask(
            "!python exec(compile(open('varied.py').read(), 'varied.py', 'exec'), globals())",
            "!python",
        )
        .unwrap();
    assert!(answer.contains("None"), "{answer}");
    let profile = profile_for(&mut server, "--thread * --interval 1", time());
    let undone = server.ask("!python stop()", "!python").unwrap();
    assert!(undone.contains("[]"), "work that was never done: {undone}");
    server.stop_cleanly().unwrap();
    assert_sound(&profile);

    let samples = figure(&profile, "Sampling", "samples");
    let repeated = figure(&profile, "Sampling", "samples repeated for idle threads");
    let ends = profile.extra("Sampling").unwrap()["native stacks by how they end"].clone();
    let lost = profile.extra("Sampling").unwrap()["samples lost by reason"].clone();
    println!("{version}: {samples} samples, {repeated} of them repeated; ends {ends}; lost {lost}");
    for (place, millis) in unfinished(&profile) {
        println!("  {millis:.1} ms: {place}");
    }
    let rooted = ends["root"].as_f64().unwrap();
    assert!(samples - repeated > 2_000.0, "too little was sampled");
    assert!(
        rooted >= samples * 0.999,
        "{rooted} of {samples} stacks reach their root"
    );
    let known: f64 = ends
        .as_object()
        .unwrap()
        .values()
        .filter_map(serde_json::Value::as_f64)
        .sum();
    assert!(
        (known - samples).abs() < 0.5,
        "{known} ends of {samples} stacks: each has one"
    );
}

#[test]
fn stacks_reach_their_root_under_all_kinds_of_work_on_3_12() {
    on_version(PythonVersion::V3_12);
}

#[test]
fn stacks_reach_their_root_under_all_kinds_of_work_on_3_13() {
    on_version(PythonVersion::V3_13);
}

#[test]
fn stacks_reach_their_root_under_all_kinds_of_work_on_3_14() {
    on_version(PythonVersion::V3_14);
}

#[test]
fn stacks_reach_their_root_under_all_kinds_of_work_on_3_15() {
    on_version(PythonVersion::V3_15);
}
