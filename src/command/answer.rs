//! The wording of everything that is said.

use super::clean::clean_text;
use super::figures::{count, counted, duration, interval, place, share, size};
use super::line::Line;
use super::parse::ParseError;
use crate::limits;
use crate::model::{PythonDiagnostics, PythonState, SampleLoss, SamplerDiagnostics};
use crate::session::{Notice, Refusal, Requester, RunningInfo, SessionInfo};

const START: &str = "/spark profiler start";
const STOP: &str = "/spark profiler stop";
const CANCEL: &str = "/spark profiler cancel";
const INFO: &str = "/spark profiler info";

/// Where a saved profile is looked at.
const VIEWER: &str = "https://spark.lucko.me/";

fn name(text: &str) -> String {
    clean_text(text, limits::ECHO_CHARS)
}

fn reason(text: &str) -> String {
    let text = clean_text(text, limits::COMMENT_CHARS);
    text.strip_suffix('.').unwrap_or(&text).to_owned()
}

pub(super) fn help() -> Vec<Line> {
    let entry = |usage: &str, what: &str| Line::continued().value(usage).text(format!(": {what}"));
    vec![
        Line::new()
            .value(concat!("spark ", env!("CARGO_PKG_VERSION")))
            .text(" profiles this server. Commands:"),
        entry(
            "/spark profiler start [--interval MS] [--timeout SECONDS]",
            "start sampling the server thread",
        ),
        entry(
            "... start [--thread NAME]... [--regex] [--ignore-sleeping]",
            "other threads (* for all, with --regex by pattern); leave out waiting",
        ),
        entry(
            "... start [--not-combined] [--combine-all] [--show-interpreter]",
            "one tree per thread, one for all; keep Python's own call functions",
        ),
        entry(
            "/spark profiler stop [--save-to-file] [--comment \"TEXT\"]",
            "stop, and save the profile to a file",
        ),
        entry(INFO, "show how the profiler is doing"),
        entry(CANCEL, "stop, and throw the samples away"),
    ]
}

pub(super) fn parse_error(error: &ParseError) -> Line {
    Line::new().bad(error.to_string())
}

pub(super) fn start_accepted(interval_micros: u64, timeout_seconds: Option<u64>) -> Line {
    let line = Line::new()
        .text("Starting the profiler, one sample every ")
        .value(interval(interval_micros))
        .text(". ");
    match timeout_seconds {
        Some(seconds) => line
            .text("It stops by itself after ")
            .value(duration(seconds))
            .text("."),
        None => line.text("Stop it with ").value(STOP).text("."),
    }
}

pub(super) fn stop_accepted(save_to_file: bool) -> Line {
    let line = Line::new().text("Stopping the profiler. ");
    if save_to_file {
        line.text("The profile will be saved to a file.")
    } else {
        line.text("The profile will be saved to a file: this version cannot upload yet.")
    }
}

pub(super) fn cancel_accepted() -> Line {
    Line::new().text("Stopping the profiler without saving anything.")
}

/// What a refusal says: one line, with what to do instead.
pub fn answer_refusal(refusal: &Refusal) -> Line {
    match refusal {
        Refusal::AlreadyRunning { by, since_seconds } => Line::new()
            .bad("The profiler is running already: ")
            .value(name(by))
            .bad(" started it ")
            .value(duration(*since_seconds))
            .bad(" ago. Stop it with ")
            .value(STOP)
            .bad("."),
        Refusal::NotRunning => Line::new()
            .bad("The profiler is not running. Start it with ")
            .value(START)
            .bad("."),
        Refusal::Exporting => Line::new().bad("The last profile is still being saved. Try again when it is done."),
        Refusal::ServerThreadUnknown => {
            Line::new().bad("The server has not ticked yet. Try again when it has finished starting.")
        }
        Refusal::ShuttingDown => Line::new().bad("The plugin is being disabled."),
        Refusal::NoThread(why) => Line::new().bad(format!(
            "The system gives the profiler no thread to work on: {}.",
            reason(why)
        )),
    }
}

pub(super) fn info(info: &SessionInfo) -> Vec<Line> {
    let Some(running) = &info.running else {
        let mut lines = vec![if info.exporting {
            Line::new().text("The last profile is being saved.")
        } else if info.starting {
            Line::new().text("The profiler is starting.")
        } else {
            Line::new()
                .text("The profiler is not running. Start it with ")
                .value(START)
                .text(".")
        }];
        if info.unsaved > 0 {
            lines.push(
                Line::continued()
                    .bad(format!(
                        "Not saved yet: {}. Try again with ",
                        counted(info.unsaved as u64, "profile")
                    ))
                    .value(STOP)
                    .bad("."),
            );
        }
        return lines;
    };
    let mut lines = vec![progress(running), python_state(&running.python, &running.sampler)];
    lines.extend(stretched(running));
    lines.extend(losses(running));
    lines
}

/// One line when samples are further apart than asked for: one round in twenty, and by more than a twentieth on average.
fn stretched(running: &RunningInfo) -> Option<Line> {
    let sampler = &running.sampler;
    let asked_nanos = running.interval_micros * 1_000;
    if sampler.rounds_late * 20 < sampler.rounds || sampler.interval_nanos * 20 < asked_nanos * 21 {
        return None;
    }
    Some(
        Line::continued()
            .text("The interval is stretched to ")
            .value(interval(sampler.interval_nanos / 1_000))
            .text(": asking all threads takes longer than that, or the machine is busy."),
    )
}

