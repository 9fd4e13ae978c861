//! `./dev bench`: measures what the profiler costs on this machine, as a table and as JSON.

use super::arguments::Arguments;
use super::{CommandError, Outcome};
use harness::Lab;
use std::process::{Command, ExitCode};

pub(super) fn run(arguments: Vec<String>) -> Outcome {
    Arguments::new("bench", arguments).finish()?;
    let lab = Lab::open()?;
    let json = lab.target().join("bench.json");
    // Each bench adds its own figures.
    match std::fs::remove_file(&json) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(CommandError::Result(format!(
                "{} cannot be removed: {error}",
                json.display()
            )));
        }
        _ => {}
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    for bench in ["native", "server"] {
        let status = Command::new(&cargo)
            .args(["bench", "--bench", bench])
            .current_dir(lab.root())
            .env("SPARK_BENCH_JSON", &json)
            .status()
            .map_err(|error| CommandError::Result(format!("cargo cannot be started: {error}")))?;
        if !status.success() {
            return Err(CommandError::Result(format!("the bench '{bench}' failed: {status}")));
        }
        println!();
    }
    println!("The same as JSON: {}", json.display());
    Ok(ExitCode::SUCCESS)
}
