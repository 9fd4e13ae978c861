//! The plugins view: whose time it is.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use harness::{Profile, Server};

use super::{alone, assert_sound, lab, start, stop};

/// Sample plugins with what they say of themselves.
const PLUGINS: [(&str, &str, &str); 4] = [
    (
        "archive",
        "0.9.0",
        "Leaves its work to the standard library and to a dependency",
    ),
    ("bakery", "1.0.3", "Bakes in functions of its own"),
    ("census", "3.2.1", "Leaves its work to C functions that call it back"),
    ("quarry", "2.1.0", "Digs for a while every tick"),
];

/// Finds the native plugin's own count in the process.
const QUARRY_SECONDS: &str = "(lambda c, p: c.c_uint64.in_dll(c.CDLL(p), 'QUARRY_SPENT_NANOS').value / 1e9)(__import__('ctypes'), \
                              next(line.split()[-1] for line in open('/proc/self/maps') if 'quarry' in line))";

/// Seconds that each plugin has spent so far, as it measures itself.
fn spent(server: &mut Server) -> BTreeMap<&'static str, f64> {
    let measured = |(plugin, ..): (&'static str, &str, &str)| {
        let expression = match plugin {
            "quarry" => QUARRY_SECONDS.to_owned(),
            _ => format!("__import__('sys').modules['endstone_{plugin}.plugin'].spent"),
        };
        let answer = server.ask(&format!("!python {expression}"), "!python").unwrap();
        let seconds = answer.split_whitespace().last().unwrap().parse();
        (plugin, seconds.unwrap_or_else(|_| panic!("{plugin}: {answer}")))
    };
    PLUGINS.map(measured).into_iter().collect()
}

#[test]
fn each_plugins_share_is_what_it_took() {
    let _alone = alone();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut builder = lab
        .server(&python)
        .arg("--load")
        .arg("entities=20")
        .plugin(lab.native_plugin().unwrap());
    for plugin in ["archive", "bakery", "census"] {
        builder = builder.plugin(
            lab.python_plugin(&lab.root().join("tests/shares").join(plugin))
                .unwrap(),
        );
    }
    let mut server = builder.start_ready().unwrap();
    start(&mut server, "");
    let (before, begun) = (spent(&mut server), Instant::now());
    server.run_for(Duration::from_secs(15)).unwrap();
    let (after, seconds) = (spent(&mut server), begun.elapsed().as_secs_f64());
    let profile = stop(&mut server);
    server.stop_cleanly().unwrap();
    assert_sound(&profile);

    let found: BTreeMap<String, f64> = profile.plugins().into_iter().collect();
    for (plugin, version, description) in PLUGINS {
        let share = 100.0 * found.get(plugin).copied().unwrap_or(0.0);
        let known = 100.0 * (after[plugin] - before[plugin]) / seconds;
        println!("{plugin}: found {share:.2} %, took {known:.2} %");
        assert!(known > 4.0, "{plugin} took {known:.2} %: it did not work");
        assert!(
            (share - known).abs() <= 2.0,
            "{plugin}: found {share:.2} %, took {known:.2} %"
        );
        let source = &profile.metadata().unwrap().sources[plugin];
        assert_eq!(
            (
                source.name.as_str(),
                source.version.as_str(),
                source.description.as_str()
            ),
            (plugin, version, description)
        );
        assert!(source.author.contains("Endstone Spark"), "{source:?}");
    }
    let known = ["archive", "bakery", "census", "quarry", "spark"];
    assert!(found.keys().all(|plugin| known.contains(&plugin.as_str())), "{found:?}");
    frames_belong_to_plugins(&profile);
}

/// Own frames have a source; what they call has none and stands below them.
fn frames_belong_to_plugins(profile: &Profile) {
    let sources = &profile.data().class_sources;
    let class = |class: &str| sources.get(class).map(String::as_str);
    assert_eq!(class("quarry"), Some("quarry"), "{sources:?}");
    assert_eq!(class("[Python] endstone_bakery.plugin"), Some("bakery"), "{sources:?}");
    assert_eq!(class("[Python] endstone_census.plugin"), Some("census"), "{sources:?}");
    for foreign in [
        "[Python] json",
        "[Python] json.encoder",
        "[Python] numpy",
        "bedrock_server",
    ] {
        assert_eq!(class(foreign), None, "{sources:?}");
    }
    let stacks = profile.stacks();
    for chain in [
        [
            "[Python] endstone_archive.plugin.Archive.file_records",
            "[Python] json.dumps",
        ],
        ["[Python] endstone_archive.plugin.Archive.file_records", "numpy"],
        [
            "[Python] endstone_bakery.plugin.Bakery.knead",
            "[Python] endstone_bakery.plugin.fold",
        ],
        [
            "[Python] endstone_census.plugin.Census.count_people",
            "[Python] endstone_census.plugin.age",
        ],
        ["quarry.quarry::work", "quarry.quarry::dig"],
    ] {
        assert!(
            stacks.iter().any(|stack| stack.has_in_order(&chain)),
            "no stack has {chain:?}"
        );
    }
}
