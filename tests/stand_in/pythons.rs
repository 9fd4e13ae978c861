//! Native and Python frames in one tree, on every CPython.

use std::time::Duration;

use harness::{Profile, PythonVersion};

use super::{alone, assert_sound, beside, figure, lab, profile_for, python};

const TIME: Duration = Duration::from_secs(8);

/// From root to leaf: the server's tick, Endstone's runtime, a sample plugin's method, CPython's sort, the plugin's key function.
const CHAIN: [&str; 5] = [
    "bedrock_server.ServerInstance::_update",
    "libendstone_runtime.",
    "[Python] endstone_market.plugin.Market.",
    ".list_sort",
    "[Python] endstone_market.prices.",
];

/// The same where the interpreter's binary has no symbols: the sort is then some function of libpython.
const CHAIN_STRIPPED: [&str; 5] = [CHAIN[0], CHAIN[1], CHAIN[2], "libpython", CHAIN[4]];

/// Functions of the interpreter that only pass a call on, as far as installed interpreters have their names.
const GLUE: [&str; 10] = [
    "PyObject_Call",
    "PyObject_CallMethodObjArgs",
    "PyObject_CallOneArg",
    "PyObject_Vectorcall",
    "_PyEval_Vector",
    "_PyFunction_Vectorcall",
    "_PyObject_Call_Prepend",
    "_PyObject_FastCallDictTstate",
    "_PyObject_MakeTpCall",
    "method_vectorcall",
];

/// Frames of the interpreter for each Python frame.
fn interpreter_frames(profile: &Profile) -> f64 {
    let stacks = profile.stacks();
    let count = |accept: &dyn Fn(&str) -> bool| {
        let frames = stacks.iter().flat_map(|stack| &stack.frames);
        frames.filter(|frame| accept(frame.class)).count() as f64
    };
    count(&|class| class.starts_with("libpython")) / count(&|class| class.starts_with("[Python] "))
}

fn assert_merged(profile: &Profile) {
    assert_sound(profile);
    let stacks = profile.stacks();
    let glue = stacks
        .iter()
        .flat_map(|stack| &stack.frames)
        .find(|frame| frame.class.starts_with("libpython") && GLUE.contains(&frame.method));
    assert_eq!(glue, None);
    assert!(
        stacks
            .iter()
            .any(|stack| stack.has_in_order(&CHAIN) || stack.has_in_order(&CHAIN_STRIPPED)),
        "no stack has {CHAIN:?} from root to leaf"
    );
    for callback in ["endstone_market.plugin.Market.fill_placeholder", "json.decoder"] {
        assert!(
            stacks.iter().any(|stack| stack.has(callback)),
            "no stack has {callback}"
        );
    }
    assert!(
        stacks.iter().any(|stack| stack.has("[Python] endstone_quests.")),
        "the second plugin is missing"
    );

    let placed = figure(profile, "Python attribution", "frames placed");
    let missed = figure(profile, "Python attribution", "frames without native frame");
    assert!(placed > 500.0, "{placed} Python frames placed");
    assert!(
        missed <= placed * 0.001,
        "{missed} of {placed} Python frames have no native frame"
    );
    let samples = figure(profile, "Sampling", "samples");
    let ends = &profile.extra("Sampling").unwrap()["native stacks by how they end"];
    let rooted = ends["root"].as_f64().unwrap();
    let lost: Vec<String> = stacks
        .iter()
        .filter(|stack| stack.has("callers not found"))
        .map(|stack| {
            let frames = stack.frames.iter();
            let names: Vec<String> = frames
                .map(|frame| format!("{}.{}", frame.class, frame.method))
                .collect();
            names.join(" < ")
        })
        .collect();
    // One in a thousand, and what chance makes of that in some seconds: three standard deviations.
    let expected = samples * 0.001;
    let limit = expected + 3.0 * expected.sqrt();
    assert!(
        samples - rooted <= limit,
        "{rooted} of {samples} stacks reach their root: {ends}, {lost:#?}"
    );
}

/// Python time is no more than what the sample plugins take, and every Python frame stands below Endstone's runtime or a thread's start.
fn on_version(version: PythonVersion) {
    let _alone = alone();
    let lab = lab();
    let Some(python) = python(&lab, version) else { return };
    let mut server = lab.server(&python).samples().unwrap().start_ready().unwrap();
    let before = server.ask("!tools", "!tools").unwrap();
    let profile = profile_for(&mut server, "", TIME);
    let with_interpreter = profile_for(&mut server, "--show-interpreter", Duration::from_secs(3));
    assert_sound(&with_interpreter);
    let (hidden, shown) = (interpreter_frames(&profile), interpreter_frames(&with_interpreter));
    assert!(
        shown > 1.5 * hidden,
        "{shown:.2} with the interpreter shown, {hidden:.2} without"
    );
    assert_eq!(
        server.ask("!tools", "!tools").unwrap(),
        before,
        "the monitoring tool is free again"
    );
    server.stop_cleanly().unwrap();
    assert_merged(&profile);
}

#[test]
fn python_frames_stand_between_native_ones_on_3_12() {
    on_version(PythonVersion::V3_12);
}

#[test]
fn python_frames_stand_between_native_ones_on_3_13() {
    on_version(PythonVersion::V3_13);
}

#[test]
fn python_frames_stand_between_native_ones_on_3_14() {
    on_version(PythonVersion::V3_14);
}

#[test]
fn python_frames_stand_between_native_ones_on_3_15() {
    on_version(PythonVersion::V3_15);
}

#[test]
fn python_3_11_is_profiled_natively_and_says_why() {
    let _beside = beside();
    let lab = lab();
    let Some(python) = python(&lab, PythonVersion::V3_11) else {
        return;
    };
    let mut server = lab.server(&python).samples().unwrap().start_ready().unwrap();
    let answer = super::start(&mut server, "");
    assert!(
        answer.contains("native frames only") && answer.contains("needs CPython 3.12 or newer"),
        "{answer}"
    );
    let info = server.ask("spark profiler info", "Python 3.11").unwrap();
    assert!(info.contains("needs CPython 3.12 or newer"), "{info}");
    server.run_for(Duration::from_secs(4)).unwrap();
    let profile = super::stop(&mut server);
    server.stop_cleanly().unwrap();
    assert_sound(&profile);
    assert!(profile.stacks().iter().all(|stack| !stack.has("[Python]")));
    assert!(
        profile.share_of(|stack| stack.has("libpython")) > 0.02,
        "the interpreter's native frames are there"
    );
    let said = profile.extra("Python attribution").unwrap().to_string();
    assert!(said.contains("needs CPython 3.12 or newer"), "{said}");
}

#[test]
fn a_server_without_python_is_profiled_natively() {
    let _alone = alone();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab.server(&python).arg("--no-python").start_ready().unwrap();
    super::start(&mut server, "");
    server.run_for(Duration::from_secs(2)).unwrap();
    let profile = super::stop(&mut server);
    server.stop_cleanly().unwrap();
    assert_sound(&profile);
    assert!(profile.share_of(|stack| stack.has("bedrock_server.Level::tick")) > 0.4);
}
