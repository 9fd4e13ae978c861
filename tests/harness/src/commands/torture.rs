//! `./dev torture`: tests that are worth more the longer they run.

use super::arguments::Arguments;
use super::{CommandError, Outcome, run_cargo};
use harness::{Lab, PythonVersion};
use std::process::ExitCode;

/// As long as the shortest run that says something about one sample in a million.
const MINUTES: u64 = 10;

pub(super) fn run(arguments: Vec<String>) -> Outcome {
    let mut arguments = Arguments::new("torture", arguments);
    let python = arguments.python()?;
    let minutes = arguments.option("--minutes")?.unwrap_or(MINUTES);
    let seed: Option<u64> = arguments.option("--seed")?;
    let truth = arguments.flag("--truth");
    if truth && seed.is_some() {
        return Err(
            arguments.usage("--truth takes no --seed: nothing in it is left to chance but the samples".to_owned())
        );
    }
    arguments.finish()?;
    let lab = Lab::open()?;
    let mut versions = Vec::new();
    for (version, found) in lab.pythons() {
        let is_meant = python.map_or(version >= PythonVersion::V3_12, |python| python == version);
        match found {
            _ if !is_meant => {}
            Ok(_) => versions.push(version),
            Err(error) => harness::note(format!("Python {version} is left out: {error}")),
        }
    }
    if versions.is_empty() {
        return Err(CommandError::Result("there is no Python to do it with".to_owned()));
    }
    let test = if truth { "python_truth" } else { "torture" };
    let mut failed = Vec::new();
    for version in versions {
        let mut command = lab.cargo();
        command
            .args(["test", "--release", "--workspace", "--test", test, "--", "--nocapture"])
            .env("SPARK_TORTURE_SECONDS", (minutes * 60).to_string())
            .env("SPARK_TEST_PYTHON", version.to_string());
        if let Some(seed) = seed {
            command.env("SPARK_TORTURE_SEED", seed.to_string());
        }
        if !run_cargo(&mut command)?.success() {
            failed.push(version.to_string());
        }
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    Err(CommandError::Result(format!("failed on Python {}", failed.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused() {
        for (line, told) in [
            (&["--truth", "--seed", "7"][..], "takes no --seed"),
            (&["--python", "3.9"], "Endstone runs on"),
            (&["--hours", "2"], "not understood"),
        ] {
            let error = run(line.iter().map(|word| (*word).to_owned()).collect())
                .unwrap_err()
                .to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}
