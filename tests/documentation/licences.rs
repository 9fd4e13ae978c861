//! THIRD-PARTY.md lists what is linked into the plugin, in the versions that are, with the text of every licence that is used.

use std::collections::BTreeMap;
use std::process::Command;

use super::page::{quoted, read, root, rows};

/// Crates, versions and licences, as cargo has them. Macros and build scripts leave nothing in the file.
fn linked() -> BTreeMap<String, (String, String)> {
    let out = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--package", "endstone-spark"])
        .args([
            "--edges",
            "normal,no-proc-macro",
            "--target",
            "x86_64-unknown-linux-gnu",
        ])
        .args(["--prefix", "none", "--no-dedupe", "--format", "{p}|{l}"])
        .current_dir(root())
        .output()
        .unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let (package, licence) = line.split_once('|').unwrap();
        let mut words = package.split(' ');
        let (name, version) = (words.next().unwrap(), words.next().unwrap());
        if name != "endstone-spark" {
            let version = version.trim_start_matches('v').to_owned();
            found.insert(name.to_owned(), (version, licence.replace('/', " OR ")));
        }
    }
    assert!(found.len() > 20, "{text}");
    found
}

#[test]
fn every_crate_that_is_linked_in_is_listed_with_its_version_and_licence_and_no_other() {
    let page = read("THIRD-PARTY.md");
    let listed: BTreeMap<String, (String, String)> = rows(&page, "| crate |")
        .iter()
        .map(|row| (quoted(row[0])[0].to_owned(), (row[1].to_owned(), row[2].to_owned())))
        .collect();
    assert_eq!(listed, linked());
}

#[test]
fn the_licence_that_is_used_is_offered_and_its_text_is_there() {
    let page = read("THIRD-PARTY.md");
    for row in rows(&page, "| crate |") {
        let (offered, used, copyright) = (row[2], row[3], row[4]);
        for licence in used.split(" AND ") {
            assert!(
                offered
                    .split(" OR ")
                    .any(|one| one.split(" AND ").any(|one| one == licence)),
                "{row:?}"
            );
            assert!(
                page.contains(&format!("\n## {licence}\n")),
                "there is no text of {licence}"
            );
        }
        assert!(!copyright.is_empty(), "{row:?}");
    }
}
