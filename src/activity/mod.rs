//! The profiles that were made: `plugins/spark/activity.json`.
//!
//! The list is in memory from the plugin's start on, so that showing it touches no file. It is written as a whole, to a new file that takes the old one's place.
//! A file that is no list is set aside under a free name: it may be of use to its owner, and it must not keep the plugin from working. One that cannot be read
//! at the moment is left where it is and read again when there is something to add.

use std::path::PathBuf;

use parking_lot::Mutex;

use crate::limits;
use crate::model::{PastProfile, ProfilePlace, WallMillis, clean_text};
use crate::sys::{PrivateDir, PrivateDirError};

/// Its name in the plugin's folder.
const NAME: &str = "activity.json";

/// The list.
#[derive(Debug)]
pub struct ActivityLog {
    folder: PathBuf,
    list: Mutex<List>,
}

#[derive(Debug, Default)]
struct List {
    /// Oldest first.
    entries: Vec<PastProfile>,
    /// Whether there is a file whose entries are not among these, because it could not be read.
    is_unread: bool,
}

/// What the file is.
enum Found {
    /// A list, or not there.
    List(Vec<PastProfile>),
    /// Something else; why, in a user's words.
    Damaged(String),
    /// Not to be told now; why.
    Unreadable(PrivateDirError),
}

impl ActivityLog {
    /// An empty list that is kept in this folder.
    pub fn empty(folder: PathBuf) -> Self {
        ActivityLog {
            folder,
            list: Mutex::default(),
        }
    }

    /// The list in the plugin's folder, and a line for the log when it could not be read.
    pub fn load(folder: PathBuf) -> (Self, Option<String>) {
        let (list, problem) = match PrivateDir::open(&folder) {
            Ok(open) => match read(&open) {
                Found::List(entries) => (
                    List {
                        entries,
                        ..List::default()
                    },
                    None,
                ),
                Found::Damaged(why) => (List::default(), Some(set_aside(&open, &why))),
                Found::Unreadable(why) => (unread(), Some(not_read(&why))),
            },
            Err(why) => (unread(), Some(not_read(&why))),
        };
        let log = ActivityLog {
            folder,
            list: Mutex::new(list),
        };
        (log, problem.map(|text| clean_text(&text, limits::COMMENT_CHARS)))
    }

    /// Those that are still there, newest first. Only a short lock.
    pub fn entries(&self, now: WallMillis) -> Vec<PastProfile> {
        let list = self.list.lock();
        let entries = list.entries.iter().rev();
        entries.filter(|entry| !is_expired(entry, now)).cloned().collect()
    }

    /// Adds one and writes the list. Takes time: not for the server thread.
    ///
    /// # Errors
    /// It could not be written; it is in the list all the same.
    pub fn add(&self, entry: PastProfile, now: WallMillis) -> Result<(), PrivateDirError> {
        let is_unread = {
            let mut list = self.list.lock();
            list.entries.push(entry);
            list.is_unread
        };
        let folder = PrivateDir::open(&self.folder)?;
        let earlier = match is_unread.then(|| read(&folder)) {
            None => Vec::new(),
            Some(Found::List(entries)) => entries,
            // Nothing of it must be lost by what is written now.
            Some(Found::Damaged(_) | Found::Unreadable(_)) => {
                folder.set_aside(NAME, free_names()).map(|_| Vec::new())?
            }
        };
        let entries = {
            let mut list = self.list.lock();
            list.is_unread = false;
            list.entries.splice(..0, earlier);
            list.entries.retain(|entry| !is_expired(entry, now));
            let excess = list.entries.len().saturating_sub(limits::ACTIVITY_ENTRIES);
            list.entries.drain(..excess);
            list.entries.clone()
        };
        folder.replace(NAME, |file| {
            serde_json::to_writer_pretty(&mut *file, &entries)?;
            file.write_all(b"\n")
        })
    }
}

fn unread() -> List {
    List {
        is_unread: true,
        ..List::default()
    }
}

fn read(folder: &PrivateDir) -> Found {
    match folder.read(NAME, limits::ACTIVITY_BYTES) {
        Ok(None) => Found::List(Vec::new()),
        Ok(Some(bytes)) => match serde_json::from_slice(&bytes) {
            Ok(entries) => Found::List(entries),
            Err(error) => Found::Damaged(format!("{NAME} is damaged in line {}", error.line().max(1))),
        },
        Err(
            why @ (PrivateDirError::NotAFile(_) | PrivateDirError::TooLarge { .. } | PrivateDirError::LeadsNowhere(_)),
        ) => Found::Damaged(why.to_string()),
        Err(why) => Found::Unreadable(why),
    }
}

