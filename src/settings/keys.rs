//! The settings: what each means, what it is called in the file, what it may be, and what holds without it.
//!
//! A new one is a field of [`Settings`] with its default, and a row of [`KEYS`]. The file that is written, the reader and its messages are made from the
//! row; the tests here hold the table in `docs/commands.md` to it, and do not compile until the new field is read by one of them.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use super::value::Kind;
use crate::limits;
use crate::model::WebAddress;

/// The settings of this run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The page that shows profiles.
    pub viewer: WebAddress,
    /// The server that takes uploads. `None` when the owner may have named one and it is not known which: what was meant for another server does not go to the public one.
    pub bytebin: Option<WebAddress>,
    /// Results for somebody who has left go to the console alone.
    pub disable_response_broadcast: bool,
    /// Follow Python functions.
    pub python_attribution: bool,
    /// Keep what a session has sampled on disk while it runs, and make profiles of what crashes have left.
    pub recovery: bool,
    /// Seconds without a tick that are a stall; 0: nobody looks.
    pub stall_seconds: u64,
    /// Where separate debug files are looked for.
    pub debug_folder: PathBuf,
    /// Most room for saved profiles, in MiB.
    pub profile_folder_mebibytes: u64,
    /// Sample all the time.
    pub background_profiler: bool,
    /// How often, in milliseconds between samples.
    pub background_profiler_interval: u64,
    /// Follow Python functions then, too.
    pub background_profiler_python: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            viewer: WebAddress::of_host("spark.lucko.me"),
            bytebin: Some(WebAddress::of_host("spark-usercontent.lucko.me")),
            disable_response_broadcast: false,
            python_attribution: true,
            recovery: true,
            stall_seconds: limits::STALL_SECONDS,
            // Where Linux distributions keep them.
            debug_folder: PathBuf::from("/usr/lib/debug"),
            profile_folder_mebibytes: limits::PROFILE_FOLDER_BYTES >> 20,
            background_profiler: true,
            background_profiler_interval: limits::BACKGROUND_INTERVAL_MILLIS,
            background_profiler_python: false,
        }
    }
}

impl Settings {
    /// What holds when there is a file that cannot be read.
    pub(super) fn unread() -> Self {
        Settings {
            bytebin: None,
            ..Settings::default()
        }
    }

    /// Most bytes of saved profiles that are kept.
    pub fn profile_folder_bytes(&self) -> u64 {
        self.profile_folder_mebibytes << 20
    }
}

/// One setting as the file has it.
#[derive(Debug)]
pub(super) struct Key {
    /// Its name in the file.
    pub(super) name: &'static str,
    /// What it may be, and where it goes.
    pub(super) kind: Kind,
    /// What the file says above it: what it means and what may be written, in an owner's words.
    pub(super) comment: &'static str,
}

/// All of them, in the order of the file that is written.
pub(super) const KEYS: &[Key] = &[
    Key {
        name: "viewerUrl",
        kind: Kind::Address(|settings| &mut settings.viewer),
        comment: "The page that shows profiles. Links begin with it.",
    },
    Key {
        name: "bytebinUrl",
        kind: Kind::Receiver(|settings| &mut settings.bytebin),
        comment: "Where profiles are uploaded to (a server of the kind \"bytebin\"). http is accepted only for this machine: \"http://127.0.0.1:8080\".",
    },
    Key {
        name: "disableResponseBroadcast",
        kind: Kind::Truth(|settings| &mut settings.disable_response_broadcast),
        comment: "Results for a player who has left meanwhile go to the console and to all players who may use the profiler: true or false. If true, to the console alone.",
    },
    Key {
        name: "pythonAttribution",
        kind: Kind::Switch(|settings| &mut settings.python_attribution),
        comment: "Follow Python functions: \"on\" or \"off\". Off, profiles show native frames only, and no Python function costs more while one is taken.",
    },
    Key {
        name: "recovery",
        kind: Kind::Switch(|settings| &mut settings.recovery),
        comment: "Keep what a session samples on disk while it runs (at most 64 MiB), so that a crash of the server does not lose it: \"on\" or \"off\".",
    },
    Key {
        name: "stallSeconds",
        kind: Kind::Whole(STALL_SECONDS, |settings| &mut settings.stall_seconds),
        comment: "Seconds without a tick (0 to 3600) from which on the log and the profile say that the server stood still, while a session or the background profiler runs. 0: never.",
    },
    Key {
        name: "debugFolder",
        kind: Kind::Folder(|settings| &mut settings.debug_folder),
        comment: "Where separate debug files are looked for, to name functions of stripped files.",
    },
    Key {
        name: "profileFolderMebibytes",
        kind: Kind::Whole(PROFILE_FOLDER_MEBIBYTES, |settings| {
            &mut settings.profile_folder_mebibytes
        }),
        comment: "Room for saved profiles, in MiB (16 to 1048576). When a new one is saved the oldest go.",
    },
    Key {
        name: "backgroundProfiler",
        kind: Kind::Truth(|settings| &mut settings.background_profiler),
        comment: "Sample the server thread all the time and keep the last hour, so that \"profiler stop\" shows lag that is over already: true or false. /spark profiler info says what it costs.",
    },
    Key {
        name: "backgroundProfilerInterval",
        kind: Kind::Whole(BACKGROUND_INTERVAL_MILLIS, |settings| {
            &mut settings.background_profiler_interval
        }),
        comment: "Milliseconds between two of its samples (1 to 1000).",
    },
    Key {
        name: "backgroundProfilerPython",
        kind: Kind::Truth(|settings| &mut settings.background_profiler_python),
        comment: "Follow Python functions in it, too: true or false. Each of their calls then costs some 40 to 70 nanoseconds more, whatever the interval; it is switched off where that is more than 0.5 % of the server thread.",
    },
];

