//! The owner's `config.toml`. What is taken over is allowed, and what is not is told presentably.

use std::sync::atomic::{AtomicU64, Ordering};

use endstone_spark::limits;
use endstone_spark::model::WebAddress;
use endstone_spark::settings::{Settings, load};
use tempfile::TempDir;

use super::mutate::{Format, Numbers};
use super::random::Random;
use super::run::fuzz;
use super::target::{Target, corpus, presentable, rewrite};

const WORDS: &[&[u8]] = &[
    b"=",
    b"\n",
    b"\r\n",
    b"\r",
    b" ",
    b"#",
    b"\"",
    b"'",
    b"\"\"\"",
    b"'''",
    b"[",
    b"]",
    b"[[",
    b"{",
    b"}",
    b".",
    b",",
    b"\\u0000",
    b"\\U0010FFFF",
    b"\\x",
    b"true",
    b"false",
    b"\"on\"",
    b"\"off\"",
    b"inf",
    b"nan",
    b"0x10",
    b"1e400",
    b"1979-05-27T07:32:00Z",
    b"\0",
    b"\x07",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xc2\xa7c",
    b"\xe2\x80\xae",
    b"stallSeconds = ",
    b"viewerUrl = \"",
    b"http://",
    b"https://",
    b"localhost",
    b"[::1]",
    b"@",
    b"%00",
    b"/..",
    b"{a={a={a=",
    b"a.a.a.a.a.a.",
];

struct OwnSettings {
    seeds: Vec<Vec<u8>>,
    folder: TempDir,
    changed: AtomicU64,
    told: AtomicU64,
}

/// An address is encrypted or leads to this machine, whatever the file says.
fn is_safe(address: &WebAddress) -> bool {
    let text = address.to_string();
    presentable(&text) && !text.contains('@') && (text.starts_with("https://") || address.is_this_machine())
}

impl Target for OwnSettings {
    const TEST: &'static str = "settings::spoiled_settings_give_allowed_values_and_presentable_messages";
    const INPUTS: u64 = 50_000;
    const MEMORY_BYTES: u64 = 64 << 20;

    fn seeds(&self) -> &[Vec<u8>] {
        &self.seeds
    }

    fn make(&self, random: &mut Random) -> Vec<u8> {
        let format = Format {
            numbers: Numbers::Text,
            extremes: &[3_600, 3_601, 15, 16, 1_048_576, 1_048_577, 1_000, 1_001],
            words: WORDS,
            seeds: &self.seeds,
            longest: 128 << 10,
        };
        let mut text = format.spoiled_seed(8, random);
        if random.once_in(200) {
            format.swell(&mut text, 20_000, random);
        }
        text
    }

    fn check(&self, input: &[u8]) {
        rewrite(&self.folder.path().join("config.toml"), input);
        let loaded = load(self.folder.path());
        let settings = &loaded.settings;
        assert!(
            is_safe(&settings.viewer) && settings.bytebin.as_ref().is_none_or(is_safe),
            "{settings:?}"
        );
        assert!(settings.stall_seconds <= 3_600);
        assert!((16..=1_048_576).contains(&settings.profile_folder_mebibytes));
        assert!((1..=1_000).contains(&settings.background_profiler_interval));
        assert!(settings.debug_folder.is_absolute() && !settings.debug_folder.to_string_lossy().contains('\0'));
        assert!(loaded.problems.len() <= limits::SETTINGS_PROBLEMS + 1);
        for problem in &loaded.problems {
            let text = problem.to_string();
            assert!(presentable(&text) && text.chars().count() < 1_000, "{text:?}");
            assert!(
                problem.line <= input.iter().filter(|byte| **byte == b'\n').count() + 1,
                "{text}"
            );
        }
        // Relaxed, here and below: counts.
        let changed = *settings != Settings::default();
        self.changed.fetch_add(u64::from(changed), Ordering::Relaxed);
        self.told.fetch_add(loaded.problems.len() as u64, Ordering::Relaxed);
    }

    fn finish(&self, inputs: u64) -> String {
        let (changed, told) = (self.changed.load(Ordering::Relaxed), self.told.load(Ordering::Relaxed));
        assert!(
            changed > inputs / 50 && told > inputs / 10,
            "{changed} changed something, {told} problems"
        );
        format!("{changed} changed a setting, {told} problems told")
    }
}

#[test]
fn spoiled_settings_give_allowed_values_and_presentable_messages() {
    fuzz(&OwnSettings {
        seeds: corpus("settings"),
        folder: tempfile::tempdir().unwrap(),
        changed: AtomicU64::new(0),
        told: AtomicU64::new(0),
    });
}
