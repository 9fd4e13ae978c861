//! Enable, start, sample, stop, disable, reload, over and over: nothing grows, nothing stays, and the last time is as fast as the first.
//!
//! `SPARK_LIFECYCLES=1000 cargo test --release --test stand_in cycles` runs as many as are asked for.

use std::time::{Duration, Instant};

use harness::{Footprint, GIVE_BACK, Server};

use super::{RUNNING, SAVED, beside, lab};

/// Waits for an answer until it comes: a machine that is busy with other things may take minutes for a run of hours.
const PATIENCE: Duration = Duration::from_secs(900);

fn ask(server: &mut Server, line: &str, answer: &str) -> String {
    let mark = server.command(line).unwrap();
    server.wait_for_since(mark, answer, PATIENCE).unwrap()
}

/// What the process has of ours, and whom its signals and tools belong to.
fn left(server: &mut Server) -> [String; 3] {
    ["!sigprof", "!tools", "!threads"].map(|probe| ask(server, probe, probe))
}

/// Processor time of the process so far.
fn cpu(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat[stat.rfind(')').unwrap() + 2..].split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    // A hundred a second, as the kernel gives them to programs (proc(5)).
    Duration::from_millis(ticks * 10)
}

#[test]
fn a_plugin_that_is_enabled_used_and_reloaded_all_the_time_leaves_nothing_behind() {
    let _beside = beside();
    let cycles: usize = std::env::var("SPARK_LIFECYCLES")
        .ok()
        .and_then(|number| number.parse().ok())
        .unwrap_or(30);
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab.server(&python).start_ready().unwrap();
    let mut before = None;
    let mut times: Vec<Duration> = Vec::new();
    let mut costs: Vec<Duration> = Vec::new();
    let mut sizes = Vec::new();
    for round in 0..cycles {
        let (begun, cost) = (Instant::now(), cpu(server.pid()));
        ask(&mut server, "spark profiler start --interval 1", RUNNING);
        ask(&mut server, "!ticks 3", "!ticks done");
        // Ended by a command, and by the plugin's end.
        if round % 2 == 0 {
            ask(&mut server, "spark profiler stop --save-to-file", SAVED);
        }
        ask(&mut server, "!reload-plugins", "!reload-plugins done");
        ask(&mut server, "!ticks 3", "!ticks done");
        times.push(begun.elapsed());
        costs.push(cpu(server.pid()) - cost);
        // What the plugin's end did not wait for, as on a machine that has no time for it, ends by itself.
        let deadline = Instant::now() + PATIENCE;
        let first = before.get_or_insert_with(|| left(&mut server)).clone();
        loop {
            let now = left(&mut server);
            if now == first {
                break;
            }
            assert!(
                Instant::now() < deadline,
                "after cycle {}: {now:?} and not {first:?}",
                round + 1
            );
        }
        let given_back = ask(&mut server, &format!("!python {GIVE_BACK}"), "!python");
        assert!(!given_back.contains("Error"), "{given_back}");
        sizes.push(Footprint::of(server.pid()).unwrap());
        for file in server.profile_files().unwrap() {
            std::fs::remove_file(file).unwrap();
        }
    }
    let said = server.stop_cleanly().unwrap();
    let count = |text: &str| said.iter().filter(|line| line.contains(text)).count();
    assert_eq!(count("Enabling spark"), cycles + 1);
    // The first cycles load libraries and fill caches.
    let warm = cycles / 3;
    let median = |times: &[Duration]| {
        let mut times = times.to_vec();
        times.sort();
        times[times.len() / 2]
    };
    let (first, last) = (sizes[warm], sizes[cycles - 1]);
    // Of many cycles: what the threads' own heaps have given back at one moment differs.
    let resident = |sizes: &[Footprint]| {
        let mut sizes: Vec<u64> = sizes.iter().map(|size| size.resident_kib).collect();
        sizes.sort_unstable();
        sizes[sizes.len() / 2]
    };
    let (resident_first, resident_last) = (
        resident(&sizes[warm..2 * cycles / 3]),
        resident(&sizes[2 * cycles / 3..]),
    );
    println!("{cycles} cycles: {first:?} after {}, {last:?} at the end", warm + 1);
    println!("resident, median: {resident_first} KiB in the second third, {resident_last} KiB in the last");
    for (what, times) in [("took", &times), ("cost the process", &costs)] {
        println!(
            "a cycle {what} {:?} in the first third, {:?} in the last",
            median(&times[..warm.max(1)]),
            median(&times[cycles - warm.max(1)..])
        );
    }
    println!("not finished in time: {}", count("not finished in time"));
    assert_eq!((last.threads, last.descriptors), (first.threads, first.descriptors));
    assert!(last.mappings <= first.mappings + 10, "{first:?} and {last:?}");
    assert!(
        resident_last <= resident_first + (8 << 10),
        "{resident_first} and {resident_last} KiB"
    );
}
