//! Every setting is in docs/commands.md, and every setting that a page names exists. What there is, the file says that the plugin writes.

use std::collections::BTreeSet;

use endstone_spark::settings;

use super::page::{pages, quoted, read, rows};

/// The settings that a new server's file has.
fn known() -> BTreeSet<String> {
    let folder = tempfile::tempdir().unwrap();
    let loaded = settings::load(folder.path());
    assert_eq!(loaded.problems, []);
    let written = std::fs::read_to_string(folder.path().join("config.toml")).unwrap();
    let names: BTreeSet<String> = written
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| Some(line.split_once(" = ")?.0.to_owned()))
        .collect();
    assert!(names.len() >= 10, "{names:?}");
    names
}

#[test]
fn the_page_lists_exactly_the_settings_there_are() {
    let page = read("docs/commands.md");
    let listed: BTreeSet<String> = rows(&page, "| setting |")
        .iter()
        .map(|row| quoted(row[0])[0].to_owned())
        .collect();
    assert_eq!(listed, known());
}

#[test]
fn every_setting_that_a_page_gives_a_value_exists() {
    let known = known();
    let mut found = 0;
    for (name, text) in pages() {
        for line in text.lines() {
            for given in quoted(line) {
                let Some((setting, _)) = given.split_once(" = ") else {
                    continue;
                };
                if !setting.chars().all(|c| c.is_ascii_alphabetic()) {
                    continue;
                }
                assert!(known.contains(setting), "{name}: there is no setting {setting}");
                found += 1;
            }
        }
    }
    assert!(found > 2, "the pages are not read");
}
