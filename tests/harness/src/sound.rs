//! A small profile without faults, for tests that break one thing in it.

use crate::check::check;
use crate::profile::Profile;
use endstone_spark::export::pb::{
    PlatformMetadata, PlatformStatistics, PluginMetadata, RollingAverageValues, SamplerData, SamplerMetadata,
    StackTraceNode, SystemStatistics, ThreadNode, WindowStatistics, WorldStatistics, platform_statistics,
    system_statistics,
};
use std::collections::BTreeMap;

pub(crate) fn node(class: &str, method: &str, millis: f64, children: &[i32]) -> StackTraceNode {
    StackTraceNode {
        class_name: class.to_owned(),
        method_name: method.to_owned(),
        times: vec![millis],
        children_refs: children.to_vec(),
        ..Default::default()
    }
}

/// 100 ms in one window: 30 in Python below a tick, 70 asleep.
pub(crate) fn profile() -> Profile {
    let children = vec![
        node("bedrock_server", "Level::tick", 30.0, &[1]),
        node("[Python] endstone_market.plugin", "Market.update", 30.0, &[2]),
        node("libpython3_13", "builtin_sorted", 25.0, &[3]),
        node("[Python] endstone_market.prices", "offer_value", 20.0, &[]),
        node("bedrock_server", "sleep", 70.0, &[]),
    ];
    let thread = ThreadNode {
        name: "Server thread".to_owned(),
        children,
        times: vec![100.0],
        children_refs: vec![0, 4],
    };
    let statistics = WindowStatistics {
        ticks: 2,
        tps: 20.0,
        ..Default::default()
    };
    Profile::from(SamplerData {
        metadata: Some(metadata()),
        threads: vec![thread],
        class_sources: BTreeMap::from([("[Python] endstone_market.plugin".to_owned(), "Market".to_owned())]),
        time_windows: vec![30],
        time_window_statistics: BTreeMap::from([(30, statistics)]),
        ..Default::default()
    })
}

fn metadata() -> SamplerMetadata {
    SamplerMetadata {
        start_time: 1_800_000,
        end_time: 1_800_100,
        interval: 4000,
        number_of_ticks: 2,
        platform_metadata: Some(PlatformMetadata {
            spark_version: 2,
            name: "Endstone".to_owned(),
            ..Default::default()
        }),
        platform_statistics: Some(platform()),
        system_statistics: Some(system()),
        sources: BTreeMap::from([(
            "market".to_owned(),
            PluginMetadata {
                name: "Market".to_owned(),
                version: "1.0".to_owned(),
                ..Default::default()
            },
        )]),
        extra_platform_metadata: BTreeMap::from([("Python".to_owned(), r#"{"state":"on"}"#.to_owned())]),
        ..Default::default()
    }
}

fn platform() -> PlatformStatistics {
    use platform_statistics::{Memory, Mspt, memory::MemoryUsage};
    let heap = MemoryUsage {
        used: 5,
        committed: 10,
        ..Default::default()
    };
    PlatformStatistics {
        memory: Some(Memory {
            heap: Some(heap),
            non_heap: None,
        }),
        mspt: Some(Mspt {
            last5m: Some(RollingAverageValues::default()),
            ..Default::default()
        }),
        world: Some(WorldStatistics::default()),
        ..Default::default()
    }
}

fn system() -> SystemStatistics {
    use system_statistics::{Cpu, Disk, Java, Memory, NetInterface, Os, cpu::Usage, memory::MemoryPool};
    let average = || Some(RollingAverageValues::default());
    let interface = NetInterface {
        rx_bytes_per_second: average(),
        tx_bytes_per_second: average(),
        rx_packets_per_second: average(),
        tx_packets_per_second: average(),
    };
    SystemStatistics {
        cpu: Some(Cpu {
            process_usage: Some(Usage::default()),
            system_usage: Some(Usage::default()),
            ..Default::default()
        }),
        memory: Some(Memory {
            physical: Some(MemoryPool::default()),
            swap: Some(MemoryPool::default()),
        }),
        disk: Some(Disk::default()),
        os: Some(Os::default()),
        java: Some(Java::default()),
        net: BTreeMap::from([("eth0".to_owned(), interface)]),
        ..Default::default()
    }
}

/// A second window in which nothing was spent.
pub(crate) fn add_window(data: &mut SamplerData, window: i32) {
    data.time_windows.push(window);
    for thread in &mut data.threads {
        thread.times.push(0.0);
        thread.children.iter_mut().for_each(|node| node.times.push(0.0));
    }
}

/// The sound profile, changed so, has a problem that says this.
pub(crate) fn expect_problem(text: &str, change: impl FnOnce(&mut SamplerData)) {
    let mut data = profile().data().clone();
    change(&mut data);
    let findings = check(&data);
    assert!(
        findings.problems.iter().any(|problem| problem.contains(text)),
        "no problem '{text}':\n{findings}"
    );
    assert!(!findings.is_sound());
}

/// The sound profile, changed so, has a warning that says this, and no problem.
pub(crate) fn expect_warning(text: &str, change: impl FnOnce(&mut SamplerData)) {
    let mut data = profile().data().clone();
    change(&mut data);
    let findings = check(&data);
    assert!(
        findings.warnings.iter().any(|warning| warning.contains(text)),
        "no warning '{text}':\n{findings}"
    );
    assert!(findings.is_sound(), "{findings}");
    assert!(!findings.is_perfect());
}
