//! What is told of work that took its time.

use super::answer::{TO_FILE, UPLOAD, reason, sentence};
use super::figures::{count, counted, duration, interval, size};
use super::line::Line;
use super::monitor;
use crate::limits;
use crate::model::{PythonState, TickFigures, clean_text, shown_path};
use crate::session::Notice;

/// How many ticks were slow enough to be kept.
pub(super) fn slow_ticks(line: Line, over_millis: u64, ticks: &TickFigures) -> Line {
    let line = line
        .text("Ticks over ")
        .value(interval(over_millis * 1_000))
        .text(": ")
        .value(count(ticks.kept))
        .text(" of ")
        .value(count(ticks.seen));
    match ticks.longest_nanos {
        0 => line.text("."),
        longest => line
            .text(", the longest took ")
            .value(interval(longest / 1_000))
            .text("."),
    }
}

/// The first of these names, and how many more there are.
fn listed(names: &[String]) -> String {
    let shown: Vec<String> = names
        .iter()
        .take(limits::REMOVED_SHOWN)
        .map(|name| clean_text(name, limits::ECHO_CHARS))
        .collect();
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
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
            .text("Naming the functions of ")
            .value(counted(*samples, "sample"))
            .text(" ..."),
        Notice::SlowTicks { over_millis, ticks } => slow_ticks(Line::new(), *over_millis, ticks),
        Notice::Uploading { host, bytes } => Line::new()
            .text("Uploading ")
            .value(size(*bytes))
            .text(" to ")
            .value(clean_text(host, limits::ECHO_CHARS))
            .text(" ..."),
        // The link stands last and alone, so that terminals make it one to click on.
        Notice::Uploaded { link } => Line::new().good("The profile is here: ").value(link.clone()),
        Notice::UploadFailed { reason: why } => Line::new().bad(format!(
            "The profile was not uploaded: {} It is saved to a file instead.",
            sentence(why)
        )),
        Notice::Writing => Line::new().text("Writing the file ..."),
        Notice::Unnamed => Line::new().text(
            "There was no time to look up the names of all native functions. The next start of the plugin saves this session once more, with them and without Python functions.",
        ),
        Notice::NotListed(why) => Line::new().bad(format!(
            "The list of past profiles could not be written: {}. The profile itself is there.",
            reason(why)
        )),
        Notice::Folded { frames } => Line::new()
            .text("The profile is too large for the viewer: its ")
            .value(count(*frames))
            .text(" smallest entries are shown as part of those that they stand below."),
        Notice::Saved {
            path,
            samples,
            bytes,
            viewer,
        } => Line::new()
            .good("Saved ")
            .value(shown_path(path))
            .text(format!(
                " ({}, {}). Drop the file onto ",
                counted(*samples, "sample"),
                size(*bytes)
            ))
            .value(viewer.clone())
            .text(" to look at it."),
        Notice::SaveFailed {
            reason: why,
            kept,
            dropped,
            recoverable,
        } => {
            let line = Line::new().bad(format!("The profile could not be saved: {}. ", reason(why)));
            let line = if *dropped {
                line.bad("The oldest that waited had to be given up. ")
            } else {
                line
            };
            match kept {
                0 if *recoverable => line.bad("The next start of the server makes one of what was kept on disk, with native frames only."),
                0 => line.bad("It is lost."),
                1 => line
                    .text("It is kept for another try: ")
                    .value(TO_FILE)
                    .text(", or ")
                    .value(UPLOAD)
                    .text(" to upload it."),
                _ => line
                    .value(counted(*kept as u64, "profile"))
                    .text(" are kept for another try: ")
                    .value(TO_FILE)
                    .text(", or ")
                    .value(UPLOAD)
                    .text(" to upload them."),
            }
        }
        Notice::Recovered {
            path,
            samples,
            seconds,
            unreadable,
            in_background,
            viewer,
        } => {
            let line = Line::new()
                .good(match in_background {
                    false => "The server ended while the profiler ran; what it had sampled is saved: ",
                    true => "The server ended without being stopped; what the background profiler had is saved: ",
                })
                .value(shown_path(path))
                .text(format!(
                    " ({} of {}, native frames only). Drop the file onto ",
                    counted(*samples, "sample"),
                    duration(*seconds)
                ))
                .value(viewer.clone())
                .text(" to look at it.");
            match unreadable {
                0 => line,
                1 => line.text(
                    " One file of it could not be read in full; it is kept as .unreadable in plugins/spark/recovery.",
                ),
                count => line.text(format!(
                    " {count} files of it could not be read in full; they are kept as .unreadable in plugins/spark/recovery."
                )),
            }
        }
        Notice::NotRecovered(why) => Line::new().bad(format!(
            "What the profiler had sampled when the server ended could not be recovered: {}.",
            reason(why)
        )),
        Notice::NoRecovery(why) => Line::new().bad(format!(
            "Nothing can be recovered at this start: {}. If a crash has left anything, it stays for the next one.",
            reason(why)
        )),
        Notice::UnreadableRemoved(names) => Line::new().bad(format!(
            "Of the .unreadable files in plugins/spark/recovery the largest were removed to make room: {}.",
            listed(names)
        )),
        Notice::ProfilesRemoved(names) => Line::new().bad(format!(
            "Removed from plugins/spark/profiles to make room: {}.",
            listed(names)
        )),
        Notice::NoBackgroundJournal(why) => Line::new().bad(format!(
            "A crash of the server would lose what the background profiler has: {}. It goes on.",
            reason(why)
        )),
        Notice::NoJournal(why) => Line::new().bad(format!(
            "A crash of the server would lose this session: {}. The profiler goes on.",
            reason(why)
        )),
        Notice::Monitor(event) => monitor::event(event),
        Notice::HealthUploaded { link } => Line::new().good("The health report is here: ").value(link.clone()),
        Notice::HealthSaved {
            reason: why,
            path,
            viewer,
        } => Line::new()
            .bad(format!("The health report was not uploaded: {} ", sentence(why)))
            .good("Saved ")
            .value(shown_path(path))
            .text(". Drop the file onto ")
            .value(viewer.clone())
            .text(" to look at it."),
        Notice::HealthFailed(why) => {
            Line::new().bad(format!("There is no health report: {}.", reason(why)))
        }
        Notice::Cancelled => Line::new().text("The profiler has stopped; nothing was saved."),
        Notice::TimedOut => Line::new().text("The profiler's time is up."),
        Notice::Stopped(why) => Line::new().bad(format!("The profiler has stopped: {}.", reason(why))),
        Notice::StatisticsStopped => Line::new().bad(
            "Processor, memory, disk and network are no longer measured: an internal error of the profiler; the server is not affected. Please report it with the text on the server's error output.",
        ),
        Notice::BackgroundStopped(why) => {
            Line::new().bad(format!("The background profiler is off: {}.", reason(why)))
        }
        Notice::BackgroundPythonOff { per_mille } => Line::new().bad(format!(
            "The background profiler no longer follows Python functions: that took {}.{} % of a thread's time. Native profiling goes on.",
            per_mille / 10,
            per_mille % 10
        )),
        Notice::Stalled {
            nanos,
            untold,
            in_background,
        } => {
            let seconds = *nanos as f64 / 1e9;
            let line = Line::new().bad(format!("The server did not tick for {seconds:.1} s"));
            let line = match untold {
                0 => line.text(". "),
                untold => line.text(format!(", and {} more since it was told last. ", counted(*untold, "time"))),
            };
            if *in_background {
                line.text("What it did meanwhile: ")
                    .value("/spark profiler stop")
                    .text(" makes a profile of the last hour.")
            } else {
                line.text("What it did meanwhile is in the profile that is being taken.")
            }
        }
        Notice::PythonDoubted(frames) => Line::new().bad(format!(
            "{} in the profile did not run. A check has found them, and they are taken out; the profile says how often this happens.",
            counted(*frames, "Python function")
        )),
        Notice::PythonLost(why) => Line::new().bad(format!(
            "Python functions are no longer recorded in full: {}. Native profiling goes on.",
            reason(why)
        )),
    }
}
