//! Rules about everything but the trees.

use super::Findings;
use endstone_spark::export::pb::{
    PlatformMetadata, PlatformStatistics, PluginMetadata, SamplerMetadata, SystemStatistics,
};
use serde_json::Value;
use std::collections::BTreeMap;

/// Below it the viewer says that the plugin is outdated.
const SPARK_VERSION: i32 = 2;

/// What profiles and health reports say of the server.
pub(super) struct Described<'a> {
    pub(super) platform: Option<&'a PlatformMetadata>,
    pub(super) platform_statistics: Option<&'a PlatformStatistics>,
    pub(super) system_statistics: Option<&'a SystemStatistics>,
    pub(super) extra: &'a BTreeMap<String, String>,
    pub(super) configurations: &'a BTreeMap<String, String>,
    pub(super) sources: &'a BTreeMap<String, PluginMetadata>,
}

pub(super) fn check(metadata: &SamplerMetadata, findings: &mut Findings) {
    described(
        &Described {
            platform: metadata.platform_metadata.as_ref(),
            platform_statistics: metadata.platform_statistics.as_ref(),
            system_statistics: metadata.system_statistics.as_ref(),
            extra: &metadata.extra_platform_metadata,
            configurations: &metadata.server_configurations,
            sources: &metadata.sources,
        },
        findings,
    );
    for (name, is_zero) in [
        ("start_time", metadata.start_time == 0),
        ("end_time", metadata.end_time == 0),
        ("interval", metadata.interval == 0),
        ("number_of_ticks", metadata.number_of_ticks == 0),
    ] {
        if is_zero {
            findings.warn(format!("metadata.{name} is 0"));
        }
    }
}

/// The rules for the server, in a profile and in a report.
pub(super) fn described(server: &Described<'_>, findings: &mut Findings) {
    match server.platform {
        None => findings.warn("metadata.platform_metadata is missing: no information panel"),
        Some(platform) if platform.spark_version < SPARK_VERSION => {
            findings.warn(format!(
                "spark_version is below {SPARK_VERSION}: the page calls the plugin outdated"
            ));
        }
        Some(_) => {}
    }
    if let Some(platform) = server.platform_statistics {
        platform_statistics(platform, findings);
        if server.system_statistics.is_none() {
            findings.problem("platform_statistics without system_statistics: the page crashes");
        }
    }
    if let Some(system) = server.system_statistics {
        system_statistics(system, server.platform_statistics.is_some(), findings);
    }
    for (map, values) in [
        ("extra_platform_metadata", server.extra),
        ("server_configurations", server.configurations),
    ] {
        for (key, text) in values {
            match serde_json::from_str::<Value>(text) {
                Err(_) => findings.problem(format!("{map}['{key}'] is not JSON: the page crashes")),
                Ok(value) if holds_null(&value) => {
                    findings.problem(format!(
                        "{map}['{key}'] holds a null: the page crashes when it is opened"
                    ));
                }
                Ok(_) => {}
            }
        }
    }
    for (key, source) in server.sources {
        if *key != source.name.to_lowercase() {
            findings.warn(format!(
                "metadata.sources['{key}'] is not the lower-case name of '{}': no version is shown",
                source.name
            ));
        }
        if source.version.is_empty() {
            findings.warn(format!(
                "metadata.sources['{key}'] has no version: an empty one is shown"
            ));
        }
    }
}

fn platform_statistics(platform: &PlatformStatistics, findings: &mut Findings) {
    let heap = platform.memory.as_ref().and_then(|memory| memory.heap.as_ref());
    findings.need(heap, "platform_statistics.memory.heap");
    if heap.is_some_and(|heap| heap.committed == 0) {
        findings.warn("memory.heap.committed is 0: the page shows infinity");
    }
    if let Some(mspt) = &platform.mspt {
        findings.need(mspt.last5m.as_ref(), "platform_statistics.mspt.last5m");
    }
    if let Some(ping) = &platform.ping {
        findings.need(ping.last15m.as_ref(), "platform_statistics.ping.last15m");
    }
    if let Some(world) = &platform.world
        && world.total_entities > 0
        && world.worlds.iter().all(|world| world.regions.is_empty())
    {
        findings.problem("world.total_entities without a region: the world tab crashes");
    }
}

fn system_statistics(system: &SystemStatistics, with_platform: bool, findings: &mut Findings) {
    findings.need(system.os.as_ref(), "system_statistics.os");
    findings.need(system.java.as_ref(), "system_statistics.java");
    findings.need(system.cpu.as_ref(), "system_statistics.cpu");
    if with_platform {
        let cpu = system.cpu.as_ref();
        let memory = system.memory.as_ref();
        findings.need(
            cpu.and_then(|cpu| cpu.process_usage.as_ref()),
            "system_statistics.cpu.process_usage",
        );
        findings.need(
            cpu.and_then(|cpu| cpu.system_usage.as_ref()),
            "system_statistics.cpu.system_usage",
        );
        findings.need(
            memory.and_then(|memory| memory.physical.as_ref()),
            "system_statistics.memory.physical",
        );
        findings.need(
            memory.and_then(|memory| memory.swap.as_ref()),
            "system_statistics.memory.swap",
        );
        findings.need(system.disk.as_ref(), "system_statistics.disk");
    }
    for (name, interface) in &system.net {
        findings.need(
            interface.rx_bytes_per_second.as_ref(),
            &format!("net['{name}'].rx_bytes_per_second"),
        );
        findings.need(
            interface.tx_bytes_per_second.as_ref(),
            &format!("net['{name}'].tx_bytes_per_second"),
        );
        findings.need(
            interface.rx_packets_per_second.as_ref(),
            &format!("net['{name}'].rx_packets_per_second"),
        );
        findings.need(
            interface.tx_packets_per_second.as_ref(),
            &format!("net['{name}'].tx_packets_per_second"),
        );
    }
}

