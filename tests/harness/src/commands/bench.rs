//! `./dev bench`: measures what the profiler costs on this machine, as a table and as JSON.

use super::arguments::Arguments;
use super::{CommandError, Outcome};
use harness::Lab;
use std::process::{Command, ExitCode};

pub(super) fn run(arguments: Vec<String>) -> Outcome {
    Arguments::new("bench", arguments).finish()?;
    let lab = Lab::open()?;
    for (bench, file) in [
        ("native", "bench.json"),
        ("callbacks", "bench-python.json"),
        ("server", "bench-server.json"),
        ("background", "bench-background.json"),
        ("profile", "bench-profile.json"),
    ] {
        let json = lab.target().join(file);
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo)
            .args(["bench", "--bench", bench])
            .current_dir(lab.root())
            .env("SPARK_BENCH_JSON", &json)
            .status()
            .map_err(|error| CommandError::Result(format!("cargo cannot be started: {error}")))?;
        if !status.success() {
            return Err(CommandError::Result(format!("the bench failed: {status}")));
        }
        println!("\nThe same as JSON: {}\n", json.display());
    }
    Ok(ExitCode::SUCCESS)
}
