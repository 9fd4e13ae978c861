use std::path::Path;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;

use super::*;
use crate::export::Source;
use crate::export::test_support::{Names, code, metadata, module, native, python, snapshot, thread};
use crate::export::viewer_rules::violations;
use crate::limits::EXPORT_DEPTH;
use crate::model::{Category, CodeId, CodeInfo, Module, StackEnd};
use crate::profile::{FrameKey, Tree, WindowStats};

/// Functions are 16 bytes long: `f1` is at 0x10 to 0x1f. Module 2 has no names from 0x100 on.
fn names(module: &Module, rva: u64) -> Option<String> {
    match (module.id.get(), rva) {
        (2, 0x10..0x20) => Some("_PyEval_Vector".to_owned()),
        (2, 0x20..0x30) => Some("list_sort".to_owned()),
        (2, 0x100..) => None,
        _ => Some(format!("f{}", rva / 16)),
    }
}

fn sample() -> Snapshot {
    let mut snapshot = snapshot();
    snapshot.modules = vec![
        Arc::new(module(1, "/srv/bedrock_server")),
        Arc::new(module(2, "/usr/lib/libpython3.13.so.1.0")),
        Arc::new(module(3, "/srv/plugins/.local/native_plugin-0123456789abcdef.so")),
    ];
    snapshot.codes = vec![
        (CodeId::new(1), plugin("my_plugin.main", "MyPlugin.on_tick")),
        (CodeId::new(2), code("json", "loads", "json/__init__.py", 299)),
        (CodeId::new(3), plugin("my_plugin.main", "key")),
    ];
    let mut tree = Tree::new();
    let tick = [native(1, 0x10), native(1, 0x24), native(1, 0x28)];
    let mut stack = |rest: &[FrameKey], window: u32, millis: u64| {
        let path: Vec<FrameKey> = tick.iter().chain(rest).copied().collect();
        tree.add(&path, window, millis * 1_000_000);
    };
    stack(&[], 0, 100);
    stack(&[python(1)], 0, 20);
    stack(
        &[python(1), native(2, 0x14), native(2, 0x24), native(2, 0x18), python(3)],
        0,
        30,
    );
    stack(&[python(1), native(2, 0x1c), python(2)], 1, 40);
    stack(&[python(1), native(2, 0x1c)], 1, 2);
    stack(&[native(3, 0x44)], 1, 8);
    stack(&[native(2, 0x104)], 1, 1);
    stack(&[native(2, 0x1f0)], 1, 2);
    tree.add(
        &[FrameKey::Ended(StackEnd::NoUnwindData), native(1, 0x90)],
        1,
        3_000_000,
    );
    snapshot.threads = vec![thread("bedrock_server", 0, tree)];
    for n in 1..=2 {
        let mut tree = Tree::new();
        tree.add(&[native(1, 0x70)], 0, 5_000_000 * u64::from(n));
        snapshot.threads.push(thread(&format!("pool-{n}"), n, tree));
    }
    snapshot.windows.push(WindowStats {
        ticks: 600,
        tps: 20.0,
        mspt_median: 13.0,
        mspt_max: 70.0,
        duration_millis: 30_000,
        ..WindowStats::default()
    });
    snapshot
}

fn plugin(module: &str, name: &str) -> CodeInfo {
    CodeInfo {
        category: Category::Plugin,
        plugin: Some("my_plugin".to_owned()),
        ..code(module, name, "plugins/my_plugin/main.py", 10)
    }
}

fn encoded(snapshot: &Snapshot, metadata: &ProfileMetadata) -> pb::SamplerData {
    decoded(&encode(snapshot, &mut Names(names), metadata))
}

/// What prost reads of the bytes that are written. They are those that it would write itself.
fn decoded(profile: &Profile) -> pb::SamplerData {
    let bytes = bytes(profile);
    let data = pb::SamplerData::decode(&bytes[..]).unwrap();
    assert!(data.encode_to_vec() == bytes, "not as prost writes it");
    data
}

fn bytes(profile: &Profile) -> Vec<u8> {
    let mut bytes = Vec::new();
    crate::export::write(profile, &mut bytes).unwrap();
    bytes
}

/// The profile opens in the viewer. With `SPARK_KEEP_PROFILES=FOLDER` it is left there under this name, for whoever wants to see it.
fn assert_opens(name: &str, profile: &Profile) -> pb::SamplerData {
    let data = decoded(profile);
    assert_eq!(violations(&data), Vec::<String>::new());
    if let Some(folder) = std::env::var_os("SPARK_KEEP_PROFILES") {
        let path = Path::new(&folder).join(format!("{name}.sparkprofile"));
        std::fs::write(path, bytes(profile)).unwrap();
    }
    data
}

