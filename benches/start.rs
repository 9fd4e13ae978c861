//! The plugin's size, how long a server takes to load it, and a session to begin: `./dev bench start`, or `cargo bench --bench start` after `./dev build`. With SPARK_BENCH_JSON=FILE it
//! writes the same as JSON. Nothing is asserted, for machines differ.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use harness::{Lab, Mark, Python, Record, Result, Server, Spread};

/// Servers started with and without the plugin, in turns.
const STARTS: usize = 9;
/// Sessions begun.
const SESSIONS: usize = 30;

/// Milliseconds in the line that says this.
fn millis(server: &Server, says: &str) -> f64 {
    let lines = server.output_since(Mark::start());
    let line = lines
        .iter()
        .find_map(|line| line.split_once(says)?.1.strip_suffix(" ms")?.trim().parse().ok());
    line.unwrap_or(f64::NAN)
}

/// What the stand-in took to load its plugins, and to enable them. Without Python plugins and Python's loader, ours is the only one.
fn started(lab: &Lab, python: &Python, profiler: bool) -> Result<(f64, f64)> {
    let server = lab.server(python).arg("--load").arg("none").arg("--no-python");
    let server = if profiler { server } else { server.without_profiler() };
    let server = server.start_ready()?;
    let took = (
        millis(&server, "plugins loaded in"),
        millis(&server, "plugins enabled in"),
    );
    server.stop_cleanly()?;
    Ok(took)
}

/// From the typed command to the answer that the session runs, in a server that looks at its console every 5 ms.
fn sessions(lab: &Lab, python: &Python) -> Result<Vec<f64>> {
    let server = lab
        .server(python)
        .samples()?
        .arg("--load")
        .arg("none")
        .arg("--tick-ms")
        .arg("5");
    let mut server = server.start_ready()?;
    let mut times = Vec::new();
    for _ in 0..SESSIONS {
        let begun = Instant::now();
        server.ask("spark profiler start", "The profiler is running")?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        server.ask("spark profiler cancel", "nothing was saved")?;
    }
    server.stop_cleanly()?;
    Ok(times)
}

/// Megabytes of the plugin as an owner may install it.
fn stripped(plugin: &Path, folder: &Path) -> f64 {
    let copy = folder.join("stripped.so");
    let status = Command::new("strip").arg("-o").arg(&copy).arg(plugin).status();
    let size = status.ok().and_then(|_| Some(std::fs::metadata(&copy).ok()?.len()));
    let _ = std::fs::remove_file(&copy);
    size.map_or(f64::NAN, |size| size as f64 / 1e6)
}

fn main() -> Result<()> {
    let lab = Lab::open()?;
    let python = lab.default_python()?;
    let path = std::env::var_os("SPARK_BENCH_JSON").unwrap_or_else(|| lab.target().join("bench-start.json").into());
    let mut record = Record::open(path);
    println!(
        "{}, CPython {}\n\n| what | median (quartiles) |\n|---|---|",
        harness::machine(),
        python.full_version
    );
    let size = stripped(&lab.plugin()?, lab.target());
    println!("| the plugin without debug information | {size:.2} MB |");
    record.put("plugin, stripped, MB", size)?;
    let (mut loading, mut enabling) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let (without, with) = (started(&lab, &python, false)?, started(&lab, &python, true)?);
        loading.push(with.0 - without.0);
        enabling.push(with.1 - without.1);
    }
    let latencies = sessions(&lab, &python)?;
    for (what, values) in [
        ("loading the plugin, ms more", loading),
        ("enabling it, ms more", enabling),
        ("from the command to the answer that the session runs, ms", latencies),
    ] {
        let Some(spread) = Spread::of(values) else { continue };
        println!("| {what} | {} |", spread.text(2));
        record.put(what, spread)?;
    }
    Ok(())
}
