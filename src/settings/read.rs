//! From the file's text to settings.

use toml::de::{DeTable, DeValue};

use super::Settings;
use super::keys::KEYS;
use super::value::Kind;
use crate::limits;
use crate::model::clean_text;

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

/// What holds when the whole file cannot be used.
pub(super) const ALL_DEFAULTS: &str =
    "The defaults are used for this run, and nothing is uploaded: profiles are saved as files.";

/// Reads the file's text. What cannot be used keeps its default and is told.
pub(super) fn read(text: &str) -> (Settings, Vec<Problem>) {
    let mut settings = Settings::default();
    let table = match DeTable::parse(text) {
        Ok(table) => table.into_inner(),
        Err(error) => {
            let line = error.span().map_or(0, |span| line_of(text, span.start));
            let message = clean_text(error.message(), limits::COMMENT_CHARS);
            let text = format!("this is not valid TOML ({message}). {ALL_DEFAULTS}");
            return (Settings::unread(), vec![Problem { line, text }]);
        }
    };
    let mut wrong = Vec::new();
    for (key, value) in &table {
        if let Err(what) = set(&mut settings, key.get_ref(), value.get_ref()) {
            wrong.push((key.span().start, what));
        }
    }
    wrong.sort_unstable();
    let more = wrong.len().saturating_sub(limits::SETTINGS_PROBLEMS);
    wrong.truncate(limits::SETTINGS_PROBLEMS);
    let told = wrong.into_iter().map(|(at, what)| Problem {
        line: line_of(text, at),
        text: what,
    });
    let rest = (more > 0).then(|| {
        let lines = if more == 1 { "line" } else { "lines" };
        Problem::of_file(format!("{more} more {lines} cannot be used."))
    });
    (settings, told.chain(rest).collect())
}

fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Takes one key over, or says what is wrong with it.
fn set(settings: &mut Settings, name: &str, value: &DeValue<'_>) -> Result<(), String> {
    let Some(key) = KEYS.iter().find(|key| key.name == name) else {
        let echo = clean_text(name, limits::ECHO_CHARS);
        let meant = KEYS.iter().find(|key| key.name.eq_ignore_ascii_case(name));
        let hint = meant.map_or_else(String::new, |key| format!(" (there is {})", key.name));
        let wrong = format!("there is no setting \"{echo}\"{hint}; it is left alone.");
        return Err(match meant.map(|key| &key.kind) {
            Some(kind @ Kind::Receiver(field)) => {
                *field(settings) = None;
                format!("{wrong} {}", kind.instead())
            }
            _ => wrong,
        });
    };
    key.kind.set(settings, value).map_err(|allowed| {
        let instead = key.kind.instead();
        format!("{name} must be {allowed}. {instead}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let (settings, problems) = read(text);
        if !problems.is_empty() {
            let unknown = DeTable::parse(text).is_err() || text.to_ascii_lowercase().contains("bytebinurl");
            let expected = if unknown {
                Settings::unread()
            } else {
                Settings::default()
            };
            assert_eq!(settings, expected, "{text}");
        }
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_cannot_be_used_is_told_with_line_key_and_what_is_allowed() {
        for (text, told) in [
            (
                "# one\nbytebinUrl = \"http://evil.example\"\n",
                "plugins/spark/config.toml, line 2: bytebinUrl must be an https address: http is accepted only for this machine \
                 (\"http://127.0.0.1:8080\", \"http://localhost\"). Nothing is uploaded in this run: profiles are saved as files.",
            ),
            (
                "viewerUrl = 7",
                "plugins/spark/config.toml, line 1: viewerUrl must be an address like \"https://example.org\" or \
                 \"https://example.org:8443/path\", without user name, ? or #. The default (\"https://spark.lucko.me\") is used for this run.",
            ),
            (
                "pythonAttribution = 1",
                "plugins/spark/config.toml, line 1: pythonAttribution must be \"on\" or \"off\". The default (\"on\") is used for this run.",
            ),
            (
                "disableResponseBroadcast = \"yes\"",
                "plugins/spark/config.toml, line 1: disableResponseBroadcast must be true or false. The default (false) is used for this run.",
            ),
            (
                "debugFolder = \"debug\"",
                "plugins/spark/config.toml, line 1: debugFolder must be an absolute path like \"/usr/lib/debug\". \
                 The default (\"/usr/lib/debug\") is used for this run.",
            ),
            (
                "debugFolder = \"/usr/\\u0000lib\"",
                "plugins/spark/config.toml, line 1: debugFolder must be an absolute path like \"/usr/lib/debug\". \
                 The default (\"/usr/lib/debug\") is used for this run.",
            ),
            (
                "\n\nbytebinURL = \"https://a.b\"",
                "plugins/spark/config.toml, line 3: there is no setting \"bytebinURL\" (there is bytebinUrl); it is left alone. Nothing is uploaded in this run: profiles are saved as files.",
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
    fn many_problems_are_told_by_the_first_and_how_many_more_there_are() {
        let text: String = (1..=7_000).map(|number| format!("key{number} = 1\n")).collect();
        let told = problems(&text);
        assert_eq!(told.len(), limits::SETTINGS_PROBLEMS + 1);
        assert_eq!(
            told[0],
            "plugins/spark/config.toml, line 1: there is no setting \"key1\"; it is left alone."
        );
        assert_eq!(
            told.last().unwrap(),
            "plugins/spark/config.toml: 6990 more lines cannot be used."
        );
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
                told[0].starts_with("plugins/spark/config.toml, line 3: this is not valid TOML (")
                    && told[0].ends_with(&format!("). {ALL_DEFAULTS}")),
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
