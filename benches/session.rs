//! A session with as many samples as an hour at 4 ms has, taken as fast as this machine can: what it takes of memory and processor, how long its profile takes to be made, and how large that is.
//! `./dev bench session`, or `cargo bench --bench session` after `./dev build`. SPARK_BENCH_SECONDS (120) says how long. With SPARK_BENCH_JSON=FILE it writes the
//! same as JSON. Nothing is asserted, for machines differ. (An hour's sixty minutes, which this session has not, are in the bench `profile`.)

#[path = "figures/mod.rs"]
mod figures;

use std::io::Write;
use std::time::{Duration, Instant};

use figures::Figures;
use flate2::Compression;
use flate2::write::GzEncoder;
use harness::{CpuTime, Lab, Result, Server};

/// Samples of an hour at 4 ms.
const HOUR: f64 = 900_000.0;

/// A line of `/proc/PID/status` in MiB.
fn status(server: &Server, name: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(name));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kib.map_or(f64::NAN, |kib| kib / 1024.0)
}

fn main() -> Result<()> {
    let seconds = std::env::var("SPARK_BENCH_SECONDS").ok();
    let seconds = seconds.and_then(|seconds| seconds.parse().ok()).unwrap_or(120);
    let lab = Lab::open()?;
    let python = lab.default_python()?;
    let mut server = lab.server(&python).samples()?.start_ready()?;
    let mut figures = Figures::begin();
    server.run_for(Duration::from_secs(5))?;
    let before = status(&server, "VmRSS");
    server.ask("spark profiler start --interval 0.1", "The profiler is running")?;
    server.run_for(Duration::from_secs(2))?;
    let begun = status(&server, "VmRSS");
    let cpu = CpuTime::of(server.pid());
    server.run_for(Duration::from_secs(seconds))?;
    let now = CpuTime::of(server.pid());
    let sampler = now.since(&cpu, |name| name == "spark-sampler") as f64 / 1e9;
    let others = now.since(&cpu, |name| name.starts_with("spark-") && name != "spark-sampler") as f64 / 1e9;
    let grown = status(&server, "VmRSS");
    // From here on the peak counts anew.
    let _ = std::fs::write(format!("/proc/{}/clear_refs", server.pid()), "5");
    let stopped = Instant::now();
    server.ask("spark profiler stop --save-to-file", "Saved ")?;
    let export = stopped.elapsed().as_secs_f64();
    let peak = status(&server, "VmHWM");
    let files = server.profile_files()?;
    let bytes = files
        .last()
        .and_then(|file| std::fs::read(file).ok())
        .unwrap_or_default();
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    let packed = packed
        .write_all(&bytes)
        .and_then(|()| packed.finish())
        .map_or(0, |packed| packed.len());
    let samples = server
        .last_profile()?
        .extra("Sampling")
        .and_then(|sampling| sampling["samples"].as_f64())
        .unwrap_or(f64::NAN);
    figures.add("samples", samples, "");
    figures.add("sampler thread, each sample", sampler * 1e6 / samples, "us");
    figures.add("our other threads, each sample", others * 1e6 / samples, "us");
    figures.add("our other threads, an hour at 4 ms", others * HOUR / samples, "s");
    figures.add(
        "memory when the session has begun, above what there was",
        begun - before,
        "MiB",
    );
    figures.add("memory at its end, above what there was", grown - before, "MiB");
    figures.add("memory while the profile is made, above that", peak - grown, "MiB");
    figures.add("from the command to the saved file", export, "s");
    figures.add("the file", bytes.len() as f64 / 1e6, "MB");
    figures.add("the same packed, as an upload", packed as f64 / 1e6, "MB");
    server.stop_cleanly()?;
    figures.save();
    Ok(())
}
