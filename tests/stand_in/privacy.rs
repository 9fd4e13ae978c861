//! What a profile must not hold, and that what it holds is listed in docs/privacy.md.

use std::path::Path;
use std::time::Duration;

use prost::Message;

use super::{ANSWER, SAVED, alone, lab, start};
use endstone_spark::export::pb;

const SECRET: &str = "hunter2-in-the-environment";
const PASSWORD: &str = "hunter2-in-server-properties";

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

#[test]
fn a_profile_holds_nothing_secret_and_nothing_that_is_not_listed() {
    let _alone = alone();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab
        .server(&python)
        .samples()
        .unwrap()
        .env("SPARK_TEST_SECRET", SECRET)
        .file(
            "server.properties",
            format!("rcon.password={PASSWORD}\nlevel-seed={PASSWORD}\n"),
        )
        .start_ready()
        .unwrap();
    start(&mut server, "--thread * --show-interpreter --comment hello");
    server.run_for(Duration::from_secs(4)).unwrap();
    let mark = server.command("spark profiler stop --save-to-file").unwrap();
    server.wait_for_since(mark, SAVED, ANSWER).unwrap();
    let path = server.profile_files().unwrap().pop().unwrap();
    let folder = server.dir().to_string_lossy().into_owned();
    // The folder goes with the server.
    let bytes = std::fs::read(path).unwrap();
    server.stop_cleanly().unwrap();

    let mut said = Vec::new();
    assert!(texts(&bytes, &mut said), "the profile is a message");
    assert!(said.iter().any(|text| text == "hello"), "the walk finds texts");
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
    for text in &said {
        for secret in &secrets {
            assert!(!text.contains(secret.as_str()), "{secret:?} is in {text:?}");
        }
    }

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
            .any(|frame| frame.method_desc.starts_with("plugins/") || frame.method_desc.starts_with("endstone_market/")),
        "Python files are named from the plugins' folder on"
    );
    listed(&data);
}

/// Every field that is filled is in docs/privacy.md. New fields of the messages do not compile here.
fn listed(data: &pb::SamplerData) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/privacy.md");
    let page = std::fs::read_to_string(page).unwrap();
    let is_listed = |name: &str| page.contains(&format!("`{name}`"));
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
        server_configurations,
        end_time: _,
        number_of_ticks: _,
        sources: _,
        extra_platform_metadata,
        sampler_mode: _,
        sampler_engine: _,
        sampler_engine_version: _,
    } = metadata.as_ref().unwrap();
    assert!(platform_statistics.is_none() && server_configurations.is_empty());
    let pb::SystemStatistics {
        cpu: _,
        memory,
        disk,
        os: _,
        java,
        uptime: _,
        net,
        jvm,
    } = system_statistics.as_ref().unwrap();
    assert!(memory.is_none() && disk.is_none() && net.is_empty() && jvm.is_none());
    assert_eq!(java.as_ref().unwrap().vm_args, "", "no command line");
    for name in [
        "creator",
        "start_time",
        "interval",
        "thread_dumper",
        "data_aggregator",
        "comment",
        "platform_metadata",
        "system_statistics",
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
    for (group, value) in extra_platform_metadata {
        assert!(is_listed(group), "{group} is not in docs/privacy.md");
        assert!(!value.contains("\"/"), "{group}: {value}");
    }
}
