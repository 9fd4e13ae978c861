//! What a profile must not hold, and that what it holds is listed in docs/privacy.md.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use prost::Message;

use super::bytebin::{Bytebin, Mode};
use super::{ANSWER, SAVED, beside, lab, start};
use endstone_spark::export::pb;
use harness::Server;

const SECRET: &str = "hunter2-in-the-environment";
const PASSWORD: &str = "hunter2-in-server-properties";

/// The game's settings, with secrets in lines that are never shown and in lines that are.
fn properties() -> String {
    let secret = [
        "server-name",
        "level-name",
        "level-seed",
        "server-ip",
        "rcon.password",
        "gamemode",
        "max-threads",
    ];
    let secret: String = secret.iter().map(|name| format!("{name}={PASSWORD}\n")).collect();
    format!("{secret}difficulty=easy\nview-distance=12\nserver-port=29132\n")
}

/// All texts of a message, found by its wire format alone: a length-delimited field that is no valid message is a text, and one that is may be both.
fn texts(bytes: &[u8], found: &mut Vec<String>) -> bool {
    let mut rest = bytes;
    let mut inner = Vec::new();
    while !rest.is_empty() {
        let Ok(key) = prost::encoding::decode_varint(&mut rest) else {
            return false;
        };
        match key & 7 {
            0 => {
                if prost::encoding::decode_varint(&mut rest).is_err() {
                    return false;
                }
            }
            1 if rest.len() >= 8 => rest = &rest[8..],
            5 if rest.len() >= 4 => rest = &rest[4..],
            2 => {
                let Ok(length) = prost::encoding::decode_varint(&mut rest) else {
                    return false;
                };
                let Some((field, after)) = usize::try_from(length)
                    .ok()
                    .and_then(|length| rest.split_at_checked(length))
                else {
                    return false;
                };
                rest = after;
                texts(field, &mut inner);
                if let Ok(text) = std::str::from_utf8(field) {
                    inner.push(text.to_owned());
                }
            }
            _ => return false,
        }
    }
    found.append(&mut inner);
    true
}

/// Hardware addresses of this machine.
fn hardware_addresses() -> Vec<String> {
    let Ok(interfaces) = std::fs::read_dir("/sys/class/net") else {
        return Vec::new();
    };
    interfaces
        .filter_map(|interface| std::fs::read_to_string(interface.ok()?.path().join("address")).ok())
        .map(|address| address.trim().to_owned())
        .filter(|address| address.len() >= 17 && address.bytes().any(|byte| byte != b'0' && byte != b':'))
        .collect()
}

/// What must be said nowhere.
fn secrets(server: &Server) -> Vec<String> {
    let folder = server.dir().to_string_lossy().into_owned();
    let mut secrets = vec![SECRET.to_owned(), PASSWORD.to_owned(), folder];
    secrets.extend(
        std::env::var("HOME")
            .ok()
            .filter(|home| home.len() > 1)
            .map(|home| format!("{home}/")),
    );
    secrets.extend(hardware_addresses());
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    secrets.extend(Some(host.trim().to_owned()).filter(|name| name.len() > 5 && name != "localhost"));
    secrets
}

fn assert_silent(said: &[String], secrets: &[String]) {
    for text in said {
        for secret in secrets {
            assert!(!text.contains(secret.as_str()), "{secret:?} is in {text:?}");
        }
    }
}

#[test]
fn a_profile_holds_nothing_secret_and_nothing_that_is_not_listed() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab
        .server(&python)
        .samples()
        .unwrap()
        .env("SPARK_TEST_SECRET", SECRET)
        .file("server.properties", properties())
        .arg("--world")
        .arg("chunks=32,entities=20,players=2")
        .start_ready()
        .unwrap();
    start(&mut server, "--thread * --show-interpreter --comment hello");
    server.run_for(Duration::from_secs(4)).unwrap();
    let mark = server.command("spark profiler stop --save-to-file").unwrap();
    server.wait_for_since(mark, SAVED, ANSWER).unwrap();
    let path = server.profile_files().unwrap().pop().unwrap();
    let secrets = secrets(&server);
    // The folder goes with the server.
    let bytes = std::fs::read(path).unwrap();
    server.stop_cleanly().unwrap();

    let mut said = Vec::new();
    assert!(texts(&bytes, &mut said), "the profile is a message");
    assert!(said.iter().any(|text| text == "hello"), "the walk finds texts");
    assert_silent(&said, &secrets);

    let data = pb::SamplerData::decode(&bytes[..]).unwrap();
    let absolute = |text: &str| text.starts_with('/') || text.contains(" /") || text.contains("\"/");
    let frames = data.threads.iter().flat_map(|thread| &thread.children);
    for frame in frames {
        for text in [&frame.class_name, &frame.method_name, &frame.method_desc] {
            assert!(!absolute(text), "{frame:?}");
        }
    }
    assert!(
        data.threads
            .iter()
            .flat_map(|thread| &thread.children)
            .any(|frame| frame.method_desc == "site-packages/endstone_market/plugin.py"),
        "Python files are named from a known folder on"
    );
    let configurations = &data.metadata.as_ref().unwrap().server_configurations;
    assert_eq!(
        configurations.get("server.properties").map(String::as_str),
        Some(r#"{"difficulty":"easy","view-distance":12}"#)
    );
    listed(&data);
}

