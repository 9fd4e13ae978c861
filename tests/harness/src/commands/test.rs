//! `./dev test`: sets up everything that tests need, then hands over to cargo.

use super::{CommandError, Outcome};
use harness::{Lab, PythonVersion, Step, note};
use std::os::unix::process::CommandExt;
use std::process::Command;

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
                usable.push(version);
            }
            Err(error) => note(format!("Python {version} is left out: {error}")),
        }
    }
    step.done();
    enough(&usable)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["test", "--release"]).current_dir(lab.root());
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
