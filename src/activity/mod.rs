//! The profiles that were made: `plugins/spark/activity.json`.
//!
//! The list is in memory from the plugin's start on, so that showing it touches no file. It is written as a whole, to a new file that takes the old one's place.
//! A file that cannot be understood is set aside under another name: it may be of use to its owner, and it must not keep the plugin from working.

use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::limits;
use crate::model::{PastProfile, ProfilePlace, WallMillis, clean_text};
use crate::sys::{PrivateDir, PrivateDirError};

/// Its name in the plugin's folder.
const NAME: &str = "activity.json";

/// The name of one that was set aside.
const DAMAGED: &str = "activity.json.damaged";

/// The list.
#[derive(Debug)]
pub struct ActivityLog {
    folder: PathBuf,
    /// Oldest first.
    entries: Mutex<Vec<PastProfile>>,
}

impl ActivityLog {
    /// An empty list that is kept in this folder.
    pub fn empty(folder: PathBuf) -> Self {
        ActivityLog {
            folder,
            entries: Mutex::default(),
        }
    }

    /// The list in the plugin's folder, and a line for the log when it could not be read.
    pub fn load(folder: PathBuf) -> (Self, Option<String>) {
        let (entries, problem) = match read(&folder) {
            Ok(entries) => (entries, None),
            Err(problem) => (Vec::new(), Some(clean_text(&problem, limits::COMMENT_CHARS))),
        };
        let log = ActivityLog {
            folder,
            entries: Mutex::new(entries),
        };
        (log, problem)
    }

    /// Those that are still there, newest first. Only a short lock.
    pub fn entries(&self, now: WallMillis) -> Vec<PastProfile> {
        let entries = self.entries.lock();
        entries
            .iter()
            .rev()
            .filter(|entry| !is_expired(entry, now))
            .cloned()
            .collect()
    }

    /// Adds one and writes the list. Takes time: not for the server thread.
    ///
    /// # Errors
    /// It could not be written; it is in the list all the same.
    pub fn add(&self, entry: PastProfile, now: WallMillis) -> Result<(), PrivateDirError> {
        let entries = {
            let mut entries = self.entries.lock();
            entries.retain(|entry| !is_expired(entry, now));
            entries.push(entry);
            let excess = entries.len().saturating_sub(limits::ACTIVITY_ENTRIES);
            entries.drain(..excess);
            entries.clone()
        };
        PrivateDir::open(&self.folder)?.replace(NAME, |file| {
            serde_json::to_writer_pretty(&mut *file, &entries)?;
            file.write_all(b"\n")
        })
    }
}

fn read(folder: &Path) -> Result<Vec<PastProfile>, String> {
    let folder = PrivateDir::open(folder).map_err(|error| error.to_string())?;
    let unreadable = match folder.read(NAME, limits::ACTIVITY_BYTES) {
        Ok(None) => return Ok(Vec::new()),
        Ok(Some(bytes)) => match serde_json::from_slice::<Vec<PastProfile>>(&bytes) {
            Ok(entries) => return Ok(entries),
            Err(error) => error.to_string(),
        },
        Err(error) => error.to_string(),
    };
    let kept = match folder.rename(NAME, DAMAGED) {
        Ok(()) => format!("it is kept as {DAMAGED}, and a new list is begun"),
        Err(error) => format!("it could not be set aside either: {error}"),
    };
    Err(format!(
        "The list of past profiles, {NAME}, is damaged ({unreadable}); {kept}."
    ))
}

