//! From what a session left behind to the file.

use std::path::{Path, PathBuf};

use super::control::{Notice, Requester};
use super::environment::Environment;
use super::recording::Recorded;
use super::ticks::Ticks;
use super::unsaved::Unsaved;
use crate::export::{
    self, Creator, Kind, ProfileMetadata, ServerReport, ShownStall, Source, StallReport, ThreadSelection,
};
use crate::limits;
use crate::model::{
    PastKind, Stall, ThreadChoice, ThreadKey, ThreadNames, WallMillis, WebAddress, WorldCounts, clean_text,
};
use crate::profile::{Snapshot, ThreadProfile, Tree, WindowStats};
use crate::settings::Settings;
use crate::symbol::Symbolizer;
use crate::sys::{Deadline, PrivateDir, PrivateDirError, fault, task};

/// Name of the folder that holds profiles, below the plugin's own.
pub(super) const PROFILES: &str = "profiles";

/// What is known of a session's windows besides samples.
pub(super) struct Windows {
    pub(super) ticks: Ticks,
    pub(super) counts: Vec<(u32, WorldCounts)>,
}

/// Makes the profile of a session. Names are looked up here, which takes time: those that are known when the deadline passes.
pub(super) fn make(
    recorded: Recorded,
    known: Windows,
    environment: &Environment,
    server: ServerReport,
    settings: &Settings,
    comment: Option<String>,
    deadline: &Deadline,
) -> Unsaved {
    fault::point("export");
    let millis = recorded.ended_at.since(recorded.started_at) / 1_000_000;
    let ended = WallMillis(recorded.clock.wall_start(0).0 + millis as i64);
    // A session that keeps only its last hour has forgotten all before.
    let first = recorded
        .aggregated
        .as_ref()
        .map_or(0, |aggregated| aggregated.first_window);
    let started = recorded.clock.wall_start(first);
    let samples = recorded.samples();
    let seconds = u64::try_from((ended.0 - started.0) / 1_000).unwrap_or(0);
    let ticks = match first {
        0 => known.ticks.total,
        first => {
            let kept = known.ticks.windows.iter().filter(|(window, _)| *window >= first);
            kept.map(|(_, stats)| u64::from(stats.ticks)).sum()
        }
    };
    let user = recorded.request.requested_by.display_name();
    let for_file = recorded.request.save_to_file;
    let metadata = metadata(&recorded, (started, ended), ticks, environment, server, comment);
    let snapshot = snapshot(recorded, known.ticks.windows, &known.counts);
    let mut symbolizer = Symbolizer::with_debug_root(&settings.debug_folder).until(deadline.clone());
    let mut profile = export::encode(&snapshot, &mut symbolizer, &metadata);
    let is_named = !symbolizer.ran_out_of_time();
    drop((snapshot, symbolizer));
    let folded = export::fold(&mut profile, limits::PROFILE_GZIP_BYTES);
    Unsaved {
        profile: Box::new(profile),
        for_file,
        ended,
        seconds,
        user,
        samples,
        kind: PastKind::Profile,
        folded,
        is_named,
        journal: None,
    }
}

/// A profile that could not be written, and why, in a user's words.
pub(super) struct SaveError {
    pub(super) unsaved: Unsaved,
    pub(super) reason: String,
}

/// A profile that is on disk.
pub(super) struct Saved {
    pub(super) profile: Unsaved,
    path: PathBuf,
    /// What is said of others that had to go for it.
    pub(super) removal: Option<Notice>,
}

impl Saved {
    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What is said of it.
    pub(super) fn notice(&self, viewer: &WebAddress) -> Notice {
        Notice::Saved {
            path: self.path.clone(),
            samples: self.profile.samples,
            bytes: std::fs::metadata(&self.path).map_or(0, |file| file.len()),
            viewer: viewer.page(""),
        }
    }

    /// Its file as the list of past profiles has it.
    pub(super) fn place(&self) -> String {
        place(&self.path)
    }
}

/// A file of the folder of profiles as the list of past ones has it.
pub(super) fn place(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    format!("plugins/spark/{PROFILES}/{}", name.to_string_lossy())
}

