//! Keeps the folder of profiles from filling the disk.

use std::path::Path;

use super::save::{ENDING, HEALTH_ENDING, RECOVERED};
use crate::limits::RECOVERED_PROFILES;
use crate::sys::{FileEntry, PrivateDir};

/// Why a profile was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Somebody asked for it.
    Asked,
    /// It was found after a crash. Goes first when room is needed.
    Recovered,
}

/// Removes profiles and health reports until at most `limit` bytes of them are left: recovered ones first, the oldest first. Never more than [`RECOVERED_PROFILES`] of those
/// are kept: a server that crashes again and again must not fill the disk. The file `newest` stays. Other files are not ours, and what cannot be removed
/// stays: neither is a reason to report a profile as not saved. Gives the names of what was removed.
#[must_use]
pub fn make_room(folder: &PrivateDir, newest: &Path, limit: u64) -> Vec<String> {
    let newest = newest.file_name().map(|name| name.to_string_lossy().into_owned());
    let mut names = superfluous(folder.files().unwrap_or_default(), newest.as_deref(), limit);
    names.retain(|name| folder.remove(name).is_ok());
    names
}

/// Names of the files to remove.
fn superfluous(files: Vec<FileEntry>, newest: Option<&str>, limit: u64) -> Vec<String> {
    let mut profiles: Vec<FileEntry> = files
        .into_iter()
        .filter(|file| {
            let ending = file.name.rsplit_once('.').map(|(_, ending)| ending);
            ending.is_some_and(|ending| [ENDING, HEALTH_ENDING].contains(&ending))
        })
        .collect();
    let is_recovered = |file: &FileEntry| file.name.starts_with(RECOVERED);
    profiles.sort_by(|a, b| {
        let order = |file: &FileEntry| (!is_recovered(file), file.modified_seconds);
        order(a).cmp(&order(b)).then_with(|| a.name.cmp(&b.name))
    });
    let mut bytes: u64 = profiles.iter().map(|file| file.bytes).sum();
    let mut recovered = profiles.iter().filter(|file| is_recovered(file)).count();
    let mut names = Vec::new();
    for file in profiles {
        let too_many = is_recovered(&file) && recovered > RECOVERED_PROFILES;
        if Some(file.name.as_str()) == newest || !(too_many || bytes > limit) {
            continue;
        }
        bytes -= file.bytes;
        recovered -= usize::from(is_recovered(&file));
        names.push(file.name);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::PROFILE_FOLDER_BYTES;

    fn file(name: &str, bytes: u64, modified_seconds: i64) -> FileEntry {
        FileEntry {
            name: name.to_owned(),
            bytes,
            modified_seconds,
        }
    }

    #[test]
    fn recovered_profiles_go_first_then_the_oldest() {
        let files = || {
            vec![
                file("b.sparkprofile", 10, 2),
                file("a.sparkprofile", 10, 1),
                file("recovered_c.sparkprofile", 10, 9),
                file("recovered_d.sparkprofile", 10, 8),
                file("notes.txt", 1000, 0),
                file("sparkhealth", 1000, 0),
            ]
        };
        assert!(superfluous(files(), None, 40).is_empty());
        assert_eq!(superfluous(files(), None, 39), ["recovered_d.sparkprofile"]);
        let order = [
            "recovered_d.sparkprofile",
            "recovered_c.sparkprofile",
            "a.sparkprofile",
            "b.sparkprofile",
        ];
        assert_eq!(superfluous(files(), None, 0), order);
        let newest = Some("a.sparkprofile");
        assert_eq!(superfluous(files(), newest, 0), [order[0], order[1], order[3]]);
    }

    #[test]
    fn health_reports_take_the_same_room() {
        let files = vec![file("b.sparkprofile", 10, 2), file("a.sparkhealth", 10, 1)];
        assert_eq!(superfluous(files, None, 10), ["a.sparkhealth"]);
    }

    #[test]
    fn a_crash_loop_keeps_a_bounded_number_of_profiles() {
        let files: Vec<FileEntry> = (0..30)
            .map(|number| file(&format!("recovered_{number:02}.sparkprofile"), 1, number))
            .collect();
        let removed = superfluous(files, None, u64::MAX);
        assert_eq!(removed.len(), 30 - RECOVERED_PROFILES);
        assert_eq!(removed.first().map(String::as_str), Some("recovered_00.sparkprofile"));
    }

    #[test]
    fn the_profile_just_written_stays() {
        let root = tempfile::tempdir().unwrap();
        let folder = PrivateDir::open(root.path()).unwrap();
        let path = root.path().join("new.sparkprofile");
        std::fs::File::create(&path)
            .unwrap()
            .set_len(PROFILE_FOLDER_BYTES)
            .unwrap();
        std::fs::File::create(root.path().join("old.sparkprofile"))
            .unwrap()
            .set_len(1)
            .unwrap();
        assert_eq!(make_room(&folder, &path, PROFILE_FOLDER_BYTES), ["old.sparkprofile"]);
        let left: Vec<String> = folder.files().unwrap().into_iter().map(|file| file.name).collect();
        assert_eq!(left, ["new.sparkprofile"]);
    }
}
