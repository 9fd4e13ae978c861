//! From a command to an answer.

use super::answer;
use super::help;
use super::info;
use super::line::Line;
use super::monitor;
use super::parse::{Command, ProfilerCommand, parse};
use super::past;
use super::permission::Granted;
use super::ping;
use super::statistics;
use crate::session::{Control, Refusal, Requester};

/// Carries out the command in `arguments` for `requester`, who may do what is `granted`, and says what to answer now. What takes longer is answered later,
/// through [`super::answer_notice`].
pub fn run<S: AsRef<str>>(
    arguments: &[S],
    requester: &Requester,
    granted: &Granted,
    control: &dyn Control,
) -> Vec<Line> {
    if granted.is_empty() {
        return vec![Line::new().bad(Granted::refusal())];
    }
    let command = match parse(arguments, requester) {
        Ok(command) => command,
        Err(error) => return vec![answer::parse_error(&error)],
    };
    if let Some(missing) = granted.missing(&command) {
        return vec![Line::new().bad(missing)];
    }
    match command {
        Command::Help => help::help(),
        Command::Version => vec![help::version()],
        Command::Java(command) => vec![help::instead(command)],
        Command::Tps => statistics::tps(&control.statistics()),
        Command::Health(view) if view.upload => {
            let accepted = Line::new().text("Making a health report ...");
            done(control.report_health(requester).map(|()| accepted))
        }
        Command::Health(view) => statistics::health(&control.statistics(), view),
        Command::Ping { player } => ping::ping(&control.statistics(), player.as_deref()),
        Command::TickMonitor(slow) => vec![monitor::changed(control.toggle_monitor(slow, requester))],
        Command::Activity { page } => {
            let (now, entries) = control.activity();
            past::past(now, &entries, page)
        }
        Command::Profiler(ProfilerCommand::Info) => info::info(&control.info()),
        Command::Profiler(ProfilerCommand::Start(request)) => {
            let accepted = answer::start_accepted(request.interval_micros, request.timeout_seconds);
            done(control.start(request).map(|()| accepted))
        }
        Command::Profiler(ProfilerCommand::Stop(request)) => {
            let to = request.to;
            done(control.stop(request).map(|ended| answer::stop_accepted(ended, to)))
        }
        Command::Profiler(ProfilerCommand::Cancel) => done(control.cancel(requester).map(answer::cancel_accepted)),
    }
}

fn done(result: Result<Line, Refusal>) -> Vec<Line> {
    vec![result.unwrap_or_else(|refusal| answer::answer_refusal(&refusal))]
}
