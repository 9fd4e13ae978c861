//! After a crash: makes profiles of the journals that sessions have left. On a thread of its own, so that nothing waits for it.

use std::io::BufReader;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use super::control::{Notice, Requester};
use super::replayed::Replayed;
use super::report;
use super::state::Shared;
use super::worker;
use crate::export::Kind;
use crate::journal::{Found, RecoveryFolder, Replay, SessionId};
use crate::limits;
use crate::model::{PastKind, ProfilePlace, RecoveryFigures};
use crate::sys::{fault, thread};

/// Starts it, if there may be anything to do.
pub(super) fn begin(shared: &Arc<Shared>) {
    if !shared.journaling.has_folder() {
        return;
    }
    let started = thread::spawn("spark-recover", {
        let shared = Arc::clone(shared);
        move || {
            if panic::catch_unwind(AssertUnwindSafe(|| run(&shared))).is_err() {
                tell_failure(
                    &shared,
                    "an internal error; it is tried again at the next start".to_owned(),
                );
            }
        }
    });
    match started {
        Ok(worker) => shared.journaling.set_recovery(worker),
        Err(error) => tell_failure(shared, error.to_string()),
    }
}

fn tell_failure(shared: &Shared, why: String) {
    shared.send(&Requester::Console, Notice::NotRecovered(why));
}

fn run(shared: &Shared) {
    let folder = match shared.journaling.wait_for_folder() {
        Ok(Some(folder)) => folder,
        Ok(None) => return,
        // Whether a crash has left anything is not known: what is there may be another server's, which runs.
        Err(error) => return shared.send(&Requester::Console, Notice::NoRecovery(error.to_string())),
    };
    for found in folder.found() {
        fault::point("recovery");
        if shared.journaling.ends() {
            return;
        }
        if folder.begin_attempt(found.session) >= limits::RECOVERY_ATTEMPTS {
            set_aside(shared, &folder, found.session, &found.segments);
            folder.end_attempt();
            tell_failure(shared, ended_each_time(&found));
            continue;
        }
        let goes_on = recover(shared, &folder, &found);
        // Also when the plugin's end has broken it off: it was no crash.
        folder.end_attempt();
        if !goes_on {
            return;
        }
    }
}

/// Keeps segments for their owner, and says which others had to go for that.
fn set_aside(shared: &Shared, folder: &RecoveryFolder, session: SessionId, segments: &[u32]) {
    let removed: Vec<String> = segments
        .iter()
        .flat_map(|sequence| folder.set_aside(session, *sequence))
        .collect();
    if !removed.is_empty() {
        shared.send(&Requester::Console, Notice::UnreadableRemoved(removed));
    }
}

/// Why a journal is not read any more, and how its owner may have it read all the same.
fn ended_each_time(found: &Found) -> String {
    let first = found.segments.first().copied().unwrap_or_default();
    let name = RecoveryFolder::name_aside(found.session, first);
    let (what, them) = match found.segments.len() {
        1 => (name, "it"),
        count => (format!("{name} and {} more", count - 1), "them"),
    };
    format!(
        "the server ended each of the last {} times while it was read; it is kept in plugins/spark/recovery as {what}. To have it tried again, name {them} .journal instead of .unreadable and restart the server",
        limits::RECOVERY_ATTEMPTS
    )
}

/// What was read of a journal.
#[derive(Default)]
struct Read {
    replayed: Replayed,
    figures: RecoveryFigures,
    /// Segments that are kept for their owner, because something in them could not be read.
    damaged: Vec<u32>,
    /// The last reason, in a user's words.
    reason: Option<String>,
}

/// Makes a profile of one journal and removes it. `false`: the plugin's end has begun.
fn recover(shared: &Shared, folder: &RecoveryFolder, found: &Found) -> bool {
    let Some(read) = read(shared, folder, found) else {
        return false;
    };
    let done = |keep: &[u32]| {
        set_aside(shared, folder, found.session, keep);
        folder.discard(found.session);
    };
    if read.replayed.is_ended() {
        done(&[]);
        return true;
    }
    if read.replayed.samples() == 0 {
        // A session that had just begun is not worth a word.
        done(&read.damaged);
        if let Some(reason) = read.reason {
            tell_failure(
                shared,
                format!("{reason}; it is kept as .unreadable in plugins/spark/recovery"),
            );
        }
        return true;
    }
    let Some(remade) = read.replayed.finish(read.figures) else {
        return true;
    };
    let slow_ticks = remade
        .recorded
        .request
        .only_ticks_over_millis
        .zip(remade.recorded.figures.ticks);
    let mut made = report::make(
        remade.recorded,
        remade.windows,
        &remade.environment,
        remade.server,
        &shared.settings,
        None,
        &shared.names_until,
    );
    if shared.journaling.ends() {
        // The next start makes it, with all names, and somebody hears of it.
        return false;
    }
    if remade.in_background {
        made.kind = PastKind::Background;
    }
    match report::save(&shared.folder, made, Kind::Recovered, &shared.settings) {
        Ok(mut saved) => {
            let by = Requester::Console;
            worker::remember(shared, &by, &saved.profile, ProfilePlace::File(saved.place()));
            if let Some((over_millis, ticks)) = slow_ticks {
                shared.send(&by, Notice::SlowTicks { over_millis, ticks });
            }
            shared.send(
                &by,
                Notice::Recovered {
                    path: saved.path().to_owned(),
                    samples: saved.profile.samples,
                    seconds: saved.profile.seconds,
                    unreadable: read.damaged.len(),
                    in_background: remade.in_background,
                    viewer: shared.settings.viewer.page(""),
                },
            );
            if let Some(removal) = saved.removal.take() {
                shared.send(&by, removal);
            }
            done(&read.damaged);
        }
        Err(failed) => tell_failure(
            shared,
            format!("{}; it is tried again at the next start", failed.reason),
        ),
    }
    true
}

/// Reads all segments; `None` when the plugin's end has begun.
fn read(shared: &Shared, folder: &RecoveryFolder, found: &Found) -> Option<Read> {
    let mut replay = Replay::new(found.session);
    let mut read = Read::default();
    read.figures.segments_given_up = found
        .segments
        .first()
        .map_or(0, |first| u64::from(first.saturating_sub(1)));
    for sequence in &found.segments {
        if shared.journaling.ends() {
            return None;
        }
        let file = match folder.open_segment(found.session, *sequence) {
            Ok(file) => file,
            Err(error) => {
                read.damaged.push(*sequence);
                read.reason = Some(error.to_string());
                continue;
            }
        };
        let report = replay.segment(*sequence, BufReader::new(file), &mut |event| read.replayed.take(event));
        read.figures.segments += 1;
        read.figures.records += report.records;
        read.figures.damaged += report.damaged;
        if let Some(error) = &report.error {
            read.reason = Some(format!("of a file of its journal, {error}"));
        } else if report.damaged > 0 {
            read.reason = Some("its journal is damaged".to_owned());
        }
        if report.error.is_some() || report.damaged > 0 {
            read.damaged.push(*sequence);
        }
    }
    Some(read)
}