#[test]
fn a_health_report_holds_nothing_secret_and_nothing_that_is_not_listed() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let bytebin = Bytebin::start(Mode::Ok);
    let mut server = lab
        .server(&python)
        .samples()
        .unwrap()
        .env("SPARK_TEST_SECRET", SECRET)
        .file("server.properties", properties())
        .file(
            "plugins/spark/config.toml",
            format!("bytebinUrl = \"{}\"\n", bytebin.url),
        )
        .arg("--world")
        .arg("chunks=32,entities=20,players=2")
        .start_ready()
        .unwrap();
    server
        .ask("spark health --upload", "The health report is here")
        .unwrap();
    let mut secrets = secrets(&server);
    // Not even their names: a report says how many they are.
    secrets.push("Player0".to_owned());
    server.stop_cleanly().unwrap();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&bytebin.requests()[0].body[..])
        .read_to_end(&mut bytes)
        .unwrap();
    let mut said = Vec::new();
    assert!(texts(&bytes, &mut said), "the report is a message");
    assert!(
        said.iter().any(|text| text == "minecraft:zombie"),
        "the walk finds texts"
    );
    assert_silent(&said, &secrets);

    let data = pb::HealthData::decode(&bytes[..]).unwrap();
    let pb::HealthData {
        metadata,
        time_window_statistics: _,
    } = data;
    let pb::HealthMetadata {
        creator: _,
        platform_metadata: _,
        platform_statistics,
        system_statistics,
        generated_time: _,
        server_configurations: _,
        sources: _,
        extra_platform_metadata,
    } = metadata.unwrap();
    assert!(is_listed("generated_time"));
    platform_listed(&platform_statistics.unwrap());
    system_listed(&system_statistics.unwrap());
    groups_listed(&extra_platform_metadata);
}

/// Whether docs/privacy.md has it.
fn is_listed(name: &str) -> bool {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/privacy.md");
    std::fs::read_to_string(page).unwrap().contains(&format!("`{name}`"))
}

/// New fields of the messages do not compile here.
fn platform_listed(platform: &pb::PlatformStatistics) {
    let pb::PlatformStatistics {
        memory: _,
        uptime: _,
        tps: _,
        mspt: _,
        ping: _,
        player_count: _,
        world,
        online_mode: _,
    } = platform;
    let pb::WorldStatistics {
        total_entities: _,
        entity_counts: _,
        worlds,
    } = world.as_ref().unwrap();
    assert!(!worlds.is_empty());
    for world in worlds {
        // The game's names, not the owner's name of the world.
        assert!(
            ["Overworld", "Nether", "TheEnd"].contains(&world.name.as_str()),
            "{}",
            world.name
        );
    }
    assert!(is_listed("platform_statistics"));
}

fn system_listed(system: &pb::SystemStatistics) {
    let pb::SystemStatistics {
        cpu: _,
        memory: _,
        disk: _,
        os: _,
        java,
        uptime: _,
        net: _,
        jvm,
    } = system;
    assert!(jvm.is_none());
    assert_eq!(java.as_ref().unwrap().vm_args, "", "no command line");
    assert!(is_listed("system_statistics"));
}

fn groups_listed(groups: &BTreeMap<String, String>) {
    for (group, value) in groups {
        assert!(is_listed(group), "{group} is not in docs/privacy.md");
        assert!(!value.contains("\"/"), "{group}: {value}");
    }
}

/// Every field that is filled is in docs/privacy.md. New fields of the messages do not compile here.
fn listed(data: &pb::SamplerData) {
    let pb::SamplerData {
        metadata,
        threads: _,
        class_sources: _,
        method_sources: _,
        line_sources,
        time_windows: _,
        time_window_statistics: _,
        channel_info,
    } = data;
    assert!(line_sources.is_empty() && channel_info.is_none());
    for name in [
        "class_sources",
        "method_sources",
        "time_windows",
        "time_window_statistics",
    ] {
        assert!(is_listed(name), "{name}");
    }
    let pb::SamplerMetadata {
        creator: _,
        start_time: _,
        interval: _,
        thread_dumper: _,
        data_aggregator: _,
        comment: _,
        platform_metadata: _,
        platform_statistics,
        system_statistics,
        server_configurations: _,
        end_time: _,
        number_of_ticks: _,
        sources: _,
        extra_platform_metadata,
        sampler_mode: _,
        sampler_engine: _,
        sampler_engine_version: _,
    } = metadata.as_ref().unwrap();
    platform_listed(platform_statistics.as_ref().unwrap());
    system_listed(system_statistics.as_ref().unwrap());
    groups_listed(extra_platform_metadata);
    for name in [
        "creator",
        "start_time",
        "interval",
        "thread_dumper",
        "data_aggregator",
        "comment",
        "platform_metadata",
        "platform_statistics",
        "system_statistics",
        "server_configurations",
        "end_time",
        "number_of_ticks",
        "sources",
        "extra_platform_metadata",
        "sampler_mode",
        "sampler_engine",
        "sampler_engine_version",
    ] {
        assert!(is_listed(name), "{name}");
    }
}
