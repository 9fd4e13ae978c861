//! `server.properties`. Nothing but listed names is shown, and no value that could be a secret.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use endstone_spark::settings::server_properties;
use serde_json::Value;
use tempfile::TempDir;

use super::mutate::{Format, Numbers};
use super::random::Random;
use super::run::fuzz;
use super::target::{Target, corpus, rewrite};

const WORDS: &[&[u8]] = &[
    b"=",
    b"\n",
    b"\r\n",
    b"\r",
    b" ",
    b"\t",
    b"#",
    b".",
    b"-",
    b"\0",
    b"\xef\xbb\xbf",
    b"\xc2\xa7",
    b"\nmax-players=",
    b"\ngamemode=",
    b"\nlevel-seed=",
    b"true",
    b"hunter2",
    "\u{2028}".as_bytes(),
    "٤".as_bytes(),
];

/// Longest word that is shown: the longest that a setting may be.
const WORD: usize = 23;

struct Properties {
    seeds: Vec<Vec<u8>>,
    folder: TempDir,
    shown: AtomicU64,
}

impl Properties {
    fn file(&self) -> PathBuf {
        self.folder.path().join("server.properties")
    }
}

impl Target for Properties {
    const TEST: &'static str = "properties::spoiled_game_settings_show_only_what_is_listed";
    const INPUTS: u64 = 50_000;
    const MEMORY_BYTES: u64 = 64 << 20;

    fn seeds(&self) -> &[Vec<u8>] {
        &self.seeds
    }

    fn make(&self, random: &mut Random) -> Vec<u8> {
        let format = Format {
            numbers: Numbers::Text,
            extremes: &[999_999_999, 1_000_000_000],
            words: WORDS,
            seeds: &self.seeds,
            longest: 512 << 10,
        };
        let mut text = format.spoiled_seed(8, random);
        // Beyond the largest that is read.
        if random.once_in(1_000) {
            text = text.repeat(1 + random.below(1_000));
            text.truncate(format.longest);
        }
        text
    }

    fn check(&self, input: &[u8]) {
        rewrite(&self.file(), input);
        let shown = server_properties(&self.file());
        let text = String::from_utf8_lossy(input);
        for (name, value) in &shown {
            assert!(text.contains(name.as_str()), "{name} is in no line");
            let forbidden = ["seed", "password", "port", "server-name", "level-name", "server-ip"];
            assert!(!forbidden.iter().any(|word| name.contains(word)), "{name}");
            match value {
                Value::Bool(_) => {}
                Value::Number(number) => assert!(number.as_f64().is_some_and(|number| number.abs() < 1e9), "{number}"),
                Value::String(word) => assert!(
                    word.len() <= WORD && word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-'),
                    "{word:?}"
                ),
                other => panic!("{other} for {name}"),
            }
        }
        // Relaxed, here and below: a count.
        self.shown.fetch_add(shown.len() as u64, Ordering::Relaxed);
    }

    fn finish(&self, inputs: u64) -> String {
        let shown = self.shown.load(Ordering::Relaxed);
        assert!(shown > inputs, "{shown} values shown");
        format!("{shown} values shown")
    }
}

#[test]
fn spoiled_game_settings_show_only_what_is_listed() {
    fuzz(&Properties {
        seeds: corpus("properties"),
        folder: tempfile::tempdir().unwrap(),
        shown: AtomicU64::new(0),
    });
}
