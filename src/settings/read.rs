//! From the file's text to settings.

use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::Settings;
use crate::limits;
use crate::model::{WebAddress, clean_text};

/// Something in the file that cannot be used. As text: one line for the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Counted from 1; 0 when it is about the file as a whole.
    pub line: usize,
    /// What is wrong, what is allowed, and what holds instead.
    pub text: String,
}

impl Problem {
    pub(super) fn of_file(text: String) -> Self {
        Problem { line: 0, text }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => write!(out, "plugins/spark/config.toml: {}", self.text),
            line => write!(out, "plugins/spark/config.toml, line {line}: {}", self.text),
        }
    }
}

/// Reads the file's text. What cannot be used keeps its default and is told.
pub(super) fn read(text: &str) -> (Settings, Vec<Problem>) {
    let mut settings = Settings::default();
    let table = match DeTable::parse(text) {
        Ok(table) => table.into_inner(),
        Err(error) => {
            let line = error.span().map_or(0, |span| line_of(text, span.start));
            let message = clean_text(error.message(), limits::COMMENT_CHARS);
            let text = format!("this is not TOML ({message}). The defaults are used for this run.");
            return (settings, vec![Problem { line, text }]);
        }
    };
    let mut problems = Vec::new();
    for (key, value) in &table {
        if let Err(what) = set(&mut settings, key.get_ref(), value.get_ref()) {
            problems.push(Problem {
                line: line_of(text, key.span().start),
                text: what,
            });
        }
    }
    problems.sort_by_key(|problem| problem.line);
    (settings, problems)
}

fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Takes one key over, or says what is wrong with it.
fn set(settings: &mut Settings, key: &str, value: &DeValue<'_>) -> Result<(), String> {
    let wrong = |allowed: &str, default: &dyn std::fmt::Display| {
        format!("{key} must be {allowed}. The default ({default}) is used for this run.")
    };
    match key {
        "viewerUrl" => {
            settings.viewer = address(value).map_err(|allowed| wrong(&allowed, &settings.viewer))?;
        }
        "bytebinUrl" => {
            settings.bytebin = address(value).map_err(|allowed| wrong(&allowed, &settings.bytebin))?;
        }
        "disableResponseBroadcast" => {
            settings.disable_response_broadcast = value.as_bool().ok_or_else(|| wrong("true or false", &"false"))?;
        }
        "pythonAttribution" => {
            settings.python_attribution = switch(value).ok_or_else(|| wrong("\"on\" or \"off\"", &"\"on\""))?;
        }
        "debugFolder" => {
            settings.debug_folder = folder(value).ok_or_else(|| {
                wrong(
                    "an absolute path like \"/usr/lib/debug\"",
                    &settings.debug_folder.display(),
                )
            })?;
        }
        "profileFolderMebibytes" => {
            settings.profile_folder_bytes = mebibytes(value).ok_or_else(|| {
                wrong(
                    &format!(
                        "a whole number from {} to {}",
                        limits::MIN_PROFILE_FOLDER_MEBIBYTES,
                        limits::MAX_PROFILE_FOLDER_MEBIBYTES
                    ),
                    &(limits::PROFILE_FOLDER_BYTES >> 20),
                )
            })?;
        }
        _ => {
            return Err(format!(
                "there is no setting \"{}\"; it is left alone.",
                clean_text(key, limits::ECHO_CHARS)
            ));
        }
    }
    Ok(())
}

fn address(value: &DeValue<'_>) -> Result<WebAddress, String> {
    let text = value.as_str().unwrap_or_default();
    WebAddress::parse(text).map_err(|allowed| allowed.to_string())
}

