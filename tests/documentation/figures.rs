//! Every key of the extra metadata and every field of the messages is in docs/metadata.md, and nothing else.

use std::collections::BTreeSet;
use std::sync::Arc;

use endstone_spark::export::pb::SamplerData;
use endstone_spark::export::{
    self, Creator, NativeNames, ProfileMetadata, ServerReport, ShownStall, StallReport, ThreadSelection,
};
use endstone_spark::model::{
    BuildId, CollectionTimes, DimensionCensus, Generation, Interpreter, Module, ModuleId, MonotonicNanos,
    PythonDiagnostics, PythonState, RecoveryFigures, SamplerDiagnostics, Statistics, ThreadKey, TickFigures, Tid, View,
    WallMillis, World, build,
};
use endstone_spark::profile::{FrameKey, MergeStats, Snapshot, ThreadProfile, Tree, WindowClock};
use prost::Message;
use serde_json::Value;

use super::page::{files, quoted, read, rows};

/// A module that has no names.
struct Nameless;

impl NativeNames for Nameless {
    fn function(&mut self, _: &Module, _: u64) -> Option<String> {
        None
    }

    fn function_start(&mut self, _: &Module, _: u64) -> Option<u64> {
        None
    }

    fn problem(&self, _: &Module) -> Option<String> {
        Some("it is not a file".to_owned())
    }
}

fn server() -> ServerReport {
    ServerReport {
        statistics: Some(Statistics::default()),
        world: Some(World {
            players: 1,
            dimensions: vec![DimensionCensus {
                name: "<dimension>".to_owned(),
                entities_left_out: 1,
                ..DimensionCensus::default()
            }],
        }),
        world_problem: Some("nobody answers"),
        python: Some(Interpreter {
            threads: Some(1),
            collects: Some(true),
            generations: vec![Generation {
                times: Some(CollectionTimes::default()),
                ..Generation::default()
            }],
            problem: Some("it is busy".to_owned()),
            ..Interpreter::default()
        }),
        ..ServerReport::default()
    }
}

/// Metadata in which everything is there that ever is.
fn metadata() -> ProfileMetadata {
    ProfileMetadata {
        creator: Creator::Console,
        started: WallMillis(0),
        ended: WallMillis(1_000),
        interval_micros: 4_000,
        ticks: 20,
        comment: String::new(),
        server: server(),
        selection: ThreadSelection::All,
        view: View::default(),
        ignore_sleeping: true,
        server_sha256: Some("0".to_owned()),
        slow_ticks: Some((60_000, TickFigures::default())),
        stalls: StallReport {
            count: 1,
            newest: vec![ShownStall {
                began_millis: 0,
                millis: 5_000,
                is_over: true,
            }],
        },
        sources: Vec::new(),
        sampler: SamplerDiagnostics::default(),
        merge: MergeStats::default(),
        python: PythonDiagnostics {
            state: PythonState::Degraded("somebody took a callback".to_owned()),
            version: "3.13.0".to_owned(),
            implementation: "CPython".to_owned(),
            swapping_threads: 1,
            swapping: vec!["worker".to_owned()],
            subinterpreters: 1,
            ..PythonDiagnostics::default()
        },
        recovery: Some(RecoveryFigures::default()),
    }
}

/// A second of one function of one module.
fn snapshot() -> Snapshot {
    let module = ModuleId::new(1);
    let mut tree = Tree::new();
    tree.add(&[FrameKey::Native { module, rva: 16 }], 0, 1_000_000_000);
    Snapshot {
        threads: vec![ThreadProfile {
            key: ThreadKey {
                tid: Tid::new(1),
                serial: 0,
            },
            name: "MC_SERVER".to_owned(),
            tree,
            members: 1,
            alone: true,
        }],
        clock: WindowClock::new(MonotonicNanos(0), WallMillis(0)),
        first_window: 0,
        windows: Vec::new(),
        modules: vec![Arc::new(Module {
            id: module,
            path: "/srv/<module>".into(),
            avma: 0..4_096,
            base_svma: 0,
            build_id: BuildId::new(&[1; 20]),
            device: 0,
            inode: 0,
        })],
        codes: Vec::new(),
    }
}