/// Writes a file among the profiles below the plugin's folder and makes room for it. Gives its path, and what is said of others that had to go.
pub(super) fn put_among_profiles(
    folder: &Path,
    settings: &Settings,
    write: impl FnOnce(&PrivateDir) -> Result<PathBuf, PrivateDirError>,
) -> Result<(PathBuf, Option<Notice>), PrivateDirError> {
    let profiles = PrivateDir::open(&folder.join(PROFILES))?;
    let path = write(&profiles)?;
    let removed = export::make_room(&profiles, &path, settings.profile_folder_bytes());
    let removal = (!removed.is_empty()).then_some(Notice::ProfilesRemoved(removed));
    Ok((path, removal))
}

/// Writes a profile there.
pub(super) fn save(folder: &Path, unsaved: Unsaved, kind: Kind, settings: &Settings) -> Result<Saved, SaveError> {
    let saved = put_among_profiles(folder, settings, |profiles| {
        export::save(profiles, &unsaved.profile, unsaved.ended, kind)
    });
    match saved {
        Ok((path, removal)) => Ok(Saved {
            profile: unsaved,
            path,
            removal,
        }),
        Err(error) => Err(SaveError {
            unsaved,
            reason: error.to_string(),
        }),
    }
}

fn metadata(
    recorded: &Recorded,
    (started, ended): (WallMillis, WallMillis),
    ticks: u64,
    environment: &Environment,
    server: ServerReport,
    comment: Option<String>,
) -> ProfileMetadata {
    ProfileMetadata {
        creator: creator(&recorded.request.requested_by),
        started,
        ended,
        interval_micros: recorded.request.interval_micros,
        ticks,
        comment: comment.or_else(|| recorded.request.comment.clone()).unwrap_or_default(),
        server,
        selection: selection(recorded),
        view: recorded.request.view,
        ignore_sleeping: recorded.request.ignore_sleeping,
        server_sha256: recorded
            .recovered
            .as_ref()
            .is_none_or(|recovered| recovered.same_executable)
            .then(crate::symbol::executable_sha256)
            .flatten(),
        sources: environment.plugins.iter().map(source).collect(),
        slow_ticks: recorded
            .request
            .only_ticks_over_millis
            .map(|millis| (millis * 1_000, recorded.figures.ticks.unwrap_or_default())),
        stalls: stalls(recorded),
        sampler: recorded.figures.sampler.clone(),
        merge: recorded.figures.merge,
        python: recorded.figures.python.clone(),
        recovery: recorded.recovered.as_ref().map(|recovered| recovered.figures.clone()),
    }
}

/// The stalls of the time that the profile shows.
fn stalls(recorded: &Recorded) -> StallReport {
    let first = recorded
        .aggregated
        .as_ref()
        .map_or(0, |aggregated| aggregated.first_window);
    let shown_from = recorded.clock.start_of(first).max(recorded.started_at);
    let shown = |stall: &Stall| {
        let until = stall.ended.unwrap_or(recorded.ended_at);
        (until > shown_from).then(|| ShownStall {
            began_millis: stall.began.since(shown_from) / 1_000_000,
            millis: until.since(stall.began) / 1_000_000,
            is_over: stall.ended.is_some(),
        })
    };
    let newest: Vec<ShownStall> = recorded.stalls.newest.iter().filter_map(shown).collect();
    let forgotten = recorded.stalls.newest.len() - newest.len();
    StallReport {
        // Those of which one by one nothing is known any more belong to a session that forgets nothing.
        count: match forgotten {
            0 => recorded.stalls.count,
            _ => newest.len() as u64,
        },
        newest,
    }
}