/// The tree as indented lines with milliseconds per window.
fn text(data: &pb::SamplerData) -> String {
    let mut out = String::new();
    for thread in &data.threads {
        out += &format!("{} {:?}\n", thread.name, thread.times);
        let mut todo: Vec<(i32, usize)> = thread.children_refs.iter().rev().map(|child| (*child, 1)).collect();
        while let Some((index, depth)) = todo.pop() {
            let node = &thread.children[index as usize];
            out += &format!(
                "{}{}.{} {:?}\n",
                "  ".repeat(depth),
                node.class_name,
                node.method_name,
                node.times
            );
            todo.extend(node.children_refs.iter().rev().map(|child| (*child, depth + 1)));
        }
    }
    out
}

#[test]
fn the_tree_reads_as_a_server_owner_expects() {
    let expected = "\
bedrock_server [150.0, 56.0]
  bedrock_server.f1 [150.0, 53.0]
    bedrock_server.f2 [150.0, 53.0]
      bedrock_server.f2 [150.0, 53.0]
        [Python] my_plugin.main.MyPlugin.on_tick [50.0, 42.0]
          [Python] json.loads [0.0, 40.0]
          libpython3_13.list_sort [30.0, 0.0]
            [Python] my_plugin.main.key [30.0, 0.0]
        libpython3_13.libpython3_13+0x100 [0.0, 3.0]
        native_plugin.f4 [0.0, 8.0]
  native.callers not found: no unwind data [0.0, 3.0]
    bedrock_server.f9 [0.0, 3.0]
pool-# (2 threads) [15.0, 0.0]
  bedrock_server.f7 [15.0, 0.0]
";
    let profile = encode(&sample(), &mut Names(names), &metadata());
    assert_eq!(text(&assert_opens("two windows", &profile)), expected);
}

/// What is left of a session on CPython 3.11.
#[test]
fn one_thread_without_python_in_one_window_is_whole() {
    let mut snapshot = snapshot();
    snapshot.modules = sample().modules;
    let mut tree = Tree::new();
    tree.add(&[native(1, 0x10), native(2, 0x104), native(3, 0x44)], 0, 9_000_000);
    snapshot.threads = vec![thread("bedrock_server", 0, tree)];
    let mut metadata = metadata();
    metadata.python.state = crate::model::PythonState::Unsupported("Python attribution needs 3.12".to_owned());
    metadata.python.version = "3.11.7".to_owned();
    let data = assert_opens(
        "one thread, one window, CPython 3.11",
        &encode(&snapshot, &mut Names(names), &metadata),
    );
    assert_eq!((data.threads.len(), data.time_windows.len()), (1, 1));
    assert!(data.metadata.unwrap().extra_platform_metadata["Python attribution"].contains("needs 3.12"));
}

#[test]
fn the_interpreter_is_shown_on_request() {
    let mut metadata = metadata();
    metadata.view.show_interpreter = true;
    let text = text(&encoded(&sample(), &metadata));
    assert_eq!(text.matches("libpython3_13._PyEval_Vector").count(), 2, "{text}");
    assert!(text.contains("libpython3_13._PyEval_Vector [30.0, 42.0]"), "{text}");
}

/// One thread with these stacks below a function of the server, each so many milliseconds long.
fn of_stacks(stacks: &[(&[FrameKey], u64)]) -> Snapshot {
    let mut snapshot = sample();
    let mut tree = Tree::new();
    for (frames, millis) in stacks {
        let path: Vec<FrameKey> = std::iter::once(&native(1, 0x10)).chain(*frames).copied().collect();
        tree.add(&path, 0, millis * 1_000_000);
    }
    snapshot.threads = vec![thread("bedrock_server", 0, tree)];
    snapshot
}

