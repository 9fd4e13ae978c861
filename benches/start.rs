//! The plugin's size, how long a server takes to load it, and a session to begin: `./dev bench start`, or `cargo bench --bench start` after `./dev build`. With SPARK_BENCH_JSON=FILE it
//! writes the same as JSON. Nothing is asserted, for machines differ.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use harness::{Error, Lab, Mark, Python, Record, Result, Server, Spread};

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
fn started(lab: &Lab, python: &Python, plugin: Option<&Path>) -> Result<(f64, f64)> {
    let server = lab.server(python).without_profiler();
    let mut server = server.arg("--load").arg("none").arg("--no-python");
    if let Some(plugin) = plugin {
        server = server.plugin(plugin);
    }
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

/// The plugin as an owner installs it. Endstone copies a plugin before it loads it, so debug information costs time.
fn stripped(plugin: &Path, folder: &Path) -> Result<PathBuf> {
    let file_error = |source| Error::File {
        action: "make",
        path: folder.to_owned(),
        source,
    };
    std::fs::create_dir_all(folder).map_err(file_error)?;
    let copy = folder.join("endstone_spark.so");
    let status = Command::new("strip").arg("-o").arg(&copy).arg(plugin).status();
    match status {
        Ok(status) if status.success() => Ok(copy),
        Ok(status) => Err(Error::Missing(format!("strip failed: {status}"))),
        Err(error) => Err(Error::Missing(format!("strip cannot be run: {error}"))),
    }
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
    let plugin = stripped(&lab.plugin()?, &lab.target().join("bench-start"))?;
    let size = std::fs::metadata(&plugin).map_or(f64::NAN, |file| file.len() as f64 / 1e6);
    println!("| the plugin without debug information | {size:.2} MB |");
    record.put("plugin, stripped, MB", size)?;
    let (mut loading, mut enabling) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let (without, with) = (started(&lab, &python, None)?, started(&lab, &python, Some(&plugin))?);
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
