//! From arguments to a command.

use super::flags::{self, Flag};
use super::health::HealthView;
use super::help::JavaCommand;
use super::monitor;
use super::ping;
use super::start::start;
use super::tokens;
use crate::limits;
use crate::model::{SlowTicks, clean_text};
use crate::session::{Destination, Requester, StartRequest, StopRequest};

/// What was asked for.
#[derive(Clone, PartialEq, Debug)]
pub enum Command {
    /// Show what there is.
    Help,
    /// Show which build this is.
    Version,
    /// Something about profiling.
    Profiler(ProfilerCommand),
    /// Show how the server ticks.
    Tps,
    /// Show how the server and its machine are.
    Health(HealthView),
    /// Show how long players' packets take.
    Ping {
        /// Whose; `None` for all.
        player: Option<String>,
    },
    /// Tell of slow ticks, or no longer.
    TickMonitor(SlowTicks),
    /// List past profiles.
    Activity {
        /// Counted from 1.
        page: usize,
    },
    /// Something that spark for Java has.
    Java(JavaCommand),
}

/// What was asked of the profiler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProfilerCommand {
    /// Begin a session.
    Start(StartRequest),
    /// End the session and export it.
    Stop(StopRequest),
    /// Show the state.
    Info,
    /// End the session and drop it.
    Cancel,
}

/// Why a line is not a command. Each text is one line and names what is allowed; what it repeats is cleaned and short.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseError {
    /// Longer than any real command.
    #[error("The command is too long: at most {} bytes.", limits::COMMAND_LINE_BYTES)]
    TooLong,
    /// A quote without its partner.
    #[error("A quote is not closed. Write texts as \"like this\".")]
    UnclosedQuote,
    /// Not a word that may stand first.
    #[error("Unknown command \"{}\". Use: help, version, profiler, tps, health, ping, tickmonitor, activity.", echo(.0))]
    UnknownModule(String),
    /// `profiler` alone with flags behind it.
    #[error("The profiler needs to know what to do. Use: start, stop, upload, info, cancel.")]
    NoAction,
    /// Not a word that may stand after `profiler`.
    #[error("Unknown profiler command \"{}\". Use: start, stop, upload, info, cancel.", echo(.0))]
    UnknownAction(String),
    /// A word where only flags may stand, or nothing.
    #[error("Did not expect \"{}\" after \"{action}\". {}", echo(.word), allowed_flags(.action))]
    StrayWord {
        /// The command.
        action: &'static str,
        /// The word.
        word: String,
    },
    /// A flag that this command does not have.
    #[error("\"{action}\" has no option --{}. {}", echo(.name), allowed_flags(.action))]
    UnknownFlag {
        /// The command.
        action: &'static str,
        /// Without dashes.
        name: String,
    },
    /// Twice, with different values.
    #[error("--{} is given twice with different values. Give it once.", echo(.0))]
    Contradiction(String),
    /// Not a number in range.
    #[error("--interval must be a number of milliseconds from 0.1 to 1000.")]
    Interval,
    /// Not a number in range.
    #[error(
        "--timeout must be a whole number of seconds from {} to {}.",
        limits::MIN_TIMEOUT_SECONDS,
        limits::MAX_TIMEOUT_SECONDS
    )]
    Timeout,
    /// Not a page.
    #[error("--page must be a whole number from 1.")]
    Page,
    /// Without a name.
    #[error("--player needs the name of a player.")]
    Player,
    /// Not a number in range.
    #[error("--threshold must be a number of percent above 0.")]
    Threshold,
    /// Not a number in range.
    #[error("--threshold-tick must be a number of milliseconds above 0.")]
    ThresholdTick,
    /// Both.
    #[error("--threshold and --threshold-tick exclude each other. Give one of them.")]
    Thresholds,
    /// Not a length of a tick.
    #[error(
        "--only-ticks-over must be a whole number of milliseconds from 1 to {}, for example 60.",
        limits::MAX_TICK_MILLIS
    )]
    OnlyTicksOver,
    /// Without a name.
    #[error("--thread needs the name of a thread, or * for all. It may be given several times.")]
    Thread,
    /// Alone.
    #[error("--regex makes patterns of thread names. Give at least one, for example --thread \"worker-.*\" --regex.")]
    RegexAlone,
    /// Not a pattern.
    #[error("\"{}\" is not a pattern: {}.", echo(.pattern), echo_reason(.reason))]
    Pattern {
        /// What was given.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Both.
    #[error("--not-combined and --combine-all exclude each other. Give one of them.")]
    Grouping,
    /// A switch with a value.
    #[error("--{0} takes no value.")]
    NoValue(&'static str),
    /// Missing, or nothing of it is left when it is made presentable.
    #[error(
        "--comment needs a text of 1 to {} characters, for example --comment \"lag at spawn\".",
        limits::COMMENT_CHARS
    )]
    Comment,
}