/// Address 0x130 of the interpreter has no name; what it calls runs Python.
#[test]
fn what_calls_python_frames_is_glue_without_a_name() {
    let eval = FrameKey::Eval {
        module: crate::model::ModuleId::new(2),
        rva: 0x150,
    };
    let snapshot = of_stacks(&[
        (&[native(2, 0x130), python(1)], 1),
        (&[native(2, 0x130), eval], 2),
        (&[native(2, 0x170), eval], 3),
        (&[native(2, 0x160), native(2, 0x150)], 4),
    ]);
    let hidden = "\
bedrock_server [10.0, 0.0]
  bedrock_server.f1 [10.0, 0.0]
    [Python] my_plugin.main.MyPlugin.on_tick [1.0, 0.0]
    libpython3_13.libpython3_13+0x100 [4.0, 0.0]
      libpython3_13.libpython3_13+0x100 [4.0, 0.0]
";
    assert_eq!(text(&encoded(&snapshot, &metadata())), hidden);
    let mut metadata = metadata();
    metadata.view.show_interpreter = true;
    let shown = text(&encoded(&snapshot, &metadata));
    assert!(
        shown.contains("libpython3_13.libpython3_13+0x100 [10.0, 0.0]"),
        "{shown}"
    );
}

/// Function 0x200 has no name. Once it is seen alone between the interpreter's call functions, called from outside, and a Python frame.
#[test]
fn a_nameless_function_that_only_carries_calls_is_glue_everywhere() {
    let [call, carrying, again, carrier] = [0x14, 0x230, 0x240, 0x140].map(|rva| native(2, rva));
    // It works, and calls Python: nothing tells that it does nothing else.
    let worker = native(2, 0x310);
    let plugin = [call, carrying, carrier, python(1)];
    let snapshot = of_stacks(&[
        (&plugin, 1),
        (&[&plugin[..], &[worker, again, carrier, python(3)]].concat(), 2),
        (&[&plugin[..], &[worker, carrier, python(3)]].concat(), 4),
    ]);
    let expected = "\
bedrock_server [7.0, 0.0]
  bedrock_server.f1 [7.0, 0.0]
    [Python] my_plugin.main.MyPlugin.on_tick [7.0, 0.0]
      libpython3_13.libpython3_13+0x300 [6.0, 0.0]
        [Python] my_plugin.main.key [6.0, 0.0]
";
    assert_eq!(text(&encoded(&snapshot, &metadata())), expected);
}

#[test]
fn windows_are_contiguous_minutes_with_figures() {
    let mut snapshot = sample();
    snapshot.threads[0].tree.add(&[native(1, 0x10)], 4, 1_000_000);
    let data = encoded(&snapshot, &metadata());
    let first = (1_790_000_800_000_i64 / 60_000) as i32;
    assert_eq!(data.time_windows, (first..first + 5).collect::<Vec<i32>>());
    assert!(
        data.time_windows
            .iter()
            .all(|window| data.time_window_statistics.contains_key(window))
    );
    assert_eq!(data.time_window_statistics[&(first + 1)].ticks, 600);
    assert_eq!(data.time_window_statistics[&(first + 1)].start_time, 1_790_000_860_000);
    assert_eq!(violations(&data), Vec::<String>::new());
}

#[test]
fn plugins_own_their_frames() {
    let mut metadata = metadata();
    metadata.sources = vec![
        Source {
            name: "My_Plugin".to_owned(),
            version: "1.2".to_owned(),
            ..Source::default()
        },
        Source {
            name: "NativePlugin".to_owned(),
            native_stem: Some("native_plugin".to_owned()),
            ..Source::default()
        },
    ];
    let data = encoded(&sample(), &metadata);
    let classes: Vec<(&str, &str)> = data
        .class_sources
        .iter()
        .map(|(class, plugin)| (class.as_str(), plugin.as_str()))
        .collect();
    assert_eq!(
        classes,
        [
            ("[Python] my_plugin.main", "My_Plugin"),
            ("native_plugin", "NativePlugin")
        ]
    );
    assert!(data.method_sources.is_empty());
    let sources = &data.metadata.as_ref().unwrap().sources;
    assert_eq!(sources["my_plugin"].version, "1.2");
    assert_eq!(sources["nativeplugin"].version, "unknown");
    assert_eq!(violations(&data), Vec::<String>::new());
}

#[test]
fn threads_group_as_asked() {
    let mut metadata = metadata();
    let names = |metadata: &ProfileMetadata| -> Vec<String> {
        encoded(&sample(), metadata)
            .threads
            .into_iter()
            .map(|thread| thread.name)
            .collect()
    };
    metadata.view.grouping = Grouping::Separate;
    assert_eq!(names(&metadata), ["bedrock_server", "pool-1", "pool-2"]);
    metadata.view.grouping = Grouping::AllInOne;
    assert_eq!(names(&metadata), ["All"]);
    let total: f64 = encoded(&sample(), &metadata).threads[0].times.iter().sum();
    assert_eq!(total, 150.0 + 56.0 + 15.0);
}