fn switch(value: &DeValue<'_>) -> Option<bool> {
    match value.as_str()? {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

fn folder(value: &DeValue<'_>) -> Option<PathBuf> {
    let path = Path::new(value.as_str()?);
    path.is_absolute().then(|| path.to_owned())
}

fn mebibytes(value: &DeValue<'_>) -> Option<u64> {
    let number = value.as_integer().filter(|number| number.radix() == 10)?;
    let number: u64 = number.as_str().parse().ok()?;
    (limits::MIN_PROFILE_FOLDER_MEBIBYTES..=limits::MAX_PROFILE_FOLDER_MEBIBYTES)
        .contains(&number)
        .then_some(number << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let (settings, problems) = read(text);
        if !problems.is_empty() {
            assert_eq!(settings, Settings::default(), "{text}");
        }
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_key_is_read() {
        let (settings, problems) = read(
            "viewerUrl = \"https://viewer.example/\"\n\
             bytebinUrl = 'http://localhost:8080/x'\n\
             disableResponseBroadcast = true\n\
             pythonAttribution = \"off\"\n\
             debugFolder = \"/opt/debug\"\n\
             profileFolderMebibytes = 64 # small\n",
        );
        assert_eq!(problems, []);
        assert_eq!(settings.viewer.page("k"), "https://viewer.example/k");
        assert_eq!(settings.bytebin.page("post"), "http://localhost:8080/x/post");
        assert!(settings.disable_response_broadcast && !settings.python_attribution);
        assert_eq!(settings.debug_folder, Path::new("/opt/debug"));
        assert_eq!(settings.profile_folder_bytes, 64 << 20);
        assert_eq!(read(""), (Settings::default(), Vec::new()));
    }

    #[test]
    fn what_cannot_be_used_is_told_with_line_key_and_what_is_allowed() {
        for (text, told) in [
            (
                "# one\nbytebinUrl = \"http://evil.example\"\n",
                "plugins/spark/config.toml, line 2: bytebinUrl must be an https address: http is accepted only for this machine \
                 (\"http://127.0.0.1:8080\", \"http://localhost\"). The default (https://spark-usercontent.lucko.me) is used for this run.",
            ),
            (
                "viewerUrl = 7",
                "plugins/spark/config.toml, line 1: viewerUrl must be an address like \"https://example.org\" or \
                 \"https://example.org:8443/path\", without user name, ? or #. The default (https://spark.lucko.me) is used for this run.",
            ),
            (
                "pythonAttribution = true",
                "plugins/spark/config.toml, line 1: pythonAttribution must be \"on\" or \"off\". The default (\"on\") is used for this run.",
            ),
            (
                "disableResponseBroadcast = \"yes\"",
                "plugins/spark/config.toml, line 1: disableResponseBroadcast must be true or false. The default (false) is used for this run.",
            ),
            (
                "debugFolder = \"debug\"",
                "plugins/spark/config.toml, line 1: debugFolder must be an absolute path like \"/usr/lib/debug\". \
                 The default (/usr/lib/debug) is used for this run.",
            ),
            (
                "\n\nbytebinURL = \"https://a.b\"",
                "plugins/spark/config.toml, line 3: there is no setting \"bytebinURL\"; it is left alone.",
            ),
        ] {
            assert_eq!(problems(text), [told], "{text}");
        }
        for number in [
            "0",
            "15",
            "1048577",
            "-1",
            "1e3",
            "0x40",
            "\"64\"",
            "99999999999999999999",
        ] {
            let told = problems(&format!("profileFolderMebibytes = {number}"));
            assert_eq!(
                told,
                [
                    "plugins/spark/config.toml, line 1: profileFolderMebibytes must be a whole number from 16 to 1048576. \
                  The default (1024) is used for this run."
                ],
                "{number}"
            );
        }
    }

    #[test]
    fn one_wrong_value_leaves_the_others_alone() {
        let (settings, problems) = read("pythonAttribution = 1\ndisableResponseBroadcast = true\n");
        assert!(settings.disable_response_broadcast && settings.python_attribution);
        assert_eq!(problems.len(), 1);
    }

    #[test]
    fn what_is_not_toml_is_told_with_its_line() {
        for text in [
            "\n\nviewerUrl = \n",
            "\n\n= 1",
            "\n\nviewerUrl = \"§c\u{7}",
            "\n\nviewerUrl https",
        ] {
            let told = problems(text);
            assert_eq!(told.len(), 1, "{told:?}");
            assert!(
                told[0].starts_with("plugins/spark/config.toml, line 3: this is not TOML (")
                    && told[0].ends_with("). The defaults are used for this run."),
                "{told:?}"
            );
            assert!(!told[0].chars().any(char::is_control), "{told:?}");
        }
        assert_eq!(
            problems("viewerUrl = \"https://a.b\"\nviewerUrl = \"https://a.b\"").len(),
            1
        );
    }
}
