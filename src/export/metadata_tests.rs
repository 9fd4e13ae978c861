use super::*;
use crate::export::test_support::metadata;
use crate::model::{EventCounts, Losses};

fn extra(metadata: &ProfileMetadata, name: &str) -> Value {
    serde_json::from_str(&metadata.encode(3, &[]).extra_platform_metadata[name]).unwrap()
}

#[test]
fn losses_are_listed_by_reason() {
    let mut metadata = metadata();
    let mut losses = Losses::default();
    losses.add(SampleLoss::NoSlot, 5);
    losses.add(SampleLoss::Blocked, 2);
    metadata.sampler.losses = losses;
    let sampling = extra(&metadata, "Sampling");
    assert_eq!(sampling["samples lost"], 7);
    assert_eq!(sampling["samples lost by reason"]["no slot"], 5);
    assert_eq!(sampling["samples lost by reason"]["busy"], 0);
}

#[test]
fn python_figures_are_there_when_frames_were_attributed() {
    let mut metadata = metadata();
    metadata.python.deepest = 300;
    metadata.merge.missed = 4;
    let python = extra(&metadata, "Python attribution");
    assert_eq!(python["state"], "active");
    assert_eq!(python["version"], "CPython 3.13.0");
    assert_eq!(python["deepest overflow"], 44);
    assert_eq!(python["frames without native frame"], 4);
    assert_eq!(python["code objects unknown"], 3);
}

/// Everything that tells how far the Python side of a profile can be trusted, each figure under its own name.
#[test]
fn every_python_figure_has_its_place() {
    let mut metadata = metadata();
    let python = &mut metadata.python;
    python.events = EventCounts {
        start: 101,
        resume: 102,
        throw: 103,
        ret: 104,
        yielded: 105,
        unwind: 106,
    };
    python.threads = 7;
    python.threads_refused = 8;
    python.threads_reused = 9;
    python.deepest = 266;
    python.truncations = 11;
    python.codes = [12, 13, 14, 15, 16];
    python.cache_misses = 6;
    python.registration_failures = 17;
    python.callback_failures = 18;
    python.stale_dropped = 19;
    python.unmatched_leaves = 20;
    python.subinterpreters = 2;
    python.swapping_threads = 9;
    python.swapping = vec!["MC_SERVER".to_owned()];
    metadata.sampler.samples = 50;
    metadata.sampler.attributed = 30;
    metadata.sampler.python_snapshots = 41;
    metadata.sampler.python_torn = 2;
    metadata.merge.placed = 21;
    metadata.merge.missed = 22;
    metadata.merge.unanchored = 23;
    let python = extra(&metadata, "Python attribution");
    for (name, figure) in [
        ("threads registered", 7),
        ("threads refused", 8),
        ("threads with the id of a dead one", 9),
        ("deepest stack", 266),
        ("deepest overflow", 10),
        ("stacks truncated", 11),
        ("registration failures", 17),
        ("callback failures", 18),
        ("subinterpreters, shown natively", 2),
        ("stale entries dropped", 19),
        ("leave events without entry", 20),
        ("shadow stack reads tried", 43),
        ("shadow stacks read", 41),
        ("shadow stacks torn", 2),
        ("samples with Python frames", 30),
        ("samples without Python frames", 20),
        ("frames placed", 21),
        ("frames without native frame", 22),
        ("frames not placed yet", 23),
        ("code objects unknown", 3),
        ("code cache hits", 300),
        ("code cache misses", 6),
    ] {
        assert_eq!(python[name], figure, "{name}");
    }
    let swapping = &python["threads that swap stacks, shown natively"];
    assert_eq!(swapping["number"], 9);
    assert_eq!(swapping["first of them"], serde_json::json!(["MC_SERVER"]));
    assert_eq!(python["backend"], "sys.monitoring (PEP 669)");
    let events: Vec<u64> = ["start", "resume", "throw", "return", "yield", "unwind"]
        .iter()
        .map(|event| python["events"][event].as_u64().unwrap())
        .collect();
    assert_eq!(events, [101, 102, 103, 104, 105, 106]);
    let codes: Vec<u64> = Category::ALL
        .iter()
        .map(|category| python["code objects"][category.name()].as_u64().unwrap())
        .collect();
    assert_eq!(codes, [12, 13, 14, 15, 16]);
}

#[test]
fn an_unsupported_python_says_why_and_claims_no_figures() {
    let mut metadata = metadata();
    metadata.python.state = PythonState::Unsupported("Python attribution needs 3.12".to_owned());
    let python = extra(&metadata, "Python attribution");
    assert_eq!(python["state"], "unsupported");
    assert_eq!(python["reason"], "Python attribution needs 3.12");
    assert!(python.get("events").is_none());
}

/// Read out as the viewer does: "The process is using Java {version} ({vendor_version} from {vendor})".
#[test]
fn python_stands_where_the_viewer_shows_the_runtime() {
    let shown = |state: PythonState, version: &str| {
        let mut metadata = metadata();
        metadata.python.state = state;
        metadata.python.version = version.to_owned();
        let system = metadata.encode(0, &[]).system_statistics.unwrap();
        assert!(system.os.is_some() && system.cpu.is_some_and(|cpu| cpu.threads == 4));
        let java = system.java.unwrap();
        format!("{} ({} from {})", java.version, java.vendor_version, java.vendor)
    };
    assert_eq!(
        shown(PythonState::Active, "3.13.0"),
        "CPython 3.13.0 (functions from sys.monitoring)"
    );
    assert_eq!(
        shown(PythonState::Unsupported("too old".to_owned()), "3.11.7"),
        "CPython 3.11.7 (native frames only from the interpreter)"
    );
    assert_eq!(
        shown(PythonState::Absent, ""),
        "none, and no Python (native frames only from the server)"
    );
}

#[test]
fn no_tick_is_said_to_be_over_a_threshold_that_there_is_not() {
    let encoded = metadata().encode(0, &[]);
    assert_eq!(encoded.number_of_ticks, 1_200);
    assert_eq!(encoded.data_aggregator.unwrap().number_of_included_ticks, 0);
}

#[test]
fn odd_input_stays_within_the_schema() {
    let mut metadata = metadata();
    metadata.ticks = u64::MAX;
    metadata.server.machine.processor = "x".repeat(10_000);
    metadata.interval_micros = u64::MAX;
    metadata.comment = format!("a\n<b>{}", "x".repeat(10_000));
    let encoded = metadata.encode(0, &[]);
    assert_eq!((encoded.number_of_ticks, encoded.interval), (i32::MAX, i32::MAX));
    assert!(encoded.comment.starts_with("a <b>x"));
    assert_eq!(encoded.comment.chars().count(), COMMENT_CHARS);
}

#[test]
fn modules_say_how_well_they_are_named() {
    let module = |build_id: Option<&str>, problem: Option<&str>| ModuleCoverage {
        class: "libx".to_owned(),
        build_id: build_id.map(str::to_owned),
        named: 3,
        nameless: 1,
        problem: problem.map(str::to_owned),
    };
    let encoded = metadata().encode(
        0,
        &[module(Some("ab12"), None), module(None, Some("its file was replaced"))],
    );
    let modules: Value = serde_json::from_str(&encoded.extra_platform_metadata["Native modules"]).unwrap();
    assert_eq!(modules["libx"]["addresses with name"], 3);
    assert_eq!(modules["libx"]["build id"], "ab12");
    assert!(modules["libx"].get("no names because").is_none());
    assert_eq!(modules["libx #2"]["no names because"], "its file was replaced");
}
