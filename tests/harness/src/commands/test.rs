//! `./dev test`: sets up everything that tests need, and runs them all; with arguments it hands over to cargo.

use super::{CommandError, Outcome, run_cargo, suite};
use harness::{Lab, PythonVersion, Step, note};
use std::os::unix::process::CommandExt;

/// A continuous build that can run on fewer versions than this has lost something.
const LEAST_IN_CI: usize = 3;

pub(super) fn run(arguments: Vec<String>) -> Outcome {
    let lab = Lab::open()?;
    lab.sample_plugins()?;
    let step = Step::start("Setting up Pythons with Endstone");
    let mut usable = Vec::new();
    for (version, python) in lab.pythons() {
        match python.and_then(|python| lab.endstone(version).map(|_| python)) {
            Ok(python) => {
                note(format!(
                    "Python {} ({}): {}",
                    python.full_version,
                    python.origin,
                    python.executable.display()
                ));
                if let Err(error) = lab.own_tests(&python) {
                    note(format!("Python {version}'s own tests are left out: {error}"));
                }
                usable.push(version);
            }
            Err(error) => note(format!("Python {version} is left out: {error}")),
        }
    }
    step.done();
    enough(&usable)?;
    if arguments.is_empty() {
        check_models(&lab)?;
        return suite::run(&lab);
    }
    let mut command = lab.cargo();
    command.args(["test", "--release"]);
    if !arguments
        .iter()
        .any(|argument| argument.starts_with("-p") || argument.starts_with("--package"))
    {
        command.arg("--workspace");
    }
    command.args(arguments);
    Err(CommandError::Result(format!(
        "cargo cannot be started: {}",
        command.exec()
    )))
}

/// Checks the lock-free code with loom. Its atomics need a build of their own.
fn check_models(lab: &Lab) -> Result<(), CommandError> {
    let mut command = lab.cargo();
    command
        .args(["test", "--release", "-p", "spark-loom", "--target-dir"])
        .arg(lab.target().join("loom"))
        .env("RUSTFLAGS", "--cfg loom");
    if run_cargo(&mut command)?.success() {
        Ok(())
    } else {
        Err(CommandError::Result("the model checks failed".to_owned()))
    }
}

fn enough(usable: &[PythonVersion]) -> Result<(), CommandError> {
    let in_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    if usable.is_empty() || (in_ci && usable.len() < LEAST_IN_CI) {
        let names: Vec<String> = usable.iter().map(ToString::to_string).collect();
        return Err(CommandError::Result(format!(
            "tests need more Pythons than these: {}",
            names.join(", ")
        )));
    }
    Ok(())
}
