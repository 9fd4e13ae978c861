//! The file itself.

use std::path::Path;

use super::Settings;
use super::keys::KEYS;
use super::read::{ALL_DEFAULTS, Problem, read};
use crate::limits;
use crate::model::clean_text;
use crate::sys::{PrivateDir, PrivateDirError};

/// Its name in the plugin's folder.
const NAME: &str = "config.toml";

/// What is written when there is none: every setting, with its default.
fn commented() -> String {
    let mut text = "# Settings of the spark profiler. They are read when the server starts; this file is never changed by the plugin.\n".to_owned();
    for key in KEYS {
        text.push_str(&format!(
            "\n# {}\n{} = {}\n",
            key.comment,
            key.name,
            key.kind.default_text()
        ));
    }
    text
}

/// Settings and what was wrong with their file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loaded {
    /// What holds.
    pub settings: Settings,
    /// One line each for the log.
    pub problems: Vec<Problem>,
}

/// Reads the settings in the plugin's folder. A file that is not there is written.
pub fn load(folder: &Path) -> Loaded {
    let with = |settings: Settings, problem: String| Loaded {
        settings,
        problems: vec![Problem::of_file(problem)],
    };
    let why = |error: PrivateDirError| clean_text(&error.to_string(), limits::COMMENT_CHARS);
    let unread = |problem: String| with(Settings::unread(), format!("{problem}. {ALL_DEFAULTS}"));
    let opened = match PrivateDir::open(folder) {
        Ok(opened) => opened,
        Err(error) => {
            let error = why(error);
            return match folder.try_exists() {
                // Then there is no file in it either.
                Ok(false) => with(
                    Settings::default(),
                    format!("could not be made: {error}. The defaults are used."),
                ),
                _ => unread(format!("could not be looked for: {error}")),
            };
        }
    };
    let bytes = match opened.read(NAME, limits::SETTINGS_BYTES) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => {
            let written = opened.write_new([NAME.to_owned()], |file| file.write_all(commented().as_bytes()));
            return match written {
                Ok(_) => Loaded {
                    settings: Settings::default(),
                    problems: Vec::new(),
                },
                Err(error) => with(
                    Settings::default(),
                    format!("could not be written: {}. The defaults are used.", why(error)),
                ),
            };
        }
        Err(error) => return unread(format!("could not be read: {}", why(error))),
    };
    let Ok(text) = String::from_utf8(bytes) else {
        return unread("this is not UTF-8 text".to_owned());
    };
    let (settings, problems) = read(text.strip_prefix('\u{feff}').unwrap_or(&text));
    Loaded { settings, problems }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_missing_file_is_written_with_the_defaults_and_never_again() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("spark");
        let fresh = load(&folder);
        assert_eq!((fresh.settings, fresh.problems), (Settings::default(), Vec::new()));
        let path = folder.join(NAME);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, commented());
        assert_eq!(read(&text), (Settings::default(), Vec::new()));

        let own = "disableResponseBroadcast = true\nnonsense = 1\nviewerUrl = 3\n";
        std::fs::write(&path, own).unwrap();
        let loaded = load(&folder);
        assert!(loaded.settings.disable_response_broadcast);
        assert_eq!(loaded.problems.len(), 2);
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            own,
            "the owner's file is left alone"
        );
    }

    #[test]
    fn what_is_no_readable_text_is_told_and_left_alone() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(NAME);
        let told = || {
            let loaded = load(root.path());
            assert_eq!(
                loaded.settings,
                Settings::unread(),
                "what was meant for another server goes nowhere"
            );
            assert_eq!(loaded.problems.len(), 1);
            loaded.problems[0].to_string()
        };
        std::fs::write(&path, b"\xff\xfe").unwrap();
        assert!(told().contains("not UTF-8"));
        std::fs::write(&path, vec![b'#'; limits::SETTINGS_BYTES as usize + 1]).unwrap();
        assert!(told().contains("too large"), "{}", told());
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(told().contains("not a regular file"), "{}", told());
        std::fs::remove_dir(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        assert!(told().contains("not a regular file"), "{}", told());
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "\u{feff}disableResponseBroadcast = true\r\n").unwrap();
        assert!(load(root.path()).settings.disable_response_broadcast);
    }

    #[test]
    fn a_folder_that_cannot_be_used_is_told() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("spark");
        std::fs::write(&folder, "in the way").unwrap();
        let told = load(&folder).problems[0].to_string();
        assert!(told.contains("is not a folder"), "{told}");
    }
}