#[test]
fn threads_of_one_name_are_told_apart() {
    let mut snapshot = snapshot();
    snapshot.threads = (0..3).map(|n| thread("worker", n, Tree::new())).collect();
    let mut metadata = metadata();
    metadata.view.grouping = Grouping::Separate;
    let names: Vec<String> = encoded(&snapshot, &metadata)
        .threads
        .into_iter()
        .map(|thread| thread.name)
        .collect();
    assert_eq!(names, ["worker", "worker #2", "worker #3"]);
}

#[test]
fn deep_stacks_lose_their_middle_and_no_time() {
    let mut snapshot = sample();
    let mut tree = Tree::new();
    let recursion = |depth: usize| -> Vec<FrameKey> {
        let mut path = vec![native(1, 0x10)];
        path.extend(std::iter::repeat_n(python(1), depth - 2));
        path.push(python(2));
        path
    };
    tree.add(&recursion(EXPORT_DEPTH), 0, 1_000_000);
    for depth in [400, 420, 427] {
        tree.add(&recursion(depth), 0, 10_000_000);
    }
    snapshot.threads = vec![thread("deep", 0, tree)];
    let data = encoded(&snapshot, &metadata());
    assert_eq!(violations(&data), Vec::<String>::new());
    assert_eq!(data.threads[0].times, [31.0, 0.0]);
    // 101 to 128 missing frames: two counts, so two branches and the one that was not cut.
    let text = text(&data);
    assert!(
        text.contains("[spark].64 to 127 frames left out: the stack is too deep for the viewer [20.0, 0.0]"),
        "{text}"
    );
    assert!(
        text.contains("[spark].128 to 255 frames left out: the stack is too deep for the viewer [10.0, 0.0]"),
        "{text}"
    );
    assert_eq!(text.matches("[Python] json.loads").count(), 3);
}

#[test]
fn an_empty_profile_is_whole() {
    let data = encoded(&snapshot(), &metadata());
    assert_eq!(data.time_windows.len(), 1);
    assert!(data.threads.is_empty());
    assert_eq!(violations(&data), Vec::<String>::new());
}

#[test]
fn a_thread_without_samples_is_shown_with_no_time() {
    let mut snapshot = snapshot();
    snapshot.threads = vec![thread("bedrock_server", 0, Tree::new())];
    let data = assert_opens("no samples", &encode(&snapshot, &mut Names(names), &metadata()));
    assert_eq!(data.threads[0].times, [0.0]);
}

#[test]
fn ninety_windows_and_fifty_threads_hold_together() {
    let mut snapshot = sample();
    for n in 0..50 {
        let mut tree = Tree::new();
        for window in 0..90 {
            tree.add(
                &[native(1, 0x10), native(1, 0x10 * u64::from(window + 2))],
                window,
                1_000_000,
            );
        }
        snapshot.threads.push(thread(
            &format!("worker {}", ['a', 'b', 'c'][n as usize % 3]),
            10 + n,
            tree,
        ));
    }
    let mut metadata = metadata();
    metadata.view.grouping = Grouping::Separate;
    let profile = encode(&snapshot, &mut Names(names), &metadata);
    let data = assert_opens("53 threads, 90 windows", &profile);
    assert_eq!((data.time_windows.len(), data.threads.len()), (90, 53));
}

#[test]
fn names_of_a_megabyte_and_stacks_of_five_thousand_frames_are_cut() {
    let mut snapshot = sample();
    let long = "name".repeat(1 << 18);
    snapshot.codes.push((CodeId::new(4), code(&long, &long, &long, 1)));
    let mut tree = Tree::new();
    let deep: Vec<FrameKey> = (0..5_000)
        .map(|frame| {
            if frame % 2 == 0 {
                python(4)
            } else {
                native(1, frame % 20 * 16)
            }
        })
        .collect();
    tree.add(&deep, 0, 3_000_000);
    tree.add(&deep[..EXPORT_DEPTH], 0, 2_000_000);
    snapshot.threads = vec![thread(&long, 0, tree)];
    let mut metadata = metadata();
    metadata.comment = long.clone();
    metadata.sources = vec![Source {
        name: "my_plugin".to_owned(),
        description: "a plugin".to_owned(),
        ..Source::default()
    }];
    let profile = encode(
        &snapshot,
        &mut Names(|_: &Module, _: u64| Some(long.clone())),
        &metadata,
    );
    let data = assert_opens("deep, names of a megabyte", &profile);
    assert_eq!(data.threads[0].times, [5.0, 0.0]);
}