/// Whether the server that had it has dropped it. Files stay until their owner removes them.
fn is_expired(entry: &PastProfile, now: WallMillis) -> bool {
    const DAY_MILLIS: i64 = 86_400_000;
    matches!(entry.place, ProfilePlace::Link(_))
        && now.0.saturating_sub(entry.time) > limits::LINK_DAYS.saturating_mul(DAY_MILLIS)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::model::PastKind;

    const DAY: i64 = 86_400_000;

    fn entry(time: i64, place: ProfilePlace) -> PastProfile {
        PastProfile {
            kind: PastKind::Profile,
            time,
            user: "Steve".to_owned(),
            seconds: 60,
            samples: 15_000,
            place,
        }
    }

    fn link(time: i64) -> PastProfile {
        entry(time, ProfilePlace::Link("https://spark.lucko.me/abcd".to_owned()))
    }

    fn times(log: &ActivityLog, now: i64) -> Vec<i64> {
        log.entries(WallMillis(now)).iter().map(|entry| entry.time).collect()
    }

    #[test]
    fn what_is_added_is_there_after_a_restart_newest_first() {
        let root = tempfile::tempdir().unwrap();
        let (log, problem) = ActivityLog::load(root.path().to_owned());
        assert_eq!(problem, None);
        let file = entry(2, ProfilePlace::File("plugins/spark/profiles/a".to_owned()));
        log.add(link(1), WallMillis(1)).unwrap();
        log.add(file.clone(), WallMillis(2)).unwrap();
        let (again, problem) = ActivityLog::load(root.path().to_owned());
        assert_eq!(problem, None);
        assert_eq!(again.entries(WallMillis(3)), [file, link(1)]);
        let mode = std::fs::metadata(root.path().join(NAME)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(
            std::fs::read_dir(root.path()).unwrap().count(),
            1,
            "no temporary file stays"
        );
    }

    #[test]
    fn links_expire_and_files_do_not() {
        let root = tempfile::tempdir().unwrap();
        let log = ActivityLog::empty(root.path().to_owned());
        let file = entry(0, ProfilePlace::File("a".to_owned()));
        log.add(file, WallMillis(0)).unwrap();
        log.add(link(1), WallMillis(1)).unwrap();
        assert_eq!(times(&log, 60 * DAY + 1), [1, 0]);
        assert_eq!(times(&log, 60 * DAY + 2), [0]);
        assert_eq!(times(&log, -5), [1, 0], "a clock that was set back loses nothing");
        log.add(link(60 * DAY + 2), WallMillis(60 * DAY + 2)).unwrap();
        assert_eq!(times(&log, 0).len(), 2, "it is gone from the list and from the file");
    }

    #[test]
    fn the_list_is_bounded() {
        let log = ActivityLog::empty(tempfile::tempdir().unwrap().path().join("spark"));
        for time in 0..limits::ACTIVITY_ENTRIES as i64 + 3 {
            log.add(link(time), WallMillis(time)).unwrap();
        }
        let now = limits::ACTIVITY_ENTRIES as i64 + 3;
        assert_eq!(times(&log, now).len(), limits::ACTIVITY_ENTRIES);
        assert_eq!(times(&log, now).last(), Some(&3));
    }

    #[test]
    fn a_damaged_file_is_set_aside() {
        let root = tempfile::tempdir().unwrap();
        for damage in [
            "",
            "{",
            "[{\"time\":\"x\"}]",
            "[{}]",
            "{}",
            "[null]",
            &"[".repeat(100_000),
        ] {
            std::fs::write(root.path().join(NAME), damage).unwrap();
            let (log, problem) = ActivityLog::load(root.path().to_owned());
            let problem = problem.unwrap();
            assert!(
                problem.contains("is damaged") && problem.contains("kept as activity.json.damaged"),
                "{problem}"
            );
            assert_eq!(std::fs::read_to_string(root.path().join(DAMAGED)).unwrap(), damage);
            assert!(log.entries(WallMillis(0)).is_empty());
            log.add(link(5), WallMillis(5)).unwrap();
            assert_eq!(times(&ActivityLog::load(root.path().to_owned()).0, 6), [5]);
        }
        std::fs::write(root.path().join(NAME), vec![b' '; limits::ACTIVITY_BYTES as usize + 1]).unwrap();
        assert!(
            ActivityLog::load(root.path().to_owned())
                .1
                .unwrap()
                .contains("too large")
        );
    }

    #[test]
    fn what_is_in_the_way_is_told() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join(NAME).join("below")).unwrap();
        let (log, problem) = ActivityLog::load(root.path().to_owned());
        assert!(problem.unwrap().contains("not a regular file"));
        // The folder was set aside like a file.
        log.add(link(1), WallMillis(1)).unwrap();
        let folder = root.path().join("file");
        std::fs::write(&folder, "").unwrap();
        let log = ActivityLog::empty(folder);
        assert!(log.add(link(1), WallMillis(1)).is_err());
        assert_eq!(times(&log, 1), [1], "it is in the list all the same");
    }
}
