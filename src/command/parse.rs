//! From arguments to a command.

use super::clean::clean_text;
use super::flags::{self, Flag};
use super::tokens;
use super::view;
use crate::limits;
use crate::model::{NamePattern, ThreadChoice, ThreadNames, View};

/// What was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// Show what there is.
    Help,
    /// Something about profiling.
    Profiler(ProfilerCommand),
}

/// What was asked of the profiler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProfilerCommand {
    /// Begin a session.
    Start {
        /// Time between samples, in microseconds.
        interval_micros: u64,
        /// Seconds after which it stops by itself.
        timeout_seconds: Option<u64>,
        /// Which threads.
        threads: ThreadChoice,
        /// Leave out the time in which threads wait.
        ignore_sleeping: bool,
        /// What the profile will show.
        view: View,
    },
    /// End the session and export it.
    Stop {
        /// Whether a file was asked for.
        save_to_file: bool,
        /// One line for the profile's page.
        comment: Option<String>,
    },
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
    #[error("Unknown command \"{}\". Use: help, profiler.", echo(.0))]
    UnknownModule(String),
    /// `profiler` alone with flags behind it.
    #[error("The profiler needs to know what to do. Use: start, stop, info, cancel.")]
    NoAction,
    /// Not a word that may stand after `profiler`.
    #[error("Unknown profiler command \"{}\". Use: start, stop, info, cancel.", echo(.0))]
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
            "Use: --thread NAME, --regex, --interval MS, --timeout SECONDS, --ignore-sleeping, --not-combined, --combine-all, --show-interpreter."
        }
        STOP => "Use: --save-to-file, --comment \"TEXT\".",
        _ => "It takes nothing more.",
    }
}

const HELP: &str = "help";
const START: &str = "profiler start";
const STOP: &str = "profiler stop";
const INFO: &str = "profiler info";
const CANCEL: &str = "profiler cancel";

/// Understands the arguments of `/spark`, however the server split them.
///
/// # Errors
/// One line for the sender; see [`ParseError`].
pub fn parse<S: AsRef<str>>(arguments: &[S]) -> Result<Command, ParseError> {
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
        "help" => alone(HELP, rest, Command::Help),
        "profiler" | "sampler" => profiler(rest),
        _ => Err(ParseError::UnknownModule(module.text.clone())),
    }
}

/// `command` when nothing follows.
fn alone(action: &'static str, rest: &[tokens::Token], command: Command) -> Result<Command, ParseError> {
    match flags::group(action, rest)?.into_iter().next() {
        Some(flag) => Err(ParseError::UnknownFlag {
            action,
            name: flag.name,
        }),
        None => Ok(command),
    }
}

fn profiler(tokens: &[tokens::Token]) -> Result<Command, ParseError> {
    let Some((action, rest)) = tokens.split_first() else {
        return Ok(Command::Help);
    };
    if action.text.starts_with("--") && !action.quoted {
        return Err(ParseError::NoAction);
    }
    match action.text.to_lowercase().as_str() {
        "start" => start(&flags::group(START, rest)?).map(Command::Profiler),
        "stop" => stop(&flags::group(STOP, rest)?).map(Command::Profiler),
        "info" => alone(INFO, rest, Command::Profiler(ProfilerCommand::Info)),
        "cancel" => alone(CANCEL, rest, Command::Profiler(ProfilerCommand::Cancel)),
        _ => Err(ParseError::UnknownAction(action.text.clone())),
    }
}

fn start(flags: &[Flag]) -> Result<ProfilerCommand, ParseError> {
    let mut interval_micros = limits::DEFAULT_INTERVAL_MICROS;
    let mut timeout_seconds = None;
    let mut names = Vec::new();
    let mut regex = false;
    let mut ignore_sleeping = false;
    let mut view = View::default();
    for flag in flags {
        if view::apply(flag, &mut view)? {
            continue;
        }
        let value = flag.value.as_deref().unwrap_or_default();
        match flag.name.as_str() {
            "interval" => interval_micros = micros(value).ok_or(ParseError::Interval)?,
            "timeout" => timeout_seconds = Some(seconds(value).ok_or(ParseError::Timeout)?),
            "thread" if value.is_empty() => return Err(ParseError::Thread),
            "thread" => names.push(value.to_owned()),
            "regex" => regex = switch("regex", flag)?,
            "ignore-sleeping" => ignore_sleeping = switch("ignore-sleeping", flag)?,
            _ => {
                return Err(ParseError::UnknownFlag {
                    action: START,
                    name: flag.name.clone(),
                });
            }
        }
    }
    Ok(ProfilerCommand::Start {
        interval_micros,
        timeout_seconds,
        threads: thread_choice(names, regex)?,
        ignore_sleeping,
        view,
    })
}

fn switch(name: &'static str, flag: &Flag) -> Result<bool, ParseError> {
    match flag.value {
        None => Ok(true),
        Some(_) => Err(ParseError::NoValue(name)),
    }
}

fn thread_choice(names: Vec<String>, regex: bool) -> Result<ThreadChoice, ParseError> {
    if names.iter().any(|name| name == "*") {
        return Ok(ThreadChoice::All);
    }
    match (names.is_empty(), regex) {
        (true, true) => Err(ParseError::RegexAlone),
        (true, false) => Ok(ThreadChoice::Server),
        (false, false) => Ok(ThreadChoice::Named(ThreadNames::Exact(names))),
        (false, true) => {
            let patterns = names
                .into_iter()
                .map(|pattern| NamePattern::new(&pattern).map_err(|reason| ParseError::Pattern { pattern, reason }));
            Ok(ThreadChoice::Named(ThreadNames::Patterns(
                patterns.collect::<Result<_, _>>()?,
            )))
        }
    }
}

fn stop(flags: &[Flag]) -> Result<ProfilerCommand, ParseError> {
    let mut save_to_file = false;
    let mut comment = None;
    for flag in flags {
        match (flag.name.as_str(), &flag.value) {
            ("save-to-file", None) => save_to_file = true,
            ("save-to-file", Some(_)) => return Err(ParseError::NoValue("save-to-file")),
            ("comment", value) => {
                let text = clean_text(value.as_deref().unwrap_or_default(), usize::MAX);
                if text.is_empty() || text.chars().count() > limits::COMMENT_CHARS {
                    return Err(ParseError::Comment);
                }
                comment = Some(text);
            }
            _ => {
                return Err(ParseError::UnknownFlag {
                    action: STOP,
                    name: flag.name.clone(),
                });
            }
        }
    }
    Ok(ProfilerCommand::Stop { save_to_file, comment })
}

/// Milliseconds with at most three decimals, as microseconds, when in range. Digits and one point only: no sign, no exponent, no `NaN`.
fn micros(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 3 {
        return None;
    }
    let fraction = fraction.parse::<u64>().ok()? * 10u64.pow(3 - fraction.len() as u32);
    let micros = whole.parse::<u64>().ok()?.checked_mul(1_000)?.checked_add(fraction)?;
    (limits::MIN_INTERVAL_MICROS..=limits::MAX_INTERVAL_MICROS)
        .contains(&micros)
        .then_some(micros)
}

/// Whole seconds, when in range. Digits only.
fn seconds(text: &str) -> Option<u64> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let seconds = text.parse::<u64>().ok()?;
    (limits::MIN_TIMEOUT_SECONDS..=limits::MAX_TIMEOUT_SECONDS)
        .contains(&seconds)
        .then_some(seconds)
}