#[test]
fn three_hundred_thousand_frames_hold_together() {
    let mut snapshot = sample();
    let mut tree = Tree::new();
    let mut nanos = 0;
    for stack in 0..60_000_u64 {
        // Five frames of its own below one of ten that are shared: 300,010.
        let path: Vec<FrameKey> = (0..6)
            .map(|depth| native(1, if depth == 0 { stack % 10 * 16 } else { stack * 16 }))
            .collect();
        tree.add(&path, (stack % 2) as u32, 1_000 + stack);
        nanos += 1_000 + stack;
    }
    assert!(tree.len() > 300_000);
    snapshot.threads = vec![thread("bedrock_server", 0, tree)];
    let mut profile = encode(&snapshot, &mut Names(names), &metadata());
    let data = assert_opens("300,000 frames", &profile);
    let total: f64 = data.threads[0].times.iter().sum();
    assert!((total - nanos as f64 / 1e6).abs() < 1e-6);

    assert!(crate::export::fold(&mut profile, 500_000) > 0);
    let folded = assert_opens("300,000 frames, folded", &profile);
    assert_eq!(folded.threads[0].times, data.threads[0].times);
}

/// Renewed with `SPARK_RENEW_GOLDEN=1 cargo test`.
#[test]
fn the_bytes_are_those_of_the_golden_file() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/sample.sparkprofile");
    let mut metadata = metadata();
    metadata.comment = "after the update".to_owned();
    let mut profile = encode(&sample(), &mut Names(names), &metadata);
    // The version changes with every release.
    let encoded_metadata = profile.rest.metadata.as_mut().unwrap();
    encoded_metadata.sampler_engine_version = "golden".to_owned();
    for value in encoded_metadata.extra_platform_metadata.values_mut() {
        *value = value.replace(env!("CARGO_PKG_VERSION"), "golden");
    }
    let bytes = bytes(&profile);
    if std::env::var_os("SPARK_RENEW_GOLDEN").is_some() {
        std::fs::create_dir_all(golden.parent().unwrap()).unwrap();
        std::fs::write(&golden, &bytes).unwrap();
    }
    let expected = std::fs::read(&golden).unwrap();
    assert!(
        bytes == expected,
        "differs from {}; renew it if the change is meant",
        golden.display()
    );
    assert_eq!(violations(&decoded(&profile)), Vec::<String>::new());
}

fn frame() -> impl Strategy<Value = FrameKey> {
    prop_oneof![
        6 => (1..4_u32, 0..0x120_u64).prop_map(|(module, rva)| native(module, rva)),
        3 => (0..5_u32).prop_map(python),
        1 => (1..9000_u32).prop_map(FrameKey::omitted),
        1 => (0..6_u8).prop_map(|end| FrameKey::Ended(StackEnd::from_number(end))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Self times add up to the thread's time, whatever is merged, hidden or cut, and the viewer's rules hold.
    #[test]
    fn any_tree_keeps_its_time(
        stacks in vec((vec(frame(), 0..20), prop_oneof![4 => Just(1_usize), 1 => 20..40_usize], 0..4_u32, 0..9_000_000_u64), 0..40),
        show_interpreter in any::<bool>(),
    ) {
        let mut snapshot = sample();
        let mut tree = Tree::new();
        let mut totals = [0_u64; 4];
        for (frames, repeat, window, nanos) in &stacks {
            let path: Vec<FrameKey> = std::iter::repeat_n(frames, *repeat).flatten().copied().collect();
            tree.add(&path, *window, *nanos);
            totals[*window as usize] += nanos;
        }
        snapshot.threads = vec![thread("t", 0, tree)];
        snapshot.windows.resize(4, WindowStats::default());
        let mut metadata = metadata();
        metadata.view.show_interpreter = show_interpreter;
        let mut profile = encode(&snapshot, &mut Names(names), &metadata);
        let data = decoded(&profile);
        prop_assert_eq!(violations(&data), Vec::<String>::new());
        let expected: Vec<f64> = totals.iter().map(|nanos| *nanos as f64 / 1e6).collect();
        prop_assert_eq!(&data.threads[0].times, &expected);
        prop_assert_eq!(encoded(&snapshot, &metadata).encode_to_vec(), data.encode_to_vec());

        // Nothing fits into this: as much is folded as can be.
        crate::export::fold(&mut profile, 1);
        let folded = decoded(&profile);
        prop_assert_eq!(violations(&folded), Vec::<String>::new());
        prop_assert_eq!(&folded.threads[0].times, &expected);
        prop_assert!(folded.threads[0].children.len() <= data.threads[0].children.len());
    }
}
