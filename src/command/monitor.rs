//! `/spark tickmonitor`.

use super::figures::{count, counted};
use super::flags::Flag;
use super::line::Line;
use super::parse::{MONITOR, ParseError};
use crate::limits;
use crate::model::{MonitorEvent, SlowTicks};
use crate::session::MonitorChange;

/// Twice as long as usual.
const USUAL: SlowTicks = SlowTicks::PercentOver(100.0);

/// Which ticks are to be told of.
pub(super) fn slow_ticks(flags: &[Flag]) -> Result<SlowTicks, ParseError> {
    let mut slow = None;
    for flag in flags {
        let value = flag.value.as_deref().unwrap_or_default();
        let wanted = match flag.name.as_str() {
            "threshold" => SlowTicks::PercentOver(positive(value.trim_end_matches('%')).ok_or(ParseError::Threshold)?),
            "threshold-tick" => SlowTicks::Millis(positive(value).ok_or(ParseError::ThresholdTick)?),
            _ => {
                return Err(ParseError::UnknownFlag {
                    action: MONITOR,
                    name: flag.name.clone(),
                });
            }
        };
        if slow.replace(wanted).is_some() {
            return Err(ParseError::Thresholds);
        }
    }
    Ok(slow.unwrap_or(USUAL))
}

/// A number above 0 of digits with a point at most.
fn positive(text: &str) -> Option<f64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number = text.parse().ok().filter(|_| is_plain)?;
    (number > 0.0 && number <= limits::MOST_THRESHOLD).then_some(number)
}

pub(super) fn changed(change: MonitorChange) -> Line {
    match change {
        MonitorChange::Started(slow) => {
            let line = Line::new()
                .text("The tick monitor looks at ")
                .value(counted(limits::MONITOR_BASELINE_TICKS, "tick"))
                .text(" first, then it tells of those that take ");
            let line = match slow {
                SlowTicks::PercentOver(percent) => {
                    line.value(format!("{percent} %")).text(" longer than their average")
                }
                SlowTicks::Millis(millis) => line.value(format!("{millis} ms")),
            };
            line.text(" or more. The same command again stops it.")
        }
        MonitorChange::Stopped => Line::new().text("The tick monitor is off."),
    }
}

pub(super) fn event(event: &MonitorEvent) -> Line {
    match *event {
        MonitorEvent::Ready { mean, min, max } => Line::new()
            .text("The tick monitor is ready. Ticks take ")
            .value(format!("{mean:.1} ms"))
            .text(" on average, ")
            .value(format!("{min:.1}"))
            .text(" to ")
            .value(format!("{max:.1} ms"))
            .text("."),
        MonitorEvent::Slow {
            number,
            millis,
            percent_over,
            unreported,
        } => {
            let line = Line::new()
                .text("Tick ")
                .value(count(number))
                .text(" took ")
                .bad(format!("{millis:.1} ms"));
            let line = match percent_over {
                Some(percent) if percent >= 0.0 => line.text(format!(", {percent:.0} % longer than the average")),
                _ => line,
            };
            match unreported {
                0 => line.text("."),
                more => line.text(format!(
                    ". Since the last report {} more {} slow.",
                    count(more),
                    if more == 1 { "was" } else { "were" }
                )),
            }
        }
    }
}