fn echo(text: &str) -> String {
    clean_text(text, limits::ECHO_CHARS)
}

fn echo_reason(text: &str) -> String {
    let text = clean_text(text, limits::COMMENT_CHARS);
    text.strip_suffix('.').unwrap_or(&text).to_owned()
}

fn allowed_flags(action: &str) -> &'static str {
    match action {
        START => {
            "Use: --thread NAME, --regex, --interval MS, --timeout SECONDS, --only-ticks-over MS, --ignore-sleeping, --not-combined, --combine-all, --show-interpreter, --comment \"TEXT\", --save-to-file."
        }
        STOP => "Use: --save-to-file, --comment \"TEXT\".",
        UPLOAD => "Use: --comment \"TEXT\".",
        ACTIVITY => "Use: --page N.",
        HEALTH => "Use: --memory, --network, --upload.",
        PING => "Use: --player NAME.",
        MONITOR => "Use: --threshold PERCENT or --threshold-tick MS.",
        _ => "It takes nothing more.",
    }
}

const HELP: &str = "help";
const VERSION: &str = "version";
const ACTIVITY: &str = "activity";
const TPS: &str = "tps";
pub(super) const HEALTH: &str = "health";
pub(super) const PING: &str = "ping";
pub(super) const MONITOR: &str = "tickmonitor";
const PROFILER: &str = "profiler";
pub(super) const START: &str = "profiler start";
const STOP: &str = "profiler stop";
const UPLOAD: &str = "profiler upload";
const INFO: &str = "profiler info";
const CANCEL: &str = "profiler cancel";
const OPEN: &str = "profiler open";

/// Understands the arguments of `/spark`, however the server split them; `by` typed them.
///
/// # Errors
/// One line for the sender; see [`ParseError`].
pub fn parse<S: AsRef<str>>(arguments: &[S], by: &Requester) -> Result<Command, ParseError> {
    let length: usize = arguments.iter().map(|argument| argument.as_ref().len() + 1).sum();
    if length > limits::COMMAND_LINE_BYTES {
        return Err(ParseError::TooLong);
    }
    let line = arguments.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" ");
    let tokens = tokens::split(&line).map_err(|_| ParseError::UnclosedQuote)?;
    let Some((module, rest)) = tokens.split_first() else {
        return Ok(Command::Help);
    };
    match module.text.to_lowercase().as_str() {
        "help" => none(HELP, &flags::group(HELP, rest)?).map(|()| Command::Help),
        "version" | "--version" => none(VERSION, &flags::group(VERSION, rest)?).map(|()| Command::Version),
        "profiler" | "sampler" => profiler(rest, by),
        "tps" | "cpu" => none(TPS, &flags::group(TPS, rest)?).map(|()| Command::Tps),
        "health" | "healthreport" | "ht" => HealthView::of(&flags::group(HEALTH, rest)?).map(Command::Health),
        "ping" => ping::player(&flags::group(PING, rest)?).map(|player| Command::Ping { player }),
        "tickmonitor" | "tickmonitoring" => {
            monitor::slow_ticks(&flags::group(MONITOR, rest)?).map(Command::TickMonitor)
        }
        "activity" | "activitylog" | "log" => activity(&flags::group(ACTIVITY, rest)?),
        "heapsummary" | "heapdump" => Ok(Command::Java(JavaCommand::Heap)),
        "gc" | "gcmonitor" => Ok(Command::Java(JavaCommand::Collector)),
        _ => Err(ParseError::UnknownModule(module.text.clone())),
    }
}

fn profiler(tokens: &[tokens::Token], by: &Requester) -> Result<Command, ParseError> {
    let Some((word, rest)) = tokens.split_first() else {
        return Ok(Command::Help);
    };
    if word.text.starts_with("--") && !word.quoted {
        return by_flag(flags::group(PROFILER, tokens)?, by);
    }
    let action = Action::of(&word.text).ok_or_else(|| ParseError::UnknownAction(word.text.clone()))?;
    action.with(&flags::group(action.name(), rest)?, by)
}

