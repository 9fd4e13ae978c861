//! From a command to an answer.

use super::answer;
use super::line::Line;
use super::parse::{Command, ProfilerCommand, parse};
use crate::session::{Control, Refusal, Requester, StartRequest, StopRequest};

/// Carries out the command in `arguments` for `requester` and says what to answer now. What takes longer is answered later, through
/// [`super::answer_notice`].
pub fn run<S: AsRef<str>>(arguments: &[S], requester: &Requester, control: &dyn Control) -> Vec<Line> {
    let command = match parse(arguments) {
        Ok(command) => command,
        Err(error) => return vec![answer::parse_error(&error)],
    };
    match command {
        Command::Help => answer::help(),
        Command::Profiler(ProfilerCommand::Info) => answer::info(&control.info()),
        Command::Profiler(ProfilerCommand::Start {
            interval_micros,
            timeout_seconds,
            threads,
            ignore_sleeping,
            view,
        }) => {
            let request = StartRequest {
                interval_micros,
                timeout_seconds,
                threads,
                ignore_sleeping,
                view,
                requested_by: requester.clone(),
            };
            done(
                control.start(request),
                answer::start_accepted(interval_micros, timeout_seconds),
            )
        }
        Command::Profiler(ProfilerCommand::Stop { save_to_file, comment }) => {
            let request = StopRequest {
                save_to_file,
                comment,
                requested_by: requester.clone(),
            };
            done(control.stop(request), answer::stop_accepted(save_to_file))
        }
        Command::Profiler(ProfilerCommand::Cancel) => done(control.cancel(requester), answer::cancel_accepted()),
    }
}

fn done(result: Result<(), Refusal>, accepted: Line) -> Vec<Line> {
    vec![match result {
        Ok(()) => accepted,
        Err(refusal) => answer::answer_refusal(&refusal),
    }]
}