fn progress(running: &RunningInfo) -> Line {
    let line = Line::new()
        .text("Profiling for ")
        .value(duration(running.elapsed_seconds))
        .text(", started by ")
        .value(requester(&running.started_by))
        .text(": ")
        .value(counted(running.samples, "sample"))
        .text(" of ")
        .value(counted(u64::from(running.threads), "thread"))
        .text(", one every ")
        .value(interval(running.interval_micros));
    match running.timeout_left_seconds {
        Some(left) => line.text("; stops by itself in ").value(duration(left)).text("."),
        None => line.text("."),
    }
}

fn requester(who: &Requester) -> String {
    name(&who.display_name())
}

fn python_state(python: &PythonDiagnostics, sampler: &SamplerDiagnostics) -> Line {
    let version = match python.version.as_str() {
        "" => String::new(),
        version => format!(" {}", name(version)),
    };
    let line = Line::continued().text("Python").value(version).text(": ");
    match &python.state {
        PythonState::Absent => line.text("none in this server, native frames only."),
        PythonState::Unsupported(why) => line.text(format!("native frames only: {}.", reason(why))),
        PythonState::Attaching => line.text("waiting for the interpreter."),
        PythonState::Active => {
            let functions = python.codes.iter().map(|count| u64::from(*count)).sum();
            let line = line
                .value(counted(functions, "function"))
                .text(" seen, in ")
                .value(share(sampler.attributed, sampler.samples))
                .text(" of the samples, deepest stack ")
                .value(count(u64::from(python.deepest)));
            let line = match python.threads_refused {
                0 => line,
                refused => line.bad(format!(", {} had no room", counted(refused, "thread"))),
            };
            let audits = &python.audits;
            match (audits.made, audits.disagreed) {
                (0, _) => line.text("."),
                (made, 0) => line
                    .text(", compared with the interpreter ")
                    .value(times(made))
                    .text("."),
                (made, disagreed) => line
                    .text(", compared with the interpreter ")
                    .value(times(made))
                    .bad(format!(", {} of them showed a wrong function.", count(disagreed))),
            }
        }
        PythonState::Degraded(why) => line.bad(format!("no longer recorded in full: {}.", reason(why))),
    }
}

fn times(number: u64) -> String {
    match number {
        1 => "once".to_owned(),
        number => counted(number, "time"),
    }
}

/// One line when anything was lost.
fn losses(running: &RunningInfo) -> Option<Line> {
    if running.lost == 0 {
        return None;
    }
    let reasons: Vec<String> = SampleLoss::ALL
        .iter()
        .map(|reason| (running.sampler.losses.get(*reason), reason.name()))
        .filter(|(number, _)| *number > 0)
        .map(|(number, reason)| format!("{} {reason}", count(number)))
        .collect();
    let line = Line::continued().text("Lost: ").value(counted(running.lost, "sample"));
    Some(if reasons.is_empty() {
        line.text(".")
    } else {
        line.text(format!(" ({}).", reasons.join(", ")))
    })
}

/// What a notice says.
pub fn answer_notice(notice: &Notice) -> Line {
    match notice {
        Notice::Started {
            interval_micros,
            threads,
            python,
        } => {
            let line = Line::new().good("The profiler is running: ");
            let line = match threads {
                0 => line.text("no thread has such a name yet; one that gets it joins"),
                threads => line.value(counted(u64::from(*threads), "thread")),
            };
            let line = line.text(", one sample every ").value(interval(*interval_micros));
            match python {
                PythonState::Absent => line.text(", native frames only (no Python in this server)."),
                PythonState::Active => line.text(", with Python functions."),
                PythonState::Attaching => line.text(", with Python functions as soon as the interpreter answers."),
                PythonState::Unsupported(why) | PythonState::Degraded(why) => {
                    line.text(format!(", native frames only: {}.", reason(why)))
                }
            }
        }
        Notice::StartFailed(why) => Line::new().bad(format!("The profiler could not start: {}.", reason(why))),
        Notice::Exporting { samples } => Line::new()
            .text("Naming and writing ")
            .value(counted(*samples, "sample"))
            .text(" ..."),
        Notice::Folded { frames } => Line::new()
            .text("The profile is too large for the viewer: its ")
            .value(count(*frames))
            .text(" smallest frames were folded into the ones that call them."),
        Notice::Saved { path, samples, bytes } => Line::new()
            .good("Saved ")
            .value(place(path))
            .text(format!(
                " ({}, {}). Drop the file onto ",
                counted(*samples, "sample"),
                size(*bytes)
            ))
            .value(VIEWER)
            .text(" to look at it."),
        Notice::SaveFailed {
            reason: why,
            kept,
            dropped,
        } => {
            let line = Line::new().bad(format!("The profile could not be saved: {}. ", reason(why)));
            let line = if *dropped {
                line.bad("The oldest that waited had to be given up. ")
            } else {
                line
            };
            match kept {
                0 => line.bad("It is lost."),
                1 => line.text("It is kept for another try: ").value(STOP).text("."),
                _ => line
                    .value(counted(*kept as u64, "profile"))
                    .text(" are kept for another try: ")
                    .value(STOP)
                    .text("."),
            }
        }
        Notice::Cancelled => Line::new().text("The profiler has stopped; nothing was saved."),
        Notice::TimedOut => Line::new().text("The profiler's time is up."),
        Notice::Stopped(why) => Line::new().bad(format!("The profiler has stopped: {}.", reason(why))),
        Notice::PythonDoubted(frames) => Line::new().bad(format!(
            "{} in the profile did not run: comparing with the interpreter found them. They are taken out; the profile says how often this happens.",
            counted(*frames, "Python function")
        )),
        Notice::PythonLost(why) => Line::new().bad(format!(
            "Python functions are no longer recorded in full: {}. Native profiling goes on.",
            reason(why)
        )),
    }
}
