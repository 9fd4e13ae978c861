//! What `/spark profiler info` shows.

use super::answer::{START, STOP, name, reason, step};
use super::figures::{count, counted, duration, fine_share, interval, share, size};
use super::line::Line;
use super::notice::slow_ticks;
use crate::model::{PythonDiagnostics, PythonState, SampleLoss, SamplerDiagnostics};
use crate::session::{BackgroundInfo, Requester, RunningInfo, SessionInfo};

pub(super) fn info(info: &SessionInfo) -> Vec<Line> {
    let mut lines = match &info.running {
        Some(running) => session(running),
        None => {
            let mut lines = vec![without_session(info)];
            lines.extend(info.background.iter().flat_map(background));
            lines
        }
    };
    if info.unsaved > 0 {
        let waiting = format!("Not saved yet: {}", counted(info.unsaved as u64, "earlier profile"));
        let line = Line::continued().bad(waiting);
        lines.push(match info.running {
            Some(_) => line.bad(", tried again when this session is stopped."),
            None => line.bad(". Try again with ").value(STOP).bad("."),
        });
    }
    lines
}

fn without_session(info: &SessionInfo) -> Line {
    if let Some(exporting) = info.exporting {
        Line::new().text(format!("The last profile is not done yet: {}.", step(exporting)))
    } else if info.starting {
        Line::new().text("The profiler is starting.")
    } else {
        Line::new()
            .text("The profiler is not running. Start it with ")
            .value(START)
            .text(".")
    }
}

fn session(running: &RunningInfo) -> Vec<Line> {
    let mut lines = vec![progress(running), python_state(&running.python, &running.sampler)];
    lines.extend(swapping(&running.python));
    lines.extend(stretched(running));
    lines.extend(
        running
            .slow_ticks
            .map(|(over, ticks)| slow_ticks(Line::continued(), over, &ticks)),
    );
    lines.extend(losses(running));
    lines
}

/// What the background profiler has, and what it costs.
fn background(info: &BackgroundInfo) -> [Line; 2] {
    let python = match info.python {
        PythonState::Active => ", with Python functions",
        _ => "",
    };
    [
        Line::continued()
            .text("In the background: the last ")
            .value(duration(info.kept_seconds))
            .text(", one sample every ")
            .value(interval(info.interval_micros))
            .text(format!("{python} ("))
            .value(counted(info.samples, "sample"))
            .text(" so far). ")
            .value(STOP)
            .text(" makes a profile of it."),
        Line::continued()
            .text("It takes ")
            .value(fine_share(info.own_nanos, info.elapsed_nanos))
            .text(" of one core, ")
            .value(fine_share(info.server_nanos, info.elapsed_nanos))
            .text(" of the server thread's time, and ")
            .value(size(info.bytes))
            .text(" of memory for call trees, as measured since it began."),
    ]
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
            .text("Samples are ")
            .value(interval(sampler.interval_nanos / 1_000))
            .text(" apart, not ")
            .value(interval(running.interval_micros))
            .text(": the machine is busy, or has too many threads to be asked in that time."),
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
            if functions == 0 {
                return line.text("functions are followed; none has been called yet.");
            }
            let line = line
                .value(counted(functions, "function"))
                .text(" seen, in ")
                .value(share(sampler.attributed, sampler.samples))
                .text(" of the samples, at most ")
                .value(counted(u64::from(python.deepest), "call"))
                .text(" deep");
            let line = match python.threads_refused {
                0 => line,
                refused => line.bad(format!(", {} had no room", counted(refused, "thread"))),
            };
            let audits = &python.audits;
            match (audits.made, audits.disagreed) {
                (0, _) => line.text("."),
                (made, 0) => line
                    .text(", compared with the interpreter's own frames ")
                    .value(times(made))
                    .text("."),
                (made, disagreed) => line
                    .text(", compared with the interpreter's own frames ")
                    .value(times(made))
                    .bad(format!(", with a wrong function in {} of them.", count(disagreed))),
            }
        }
        PythonState::Degraded(why) => line.bad(format!("no longer recorded in full: {}.", reason(why))),
    }
}

/// One line when a thread is shown natively because it swaps stacks.
fn swapping(python: &PythonDiagnostics) -> Option<Line> {
    if python.swapping_threads == 0 {
        return None;
    }
    let names: Vec<String> = python.swapping.iter().map(|thread| name(thread)).collect();
    let verb = if python.swapping_threads == 1 { "swaps" } else { "swap" };
    Some(
        Line::continued()
            .value(counted(python.swapping_threads, "thread"))
            .text(format!(" {verb} stacks (greenlets), native frames only: "))
            .value(names.join(", "))
            .text("."),
    )
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
        .map(|reason| (running.sampler.losses.get(*reason), why_lost(*reason)))
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

/// Why a sample has no stack, in an owner's words.
fn why_lost(loss: SampleLoss) -> &'static str {
    match loss {
        SampleLoss::NoSlot => "too many at once",
        SampleLoss::ThreadGone => "thread ended",
        SampleLoss::TimedOut => "no answer in time",
        SampleLoss::SmallStack => "stack too small",
        SampleLoss::Blocked => "thread lets no signal through",
        SampleLoss::Busy => "interrupted twice",
        SampleLoss::SendFailed => "refused by the system",
    }
}