/// Adds the paths of all keys below a value. A list of objects is as one of them.
fn keys(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                keys(value, &format!("{path} / {key}"), found);
            }
        }
        Value::Array(values) if values.iter().any(Value::is_object) => {
            values.iter().for_each(|value| keys(value, path, found));
        }
        _ => {
            found.insert(path.to_owned());
        }
    }
}

/// What stands in the first cells of the tables with this head, each below the heading it stands under.
fn documented(heading: &str, head: &str) -> BTreeSet<String> {
    let page = read("docs/metadata.md");
    let mut found = BTreeSet::new();
    for section in page.split(&format!("\n{heading} `")).skip(1) {
        let (name, rest) = section.split_once('`').unwrap();
        let end = rest.find("\n#").unwrap_or(rest.len());
        for row in rows(&rest[..end], head) {
            let names = quoted(row[0]);
            assert!(!names.is_empty() && row.len() == 3, "{row:?}");
            for key in names {
                assert!(
                    found.insert(format!("{name} / {key}")),
                    "{name}: {key} stands there twice"
                );
            }
        }
    }
    found
}

#[test]
fn every_group_and_key_of_the_extra_metadata_is_documented_and_no_other() {
    build::set_build_id("00".to_owned());
    let profile = export::encode(&snapshot(), &mut Nameless, &metadata());
    let mut bytes = Vec::new();
    export::write(&profile, &mut bytes).unwrap();
    let groups = SamplerData::decode(&bytes[..])
        .unwrap()
        .metadata
        .unwrap()
        .extra_platform_metadata;
    let mut written = BTreeSet::new();
    for (group, text) in &groups {
        keys(&serde_json::from_str(text).unwrap(), group, &mut written);
    }
    assert!(written.contains("Native modules / <module> / build id"), "{written:?}");
    if build::COMMIT.is_none() {
        written.insert("Sampling / profiler commit".to_owned());
    }
    let documented = documented("##", "| key |");
    let missing: Vec<_> = written.difference(&documented).collect();
    let too_much: Vec<_> = documented.difference(&written).collect();
    assert!(
        missing.is_empty() && too_much.is_empty(),
        "not documented: {missing:#?}, not written: {too_much:#?}"
    );
    let privacy = read("docs/privacy.md");
    for group in groups.keys() {
        assert!(privacy.contains(&format!("| `{group}` |")), "docs/privacy.md: {group}");
    }
}

/// Every field of every message in a file of `proto/`: the outermost message, then the inner ones and the field.
fn fields(proto: &str, found: &mut BTreeSet<String>) {
    let mut messages: Vec<&str> = Vec::new();
    for line in proto.lines().map(str::trim) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["message" | "enum", name, "{"] => messages.push(name),
            ["}"] => {
                messages.pop();
            }
            [.., name, "=", number] if number.ends_with(';') && words.len() > 3 && !messages.is_empty() => {
                let (outer, inner) = messages.split_first().unwrap();
                let path: Vec<&str> = inner.iter().copied().chain([name]).collect();
                found.insert(format!("{outer} / {}", path.join(".")));
            }
            _ => {}
        }
    }
}

#[test]
fn every_field_of_the_messages_is_documented_and_no_other() {
    let mut written = BTreeSet::new();
    for file in files("proto", "proto") {
        fields(&read(&file), &mut written);
    }
    assert!(
        written.contains("PlatformStatistics / Memory.MemoryUsage.used"),
        "{written:?}"
    );
    let documented = documented("###", "| field |");
    let missing: Vec<_> = written.difference(&documented).collect();
    let too_much: Vec<_> = documented.difference(&written).collect();
    assert!(
        missing.is_empty() && too_much.is_empty(),
        "not documented: {missing:#?}, no fields: {too_much:#?}"
    );
}