const PROFILE_FOLDER_MEBIBYTES: RangeInclusive<u64> =
    limits::MIN_PROFILE_FOLDER_MEBIBYTES..=limits::MAX_PROFILE_FOLDER_MEBIBYTES;

const STALL_SECONDS: RangeInclusive<u64> = 0..=limits::MAX_STALL_SECONDS;

const BACKGROUND_INTERVAL_MILLIS: RangeInclusive<u64> = 1..=limits::MAX_INTERVAL_MICROS / 1_000;

#[cfg(test)]
mod tests {
    use super::super::read::read;
    use super::*;

    #[test]
    fn every_setting_can_be_changed() {
        let text = "viewerUrl = \"https://viewer.example/\"\n\
                    bytebinUrl = 'http://localhost:8080/x'\n\
                    disableResponseBroadcast = true\n\
                    pythonAttribution = \"off\"\n\
                    recovery = \"off\"\n\
                    stallSeconds = 7\n\
                    debugFolder = \"/opt/debug\"\n\
                    profileFolderMebibytes = 64 # small\n\
                    backgroundProfiler = false\n\
                    backgroundProfilerInterval = 25\n\
                    backgroundProfilerPython = true\n";
        let (settings, problems) = read(text);
        assert_eq!(problems, []);
        // All fields by name: a new one has to be added here.
        let Settings {
            viewer,
            bytebin,
            disable_response_broadcast,
            python_attribution,
            recovery,
            stall_seconds,
            debug_folder,
            profile_folder_mebibytes,
            background_profiler,
            background_profiler_interval,
            background_profiler_python,
        } = settings;
        assert_eq!(viewer.page("k"), "https://viewer.example/k");
        assert_eq!(bytebin.unwrap().page("post"), "http://localhost:8080/x/post");
        assert!(disable_response_broadcast);
        assert!(!python_attribution);
        assert!(!recovery);
        assert_eq!(stall_seconds, 7);
        assert_eq!(debug_folder, PathBuf::from("/opt/debug"));
        assert_eq!(profile_folder_mebibytes, 64);
        assert!(!background_profiler);
        assert_eq!(background_profiler_interval, 25);
        assert!(background_profiler_python);
        for key in KEYS {
            assert!(text.contains(key.name), "{} has no test", key.name);
        }
    }

    #[test]
    fn switches_are_understood_in_both_forms() {
        for (value, meant) in [("true", true), ("\"on\"", true), ("false", false), ("\"off\"", false)] {
            let text = format!("pythonAttribution = {value}\nbackgroundProfiler = {value}\n");
            let (settings, problems) = read(&text);
            assert_eq!(problems, []);
            assert_eq!(
                (settings.python_attribution, settings.background_profiler),
                (meant, meant)
            );
        }
    }

    #[test]
    fn every_default_is_a_value_that_the_file_may_hold() {
        for key in KEYS {
            let line = format!("{} = {}", key.name, key.kind.default_text());
            assert_eq!(read(&line), (Settings::default(), Vec::new()), "{line}");
        }
    }

    #[test]
    fn comments_name_the_values_that_are_allowed() {
        for key in KEYS {
            assert!(
                !key.comment.contains('\n') && key.comment.ends_with('.'),
                "{}",
                key.name
            );
            let named: Vec<String> = match &key.kind {
                Kind::Whole(range, _) => vec![range.start().to_string(), range.end().to_string()],
                Kind::Switch(_) => vec!["\"on\" or \"off\"".to_owned()],
                Kind::Truth(_) => vec!["true or false".to_owned()],
                Kind::Address(_) | Kind::Receiver(_) | Kind::Folder(_) => Vec::new(),
            };
            for value in named {
                assert!(key.comment.contains(&value), "{} says nothing of {value}", key.name);
            }
        }
    }

    #[test]
    fn the_page_lists_every_setting_with_its_default_and_no_other() {
        let page = include_str!("../../docs/commands.md");
        let rows: Vec<(&str, &str)> = page
            .lines()
            .skip_while(|line| !line.starts_with("| setting | default |"))
            .skip(2)
            .map_while(|line| line.strip_prefix("| `")?.split_once("` | `"))
            .map(|(name, rest)| (name, rest.split_once("` |").unwrap_or_default().0))
            .collect();
        let keys: Vec<(&str, String)> = KEYS.iter().map(|key| (key.name, key.kind.default_text())).collect();
        let keys: Vec<(&str, &str)> = keys.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(rows, keys);
    }
}