fn holds_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(holds_null),
        Value::Object(fields) => fields.values().any(holds_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::sound::{expect_problem, expect_warning};
    use endstone_spark::export::pb::{SamplerMetadata, platform_statistics, system_statistics};

    /// The rule must speak when the metadata is changed so.
    fn problem(text: &str, change: impl FnOnce(&mut SamplerMetadata)) {
        expect_problem(text, |data| change(data.metadata.as_mut().unwrap()));
    }

    fn warning(text: &str, change: impl FnOnce(&mut SamplerMetadata)) {
        expect_warning(text, |data| change(data.metadata.as_mut().unwrap()));
    }

    fn in_platform(text: &str, change: impl FnOnce(&mut endstone_spark::export::pb::PlatformStatistics)) {
        problem(text, |m| change(m.platform_statistics.as_mut().unwrap()));
    }

    fn in_system(text: &str, change: impl FnOnce(&mut endstone_spark::export::pb::SystemStatistics)) {
        problem(text, |m| change(m.system_statistics.as_mut().unwrap()));
    }

    #[test]
    fn platform_is_described() {
        warning("no information panel", |m| m.platform_metadata = None);
        warning("outdated", |m| m.platform_metadata.as_mut().unwrap().spark_version = 1);
    }

    #[test]
    fn platform_statistics_are_whole() {
        in_platform("memory.heap", |p| p.memory = None);
        in_platform("memory.heap", |p| p.memory.as_mut().unwrap().heap = None);
        in_platform("mspt.last5m", |p| p.mspt.as_mut().unwrap().last5m = None);
        in_platform("ping.last15m", |p| p.ping = Some(platform_statistics::Ping::default()));
        in_platform("without a region", |p| p.world.as_mut().unwrap().total_entities = 3);
        problem("without system_statistics", |m| m.system_statistics = None);
        warning("infinity", |m| {
            let memory = m.platform_statistics.as_mut().unwrap().memory.as_mut().unwrap();
            memory.heap.as_mut().unwrap().committed = 0;
        });
    }

    #[test]
    fn system_statistics_are_whole() {
        in_system("system_statistics.os", |s| s.os = None);
        in_system("system_statistics.java", |s| s.java = None);
        in_system("system_statistics.cpu", |s| s.cpu = None);
        in_system("cpu.process_usage", |s| s.cpu.as_mut().unwrap().process_usage = None);
        in_system("cpu.system_usage", |s| s.cpu.as_mut().unwrap().system_usage = None);
        in_system("memory.physical", |s| s.memory.as_mut().unwrap().physical = None);
        in_system("memory.swap", |s| s.memory = None);
        in_system("system_statistics.disk", |s| s.disk = None);
    }

    #[test]
    fn a_network_interface_has_all_four_averages() {
        type Change = fn(&mut system_statistics::NetInterface);
        let four: [(&str, Change); 4] = [
            ("net['eth0'].rx_bytes", |n| n.rx_bytes_per_second = None),
            ("net['eth0'].tx_bytes", |n| n.tx_bytes_per_second = None),
            ("net['eth0'].rx_packets", |n| n.rx_packets_per_second = None),
            ("net['eth0'].tx_packets", |n| n.tx_packets_per_second = None),
        ];
        for (text, change) in four {
            in_system(text, |s| change(s.net.get_mut("eth0").unwrap()));
        }
    }

    #[test]
    fn extra_values_are_json_without_nulls() {
        let texts = [
            ("not JSON", "plain text"),
            ("holds a null", "null"),
            ("holds a null", r#"{"a":[1,{"b":null}]}"#),
        ];
        for (text, value) in texts {
            problem(text, |m| {
                drop(m.extra_platform_metadata.insert("k".to_owned(), value.to_owned()))
            });
            problem(text, |m| {
                drop(m.server_configurations.insert("k".to_owned(), value.to_owned()))
            });
        }
    }

    #[test]
    fn sources_have_lower_case_keys_and_versions() {
        warning("no version is shown", |m| {
            let source = m.sources.remove("market").unwrap();
            m.sources.insert("Market".to_owned(), source);
        });
        warning("has no version", |m| {
            m.sources.get_mut("market").unwrap().version.clear()
        });
    }

    #[test]
    fn times_interval_and_ticks_are_given() {
        warning("start_time is 0", |m| m.start_time = 0);
        warning("end_time is 0", |m| m.end_time = 0);
        warning("interval is 0", |m| m.interval = 0);
        warning("number_of_ticks is 0", |m| m.number_of_ticks = 0);
    }
}
