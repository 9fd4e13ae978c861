//! What is answered to a command at once.

use super::figures::{counted, duration, interval, size};
use super::line::Line;
use super::parse::ParseError;
use crate::limits;
use crate::model::clean_text;
use crate::session::{Destination, Ended, ExportStep, Refusal};

pub(super) const START: &str = "/spark profiler start";
pub(super) const STOP: &str = "/spark profiler stop";
pub(super) const CANCEL: &str = "/spark profiler cancel";
pub(super) const UPLOAD: &str = "/spark profiler upload";
pub(super) const TO_FILE: &str = "/spark profiler stop --save-to-file";

pub(super) fn name(text: &str) -> String {
    clean_text(text, limits::ECHO_CHARS)
}

pub(super) fn reason(text: &str) -> String {
    let text = clean_text(text, limits::COMMENT_CHARS);
    text.strip_suffix('.').unwrap_or(&text).to_owned()
}

/// A reason as the end of a sentence: with a full stop, unless it ends as a question.
pub(super) fn sentence(text: &str) -> String {
    let text = reason(text);
    if text.ends_with('?') { text } else { format!("{text}.") }
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

/// What ended, and what becomes of it.
pub(super) fn stop_accepted(ended: Ended, to: Destination) -> Line {
    let line = Line::new();
    match (ended, to) {
        (Ended::Session, Destination::AsStarted) => line.text("Stopping the profiler."),
        (Ended::Session, Destination::File) => line.text("Stopping the profiler. The profile will be saved to a file."),
        (Ended::Session, Destination::Server) => line.text("Stopping the profiler. The profile will be uploaded."),
        (Ended::Wait(number), Destination::File) => line
            .text("Trying again to save ")
            .value(counted(number as u64, "profile"))
            .text("."),
        (Ended::Wait(number), Destination::Server) => line
            .text("Trying again to upload ")
            .value(counted(number as u64, "profile"))
            .text("."),
        // Each goes where it was meant to go.
        (Ended::Wait(number), Destination::AsStarted) => line
            .text("Trying again to upload or save ")
            .value(counted(number as u64, "profile"))
            .text("."),
        (Ended::Nothing, to) => line
            .text("Making a profile of what the background profiler has; it goes on.")
            .text(match to {
                Destination::AsStarted => "",
                Destination::File => " The profile will be saved to a file.",
                Destination::Server => " The profile will be uploaded.",
            }),
        (Ended::Upload, _) => line.text("Breaking the upload off. The profile will be saved to a file."),
    }
}

pub(super) fn cancel_accepted(ended: Ended) -> Line {
    let line = Line::new();
    match ended {
        Ended::Session | Ended::Nothing => line.text("Stopping the profiler without saving anything."),
        Ended::Wait(number) => line
            .text("Throwing away ")
            .value(counted(number as u64, "profile"))
            .text(" that could not be saved."),
        Ended::Upload => line.text("Breaking the upload off without saving anything."),
    }
}

/// What is being done, as the rest of a sentence.
pub(super) fn step(step: ExportStep) -> String {
    match step {
        ExportStep::Naming => "its functions are being named".to_owned(),
        ExportStep::Writing => "it is being written to a file".to_owned(),
        ExportStep::Uploading { sent, bytes } => format!("it is being uploaded, {} of {}", size(sent), size(bytes)),
    }
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
        Refusal::Exporting(exporting) => {
            let line = Line::new().bad(format!(
                "The last profile is not done yet: {}. Try again when it is",
                step(*exporting)
            ));
            match exporting {
                ExportStep::Uploading { .. } => line
                    .bad(", or break it off: ")
                    .value(TO_FILE)
                    .bad(" saves it to a file, ")
                    .value(CANCEL)
                    .bad(" throws it away."),
                ExportStep::Naming | ExportStep::Writing => line.bad("."),
            }
        }
        Refusal::OnlyBackground => Line::new()
            .bad("The profiler is not running but in the background, and goes on there. To switch that off, set ")
            .value("backgroundProfiler = false")
            .bad(" in plugins/spark/config.toml and restart the server."),
        Refusal::TooLate => Line::new().bad(
            "Too late to cancel: the session was stopped already. Its profile is uploaded or saved as was asked for.",
        ),
        Refusal::EndingAlready => Line::new().bad("The profiler is being stopped already."),
        Refusal::ServerThreadUnknown => {
            Line::new().bad("The server has not ticked yet. Try again when it has finished starting.")
        }
        Refusal::HealthAlready => Line::new().bad("A health report is being made already."),
        Refusal::ShuttingDown => Line::new().bad("The plugin is being disabled."),
        Refusal::NoThread(why) => Line::new().bad(format!(
            "The system allows the server no further thread ({}). Try again later.",
            reason(why)
        )),
    }
}
