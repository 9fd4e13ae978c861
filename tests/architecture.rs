//! The import table of src/lib.rs, held: a module may use only what stands below it, and unsafe code stays where it is reviewed.

use std::fs;
use std::path::{Path, PathBuf};

/// module -> modules it may name as `crate::<module>`. `limits` is open to all.
const ALLOWED: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("sync", &[]),
    ("sys", &["model"]),
    ("shadow", &["sync", "model"]),
    ("native", &["shadow", "sync", "sys", "model"]),
    ("python", &["shadow", "sync", "sys", "model"]),
    ("symbol", &["sys", "model"]),
    ("profile", &["model"]),
    ("stats", &["sync", "sys", "model"]),
    ("export", &["profile", "symbol", "sys", "model"]),
    ("journal", &["sys", "model"]),
    ("settings", &["sys", "model"]),
    ("upload", &["sys", "model"]),
    ("activity", &["sys", "model"]),
    (
        "session",
        &[
            "settings", "upload", "activity", "journal", "export", "stats", "profile", "symbol", "python", "native",
            "shadow", "sync", "sys", "model",
        ],
    ),
    ("command", &["session", "model"]),
    (
        "endstone",
        &["command", "session", "settings", "activity", "sys", "model"],
    ),
    ("limits", &[]),
    ("lib", &[]),
];

/// Modules that may hold unsafe code.
const UNSAFE: &[&str] = &["sync", "sys", "shadow", "native", "python", "endstone"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

fn all_sources() -> Vec<(String, PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 20, "the walk found too little: {files:?}");
    files
        .into_iter()
        .map(|path| {
            let relative = path.strip_prefix(&root).unwrap();
            let module = relative.components().next().unwrap().as_os_str().to_string_lossy();
            (
                module.trim_end_matches(".rs").to_owned(),
                path.clone(),
                fs::read_to_string(&path).unwrap(),
            )
        })
        .collect()
}

/// The first names after every `crate::`, those in braces included.
fn uses(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
        for (at, _) in line.match_indices("crate::") {
            let rest = &line[at + "crate::".len()..];
            if rest.starts_with('{') {
                panic!("write one `use crate::<module>` a line, so that this test can read it: {line}");
            }
            names.push(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    names
}

#[test]
fn imports_go_downwards_only() {
    let mut wrong = Vec::new();
    for (module, path, text) in all_sources() {
        let allowed = ALLOWED
            .iter()
            .find(|(name, _)| *name == module)
            .unwrap_or_else(|| panic!("module `{module}` is not in the table of src/lib.rs"))
            .1;
        for name in uses(&text) {
            if name != module && name != "limits" && !allowed.contains(&name.as_str()) {
                wrong.push(format!("{} uses {name}", path.display()));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "against the table of src/lib.rs:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn unsafe_code_stays_in_the_reviewed_modules() {
    let mut wrong = Vec::new();
    for (module, path, text) in all_sources() {
        if !UNSAFE.contains(&module.as_str()) && text.contains("allow(unsafe_code)") {
            wrong.push(path.display().to_string());
        }
    }
    assert!(wrong.is_empty(), "unsafe code is allowed in {wrong:?}");
}

#[test]
fn only_one_module_starts_threads() {
    for (module, path, text) in all_sources() {
        // Tests stand at a file's end, or in files of their own.
        let production = text.split("#[cfg(test)]").next().unwrap();
        let production = production.split("#[cfg(all(test").next().unwrap();
        let name = path.file_name().unwrap().to_string_lossy();
        let is_test = name == "tests.rs" || name.ends_with("_tests.rs");
        if module != "sys" && !is_test {
            assert!(
                !production.contains("std::thread::spawn") && !production.contains("thread::scope"),
                "{} starts a std thread; sys::thread says why not",
                path.display()
            );
        }
    }
}

#[test]
fn files_that_comments_name_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut missing = Vec::new();
    for (_, path, text) in all_sources() {
        let words = text
            .lines()
            .filter(|line| line.trim_start().starts_with("//"))
            .flat_map(str::split_whitespace);
        for word in words {
            let name = word.trim_matches(|c: char| !c.is_alphanumeric());
            let is_file = ["src/", "tests/", "docs/", "benches/"]
                .iter()
                .any(|folder| name.starts_with(folder))
                && [".rs", ".md", ".py"].iter().any(|end| name.ends_with(end));
            if is_file && !root.join(name).exists() {
                missing.push(format!("{} names {name}", path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Files of `src` that may ask for the date. Everything else measures time on the clock that is never set.
const CALENDAR: &[&str] = &[
    "session/health.rs",
    "session/journaling.rs",
    "session/recording.rs",
    "session/server.rs",
    "session/service.rs",
    "session/worker.rs",
    "stats/service.rs",
    "sys/clock.rs",
    "sys/private_dir/new_file.rs",
];

#[test]
fn the_calendar_is_read_for_dates_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    for (_, path, text) in all_sources() {
        let name = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
        let asks = ["clock::wall", "SystemTime", "CLOCK_REALTIME"]
            .iter()
            .any(|word| text.contains(word));
        if asks && !name.ends_with("tests.rs") {
            found.push(name);
        }
    }
    found.sort();
    assert_eq!(found, CALENDAR, "the date may be set at any time");
}
