//! The subcommands of `./dev`.

mod abi;
mod arguments;
mod bench;
mod build;
mod demo;
mod fuzz;
mod pythons;
mod release;
mod serve;
mod suite;
mod test;
mod torture;

use harness::Error;
use std::process::{Command, ExitCode, ExitStatus};

/// Why a subcommand failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The command line is not understood.
    #[error("{0}")]
    Usage(String),
    /// Something could not be set up, or a server misbehaved.
    #[error(transparent)]
    Harness(#[from] Error),
    /// The work was done, and its result is not what it should be.
    #[error("{0}")]
    Result(String),
}

impl CommandError {
    /// 2 for a command line that is not understood, as shells have it, else 1.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(if matches!(self, Self::Usage(_)) { 2 } else { 1 })
    }
}

type Outcome = Result<ExitCode, CommandError>;

/// Runs [`harness::Lab::cargo`] to its end, which may be a bad one.
fn run_cargo(cargo: &mut Command) -> Result<ExitStatus, CommandError> {
    cargo
        .status()
        .map_err(|error| CommandError::Result(format!("cargo cannot be started: {error}")))
}

struct Subcommand {
    name: &'static str,
    arguments: &'static str,
    summary: &'static str,
    run: fn(Vec<String>) -> Outcome,
}

const SUBCOMMANDS: [Subcommand; 10] = [
    Subcommand {
        name: "demo",
        arguments: "[--python X.Y] [--seconds N]",
        summary: "profile a server with two sample plugins and show the result",
        run: demo::run,
    },
    Subcommand {
        name: "test",
        arguments: "[ARGUMENTS FOR cargo test]",
        summary: "set up every supported Python available here and run all tests",
        run: test::run,
    },
    Subcommand {
        name: "torture",
        arguments: "[--truth] [--python X.Y] [--minutes N] [--seed N]",
        summary: "do everything at once to a server, or compare samples with what Python really ran, for ten minutes on each version unless said otherwise",
        run: torture::run,
    },
    Subcommand {
        name: "fuzz",
        arguments: "NAME|all [SECONDS] [--seed N] [--file FILE]",
        summary: "give random inputs to one reader of files, commands or answers, or to all, a minute each unless said otherwise",
        run: fuzz::run,
    },
    Subcommand {
        name: "bench",
        arguments: "[PART] [-- ARGUMENTS FOR THE PART]",
        summary: "measure on this machine what the profiler costs and whether it is true, beside other profilers; tables, and target/bench*.json",
        run: bench::run,
    },
    Subcommand {
        name: "build",
        arguments: "",
        summary: "build the plugin and everything that tests need",
        run: build::run,
    },
    Subcommand {
        name: "server",
        arguments: "DIR [--python X.Y] [-- ARGUMENTS FOR THE STAND-IN]",
        summary: "run the stand-in server in a folder of yours, with the profiler in it and what you put into DIR/plugins",
        run: serve::run,
    },
    Subcommand {
        name: "release",
        arguments: "[--test]",
        summary: "build the plugin for systems with an older C library, as target/dist/endstone_spark.so; test that file in the stand-in server",
        run: release::run,
    },
    Subcommand {
        name: "abi",
        arguments: "WHEEL",
        summary: "compare a release of Endstone, a file or a version such as 0.11.0, with what the plugin was written for",
        run: abi::run,
    },
    Subcommand {
        name: "pythons",
        arguments: "",
        summary: "list the Python versions found or downloaded",
        run: pythons::run,
    },
];

/// Runs the subcommand that the arguments name.
pub fn run(arguments: impl IntoIterator<Item = String>) -> Outcome {
    let mut arguments = arguments.into_iter();
    let name = match arguments.next().as_deref() {
        None | Some("help" | "--help" | "-h") => {
            print!("{}", help());
            return Ok(ExitCode::SUCCESS);
        }
        Some(name) => name.to_owned(),
    };
    let Some(subcommand) = SUBCOMMANDS.iter().find(|subcommand| subcommand.name == name) else {
        return Err(CommandError::Usage(format!("there is no ./dev {name}\n\n{}", help())));
    };
    let arguments: Vec<String> = arguments.collect();
    let mut of_ours = arguments.iter().take_while(|argument| *argument != "--");
    if name != "test" && of_ours.any(|argument| argument == "--help" || argument == "-h") {
        print!("{}", help());
        return Ok(ExitCode::SUCCESS);
    }
    (subcommand.run)(arguments)
}

fn help() -> String {
    let mut text = "./dev COMMAND\n\n".to_owned();
    for subcommand in &SUBCOMMANDS {
        let usage = format!("{} {}", subcommand.name, subcommand.arguments);
        text += &format!("  {}\n      {}\n", usage.trim_end(), subcommand.summary);
    }
    text + "\nSPARK_PYTHON names the Python to use, SPARK_DEBIAN_MIRROR where missing ones are fetched from.\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_command_is_answered_with_the_list() {
        let error = run(["dance".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("there is no ./dev dance"), "{error}");
        for subcommand in &SUBCOMMANDS {
            assert!(error.contains(subcommand.summary), "{error}");
        }
    }
}
