//! `./dev build`: cargo has built everything when this runs; the sample plugins are left.

use super::arguments::Arguments;
use super::{CommandError, Outcome};
use harness::Lab;
use std::process::ExitCode;

pub(super) fn run(arguments: Vec<String>) -> Outcome {
    Arguments::new("build", arguments).finish()?;
    let lab = Lab::open()?;
    println!("plugin          {}", lab.plugin()?.display());
    println!("stand-in server {}", lab.built("bedrock_server")?.display());
    for wheel in lab.sample_plugins().map_err(CommandError::from)? {
        println!("sample plugin   {}", wheel.display());
    }
    Ok(ExitCode::SUCCESS)
}