fn not_read(why: &PrivateDirError) -> String {
    format!("The list of past profiles could not be read: {why}. It is looked at again when the next profile is made.")
}

/// Puts a file that is no list out of the way, and says what was done.
fn set_aside(folder: &PrivateDir, why: &str) -> String {
    let done = match folder.set_aside(NAME, free_names()) {
        Ok(name) => format!("It is kept as plugins/spark/{name}, and a new list is begun"),
        Err(error) => format!("It could not be put aside either: {error}"),
    };
    format!("The list of past profiles cannot be used: {why}. {done}.")
}

/// `activity.json.damaged`, `activity.json.damaged-2` and so on.
fn free_names() -> impl Iterator<Item = String> {
    let first = format!("{NAME}.damaged");
    let further = (2..).map({
        let first = first.clone();
        move |number: u32| format!("{first}-{number}")
    });
    std::iter::once(first).chain(further)
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
    fn damaged_files_are_set_aside_and_none_is_lost() {
        let root = tempfile::tempdir().unwrap();
        let damages = [
            "",
            "{",
            "[{\"time\":\"x\"}]",
            "[\n{}]",
            "{}",
            "[null]",
            &"[".repeat(100_000),
            &" ".repeat(limits::ACTIVITY_BYTES as usize + 1),
        ];
        for (damage, aside) in damages.into_iter().zip(free_names()) {
            std::fs::write(root.path().join(NAME), damage).unwrap();
            let (log, problem) = ActivityLog::load(root.path().to_owned());
            let problem = problem.unwrap();
            assert!(
                problem.starts_with("The list of past profiles cannot be used: ")
                    && problem.ends_with(&format!(
                        "It is kept as plugins/spark/{aside}, and a new list is begun."
                    )),
                "{problem}"
            );
            assert_eq!(std::fs::read_to_string(root.path().join(&aside)).unwrap(), damage);
            assert!(log.entries(WallMillis(0)).is_empty());
            log.add(link(5), WallMillis(5)).unwrap();
            assert_eq!(times(&ActivityLog::load(root.path().to_owned()).0, 6), [5]);
        }
        for (aside, damage) in [("activity.json.damaged", ""), ("activity.json.damaged-4", "[\n{}]")] {
            assert_eq!(std::fs::read_to_string(root.path().join(aside)).unwrap(), damage);
        }
    }

    #[test]
    fn a_folder_in_its_place_is_set_aside() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join(NAME).join("below")).unwrap();
        let (log, problem) = ActivityLog::load(root.path().to_owned());
        assert_eq!(
            problem.unwrap(),
            "The list of past profiles cannot be used: activity.json is not a regular file. \
             It is kept as plugins/spark/activity.json.damaged, and a new list is begun."
        );
        log.add(link(1), WallMillis(1)).unwrap();
        assert!(root.path().join("activity.json.damaged/below").is_dir());
        assert_eq!(times(&ActivityLog::load(root.path().to_owned()).0, 1), [1]);
    }

    /// A folder that cannot be opened stands for everything that passes: too many open files, a disk that does not answer.
    #[test]
    fn a_list_that_could_not_be_read_for_a_while_is_not_lost() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("spark");
        ActivityLog::load(folder.clone()).0.add(link(1), WallMillis(1)).unwrap();
        std::fs::rename(&folder, root.path().join("elsewhere")).unwrap();
        std::fs::write(&folder, "in the way").unwrap();
        let (log, problem) = ActivityLog::load(folder.clone());
        assert_eq!(
            problem.unwrap(),
            "The list of past profiles could not be read: spark is not a folder (a link to one is not accepted). \
             It is looked at again when the next profile is made."
        );
        assert!(log.add(link(2), WallMillis(2)).is_err());
        assert_eq!(times(&log, 2), [2], "it is in the list all the same");
        std::fs::remove_file(&folder).unwrap();
        std::fs::rename(root.path().join("elsewhere"), &folder).unwrap();
        log.add(link(3), WallMillis(3)).unwrap();
        assert_eq!(times(&log, 3), [3, 2, 1]);
        assert_eq!(times(&ActivityLog::load(folder).0, 3), [3, 2, 1]);
    }
}
