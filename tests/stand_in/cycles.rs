//! Enable, start, sample, stop, disable, reload, over and over: nothing grows, nothing stays, and the last time is as fast as the first.
//!
//! `SPARK_LIFECYCLES=1000 cargo test --release --test stand_in cycles` runs as many as are asked for.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{ANSWER, SAVED, alone, lab, start};

/// What the process has.
#[derive(Clone, Copy, Debug)]
struct Figures {
    resident_kib: u64,
    threads: usize,
    descriptors: usize,
    mappings: usize,
}

fn figures(pid: u32) -> Figures {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let count = |folder: &str| std::fs::read_dir(process.join(folder)).unwrap().count();
    let status = std::fs::read_to_string(process.join("status")).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    Figures {
        resident_kib: resident.split_whitespace().next().unwrap().parse().unwrap(),
        threads: count("task"),
        descriptors: count("fd"),
        mappings: std::fs::read_to_string(process.join("maps")).unwrap().lines().count(),
    }
}

#[test]
fn a_plugin_that_is_enabled_used_and_reloaded_all_the_time_leaves_nothing_behind() {
    let _alone = alone();
    let cycles: usize = std::env::var("SPARK_LIFECYCLES")
        .ok()
        .and_then(|number| number.parse().ok())
        .unwrap_or(30);
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab.server(&python).start_ready().unwrap();
    let mut left = Vec::new();
    let mut times: Vec<Duration> = Vec::new();
    let mut sizes = Vec::new();
    for round in 0..cycles {
        let begun = Instant::now();
        start(&mut server, "--interval 1");
        server.ask("!ticks 3", "!ticks done").unwrap();
        // Ended by a command, and by the plugin's end.
        if round % 2 == 0 {
            server.ask("spark profiler stop --save-to-file", SAVED).unwrap();
        }
        let mark = server.command("!reload-plugins").unwrap();
        server.wait_for_since(mark, "!reload-plugins done", ANSWER).unwrap();
        server.ask("!ticks 3", "!ticks done").unwrap();
        times.push(begun.elapsed());
        // What an upload or a report of the session's worker leaves to itself ends within a moment.
        left.push(["!sigprof", "!tools", "!threads"].map(|probe| server.ask(probe, probe).unwrap()));
        sizes.push(figures(server.pid()));
        for file in server.profile_files().unwrap() {
            std::fs::remove_file(file).unwrap();
        }
    }
    server.stop_cleanly().unwrap();
    // The first cycles load libraries and fill caches.
    let warm = cycles / 3;
    let median = |times: &[Duration]| {
        let mut times = times.to_vec();
        times.sort();
        times[times.len() / 2]
    };
    let (first, last) = (sizes[warm], sizes[cycles - 1]);
    println!("{cycles} cycles: {first:?} after {}, {last:?} at the end", warm + 1);
    println!(
        "a cycle took {:?} in the first third, {:?} in the last",
        median(&times[..warm.max(1)]),
        median(&times[cycles - warm.max(1)..])
    );
    for (round, now) in left.iter().enumerate() {
        assert_eq!(now, &left[0], "after cycle {}", round + 1);
    }
    assert_eq!((last.threads, last.descriptors), (first.threads, first.descriptors));
    assert!(last.mappings <= first.mappings + 10, "{first:?} and {last:?}");
    assert!(
        last.resident_kib <= first.resident_kib + (8 << 10),
        "{first:?} and {last:?}"
    );
}
