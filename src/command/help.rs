//! What there is.

use super::line::Line;
use crate::model::build;

/// Ten lines: a client shows no more of the chat at once.
pub(super) fn help() -> Vec<Line> {
    let entry = |usage: &str, what: &str| Line::continued().value(usage).text(format!(": {what}"));
    vec![
        Line::new()
            .value(format!("spark {}", build::VERSION))
            .text(" profiles this server. Commands:"),
        entry(
            "/spark profiler start [--interval MS] [--timeout SECONDS]",
            "start sampling the server thread",
        ),
        entry(
            "... start [--thread NAME]... [--regex] [--ignore-sleeping] [--only-ticks-over MS]",
            "other threads (* for all, with --regex by pattern); leave out waiting; keep slow ticks only",
        ),
        entry(
            "... start [--not-combined] [--combine-all] [--show-interpreter]",
            "one tree per thread, one for all; keep Python's own call functions",
        ),
        entry(
            "/spark profiler stop [--comment \"TEXT\"] [--save-to-file]",
            "stop, and upload the profile or save it; both also with start",
        ),
        entry("/spark profiler upload", "stop, and upload the profile"),
        entry("/spark profiler info", "show how the profiler is doing"),
        entry("/spark profiler cancel", "stop, and throw the samples away"),
        entry("/spark tps", "show how the server ticks"),
        entry(
            "/spark health [--memory] [--network] [--upload]",
            "the same with memory, disk, system and network; or send a report to the viewer",
        ),
        entry("/spark ping [--player NAME]", "show how long players' packets take"),
        entry(
            "/spark tickmonitor [--threshold PERCENT] [--threshold-tick MS]",
            "tell of slow ticks; again to stop",
        ),
        entry("/spark activity [--page N]", "list past profiles"),
    ]
}

/// Which build this is.
pub(super) fn version() -> Line {
    let line = Line::new().value(format!("spark {}", build::VERSION));
    let line = match build::COMMIT {
        Some(commit) => line.text(format!(", commit {commit}")),
        None => line.text(", not a release"),
    };
    line.text(build::build_id().map_or_else(String::new, |id| format!(", build {id}")))
}

/// What to use in place of a command of spark for Java that makes no sense here.
pub(super) fn instead(command: JavaCommand) -> Line {
    let line = Line::new();
    match command {
        JavaCommand::Heap => line
            .text("There is no Java heap in this server. What Python objects take is shown by Python's own ")
            .value("tracemalloc")
            .text("; where time goes by ")
            .value("/spark profiler start")
            .text("."),
        JavaCommand::Collector => line
            .text("There is no Java garbage collector in this server. What Python's costs is in a profile: ")
            .value("/spark profiler start")
            .text("."),
        JavaCommand::Open => line
            .text("A profile cannot be looked at while it is taken. See how it is doing with ")
            .value("/spark profiler info")
            .text(", or end it and get a link with ")
            .value("/spark profiler stop")
            .text("."),
    }
}

/// Commands that spark for Java has and this one has not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JavaCommand {
    /// `heapsummary`, `heapdump`.
    Heap,
    /// `gc`, `gcmonitor`.
    Collector,
    /// `profiler open`.
    Open,
}