/// The older form of spark's commands: `profiler --stop --comment x`.
fn by_flag(mut flags: Vec<Flag>, by: &Requester) -> Result<Command, ParseError> {
    let is_action = |flag: &Flag| Action::of(&flag.name).is_some_and(|action| action != Action::Start);
    let place = flags.iter().position(is_action).ok_or(ParseError::NoAction)?;
    let flag = flags.remove(place);
    let Some(action) = Action::of(&flag.name).filter(|_| !flags.iter().any(is_action)) else {
        return Err(ParseError::NoAction);
    };
    match flag.value {
        Some(_) => Err(ParseError::NoValue(action.word())),
        None => action.with(&flags, by),
    }
}

/// What can be done with the profiler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Action {
    Start,
    Stop,
    Upload,
    Info,
    Cancel,
    Open,
}

impl Action {
    const ALL: [Action; 6] = [
        Action::Start,
        Action::Stop,
        Action::Upload,
        Action::Info,
        Action::Cancel,
        Action::Open,
    ];

    fn of(word: &str) -> Option<Self> {
        let word = word.to_lowercase();
        Action::ALL.into_iter().find(|action| action.word() == word)
    }

    const fn word(self) -> &'static str {
        match self {
            Action::Start => "start",
            Action::Stop => "stop",
            Action::Upload => "upload",
            Action::Info => "info",
            Action::Cancel => "cancel",
            Action::Open => "open",
        }
    }

    /// As answers name it.
    const fn name(self) -> &'static str {
        match self {
            Action::Start => START,
            Action::Stop => STOP,
            Action::Upload => UPLOAD,
            Action::Info => INFO,
            Action::Cancel => CANCEL,
            Action::Open => OPEN,
        }
    }

    fn with(self, flags: &[Flag], by: &Requester) -> Result<Command, ParseError> {
        let alone = |command| none(self.name(), flags).map(|()| command);
        Ok(match self {
            Action::Start => Command::Profiler(ProfilerCommand::Start(start(flags, by)?)),
            Action::Stop | Action::Upload => Command::Profiler(ProfilerCommand::Stop(self.stop(flags, by)?)),
            Action::Info => alone(Command::Profiler(ProfilerCommand::Info))?,
            Action::Cancel => alone(Command::Profiler(ProfilerCommand::Cancel))?,
            // Whatever follows, it is not there.
            Action::Open => Command::Java(JavaCommand::Open),
        })
    }

    fn stop(self, flags: &[Flag], by: &Requester) -> Result<StopRequest, ParseError> {
        let mut to = match self {
            Action::Upload => Destination::Server,
            _ => Destination::AsStarted,
        };
        let mut said = None;
        for flag in flags {
            match flag.name.as_str() {
                "save-to-file" if self == Action::Stop => {
                    switch("save-to-file", flag)?;
                    to = Destination::File;
                }
                "comment" => said = Some(comment(flag)?),
                _ => {
                    return Err(ParseError::UnknownFlag {
                        action: self.name(),
                        name: flag.name.clone(),
                    });
                }
            }
        }
        Ok(StopRequest {
            to,
            comment: said,
            requested_by: by.clone(),
        })
    }
}

/// Nothing may follow `action`.
fn none(action: &'static str, flags: &[Flag]) -> Result<(), ParseError> {
    match flags.first() {
        Some(flag) => Err(ParseError::UnknownFlag {
            action,
            name: flag.name.clone(),
        }),
        None => Ok(()),
    }
}

fn activity(flags: &[Flag]) -> Result<Command, ParseError> {
    let mut page = 1;
    for flag in flags {
        if flag.name != "page" {
            return Err(ParseError::UnknownFlag {
                action: ACTIVITY,
                name: flag.name.clone(),
            });
        }
        let value = flag.value.as_deref().unwrap_or_default();
        let number = value
            .bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| value.parse().ok());
        page = number.flatten().filter(|page| *page > 0).ok_or(ParseError::Page)?;
    }
    Ok(Command::Activity { page })
}

/// A flag that is there or not.
pub(super) fn switch(name: &'static str, flag: &Flag) -> Result<bool, ParseError> {
    match flag.value {
        None => Ok(true),
        Some(_) => Err(ParseError::NoValue(name)),
    }
}

/// One line of text for the profile's page.
pub(super) fn comment(flag: &Flag) -> Result<String, ParseError> {
    let text = clean_text(flag.value.as_deref().unwrap_or_default(), usize::MAX);
    if text.is_empty() || text.chars().count() > limits::COMMENT_CHARS {
        return Err(ParseError::Comment);
    }
    Ok(text)
}
