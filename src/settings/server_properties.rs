//! What may be shown of the game's own settings.
//!
//! The file holds secrets (the world's seed, a password in old ones) and things that are nobody's business (the world's name, ports). So it is read by a list of
//! names, and each value must have the form that its name calls for: a secret that stands in the wrong line does not fit there.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde_json::Value;

use crate::limits;

/// The forms of values.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// `true` or `false`.
    Switch,
    /// A number of at most nine digits, perhaps with a fraction.
    Number,
    /// One of these.
    OneOf(&'static [&'static str]),
}

use Form::{Number, OneOf, Switch};

/// The names. What is not here is not shown: above all `level-seed`, `level-name`, `server-name`, and everything about ports, addresses and debuggers.
const SHOWN: &[(&str, Form)] = &[
    ("gamemode", OneOf(&["survival", "creative", "adventure"])),
    ("force-gamemode", Switch),
    ("difficulty", OneOf(&["peaceful", "easy", "normal", "hard"])),
    ("allow-cheats", Switch),
    ("max-players", Number),
    ("online-mode", Switch),
    ("allow-list", Switch),
    ("view-distance", Number),
    ("tick-distance", Number),
    ("player-idle-timeout", Number),
    ("max-threads", Number),
    (
        "default-player-permission-level",
        OneOf(&["visitor", "member", "operator"]),
    ),
    ("op-permission-level", Number),
    ("texturepack-required", Switch),
    ("content-log-file-enabled", Switch),
    ("content-log-console-output-enabled", Switch),
    ("content-log-level", OneOf(&["verbose", "info", "warning", "error"])),
    ("compression-threshold", Number),
    ("compression-algorithm", OneOf(&["zlib", "snappy"])),
    (
        "server-authoritative-movement",
        OneOf(&["client-auth", "server-auth", "server-auth-with-rewind"]),
    ),
    ("server-authoritative-movement-strict", Switch),
    ("server-authoritative-dismount-strict", Switch),
    ("server-authoritative-entity-interactions-strict", Switch),
    ("player-position-acceptance-threshold", Number),
    ("player-movement-action-direction-threshold", Number),
    ("player-movement-score-threshold", Number),
    ("player-movement-distance-threshold", Number),
    ("player-movement-duration-threshold-in-ms", Number),
    ("correct-player-movement", Switch),
    ("server-authoritative-block-breaking", Switch),
    ("server-authoritative-block-breaking-pick-range-scalar", Number),
    ("chat-restriction", OneOf(&["None", "Dropped", "Disabled"])),
    ("disable-player-interaction", Switch),
    ("client-side-chunk-generation-enabled", Switch),
    ("block-network-ids-are-hashes", Switch),
    ("disable-persona", Switch),
    ("disable-custom-skins", Switch),
    ("server-build-radius-ratio", Number),
    ("emit-server-telemetry", Switch),
    ("enable-lan-visibility", Switch),
    ("script-watchdog-enable", Switch),
    ("script-watchdog-enable-exception-handling", Switch),
    ("script-watchdog-enable-shutdown", Switch),
    ("script-watchdog-hang-exception", Switch),
    ("script-watchdog-hang-threshold", Number),
    ("script-watchdog-spike-threshold", Number),
    ("script-watchdog-slow-threshold", Number),
    ("script-watchdog-memory-warning", Number),
    ("script-watchdog-memory-limit", Number),
];

/// Digits of a number, and of its fraction.
const DIGITS: usize = 9;

/// What may be shown of a file of the game's settings. Empty when it is not there, no regular file, or larger than any real one. Not for the server thread.
pub fn server_properties(path: &Path) -> BTreeMap<String, Value> {
    read(path).map(|text| shown(&text)).unwrap_or_default()
}

fn read(path: &Path) -> Option<String> {
    // A pipe in the file's place must not be waited for.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC)
        .open(path)
        .ok()?;
    file.metadata().ok().filter(|metadata| metadata.is_file())?;
    let mut bytes = Vec::new();
    file.take(limits::SERVER_PROPERTIES_BYTES + 1)
        .read_to_end(&mut bytes)
        .ok()?;
    (bytes.len() as u64 <= limits::SERVER_PROPERTIES_BYTES).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

fn shown(text: &str) -> BTreeMap<String, Value> {
    let lines = text.trim_start_matches('\u{feff}').lines();
    lines
        .filter_map(|line| line.split_once('='))
        .filter_map(|(name, value)| {
            let (name, form) = SHOWN.iter().find(|(shown, _)| *shown == name.trim())?;
            Some(((*name).to_owned(), form.read(value.trim())?))
        })
        .collect()
}

impl Form {
    fn read(self, text: &str) -> Option<Value> {
        match self {
            Switch => text.parse::<bool>().ok().map(Value::from),
            Number => number(text),
            OneOf(words) => words.contains(&text).then(|| text.into()),
        }
    }
}

fn number(text: &str) -> Option<Value> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_short =
        |digits: &str| (1..=DIGITS).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit());
    if !is_short(whole.strip_prefix('-').unwrap_or(whole)) || !is_short(fraction) {
        return None;
    }
    match text.parse::<i64>() {
        Ok(number) => Some(number.into()),
        Err(_) => text.parse::<f64>().ok().map(Value::from),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn listed_names_are_shown_and_nothing_else() {
        let text = "\u{feff}# a comment\r\nserver-name=Dedicated Server\r\ngamemode=survival\r\n\
            difficulty = easy\nmax-players=10\nonline-mode=true\nlevel-name=My House\nlevel-seed=4242\n\
            rcon.password=hunter2\nserver-port=19132\nserver-ip=10.1.2.3\ncompression-threshold=1\n\
            player-movement-action-direction-threshold=0.85\nserver-build-radius-ratio=Disabled\nmax-threads=-8\n";
        let expected = json!({
            "gamemode": "survival",
            "difficulty": "easy",
            "max-players": 10,
            "online-mode": true,
            "compression-threshold": 1,
            "player-movement-action-direction-threshold": 0.85,
            "max-threads": -8,
        });
        let found: serde_json::Map<String, Value> = shown(text).into_iter().collect();
        assert_eq!(Value::Object(found), expected);
    }

    #[test]
    fn a_secret_in_the_wrong_line_does_not_fit_there() {
        for value in [
            "hunter2",
            "-7379792620528906219",
            "true; hunter2",
            "1e9",
            "0x10",
            "inf",
            "",
            "10.0.0.1",
            "\"easy\"",
        ] {
            let text: String = SHOWN.iter().map(|(name, _)| format!("{name}={value}\n")).collect();
            assert_eq!(shown(&text), BTreeMap::new(), "{value}");
        }
    }

    #[test]
    fn only_a_regular_file_of_a_sensible_size_is_read() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("server.properties");
        assert!(server_properties(&path).is_empty());
        std::fs::create_dir(&path).unwrap();
        assert!(server_properties(&path).is_empty());
        std::fs::remove_dir(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        assert!(server_properties(&path).is_empty());
        std::fs::remove_file(&path).unwrap();
        let mut text = "max-players=10\n".to_owned();
        std::fs::write(&path, &text).unwrap();
        assert_eq!(server_properties(&path).len(), 1);
        text.push_str(&"#".repeat(limits::SERVER_PROPERTIES_BYTES as usize));
        std::fs::write(&path, &text).unwrap();
        assert!(server_properties(&path).is_empty());
        std::fs::write(&path, b"\xff\xfe\nmax-players=10\n").unwrap();
        assert_eq!(server_properties(&path).len(), 1);
    }
}
