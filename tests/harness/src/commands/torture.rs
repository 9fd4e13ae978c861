//! `./dev torture`: tests that are worth more the longer they run.

use super::arguments::Arguments;
use super::{CommandError, Outcome};
use harness::{Lab, PythonVersion};
use std::process::{Command, ExitCode};

/// As long as the shortest run that says something about one sample in a million.
const MINUTES: u64 = 10;

pub(super) fn run(arguments: Vec<String>) -> Outcome {
    let mut arguments = Arguments::new("torture", arguments);
    let python = arguments.python()?;
    let minutes = arguments.option("--minutes")?.unwrap_or(MINUTES);
    let truth = arguments.flag("--truth");
    if !truth {
        return Err(arguments.usage("say what to torture: --truth".to_owned()));
    }
    arguments.finish()?;
    let lab = Lab::open()?;
    for (version, python) in lab.pythons() {
        if let (true, Err(error)) = (version >= PythonVersion::V3_12, python) {
            harness::note(format!("Python {version} is left out: {error}"));
        }
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["test", "--release", "--test", "python_truth", "--", "--nocapture"])
        .current_dir(lab.root())
        .env("SPARK_TORTURE_SECONDS", (minutes * 60).to_string());
    if let Some(version) = python {
        command.env("SPARK_TEST_PYTHON", version.to_string());
    }
    let status = command
        .status()
        .map_err(|error| CommandError::Result(format!("cargo cannot be started: {error}")))?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
