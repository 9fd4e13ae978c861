//! `./dev abi`: is the plugin written for this release of Endstone?

use super::arguments::Arguments;
use super::{CommandError, Outcome};
use harness::{ENDSTONE_VERSION, Lab, PythonVersion, abi};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(super) fn run(arguments: Vec<String>) -> Outcome {
    let mut arguments = Arguments::new("abi", arguments);
    let wheel = arguments.positional();
    let wheel = wheel.ok_or_else(|| arguments.usage("which wheel? A file or a version such as 0.11.0".to_owned()))?;
    arguments.finish()?;
    let lab = Lab::open()?;
    let unpacked;
    let site: PathBuf = if Path::new(&wheel)
        .extension()
        .is_some_and(|extension| extension == "whl")
    {
        let caller = std::env::var_os("SPARK_CALLER_DIR")
            .map(PathBuf::from)
            .unwrap_or_default();
        unpacked = harness::unpacked_wheel(&caller.join(&wheel))?;
        unpacked.path().to_owned()
    } else {
        // Which Python the wheel is for does not matter: the C++ classes are the same.
        lab.package(PythonVersion::V3_13, &format!("endstone=={wheel}"))?
    };
    let released = abi::Released::read(&site)?;
    let differences = abi::all(&released).map_err(|error| CommandError::Result(error.to_string()))?;
    if differences.is_empty() {
        println!("{wheel}: compatible. Everything that the plugin uses is where it is in Endstone {ENDSTONE_VERSION}.");
        return Ok(ExitCode::SUCCESS);
    }
    for difference in &differences {
        println!("{difference}");
    }
    Err(CommandError::Result(format!(
        "{wheel}: not compatible, {} differences from what src/endstone/abi says (Endstone {ENDSTONE_VERSION})",
        differences.len()
    )))
}