/// What spark's schema can say of it: a list of names it cannot, so those threads are named by their ids.
fn selection(recorded: &Recorded) -> ThreadSelection {
    let sampled = || {
        let threads = recorded.aggregated.iter().flat_map(|aggregated| &aggregated.threads);
        threads.map(|thread| thread.key.tid).collect()
    };
    match &recorded.request.threads {
        ThreadChoice::Server => ThreadSelection::Threads(vec![recorded.server_thread]),
        ThreadChoice::All => ThreadSelection::All,
        ThreadChoice::Named(ThreadNames::Exact(_)) => ThreadSelection::Threads(sampled()),
        ThreadChoice::Named(names @ ThreadNames::Patterns(_)) => {
            let clean = |pattern: &String| clean_text(pattern, limits::COMMENT_CHARS);
            ThreadSelection::Patterns(names.texts().iter().map(clean).collect())
        }
    }
}

pub(super) fn creator(requester: &Requester) -> Creator {
    match requester {
        Requester::Console => Creator::Console,
        Requester::Player { name, unique_id } => Creator::Player {
            name: clean_text(name, limits::NAME_CHARS),
            unique_id: uuid(unique_id),
        },
    }
}

fn uuid(bytes: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

pub(super) fn source(plugin: &super::environment::PluginInfo) -> Source {
    Source {
        name: plugin.name.clone(),
        version: plugin.version.clone(),
        author: plugin.authors.clone(),
        description: plugin.description.clone(),
        native_stem: plugin.native_stem.clone(),
    }
}

/// The frozen profile: threads with the server thread first, and windows without a gap.
fn snapshot(recorded: Recorded, ticks: Vec<(u32, WindowStats)>, counts: &[(u32, WorldCounts)]) -> Snapshot {
    let (mut threads, modules, first_window) = match recorded.aggregated {
        Some(aggregated) => (aggregated.threads, aggregated.modules, aggregated.first_window),
        None => (Vec::new(), Vec::new(), 0),
    };
    if threads.is_empty() {
        // The viewer says "No Data" of a profile without a thread.
        // Or no thread has had the name that was asked for.
        threads.push(ThreadProfile {
            key: ThreadKey {
                tid: recorded.server_thread,
                serial: 0,
            },
            name: task::name(recorded.server_thread).unwrap_or_default(),
            tree: Tree::new(),
            members: 1,
            alone: true,
        });
    }
    for thread in &mut threads {
        thread.alone = thread.key.tid == recorded.server_thread;
        thread.name = clean_text(&thread.name, limits::NAME_CHARS);
    }
    threads.sort_by_key(|thread: &ThreadProfile| !thread.alone);
    let last = recorded.clock.window_at(recorded.ended_at);
    let mut windows = vec![WindowStats::default(); last.saturating_sub(first_window) as usize + 1];
    for (window, stats) in ticks {
        let place = window.checked_sub(first_window);
        if let Some(place) = place.and_then(|place| windows.get_mut(place as usize)) {
            *place = stats;
        }
    }
    for (window, counts) in counts {
        let place = window.checked_sub(first_window);
        if let Some(stats) = place.and_then(|place| windows.get_mut(place as usize)) {
            stats.players = Some(counts.players);
            stats.entities = counts.entities;
            stats.chunks = counts.chunks;
        }
    }
    let session_millis = recorded.ended_at.since(recorded.started_at) / 1_000_000;
    for (number, window) in (u64::from(first_window)..).zip(&mut windows) {
        let begun = number * 60_000;
        window.duration_millis = u32::try_from(session_millis.saturating_sub(begun).min(60_000)).unwrap_or(0);
    }
    Snapshot {
        threads,
        clock: recorded.clock,
        first_window,
        windows,
        modules,
        codes: recorded.codes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asked_is_named_without_colours() {
        let player = Requester::Player {
            name: "§6Some\u{7}body".to_owned(),
            unique_id: [0; 16],
        };
        let Creator::Player { name, .. } = creator(&player) else {
            panic!("not a player")
        };
        assert_eq!(name, "Somebody");
    }

    #[test]
    fn a_uuid_is_written_in_its_usual_form() {
        let bytes = [
            0x12, 0x3e, 0x45, 0x67, 0xe8, 0x9b, 0x12, 0xd3, 0xa4, 0x56, 0x42, 0x66, 0x14, 0x17, 0x40, 0x00,
        ];
        assert_eq!(uuid(&bytes), "123e4567-e89b-12d3-a456-426614174000");
    }
}
