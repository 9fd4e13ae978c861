//! `./dev server DIR`: the stand-in in a folder of yours.

use super::arguments::Arguments;
use super::{CommandError, Outcome};
use harness::{Lab, install, launch_command, note};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

pub(super) fn run(arguments: Vec<String>) -> Outcome {
    let mut arguments = Arguments::new("server", arguments);
    let for_server = arguments.after_dashes();
    let version = arguments.python()?;
    let dir = arguments
        .positional()
        .ok_or_else(|| arguments.usage("name a folder, for example ./dev server my-server".to_owned()))?;
    arguments.finish()?;

    let lab = Lab::open()?;
    let python = match version {
        Some(version) => lab.python(version)?,
        None => lab.default_python()?,
    };
    let dir = absolute(Path::new(&dir))?;
    install(&lab.plugin()?, &dir, "endstone_spark.so")?;
    let mut command = launch_command(&lab, &python, &dir)?;
    command.args(for_server);
    note(format!(
        "Python {} ({}), plugins in {}",
        python.full_version,
        python.origin,
        dir.join("plugins").display()
    ));
    note(
        "type commands as on a server's console, for example: spark profiler start. The word stop alone shuts the server down",
    );
    // The server takes this process's place, so that it has the terminal and its exit code is ours.
    Err(CommandError::Result(format!(
        "the server cannot be started: {}",
        command.exec()
    )))
}

fn absolute(dir: &Path) -> Result<PathBuf, CommandError> {
    // ./dev has gone to the project's folder; what was typed is meant from where it was typed.
    let typed_in = std::env::var_os("SPARK_CALLER_DIR")
        .map(PathBuf::from)
        .unwrap_or_default();
    std::path::absolute(typed_in.join(dir)).map_err(|error| CommandError::Usage(format!("{}: {error}", dir.display())))
}
