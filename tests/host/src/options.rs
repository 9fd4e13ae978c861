//! The command line.

use std::path::PathBuf;

use crate::load::Load;
use crate::world_plan::WorldPlan;

pub const HELP: &str = "\
bedrock_server [DIR] [options]
A stand-in for the Bedrock Dedicated Server that runs Endstone's released runtime.
  DIR              server folder (default: the current one)
  --tick-ms MS     length of a tick in milliseconds, 5 to 1000 (default 50)
  --load SPEC      native work in percent of a tick, such as entities=30,redstone=20,chunks=10 (the default)
  --world SPEC     a world to look at, such as chunks=64,entities=40,players=2 (the default; without --world there is none)
  --no-python      neither start Python nor load Python plugins
  --own-python     the same, with a Python that Endstone does not know of
  --help           this text
On the console: plugins' commands, stop, and what tests ask
  !ticks N         later lines wait until N more ticks have run
  !pattern N MS,.. N rounds of ticks whose work takes so many milliseconds each; later lines wait for the end
  !steps N         from now on each tick also takes N steps of native work, however long they take; 0 for none
  !signals N       from now on a signal with an empty handler for the server thread every N microseconds; 0 for none
  !lost            percent of these steps' time that interruptions took since this was asked last
  !lengths         what each tick took since this was asked last, in milliseconds, as the server measures it
  !beats           how many milliseconds ago the level was ticked, for all ticks
  !shares          percent of wall time that the native work really took since this was asked last
  !sigprof         the action of SIGPROF
  !tasks           what plugins' tasks took of the ticks since this was asked last
  !world           chunks made and deleted, calls of the world's functions
  !threads         the names of all threads
  !tools           the sys.monitoring tools in use
  !throw N         the Nth message to the player from now on is answered with a C++ exception
  !end-a-thread P  a thread that ends (pthread_exit) inside the command of the plugin P
  !python EXPR     the value of a Python expression
  !elsewhere       calls of the profiler to the server on other threads since this was asked last
  !reload-plugins  what /reload does
  !finalise        ends the Python of --own-python at once";

const TICK_MS: std::ops::RangeInclusive<u64> = 5..=1000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    pub folder: Option<PathBuf>,
    pub tick_ms: u64,
    pub load: Load,
    pub python: bool,
    pub own_python: bool,
    pub world: Option<WorldPlan>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    Run(Options),
    Help,
}

/// Parses the arguments after the program's name.
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Request, String> {
    let mut options = Options {
        folder: None,
        tick_ms: 50,
        load: Load::default(),
        python: true,
        own_python: false,
        world: None,
    };
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let mut value = |name: &str| arguments.next().ok_or(format!("{name} needs a value"));
        match argument.as_str() {
            "--help" | "-h" => return Ok(Request::Help),
            "--no-python" => options.python = false,
            "--own-python" => (options.python, options.own_python) = (false, true),
            "--world" => options.world = Some(value("--world")?.parse()?),
            "--load" => options.load = value("--load")?.parse()?,
            "--tick-ms" => {
                let text = value("--tick-ms")?;
                options.tick_ms = text.parse().ok().filter(|ms| TICK_MS.contains(ms)).ok_or(format!(
                    "--tick-ms takes {} to {}, not {text}",
                    TICK_MS.start(),
                    TICK_MS.end()
                ))?;
            }
            option if option.starts_with('-') => return Err(format!("unknown option {option}; see --help")),
            folder if options.folder.is_none() => options.folder = Some(PathBuf::from(folder)),
            extra => return Err(format!("one server folder only, {extra} is too much")),
        }
    }
    Ok(Request::Run(options))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Result<Request, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn no_argument_means_the_current_folder_and_the_known_load() {
        let Ok(Request::Run(options)) = run("") else {
            panic!("not a run")
        };
        assert_eq!(options.folder, None);
        assert_eq!((options.tick_ms, options.python), (50, true));
        assert_eq!(
            options.load,
            Load {
                entities: 30,
                redstone: 20,
                chunks: 10
            }
        );
    }

    #[test]
    fn every_option_is_taken() {
        let Ok(Request::Run(options)) = run("srv --tick-ms 20 --load redstone=5 --no-python --world chunks=3") else {
            panic!("not a run")
        };
        assert_eq!(options.folder, Some(PathBuf::from("srv")));
        assert_eq!((options.tick_ms, options.python), (20, false));
        assert!(!options.own_python);
        assert_eq!(options.world.map(|plan| plan.chunks), Some(3));
        assert_eq!(
            options.load,
            Load {
                entities: 0,
                redstone: 5,
                chunks: 0
            }
        );
    }

    #[test]
    fn bad_options_are_named() {
        for (line, word) in [
            ("--tick-ms 4", "5 to 1000"),
            ("--tick-ms", "needs a value"),
            ("--fast", "--fast"),
            ("a b", "b is too much"),
        ] {
            let Err(text) = run(line) else {
                panic!("{line} was accepted")
            };
            assert!(text.contains(word), "{text}");
        }
    }

    #[test]
    fn help_wins() {
        assert_eq!(run("--help --fast"), Ok(Request::Help));
    }
}
