//! Pages of documentation, and how their tables are read.

use std::fs;
use std::path::{Path, PathBuf};

/// The project's folder.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A file of the project.
pub fn read(name: &str) -> String {
    let path = root().join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names of all files with this ending in a folder of the project.
pub fn files(folder: &str, ending: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(root().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == ending))
        .map(|path| path.strip_prefix(root()).unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// All pages, by name.
pub fn pages() -> Vec<(String, String)> {
    let mut names = files("", "md");
    names.extend(files("docs", "md"));
    assert!(names.len() > 10, "{names:?}");
    names.into_iter().map(|name| (name.clone(), read(&name))).collect()
}

/// The texts of all Rust files below a folder of the project.
pub fn sources(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(fs::read_to_string(&path).unwrap());
        }
    }
    found
}

/// The rows of all tables whose head begins with these cells, as cells.
pub fn rows<'page>(page: &'page str, head: &str) -> Vec<Vec<&'page str>> {
    let mut rows = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        if line.starts_with(head) {
            inside = true;
        } else if !line.starts_with('|') {
            inside = false;
        } else if inside && !line.starts_with("|---") {
            let cells = line.trim_matches('|').split('|');
            rows.push(cells.map(str::trim).collect());
        }
    }
    assert!(!rows.is_empty(), "there is no table that begins with {head:?}");
    rows
}

/// What stands between backticks.
pub fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn tables_and_quotes_are_read() {
    let page = "text\n| a | b |\n|---|---|\n| `x`, `y z` | 1 |\n| w | |\n\n| c |\n|---|\n| v |\n";
    assert_eq!(rows(page, "| a |"), [vec!["`x`, `y z`", "1"], vec!["w", ""]]);
    assert_eq!(quoted("`x`, `y z` and"), ["x", "y z"]);
}
