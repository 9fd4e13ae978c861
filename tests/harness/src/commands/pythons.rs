//! `./dev pythons`: what there is to run on.

use super::Outcome;
use super::arguments::Arguments;
use harness::{Lab, PythonVersion};
use std::process::ExitCode;

pub(super) fn run(arguments: Vec<String>) -> Outcome {
    Arguments::new("pythons", arguments).finish()?;
    let lab = Lab::open()?;
    println!("{:<9} {:<20} {:<60} shared libpython", "version", "from", "interpreter");
    for candidate in lab.installed_pythons() {
        let (origin, executable) = (candidate.origin.to_string(), candidate.executable.display().to_string());
        let library = match &candidate.python {
            Ok(python) => python.library.display().to_string(),
            Err(reason) => format!("not usable: {reason}"),
        };
        println!("{:<9} {origin:<20} {executable:<60} {library}", candidate.full_version);
    }
    for python in lab.fetched_pythons() {
        let (origin, executable) = (python.origin.to_string(), python.executable.display().to_string());
        println!(
            "{:<9} {origin:<20} {executable:<60} {}",
            python.full_version,
            python.library.display()
        );
    }
    println!();
    for version in PythonVersion::ALL {
        match lab.python_at_hand(version) {
            Ok(Some(python)) => println!("{version} runs on {} ({})", python.executable.display(), python.origin),
            Ok(None) if Lab::can_fetch(version) => println!("{version} is fetched from Debian when it is first needed"),
            Ok(None) => {
                println!(
                    "{version} is not here, and no Debian release has it to fetch; install it, or name one with SPARK_PYTHON"
                )
            }
            Err(error) => println!("{version}: {error}"),
        }
    }
    Ok(ExitCode::SUCCESS)
}
