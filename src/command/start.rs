//! What a session is started with.

use super::flags::Flag;
use super::parse::{ParseError, START, comment, switch};
use super::view;
use crate::limits;
use crate::model::{NamePattern, ThreadChoice, ThreadNames};
use crate::session::{Requester, StartRequest};

/// Reads the flags of `start`; `by` is who typed them.
pub(super) fn start(flags: &[Flag], by: &Requester) -> Result<StartRequest, ParseError> {
    let mut start = StartRequest::new(limits::DEFAULT_INTERVAL_MICROS, by.clone());
    let mut names = Vec::new();
    let mut regex = false;
    for flag in flags {
        if view::apply(flag, &mut start.view)? {
            continue;
        }
        let value = flag.value.as_deref().unwrap_or_default();
        match flag.name.as_str() {
            "interval" => start.interval_micros = micros(value).ok_or(ParseError::Interval)?,
            "timeout" => start.timeout_seconds = Some(seconds(value).ok_or(ParseError::Timeout)?),
            "thread" if value.trim().is_empty() => return Err(ParseError::Thread),
            "thread" => names.push(value.trim().to_owned()),
            "regex" => regex = switch("regex", flag)?,
            "ignore-sleeping" => start.ignore_sleeping = switch("ignore-sleeping", flag)?,
            "save-to-file" => start.save_to_file = switch("save-to-file", flag)?,
            "comment" => start.comment = Some(comment(flag)?),
            "only-ticks-over" => {
                start.only_ticks_over_millis = Some(tick_millis(value).ok_or(ParseError::OnlyTicksOver)?);
            }
            _ => {
                return Err(ParseError::UnknownFlag {
                    action: START,
                    name: flag.name.clone(),
                });
            }
        }
    }
    start.threads = thread_choice(names, regex)?;
    Ok(start)
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

/// Whole seconds, when in range.
fn seconds(text: &str) -> Option<u64> {
    whole(text).filter(|seconds| (limits::MIN_TIMEOUT_SECONDS..=limits::MAX_TIMEOUT_SECONDS).contains(seconds))
}

/// Whole milliseconds of a tick, when in range.
fn tick_millis(text: &str) -> Option<u64> {
    whole(text).filter(|millis| (1..=limits::MAX_TICK_MILLIS).contains(millis))
}

/// A whole number. Digits only.
fn whole(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}
